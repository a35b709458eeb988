//! `shell_describe`: how a session's shell stands.

use std::sync::Arc;

use portcullis_base::Risk;
use portcullis_contract::{BuildError, Tool, UserText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::posture::{BusyPlan, ShellView};
use super::view::{ArtifactPaths, CommandView, EnvView, NextStep, StateView};
use super::{ShellTools, about_shell, accesses, document, looking, word};
use crate::executor;

const DESCRIPTION: &str = "Shows how the shell of this session stands: its folder, the names of its environment (never \
values), whether a persistent shell runs and is busy, the last commands, and what may be done next. It changes nothing.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DescribeInput {
    /// Another session of the same agent and workspace. Absent or empty means this session.
    #[serde(default)]
    session_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DescribeOutput {
    session_id: String,
    cwd: String,
    env: EnvView,
    context_pressure: Option<String>,
    persistent_shell: Option<ShellView>,
    shell_state: Option<StateView>,
    artifact_paths: Option<ArtifactPaths>,
    last_command_preview: Option<CommandView>,
    command_policy: Option<Map<String, Value>>,
    busy_plan: Option<BusyPlan>,
    recovery_plan: Option<NextStep>,
    shell_read_first_alternatives: Vec<NextStep>,
}

pub(super) fn tool(parts: Arc<ShellTools>) -> Result<Tool, BuildError> {
    Tool::builder::<DescribeInput, DescribeOutput>(DESCRIPTION)
        .semantics(looking())
        .executor(executor("shell_describe"))
        .resolve(|input: &DescribeInput, _| about_shell(input.session_id.as_deref()))
        .plan_access(|_, resolved| accesses("shell_describe", resolved, Risk::Read))
        .execute(move |input, context| {
            let parts = Arc::clone(&parts);
            async move {
                let (seen, posture) = parts.look(&context, input.session_id.as_deref()).await?;
                Ok(DescribeOutput {
                    session_id: seen.session.to_string(),
                    env: EnvView::of(&seen.shell),
                    cwd: posture.cwd,
                    context_pressure: None,
                    persistent_shell: posture.persistent,
                    shell_state: posture.state,
                    artifact_paths: None,
                    last_command_preview: posture.last_command,
                    command_policy: None,
                    busy_plan: posture.busy,
                    recovery_plan: posture.recovery,
                    shell_read_first_alternatives: posture.read_first,
                })
            }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| UserText { title: "Shell".to_owned(), summary: format!("in {}", word(output, "cwd")) })
        .build()
}
