//! The index of words: taking events in, in small batches and never with an append, and asking it where to look.

use portcullis_base::{SessionId, TenantId, Timestamp};
use portcullis_event::{Event, ledger_of, operator_log_of};
use portcullis_store::{Hit, Query, SessionKey, searchable};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::codec::{id, id_at};
use crate::{query, runs};

/// Bits of a `doc` that tell events of one millisecond apart.
const TIE_BITS: u32 = 21;
/// The milliseconds that fit before them: until the year 2109.
const LAST_MILLI: i64 = (1 << 42) - 1;
/// Bytes of payloads after which a batch is full: what one batch holds in memory, but for the event that fills it.
const BATCH_BYTES: usize = 1 << 20;
/// Events of one batch of an idle store: an append that comes meanwhile waits for no more than this.
const IDLE_BATCH: usize = 256;

/// A log of which not everything was taken in.
struct LaggingLog {
    key: SessionKey,
    seq: u64,
}

/// Logs with events after their cursor. The reserved ones are no sessions and are not searched.
fn behind(conn: &Connection, tenant: TenantId, limit: usize) -> rusqlite::Result<Vec<LaggingLog>> {
    conn.prepare_cached(
        "SELECT h.session, coalesce(l.seq, 0) FROM session_heads h \
         LEFT JOIN search_logs l ON l.tenant = h.tenant AND l.session = h.session \
         WHERE h.tenant = ?1 AND h.last_seq > coalesce(l.seq, 0) AND h.session NOT IN (?2, ?3) LIMIT ?4",
    )?
    .query_map(
        params![
            id(tenant.as_u128()),
            id(ledger_of(tenant).as_u128()),
            id(operator_log_of(tenant).as_u128()),
            query::bounded(limit)
        ],
        |row| {
            let session = SessionId::from_u128(id_at(row, 0)?);
            Ok(LaggingLog { key: SessionKey { tenant, session }, seq: row.get(1)? })
        },
    )?
    .collect()
}

/// How many events of a tenant wait to be taken in.
pub(crate) fn lag(conn: &Connection, tenant: TenantId) -> rusqlite::Result<u64> {
    conn.prepare_cached(
        "SELECT coalesce(sum(h.last_seq - coalesce(l.seq, 0)), 0) FROM session_heads h \
         LEFT JOIN search_logs l ON l.tenant = h.tenant AND l.session = h.session \
         WHERE h.tenant = ?1 AND h.session NOT IN (?2, ?3)",
    )?
    .query_row(
        params![id(tenant.as_u128()), id(ledger_of(tenant).as_u128()), id(operator_log_of(tenant).as_u128())],
        |row| row.get(0),
    )
}

/// Takes in up to `limit` events of a tenant, inside a transaction. Fewer may be taken although more are left; none
/// only if none is left.
pub(crate) fn catch_up(conn: &Connection, tenant: TenantId, limit: usize) -> rusqlite::Result<u64> {
    let mut batch: Vec<(i64, Event)> = Vec::new();
    let mut bytes = 0;
    for LaggingLog { key, mut seq } in behind(conn, tenant, limit)? {
        let log = log_of(conn, key)?;
        runs::events_while(conn, key, (seq, limit - batch.len()), |event| {
            seq = event.seq;
            bytes += event.payload.as_deref().map_or(0, str::len);
            batch.push((log, event));
            bytes < BATCH_BYTES
        })?;
        conn.prepare_cached("UPDATE search_logs SET seq = ?2 WHERE log = ?1")?.execute(params![log, seq])?;
        if batch.len() >= limit || bytes >= BATCH_BYTES {
            break;
        }
    }
    // Ascending documents make one run of the index; out of order each step back would begin another.
    batch.sort_by_key(|(log, event)| (milli(event.at), *log, event.seq));
    for (log, event) in &batch {
        if let Some(payload) = &event.payload {
            insert(conn, *log, event, &searchable(payload))?;
        }
    }
    Ok(batch.len() as u64)
}

/// A batch of an idle store, of whichever tenant is behind. `false` = there is nothing to do, or someone else writes.
pub(crate) fn idle_catch_up(conn: &Connection) -> rusqlite::Result<bool> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let taken = (|| {
        let tenants: Vec<TenantId> = conn
            .prepare_cached("SELECT DISTINCT tenant FROM session_heads")?
            .query_map([], |row| id_at(row, 0).map(TenantId::from_u128))?
            .collect::<rusqlite::Result<_>>()?;
        for tenant in tenants {
            let taken = catch_up(conn, tenant, IDLE_BATCH)?;
            if taken > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    })();
    let ended = match taken {
        Ok(true) => conn.execute_batch("COMMIT").map(|()| true),
        other => other,
    };
    if !conn.is_autocommit() {
        conn.execute_batch("ROLLBACK")?;
    }
    ended
}

fn log_of(conn: &Connection, key: SessionKey) -> rusqlite::Result<i64> {
    let (tenant, session) = (id(key.tenant.as_u128()), id(key.session.as_u128()));
    let known = conn
        .prepare_cached("SELECT log FROM search_logs WHERE tenant = ?1 AND session = ?2")?
        .query_row(params![tenant, session], |row| row.get(0))
        .optional()?;
    if let Some(log) = known {
        return Ok(log);
    }
    conn.prepare_cached("INSERT INTO search_logs (tenant, session, seq) VALUES (?1, ?2, 0)")?
        .execute(params![tenant, session])?;
    Ok(conn.last_insert_rowid())
}

fn milli(at: Timestamp) -> i64 {
    (at.as_micros() / 1_000).clamp(0, LAST_MILLI)
}

fn insert(conn: &Connection, log: i64, event: &Event, text: &str) -> rusqlite::Result<()> {
    let doc = free_doc(conn, milli(event.at))?;
    conn.prepare_cached("INSERT INTO search_docs (doc, log, seq) VALUES (?1, ?2, ?3)")?
        .execute(params![doc, log, event.seq])?;
    conn.prepare_cached("INSERT INTO search_index (rowid, text) VALUES (?1, ?2)")?.execute(params![doc, text])?;
    Ok(())
}

/// The next number of a millisecond, or of the next one that has room.
fn free_doc(conn: &Connection, milli: i64) -> rusqlite::Result<i64> {
    let mut first = milli << TIE_BITS;
    loop {
        let last = first | ((1 << TIE_BITS) - 1);
        let top: Option<i64> = conn
            .prepare_cached("SELECT max(doc) FROM search_docs WHERE doc BETWEEN ?1 AND ?2")?
            .query_row(params![first, last], |row| row.get(0))?;
        match top {
            None => return Ok(first),
            Some(top) if top < last => return Ok(top + 1),
            Some(_) => first = last + 1,
        }
    }
}

/// The hits of a search, and documents whose event was erased since they were indexed.
pub(crate) struct SearchResult {
    pub(crate) hits: Vec<Hit>,
    pub(crate) erased: Vec<i64>,
}

/// Asks the index where to look, and the events themselves whether they match.
pub(crate) fn search(
    conn: &Connection,
    tenant: TenantId,
    query: &Query,
    limit: usize,
) -> rusqlite::Result<SearchResult> {
    let mut found = SearchResult { hits: Vec::new(), erased: Vec::new() };
    // A phrase holds letters, digits and spaces: in quotes there is nothing in it that FTS5 would read as syntax.
    let words: Vec<String> = query.phrases().iter().map(|phrase| format!("\"{phrase}\"")).collect();
    let mut docs =
        conn.prepare_cached("SELECT rowid FROM search_index WHERE search_index MATCH ?1 ORDER BY rowid DESC")?;
    let mut rows = docs.query(params![words.join(" AND ")])?;
    while found.hits.len() < limit {
        let Some(row) = rows.next()? else { break };
        let doc: i64 = row.get(0)?;
        let Some((key, seq)) = place_of(conn, doc)? else { continue };
        if key.tenant != tenant {
            continue;
        }
        let Some(event) = query::events(conn, key, seq - 1, 1)?.pop().filter(|event| event.seq == seq) else {
            continue;
        };
        match query.hit(key.session, &event) {
            Some(hit) => found.hits.push(hit),
            None if event.payload.is_none() => found.erased.push(doc),
            None => {}
        }
    }
    Ok(found)
}

fn place_of(conn: &Connection, doc: i64) -> rusqlite::Result<Option<(SessionKey, u64)>> {
    conn.prepare_cached(
        "SELECT l.tenant, l.session, d.seq FROM search_docs d JOIN search_logs l ON l.log = d.log WHERE d.doc = ?1",
    )?
    .query_row(params![doc], |row| {
        let key =
            SessionKey { tenant: TenantId::from_u128(id_at(row, 0)?), session: SessionId::from_u128(id_at(row, 1)?) };
        Ok((key, row.get(2)?))
    })
    .optional()
}

/// Takes a whole log out of the index, and out of the work that waits.
pub(crate) fn forget_log(conn: &Connection, key: SessionKey) -> rusqlite::Result<()> {
    let docs: Vec<i64> = conn
        .prepare(
            "SELECT d.doc FROM search_docs d JOIN search_logs l ON l.log = d.log WHERE l.tenant = ?1 AND l.session = ?2",
        )?
        .query_map(params![id(key.tenant.as_u128()), id(key.session.as_u128())], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    forget(conn, &docs)?;
    if !docs.is_empty() {
        // A deleted word stays in its segment until segments are merged.
        conn.execute("INSERT INTO search_index (search_index) VALUES ('optimize')", [])?;
    }
    Ok(())
}

/// Takes documents out of the index; their words are gone with them.
pub(crate) fn forget(conn: &Connection, docs: &[i64]) -> rusqlite::Result<()> {
    for doc in docs {
        conn.prepare_cached("DELETE FROM search_index WHERE rowid = ?1")?.execute(params![doc])?;
        conn.prepare_cached("DELETE FROM search_docs WHERE doc = ?1")?.execute(params![doc])?;
    }
    Ok(())
}
