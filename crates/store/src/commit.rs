//! The one write verb: what a commit carries, and its three constructors (store §4).

use std::collections::HashSet;

use portcullis_base::{AppendId, ArtifactRef, Digest, IntentId, SessionId, TenantId, Timestamp, WorkerId};
use portcullis_event::facts::{CallRecovered, InvocationBackgrounded, InvocationCompleted, InvocationStarted};
use portcullis_event::{Body, Draft, Event, EventBody as _};
use serde_json::Value;

use crate::{LockKey, OutboxEntry};

/// Every key of the store leads with the tenant (S14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    pub tenant: TenantId,
    pub session: SessionId,
}

/// Who appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writer {
    /// The holder of the session's lease; an older fence is refused (S4).
    Worker { worker: WorkerId, fence: u64 },
    /// Anyone who may speak to the session.
    Client,
    /// Deliveries from outboxes of other sessions, each once per key; what was delivered before is left out.
    Outbox { deliveries: Vec<Delivery> },
}

/// One delivery of a commit: its key, and how many events of the commit it is, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub key: String,
    pub events: usize,
}

/// Bytes of an artifact of at most 64 KiB; they become durable with the append that names them (S13).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub sha256: Digest,
    pub bytes: Vec<u8>,
}

/// The row that makes an artifact readable by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRow {
    pub session: SessionId,
    pub artifact: ArtifactRef,
    /// No policy takes it.
    pub pinned: bool,
    /// A policy took it: what is left are its hash and size.
    pub tombstone: Option<Tombstone>,
}

impl ArtifactRow {
    /// The row of an artifact that was just kept.
    #[must_use]
    pub fn new(session: SessionId, artifact: ArtifactRef) -> Self {
        Self { session, artifact, pinned: false, tombstone: None }
    }
}

/// That an artifact expired, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tombstone {
    pub at: Timestamp,
    /// Its bytes are gone; before, they wait for the end of the grace.
    pub freed: bool,
}

/// A change of one ordinary row.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordWrite {
    pub kind: String,
    pub id: String,
    /// The version it must have now; 0 = it must not exist. `None` = whatever it is.
    pub expected: Option<u64>,
    /// `None` removes it.
    pub body: Option<Value>,
}

/// A request that must take effect once (S17).
#[derive(Debug, Clone, PartialEq)]
pub struct Idempotency {
    pub route: String,
    pub key: String,
    pub body_hash: Digest,
    pub response: Value,
}

/// One durable, all-or-nothing append to one log, with the rows that go with it.
#[derive(Debug, Clone)]
pub struct Commit {
    pub key: SessionKey,
    pub writer: Writer,
    pub append_id: AppendId,
    /// What the writer believes the last seq is. If only clients appended meanwhile, the store
    /// chains the events after theirs and commits; it is not an error.
    pub expected_seq: Option<u64>,
    /// The writer decided by what the log says up to here: if another writer appended since, nothing is written
    /// ([`crate::StoreError::MovedOn`]), and the writer looks again.
    pub only_at: Option<u64>,
    pub events: Vec<Draft>,
    /// Scheduler keys this append takes; a conflict refuses the whole commit.
    pub take: Vec<LockKey>,
    /// Scheduler keys this append gives back.
    pub free: Vec<LockKey>,
    /// Keys of a call whose holder was lost and may still be inside its effect: they stay held, against its own session
    /// too, until the store's clock is `EFFECT_GRACE` further; then they are free by themselves.
    pub linger: Vec<LockKey>,
    pub blobs: Vec<Blob>,
    pub artifacts: Vec<ArtifactRow>,
    pub records: Vec<RecordWrite>,
    /// Sensitive input values, sealed; kept with the intent until it settles.
    pub sealed: Vec<(IntentId, Vec<u8>)>,
    pub idempotency: Option<Idempotency>,
    pub outbox: Vec<OutboxEntry>,
    /// The session is idle after this append: write a checkpoint.
    pub idle: bool,
}

impl Commit {
    fn new(key: SessionKey, writer: Writer, append_id: AppendId, events: Vec<Draft>) -> Self {
        Self {
            key,
            writer,
            append_id,
            expected_seq: None,
            only_at: None,
            events,
            take: Vec::new(),
            free: Vec::new(),
            linger: Vec::new(),
            blobs: Vec::new(),
            artifacts: Vec::new(),
            records: Vec::new(),
            sealed: Vec::new(),
            idempotency: None,
            outbox: Vec::new(),
            idle: false,
        }
    }

    /// An append by the holder of the lease.
    #[must_use]
    pub fn worker(key: SessionKey, worker: WorkerId, fence: u64, append_id: AppendId, events: Vec<Draft>) -> Self {
        Self::new(key, Writer::Worker { worker, fence }, append_id, events)
    }

    /// An append by a client. If its first event is `session.created`, it creates the session.
    #[must_use]
    pub fn client(key: SessionKey, append_id: AppendId, events: Vec<Draft>) -> Self {
        Self::new(key, Writer::Client, append_id, events)
    }

    /// A delivery, once per `dedupe` key. It creates a reserved log that does not exist yet.
    #[must_use]
    pub fn outbox(key: SessionKey, dedupe: String, append_id: AppendId, events: Vec<Draft>) -> Self {
        let deliveries = vec![Delivery { key: dedupe, events: events.len() }];
        Self::new(key, Writer::Outbox { deliveries }, append_id, events)
    }

    /// Several deliveries to one log in one append.
    #[must_use]
    pub fn deliveries(key: SessionKey, append_id: AppendId, deliveries: Vec<(String, Vec<Draft>)>) -> Self {
        let keys = deliveries.iter().map(|(key, events)| Delivery { key: key.clone(), events: events.len() }).collect();
        let events = deliveries.into_iter().flat_map(|(_, events)| events).collect();
        Self::new(key, Writer::Outbox { deliveries: keys }, append_id, events)
    }

    /// The commit without the deliveries that `is_known` and those whose key stands in it before; `None` if nothing has to
    /// be left out. If all are known, what is left has no deliveries.
    #[must_use]
    pub fn undelivered(&self, is_known: impl Fn(&str) -> bool) -> Option<Self> {
        let Writer::Outbox { deliveries } = &self.writer else { return None };
        let mut seen = HashSet::new();
        let is_old = |delivery: &Delivery| is_known(&delivery.key) || !seen.insert(delivery.key.clone());
        let known: Vec<bool> = deliveries.iter().map(is_old).collect();
        if !known.contains(&true) {
            return None;
        }
        let mut rest = self.events.as_slice();
        let (mut events, mut left) = (Vec::new(), Vec::new());
        for (delivery, known) in deliveries.iter().zip(known) {
            let (own, others) = rest.split_at(delivery.events.min(rest.len()));
            rest = others;
            if !known {
                events.extend_from_slice(own);
                left.push(delivery.clone());
            }
        }
        Some(Self { events, writer: Writer::Outbox { deliveries: left }, ..self.clone() })
    }

    /// Whether it records the end of something that began before it. On a full disk this is still taken: what happened
    /// must not be lost for want of room, and what has not begun can wait.
    #[must_use]
    pub fn ends_work(&self) -> bool {
        let turning =
            [InvocationStarted::KIND, InvocationCompleted::KIND, CallRecovered::KIND, InvocationBackgrounded::KIND];
        let mut began = Vec::new();
        self.events.iter().filter(|draft| turning.contains(&draft.kind)).any(|draft| match &*draft.body_ref() {
            Body::InvocationCompleted(completed) => !began.contains(&completed.invocation_id),
            Body::CallRecovered(recovered) => !began.contains(&recovered.invocation_id),
            // A call that goes on has its observation here: without it its task would have to stop.
            Body::InvocationBackgrounded(backgrounded) => !began.contains(&backgrounded.invocation_id),
            Body::InvocationStarted(started) => {
                began.push(started.invocation_id);
                false
            }
            _ => false,
        })
    }

    /// Bytes of payloads and blobs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let events: usize = self.events.iter().map(|e| e.payload.len()).sum();
        events + self.blobs.iter().map(|b| b.bytes.len()).sum::<usize>()
    }
}

/// An acknowledged append: durable now, whatever happens next (S6).
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The events as they stand in the log. Empty for a repeat.
    pub events: Vec<Event>,
    /// The log's last seq after this.
    pub last_seq: u64,
    /// It had been committed before: same append, same event ids, same dedupe or idempotency key.
    pub repeat: bool,
    /// The stored response, for a repeated idempotent request.
    pub response: Option<Value>,
}

#[cfg(test)]
mod tests {
    use portcullis_base::{InvocationId, ManualClock, SeededIds, TaskId};
    use portcullis_event::{Actor, Stamp};

    use super::*;

    #[test]
    fn f07_the_observation_of_a_call_that_goes_on_is_taken_on_a_full_disk() {
        let (ids, clock, actor) = (SeededIds::new(1), ManualClock::new(Timestamp::from_micros(1)), Actor::system());
        let stamp = Stamp { ids: &ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
        let (invocation_id, task_id) = (InvocationId::from_u128(1), TaskId::from_u128(2));
        let gone = stamp.draft(&InvocationBackgrounded { invocation_id, task_id, wake: false, keys_freed: false });
        let key = SessionKey { tenant: TenantId::from_u128(1), session: SessionId::from_u128(1) };
        let commit = |events| Commit::worker(key, WorkerId::from_u128(1), 1, AppendId::from_u128(1), events);
        assert!(commit(vec![gone]).ends_work());
        assert!(!commit(Vec::new()).ends_work());
    }
}
