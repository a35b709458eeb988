//! What a session's shell leaves in the log (tool-contract §22). Values of its environment are in none of it: the log
//! tells that a name has one, and the value itself lies sealed in a row of its own (store §11).

use portcullis_base::{ArtifactId, CommandId, Digest, InvocationId, ShellId};
use serde::{Deserialize, Serialize};

/// Where a variable of a session's shell comes from, as `source` of the facts about it. Variables of other sources are
/// no part of the shell.
pub const SHELL_SOURCE: &str = "shell";

/// A persistent shell was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShellOpened {
    pub shell_id: ShellId,
    /// Its program, as the hand names it.
    pub shell_path: String,
    /// The folder it began in; absent if its name may not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// A persistent shell ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShellClosed {
    pub shell_id: ShellId,
    /// Such as `closed`, `restarted`, `died`, `idle`, `lost`.
    pub reason: String,
    /// What its processes did after its last command, where no call could tell it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One command as it was run (agent-runtime 2.10). Words are masked and cut to size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandRecord {
    pub command_id: CommandId,
    /// The program or pipeline for `bash`, `shell` for `shell_run`, `persistent-shell` for `shell_exec`.
    pub command: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The folder it ran in.
    pub cwd: String,
    /// `None`: it did not end by itself.
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "crate::facts::is_false")]
    pub timed_out: bool,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_preview: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_preview: Option<String>,
}

/// A command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandFinished {
    pub command: CommandRecord,
    /// The persistent shell it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell_id: Option<ShellId>,
    /// The folder of the session's shell after it, where anybody ever set one. What changes it is `session.updated`: a
    /// command that ran beside others must not bring back an old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The names of its environment after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_keys: Vec<String>,
    /// All that it wrote, where it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_ref: Option<ArtifactId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_ref: Option<ArtifactId>,
}

/// A variable has a value now; the value is not here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariableSet {
    pub name: String,
    /// `text` or `secret`; both are sealed.
    #[serde(rename = "type")]
    pub kind: String,
    pub source: String,
    /// Which value: its sealed row is bound to it.
    pub version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
}

/// A variable has no value any more, and its sealed row is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariableDeleted {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub source: String,
    /// The value that was there.
    pub version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
}

/// What of a session changed; only the fields that did are there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionUpdated {
    /// The folder that its commands run in, by its virtual path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell_cwd: Option<String>,
    /// Names the setup that it runs as from here on (ruling 51).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_hash: Option<Digest>,
}

impl SessionUpdated {
    /// Its commands run in another folder.
    #[must_use]
    pub fn moved(cwd: String) -> Self {
        Self { shell_cwd: Some(cwd), ..Self::default() }
    }
}
