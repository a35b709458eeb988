//! `shell_history` and `shell_read_command`: the commands of a session.

use std::sync::Arc;

use portcullis_base::{CommandId, Risk, limits};
use portcullis_contract::{BuildError, Precondition, Tool, ToolFailure, UserText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::posture::BusyPlan;
use super::view::{ArtifactPaths, CommandView, NextStep};
use super::{ShellTools, about_shell, accesses, document, looking, unseen, word};
use crate::count::Count;
use crate::executor;
use crate::files::counted;

const USUAL: u64 = limits::RECENT_COMMANDS as u64;
const MOST: u64 = limits::KNOWN_COMMANDS as u64;

const LIST: &str = "Lists the last commands that ran in this session, newest first: what was run where, how it ended and \
the end of what it wrote. All that one wrote: artifact_read with its stdoutRef or stderrRef.";
const ONE: &str = "Shows one command of this session by its id (`cmd_…`), however long ago it ran.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HistoryInput {
    /// Another session of the same agent and workspace. Absent or empty means this session.
    #[serde(default)]
    session_id: Option<String>,
    /// How many commands to show. 0 or less, or absent, means 5; above 200 means 200.
    #[serde(default)]
    limit: Count<USUAL, MOST>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HistoryOutput {
    session_id: String,
    cwd: String,
    count: usize,
    artifact_paths: Option<ArtifactPaths>,
    busy_plan: Option<BusyPlan>,
    recovery_plan: Option<NextStep>,
    next_step: Option<NextStep>,
    commands: Vec<CommandView>,
}

pub(super) fn list(parts: Arc<ShellTools>) -> Result<Tool, BuildError> {
    Tool::builder::<HistoryInput, HistoryOutput>(LIST)
        .semantics(looking())
        .executor(executor("shell_history"))
        .resolve(|input: &HistoryInput, _| about_shell(input.session_id.as_deref()))
        .plan_access(|_, resolved| accesses("shell_history", resolved, Risk::Read))
        .execute(move |input, context| {
            let parts = Arc::clone(&parts);
            async move {
                if let Some(lowered) = input.limit.lowered("limit") {
                    context.warn(lowered);
                }
                let (seen, posture) = parts.look(&context, input.session_id.as_deref()).await?;
                let most = usize::try_from(input.limit.value()).unwrap_or(usize::MAX);
                let commands = parts.book.history(&seen, most).await.map_err(unseen)?;
                if commands.is_empty() {
                    context.nothing_found();
                }
                Ok(HistoryOutput {
                    session_id: seen.session.to_string(),
                    count: commands.len(),
                    artifact_paths: None,
                    next_step: posture.next_step(),
                    cwd: posture.cwd,
                    busy_plan: posture.busy,
                    recovery_plan: posture.recovery,
                    commands: commands.iter().map(CommandView::of).collect(),
                })
            }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| {
            let count = output.get("count").and_then(Value::as_u64).unwrap_or(0);
            UserText { title: "Shell history".to_owned(), summary: counted(count, "command") }
        })
        .build()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CommandInput {
    /// The command's id, as shell_history and the call that ran it name it.
    #[schemars(regex(pattern = r"^cmd_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    command_id: String,
    /// Another session of the same agent and workspace. Absent or empty means this session.
    #[serde(default)]
    session_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CommandOutput {
    session_id: String,
    cwd: String,
    artifact_paths: Option<ArtifactPaths>,
    command: Option<CommandView>,
    busy_plan: Option<BusyPlan>,
    recovery_plan: Option<NextStep>,
    next_step: Option<NextStep>,
}

fn command_id(text: &str) -> Result<CommandId, Precondition> {
    text.parse().map_err(|error| Precondition::schema("/commandId", format!("{error}")))
}

pub(super) fn one(parts: Arc<ShellTools>) -> Result<Tool, BuildError> {
    Tool::builder::<CommandInput, CommandOutput>(ONE)
        .semantics(looking())
        .executor(executor("shell_read_command"))
        .resolve(|input: &CommandInput, _| {
            command_id(&input.command_id)?;
            about_shell(input.session_id.as_deref())
        })
        .plan_access(|_, resolved| accesses("shell_read_command", resolved, Risk::Read))
        .execute(move |input, context| {
            let parts = Arc::clone(&parts);
            async move {
                let id = command_id(&input.command_id).map_err(ToolFailure::precondition)?;
                let (seen, posture) = parts.look(&context, input.session_id.as_deref()).await?;
                let command = parts.book.command(&seen, id).await.map_err(unseen)?;
                if command.is_none() {
                    context.nothing_found();
                }
                Ok(CommandOutput {
                    session_id: seen.session.to_string(),
                    artifact_paths: None,
                    command: command.as_ref().map(CommandView::of),
                    next_step: posture.next_step(),
                    cwd: posture.cwd,
                    busy_plan: posture.busy,
                    recovery_plan: posture.recovery,
                })
            }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| {
            let found = output.get("command").filter(|command| command.is_object());
            let summary = found.map_or("there is no such command", |command| word(command, "command"));
            UserText { title: "Command".to_owned(), summary: summary.to_owned() }
        })
        .build()
}
