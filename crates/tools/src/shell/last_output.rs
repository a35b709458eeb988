//! `shell_read_last_output`: what the last command wrote, and what runs now.

use std::io;
use std::sync::Arc;

use portcullis_base::{ArtifactId, Risk, Window, limits};
use portcullis_contract::{BuildError, Tool, ToolContext, UserText};
use portcullis_event::fold::RecordedCommandEnd;
use portcullis_pipeline::{ShelfError, ShellSeen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::posture::{BusyPlan, LiveCommandView};
use super::view::{ArtifactPaths, NextStep};
use super::{ShellTools, about_shell, accesses, document, looking, word};
use crate::executor;

/// Bytes of a stream that are put into the document; of a longer one, so much of both ends together.
const SHOWN: u64 = limits::ARTIFACT_INLINE_MAX as u64;

const DESCRIPTION: &str = "Shows what the last command of this session wrote to stdout and stderr and how it ended, and, \
while a command runs in the persistent shell, what it wrote so far. It runs nothing.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LastOutputInput {
    /// Another session of the same agent and workspace. Absent or empty means this session.
    #[serde(default)]
    session_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LastCommand {
    command_id: String,
    command: String,
    args: Vec<String>,
    cwd: String,
    updated_at: String,
    exit_code: Option<i32>,
    timed_out: bool,
    duration_ms: u64,
    stdout: String,
    stderr: String,
    summary: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LastOutput {
    session_id: String,
    cwd: String,
    artifact_paths: Option<ArtifactPaths>,
    last_command: Option<LastCommand>,
    live_command: Option<LiveCommandView>,
    busy_plan: Option<BusyPlan>,
    recovery_plan: Option<NextStep>,
    next_step: Option<NextStep>,
}

pub(super) fn tool(parts: Arc<ShellTools>) -> Result<Tool, BuildError> {
    Tool::builder::<LastOutputInput, LastOutput>(DESCRIPTION)
        .semantics(looking())
        .executor(executor("shell_read_last_output"))
        .resolve(|input: &LastOutputInput, _| about_shell(input.session_id.as_deref()))
        .plan_access(|_, resolved| accesses("shell_read_last_output", resolved, Risk::Read))
        .execute(move |input, context| {
            let parts = Arc::clone(&parts);
            async move {
                let (seen, posture) = parts.look(&context, input.session_id.as_deref()).await?;
                let last_command = match seen.shell.recent().next() {
                    Some(last) => Some(parts.last_command(&seen, last, &context).await),
                    None => None,
                };
                if last_command.is_none() && posture.live_command.is_none() {
                    context.nothing_found();
                }
                Ok(LastOutput {
                    session_id: seen.session.to_string(),
                    artifact_paths: None,
                    last_command,
                    next_step: posture.next_step(),
                    cwd: posture.cwd,
                    live_command: posture.live_command,
                    busy_plan: posture.busy,
                    recovery_plan: posture.recovery,
                })
            }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| {
            let last = output.get("lastCommand").filter(|last| last.is_object());
            let summary = last.map_or("no command has run yet", |last| word(last, "summary"));
            UserText { title: "Last output".to_owned(), summary: summary.to_owned() }
        })
        .to_structured(|_, output| without_text(output))
        .build()
}

/// The text is the model's; the session's record does not keep it a second time.
fn without_text(output: &Value) -> Value {
    let mut output = output.clone();
    if let Some(last) = output.get_mut("lastCommand").and_then(Value::as_object_mut) {
        last.remove("stdout");
        last.remove("stderr");
    }
    output
}

impl ShellTools {
    async fn last_command(&self, seen: &ShellSeen, last: &RecordedCommandEnd, context: &ToolContext) -> LastCommand {
        let command = &last.fact.command;
        let stdout = self.text(seen, last.fact.stdout_ref, command.stdout_preview.as_ref(), context).await;
        let stderr = self.text(seen, last.fact.stderr_ref, command.stderr_preview.as_ref(), context).await;
        LastCommand {
            command_id: command.command_id.to_string(),
            command: command.command.clone(),
            args: command.args.clone(),
            cwd: command.cwd.clone(),
            updated_at: last.updated_at.to_millis_text(),
            exit_code: command.exit_code,
            timed_out: command.timed_out,
            duration_ms: command.duration_ms,
            stdout,
            stderr,
            summary: summary(command.exit_code, command.timed_out, command.duration_ms),
        }
    }

    /// What was kept of a stream; the end of it, and why, where that is not there any more.
    async fn text(
        &self,
        seen: &ShellSeen,
        kept: Option<ArtifactId>,
        preview: Option<&String>,
        context: &ToolContext,
    ) -> String {
        let preview = || preview.cloned().unwrap_or_default();
        let Some(id) = kept else { return preview() };
        let why = match self.shelf.open(id, Some(seen.session)).await {
            Ok((_, window)) => match both_ends(&*window, id) {
                Ok(text) => return text,
                Err(_) => format!("artifact {id} could not be read"),
            },
            // The store's own words may name places on the host.
            Err(ShelfError::Store(_)) => "the store could not be read".to_owned(),
            Err(error) => error.to_string(),
        };
        context.warn(format!("only the end of what the command wrote is shown: {why}"));
        preview()
    }
}

fn both_ends(window: &dyn Window, id: ArtifactId) -> io::Result<String> {
    let len = window.len();
    if len <= SHOWN {
        return Ok(String::from_utf8_lossy(&window.slice(0, len)?).into_owned());
    }
    let (head, tail) = (window.slice(0, SHOWN / 2)?, window.slice(len - SHOWN / 2, len)?);
    let (head, tail) = (String::from_utf8_lossy(&head), String::from_utf8_lossy(&tail));
    let cut = len - SHOWN;
    Ok(format!("{head}\n[{cut} bytes left out here; read them with artifact_read {{\"id\":\"{id}\"}}]\n{tail}"))
}

fn summary(exit_code: Option<i32>, timed_out: bool, duration_ms: u64) -> String {
    match (exit_code, timed_out) {
        (_, true) => format!("stopped after {duration_ms} ms: it ran too long"),
        (Some(code), false) => format!("ended with exit code {code} after {duration_ms} ms"),
        (None, false) => format!("was ended after {duration_ms} ms"),
    }
}
