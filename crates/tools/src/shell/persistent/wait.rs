//! `shell_wait`: waits for the command that runs in the shell, and gives the end of one that went away, once.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{CommandId, Effect, EffectSet, Risk, ShellId};
use portcullis_contract::{BuildError, Semantics, Tool, ToolContext, UserText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Persistent;
use super::words::preview;
use crate::count::Count;
use crate::executor;
use crate::shell::posture::{BusyPlan, ShellView};
use crate::shell::view::{ArtifactPaths, NextStep, StateView};
use crate::shell::{about_shell, accesses, document, word};

const DESCRIPTION: &str = "Waits until the command that runs in this session's shell has ended, at most timeoutMs. The end of \
a command that went on in the background is given once; all that it wrote is shown by shell_read_last_output. It runs and \
stops nothing.";

const USUAL_MS: u64 = 1_000;
const MOST_MS: u64 = 60_000;
/// How long the end of a task may take to be in the log once its command is over, and how often that is looked at.
const WRITTEN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);

/// The end of a command that nobody has been told of.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Uncollected")]
pub(super) struct UncollectedEnd {
    #[serde(skip)]
    #[schemars(skip)]
    id: Option<CommandId>,
    command_id: Option<String>,
    shell_id: String,
    command: String,
    exit_code: Option<i32>,
    timed_out: bool,
    duration_ms: u64,
    /// The end of what it wrote.
    stdout_preview: Option<String>,
    stderr_preview: Option<String>,
    #[serde(skip)]
    #[schemars(skip)]
    error: Option<String>,
}

impl UncollectedEnd {
    /// `streams` are masked already.
    pub(super) fn new(
        id: Option<CommandId>,
        shell: ShellId,
        line: &str,
        error: Option<String>,
        streams: (String, String),
    ) -> Self {
        let shown = |text: String| (!text.is_empty()).then(|| preview(&text));
        Self {
            id,
            command_id: id.map(|id| id.to_string()),
            shell_id: shell.to_string(),
            command: line.to_owned(),
            exit_code: None,
            timed_out: false,
            duration_ms: 0,
            stdout_preview: shown(streams.0),
            stderr_preview: shown(streams.1),
            error,
        }
    }

    pub(super) fn ended(self, exit_code: Option<i32>, timed_out: bool, duration_ms: u64) -> Self {
        Self { exit_code, timed_out, duration_ms, ..self }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WaitInput {
    /// Milliseconds to wait at most. 0 or less, or absent, means 1000; above 60000 means 60000.
    #[serde(default)]
    timeout_ms: Count<USUAL_MS, MOST_MS>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WaitOutput {
    session_id: String,
    cwd: String,
    artifact_paths: Option<ArtifactPaths>,
    /// `idle`, `running`, `completed` or `error`.
    status: &'static str,
    persistent_shell: Option<ShellView>,
    shell_state: Option<StateView>,
    result: Option<UncollectedEnd>,
    error: Option<String>,
    busy_plan: Option<BusyPlan>,
    recovery_plan: Option<NextStep>,
    next_step: Option<NextStep>,
}

pub(super) fn tool(parts: Arc<Persistent>) -> Result<Tool, BuildError> {
    let effects = EffectSet::from([Effect::MemoryRead, Effect::MemoryWrite, Effect::SandboxExecute]);
    Tool::builder::<WaitInput, WaitOutput>(DESCRIPTION)
        .semantics(Semantics { effects, ..Semantics::read_only() })
        .executor(executor("shell_wait"))
        .resolve(|_: &WaitInput, _| about_shell(None))
        .plan_access(|_, resolved| accesses("shell_wait", resolved, Risk::Read))
        // The wait ends by itself first.
        .timeout(|input| Some(input.timeout_ms.value() + 10_000))
        .execute(move |input, context| {
            let parts = Arc::clone(&parts);
            async move {
                if let Some(lowered) = input.timeout_ms.lowered("timeoutMs") {
                    context.warn(lowered);
                }
                let waited = parts.wait(&context, Duration::from_millis(input.timeout_ms.value())).await;
                let (seen, posture) = parts.shell.look(&context, None).await?;
                let busy = posture.live_command.is_some();
                let error = waited.as_ref().and_then(|done| done.error.clone());
                Ok(WaitOutput {
                    session_id: seen.session.to_string(),
                    artifact_paths: None,
                    status: match (&waited, &error) {
                        (Some(_), Some(_)) => "error",
                        (Some(_), None) => "completed",
                        (None, _) if busy => "running",
                        (None, _) => "idle",
                    },
                    next_step: posture.next_step(),
                    cwd: posture.cwd,
                    persistent_shell: posture.persistent,
                    shell_state: posture.state,
                    result: waited,
                    error,
                    busy_plan: posture.busy,
                    recovery_plan: posture.recovery,
                })
            }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| UserText { title: "Shell".to_owned(), summary: word(output, "status").to_owned() })
        .build()
}

impl Persistent {
    /// The end of a command that went away, if there is one by then.
    async fn wait(&self, context: &ToolContext, most: Duration) -> Option<UncollectedEnd> {
        let session = context.caller().session_id;
        let until = Instant::now() + most;
        loop {
            // Before the look: what ends in between is not missed.
            let ended = self.shells.next_end();
            // Also before it: a command that ends in between has left what there is to collect.
            let busy = self.shells.is_busy(session);
            if let Some(done) = self.shells.collect(session) {
                self.written(context, done.id).await;
                return Some(done);
            }
            if !busy {
                return None;
            }
            tokio::select! {
                biased;
                _ = context.cancelled() => return None,
                () = ended => {}
                () = tokio::time::sleep_until(until) => return None,
            }
        }
    }

    /// Until the log has it, so that what is asked next sees it.
    async fn written(&self, context: &ToolContext, id: Option<CommandId>) {
        let until = Instant::now() + WRITTEN;
        let Some(id) = id else { return };
        while Instant::now() < until && !context.is_cancelled() {
            match self.shell.book.look(context.caller(), None).await {
                Ok(seen) if seen.shell.places().any(|(known, _)| known == id) => return,
                Ok(_) => tokio::time::sleep(LOOK).await,
                Err(_) => return,
            }
        }
    }
}
