//! Delivering the outbox: at least once, taking effect once (each entry names its dedupe key).

use std::collections::{HashMap, HashSet};

use portcullis_base::limits::{APPEND_BYTES, APPEND_EVENTS};
use portcullis_base::{AppendId, Digest, EventId, OutboxId, SessionId, Timestamp};
use portcullis_event::{Actor, DecodedBody, Draft, EventType};

use crate::{Commit, OutboxEntry, OutboxEvent, OutboxKind, SessionKey, Store, StoreError};

/// How many entries one round takes; a bound on memory, not on work.
const ROUND: usize = 256;

/// Delivers everything that waits inside the store and returns how many entries took effect now. Entries for one log that
/// follow one another go into one append. An entry that its log refuses holds up what comes after it for the same log, and
/// nothing else.
///
/// # Errors
/// If the store fails, or, when everything else is delivered, if an entry was refused; what was not delivered stays in the
/// outbox.
pub async fn deliver_outbox(store: &dyn Store) -> Result<usize, StoreError> {
    let mut round = Round { store, delivered: 0, refused: None, stuck: HashSet::new(), held_up: HashSet::new() };
    loop {
        // Those that are stuck stand before the rest, and come again.
        let mut entries = store.outbox(ROUND + round.stuck.len()).await?;
        entries.retain(|entry| !round.stuck.contains(&entry.id));
        if entries.is_empty() {
            return round.refused.map_or(Ok(round.delivered), Err);
        }
        let mut done: Vec<OutboxId> = Vec::with_capacity(entries.len());
        for batch in batches(entries) {
            if let Err(error) = round.deliver(batch, &mut done).await {
                // What was delivered stays so: it is no use to deliver it again.
                let _ = store.outbox_done(done).await;
                return Err(error);
            }
        }
        if !done.is_empty() {
            store.outbox_done(done).await?;
        }
    }
}

/// One look through the outbox.
struct Round<'s> {
    store: &'s dyn Store,
    delivered: usize,
    refused: Option<StoreError>,
    stuck: HashSet<OutboxId>,
    held_up: HashSet<SessionKey>,
}

impl Round<'_> {
    /// Delivers entries of one log; those that need not come again are `done`. An error is one of the store.
    async fn deliver(&mut self, batch: LogBatch, done: &mut Vec<OutboxId>) -> Result<(), StoreError> {
        if self.held_up.contains(&batch.log) {
            self.stuck.extend(batch.entries.iter().map(|entry| entry.id));
            return Ok(());
        }
        let ids = batch.entries.iter().map(|entry| entry.id);
        match self.store.commit(batch.commit()).await {
            Ok(committed) => {
                let events = committed.events.iter().map(|event| event.id).collect();
                self.delivered += batch.entries.iter().filter(|entry| took_effect(entry, &events)).count();
                done.extend(ids);
            }
            Err(error) if is_of_the_store(&error) => return Err(error),
            // Which of them it is that the log refuses shows when each comes alone.
            Err(_) if batch.entries.len() > 1 => {
                let log = batch.log;
                for entry in batch.entries {
                    Box::pin(self.deliver(LogBatch { log, entries: vec![entry] }, done)).await?;
                }
            }
            // A copy for a root that is not there any more is for nobody, and must not hold up what comes after it.
            Err(StoreError::NoSession(_)) if batch.entries.iter().all(is_copy) => done.extend(ids),
            Err(StoreError::Erased(_)) => done.extend(ids),
            Err(error) => {
                self.stuck.extend(ids);
                self.held_up.insert(batch.log);
                self.refused.get_or_insert(error);
            }
        }
        Ok(())
    }
}

/// Entries for one log, in order.
struct LogBatch {
    log: SessionKey,
    entries: Vec<OutboxEntry>,
}

impl LogBatch {
    fn commit(&self) -> Commit {
        let append_id = self.entries.first().map_or(AppendId::from_u128(0), append_of);
        let mut commit = Commit::deliveries(self.log, append_id, self.entries.iter().flat_map(deliveries).collect());
        // A reserved log is idle after every delivery: its tail is always under a checkpoint.
        commit.idle =
            self.entries.iter().all(|entry| matches!(&entry.work, OutboxKind::Session { copied_from: None, .. }));
        commit
    }
}

/// The entries by log, as many of one log together as one append takes. The order within a log stays; between logs there
/// is none.
fn batches(entries: Vec<OutboxEntry>) -> Vec<LogBatch> {
    let mut batches: Vec<LogBatch> = Vec::new();
    // The last batch of each log, the events in it, and their bytes.
    let mut open: HashMap<SessionKey, (usize, usize, usize)> = HashMap::new();
    for entry in entries {
        let Some(session) = log_of(&entry) else { continue };
        let log = SessionKey { tenant: entry.tenant, session };
        let (count, bytes) = size_of(&entry);
        let alone = matches!(entry.work, OutboxKind::Create { .. });
        match open.get_mut(&log) {
            Some((at, events, sum)) if !alone && *events + count <= APPEND_EVENTS && *sum + bytes <= APPEND_BYTES => {
                *events += count;
                *sum += bytes;
                batches[*at].entries.push(entry);
            }
            _ => {
                // Nothing joins a creation: it is judged by rules of its own.
                let events = if alone { APPEND_EVENTS } else { count };
                open.insert(log, (batches.len(), events, bytes));
                batches.push(LogBatch { log, entries: vec![entry] });
            }
        }
    }
    batches
}

/// Whether every entry would meet the same fault.
fn is_of_the_store(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::ReadOnly(_)
            | StoreError::Gone { .. }
            | StoreError::DiskFull { .. }
            | StoreError::Unavailable(_)
            | StoreError::Locked(_)
            | StoreError::Ambiguous(_)
    )
}

fn is_copy(entry: &OutboxEntry) -> bool {
    matches!(&entry.work, OutboxKind::Session { copied_from: Some(_), .. })
}

/// The log that an entry is for; `None` if it leaves the store.
fn log_of(entry: &OutboxEntry) -> Option<SessionId> {
    match &entry.work {
        OutboxKind::Session { session_id, .. }
        | OutboxKind::Create { session_id, .. }
        | OutboxKind::Deliver { session_id, .. } => Some(*session_id),
        OutboxKind::Webhook { .. } => None,
    }
}

fn append_of(entry: &OutboxEntry) -> AppendId {
    match &entry.work {
        OutboxKind::Session { append_id, .. }
        | OutboxKind::Create { append_id, .. }
        | OutboxKind::Deliver { append_id, .. } => *append_id,
        OutboxKind::Webhook { .. } => AppendId::from_u128(0),
    }
}

/// How many events an entry has, and how many bytes of payload.
fn size_of(entry: &OutboxEntry) -> (usize, usize) {
    match &entry.work {
        OutboxKind::Session { payload, .. } => (1, payload.len()),
        OutboxKind::Create { events, .. } | OutboxKind::Deliver { events, .. } => {
            (events.len(), events.iter().map(|event| event.payload.len()).sum())
        }
        OutboxKind::Webhook { .. } => (0, 0),
    }
}

/// Whether any of these events came from an entry.
fn took_effect(entry: &OutboxEntry, events: &HashSet<EventId>) -> bool {
    match &entry.work {
        OutboxKind::Session { event_id, .. } => events.contains(event_id),
        OutboxKind::Create { events: own, .. } | OutboxKind::Deliver { events: own, .. } => {
            own.iter().any(|event| events.contains(&event.event_id))
        }
        OutboxKind::Webhook { .. } => false,
    }
}

/// The events of an entry, under the keys that they are delivered once by.
fn deliveries(entry: &OutboxEntry) -> Vec<(String, Vec<Draft>)> {
    match &entry.work {
        OutboxKind::Session { dedupe, event_id, event_type, payload, copied_from, .. } => {
            let event = OutboxEvent {
                event_id: *event_id,
                event_type: event_type.clone(),
                v: 1,
                payload: payload.clone(),
                dedupe: dedupe.clone(),
            };
            let draft = Draft { session_thread_id: *copied_from, ..draft(&event, &Actor::system(), entry.at) };
            vec![(event.dedupe, vec![draft])]
        }
        OutboxKind::Create { dedupe, actor, events, .. } => {
            vec![(dedupe.clone(), events.iter().map(|event| draft(event, actor, entry.at)).collect())]
        }
        OutboxKind::Deliver { actor, events, .. } => {
            events.iter().map(|event| (event.dedupe.clone(), vec![draft(event, actor, entry.at)])).collect()
        }
        OutboxKind::Webhook { .. } => Vec::new(),
    }
}

fn draft(event: &OutboxEvent, actor: &Actor, at: Timestamp) -> Draft {
    Draft {
        id: event.event_id,
        kind: EventType::recorded(event.event_type.clone()),
        at,
        actor: actor.clone(),
        wake_id: None,
        turn_id: None,
        session_thread_id: None,
        v: event.v,
        payload_hash: Digest::of(event.payload.as_bytes()),
        payload: event.payload.as_str().into(),
        typed: DecodedBody::default(),
    }
}
