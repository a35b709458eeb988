//! The append being filled. The caller owns it; the pipeline adds facts and flushes it only where
//! the contract demands (10.2), so that the next turn's menu can ride with the observation before it.

use portcullis_base::WorkerId;
use portcullis_base::{AppendId, IntentId, MessageId, limits};
use portcullis_event::Draft;
use portcullis_store::{ArtifactRow, Blob, Commit, LockKey, RecordWrite, SessionKey};

use crate::schedule::Slot;

/// Facts that are not durable yet.
#[derive(Debug, Default)]
#[must_use = "facts in an append are lost unless it is committed"]
pub struct Append {
    pub(crate) events: Vec<Draft>,
    pub(crate) take: Vec<LockKey>,
    pub(crate) free: Vec<LockKey>,
    pub(crate) blobs: Vec<Blob>,
    pub(crate) artifacts: Vec<ArtifactRow>,
    pub(crate) sealed: Vec<(IntentId, Vec<u8>)>,
    pub(crate) records: Vec<RecordWrite>,
    /// Calls admitted in this append: a repeat among them is a duplicate before anything is stored.
    pub(crate) calls: Vec<(MessageId, String)>,
    /// A call's turn to touch the world lasts until its end is durable: the next one starts only then (R1).
    pub(crate) slots: Vec<Slot>,
    idle: bool,
}

impl Append {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that the session is idle after this append, so that it ends in a checkpoint.
    pub fn idle(&mut self) {
        self.idle = true;
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.free.is_empty() && self.slots.is_empty()
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

    pub(crate) fn into_commit(self, key: SessionKey, worker: WorkerId, fence: u64, id: AppendId, seq: u64) -> Commit {
        let mut commit = Commit::worker(key, worker, fence, id, self.events);
        commit.expected_seq = Some(seq);
        commit.take = self.take;
        commit.free = self.free;
        commit.blobs = self.blobs;
        commit.artifacts = self.artifacts;
        commit.sealed = self.sealed;
        commit.records = self.records;
        commit.idle = self.idle;
        commit
    }
}
