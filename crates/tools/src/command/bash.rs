//! `bash` of the managed profile: the read-only hand as a tool (agent-runtime 7.8).

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_base::{Effect, EffectSet, EnvKey, Reason, Risk};
use portcullis_command::{self as command, NotReadOnly, ReadPlan};
use portcullis_contract::{
    Action, BuildError, Content, Precondition, Prepared, Resolved, Semantics, SpoolRef, Timeout, Tool, ToolContext,
    ToolFailure, ToolName, UserText,
};
use portcullis_sandbox::VirtualPath;
use portcullis_secret::SecretText;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ReadHand, ReadLine, ReadRan};
use crate::count::Count;
use crate::hand::READ_ONLY_PROFILE;
use crate::shell::{BringsVariables, NoVariables, ShellTools, StateView, WithEnv};
use crate::{executor, instead, tool_name};

const DESCRIPTION: &str = "Runs a command line that only reads, in a sandbox without a network in which nothing can be \
written: ls, cat, head, tail, wc, grep, rg, find, sed -n, sort, uniq, cut, diff, jq, stat, du, tree and the like, as \
pipelines joined by |, ;, && and ||, with cd, quotes, file patterns, < FILE and 2>/dev/null. It is no shell: there are no \
variables, substitutions, other redirections, loops or other programs; run those with shell_run. Give args to run \
one program with its words exactly as they are.";

const DEFAULT_MS: u64 = 15_000;
pub(crate) const MAX_MS: u64 = 60_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BashInput {
    /// A command line; with args, the name of one program.
    #[schemars(regex(pattern = r"\S"), length(max = 65536))]
    command: String,
    /// The words of one program, taken as they are: no quotes, no patterns.
    #[serde(default)]
    args: Option<Vec<String>>,
    /// The folder to run in, relative to the workspace. Absent or empty means the session's folder (shell_set_cwd).
    #[serde(default)]
    cwd: Option<String>,
    /// How long it may run. 0 or less, or absent, means 15000; above 60000 means 60000.
    #[serde(default)]
    timeout_ms: Count<DEFAULT_MS, MAX_MS>,
    /// How much of its output to show; all of it is kept. 0 or less, or absent, means 12000; above 40000 means 40000.
    #[serde(default)]
    max_output_chars: Count<12_000, 40_000>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BashOutput {
    command: String,
    args: Vec<String>,
    /// Of every stage that ran, in order.
    stage_exit_codes: Vec<i32>,
    cwd: String,
    env_keys: Vec<String>,
    mount_path: String,
    exit_code: Option<i32>,
    signal: Option<i32>,
    timed_out: bool,
    stdout: SpoolRef,
    stderr: SpoolRef,
    duration_ms: u64,
    /// The shell as it was when the line began.
    shell_state: Option<StateView>,
}

impl BashInput {
    fn plan(&self) -> Result<ReadPlan, NotReadOnly> {
        match &self.args {
            Some(args) => ReadPlan::from_argv(self.command.trim(), args),
            None => command::read_only(&self.command),
        }
    }

    /// The words that a person sees and the log keeps.
    fn words(&self) -> (String, Vec<String>) {
        match &self.args {
            Some(args) => (self.command.trim().to_owned(), args.clone()),
            None => (self.command.clone(), Vec::new()),
        }
    }
}

/// `bash`, by its name.
///
/// # Errors
/// Never for the tool as it is written: a tool that contradicts itself is a defect of this crate.
pub fn read_tools(shell: ShellTools, hand: ReadHand) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    Ok(BTreeMap::from([(tool_name("bash"), tool::<NoVariables<BashInput>>(hand, shell)?)]))
}

/// The same with variables of a call.
pub(crate) fn read_with_env(shell: ShellTools, hand: ReadHand) -> Result<Tool, BuildError> {
    tool::<WithEnv<BashInput>>(hand, shell)
}

/// Over inputs with or without variables of their own.
fn tool<I>(hand: ReadHand, shell: ShellTools) -> Result<Tool, BuildError>
where
    I: BringsVariables<Call = BashInput> + DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    let hand = Arc::new(hand);
    let named = Arc::clone(&hand);
    Tool::builder::<I, BashOutput>(DESCRIPTION)
        .semantics(Semantics {
            effects: EffectSet::from([Effect::SandboxExecute]),
            timeout: Timeout { default_ms: DEFAULT_MS, max_ms: MAX_MS },
            sandbox: Some(READ_ONLY_PROFILE.to_owned()),
            ..Semantics::read_only()
        })
        .executor(executor("bash"))
        .timeout(|input: &I| Some(input.call().timeout_ms.value()))
        .result_limit(|input| usize::try_from(input.call().max_output_chars.value()).ok())
        .resolve(move |input: &I, caller| {
            input.env().check()?;
            let input = input.call();
            let cwd = named.cwd(caller, input.cwd.as_deref())?;
            let plan = input.plan().map_err(|why| named.refused(&why, input, &cwd))?;
            let line = named.line(caller, plan, cwd)?;
            Ok(Resolved { resources: line.resources, keys: Vec::new(), cwd: Some(line.cwd.as_str().to_owned()) })
        })
        .plan_access(|input, resolved| {
            let line = line_of(input.call(), resolved);
            let mut plan = line.map(|line| line.requests(&Action::new("bash"))).unwrap_or_default();
            plan.extend(input.env().accesses(Risk::Read));
            plan
        })
        .precheck(|input: Arc<I>, resolved, _| {
            let checked = line_of(input.call(), &resolved).and_then(|line| super::installed(line.plan()));
            async move { checked.map(|()| Prepared::default()) }
        })
        .execute_resolved(move |input: I, resolved, context| {
            let (hand, shell) = (Arc::clone(&hand), shell.clone());
            let env = input.env().values();
            async move {
                let input = input.into_call();
                let line = line_of(&input, &resolved).map_err(ToolFailure::precondition)?;
                execute(&hand, &shell, (&input, env), &line, &context).await
            }
        })
        .to_model(|_, output| said(output))
        .to_user(|input, output| to_user(input.call(), output))
        .build()
}

/// The line that was decided on. Reading it again is pure, so it is the same.
fn line_of(input: &BashInput, resolved: &Resolved) -> Result<ReadLine, Precondition> {
    let plan = input.plan().map_err(|why| Precondition::failed(why.reason, instead::refusal(&why)))?;
    let cwd = resolved.cwd.as_deref().unwrap_or("/workspace");
    let cwd = VirtualPath::new(cwd).map_err(|why| Precondition::failed(Reason::CwdInvalid, why.to_string()))?;
    Ok(ReadLine::decided(plan, cwd, resolved.resources.clone()))
}

impl ReadHand {
    /// Why a line is not run, with what does the same.
    fn refused(&self, why: &NotReadOnly, input: &BashInput, cwd: &VirtualPath) -> Precondition {
        let mounts: Vec<&str> = self.files.mounts.mounts().map(|mount| mount.root().as_str()).collect();
        let at = instead::Whereabouts { cwd: cwd.as_str(), mounts: &mounts };
        let mapped = match &input.args {
            Some(args) => {
                let argv: Vec<String> = std::iter::once(&input.command).chain(args).cloned().collect();
                instead::mapped_argv(&argv, at)
            }
            None => instead::mapped(&input.command, at),
        };
        let text = match mapped {
            Some(other) => format!("{}; use {} {} instead", why.what, other.tool, other.input),
            None => instead::refusal(why),
        };
        Precondition::failed(why.reason, text)
    }
}

async fn execute(
    hand: &ReadHand,
    shell: &ShellTools,
    (input, env): (&BashInput, BTreeMap<EnvKey, SecretText>),
    line: &ReadLine,
    context: &ToolContext,
) -> Result<BashOutput, ToolFailure> {
    for lowered in [input.timeout_ms.lowered("timeoutMs"), input.max_output_chars.lowered("maxOutputChars")] {
        lowered.into_iter().for_each(|lowered| context.warn(lowered));
    }
    let shell_state = shell.state(context).await?;
    let (command, args) = input.words();
    let ran = hand.run_with(context, line, env).await?;
    let duration_ms = ran.duration_ms();
    hand.remember(context, line, &ran, (command.clone(), args.clone()));
    let mount_path = hand.files.mounts.resolve(line.cwd().as_str());
    let mount_path = mount_path.map_or_else(|_| String::new(), |place| place.mount().root().as_str().to_owned());
    let ReadRan { stage_exit_codes, exit_code, signal, timed_out, stdout, stderr, env_names, .. } =
        ran.judged(context, line.plan())?;
    Ok(BashOutput {
        command,
        args,
        stage_exit_codes,
        cwd: line.cwd().as_str().to_owned(),
        env_keys: env_names,
        mount_path,
        exit_code,
        signal,
        timed_out,
        stdout,
        stderr,
        duration_ms,
        shell_state,
    })
}

/// Both streams as they are, and nothing besides: what a shell would show.
fn said(output: &Value) -> Vec<Content> {
    let stream = |name: &str| SpoolRef::deserialize(output.get(name)?).ok().filter(|spool| spool.kept_bytes > 0);
    let parts: Vec<Content> = ["stdout", "stderr"].into_iter().filter_map(stream).map(Content::Spool).collect();
    if !parts.is_empty() {
        return parts;
    }
    let code = output.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
    vec![Content::text(format!("no output, exit code {code}\n"))]
}

fn to_user(input: &BashInput, output: &Value) -> UserText {
    let (command, args) = input.words();
    let title = std::iter::once(command).chain(args).collect::<Vec<_>>().join(" ");
    let code = output.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
    UserText { title, summary: format!("exit code {code}") }
}
