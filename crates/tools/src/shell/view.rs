//! The documents of the shell tools (agent-runtime 2.10, 7.0, 10.3). Of the environment they hold names and never
//! values (H12).

use portcullis_base::Timestamp;
use portcullis_event::fold::{PersistentShell, RecordedCommandEnd, Shell, ShellStatus};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::HOME;

/// The version of `ShellState` documents.
const STATE_VERSION: u32 = 5;

/// What may be done next. It is advice, and never executes by itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct NextStep {
    pub(super) tool: String,
    pub(super) args: Map<String, Value>,
    pub(super) rationale: String,
}

/// Where files about the shell are. None are served yet.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactPaths {
    shell_state_json: String,
    shell_history_json: String,
    shell_history_markdown: String,
    shell_last_output_json: String,
    shell_last_output_markdown: String,
}

/// The names of the environment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EnvView {
    count: usize,
    keys: Vec<String>,
}

impl EnvView {
    pub(super) fn of(shell: &Shell) -> Self {
        let keys: Vec<String> = shell.env().map(|(name, _)| name.to_owned()).collect();
        Self { count: keys.len(), keys }
    }
}

/// A persistent shell as the log knows it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DurableShell {
    shell_id: String,
    shell_path: String,
    started_at: String,
    updated_at: String,
    last_command_at: Option<String>,
    command_count: u64,
    /// `active` or `closed`.
    status: &'static str,
}

pub(super) fn status_word(status: ShellStatus) -> &'static str {
    match status {
        ShellStatus::Active => "active",
        ShellStatus::Closed => "closed",
    }
}

impl DurableShell {
    fn of(shell: &PersistentShell, status: ShellStatus) -> Self {
        Self {
            shell_id: shell.shell_id.to_string(),
            shell_path: shell.shell_path.clone(),
            started_at: shell.started_at.to_millis_text(),
            updated_at: shell.updated_at.to_millis_text(),
            last_command_at: shell.last_command_at.map(Timestamp::to_millis_text),
            command_count: shell.command_count,
            status: status_word(status),
        }
    }
}

/// One command that ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandView {
    command_id: String,
    command: String,
    args: Vec<String>,
    cwd: String,
    exit_code: Option<i32>,
    timed_out: bool,
    duration_ms: u64,
    updated_at: String,
    output_preview: Option<String>,
    stdout_preview: Option<String>,
    stderr_preview: Option<String>,
    /// All that it wrote, for artifact_read.
    stdout_ref: Option<String>,
    stderr_ref: Option<String>,
}

impl CommandView {
    pub(super) fn of(ended: &RecordedCommandEnd) -> Self {
        let command = &ended.fact.command;
        let shown = |preview: &Option<String>| preview.clone().filter(|text| !text.trim().is_empty());
        Self {
            command_id: command.command_id.to_string(),
            command: command.command.clone(),
            args: command.args.clone(),
            cwd: command.cwd.clone(),
            exit_code: command.exit_code,
            timed_out: command.timed_out,
            duration_ms: command.duration_ms,
            updated_at: ended.updated_at.to_millis_text(),
            output_preview: shown(&command.stdout_preview).or_else(|| shown(&command.stderr_preview)),
            stdout_preview: command.stdout_preview.clone(),
            stderr_preview: command.stderr_preview.clone(),
            stdout_ref: ended.fact.stdout_ref.map(|id| id.to_string()),
            stderr_ref: ended.fact.stderr_ref.map(|id| id.to_string()),
        }
    }
}

/// What survives of a shell.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StateView {
    version: u32,
    cwd: String,
    updated_at: Option<String>,
    env: EnvView,
    persistent_shell: Option<DurableShell>,
    last_command: Option<CommandView>,
    recent_commands: Vec<CommandView>,
}

impl StateView {
    /// `status` is what the newest persistent shell really is; `None` if nobody ever touched this shell.
    pub(super) fn of(shell: &Shell, status: Option<ShellStatus>) -> Option<Self> {
        let updated_at = shell.updated_at()?;
        let recent_commands: Vec<CommandView> = shell.recent().map(CommandView::of).collect();
        let persistent = shell.persistent();
        Some(Self {
            version: STATE_VERSION,
            cwd: cwd(shell),
            updated_at: Some(updated_at.to_millis_text()),
            env: EnvView::of(shell),
            persistent_shell: persistent.map(|p| DurableShell::of(p, status.unwrap_or(p.status))),
            last_command: recent_commands.first().cloned(),
            recent_commands,
        })
    }
}

/// The folder that commands run in.
pub(super) fn cwd(shell: &Shell) -> String {
    shell.cwd().unwrap_or(HOME).to_owned()
}
