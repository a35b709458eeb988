//! What goes, inside the writer's transaction: the content of an erased session, and what a policy takes.

use std::collections::HashSet;

use portcullis_base::{ArtifactId, Digest, TenantId, Timestamp};
use portcullis_event::{Body, EventType};
use portcullis_store::{
    ArtifactRow, CONTENT_KINDS, Commit, Committed, Head, Retain, SessionKey, StoreError, VARIABLE, plan_erase,
    variable_ids, was_erased,
};
use rusqlite::{Connection, params};

use crate::codec::{digest_at, id, id_at};
use crate::connect::overwriting;
use crate::error::Fail;
use crate::op::Tx;
use crate::runs::{self, RunReader};
use crate::{apply, query, search};

/// Refuses what would be added to an erased session. Only a log that ended is looked at.
pub(crate) fn check_not_erased(conn: &Connection, key: SessionKey, head: Option<&Head>) -> Result<(), Fail> {
    let Some(head) = head else { return Ok(()) };
    let mut failed = None;
    let last = || match query::events(conn, key, head.last_seq.saturating_sub(1), 1) {
        Ok(mut page) => page.pop(),
        Err(error) => {
            failed = Some(error);
            None
        }
    };
    let erased = was_erased(head, last);
    match failed {
        Some(error) => Err(error.into()),
        None if erased => Err(StoreError::Erased(key.session).into()),
        None => Ok(()),
    }
}

/// Erases a session. The bytes are overwritten where they stood, not only forgotten.
pub(crate) fn erase(tx: &Tx<'_>, erasure: &Commit) -> Result<Committed, Fail> {
    overwriting(tx.conn, || apply::commit_by(tx, erasure, plan_erase, |conn| take_out(conn, erasure.key)))
}

fn take_out(conn: &Connection, key: SessionKey) -> rusqlite::Result<()> {
    let mine = params![id(key.tenant.as_u128()), id(key.session.as_u128())];
    let contents: HashSet<Digest> = conn
        .prepare("SELECT sha256 FROM artifacts WHERE tenant = ?1 AND session = ?2")?
        .query_map(mine, |row| digest_at(row, 0))?
        .collect::<rusqlite::Result<_>>()?;
    runs::erase(conn, key)?;
    for statement in [
        // Its tags are found by when it was made, which its facts say: they go first.
        "DELETE FROM session_tags WHERE (tenant, tag, created_at, session) IN (\
         SELECT f.tenant, t.value, f.created_at, f.session FROM session_facts f \
         JOIN sessions s ON s.tenant = f.tenant AND s.session = f.session JOIN json_each(s.tags) t \
         WHERE f.tenant = ?1 AND f.session = ?2)",
        "DELETE FROM session_facts WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM unknown_outcomes WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM sessions WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM intents WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM asks WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM queued_wakes WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM snapshots WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM locks WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM artifacts WHERE tenant = ?1 AND session = ?2",
    ] {
        conn.execute(statement, mine)?;
    }
    let (first, end) = variable_ids(key.session);
    conn.execute(
        "DELETE FROM records WHERE tenant = ?1 AND kind = ?2 AND id >= ?3 AND id < ?4",
        params![id(key.tenant.as_u128()), VARIABLE, first, end],
    )?;
    search::forget_log(conn, key)?;
    let kept = plain_contents(conn, key.tenant)?;
    for sha256 in contents.difference(&kept) {
        conn.execute(
            "DELETE FROM blobs WHERE tenant = ?1 AND sha256 = ?2 AND NOT EXISTS \
             (SELECT 1 FROM artifacts a WHERE a.tenant = ?1 AND a.sha256 = ?2)",
            params![id(key.tenant.as_u128()), sha256.as_bytes()],
        )?;
    }
    Ok(())
}

/// Contents that are no artifacts: menus and setups.
fn plain_contents(conn: &Connection, tenant: TenantId) -> rusqlite::Result<HashSet<Digest>> {
    let mut found = HashSet::new();
    let mut statement = conn.prepare(
        "SELECT e.type, e.v, e.log, e.run, e.start, e.bytes FROM events e JOIN logs l ON l.log = e.log \
         WHERE l.tenant = ?1 AND e.type IN (?2, ?3, ?4)",
    )?;
    let [menu, created, updated] = CONTENT_KINDS;
    let mut rows = statement.query(params![id(tenant.as_u128()), menu.as_str(), created.as_str(), updated.as_str()])?;
    let mut runs = RunReader::of(conn);
    while let Some(row) = rows.next()? {
        let payload = runs.payload(row, 2)?;
        found.extend(Body::decode(&EventType::recorded(row.get(0)?), row.get(1)?, payload).names().contents);
    }
    Ok(found)
}

/// Changes what is kept of artifacts.
pub(crate) fn retain(
    conn: &Connection,
    tenant: TenantId,
    change: &Retain,
    now: Timestamp,
) -> rusqlite::Result<Vec<ArtifactRow>> {
    let of = id(tenant.as_u128());
    let mut changed: Vec<ArtifactId> = Vec::new();
    match change {
        Retain::Pin { artifact, pinned } => {
            let rows = conn.execute(
                "UPDATE artifacts SET pinned = ?3 \
                 WHERE tenant = ?1 AND artifact_id = ?2 AND pinned <> ?3 AND tombstone IS NULL",
                params![of, id(artifact.as_u128()), pinned],
            )?;
            changed.extend((rows > 0).then_some(*artifact));
        }
        Retain::Bury(artifacts) => {
            for artifact in artifacts {
                let rows = conn
                    .prepare_cached(
                        "UPDATE artifacts SET tombstone = ?3 \
                         WHERE tenant = ?1 AND artifact_id = ?2 AND pinned = 0 AND tombstone IS NULL",
                    )?
                    .execute(params![of, id(artifact.as_u128()), now.as_micros()])?;
                changed.extend((rows > 0).then_some(*artifact));
            }
        }
        Retain::Free { contents, before } => {
            let kept = plain_contents(conn, tenant)?;
            for sha256 in contents.iter().filter(|sha256| !kept.contains(sha256)) {
                changed.extend(free(conn, tenant, *sha256, *before)?);
            }
        }
    }
    changed.sort_unstable();
    let rows = changed.into_iter().map(|artifact| query::artifact(conn, tenant, artifact));
    rows.filter_map(Result::transpose).collect()
}

/// Deletes the bytes of a content that only old tombstones have; their ids.
fn free(conn: &Connection, tenant: TenantId, sha256: Digest, before: Timestamp) -> rusqlite::Result<Vec<ArtifactId>> {
    let of = params![id(tenant.as_u128()), sha256.as_bytes()];
    let rows: Vec<(ArtifactId, Option<i64>)> = conn
        .prepare_cached("SELECT artifact_id, tombstone FROM artifacts WHERE tenant = ?1 AND sha256 = ?2")?
        .query_map(of, |row| Ok((ArtifactId::from_u128(id_at(row, 0)?), row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if rows.iter().any(|(_, tombstone)| tombstone.is_none_or(|at| at >= before.as_micros())) {
        return Ok(Vec::new());
    }
    conn.prepare_cached("UPDATE artifacts SET freed = 1 WHERE tenant = ?1 AND sha256 = ?2")?.execute(of)?;
    conn.prepare_cached("DELETE FROM blobs WHERE tenant = ?1 AND sha256 = ?2")?.execute(of)?;
    Ok(rows.into_iter().map(|(artifact, _)| artifact).collect())
}
