//! What a session is told when it wakes: facts of the runtime, never a word of a tool (agent-runtime 6.2, 6.7).

use std::fmt::Write as _;

use portcullis_base::SessionId;
use portcullis_event::State;
use portcullis_event::fold::ShellStatus;

/// The elements of the message, one a line. A session that begins has nothing to tell.
pub(crate) fn wake_message(session: SessionId, state: &State) -> Option<String> {
    let progress = &state.progress;
    progress.last_wake?;
    let mut text = format!("<wake>\nsession: {session}\n");
    if let Some(stop) = &progress.last_stop {
        let _ = writeln!(text, "previous stop: {}", stop.as_str());
    }
    if let Some(summary) = &progress.last_summary {
        // The model's own words of before, not a tool's.
        let _ = writeln!(text, "your last summary: {summary}");
    }
    if progress.enforced {
        text.push_str("you wanted to go on too often in a row: the runtime put the session to sleep\n");
    }
    shell(state, &mut text);
    text.push_str("</wake>");
    Some(text)
}

/// Folder, names of variables (never values), the persistent shell, and the last command by its id.
fn shell(state: &State, text: &mut String) {
    let shell = &state.shell;
    if let Some(cwd) = shell.cwd() {
        let _ = writeln!(text, "shell: cwd {cwd}");
    }
    let keys: Vec<&str> = shell.env().map(|(name, _)| name).collect();
    if !keys.is_empty() {
        let _ = writeln!(text, "shell: {} variables: {}", keys.len(), keys.join(" "));
    }
    if let Some(open) = shell.persistent() {
        let status = match open.status {
            ShellStatus::Active => "active",
            ShellStatus::Closed => "closed",
        };
        let _ = writeln!(text, "shell: persistent {} {status}, {} commands", open.shell_id, open.command_count);
    }
}
