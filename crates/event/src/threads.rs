//! The payloads between a session and its children: who was made, and what they say to one another.

use portcullis_base::{IntentId, SessionId};
use serde::{Deserialize, Serialize};

use crate::facts::Block;

/// A child session, made by the append that holds this (ruling 49).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadCreated {
    pub session_thread_id: SessionId,
    pub agent_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it was asked first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The call that waits for it; none where no call does (ruling 54).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<IntentId>,
}

/// Why a session is told something by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadMessageKind {
    Message,
    /// Its sender is done with what it was asked.
    Completion,
    Notification,
}

/// What another session of the same tree says to this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadMessageReceived {
    pub from_session_thread_id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent_name: Option<String>,
    pub content: Vec<Block>,
    pub kind: ThreadMessageKind,
    /// Of a completion: how it ended, as the stop reason of its sender says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}
