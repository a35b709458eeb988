//! `shell_exec`: a command in the session's own shell.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::Risk;
use portcullis_contract::{BuildError, DefaultPolicy, Prepared, Semantics, Tool};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::job::{BackgroundAfter, ExecOutput, Job};
use super::{Persistent, shell_key};
use crate::executor;
use crate::shell::BringsVariables;
use crate::shell::line::{LineSetup, streams, without_nul};
use crate::shell::line_input::{LineInput, TIMEOUT_MOST_MS, describe, ran, semantics};
use crate::shell::line_surroundings::PlannedLine;

const DESCRIPTION: &str = "Runs a command in this session's own shell, which is opened if there is none. Folder, exported \
variables, functions and background processes stay for the next command; folder and exported variables also outlive the \
shell. Exit code, stdout and stderr come back; standard input is empty. One command runs at a time. With background it \
returns at once and goes on; shell_wait and task_wait wait for its end.";

/// What happens to a command that runs too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum OnTimeout {
    /// It is interrupted.
    #[default]
    Interrupt,
    /// It goes on in the background.
    Detach,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = in_a_live_shell)]
pub(crate) struct ExecInput {
    #[serde(flatten)]
    line: LineInput,
    /// Start a fresh shell first.
    #[serde(default)]
    restart: bool,
    /// Return at once; the command goes on as a task.
    #[serde(default)]
    background: bool,
    /// What happens after `timeoutMs`: `interrupt` stops the command, `detach` lets it go on as a task.
    #[serde(default)]
    on_timeout: OnTimeout,
}

/// A shell that lives stays where it was sent.
fn in_a_live_shell(schema: &mut Schema) {
    let folder = "The folder to run in, relative to the workspace or as `/workspace/…`; the shell stays there. Absent means where it\nis.";
    describe(schema, "cwd", folder);
    let end = "Milliseconds until `onTimeout`. 0 or less, or absent, means 120000; above 600000 means 600000.";
    describe(schema, "timeoutMs", end);
}

impl ExecInput {
    fn away(&self) -> BackgroundAfter {
        match (self.background, self.on_timeout) {
            (true, _) => BackgroundAfter::AtOnce,
            (false, OnTimeout::Detach) => BackgroundAfter::After(Duration::from_millis(self.line.timeout_ms.value())),
            (false, OnTimeout::Interrupt) => BackgroundAfter::Never,
        }
    }
}

/// Over inputs with or without variables of their own.
pub(super) fn tool<I>(parts: Arc<Persistent>) -> Result<Tool, BuildError>
where
    I: BringsVariables<Call = ExecInput> + DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    let (named, planned, checked) = (Arc::clone(&parts), Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<I, ExecOutput>(DESCRIPTION)
        .semantics(Semantics { backgroundable: true, ..semantics(DefaultPolicy::AskPinned) })
        .executor(executor("shell_exec"))
        .keyed()
        .resolve(move |input: &I, caller| {
            input.env().check()?;
            let brings = input.env().values();
            let input = input.call();
            without_nul(&input.line.command)?;
            named.shells.hand().warm();
            let mut resolved = named.shell.folder_of(input.line.cwd.as_deref(), caller)?;
            resolved.keys.push(shell_key(caller));
            let with = LineSetup { brings: &brings, in_live_shell: !input.restart };
            resolved.resources.extend(named.shell.untold(caller, &with));
            Ok(resolved)
        })
        .plan_access(move |input, resolved| {
            let mut plan = planned.shell.touched("shell_exec", &input.call().line.command, resolved);
            plan.extend(input.env().accesses(Risk::Write));
            plan
        })
        .precheck(move |input: Arc<I>, resolved, caller| {
            let parts = Arc::clone(&checked);
            async move {
                let prepared = parts.shell.may_open(&caller, &input.env(), &resolved).await?;
                let mut would = PlannedLine::new(&input.call().line.command, &caller, &resolved);
                (would.brings, would.in_live_shell) = (input.env().values(), !input.call().restart);
                Ok(Prepared { around: Some(parts.shell.surroundings(parts.shells.hand(), would)), ..prepared })
            }
        })
        // One that goes away is not ended by the clock of its call.
        .timeout(|input| match input.call().away() {
            BackgroundAfter::Never => Some(input.call().line.timeout_ms.value()),
            BackgroundAfter::AtOnce | BackgroundAfter::After(_) => Some(TIMEOUT_MOST_MS),
        })
        .result_limit(|input| input.call().line.shown_chars())
        .execute_resolved(move |input: I, resolved, context| {
            let parts = Arc::clone(&parts);
            let env = input.env().values();
            let input = input.into_call();
            async move {
                input.line.warn_of_caps(&context);
                let job = Job { away: input.away(), line: input.line.command, restart: input.restart, env };
                parts.run(job, &resolved, &context).await
            }
        })
        .to_model(|_, output| streams(output))
        .to_user(|input, output| ran(&input.call().line.command, output))
        .build()
}
