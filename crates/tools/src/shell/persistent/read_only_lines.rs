//! The lines of profile `code`'s `bash` that can only look: they run unasked in the read-only hand, outside of the shell,
//! and are recorded as what they are.

use portcullis_base::{Effect, EffectSet};
use portcullis_command::{self as command, Builtin};
use portcullis_contract::{
    Action, BuildError, Caller, DefaultPolicy, Interrupt, Precondition, Resolved, Semantics, SpoolRef, Strategy,
    Timeout, Tool, ToolContext, ToolFailure,
};
use portcullis_sandbox::VirtualPath;
use schemars::JsonSchema;
use serde::Serialize;

use super::stock::{BashInput, DESCRIPTION};
use crate::command::{ReadHand, ReadLine, ReadRan, installed};
use crate::executor;
use crate::hand::READ_ONLY_PROFILE;
use crate::shell::line::streams;
use crate::shell::line_input::{TIMEOUT_MOST_MS, TIMEOUT_MS, ran};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LookOutput {
    /// It ran outside of the shell, which knows nothing of it.
    read_only: bool,
    cwd: String,
    exit_code: Option<i32>,
    stdout: SpoolRef,
    stderr: SpoolRef,
    duration_ms: u64,
}

/// Whether the read-only hand can run the line from this folder. What is refused there, for whatever reason, is for the
/// shell, and asks.
pub(super) fn can(reads: &ReadHand, input: &BashInput, caller: &Caller) -> bool {
    line_of(reads, input, caller).is_ok_and(|line| line.is_some())
}

/// The line as the read-only hand would run it. A line that moves is for the shell: that would stay there, and this hand
/// forgets it.
fn line_of(reads: &ReadHand, input: &BashInput, caller: &Caller) -> Result<Option<ReadLine>, Precondition> {
    let line = input.line().filter(|_| input.restart != Some(true));
    let Some(plan) = line.and_then(|line| command::read_only(line).ok()) else { return Ok(None) };
    let mut stages = plan.pipelines().iter().flat_map(|(_, pipeline)| pipeline.stages());
    if stages.any(|stage| stage.builtin() == Some(Builtin::Cd)) || installed(&plan).is_err() {
        return Ok(None);
    }
    let cwd = reads.cwd(caller, None)?;
    reads.line(caller, plan, cwd).map(Some)
}

/// The same line, decided on.
fn decided(input: &BashInput, resolved: &Resolved) -> Option<ReadLine> {
    let cwd = VirtualPath::new(resolved.cwd.as_deref()?).ok()?;
    Some(ReadLine::decided(command::read_only(input.line()?).ok()?, cwd, resolved.resources.clone()))
}

pub(super) fn tool(reads: ReadHand) -> Result<Tool, BuildError> {
    let named = reads.clone();
    Tool::builder::<BashInput, LookOutput>(DESCRIPTION)
        .semantics(Semantics {
            effects: EffectSet::from([Effect::SandboxExecute]),
            timeout: Timeout { default_ms: TIMEOUT_MS, max_ms: TIMEOUT_MOST_MS },
            sandbox: Some(READ_ONLY_PROFILE.to_owned()),
            default_policy: DefaultPolicy::Auto,
            truncation: Strategy::AroundErrors,
            interrupt: Interrupt::Cancel,
            ..Semantics::read_only()
        })
        .executor(executor("bash"))
        .resolve(move |input: &BashInput, caller| match line_of(&named, input, caller)? {
            Some(line) => {
                let cwd = Some(line.cwd().as_str().to_owned());
                Ok(Resolved { resources: line.resources().to_vec(), keys: Vec::new(), cwd })
            }
            None => Err(changed()),
        })
        .plan_access(|input, resolved| {
            decided(input, resolved).map(|line| line.requests(&Action::new("bash"))).unwrap_or_default()
        })
        .timeout(|input| Some(input.timeout_ms.value()))
        .execute_resolved(move |input, resolved, context| {
            let reads = reads.clone();
            async move {
                if let Some(lowered) = input.timeout_ms.lowered("timeout_ms") {
                    context.warn(lowered);
                }
                let line = decided(&input, &resolved).ok_or_else(|| ToolFailure::precondition(changed()))?;
                look(&reads, &input, &line, &context).await
            }
        })
        .to_model(|_, output| streams(output))
        .to_user(|input, output| ran(input.line().unwrap_or_default(), output))
        .build()
}

/// Between the choice and the call another process removed the program that it needs.
fn changed() -> Precondition {
    Precondition::schema("/command", "the command cannot be run as it could a moment ago; call again")
}

async fn look(
    reads: &ReadHand,
    input: &BashInput,
    line: &ReadLine,
    context: &ToolContext,
) -> Result<LookOutput, ToolFailure> {
    let ran = reads.run(context, line).await?;
    let duration_ms = ran.duration_ms();
    let command = input.line().unwrap_or_default().to_owned();
    reads.remember(context, line, &ran, (command, Vec::new()));
    let ReadRan { exit_code, stdout, stderr, .. } = ran.judged(context, line.plan())?;
    let cwd = line.cwd().as_str().to_owned();
    Ok(LookOutput { read_only: true, cwd, exit_code, stdout, stderr, duration_ms })
}
