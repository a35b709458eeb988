//! What the shell tools give, for a person: their documents are made for models, and long. `--json` has them whole.

use std::fmt::Write as _;

use portcullis_event::Observed;
use serde_json::Value;

use crate::render::{exact, safe, safe_line, span};
use crate::table::table;

/// Characters of a command line in a table.
const LINE_SHOWN: usize = 100;

/// What is true of a shell once the process that opened it has ended, which is right after a call.
pub const ENDS_WITH_THE_CALL: &str = "the shell ends with this call: its folder and exported variables carry over to the \
next call, the process does not, and neither do functions and background jobs";

/// The document of a shell tool in words; `None` if it is another's, or not whole.
/// `whole` is the command that prints an artifact.
pub fn in_words(observed: &Observed, whole: fn(&str) -> String) -> Option<String> {
    if !observed.ok || !observed.tool.starts_with("shell_") {
        return None;
    }
    let parsed;
    let seen = match observed.content.as_slice() {
        [] => observed.structured.as_ref()?,
        [only] => {
            parsed = serde_json::from_str(only.text.as_deref()?).ok()?;
            &parsed
        }
        _ => return None,
    };
    Some(match observed.tool.as_str() {
        "shell_open" | "shell_restart" => {
            format!("{} in {}", word(&seen["persistentShell"], "shellId"), word(seen, "cwd"))
        }
        "shell_close" if seen["closed"] == true => format!("closed {}", word(seen, "shellId")),
        "shell_close" => "there was none to close".to_owned(),
        "shell_set_cwd" => word(seen, "cwd"),
        "shell_set_env" | "shell_unset_env" => format!("environment: {}", names(&seen["env"])),
        "shell_history" => history(seen),
        "shell_describe" => described(seen),
        "shell_read_command" => match &seen["command"] {
            Value::Null => "there is no such command".to_owned(),
            command => one_command(command, whole),
        },
        "shell_wait" if seen["result"].is_object() => written(&seen["result"], "stdoutPreview", "stderrPreview"),
        "shell_wait" if seen["status"] == "running" => "a command still runs".to_owned(),
        "shell_wait" => "no command runs".to_owned(),
        "shell_read_last_output" => written(&seen["lastCommand"], "stdout", "stderr"),
        _ => return None,
    })
}

fn word(value: &Value, key: &str) -> String {
    value[key].as_str().map_or_else(|| "-".to_owned(), |word| exact(word, 4_096))
}

/// The names of an environment; there are never values.
fn names(env: &Value) -> String {
    let names: Vec<String> = strings(&env["keys"]).map(|name| exact(name, 256)).collect();
    if names.is_empty() { "nothing of its own".to_owned() } else { names.join(", ") }
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The line that was run: a shell has it as its only argument, a program has its own.
fn line(command: &Value) -> String {
    let program = command["command"].as_str().unwrap_or_default();
    let args = strings(&command["args"]).collect::<Vec<_>>().join(" ");
    match program {
        "shell" | "persistent-shell" => args,
        _ => format!("{program} {args}").trim_end().to_owned(),
    }
}

fn ended(command: &Value) -> String {
    match (command["exitCode"].as_i64(), command["timedOut"] == true) {
        (_, true) => "too long".to_owned(),
        (Some(code), false) => code.to_string(),
        (None, false) => "killed".to_owned(),
    }
}

fn took(command: &Value) -> String {
    span(command["durationMs"].as_u64().unwrap_or(0).saturating_mul(1_000))
}

fn history(seen: &Value) -> String {
    let commands = seen["commands"].as_array().map(Vec::as_slice).unwrap_or_default();
    if commands.is_empty() {
        return "no command ran in this session yet".to_owned();
    }
    let row = |command: &Value| {
        vec![
            word(command, "updatedAt"),
            ended(command),
            took(command),
            word(command, "cwd"),
            word(command, "commandId"),
            safe_line(&line(command), LINE_SHOWN),
        ]
    };
    table(&["ENDED", "EXIT", "TOOK", "IN", "ID", "COMMAND"], commands.iter().map(row).collect())
}

fn described(seen: &Value) -> String {
    let mut text = String::new();
    let mut say = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<13}{value}");
    };
    say("folder", &word(seen, "cwd"));
    say("environment", &names(&seen["env"]));
    let shell = &seen["persistentShell"];
    say(
        "shell",
        &match (shell["status"].as_str(), shell["busy"] == true) {
            (Some("active"), true) => format!("{} runs {}", word(shell, "shellId"), word(shell, "currentCommand")),
            (Some("active"), false) => format!("{} runs, and waits for a command", word(shell, "shellId")),
            (Some(_), _) => "none runs; the next shell_exec begins one in that folder".to_owned(),
            (None, _) => "none was opened yet".to_owned(),
        },
    );
    let last = &seen["lastCommandPreview"];
    if last.is_object() {
        let (line, ended, at) = (safe_line(&line(last), LINE_SHOWN), ended(last), word(last, "updatedAt"));
        say("last command", &format!("{line} (exit {ended}, {at})"));
    }
    text
}

fn one_command(command: &Value, whole: fn(&str) -> String) -> String {
    let mut text = format!("{}\n", safe(&line(command)));
    let (id, folder, at) = (word(command, "commandId"), word(command, "cwd"), word(command, "updatedAt"));
    let _ = writeln!(text, "{id} in {folder}: exit {} after {}, {at}", ended(command), took(command));
    text.push_str(&written(command, "stdoutPreview", "stderrPreview"));
    for artifact in ["stdoutRef", "stderrRef"].iter().filter_map(|key| command[key].as_str()) {
        let _ = writeln!(text, "all of it: {}", whole(&exact(artifact, 80)));
    }
    text
}

/// What was written, as it was.
fn written(command: &Value, out: &str, err: &str) -> String {
    let mut text = String::new();
    for stream in [out, err].iter().filter_map(|key| command[key].as_str()) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&safe(stream));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
