//! The head row: read inside the writer's transaction and by readers, with the same statement.

use portcullis_event::SessionStatus;
use portcullis_event::facts::Priority;
use portcullis_store::{Head, NextWake, SessionKey};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::codec::{digest_at, id, json, opt_json_at, opt_time_at, time_at, word, word_at};

/// Columns of [`head_at`] where the table is joined as `h`.
pub(crate) const COLUMNS: &str = "h.last_seq, h.last_hash, h.fence, h.lease_owner, h.lease_until, h.work_due_at, \
                                  h.wake_due_at, h.wake_priority, h.next_due_at, h.priority, h.status, h.blocked_n, \
                                  h.failure_streak, h.checkpoint_seq, h.updated_at";

/// Reads a head from [`COLUMNS`] that begin at `at`.
pub(crate) fn head_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Head> {
    let wake_due_at = opt_time_at(row, at + 6)?;
    let wake_priority: Option<u64> = row.get(at + 7)?;
    if wake_due_at.is_some() != wake_priority.is_some() {
        // Both are written together.
        return Err(rusqlite::Error::InvalidColumnType(at + 7, "wake_priority".to_owned(), Type::Null));
    }
    Ok(Head {
        last_seq: row.get(at)?,
        last_hash: digest_at(row, at + 1)?,
        fence: row.get(at + 2)?,
        lease_owner: opt_json_at(row, at + 3)?,
        lease_until: opt_time_at(row, at + 4)?,
        work_due_at: opt_time_at(row, at + 5)?,
        wake: wake_due_at
            .zip(wake_priority)
            .map(|(due_at, level)| NextWake { due_at, priority: Priority::of_level(level) }),
        next_due_at: opt_time_at(row, at + 8)?,
        priority: Priority::of_level(row.get(at + 9)?),
        status: word_at(row, at + 10)?,
        blocked_n: row.get(at + 11)?,
        failure_streak: row.get(at + 12)?,
        checkpoint_seq: row.get(at + 13)?,
        updated_at: time_at(row, at + 14)?,
    })
}

/// The head of a log, `None` if there is no such log.
pub(crate) fn read(conn: &Connection, key: SessionKey) -> rusqlite::Result<Option<Head>> {
    conn.prepare_cached(
        "SELECT last_seq, last_hash, fence, lease_owner, lease_until, work_due_at, wake_due_at, wake_priority, \
         next_due_at, priority, status, blocked_n, failure_streak, checkpoint_seq, updated_at \
         FROM session_heads WHERE tenant = ?1 AND session = ?2",
    )?
    .query_row(params![id(key.tenant.as_u128()), id(key.session.as_u128())], |row| head_at(row, 0))
    .optional()
}

/// Writes a head, new or changed. The caller holds the write lock since it read the old one.
pub(crate) fn write(conn: &Connection, key: SessionKey, head: &Head) -> rusqlite::Result<()> {
    let owner = head.lease_owner.as_ref().map(json).transpose()?;
    conn.prepare_cached(
        "INSERT INTO session_heads (tenant, session, last_seq, last_hash, fence, lease_owner, lease_until, \
         work_due_at, wake_due_at, wake_priority, next_due_at, priority, status, blocked_n, failure_streak, \
         checkpoint_seq, updated_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) \
         ON CONFLICT (tenant, session) DO UPDATE SET last_seq = ?3, last_hash = ?4, fence = ?5, \
         lease_owner = ?6, lease_until = ?7, work_due_at = ?8, wake_due_at = ?9, wake_priority = ?10, \
         next_due_at = ?11, priority = ?12, status = ?13, blocked_n = ?14, failure_streak = ?15, \
         checkpoint_seq = ?16, updated_at = ?17",
    )?
    .execute(params![
        id(key.tenant.as_u128()),
        id(key.session.as_u128()),
        head.last_seq,
        head.last_hash.as_bytes(),
        head.fence,
        owner,
        head.lease_until.map(|at| at.as_micros()),
        head.work_due_at.map(|at| at.as_micros()),
        head.wake.map(|wake| wake.due_at.as_micros()),
        head.wake.map(|wake| wake.priority.level()),
        head.next_due_at.map(|at| at.as_micros()),
        head.priority.level(),
        status(head.status),
        head.blocked_n,
        head.failure_streak,
        head.checkpoint_seq,
        head.updated_at.as_micros(),
    ])?;
    Ok(())
}

/// Writes the head after an append. Most appends change nothing that the indexes of the queue hold, and naming those
/// columns would write their pages anew.
pub(crate) fn append(conn: &Connection, key: SessionKey, before: Option<&Head>, head: &Head) -> rusqlite::Result<()> {
    let in_line = |head: &Head| (head.work_due_at, head.wake, head.next_due_at, head.priority);
    if before.is_none_or(|before| in_line(before) != in_line(head)) {
        return write(conn, key, head);
    }
    conn.prepare_cached(
        "UPDATE session_heads SET last_seq = ?3, last_hash = ?4, status = ?5, blocked_n = ?6, failure_streak = ?7, \
         checkpoint_seq = ?8, updated_at = ?9 WHERE tenant = ?1 AND session = ?2",
    )?
    .execute(params![
        id(key.tenant.as_u128()),
        id(key.session.as_u128()),
        head.last_seq,
        head.last_hash.as_bytes(),
        status(head.status),
        head.blocked_n,
        head.failure_streak,
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
