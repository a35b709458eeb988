//! `shell_open`, `shell_restart` and `shell_close`.

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_base::{Effect, EffectSet, EnvKey, Risk, RiskSet};
use portcullis_contract::{
    AccessRequest, Action, BuildError, Caller, Concurrency, DefaultPolicy, NamedKind, Precondition, Resolved, Resource,
    Semantics, ShellFact, Tool, ToolContext, ToolFailure, UserText,
};
use portcullis_secret::SecretText;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::shells::ShellChoice;
use super::{Persistent, shell_key};
use crate::executor;
use crate::files::failure;
use crate::hand;
use crate::shell::posture::ShellView;
use crate::shell::session_shell::Change;
use crate::shell::view::StateView;
use crate::shell::{BringsVariables, accesses, document, word};

const OPEN: &str = "Opens this session's shell, or shows the one that runs. Commands are run in it with shell_exec.";
const RESTART: &str = "Starts this session's shell anew, in the same folder and with the same exported variables. While a \
command runs in it this is refused; force stops the command.";
const CLOSE: &str = "Closes this session's shell and ends what runs in it. Its folder and exported variables are kept.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenInput {
    /// The folder, relative to the workspace or as `/workspace/…`. Absent means the session's folder.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    cwd: Option<String>,
    /// Another shell, even if one runs.
    #[serde(default)]
    restart: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RestartInput {
    /// The folder, relative to the workspace or as `/workspace/…`. Absent means the session's folder.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    cwd: Option<String>,
    /// Also while a command runs: it is stopped.
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct CloseInput {}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OpenOutput {
    session_id: String,
    cwd: String,
    persistent_shell: Option<ShellView>,
    shell_state: Option<StateView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CloseOutput {
    session_id: String,
    closed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    shell_id: Option<String>,
    shell_state: Option<StateView>,
}

/// A shell without a command in it touches nothing; what is destroyed is what a command left running.
fn semantics(destructive: bool) -> Semantics {
    Semantics {
        risk: RiskSet::from([Risk::Write]),
        effects: EffectSet::from([Effect::SandboxExecute, Effect::MemoryWrite]),
        destructive,
        idempotent: true,
        concurrency: Concurrency::Keyed,
        sandbox: Some(hand::PROFILE.to_owned()),
        default_policy: DefaultPolicy::Allow,
        ..Semantics::mutating()
    }
}

impl Persistent {
    /// The folder and the shell: what such a call is about.
    fn about(&self, cwd: Option<&str>, caller: &Caller) -> Result<Resolved, Precondition> {
        let Resolved { resources, cwd, .. } = self.shell.folder_of(cwd, caller)?;
        Ok(Resolved { resources, cwd, keys: vec![shell_key(caller)] })
    }

    async fn opened(
        &self,
        wanted: ShellChoice,
        env: BTreeMap<EnvKey, SecretText>,
        resolved: &Resolved,
        context: &ToolContext,
    ) -> Result<OpenOutput, ToolFailure> {
        let place = self.shell.files.place(resolved).map_err(failure)?;
        let cwd = place.path().clone();
        let live = self.shells.ready(context, &cwd, wanted).await?;
        let elsewhere = live.now().cwd.as_deref() != Some(cwd.as_str());
        if elsewhere && self.shells.go(&live, cwd.as_str()).await {
            context.shell(ShellFact::Cwd(cwd.as_str().to_owned()));
        }
        let mut changes = Vec::new();
        for (key, value) in env {
            self.shell.bring(context, Change::EnvSet(key.clone(), value.clone())).await?;
            changes.push(ShellFact::EnvSet(key, value));
        }
        changes.iter().cloned().for_each(|fact| context.shell(fact));
        let (posture, _) = self.stand(context, &changes).await?;
        Ok(OpenOutput {
            session_id: context.caller().session_id.to_string(),
            cwd: posture.cwd,
            persistent_shell: posture.persistent,
            shell_state: posture.state,
        })
    }
}

/// The shell itself, and the folder it stands in, which must not be one that may not be read.
fn planned(action: &'static str, resolved: &Resolved) -> Vec<AccessRequest> {
    let own = Resolved { resources: vec![Resource::own(NamedKind::Shell, "shell")], ..Resolved::default() };
    let mut plan = accesses(action, &own, Risk::Write);
    plan.extend(crate::search::scope::plan(action, resolved));
    plan
}

/// Over inputs with or without variables of their own.
pub(super) fn open<I>(parts: Arc<Persistent>) -> Result<Tool, BuildError>
where
    I: BringsVariables<Call = OpenInput> + DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<I, OpenOutput>(OPEN)
        .semantics(semantics(false))
        .executor(executor("shell_open"))
        .keyed()
        .resolve(move |input: &I, caller| {
            input.env().check()?;
            named.about(input.call().cwd.as_deref(), caller)
        })
        .plan_access(|input, resolved| {
            let mut plan = planned("shell_open", resolved);
            plan.extend(input.env().accesses(Risk::Write));
            plan
        })
        .precheck(move |input: Arc<I>, resolved, caller| {
            let parts = Arc::clone(&checked);
            async move { parts.shell.may_open(&caller, &input.env(), &resolved).await }
        })
        .execute_resolved(move |input: I, resolved, context| {
            let parts = Arc::clone(&parts);
            let wanted = if input.call().restart { ShellChoice::Fresh } else { ShellChoice::Any };
            let env = input.env().values();
            async move { parts.opened(wanted, env, &resolved, &context).await }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| in_folder(output))
        .build()
}

pub(super) fn restart(parts: Arc<Persistent>) -> Result<Tool, BuildError> {
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<RestartInput, OpenOutput>(RESTART)
        .semantics(semantics(true))
        .executor(executor("shell_restart"))
        .keyed()
        .resolve(move |input: &RestartInput, caller| {
            let mut about = named.about(input.cwd.as_deref(), caller)?;
            if input.force {
                // The command that runs holds the key, and is to be stopped.
                about.keys.clear();
            }
            Ok(about)
        })
        .plan_access(|input, resolved| {
            let mut plan = planned("shell_restart", resolved);
            if input.force {
                // What a command that is stopped midway leaves behind, nobody knows: that is asked.
                let stopped = Resource::opaque("the command that runs in the shell is stopped");
                plan.push(AccessRequest::new(Action::new("shell_restart"), stopped, RiskSet::from([Risk::Write])));
            }
            plan
        })
        .precheck(move |_, resolved, _| {
            let checked = checked.shell.may_run_in(&resolved);
            async move { checked }
        })
        .execute_resolved(move |_, resolved, context| {
            let parts = Arc::clone(&parts);
            async move { parts.opened(ShellChoice::Fresh, BTreeMap::new(), &resolved, &context).await }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| in_folder(output))
        .build()
}

pub(super) fn close(parts: Arc<Persistent>) -> Result<Tool, BuildError> {
    Tool::builder::<CloseInput, CloseOutput>(CLOSE)
        .semantics(semantics(true))
        .executor(executor("shell_close"))
        .keyed()
        .resolve(|_: &CloseInput, caller| {
            let own = Resource::own(NamedKind::Shell, "shell");
            Ok(Resolved { resources: vec![own], keys: vec![shell_key(caller)], cwd: None })
        })
        .plan_access(|_, resolved| accesses("shell_close", resolved, Risk::Write))
        .execute(move |_, context| {
            let parts = Arc::clone(&parts);
            async move {
                let closed = parts.shells.end(&context, "closed").await;
                if closed.is_none() {
                    parts.shells.tell_lost(&context).await?;
                }
                let (posture, _) = parts.stand(&context, &[]).await?;
                Ok(CloseOutput {
                    session_id: context.caller().session_id.to_string(),
                    closed: closed.is_some(),
                    shell_id: closed.map(|id| id.to_string()),
                    shell_state: posture.state,
                })
            }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| {
            let closed = output.get("closed").and_then(serde_json::Value::as_bool) == Some(true);
            let summary = if closed { "closed" } else { "there was none" };
            UserText { title: "Shell".to_owned(), summary: summary.to_owned() }
        })
        .build()
}

fn in_folder(output: &serde_json::Value) -> UserText {
    UserText { title: "Shell".to_owned(), summary: format!("in {}", word(output, "cwd")) }
}
