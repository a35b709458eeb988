//! The append being filled. The caller owns it; the pipeline adds facts and flushes it only where
//! the contract demands (tool-contract 10.2), so that the next turn's menu can ride with the observation before it.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_base::{AppendId, IntentId, MessageId, WorkerId, limits};
use portcullis_event::{Body, Draft};
use portcullis_store::{ArtifactRow, Blob, Commit, LockKey, OutboxEntry, RecordWrite, SessionKey};

use crate::output::quota::QuotaReservation;
use crate::phases::schedule::Slot;

/// Facts that are not durable yet.
#[derive(Debug, Default)]
#[must_use = "facts in an append are lost unless it is committed"]
pub struct Append {
    pub(crate) events: Vec<Draft>,
    pub(crate) take: Vec<LockKey>,
    pub(crate) free: Vec<LockKey>,
    pub(crate) linger: Vec<LockKey>,
    pub(crate) blobs: Vec<Blob>,
    pub(crate) artifacts: Vec<ArtifactRow>,
    /// Room of the quota for those, until their rows are durable.
    pub(crate) reserved: Vec<QuotaReservation>,
    pub(crate) sealed: Vec<(IntentId, Vec<u8>)>,
    pub(crate) records: Vec<RecordWrite>,
    /// What goes to other logs once these are durable.
    pub(crate) outbox: Vec<OutboxEntry>,
    /// Calls admitted in this append: a repeat among them is a duplicate before anything is stored.
    pub(crate) calls: Vec<(MessageId, String)>,
    /// A call's turn to touch the world lasts until its end is durable: the next one starts only then (R1).
    pub(crate) slots: Vec<Slot>,
    idle: bool,
    /// Facts that must stand before these.
    head: Option<Head>,
}

/// See [`Append::extent`].
pub(crate) struct AppendExtent {
    events: usize,
    blobs: usize,
    artifacts: usize,
    reserved: usize,
    records: usize,
    outbox: usize,
}

/// Facts in front of several calls that run together: whichever of them is written first takes them along.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head(Arc<Mutex<Append>>);

impl Head {
    pub(crate) fn new(facts: Append) -> Self {
        Self(Arc::new(Mutex::new(facts)))
    }

    /// What nobody has taken along yet.
    pub(crate) fn take(&self) -> Append {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Append {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one whose facts stand after those of `head`.
    pub(crate) fn behind(head: &Head) -> Self {
        Self { head: Some(head.clone()), ..Self::default() }
    }

    /// These facts and then those of `next`, in one append.
    pub(crate) fn followed_by(mut self, next: Self) -> Self {
        self.events.extend(next.events);
        self.take.extend(next.take);
        self.free.extend(next.free);
        self.linger.extend(next.linger);
        self.blobs.extend(next.blobs);
        self.artifacts.extend(next.artifacts);
        self.reserved.extend(next.reserved);
        self.sealed.extend(next.sealed);
        self.records.extend(next.records);
        self.outbox.extend(next.outbox);
        self.calls.extend(next.calls);
        self.slots.extend(next.slots);
        self.idle |= next.idle;
        self
    }

    /// With the facts in front of it, if nobody has written those yet.
    pub(crate) fn whole(mut self) -> Self {
        match self.head.take() {
            Some(head) => head.take().followed_by(self),
            None => self,
        }
    }

    /// Says that the session is idle after this append, so that it ends in a checkpoint.
    pub fn idle(&mut self) {
        self.idle = true;
    }

    /// What its facts say, in order.
    pub fn bodies(&self) -> impl Iterator<Item = Cow<'_, Body>> {
        self.events.iter().map(Draft::body_ref)
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.free.is_empty() && self.linger.is_empty() && self.slots.is_empty()
    }

    /// Whether what it holds must be durable before another call is admitted into it: a call that touched
    /// the world ended here and its turn lasts until then (R1, L41), or one call more might not fit.
    pub(crate) fn must_go_first(&self) -> bool {
        let full = self.events.len() >= limits::APPEND_EVENTS / 2 || self.bytes() >= limits::APPEND_BYTES;
        full || !self.slots.is_empty()
    }

    /// Bytes of the small artifacts in it.
    pub(crate) fn blob_bytes(&self) -> usize {
        self.blobs.iter().map(|blob| blob.bytes.len()).sum()
    }

    /// Bytes as the store counts them.
    pub(crate) fn bytes(&self) -> usize {
        self.events.iter().map(|draft| draft.payload.len()).sum::<usize>() + self.blob_bytes()
    }

    /// The facts of a commit that the store refused. Nothing of it was written.
    pub(crate) fn of_refused(commit: Commit, reserved: Vec<QuotaReservation>, calls: Vec<(MessageId, String)>) -> Self {
        Self {
            events: commit.events,
            take: commit.take,
            free: commit.free,
            linger: commit.linger,
            blobs: commit.blobs,
            artifacts: commit.artifacts,
            reserved,
            sealed: commit.sealed,
            records: commit.records,
            outbox: commit.outbox,
            calls,
            idle: commit.idle,
            ..Self::default()
        }
    }

    /// How much it holds of what a running call can add to.
    pub(crate) fn extent(&self) -> AppendExtent {
        AppendExtent {
            events: self.events.len(),
            blobs: self.blobs.len(),
            artifacts: self.artifacts.len(),
            reserved: self.reserved.len(),
            records: self.records.len(),
            outbox: self.outbox.len(),
        }
    }

    /// Takes off what was added since it had this extent.
    pub(crate) fn cut_back(&mut self, to: &AppendExtent) {
        self.events.truncate(to.events);
        self.blobs.truncate(to.blobs);
        self.artifacts.truncate(to.artifacts);
        self.reserved.truncate(to.reserved);
        self.records.truncate(to.records);
        self.outbox.truncate(to.outbox);
    }

    pub(crate) fn into_commit(self, key: SessionKey, worker: WorkerId, fence: u64, id: AppendId, seq: u64) -> Commit {
        let mut commit = Commit::worker(key, worker, fence, id, self.events);
        commit.expected_seq = Some(seq);
        commit.take = self.take;
        commit.free = self.free;
        commit.linger = self.linger;
        commit.blobs = self.blobs;
        commit.artifacts = self.artifacts;
        commit.sealed = self.sealed;
        commit.records = self.records;
        commit.outbox = self.outbox;
        commit.idle = self.idle;
        commit
    }
}
