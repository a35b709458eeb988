//! The `bash` of profile `code`: `{command?, restart?, timeout_ms?}`, `shell_exec` underneath (agent-runtime §7).

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_base::{Risk, RiskSet};
use portcullis_contract::{
    AccessRequest, Action, BuildError, Caller, Content, DefaultPolicy, EndedCommand, Interrupt, Precondition, Prepared,
    Resolved, Resource, ResourceKind, Semantics, ShellFact, SpoolRef, Tool, ToolContext, ToolFailure, UserText,
};
use portcullis_policy::command::{self, Builtin};
use portcullis_sandbox::VirtualPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exec::{TIMEOUT_MOST_MS, TIMEOUT_MS, ran, semantics};
use super::job::{Away, ExecOutput, Job};
use super::shells::Wanted;
use super::{Persistent, shell_key};
use crate::command::{ReadHand, ReadLine, ReadRan, installed};
use crate::count::Count;
use crate::executor;
use crate::files::failure;
use crate::shell::line::{streams, without_nul};

const DESCRIPTION: &str = "Runs a command in a persistent bash in the sandbox. Folder, exported variables and functions stay \
for the next command. Lines that can only look (ls, cat, grep, find and the like) run unasked, outside of that shell. restart starts a fresh shell, before the command if there is one. There is no network unless it was \
granted, and standard input is empty.";

#[derive(Debug, Deserialize, JsonSchema)]
struct BashInput {
    /// The command line. Absent only with restart.
    #[serde(default)]
    #[schemars(length(max = 65536))]
    command: Option<String>,
    /// Start a fresh shell.
    #[serde(default)]
    restart: Option<bool>,
    /// Milliseconds until the command is interrupted. 0 or less, or absent, means 120000; above 600000 means 600000.
    #[serde(default)]
    timeout_ms: Count<TIMEOUT_MS, TIMEOUT_MOST_MS>,
}

impl BashInput {
    fn line(&self) -> Option<&str> {
        self.command.as_deref().filter(|line| !line.trim().is_empty())
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum BashOutput {
    Ran(Box<ExecOutput>),
    /// It could only look, and did so outside of the shell.
    #[serde(rename_all = "camelCase")]
    Looked {
        read_only: bool,
        cwd: String,
        exit_code: Option<i32>,
        stdout: SpoolRef,
        stderr: SpoolRef,
        duration_ms: u64,
    },
    Restarted {
        restarted: bool,
        cwd: String,
    },
}

/// The line if it only looks and the read-only hand can run it from this folder: then it runs unasked, in that hand. What
/// is refused there, for whatever reason, is for the shell, and asks. So is a line that moves: the shell would stay there,
/// and that hand forgets it.
fn runs_read_only(reads: &ReadHand, input: &BashInput, caller: &Caller) -> Option<ReadLine> {
    let line = input.line().filter(|_| input.restart != Some(true))?;
    let plan = command::read_only(line).ok()?;
    let mut stages = plan.pipelines().iter().flat_map(|(_, pipeline)| pipeline.stages());
    if stages.any(|stage| stage.builtin() == Some(Builtin::Cd)) {
        return None;
    }
    installed(&plan).ok()?;
    let cwd = reads.cwd(caller, None).ok()?;
    reads.line(caller, plan, cwd).ok()
}

/// The same line, decided on: only a call for the shell holds keys.
fn decided_read_only(input: &BashInput, resolved: &Resolved) -> Option<ReadLine> {
    let line = input.line().filter(|_| resolved.keys.is_empty())?;
    let cwd = VirtualPath::new(resolved.cwd.as_deref()?).ok()?;
    Some(ReadLine::decided(command::read_only(line).ok()?, cwd, resolved.resources.clone()))
}

pub(super) fn tool(parts: Arc<Persistent>, reads: ReadHand) -> Result<Tool, BuildError> {
    let (named, planned, checked) = (Arc::clone(&parts), Arc::clone(&parts), Arc::clone(&parts));
    let looked = reads.clone();
    Tool::builder::<BashInput, BashOutput>(DESCRIPTION)
        .semantics(Semantics { interrupt: Interrupt::Cancel, ..semantics(DefaultPolicy::Auto) })
        .executor(executor("bash"))
        .keyed()
        .resolve(move |input: &BashInput, caller| {
            match input.line() {
                Some(line) => without_nul(line)?,
                None if input.restart == Some(true) => {}
                None => return Err(Precondition::schema("/command", "bash requires a non-empty command")),
            }
            if let Some(line) = runs_read_only(&looked, input, caller) {
                let cwd = Some(line.cwd().as_str().to_owned());
                return Ok(Resolved { resources: line.resources().to_vec(), keys: Vec::new(), cwd });
            }
            let Resolved { mut keys, resources, cwd } = named.shell.folder_of(None, caller)?;
            keys.push(shell_key(caller));
            Ok(Resolved { keys, resources, cwd })
        })
        .plan_access(move |input, resolved| match (input.line(), decided_read_only(input, resolved)) {
            (_, Some(line)) => line.requests(&Action::new("bash")),
            (Some(line), None) => planned.shell.touched("bash", line, resolved),
            (None, None) => {
                // A fresh shell reaches nothing that the old one did not.
                let own = Resource::own(ResourceKind::McpTool, "shell");
                vec![AccessRequest::new(Action::new("bash"), own, RiskSet::from([Risk::Read]))]
            }
        })
        .precheck(move |_, resolved: Resolved, _| {
            // The folder of a line that only looks was looked at already.
            let checked =
                if resolved.keys.is_empty() { Ok(Prepared::default()) } else { checked.shell.may_run_in(&resolved) };
            async move { checked }
        })
        .timeout(|input| Some(input.timeout_ms.value()))
        .execute_resolved(move |input, resolved, context| {
            let (parts, reads) = (Arc::clone(&parts), reads.clone());
            async move {
                if let Some(lowered) = input.timeout_ms.lowered("timeout_ms") {
                    context.warn(lowered);
                }
                if let Some(line) = decided_read_only(&input, &resolved) {
                    return looked_at(&reads, &input, &line, &context).await;
                }
                let restart = input.restart == Some(true);
                match input.line() {
                    Some(line) => {
                        let job = Job { line: line.to_owned(), restart, away: Away::Never, env: BTreeMap::new() };
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

/// A line in the read-only hand.
async fn looked_at(
    reads: &ReadHand,
    input: &BashInput,
    line: &ReadLine,
    context: &ToolContext,
) -> Result<BashOutput, ToolFailure> {
    let ran = reads.run(context, line).await?;
    let duration_ms = u64::try_from(ran.duration.as_millis()).unwrap_or(u64::MAX);
    if let Some(command_id) = reads.book.fresh_command() {
        context.shell(ShellFact::Finished(Box::new(EndedCommand {
            command_id,
            command: input.line().unwrap_or_default().to_owned(),
            args: Vec::new(),
            cwd: line.cwd().as_str().to_owned(),
            exit_code: ran.exit_code,
            timed_out: ran.timed_out,
            duration_ms,
            shell_id: None,
            stdout: Some(ran.stdout.clone()),
            stderr: Some(ran.stderr.clone()),
        })));
    }
    let ReadRan { exit_code, stdout, stderr, .. } = ran.judged(context, line.plan())?;
    let cwd = line.cwd().as_str().to_owned();
    Ok(BashOutput::Looked { read_only: true, cwd, exit_code, stdout, stderr, duration_ms })
}

fn restarted_words(output: &Value) -> UserText {
    let cwd = output.get("cwd").and_then(Value::as_str).unwrap_or_default();
    UserText { title: "Shell".to_owned(), summary: format!("started anew in {cwd}") }
}

impl Persistent {
    async fn restarted(&self, resolved: &Resolved, context: &ToolContext) -> Result<BashOutput, ToolFailure> {
        let place = self.shell.files.place(resolved).map_err(failure)?;
        let live = self.shells.ready(context, place.path(), Wanted::Fresh).await?;
        let cwd = live.now().inside.clone();
        context.shell(ShellFact::Cwd(cwd.clone()));
        Ok(BashOutput::Restarted { restarted: true, cwd })
    }
}
