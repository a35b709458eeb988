//! The tool that answers what a command asks (agent-runtime 8.6), beside what the rules decide about it.

use portcullis_policy::command::{self, Alternative, Whereabouts};
use serde_json::{Value, json};

/// Tools whose input is a command.
const TOOLS: [&str; 3] = ["bash", "shell_run", "shell_exec"];

/// Where commands run that name no folder.
const WORKSPACE: &str = "/workspace";

/// What could be called instead of `tool` with this input, if it is a command and anything could.
pub fn mapped(tool: &str, input: &str) -> Option<Alternative> {
    let input: Value = serde_json::from_str(input).ok()?;
    let line = input.get("command")?.as_str().filter(|_| TOOLS.contains(&tool))?;
    let cwd = input.get("cwd").and_then(Value::as_str).map(str::trim).filter(|cwd| !cwd.is_empty());
    let cwd = match cwd {
        Some(cwd) if cwd.starts_with('/') => cwd.to_owned(),
        Some(cwd) => format!("{WORKSPACE}/{cwd}"),
        None => WORKSPACE.to_owned(),
    };
    let at = Whereabouts { cwd: &cwd, mounts: &[WORKSPACE] };
    let found = match input.get("args").and_then(Value::as_array) {
        Some(args) => {
            let args = args.iter().map(|arg| arg.as_str().map(str::to_owned));
            let argv: Option<Vec<String>> = std::iter::once(Some(line.to_owned())).chain(args).collect();
            command::mapped_argv(&argv?, at)
        }
        None => command::covered_by(line, at),
    };
    // The call itself is no other way.
    found.filter(|found| found.tool != tool)
}

pub fn document(found: Option<&Alternative>) -> Value {
    found.map_or(Value::Null, |found| json!({"tool": found.tool, "input": found.input, "differs": found.differs}))
}

/// In one line.
pub fn in_words(found: &Alternative) -> String {
    let differs = found.differs.map(|differs| format!(" ({differs})")).unwrap_or_default();
    format!("{} {}{differs}", found.tool, found.input)
}
