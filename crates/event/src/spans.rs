//! The payloads of a wake: how it began, how it ended, and the status of its session.

use portcullis_base::{EventId, QueuedWakeId, Timestamp, WakeId};
use serde::{Deserialize, Serialize};

use crate::facts::{Priority, is_false};

/// What made a session due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivationKind {
    PendingEvents,
    QueuedWake,
}

/// Why a wake began: one record of the activation journal (agent-runtime 5.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activation {
    pub kind: ActivationKind,
    pub priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued_wake_ids: Vec<QueuedWakeId>,
}

impl Activation {
    /// The reason of a wake that only goes on with an answered ask.
    pub const REPLIED: &str = "tool.permission.replied";
    /// The reason of one that goes on with the result of a call that was handed over.
    pub const ANSWERED: &str = "user.custom_tool_result";
    /// The reason of one that goes on with what another session of the tree says.
    pub const TOLD: &str = "agent.thread_message_received";

    /// Whether it only goes on with what somebody answered: nobody said anything else, and no time came.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.queued_wake_ids.is_empty() && [Self::REPLIED, Self::ANSWERED, Self::TOLD].contains(&self.reason.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanStarted {
    pub span_id: WakeId,
    /// `wake`: spans of tools are read off their intents.
    pub span_kind: String,
    pub name: String,
    pub summary: String,
    pub activation: Activation,
}

/// How a wake ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanResult {
    Success,
    Error,
    Blocked,
}

/// What became of the activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    Acked,
    Requeued,
    Abandoned,
}

/// What the model wants to happen after a wake (agent-runtime 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopOutcome {
    #[default]
    Sleep,
    Continue,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanCompleted {
    pub span_id: WakeId,
    pub span_kind: String,
    pub name: String,
    pub result: SpanResult,
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    pub disposition: Disposition,
    #[serde(default)]
    pub outcome: LoopOutcome,
    /// The model wanted to go on, too often in a row: it sleeps all the same (H32).
    #[serde(default, skip_serializing_if = "is_false")]
    pub enforced_by_runtime: bool,
}

/// Why a session stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    /// Somebody must answer; these are the `agent.*_use` events that wait, oldest first.
    RequiresAction {
        event_ids: Vec<EventId>,
    },
    RetriesExhausted,
    BudgetReached,
    Refusal,
    Interrupted,
}

impl StopReason {
    /// The word of its type.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::RequiresAction { .. } => "requires_action",
            Self::RetriesExhausted => "retries_exhausted",
            Self::BudgetReached => "budget_reached",
            Self::Refusal => "refusal",
            Self::Interrupted => "interrupted",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusRunning {
    pub previous_status: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusIdle {
    pub previous_status: String,
    pub stop_reason: StopReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusRescheduled {
    pub previous_status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusTerminated {
    pub previous_status: String,
    pub stop_reason: String,
}
