//! The actions of the persistent shell: its tools in the words of agent-runtime 10.3.

use portcullis_contract::{BuildError, Reshape};
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::{Actions, Own, SandboxTools, pick, reshape, word};
use crate::count::Count;
use crate::shell::persistent_with_env;
use crate::shell::run::{OUTPUT_CHARS, OUTPUT_MOST_CHARS};
use crate::shell::{EXEC_MOST_MS, EXEC_MS, EnvInput, OpenInput, WithEnv};

#[derive(JsonSchema)]
struct Nothing {}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the schema of it; the tool itself reads the values")]
struct Exec {
    /// The command line.
    #[schemars(regex(pattern = r"\S"), length(max = 65536))]
    command: String,
    /// The folder to run in, relative to the workspace or as `/workspace/…`; the shell stays there. Absent means where it
    /// is.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    cwd: Option<String>,
    /// Variables that are exported first and are the session's from then on, by name. Their values are shown nowhere.
    #[serde(default)]
    env: EnvInput,
    /// Start a fresh shell first.
    #[serde(default)]
    restart: bool,
    /// Milliseconds until it is interrupted. 0 or less, or absent, means 120000; above 600000 means 600000.
    #[serde(default)]
    timeout_ms: Count<EXEC_MS, EXEC_MOST_MS>,
    /// How much of the output is shown at once; all of it is kept. 0 or less, or absent, means 12000; above 40000 means
    /// 40000.
    #[serde(default)]
    max_output_chars: Count<OUTPUT_CHARS, OUTPUT_MOST_CHARS>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the schema of it; the tool itself reads the values")]
struct Wait {
    /// Milliseconds to wait at most. 0 or less, or absent, means 1000; above 60000 means 60000.
    #[serde(default)]
    timeout_ms: Count<1_000, 60_000>,
}

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

pub(super) fn actions(own: &Own, parts: &SandboxTools) -> Result<Actions, BuildError> {
    let (open, exec) = persistent_with_env(parts.shell.clone(), parts.shells.clone())?;
    let shape = document("inspect_persistent_shell", inspected);
    let inspect = own.tool("shell_describe")?.reshaped::<Nothing>(shape)?;
    let shape = document("open_persistent_shell", shell_of);
    let open = open.reshaped::<WithEnv<OpenInput>>(shape)?;
    let shape = reshape("exec_persistent_shell", &[], |_, output| pick(output, &EXECUTED).into());
    let exec = exec.reshaped::<Exec>(shape)?;
    let shape = document("wait_persistent_shell", waited);
    let wait = own.tool("shell_wait")?.reshaped::<Wait>(shape)?;
    let shape = document("close_persistent_shell", closed);
    let close = own.tool("shell_close")?.reshaped::<Nothing>(shape)?;
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
fn document(name: &str, made: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Reshape {
    Reshape { shows_document: true, ..reshape(name, &[], move |_, output| made(output)) }
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
