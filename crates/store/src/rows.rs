//! Rows as readers see them.

use portcullis_base::{
    AppendId, AskId, Digest, EventId, IntentId, InvocationId, OutboxId, SessionId, TenantId, Timestamp,
};
use portcullis_event::facts::Reply;
use portcullis_event::{AskState, IntentState, RowChange, SessionRow, SessionStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::LeaseOwner;

/// The head row: concurrency control, and what the queue needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    pub last_seq: u64,
    pub last_hash: Digest,
    pub fence: u64,
    pub lease_owner: Option<LeaseOwner>,
    pub lease_until: Option<Timestamp>,
    /// When a worker should take the session up; the wake *is* this field.
    pub next_due_at: Option<Timestamp>,
    pub status: SessionStatus,
    /// Asks that are pending.
    pub blocked_n: u64,
    /// The last seq that has a checkpoint, 0 if none.
    pub checkpoint_seq: u64,
    pub updated_at: Timestamp,
}

impl Head {
    /// When the session is due after its holder gave it back: not at all if the holder had nothing
    /// left to do and saw the whole log; at once otherwise, so that what a client appended behind
    /// its back is never forgotten (S11).
    #[must_use]
    pub fn due_after_release(&self, idle_at: Option<u64>, now: Timestamp) -> Option<Timestamp> {
        let done = idle_at.is_some_and(|seen| seen >= self.last_seq);
        (!done).then(|| self.next_due_at.map_or(now, |due| due.min(now)))
    }
}

/// One intent as the projection table has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IntentRow {
    pub session_id: SessionId,
    pub intent_id: IntentId,
    pub call_key: String,
    pub tool: String,
    pub definition_version: Option<String>,
    pub state: IntentState,
    pub invocation_id: Option<InvocationId>,
    pub updated_seq: u64,
}

impl IntentRow {
    /// The row of an intent that was just admitted; `None` for any other change.
    #[must_use]
    pub fn admitted(session_id: SessionId, change: RowChange) -> Option<Self> {
        let RowChange::IntentAdmitted { intent_id, call_key, tool, definition_version, seq } = change else {
            return None;
        };
        let (state, invocation_id) = (IntentState::Admitted, None);
        Some(Self { session_id, intent_id, call_key, tool, definition_version, state, invocation_id, updated_seq: seq })
    }

    /// It came further. What comes after its observation is the end of a task, and the intent stays settled.
    pub fn moved(&mut self, state: IntentState, invocation_id: Option<InvocationId>, seq: u64) {
        if self.state == IntentState::Observed {
            return;
        }
        self.state = state;
        self.invocation_id = invocation_id.or(self.invocation_id);
        self.updated_seq = seq;
    }
}

/// One ask as the projection table has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AskRow {
    pub ask_id: AskId,
    pub session_id: SessionId,
    pub intent_id: IntentId,
    pub tool_use_id: Option<EventId>,
    pub kind: String,
    pub state: AskState,
    pub pinned: bool,
    pub input_hash: Digest,
    pub definition_version: String,
    pub facts: Value,
    pub expires_at: Timestamp,
    pub reply: Option<Reply>,
    pub approver: Option<String>,
    pub answered_seq: Option<u64>,
    /// The seq of its `tool.permission.asked`.
    pub asked_seq: u64,
}

impl AskRow {
    /// The row of an ask that was just raised; `None` for any other change.
    #[must_use]
    pub fn opened(session_id: SessionId, change: RowChange) -> Option<Self> {
        let RowChange::AskOpened {
            ask_id,
            intent_id,
            tool_use_id,
            kind,
            input_hash,
            definition_version,
            pinned,
            facts,
            expires_at,
            seq,
        } = change
        else {
            return None;
        };
        Some(Self {
            ask_id,
            session_id,
            intent_id,
            tool_use_id,
            kind,
            state: AskState::Pending,
            pinned,
            input_hash,
            definition_version,
            facts,
            expires_at,
            reply: None,
            approver: None,
            answered_seq: None,
            asked_seq: seq,
        })
    }

    /// Somebody answered it.
    pub fn answered(&mut self, reply: Reply, approver: String, seq: u64) {
        self.state = AskState::Answered;
        self.reply = Some(reply);
        self.approver = Some(approver);
        self.answered_seq = Some(seq);
    }
}

/// Which asks a reader wants.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskFilter {
    pub session: Option<SessionId>,
    /// Only those that wait for an answer.
    pub pending: bool,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    pub session_id: SessionId,
    pub row: SessionRow,
    pub head: Head,
}

/// A keyed proof that the log had this hash at this seq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub seq: u64,
    pub hash: Digest,
    pub mac: Vec<u8>,
}

/// A fold kept as a cache; `digest` is of `state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub seq: u64,
    pub code_version: u32,
    pub state: String,
    pub digest: Digest,
}

/// An ordinary row.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub kind: String,
    pub id: String,
    pub version: u64,
    pub body: Value,
    pub updated_at: Timestamp,
}

/// Where an outbox entry goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OutboxKind {
    /// An append to another log of the same tenant, once per `dedupe`.
    Session {
        session_id: SessionId,
        dedupe: String,
        event_id: EventId,
        append_id: AppendId,
        event_type: String,
        payload: String,
    },
}

/// Work that must happen after a commit, at least once, and takes effect once.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxEntry {
    pub id: OutboxId,
    pub tenant: TenantId,
    pub at: Timestamp,
    pub work: OutboxKind,
}
