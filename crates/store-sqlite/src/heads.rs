//! The head row: read inside the writer's transaction and by readers, with the same statement.

use portcullis_event::SessionStatus;
use portcullis_store::{Head, SessionKey};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::codec::{digest_at, id, json, opt_json_at, opt_time_at, time_at, word, word_at};

pub(crate) const COLUMNS: &str = "last_seq, last_hash, fence, lease_owner, lease_until, next_due_at, \
                                  status, blocked_n, checkpoint_seq, updated_at";

/// Reads a head from [`COLUMNS`] that begin at `at`.
pub(crate) fn head_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Head> {
    Ok(Head {
        last_seq: row.get(at)?,
        last_hash: digest_at(row, at + 1)?,
        fence: row.get(at + 2)?,
        lease_owner: opt_json_at(row, at + 3)?,
        lease_until: opt_time_at(row, at + 4)?,
        next_due_at: opt_time_at(row, at + 5)?,
        status: word_at(row, at + 6)?,
        blocked_n: row.get(at + 7)?,
        checkpoint_seq: row.get(at + 8)?,
        updated_at: time_at(row, at + 9)?,
    })
}

/// The head of a log, `None` if there is no such log.
pub(crate) fn read(conn: &Connection, key: SessionKey) -> rusqlite::Result<Option<Head>> {
    conn.prepare_cached(
        "SELECT last_seq, last_hash, fence, lease_owner, lease_until, next_due_at, status, \
         blocked_n, checkpoint_seq, updated_at \
         FROM session_heads WHERE tenant = ?1 AND session = ?2",
    )?
    .query_row(params![id(key.tenant.as_u128()), id(key.session.as_u128())], |row| head_at(row, 0))
    .optional()
}

/// Writes a head, new or changed. The caller holds the write lock since it read the old one.
pub(crate) fn write(conn: &Connection, key: SessionKey, head: &Head) -> rusqlite::Result<()> {
    let owner = head.lease_owner.as_ref().map(json).transpose()?;
    conn.prepare_cached(
        "INSERT INTO session_heads (tenant, session, last_seq, last_hash, fence, lease_owner, \
         lease_until, next_due_at, status, blocked_n, checkpoint_seq, updated_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
         ON CONFLICT (tenant, session) DO UPDATE SET last_seq = ?3, last_hash = ?4, fence = ?5, \
         lease_owner = ?6, lease_until = ?7, next_due_at = ?8, status = ?9, blocked_n = ?10, \
         checkpoint_seq = ?11, updated_at = ?12",
    )?
    .execute(params![
        id(key.tenant.as_u128()),
        id(key.session.as_u128()),
        head.last_seq,
        head.last_hash.as_bytes(),
        head.fence,
        owner,
        head.lease_until.map(|at| at.as_micros()),
        head.next_due_at.map(|at| at.as_micros()),
        status(head.status),
        head.blocked_n,
        head.checkpoint_seq,
        head.updated_at.as_micros(),
    ])?;
    Ok(())
}

/// The stored word; spelt out because every commit writes it.
pub(crate) fn status(status: SessionStatus) -> String {
    // Invariant: a unit variant always has a word.
    word(&status).unwrap_or_default()
}
