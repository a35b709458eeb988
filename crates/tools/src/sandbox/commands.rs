//! `run_command` and `run_shell`: `bash` and `shell_run` in the words of agent-runtime 10.3, with variables of the
//! call.

use portcullis_contract::BuildError;
use serde_json::{Value, json};

use super::{Actions, SandboxTools, pick, reshape};
use crate::command::read_with_env;
use crate::shell::run_with_env;

/// What both tell.
const RAN: [&str; 12] = [
    "command",
    "args",
    "stageExitCodes",
    "cwd",
    "envKeys",
    "mountPath",
    "exitCode",
    "signal",
    "timedOut",
    "stdout",
    "stderr",
    "durationMs",
];

pub(super) fn actions(parts: &SandboxTools) -> Result<Actions, BuildError> {
    let shape = reshape("run_command", None, |_, output| pick(output, &RAN).into());
    let read = read_with_env(parts.shell.clone(), parts.reads.clone())?.reshaped(shape)?;
    let shape = reshape("run_shell", None, |_, output| shell(output));
    let run = run_with_env(parts.shell.clone(), parts.hand.clone())?.reshaped(shape)?;
    Ok([("run_command", read), ("run_shell", run)].into())
}

/// A shell takes the line whole and is one stage.
fn shell(output: &Value) -> Value {
    let mut document = pick(output, &RAN);
    document.insert("args".to_owned(), json!([]));
    document.insert("stageExitCodes".to_owned(), json!([output.get("exitCode")]));
    document.extend(pick(output, &["shellPath"]));
    document.into()
}
