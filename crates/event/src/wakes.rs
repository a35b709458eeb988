//! The payloads of queued wakes: work that has a time (store §6).

use portcullis_base::{QueuedWakeId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// How urgent a wake is. Greater is sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

impl Priority {
    /// Every priority, the most urgent first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// As a number, greater is sooner.
    #[must_use]
    pub const fn level(self) -> u8 {
        match self {
            Self::Low => 0,
            Self::Normal => 1,
            Self::High => 2,
        }
    }

    /// The priority of a level; beyond the highest there is none higher.
    #[must_use]
    pub const fn of_level(level: u64) -> Self {
        match level {
            0 => Self::Low,
            1 => Self::Normal,
            _ => Self::High,
        }
    }
}

/// Where a queued wake stands. It leaves `pending` once (S12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeState {
    Pending,
    Consumed,
    Cancelled,
}

/// What the dedupe key of a wake begins with that tries a failed one again.
const RETRY: &str = "retry:";

/// What the dedupe key of a wake begins with that goes on where the one before came to its bound.
const CARRY_ON: &str = "carry-on:";

/// The dedupe key of the wake that goes on with a session's work: at most one is pending.
#[must_use]
pub fn carry_on_key(session: SessionId) -> String {
    format!("{CARRY_ON}{session}")
}

/// The dedupe key of a session's next try after a wake that failed: at most one is pending.
#[must_use]
pub fn retry_key(session: SessionId) -> String {
    format!("{RETRY}{session}")
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WakeQueued {
    pub queued_wake_id: QueuedWakeId,
    pub due_at: Timestamp,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// While one with this key is pending it stays as it is, but for its due time: the earlier one wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    pub priority: Priority,
}

impl WakeQueued {
    /// Whether it tries a failed wake again.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.dedupe_key.as_deref().is_some_and(|key| key.starts_with(RETRY))
    }

    /// Whether it goes on at once where the wake before it came to its bound (agent-runtime 5.4, step 10). Nobody is told of it.
    #[must_use]
    pub fn carries_on(&self) -> bool {
        self.dedupe_key.as_deref().is_some_and(|key| key.starts_with(CARRY_ON))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WakeConsumed {
    pub queued_wake_ids: Vec<QueuedWakeId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WakeCancelled {
    pub queued_wake_ids: Vec<QueuedWakeId>,
    pub by: String,
}
