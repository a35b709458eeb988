//! `shell_exec`: a command in the session's own shell.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{Effect, EffectSet, Risk, RiskSet};
use portcullis_contract::{
    BuildError, Concurrency, DefaultPolicy, Interrupt, Prepared, Semantics, Strategy, Timeout, Tool, UserText,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::job::{Away, ExecOutput, Job};
use super::{Persistent, shell_key};
use crate::count::Count;
use crate::executor;
use crate::hand;
use crate::shell::Brings;
use crate::shell::around::Would;
use crate::shell::line::{With, brief, streams, without_nul};
use crate::shell::run::{OUTPUT_CHARS, OUTPUT_MOST_CHARS};

const DESCRIPTION: &str = "Runs a command in this session's own shell, which is opened if there is none. Folder, exported \
variables, functions and background processes stay for the next command; folder and exported variables also outlive the \
shell. Exit code, stdout and stderr come back; standard input is empty. One command runs at a time. With background it \
returns at once and goes on; shell_wait and task_wait wait for its end.";

/// How long a command may run by default, and at most.
pub(crate) const TIMEOUT_MS: u64 = 120_000;
pub(crate) const TIMEOUT_MOST_MS: u64 = 600_000;

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
pub(crate) struct ExecInput {
    /// The command line.
    #[schemars(regex(pattern = r"\S"), length(max = 65536))]
    command: String,
    /// The folder to run in, relative to the workspace or as `/workspace/…`; the shell stays there. Absent means where it
    /// is.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    cwd: Option<String>,
    /// Milliseconds until `onTimeout`. 0 or less, or absent, means 120000; above 600000 means 600000.
    #[serde(default)]
    timeout_ms: Count<TIMEOUT_MS, TIMEOUT_MOST_MS>,
    /// How much of the output is shown at once; all of it is kept. 0 or less, or absent, means 12000; above 40000 means
    /// 40000.
    #[serde(default)]
    max_output_chars: Count<OUTPUT_CHARS, OUTPUT_MOST_CHARS>,
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

impl ExecInput {
    fn away(&self) -> Away {
        match (self.background, self.on_timeout) {
            (true, _) => Away::AtOnce,
            (false, OnTimeout::Detach) => Away::After(Duration::from_millis(self.timeout_ms.value())),
            (false, OnTimeout::Interrupt) => Away::Never,
        }
    }
}

/// What a tool is that runs commands in the shell.
pub(super) fn semantics(default_policy: DefaultPolicy) -> Semantics {
    Semantics {
        risk: RiskSet::from([Risk::Execute, Risk::Write]),
        effects: EffectSet::from([Effect::SandboxExecute, Effect::MemoryWrite]),
        destructive: true,
        concurrency: Concurrency::Keyed,
        timeout: Timeout { default_ms: TIMEOUT_MS, max_ms: TIMEOUT_MOST_MS },
        sandbox: Some(hand::PROFILE.to_owned()),
        default_policy,
        truncation: Strategy::AroundErrors,
        // A command is ended when somebody interrupts it (tool-contract §14).
        interrupt: Interrupt::Cancel,
        ..Semantics::mutating()
    }
}

/// Over inputs with or without variables of their own.
pub(super) fn tool<I>(parts: Arc<Persistent>) -> Result<Tool, BuildError>
where
    I: Brings<Call = ExecInput> + DeserializeOwned + JsonSchema + Send + Sync + 'static,
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
            without_nul(&input.command)?;
            named.shells.hand().warm();
            let mut resolved = named.shell.folder_of(input.cwd.as_deref(), caller)?;
            resolved.keys.push(shell_key(caller));
            let with = With { brings: &brings, in_live_shell: !input.restart };
            resolved.resources.extend(named.shell.untold(caller, &with));
            Ok(resolved)
        })
        .plan_access(move |input, resolved| {
            let mut plan = planned.shell.touched("shell_exec", &input.call().command, resolved);
            plan.extend(input.env().accesses(Risk::Write));
            plan
        })
        .precheck(move |input: Arc<I>, resolved, caller| {
            let parts = Arc::clone(&checked);
            async move {
                parts.shell.room_for(&caller, &input.env().names()).await?;
                let prepared = parts.shell.may_run_in(&resolved)?;
                let mut would = Would::new(&input.call().command, &caller, &resolved);
                (would.brings, would.in_live_shell) = (input.env().values(), !input.call().restart);
                Ok(Prepared { around: Some(parts.shell.surroundings(parts.shells.hand(), would)), ..prepared })
            }
        })
        // One that goes away is not ended by the clock of its call.
        .timeout(|input| match input.call().away() {
            Away::Never => Some(input.call().timeout_ms.value()),
            Away::AtOnce | Away::After(_) => Some(TIMEOUT_MOST_MS),
        })
        .result_limit(|input| usize::try_from(input.call().max_output_chars.value()).ok())
        .execute_resolved(move |input: I, resolved, context| {
            let parts = Arc::clone(&parts);
            let env = input.env().values();
            let input = input.into_call();
            async move {
                for lowered in [input.timeout_ms.lowered("timeoutMs"), input.max_output_chars.lowered("maxOutputChars")]
                {
                    lowered.into_iter().for_each(|text| context.warn(text));
                }
                let job = Job { away: input.away(), line: input.command, restart: input.restart, env };
                parts.run(job, &resolved, &context).await
            }
        })
        .to_model(|_, output| streams(output))
        .to_user(|input, output| ran(&input.call().command, output))
        .build()
}

/// A command that ended, for people.
pub(super) fn ran(line: &str, output: &Value) -> UserText {
    let number = |field: &str| output.get(field).and_then(Value::as_i64).unwrap_or_default();
    UserText {
        title: format!("Ran {}", brief(line)),
        summary: format!("exit code {} in {} ms", number("exitCode"), number("durationMs")),
    }
}
