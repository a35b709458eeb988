//! Rows as readers see them.

use std::collections::BTreeMap;

use portcullis_base::{
    AppendId, AskId, Digest, EventId, IntentId, InvocationId, OutboxId, QueuedWakeId, SessionId, TenantId, Timestamp,
};
use portcullis_event::facts::{AtRoot, Reply, WakeQueued, WakeState};
use portcullis_event::{Actor, AskState, Draft, IntentState, RowChange, SessionFacts, SessionRow, UnknownOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Head;

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
    /// Where an ask of a descendant surfaces.
    pub root: Option<AtRoot>,
    pub kind: String,
    pub state: AskState,
    pub pinned: bool,
    pub input_hash: Digest,
    pub definition_version: String,
    pub facts: Value,
    /// On whose behalf the call would run.
    pub principal: String,
    pub asked_at: Timestamp,
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
            root,
            kind,
            input_hash,
            definition_version,
            pinned,
            facts,
            principal,
            asked_at,
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
            root,
            kind,
            state: AskState::Pending,
            pinned,
            input_hash,
            definition_version,
            facts,
            principal,
            asked_at,
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

/// One queued wake as the projection table has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WakeRow {
    pub session_id: SessionId,
    #[serde(flatten)]
    pub wake: WakeQueued,
    pub state: WakeState,
    pub created_at: Timestamp,
    /// The seq of the last event that changed it.
    pub updated_seq: u64,
}

impl WakeRow {
    /// A wake comes to the rows of its session: as a new one, or as an earlier due time of the pending one with its key.
    pub fn queue(rows: &mut BTreeMap<QueuedWakeId, Self>, session_id: SessionId, new: (WakeQueued, Timestamp, u64)) {
        let (wake, created_at, updated_seq) = new;
        if rows.contains_key(&wake.queued_wake_id) {
            return;
        }
        let like = |row: &&mut Self| {
            row.state == WakeState::Pending && wake.dedupe_key.is_some() && row.wake.dedupe_key == wake.dedupe_key
        };
        match rows.values_mut().find(like) {
            Some(pending) => {
                pending.wake.due_at = pending.wake.due_at.min(wake.due_at);
                pending.updated_seq = updated_seq;
            }
            None => {
                let row = Self { session_id, wake, state: WakeState::Pending, created_at, updated_seq };
                rows.insert(row.wake.queued_wake_id, row);
            }
        }
    }

    /// It was taken up or cancelled.
    pub fn settled(&mut self, state: WakeState, seq: u64) {
        self.state = state;
        self.updated_seq = seq;
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

/// A session with all that a list or a page about it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionListing {
    pub session_id: SessionId,
    pub row: SessionRow,
    pub head: Head,
    pub facts: SessionFacts,
    /// How many sessions have it as their parent. It is counted when it is read: it follows from their logs, not from
    /// this session's own.
    pub children: u64,
}

/// A call whose outcome nobody knows yet, as a list of them shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnknownCall {
    pub session_id: SessionId,
    #[serde(flatten)]
    pub outcome: UnknownOutcome,
    /// The tool that was called; none if its intent has no row.
    pub tool: Option<String>,
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
        /// The session it is a copy from: an event of a descendant (tool-contract 13.6).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copied_from: Option<SessionId>,
    },
    /// A session that is made with its first events, once (ruling 49). The first event is its `session.created`.
    Create { session_id: SessionId, append_id: AppendId, dedupe: String, actor: Actor, events: Vec<OutboxEvent> },
    /// Events for another session of the same tenant, each once per its key.
    Deliver { session_id: SessionId, append_id: AppendId, actor: Actor, events: Vec<OutboxEvent> },
    /// What somebody outside is told. Who sends it claims it first ([`crate::Log::claim_outbox`]).
    Webhook {
        /// The endpoint that it is for, by its id; where that is and its key are found when it is sent.
        endpoint: String,
        /// When it may be sent first.
        due_at: Timestamp,
        body: Value,
    },
}

/// An event on its way to another log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboxEvent {
    pub event_id: EventId,
    pub event_type: String,
    pub v: u32,
    pub payload: String,
    /// It takes effect once a key and log. In a creation the key of the whole counts.
    pub dedupe: String,
}

impl OutboxEvent {
    /// An event that was drafted for another log.
    #[must_use]
    pub fn of(draft: &Draft, dedupe: String) -> Self {
        let event_type = draft.kind.as_str().to_owned();
        Self { event_id: draft.id, event_type, v: draft.v, payload: (*draft.payload).to_owned(), dedupe }
    }
}

/// Work that must happen after a commit, at least once, and takes effect once.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxEntry {
    pub id: OutboxId,
    pub tenant: TenantId,
    pub at: Timestamp,
    pub work: OutboxKind,
}

impl OutboxEntry {
    /// When it may be done first.
    #[must_use]
    pub fn due_at(&self) -> Timestamp {
        match &self.work {
            OutboxKind::Webhook { due_at, .. } => *due_at,
            OutboxKind::Session { .. } | OutboxKind::Create { .. } | OutboxKind::Deliver { .. } => self.at,
        }
    }

    /// Whether it tells somebody outside, which no commit can do.
    #[must_use]
    pub fn leaves_the_store(&self) -> bool {
        matches!(self.work, OutboxKind::Webhook { .. })
    }
}

/// An entry that its claimer may send until its time is over. Sent twice is possible, for a claimer may die in between; so
/// its id goes along.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedEntry {
    pub entry: OutboxEntry,
    /// Which try this is, from 1.
    pub attempt: u32,
}
