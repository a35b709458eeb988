//! Where a log ends, and whether everything that was recorded of that end agrees with it.
//!
//! Looked at before anything is written to a log: whoever writes past a disagreement repeats what the missing events did.

use portcullis_base::Digest;
use portcullis_store::{Head, SessionKey, StoreError, Witness};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::codec::digest_at;
use crate::error::Fail;
use crate::op::Tx;
use crate::runs::log_of;

/// The last event of a log.
pub(crate) fn last(conn: &Connection, log: i64) -> rusqlite::Result<Option<(u64, Digest)>> {
    conn.prepare_cached("SELECT seq, hash FROM events WHERE log = ?1 ORDER BY seq DESC LIMIT 1")?
        .query_row(params![log], |row| Ok((row.get(0)?, digest_at(row, 1)?)))
        .optional()
}

fn hash_at(conn: &Connection, log: i64, seq: u64) -> rusqlite::Result<Option<Digest>> {
    conn.prepare_cached("SELECT hash FROM events WHERE log = ?1 AND seq = ?2")?
        .query_row(params![log, seq], |row| digest_at(row, 0))
        .optional()
}

/// Whether a log holds an event; else where it ends.
pub(crate) fn holds(conn: &Connection, key: SessionKey, seq: u64, hash: Digest) -> rusqlite::Result<Result<(), u64>> {
    let Some(log) = log_of(conn, key)? else { return Ok(Err(0)) };
    if hash_at(conn, log, seq)? == Some(hash) {
        return Ok(Ok(()));
    }
    // An event with another hash: the log was written anew from there or before.
    let end = last(conn, log)?.map_or(0, |(end, _)| end);
    Ok(Err(end.min(seq)))
}

/// Refuses a log whose end is not where its head, its newest checkpoint and the mark say.
pub(crate) fn check(tx: &Tx<'_>, key: SessionKey, head: Option<&Head>) -> Result<(), Fail> {
    let damaged = |witness, recorded, found| {
        Err(Fail::Refused(StoreError::Damaged { session: key.session, witness, recorded, found }))
    };
    let end = match log_of(tx.conn, key)? {
        Some(log) => last(tx.conn, log)?,
        None => None,
    };
    let (seq, hash) = end.unwrap_or((0, Digest::from_bytes([0; 32])));
    match head {
        // A head without events is that of a log that begins now.
        Some(head) if (head.last_seq, seq) == (0, 0) => {}
        Some(head) if (head.last_seq, head.last_hash) != (seq, hash) => {
            return damaged(Witness::Head, head.last_seq, seq);
        }
        Some(head) if head.checkpoint_seq > seq => return damaged(Witness::Checkpoint, head.checkpoint_seq, seq),
        None if seq > 0 => return damaged(Witness::Head, 0, seq),
        _ => {}
    }
    match tx.env.mark.of(key) {
        Some(newest) if (newest.seq, newest.hash) != (seq, hash) => {
            match holds(tx.conn, key, newest.seq, newest.hash)? {
                Ok(()) => Ok(()),
                Err(found) => damaged(Witness::Mark, newest.seq, found),
            }
        }
        _ => Ok(()),
    }
}
