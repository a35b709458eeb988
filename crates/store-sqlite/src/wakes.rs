//! Rows of `queued_wakes`: what the shared plan computed (S15), and what readers ask for.

use portcullis_base::{QueuedWakeId, Timestamp};
use portcullis_event::facts::{Priority, WakeQueued, WakeState};
use portcullis_store::{SessionKey, WakeRow};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::codec::{id, id_at, time_at, word, word_at};

/// A new wake, or an earlier due time of the pending one with its key.
pub(crate) fn queue(
    conn: &Connection,
    key: SessionKey,
    wake: &WakeQueued,
    at: Timestamp,
    seq: u64,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO queued_wakes (tenant, session, queued_wake_id, due_at, reason, note, dedupe_key, priority, state, \
         created_at, updated_seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', ?9, ?10) \
         ON CONFLICT (tenant, session, queued_wake_id) DO NOTHING \
         ON CONFLICT (tenant, session, dedupe_key) WHERE state = 'pending' \
         DO UPDATE SET due_at = min(due_at, excluded.due_at), updated_seq = excluded.updated_seq",
    )?
    .execute(params![
        id(key.tenant.as_u128()),
        id(key.session.as_u128()),
        id(wake.queued_wake_id.as_u128()),
        wake.due_at.as_micros(),
        wake.reason,
        wake.note,
        wake.dedupe_key,
        wake.priority.level(),
        at.as_micros(),
        seq
    ])?;
    Ok(())
}

/// They were taken up or cancelled.
pub(crate) fn settle(
    conn: &Connection,
    key: SessionKey,
    wakes: &[QueuedWakeId],
    state: WakeState,
    seq: u64,
) -> rusqlite::Result<()> {
    let mut update = conn.prepare_cached(
        "UPDATE queued_wakes SET state = ?4, updated_seq = ?5 \
         WHERE tenant = ?1 AND session = ?2 AND queued_wake_id = ?3",
    )?;
    for wake in wakes {
        update.execute(params![
            id(key.tenant.as_u128()),
            id(key.session.as_u128()),
            id(wake.as_u128()),
            word(&state)?,
            seq
        ])?;
    }
    Ok(())
}

/// Where one wake stands.
pub(crate) fn state(conn: &Connection, key: SessionKey, wake: QueuedWakeId) -> rusqlite::Result<Option<WakeState>> {
    conn.prepare_cached("SELECT state FROM queued_wakes WHERE tenant = ?1 AND session = ?2 AND queued_wake_id = ?3")?
        .query_row(params![id(key.tenant.as_u128()), id(key.session.as_u128()), id(wake.as_u128())], |row| {
            word_at(row, 0)
        })
        .optional()
}

/// Wakes of a session, the earliest due first.
pub(crate) fn of(conn: &Connection, key: SessionKey, pending: bool) -> rusqlite::Result<Vec<WakeRow>> {
    // The pending ones have an index of their own, so this condition must stand in the statement.
    let pending = if pending { "AND state = 'pending'" } else { "" };
    let sql = format!(
        "SELECT queued_wake_id, due_at, reason, note, dedupe_key, priority, state, created_at, updated_seq \
         FROM queued_wakes WHERE tenant = ?1 AND session = ?2 {pending} ORDER BY due_at, queued_wake_id"
    );
    conn.prepare_cached(&sql)?
        .query_map(params![id(key.tenant.as_u128()), id(key.session.as_u128())], |row| {
            Ok(WakeRow {
                session_id: key.session,
                wake: WakeQueued {
                    queued_wake_id: QueuedWakeId::from_u128(id_at(row, 0)?),
                    due_at: time_at(row, 1)?,
                    reason: row.get(2)?,
                    note: row.get(3)?,
                    dedupe_key: row.get(4)?,
                    priority: Priority::of_level(row.get(5)?),
                },
                state: word_at(row, 6)?,
                created_at: time_at(row, 7)?,
                updated_seq: row.get(8)?,
            })
        })?
        .collect()
}
