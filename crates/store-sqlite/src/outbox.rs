//! The outbox: what waits inside the store, and what others are to be told when it is due.

use std::time::Duration;

use portcullis_base::{OutboxId, TenantId, Timestamp};
use portcullis_store::{ClaimedEntry, OutboxEntry};
use rusqlite::{Connection, Row, params};

use crate::codec::{id, id_at, json, json_at, time_at};
use crate::query::bounded;

/// Writes an entry. One with its id is replaced: it is the same.
pub(crate) fn put(conn: &Connection, entry: &OutboxEntry) -> rusqlite::Result<()> {
    // Only what leaves the store has a time at which it is due.
    let next_at = entry.leaves_the_store().then(|| entry.due_at().as_micros());
    conn.prepare_cached(
        "INSERT OR REPLACE INTO outbox (outbox_id, tenant, at, work, next_at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        id(entry.id.as_u128()),
        id(entry.tenant.as_u128()),
        entry.at.as_micros(),
        json(&entry.work)?,
        next_at
    ])?;
    Ok(())
}

fn entry_at(row: &Row<'_>) -> rusqlite::Result<OutboxEntry> {
    Ok(OutboxEntry {
        id: OutboxId::from_u128(id_at(row, 0)?),
        tenant: TenantId::from_u128(id_at(row, 1)?),
        at: time_at(row, 2)?,
        work: json_at(row, 3)?,
    })
}

/// Entries that wait to be delivered inside the store, oldest first.
pub(crate) fn inside(conn: &Connection, limit: usize) -> rusqlite::Result<Vec<OutboxEntry>> {
    conn.prepare_cached(
        "SELECT outbox_id, tenant, at, work FROM outbox INDEXED BY outbox_inside WHERE next_at IS NULL \
         ORDER BY outbox_id LIMIT ?1",
    )?
    .query_map(params![bounded(limit)], entry_at)?
    .collect()
}

/// Takes entries that leave the store and are due.
pub(crate) fn claim(
    conn: &Connection,
    limit: usize,
    (now, ttl): (Timestamp, Duration),
) -> rusqlite::Result<Vec<ClaimedEntry>> {
    let mut claimed: Vec<ClaimedEntry> = conn
        .prepare_cached(
            "SELECT outbox_id, tenant, at, work, attempts FROM outbox INDEXED BY outbox_due \
             WHERE next_at IS NOT NULL AND next_at <= ?1 ORDER BY next_at, outbox_id LIMIT ?2",
        )?
        .query_map(params![now.as_micros(), bounded(limit)], |row| {
            Ok(ClaimedEntry { entry: entry_at(row)?, attempt: row.get(4)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut take = conn.prepare_cached("UPDATE outbox SET attempts = ?2, next_at = ?3 WHERE outbox_id = ?1")?;
    for one in &mut claimed {
        one.attempt += 1;
        // Nobody else takes it before then.
        take.execute(params![id(one.entry.id.as_u128()), one.attempt, now.plus(ttl).as_micros()])?;
    }
    Ok(claimed)
}

/// A try failed; `false` if the entry is not that try's any more.
pub(crate) fn failed(conn: &Connection, entry: OutboxId, attempt: u32, next_at: Timestamp) -> rusqlite::Result<bool> {
    let changed = conn
        .prepare_cached(
            "UPDATE outbox SET next_at = ?3 WHERE outbox_id = ?1 AND attempts = ?2 AND next_at IS NOT NULL",
        )?
        .execute(params![id(entry.as_u128()), attempt, next_at.as_micros()])?;
    Ok(changed > 0)
}

/// Removes delivered entries.
pub(crate) fn done(conn: &Connection, ids: &[OutboxId]) -> rusqlite::Result<()> {
    let mut delete = conn.prepare_cached("DELETE FROM outbox WHERE outbox_id = ?1")?;
    for entry in ids {
        delete.execute(params![id(entry.as_u128())])?;
    }
    Ok(())
}
