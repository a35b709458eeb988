//! The rows that follow from events, by one pure function (S15): nobody hands them in, so they
//! cannot disagree with the log.

use portcullis_base::{AskId, Digest, EventId, IntentId, InvocationId, QueuedWakeId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::{AtRoot, Closing, Reply, SpanResult, StopReason, WakeQueued, WakeState};
use crate::{Body, Event};

/// How far an intent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentState {
    Admitted,
    Parked,
    Queued,
    Started,
    Completed,
    Observed,
}

/// Where an ask stands. It leaves `pending` once (S10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskState {
    Pending,
    Answered,
    Expired,
    Superseded,
    Voided,
}

impl From<Closing> for AskState {
    fn from(closing: Closing) -> Self {
        match closing {
            Closing::Expired => Self::Expired,
            Closing::Superseded => Self::Superseded,
            Closing::Voided => Self::Voided,
        }
    }
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    #[default]
    Idle,
    Running,
    /// It goes on by itself, at once or later.
    Rescheduling,
    /// A person must answer first.
    RequiresAction,
    Terminated,
}

/// The ordinary row of a session, from its `session.created`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    pub root_session_id: SessionId,
    pub parent_session_id: Option<SessionId>,
    pub title: Option<String>,
    pub tags: Vec<String>,
    pub created_at: Timestamp,
    pub config_hash: Digest,
    pub workspace: Option<String>,
}

/// One change of one row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowChange {
    Session(SessionRow),
    /// A new intent, `admitted`.
    IntentAdmitted {
        intent_id: IntentId,
        /// `message_id/call_id`.
        call_key: String,
        tool: String,
        definition_version: Option<String>,
        seq: u64,
    },
    IntentMoved {
        intent_id: IntentId,
        state: IntentState,
        invocation_id: Option<InvocationId>,
        seq: u64,
    },
    /// A new ask, `pending`. `tool_use_id` is the managed event that clients answer to.
    AskOpened {
        ask_id: AskId,
        intent_id: IntentId,
        tool_use_id: Option<EventId>,
        root: Option<AtRoot>,
        kind: String,
        input_hash: Digest,
        definition_version: String,
        pinned: bool,
        facts: Value,
        /// On whose behalf the call would run.
        principal: String,
        asked_at: Timestamp,
        expires_at: Timestamp,
        seq: u64,
    },
    /// Only where the ask is still pending and not expired; else the whole commit is refused (S10).
    AskAnswered {
        ask_id: AskId,
        reply: Reply,
        approver: String,
        seq: u64,
    },
    /// From pending, or from answered when the approval is voided at dispatch (tool-contract 13.7).
    AskClosed {
        ask_id: AskId,
        state: AskState,
        seq: u64,
    },
    /// A new wake, `pending`; while one with its key is, only that one's due time may change.
    WakeQueued {
        wake: WakeQueued,
        at: Timestamp,
        seq: u64,
    },
    /// Only where they are still pending; else the whole commit is refused (S12).
    WakesSettled {
        queued_wake_ids: Vec<QueuedWakeId>,
        state: WakeState,
        seq: u64,
    },
}

/// What an append changes in the head row besides seq and hash.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeadChange {
    pub status: Option<SessionStatus>,
    /// Asks opened minus asks that left `pending`.
    pub blocked: i64,
    /// Input that waits for a worker was appended.
    pub pending_input: bool,
    /// An ask was answered, or closed without an answer: the session has work even while blocked.
    pub answered: bool,
    /// A wake was taken up: until its holder is done with it, it is work like any other.
    pub woken: bool,
    /// Input came, or the session went idle: what failed before counts no longer.
    pub recovered: bool,
    /// Wakes that failed since then.
    pub failures: u32,
}

impl HeadChange {
    fn no_failure(&mut self) {
        self.recovered = true;
        self.failures = 0;
    }

    /// How many wakes have failed in a row, after `before`.
    #[must_use]
    pub fn failure_streak(&self, before: u32) -> u32 {
        if self.recovered { self.failures } else { before.saturating_add(self.failures) }
    }
}

/// The row changes of consecutive events of one session.
#[must_use]
pub fn rows(events: &[Event]) -> Vec<RowChange> {
    let mut changes = Vec::with_capacity(events.len());
    let moved = |intent_id, state, invocation_id, seq| RowChange::IntentMoved { intent_id, state, invocation_id, seq };
    for event in events {
        let seq = event.seq;
        match &*event.body_ref() {
            Body::SessionCreated(created) => changes.push(RowChange::Session(SessionRow {
                root_session_id: created.root_session_id,
                parent_session_id: created.parent_session_id,
                title: created.name.clone(),
                tags: created.tags.clone(),
                created_at: event.at,
                config_hash: created.config_hash,
                workspace: created.workspace.clone(),
            })),
            Body::IntentProposed(intent) => changes.push(RowChange::IntentAdmitted {
                intent_id: intent.intent_id,
                call_key: format!("{}/{}", intent.message_id, intent.call_id),
                tool: intent.tool.clone(),
                definition_version: intent.definition_version.clone(),
                seq,
            }),
            Body::PermissionAsked(asked) => {
                let tool_use_id = events.iter().find_map(|other| match &*other.body_ref() {
                    Body::ToolUse(used) if used.intent_id == asked.intent_id => Some(other.id),
                    _ => None,
                });
                if asked.held_by.is_none() {
                    changes.push(moved(asked.intent_id, IntentState::Parked, None, seq));
                }
                changes.push(RowChange::AskOpened {
                    ask_id: asked.ask_id,
                    intent_id: asked.intent_id,
                    tool_use_id,
                    root: asked.root,
                    kind: asked.kind.clone(),
                    input_hash: asked.input_hash,
                    definition_version: asked.definition_version.clone(),
                    pinned: asked.pinned,
                    facts: asked.facts.clone(),
                    principal: asked.principal.clone(),
                    asked_at: event.at,
                    expires_at: asked.expires_at,
                    seq,
                });
            }
            Body::CustomToolUse(used) => {
                changes.extend(used.intent_id.map(|intent| moved(intent, IntentState::Parked, None, seq)));
            }
            Body::ToolUse(used) if used.by_environment => {
                changes.push(moved(used.intent_id, IntentState::Parked, None, seq));
            }
            Body::ThreadCreated(made) => {
                changes.extend(made.intent_id.map(|intent| moved(intent, IntentState::Parked, None, seq)));
            }
            Body::AskReplied(replied) => changes.push(RowChange::AskAnswered {
                ask_id: replied.ask_id,
                reply: replied.reply.clone(),
                approver: replied.approver.clone(),
                seq,
            }),
            Body::AskClosed(closed) => {
                changes.push(RowChange::AskClosed { ask_id: closed.ask_id, state: closed.state.into(), seq });
            }
            Body::Scheduled(scheduled) => {
                changes.push(moved(scheduled.intent_id, IntentState::Queued, None, seq));
            }
            Body::InvocationStarted(started) => {
                changes.push(moved(started.intent_id, IntentState::Started, Some(started.invocation_id), seq));
            }
            Body::InvocationCompleted(done) => {
                changes.push(moved(done.intent_id, IntentState::Completed, Some(done.invocation_id), seq));
            }
            Body::Observed(observed) => {
                changes.push(moved(observed.intent_id, IntentState::Observed, observed.invocation_id, seq));
            }
            Body::WakeQueued(wake) => changes.push(RowChange::WakeQueued { wake: (**wake).clone(), at: event.at, seq }),
            Body::WakeConsumed(taken) => changes.push(RowChange::WakesSettled {
                queued_wake_ids: taken.queued_wake_ids.clone(),
                state: WakeState::Consumed,
                seq,
            }),
            Body::WakeCancelled(cancelled) => changes.push(RowChange::WakesSettled {
                queued_wake_ids: cancelled.queued_wake_ids.clone(),
                state: WakeState::Cancelled,
                seq,
            }),
            _ => {}
        }
    }
    changes
}

/// The status that an event gives its session, if it changes it.
pub(crate) fn status_after(body: &Body) -> Option<SessionStatus> {
    Some(match body {
        Body::StatusRunning(_) => SessionStatus::Running,
        Body::StatusIdle(idle) => match idle.stop_reason {
            StopReason::RequiresAction { .. } => SessionStatus::RequiresAction,
            _ => SessionStatus::Idle,
        },
        Body::StatusRescheduled(_) => SessionStatus::Rescheduling,
        Body::StatusTerminated(_) | Body::SessionErased(_) => SessionStatus::Terminated,
        _ => return None,
    })
}

/// What consecutive events of one session change in its head row. `pending` tells which asks were
/// pending before them.
#[must_use]
pub fn head_change(events: &[Event], mut pending: impl FnMut(AskId) -> bool) -> HeadChange {
    let mut change = HeadChange::default();
    for event in events {
        let body = &*event.body_ref();
        change.status = status_after(body).or(change.status);
        match body {
            Body::StatusIdle(_) => change.no_failure(),
            // However it goes on: a wake that did not fail ends the row of those that did (agent-runtime 5.7).
            Body::SpanCompleted(span) if span.result != SpanResult::Error => change.no_failure(),
            Body::PermissionAsked(_) => change.blocked += 1,
            Body::AskReplied(_) => {
                change.blocked -= 1;
                change.answered = true;
            }
            Body::AskClosed(closed) if pending(closed.ask_id) => {
                change.blocked -= 1;
                // Its call waits for the next holder, and so does input that came while it was pending: if the
                // one who closed it dies here, a process must come (S11).
                change.answered = true;
            }
            Body::ToolQueued(_)
            | Body::UserMessage(_)
            | Body::UserCustomToolResult(_)
            | Body::UserToolResult(_)
            | Body::ThreadMessageReceived(_)
            | Body::SystemMessage(_) => {
                change.pending_input = true;
                change.no_failure();
            }
            // It ends what an ask waits for, so it does not wait with it.
            Body::UserInterrupt(_) => {
                change.answered = true;
                change.no_failure();
            }
            // The holder queues the next try when a wake has failed; a client's wake says nothing of the last one.
            Body::WakeQueued(wake) if wake.is_retry() && event.fence.is_some() => change.failures += 1,
            Body::WakeConsumed(_) => change.woken = true,
            _ => {}
        }
    }
    change
}
