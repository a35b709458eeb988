//! How events lie in the file. A run is a row of events of one append that share who wrote them, in which wake and turn:
//! what they share stands once, and their payloads stand one after the other, packed when they are long. They say much
//! of the same in the same words, so that together they pack to a fraction of what each would.

use portcullis_base::{AppendId, Digest, EventId, SessionId, TurnId, WakeId, WorkerId};
use portcullis_event::{Actor, DecodedBody, Event, EventType, Payload, first_prev_hash};
use portcullis_store::SessionKey;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::codec::{digest_at, id, id_at, opt_id_at, time_at};

/// Shorter runs stay text that anyone can read with SQLite's own tools: packing would free next to nothing.
const PACKED_FROM: usize = 256;
/// The words that events are made of, which the packer knows beforehand: a run of a call then packs to a third, and several
/// of them fit into a page. What is packed can be read with these very bytes only, so that the file never changes; better
/// words would be another file, with a mark of its own.
const WORDS: &[u8] = include_bytes!("words.txt");
/// Set in the size that stands before a packed run: it was packed with [`WORDS`]. No run is that long.
const WITH_WORDS: u32 = 1 << 31;
/// A run ends with the event that brings it here: more need not be unpacked to read one event.
const RUN_BYTES: usize = 65_536;
/// LZ4 never makes more of a byte; whatever claims to be longer was not packed by us.
const MOST_OF_A_BYTE: usize = 255;
/// Stands where a hash is lost: no event verifies with it.
const LOST: Digest = Digest::from_bytes([0; 32]);

/// The number of a log, `None` if there is no such log.
pub(crate) fn log_of(conn: &Connection, key: SessionKey) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT log FROM logs WHERE tenant = ?1 AND session = ?2")?
        .query_row(params![id(key.tenant.as_u128()), id(key.session.as_u128())], |row| row.get(0))
        .optional()
}

/// Whether the log holds this event.
pub(crate) fn has_event(conn: &Connection, key: SessionKey, event: EventId) -> rusqlite::Result<bool> {
    let Some(log) = log_of(conn, key)? else { return Ok(false) };
    conn.prepare_cached("SELECT 1 FROM events WHERE log = ?1 AND event_id = ?2")?
        .exists(params![log, id(event.as_u128())])
}

/// Writes the events of an append. Gives the number of their last run.
pub(crate) fn insert(conn: &Connection, key: SessionKey, mut events: &[Event]) -> rusqlite::Result<Option<i64>> {
    let log = match log_of(conn, key)? {
        Some(log) => log,
        None => {
            conn.prepare_cached("INSERT INTO logs (tenant, session) VALUES (?1, ?2)")?
                .execute(params![id(key.tenant.as_u128()), id(key.session.as_u128())])?;
            conn.last_insert_rowid()
        }
    };
    let mut last = None;
    while let Some(first) = events.first() {
        let (run, rest) = events.split_at(run_of(first, events));
        last = Some(insert_run(conn, log, first, run)?);
        events = rest;
    }
    Ok(last)
}

/// How many of `events` go into one run with the first.
fn run_of(first: &Event, events: &[Event]) -> usize {
    let shared = |event: &Event| {
        event.append_id == first.append_id
            && event.actor == first.actor
            && event.worker_id == first.worker_id
            && event.fence == first.fence
            && event.wake_id == first.wake_id
            && event.turn_id == first.turn_id
            && event.session_thread_id == first.session_thread_id
            && event.payload.is_some() == first.payload.is_some()
    };
    let mut bytes = 0;
    events
        .iter()
        .take_while(|event| {
            let goes_in = bytes < RUN_BYTES && shared(event);
            bytes += event.payload.as_deref().map_or(0, str::len);
            goes_in
        })
        .count()
}

fn insert_run(conn: &Connection, log: i64, first: &Event, run: &[Event]) -> rusqlite::Result<i64> {
    let payloads: Option<String> = run.iter().map(|event| event.payload.as_deref()).collect();
    conn.prepare_cached(
        "INSERT INTO runs (log, append_id, actor, worker_id, fence, wake_id, turn_id, session_thread_id, payloads) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        log,
        id(first.append_id.as_u128()),
        first.actor.as_str(),
        first.worker_id.map(|w| id(w.as_u128())),
        first.fence,
        first.wake_id.map(|w| id(w.as_u128())),
        first.turn_id.map(|t| id(t.as_u128())),
        first.session_thread_id.map(|s| id(s.as_u128())),
        payloads.as_deref().map(packed),
    ])?;
    let number = conn.last_insert_rowid();
    let mut insert = conn.prepare_cached(
        "INSERT INTO events (log, seq, event_id, type, at, v, run, start, bytes, payload_hash, hash) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let mut start = 0;
    for event in run {
        let bytes = event.payload.as_deref().map_or(0, str::len);
        insert.execute(params![
            log,
            event.seq,
            id(event.id.as_u128()),
            event.kind.as_str(),
            event.at.as_micros(),
            event.v,
            number,
            start,
            bytes,
            event.payload.is_none().then(|| event.payload_hash.as_bytes()),
            event.hash.as_bytes(),
        ])?;
        start += bytes;
    }
    Ok(number)
}

fn packed(text: &str) -> ToSqlOutput<'_> {
    if text.len() >= PACKED_FROM {
        let packed = lz4_flex::block::compress_with_dict(text.as_bytes(), WORDS);
        if let Some(size) = u32::try_from(text.len()).ok().filter(|size| size & WITH_WORDS == 0)
            && packed.len() + size_of::<u32>() < text.len()
        {
            let marked = (size | WITH_WORDS).to_le_bytes();
            return ToSqlOutput::Owned(Value::Blob([&marked, &packed[..]].concat()));
        }
    }
    ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
}

/// What [`packed`] was given; `None` for anything else.
fn unpacked(stored: ValueRef<'_>) -> Option<String> {
    let bytes = match stored {
        ValueRef::Text(text) => text.to_vec(),
        ValueRef::Blob(packed) => {
            let (size, packed) = packed.split_first_chunk()?;
            let size = u32::from_le_bytes(*size);
            // Older programs packed without.
            let words = if size & WITH_WORDS == 0 { &[][..] } else { WORDS };
            let size = usize::try_from(size & !WITH_WORDS).ok()?;
            if size > packed.len().saturating_mul(MOST_OF_A_BYTE) {
                return None;
            }
            let bytes = lz4_flex::block::decompress_with_dict(packed, size, words).ok();
            bytes.filter(|bytes| bytes.len() == size)?
        }
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => return None,
    };
    String::from_utf8(bytes).ok()
}

/// A run as it is read.
struct Run {
    log: i64,
    number: i64,
    append_id: AppendId,
    actor: Actor,
    worker_id: Option<WorkerId>,
    fence: Option<u64>,
    wake_id: Option<WakeId>,
    turn_id: Option<TurnId>,
    session_thread_id: Option<SessionId>,
    /// `None` when they were erased. What cannot be unpacked is empty: it fails verification instead of passing for
    /// erased.
    payloads: Option<String>,
}

impl Run {
    /// A run of this log; that another log has is none of its own.
    fn read(conn: &Connection, log: i64, number: i64) -> rusqlite::Result<Self> {
        let found = conn
            .prepare_cached(
                "SELECT append_id, actor, worker_id, fence, wake_id, turn_id, session_thread_id, payloads \
                 FROM runs WHERE run = ?1 AND log = ?2",
            )?
            .query_row(params![number, log], |row| {
                Ok(Self {
                    log,
                    number,
                    append_id: AppendId::from_u128(id_at(row, 0)?),
                    actor: Actor::recorded(row.get(1)?),
                    worker_id: opt_id_at(row, 2)?.map(WorkerId::from_u128),
                    fence: row.get(3)?,
                    wake_id: opt_id_at(row, 4)?.map(WakeId::from_u128),
                    turn_id: opt_id_at(row, 5)?.map(TurnId::from_u128),
                    session_thread_id: opt_id_at(row, 6)?.map(SessionId::from_u128),
                    payloads: match row.get_ref(7)? {
                        ValueRef::Null => None,
                        stored => Some(unpacked(stored).unwrap_or_default()),
                    },
                })
            })
            .optional()?;
        Ok(found.unwrap_or_else(|| Self::lost(log, number)))
    }

    /// A run whose row is gone: its events are still there to be named by a verification.
    fn lost(log: i64, number: i64) -> Self {
        Self {
            log,
            number,
            append_id: AppendId::from_u128(0),
            actor: Actor::recorded(String::new()),
            worker_id: None,
            fence: None,
            wake_id: None,
            turn_id: None,
            session_thread_id: None,
            payloads: Some(String::new()),
        }
    }

    fn payload(&self, start: usize, bytes: usize) -> Option<&str> {
        let end = start.saturating_add(bytes);
        self.payloads.as_deref().map(|all| all.get(start..end).unwrap_or_default())
    }
}

/// Reads runs, each once for all its events that follow one another.
pub(crate) struct RunReader<'c> {
    conn: &'c Connection,
    last: Option<Run>,
}

impl<'c> RunReader<'c> {
    pub(crate) fn of(conn: &'c Connection) -> Self {
        Self { conn, last: None }
    }

    fn run(&mut self, log: i64, number: i64) -> rusqlite::Result<&Run> {
        let run = match self.last.take() {
            Some(last) if (last.log, last.number) == (log, number) => last,
            _ => Run::read(self.conn, log, number)?,
        };
        Ok(self.last.insert(run))
    }

    /// The payload that a row of `events` names by `log`, `run`, `start` and `bytes`, its columns from `at` on.
    pub(crate) fn payload(&mut self, row: &Row<'_>, at: usize) -> rusqlite::Result<Option<&str>> {
        Ok(self.run(row.get(at)?, row.get(at + 1)?)?.payload(row.get(at + 2)?, row.get(at + 3)?))
    }
}

/// Events after a seq, one by one, and no further than `take` wants: the rest is not read.
pub(crate) fn events_while(
    conn: &Connection,
    key: SessionKey,
    (after, limit): (u64, usize),
    mut take: impl FnMut(Event) -> bool,
) -> rusqlite::Result<()> {
    let Some(log) = log_of(conn, key)? else { return Ok(()) };
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut prev_hash = match after {
        0 => first_prev_hash(key.session),
        _ => conn
            .prepare_cached("SELECT hash FROM events WHERE log = ?1 AND seq = ?2")?
            .query_row(params![log, after], |row| digest_at(row, 0))
            .optional()?
            .unwrap_or(LOST),
    };
    let mut found = conn.prepare_cached(
        "SELECT seq, event_id, type, at, v, payload_hash, hash, run, start, bytes FROM events \
         WHERE log = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let mut rows = found.query(params![log, after, crate::query::bounded(limit)])?;
    let mut runs = RunReader::of(conn);
    while let Some(row) = rows.next()? {
        let event = event(row, runs.run(log, row.get(7)?)?, prev_hash)?;
        prev_hash = event.hash;
        if !take(event) {
            break;
        }
    }
    Ok(())
}

fn event(row: &Row<'_>, run: &Run, prev_hash: Digest) -> rusqlite::Result<Event> {
    let payload = run.payload(row.get(8)?, row.get(9)?);
    let kept: Option<[u8; 32]> = row.get(5)?;
    Ok(Event {
        seq: row.get(0)?,
        id: EventId::from_u128(id_at(row, 1)?),
        kind: EventType::recorded(row.get(2)?),
        at: time_at(row, 3)?,
        actor: run.actor.clone(),
        worker_id: run.worker_id,
        fence: run.fence,
        wake_id: run.wake_id,
        turn_id: run.turn_id,
        session_thread_id: run.session_thread_id,
        append_id: run.append_id,
        v: row.get(4)?,
        payload: payload.map(Payload::from),
        // It is kept for what was erased. One that stands beside a payload was put there: verification then compares both.
        payload_hash: match (kept, payload) {
            (Some(kept), _) => Digest::from_bytes(kept),
            (None, Some(text)) => Digest::of(text.as_bytes()),
            (None, None) => LOST,
        },
        prev_hash,
        hash: digest_at(row, 6)?,
        typed: DecodedBody::default(),
    })
}

/// Erases the payloads of a log; what they hash to stays, so that the chain still verifies.
pub(crate) fn erase(conn: &Connection, key: SessionKey) -> rusqlite::Result<()> {
    let Some(log) = log_of(conn, key)? else { return Ok(()) };
    let mut hashes: Vec<(u64, Digest)> = Vec::new();
    events_while(conn, key, (0, usize::MAX), |event| {
        if event.payload.is_some() {
            hashes.push((event.seq, event.payload_hash));
        }
        true
    })?;
    let mut keep =
        conn.prepare("UPDATE events SET payload_hash = ?3, start = 0, bytes = 0 WHERE log = ?1 AND seq = ?2")?;
    for (seq, hash) in hashes {
        keep.execute(params![log, seq, hash.as_bytes()])?;
    }
    conn.execute(
        "UPDATE runs SET payloads = NULL WHERE log = ?1 AND run IN (SELECT run FROM events WHERE log = ?1)",
        params![log],
    )?;
    Ok(())
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
