//! The payloads of queued wakes: work that has a time (store §6).

use portcullis_base::{QueuedWakeId, Timestamp};
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WakeConsumed {
    pub queued_wake_ids: Vec<QueuedWakeId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WakeCancelled {
    pub queued_wake_ids: Vec<QueuedWakeId>,
    pub by: String,
}
