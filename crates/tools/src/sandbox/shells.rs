//! The actions of the persistent shell: its tools in the words of agent-runtime 10.3.

use portcullis_contract::{BuildError, Reshape};
use serde_json::{Map, Value};

use super::{Actions, FirstClassTools, SandboxTools, pick, reshape, word};
use crate::shell::persistent_with_env;

/// What a command takes: no task is waited for here, so it never goes on in the background.
const EXECUTES: &[&str] = &["command", "cwd", "env", "restart", "timeoutMs", "maxOutputChars"];
const EXECUTES_WORDS: &[(&str, &str)] = &[
    (
        "env",
        "Variables that are exported first and are the session's from then on, by name. Their values are shown nowhere.",
    ),
    (
        "timeoutMs",
        "Milliseconds until it is interrupted. 0 or less, or absent, means 120000; above 600000 means 600000.",
    ),
];

const EXECUTED: [&str; 16] = [
    "shellId",
    "command",
    "cwd",
    "envKeys",
    "exitCode",
    "timedOut",
    "stdout",
    "stderr",
    "shellPath",
    "startedAt",
    "updatedAt",
    "lastCommandAt",
    "durationMs",
    "commandCount",
    "status",
    "persistent",
];

pub(super) fn actions(own: &FirstClassTools, parts: &SandboxTools) -> Result<Actions, BuildError> {
    let (open, exec) = persistent_with_env(parts.shell.clone(), parts.shells.clone())?;
    let inspect = own.tool("shell_describe")?.reshaped(document("inspect_persistent_shell", Some(&[]), inspected))?;
    let open = open.reshaped(document("open_persistent_shell", None, shell_of))?;
    let shape = reshape("exec_persistent_shell", Some(EXECUTES), |_, output| pick(output, &EXECUTED).into());
    let exec = exec.reshaped(Reshape { words: EXECUTES_WORDS, ..shape })?;
    let wait = own.tool("shell_wait")?.reshaped(document("wait_persistent_shell", None, waited))?;
    let close = own.tool("shell_close")?.reshaped(document("close_persistent_shell", None, closed))?;
    Ok([
        ("inspect_persistent_shell", inspect),
        ("open_persistent_shell", open),
        ("exec_persistent_shell", exec),
        ("wait_persistent_shell", wait),
        ("close_persistent_shell", close),
    ]
    .into())
}

/// An action whose result is a document and nothing else.
fn document(name: &str, takes: Option<&'static [&'static str]>, made: fn(&Value) -> Value) -> Reshape {
    Reshape { shows_document: true, ..reshape(name, takes, move |_, output| made(output)) }
}

/// The shell's own part of a document.
fn shell_of(output: &Value) -> Value {
    output.get("persistentShell").cloned().unwrap_or(Value::Null)
}

fn inspected(output: &Value) -> Value {
    let shell = shell_of(output);
    let active = word(&shell, "status") == "active";
    Map::from_iter([("active".to_owned(), active.into()), ("persistentShell".to_owned(), shell)]).into()
}

fn waited(output: &Value) -> Value {
    let mut document = pick(output, &["status", "persistentShell", "result"]);
    if output.get("error").is_some_and(|error| !error.is_null()) {
        document.extend(pick(output, &["error"]));
    }
    document.into()
}

fn closed(output: &Value) -> Value {
    let mut document = pick(output, &["closed"]);
    if output.get("shellId").is_some_and(|id| !id.is_null()) {
        document.extend(pick(output, &["shellId"]));
    }
    document.into()
}
