//! The `bash` of profile `code`: `{command?, restart?, timeout_ms?}`, `shell_exec` underneath (agent-runtime §7).

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_base::{Risk, RiskSet};
use portcullis_contract::{
    AccessRequest, Action, BuildError, Content, DefaultPolicy, NamedKind, Precondition, Prepared, Resolved, Resource,
    ShellFact, Tool, ToolContext, ToolFailure, UserText,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::{BackgroundAfter, ExecOutput, Job};
use super::shells::ShellChoice;
use super::{Persistent, read_only_lines, shell_key};
use crate::command::ReadHand;
use crate::count::Count;
use crate::executor;
use crate::files::failure;
use crate::shell::line::{LineSetup, streams, without_nul};
use crate::shell::line_input::{TIMEOUT_MOST_MS, TIMEOUT_MS, ran, semantics};
use crate::shell::line_surroundings::PlannedLine;

pub(super) const DESCRIPTION: &str = "Runs a command in a persistent bash in the sandbox. Folder, exported variables and functions stay \
for the next command. Lines that can only look (ls, cat, grep, find and the like) run unasked, outside of that shell. restart starts a fresh shell, before the command if there is one. There is no network unless it was \
granted, and standard input is empty.";

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BashInput {
    /// The command line. Absent only with restart.
    #[serde(default)]
    #[schemars(length(max = 65536))]
    command: Option<String>,
    /// Start a fresh shell.
    #[serde(default)]
    pub(super) restart: Option<bool>,
    /// Milliseconds until the command is interrupted. 0 or less, or absent, means 120000; above 600000 means 600000.
    #[serde(default)]
    pub(super) timeout_ms: Count<TIMEOUT_MS, TIMEOUT_MOST_MS>,
}

impl BashInput {
    pub(super) fn line(&self) -> Option<&str> {
        self.command.as_deref().filter(|line| !line.trim().is_empty())
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum BashOutput {
    Ran(Box<ExecOutput>),
    Restarted { restarted: bool, cwd: String },
}

pub(super) fn tool(parts: Arc<Persistent>, reads: ReadHand) -> Result<Tool, BuildError> {
    let (named, planned, checked) = (Arc::clone(&parts), Arc::clone(&parts), Arc::clone(&parts));
    let looks = read_only_lines::tool(reads.clone())?;
    Tool::builder::<BashInput, BashOutput>(DESCRIPTION)
        .rather(looks, move |input, caller| read_only_lines::can(&reads, input, caller))
        .semantics(semantics(DefaultPolicy::Auto))
        .executor(executor("bash"))
        .keyed()
        .resolve(move |input: &BashInput, caller| {
            named.shells.hand().warm();
            match input.line() {
                Some(line) => without_nul(line)?,
                None if input.restart == Some(true) => {}
                None => return Err(Precondition::schema("/command", "bash requires a non-empty command")),
            }
            let mut resolved = named.shell.folder_of(None, caller)?;
            resolved.keys.push(shell_key(caller));
            if input.line().is_some() {
                let with = LineSetup { brings: &BTreeMap::new(), in_live_shell: input.restart != Some(true) };
                resolved.resources.extend(named.shell.untold(caller, &with));
            }
            Ok(resolved)
        })
        .plan_access(move |input, resolved| match input.line() {
            Some(line) => planned.shell.touched("bash", line, resolved),
            None => {
                // A fresh shell reaches nothing that the old one did not.
                let own = Resource::own(NamedKind::Shell, "shell");
                vec![AccessRequest::new(Action::new("bash"), own, RiskSet::from([Risk::Read]))]
            }
        })
        .precheck(move |input: Arc<BashInput>, resolved: Resolved, caller| {
            let prepared = checked.shell.may_run_in(&resolved).map(|prepared| {
                let around = input.line().map(|line| {
                    let mut would = PlannedLine::new(line, &caller, &resolved);
                    would.in_live_shell = input.restart != Some(true);
                    checked.shell.surroundings(checked.shells.hand(), would)
                });
                Prepared { around, ..prepared }
            });
            async move { prepared }
        })
        .timeout(|input| Some(input.timeout_ms.value()))
        .execute_resolved(move |input, resolved, context| {
            let parts = Arc::clone(&parts);
            async move {
                if let Some(lowered) = input.timeout_ms.lowered("timeout_ms") {
                    context.warn(lowered);
                }
                let restart = input.restart == Some(true);
                match input.line() {
                    Some(line) => {
                        let job =
                            Job { line: line.to_owned(), restart, away: BackgroundAfter::Never, env: BTreeMap::new() };
                        parts.run(job, &resolved, &context).await.map(|ran| BashOutput::Ran(Box::new(ran)))
                    }
                    None => parts.restarted(&resolved, &context).await,
                }
            }
        })
        .to_model(|_, output| match output.get("restarted") {
            Some(_) => vec![Content::text("the shell was started anew")],
            None => streams(output),
        })
        .to_user(|input, output| match input.line() {
            Some(line) => ran(line, output),
            None => restarted_words(output),
        })
        .build()
}

fn restarted_words(output: &Value) -> UserText {
    let cwd = output.get("cwd").and_then(Value::as_str).unwrap_or_default();
    UserText { title: "Shell".to_owned(), summary: format!("started anew in {cwd}") }
}

impl Persistent {
    async fn restarted(&self, resolved: &Resolved, context: &ToolContext) -> Result<BashOutput, ToolFailure> {
        let place = self.shell.files.place(resolved).map_err(failure)?;
        let live = self.shells.ready(context, place.path(), ShellChoice::Fresh).await?;
        let cwd = live.now().inside.clone();
        context.shell(ShellFact::Cwd(cwd.clone()));
        Ok(BashOutput::Restarted { restarted: true, cwd })
    }
}
