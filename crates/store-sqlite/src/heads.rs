//! The head row: read inside the writer's transaction and by readers, with the same statement.

use portcullis_base::Timestamp;
use portcullis_event::SessionStatus;
use portcullis_event::facts::Priority;
use portcullis_store::{Head, HeadColumns, HeadUpdate, NextWake, SessionKey};
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

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

/// A column of the head row and its value.
type Column = (&'static str, Value);

/// Columns that are written together, with what a head has in them.
fn columns(of: HeadColumns, head: &Head) -> rusqlite::Result<Vec<Column>> {
    let time = |at: Option<Timestamp>| at.map(|at| at.as_micros()).into();
    Ok(match of {
        HeadColumns::Log => vec![
            ("last_seq", count(head.last_seq)?),
            ("last_hash", head.last_hash.as_bytes().to_vec().into()),
            ("status", status(head.status).into()),
            ("blocked_n", count(head.blocked_n)?),
            ("failure_streak", head.failure_streak.into()),
            ("checkpoint_seq", count(head.checkpoint_seq)?),
            ("updated_at", head.updated_at.as_micros().into()),
        ],
        HeadColumns::Holder => {
            let owner = head.lease_owner.as_ref().map(json).transpose()?;
            vec![("fence", count(head.fence)?), ("lease_owner", owner.into())]
        }
        HeadColumns::Until => vec![("lease_until", time(head.lease_until))],
        HeadColumns::Line => vec![
            ("work_due_at", time(head.work_due_at)),
            ("wake_due_at", time(head.wake.map(|wake| wake.due_at))),
            ("wake_priority", head.wake.map(|wake| wake.priority.level()).into()),
            ("next_due_at", time(head.next_due_at)),
            ("priority", head.priority.level().into()),
        ],
    })
}

fn count(n: u64) -> rusqlite::Result<Value> {
    i64::try_from(n).map(Value::Integer).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn named(
    columns: impl IntoIterator<Item = HeadColumns>,
    key: SessionKey,
    head: &Head,
) -> rusqlite::Result<Vec<Column>> {
    let mut found = vec![
        ("tenant", id(key.tenant.as_u128()).to_vec().into()),
        ("session", id(key.session.as_u128()).to_vec().into()),
    ];
    for group in columns {
        found.extend(self::columns(group, head)?);
    }
    Ok(found)
}

/// Writes the head of a log that begins here.
pub(crate) fn insert(conn: &Connection, key: SessionKey, head: &Head) -> rusqlite::Result<()> {
    let (names, values): (Vec<_>, Vec<_>) = named(HeadColumns::ALL, key, head)?.into_iter().unzip();
    let places = vec!["?"; names.len()].join(", ");
    let sql = format!("INSERT INTO session_heads ({}) VALUES ({places})", names.join(", "));
    conn.prepare_cached(&sql)?.execute(params_from_iter(values)).map(|_| ())
}

/// Changes a head by column. Most appends change nothing that the indexes of the queue hold, and naming those columns
/// would write their pages anew. The caller holds the write lock since it read the row, so the update holds for it.
pub(crate) fn update(conn: &Connection, key: SessionKey, update: &HeadUpdate) -> rusqlite::Result<()> {
    let (names, values): (Vec<_>, Vec<_>) = named(update.sets(), key, &update.after)?.into_iter().unzip();
    let Some(set) = names.get(2..).filter(|set| !set.is_empty()) else { return Ok(()) };
    let set: Vec<String> = set.iter().zip(3..).map(|(name, at)| format!("{name} = ?{at}")).collect();
    let sql = format!("UPDATE session_heads SET {} WHERE tenant = ?1 AND session = ?2", set.join(", "));
    conn.prepare_cached(&sql)?.execute(params_from_iter(values)).map(|_| ())
}

/// The stored word; spelt out because every commit writes it.
pub(crate) fn status(status: SessionStatus) -> String {
    // Invariant: a unit variant always has a word.
    word(&status).unwrap_or_default()
}
