//! The payloads of background tasks: calls whose observation came before their end (tool-contract §14).

use portcullis_base::{ArtifactRef, Code, IntentId, InvocationId, Recorded, TaskId};
use serde::{Deserialize, Serialize};

use crate::facts::Exit;

/// The call goes on as a task; its observation is in the same append.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationBackgrounded {
    pub invocation_id: InvocationId,
    pub task_id: TaskId,
    /// Its end wakes the session.
    #[serde(default, skip_serializing_if = "crate::facts::is_false")]
    pub wake: bool,
    /// It gave its keys back in this append; else it holds them to its end.
    #[serde(default, skip_serializing_if = "crate::facts::is_false")]
    pub keys_freed: bool,
}

/// The end of a task, with its own bounded view; in the append of the call's `tool.invocation.completed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCompleted {
    pub task_id: TaskId,
    pub intent_id: IntentId,
    pub exit: Exit,
    /// The code that an observation of this end would have.
    pub code: Recorded<Code>,
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
    /// Things worth a line, such as files that it made and that run later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
