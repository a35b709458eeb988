//! One commit inside the writer's transaction: find repeats, let the shared plan decide, write rows.

use std::cell::RefCell;
use std::collections::HashSet;

use portcullis_base::{AskId, Digest, IntentId, Timestamp};
use portcullis_event::{IntentState, RowChange};
use portcullis_store::{
    ArtifactRow, AskNow, Blob, Commit, Committed, Plan, PlannedCommit, SessionKey, StoreError, Writer, plan,
};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use crate::codec::{digest_at, id, id_at, json, json_at, time_at, word, word_at};
use crate::error::Fail;
use crate::heads;
use crate::mark::NewestEvent;
use crate::op::{Trace, Tx};
use crate::{facts, locks, outbox, projections, records, removal, runs, tail, wakes};

/// Does a commit.
pub(crate) fn commit(tx: &Tx<'_>, commit: &Commit) -> Result<Committed, Fail> {
    commit_by(tx, commit, plan, |_| Ok(()))
}

/// Does what `decide` decided, after `first`. Nothing is written before every check has passed.
pub(crate) fn commit_by(
    tx: &Tx<'_>,
    commit: &Commit,
    decide: fn(&Commit, Plan<'_>) -> Result<PlannedCommit, StoreError>,
    first: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<Committed, Fail> {
    let head = heads::read(tx.conn, commit.key)?;
    tail::check(tx, commit.key, head.as_ref())?;
    let last_seq = head.as_ref().map_or(0, |head| head.last_seq);
    let left = undelivered(tx.conn, commit)?;
    let commit = left.as_ref().unwrap_or(commit);
    if let Some(response) = repeat(tx.conn, commit)? {
        return Ok(Committed { events: Vec::new(), last_seq, repeat: true, response });
    }
    removal::check_not_erased(tx.conn, commit.key, head.as_ref())?;
    let now = tx.env.clock.now();
    // The plan asks without being able to fail; what SQLite answered instead is looked at after.
    let failed = RefCell::new(None);
    let planned = decide(
        commit,
        Plan {
            now,
            ids: &*tx.env.ids,
            key: tx.env.key.as_ref(),
            head,
            ask: &|ask| {
                ask_now(tx.conn, commit.key, ask).unwrap_or_else(|error| {
                    failed.replace(Some(error));
                    None
                })
            },
            intent: &|intent| {
                intent_state(tx.conn, commit.key, intent).unwrap_or_else(|error| {
                    failed.replace(Some(error));
                    None
                })
            },
            wake: &|wake| {
                wakes::state(tx.conn, commit.key, wake).unwrap_or_else(|error| {
                    failed.replace(Some(error));
                    None
                })
            },
            wakes: &|| {
                let rows = wakes::of(tx.conn, commit.key, true).unwrap_or_else(|error| {
                    failed.replace(Some(error));
                    Vec::new()
                });
                rows.into_iter().map(|row| row.wake).collect()
            },
            // Nobody else writes while this transaction lasts: it is the lock of every location.
            locks: &|location| {
                locks::held(tx.conn, commit.key.tenant, location).unwrap_or_else(|error| {
                    failed.replace(Some(error));
                    Vec::new()
                })
            },
        },
    );
    if let Some(error) = failed.into_inner() {
        return Err(Fail::Sqlite(error));
    }
    let planned = planned?;
    records::check(tx.conn, commit.key.tenant, &commit.records)?;
    first(tx.conn)?;
    write(tx, commit, planned, now)
}

/// A commit is recognised by its first event.
pub(crate) fn trace(committed: &Committed, key: Option<SessionKey>) -> Option<Trace> {
    Some(Trace::Event(key?, committed.events.first()?.id))
}

/// `Some` if this commit took effect before, with the response that was kept for it.
fn repeat(conn: &Connection, commit: &Commit) -> Result<Option<Option<Value>>, Fail> {
    let tenant = id(commit.key.tenant.as_u128());
    if let Some(wanted) = &commit.idempotency {
        let found: Option<(Digest, Value)> = conn
            .prepare_cached(
                "SELECT body_hash, response FROM idempotency \
                 WHERE tenant = ?1 AND route = ?2 AND key = ?3",
            )?
            .query_row(params![tenant, wanted.route, wanted.key], |row| Ok((digest_at(row, 0)?, json_at(row, 1)?)))
            .optional()?;
        if let Some((body_hash, response)) = found {
            if body_hash != wanted.body_hash {
                return Err(StoreError::IdempotencyMismatch(wanted.key.clone()).into());
            }
            return Ok(Some(Some(response)));
        }
    }
    // What was delivered before is left out by now.
    if matches!(&commit.writer, Writer::Outbox { deliveries } if deliveries.is_empty()) {
        return Ok(Some(None));
    }
    let Some(first) = commit.events.first() else {
        return Ok(None);
    };
    Ok(runs::has_event(conn, commit.key, first.id)?.then_some(None))
}

/// What is left of deliveries of which some took effect before; `None` if none did.
fn undelivered(conn: &Connection, commit: &Commit) -> rusqlite::Result<Option<Commit>> {
    let Writer::Outbox { deliveries } = &commit.writer else { return Ok(None) };
    let (tenant, session) = (id(commit.key.tenant.as_u128()), id(commit.key.session.as_u128()));
    let mut delivered =
        conn.prepare_cached("SELECT 1 FROM delivered WHERE tenant = ?1 AND session = ?2 AND dedupe = ?3")?;
    let mut known = HashSet::new();
    for delivery in deliveries {
        if delivered.exists(params![tenant, session, dedupe(&delivery.key)])? {
            known.insert(delivery.key.as_str());
        }
    }
    Ok(commit.undelivered(|key| known.contains(key)))
}

fn dedupe(key: &str) -> [u8; 16] {
    let digest = Digest::of(key.as_bytes());
    std::array::from_fn(|i| digest.as_bytes()[i])
}

pub(crate) fn ask_now(conn: &Connection, key: SessionKey, ask: AskId) -> rusqlite::Result<Option<AskNow>> {
    conn.prepare_cached("SELECT session, state, expires_at FROM asks WHERE tenant = ?1 AND ask_id = ?2")?
        .query_row(params![id(key.tenant.as_u128()), id(ask.as_u128())], |row| {
            let session = portcullis_base::SessionId::from_u128(id_at(row, 0)?);
            Ok(AskNow { session, state: word_at(row, 1)?, expires_at: time_at(row, 2)? })
        })
        .optional()
}

fn intent_state(conn: &Connection, key: SessionKey, intent: IntentId) -> rusqlite::Result<Option<IntentState>> {
    conn.prepare_cached("SELECT state FROM intents WHERE tenant = ?1 AND session = ?2 AND intent_id = ?3")?
        .query_row(params![id(key.tenant.as_u128()), id(key.session.as_u128()), id(intent.as_u128())], |row| {
            word_at(row, 0)
        })
        .optional()
}

/// Writes small contents; one that is there stays.
pub(crate) fn insert_blobs(conn: &Connection, key: SessionKey, blobs: &[Blob]) -> rusqlite::Result<()> {
    for blob in blobs {
        conn.prepare_cached("INSERT INTO blobs (tenant, sha256, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
            .execute(params![id(key.tenant.as_u128()), blob.sha256.as_bytes(), blob.bytes])?;
    }
    Ok(())
}

/// Writes what was planned; every check came before.
pub(crate) fn write(tx: &Tx<'_>, commit: &Commit, planned: PlannedCommit, now: Timestamp) -> Result<Committed, Fail> {
    let (key, conn) = (commit.key, tx.conn);
    let tenant = id(key.tenant.as_u128());
    let session = id(key.session.as_u128());
    if planned.created {
        heads::insert(conn, key, &planned.head.after)?;
    } else {
        heads::update(conn, key, &planned.head)?;
    }
    let run = runs::insert(conn, key, &planned.events)?;
    if let (Some(run), Some(last)) = (run, planned.events.last()) {
        tx.appended.borrow_mut().push((key, NewestEvent { run, seq: last.seq, hash: last.hash }));
    }
    tx.topics.borrow_mut().extend(planned.topics(key));
    let session_row = planned.rows.iter().find_map(|change| match change {
        RowChange::Session(row) => Some(row),
        _ => None,
    });
    facts::write(conn, key, session_row, &planned.facts)?;
    projections::write(conn, commit, planned.rows)?;
    locks::write(conn, commit, now)?;
    insert_blobs(conn, key, &commit.blobs)?;
    for row in &commit.artifacts {
        insert_artifact(conn, key, row)?;
    }
    for record in &commit.records {
        records::write(conn, key.tenant, record, now)?;
    }
    if let Some(wanted) = &commit.idempotency {
        conn.prepare_cached(
            "INSERT INTO idempotency (tenant, route, key, body_hash, response, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            tenant,
            wanted.route,
            wanted.key,
            wanted.body_hash.as_bytes(),
            json(&wanted.response)?,
            now.as_micros()
        ])?;
    }
    if let Writer::Outbox { deliveries } = &commit.writer {
        let mut insert = conn.prepare_cached("INSERT INTO delivered (tenant, session, dedupe) VALUES (?1, ?2, ?3)")?;
        for delivery in deliveries {
            insert.execute(params![tenant, session, dedupe(&delivery.key)])?;
        }
    }
    if let Some(checkpoint) = &planned.checkpoint {
        conn.prepare_cached("INSERT INTO checkpoints (tenant, session, seq, hash, mac) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![tenant, session, checkpoint.seq, checkpoint.hash.as_bytes(), checkpoint.mac])?;
    }
    for entry in &planned.outbox {
        outbox::put(conn, entry)?;
    }
    Ok(Committed {
        last_seq: planned.head.after.last_seq,
        events: planned.events,
        repeat: false,
        response: commit.idempotency.as_ref().map(|i| i.response.clone()),
    })
}

fn insert_artifact(conn: &Connection, key: SessionKey, row: &ArtifactRow) -> rusqlite::Result<()> {
    let artifact = &row.artifact;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO artifacts (tenant, artifact_id, session, sha256, kind, mime, bytes, \
         lines, complete, trust, expires_at, pinned, tombstone, freed) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        id(key.tenant.as_u128()),
        id(artifact.id.as_u128()),
        id(row.session.as_u128()),
        artifact.sha256.as_bytes(),
        word(&artifact.kind)?,
        artifact.mime,
        artifact.bytes,
        artifact.lines,
        artifact.complete,
        word(&artifact.trust)?,
        artifact.expires_at.map(|at| at.as_micros()),
        row.pinned,
        row.tombstone.map(|stone| stone.at.as_micros()),
        row.tombstone.is_some_and(|stone| stone.freed),
    ])?;
    Ok(())
}
