//! The payloads of background tasks: calls whose observation came before their end (tool-contract §14).

use portcullis_base::{ArtifactRef, IntentId, InvocationId, TaskId};
use serde::{Deserialize, Serialize};

use crate::facts::Exit;

/// The call goes on as a task; its observation is in the same append.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backgrounded {
    pub invocation_id: InvocationId,
    pub task_id: TaskId,
}

/// The end of a task, with its own bounded view; in the append of the call's `tool.invocation.completed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCompleted {
    pub task_id: TaskId,
    pub intent_id: IntentId,
    pub exit: Exit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What happened, in one line of facts.
    pub summary: String,
    /// Bounded as the text of an observation is; untrusted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, skip_serializing_if = "crate::facts::is_false")]
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
}
