//! `shell_run`: one command line in a shell of its own, in the hand. Nothing survives it but files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use portcullis_base::{CommandId, EnvKey, Risk, SideEffects};
use portcullis_contract::{
    BuildError, Caller, DefaultPolicy, EndedCommand, Precondition, Prepared, Resolved, ShellFact, SpoolRef, Tool,
    ToolContext, ToolFailure,
};
use portcullis_sandbox::VirtualPath;
use portcullis_sandbox::hand::Exit;
use portcullis_sandbox::shell::Program;
use portcullis_secret::SecretText;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::line::{LineSetup, one_is_an_answer, streams, without_nul};
use super::line_input::{LineInput, ran, semantics};
use super::line_surroundings::PlannedLine;
use super::view::StateView;
use super::{BringsVariables, ShellTools, failed_words, no_shell};
use crate::executor;
use crate::files::failure;
use crate::hand::{self, CommandRun, Hand, Reach};

const DESCRIPTION: &str = "Runs one command line in a fresh shell in the sandbox, from the session's folder and with its \
environment. Nothing of the shell survives, only files. There is no network, and files that may not be read are not \
there. Exit code, stdout and stderr come back. For what only looks, `read`, `glob` and `grep` need no approval.";

/// The name under which rules speak of it.
const ACTION: &str = "shell_run";

/// A command that ended well (agent-runtime 10.3).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RunOutput {
    command_id: Option<String>,
    command: String,
    cwd: String,
    mount_path: String,
    shell_path: String,
    env_keys: Vec<String>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    timed_out: bool,
    duration_ms: u64,
    stdout: SpoolRef,
    stderr: SpoolRef,
    shell_state: Option<StateView>,
}

/// The shell tools and the hand that run one command.
struct CommandRunner {
    shell: ShellTools,
    hand: Hand,
}

/// Over inputs with or without variables of their own.
pub(crate) fn tool<I>(shell: ShellTools, hand: Hand) -> Result<Tool, BuildError>
where
    I: BringsVariables<Call = LineInput> + DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    let parts = Arc::new(CommandRunner { shell, hand });
    let (named, planned, checked) = (Arc::clone(&parts), Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<I, RunOutput>(DESCRIPTION)
        .semantics(semantics(DefaultPolicy::AskPinned))
        .executor(executor(ACTION))
        .keyed()
        .resolve(move |input: &I, caller| {
            input.env().check()?;
            named.hand.warm();
            named.name(input.call(), &input.env().values(), caller)
        })
        .plan_access(move |input, resolved| {
            let mut plan = planned.shell.touched(ACTION, &input.call().command, resolved);
            plan.extend(input.env().accesses(Risk::Write));
            plan
        })
        .precheck(move |input: Arc<I>, resolved, caller| {
            let prepared = checked.shell.may_run_in(&resolved).map(|prepared| {
                let mut would = PlannedLine::new(&input.call().command, &caller, &resolved);
                would.brings = input.env().values();
                Prepared { around: Some(checked.shell.surroundings(&checked.hand, would)), ..prepared }
            });
            async move { prepared }
        })
        .timeout(|input| Some(input.call().timeout_ms.value()))
        .result_limit(|input| input.call().shown_chars())
        .execute_resolved(move |input: I, resolved, context| {
            let parts = Arc::clone(&parts);
            let env = input.env().values();
            async move { parts.run(input.into_call(), env, &resolved, &context).await }
        })
        .to_model(|_, output| streams(output))
        .to_user(|input, output| ran(&input.call().command, output))
        .build()
}

impl CommandRunner {
    fn name(
        &self,
        input: &LineInput,
        brings: &BTreeMap<EnvKey, SecretText>,
        caller: &Caller,
    ) -> Result<Resolved, Precondition> {
        without_nul(&input.command)?;
        let mut resolved = self.shell.folder_of(input.cwd.as_deref(), caller)?;
        resolved.resources.extend(self.shell.untold(caller, &LineSetup { brings, in_live_shell: false }));
        Ok(resolved)
    }

    async fn run(
        &self,
        input: LineInput,
        env: BTreeMap<EnvKey, SecretText>,
        resolved: &Resolved,
        context: &ToolContext,
    ) -> Result<RunOutput, ToolFailure> {
        input.warn_of_caps(context);
        let place = self.shell.files.place(resolved).map_err(failure)?;
        let cwd = place.path().clone();
        let mount_path = place.mount().root().as_str().to_owned();
        let shell = Program::installed().ok_or_else(no_shell)?.path();
        let argv: Vec<OsString> = vec![shell.into(), "-c".into(), input.command.clone().into()];
        let mut plan = self.hand.plan(context.caller(), argv, &cwd, Reach::Writable).await?;
        plan.also(&env);
        let env_keys = plan.env_names.clone();
        let ran = self.hand.run_line(context, &input.command, plan).await?;
        // From here on it has run, whatever became of it.
        if !ran.never_ran {
            hand::ran_to_its_end(context, &cwd);
        }
        let command_id = self.shell.book.fresh_command();
        let (exit_code, signal) = exit(&ran);
        if let Some(command_id) = command_id {
            context.shell(finished(command_id, &input.command, &cwd, &ran));
        }
        match (exit_code, one_is_an_answer(&input.command)) {
            (Some(0), _) => {}
            (Some(1), Some(nothing_found)) => {
                if nothing_found {
                    context.nothing_found();
                }
            }
            _ => {
                return Err(match &ran.limit {
                    Some(limit) => limit.failure().with_exit(exit_code, signal),
                    None if ran.never_ran => ToolFailure::command(exit_code, signal, ended_words(&ran))
                        .with_side_effects(SideEffects::none()),
                    None => ToolFailure::command(exit_code, signal, ended_words(&ran)),
                });
            }
        }
        let (_, (_, shell_state)) = self.shell.after(context, |_, _| ()).await?;
        Ok(RunOutput {
            command_id: command_id.map(|id| id.to_string()),
            command: input.command,
            cwd: cwd.as_str().to_owned(),
            mount_path,
            shell_path: shell.to_owned(),
            env_keys,
            exit_code,
            signal,
            timed_out: ran.timed_out,
            duration_ms: millis(&ran),
            stdout: ran.stdout,
            stderr: ran.stderr,
            shell_state,
        })
    }
}

fn millis(ran: &CommandRun) -> u64 {
    u64::try_from(ran.duration.as_millis()).unwrap_or(u64::MAX)
}

fn exit(ran: &CommandRun) -> (Option<i32>, Option<i32>) {
    match ran.ended.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    }
}

fn ended_words(ran: &CommandRun) -> String {
    let how = match ran.ended.exit {
        Exit::Code(code) => failed_words(code),
        Exit::Signal(signal) => format!("the command was ended by signal {signal}"),
    };
    match ran.denials.first() {
        Some(denial) => format!("{how}; {denial}"),
        None => how,
    }
}

/// The command as the session remembers it.
fn finished(command_id: CommandId, line: &str, cwd: &VirtualPath, ran: &CommandRun) -> ShellFact {
    ShellFact::Finished(Box::new(EndedCommand {
        command_id,
        command: "shell".to_owned(),
        args: vec![line.to_owned()],
        cwd: cwd.as_str().to_owned(),
        exit_code: exit(ran).0,
        timed_out: ran.timed_out,
        duration_ms: millis(ran),
        shell_id: None,
        stdout: Some(ran.stdout.clone()),
        stderr: Some(ran.stderr.clone()),
    }))
}
