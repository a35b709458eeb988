//! The facts of an ask in words. Nothing of a fact is ever left out: what does not fit on the screen is paged.

use std::fmt::Write as _;

use portcullis_base::shown::{count, exact, safe_in_ask, word};
use portcullis_base::{Clock as _, SystemClock, Timestamp};
use portcullis_event::AskState;
use portcullis_store::AskRow;
use serde_json::Value;

use super::AskView;
use super::touched::counted_once;
pub use super::touched::{TouchedView, resources, unsaid};

/// A fact is shown to its end.
const WHOLE: usize = usize::MAX;
/// Characters of a name. What a call would do is never cut.
pub const NAME_CHARS: usize = 2_000;
/// A text of an input that has more characters stands in lines of its own.
const IN_A_LINE: usize = 160;

/// Where the lines of a text of the call begin, whatever it looks like.
const CALLS: &str = "  │ ";

/// The lines that a diff adds.
#[must_use]
pub fn added(diff: &str) -> String {
    let added = diff.lines().filter(|line| !line.starts_with("+++ ")).filter_map(|line| line.strip_prefix('+'));
    added.collect::<Vec<_>>().join("\n")
}

/// The command line of an input, and its other fields if it has any.
#[must_use]
pub fn command_of(input: &Value) -> Option<(&str, Option<Value>)> {
    let fields = input.as_object()?;
    let command = fields.get("command")?.as_str()?;
    let mut others = fields.clone();
    others.remove("command");
    Some((command, (!others.is_empty()).then_some(Value::Object(others))))
}

/// A command line in rows of its own, with its true size where it is long.
#[must_use]
pub fn command(text: &str) -> String {
    match is_long(text) {
        true => format!("  command: {}\n{}", counted(text), block(text)),
        false => block(text),
    }
}

/// The input: on one line, or each long text of it in lines of its own, with its true size. A text that stands whole in
/// what the diff above adds is not shown a second time.
#[must_use]
pub fn input(value: &Value, added: &str) -> String {
    let text = value.to_string();
    let Some(fields) =
        value.as_object().filter(|fields| text.chars().count() > IN_A_LINE || fields.values().any(lines))
    else {
        return exact(&text, WHOLE);
    };
    let mut out = String::new();
    for (name, value) in fields {
        let gap = if out.is_empty() { "" } else { "                  " };
        let name = exact(name, WHOLE);
        match value {
            Value::String(text) if is_long(text) && stands_in(text, added) => {
                let _ = writeln!(out, "{gap}{name}: {}, all of them added in the diff above", counted(text));
            }
            Value::String(text) if is_long(text) => {
                let _ = writeln!(out, "{gap}{name}: {}", counted(text));
                out.push_str(&block(text));
            }
            other => {
                let _ = writeln!(out, "{gap}{name}: {}", exact(&other.to_string(), WHOLE));
            }
        }
    }
    out.truncate(out.trim_end_matches('\n').len());
    out
}

fn stands_in(text: &str, added: &str) -> bool {
    let text = text.strip_suffix('\n').unwrap_or(text);
    !text.trim().is_empty() && added.contains(text)
}

/// A text in lines of its own.
#[must_use]
pub fn block(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_terminator('\n') {
        let _ = writeln!(out, "{CALLS}{}", safe_in_ask(line));
    }
    out
}

/// Its size as it is.
#[must_use]
pub fn counted(text: &str) -> String {
    let characters = count(text.chars().count() as u64, "character");
    format!("{characters}, {}", count(text.split_terminator('\n').count() as u64, "line"))
}

fn lines(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains('\n'))
}

/// Whether a text of an input stands in lines of its own.
#[must_use]
pub fn is_long(text: &str) -> bool {
    text.contains('\n') || text.chars().count() > IN_A_LINE
}

/// One fact in words.
#[must_use]
pub fn fact(name: &str, value: &Value) -> String {
    let flag = |yes: &str, no: &str| match value {
        Value::Bool(true) => yes.to_owned(),
        _ => no.to_owned(),
    };
    match name {
        "resources" => resources(value),
        "input" => input(value, ""),
        "project_scripts" => flag("those of the project may run", "none can run"),
        "reversible" => flag("yes", "no"),
        "rule" => rule(value),
        // Several parts of a call may be the same action.
        "actions" => each_once(value),
        "cwd" if value.is_null() => "/workspace".to_owned(),
        _ => plain(value),
    }
}

/// Each once.
fn each_once(value: &Value) -> String {
    let mut words: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.dedup();
    exact(&words.join(", "), WHOLE)
}

/// What a fact of a tool or of the surroundings is called.
#[must_use]
pub fn fact_name(name: &str) -> String {
    match name {
        "not_analysed" => "its words do not show all that runs".to_owned(),
        "not_told_by_the_line" => "the line does not say".to_owned(),
        name => exact(name, NAME_CHARS),
    }
}

/// A fact whose name says nothing of how it reads.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') => format!("{}\n{}", counted(text), block(text).trim_end()),
        Value::String(text) => exact(text, WHOLE),
        Value::Array(all) if all.iter().all(Value::is_string) => {
            let words = all.iter().filter_map(Value::as_str).map(str::to_owned);
            exact(&counted_once(words).join(", "), WHOLE)
        }
        other => exact(&other.to_string(), WHOLE),
    }
}

/// The rule that asked, with file and line.
fn rule(value: &Value) -> String {
    let id = value.get("id").and_then(Value::as_str).unwrap_or("none");
    let place = value.get("source").and_then(|source| {
        let file = source.get("file")?.as_str()?;
        Some(format!("{file}:{}", source.get("line")?))
    });
    match place {
        Some(place) => exact(&format!("{id} ({place})"), WHOLE),
        None => exact(id, WHOLE),
    }
}

/// The tool that would run.
#[must_use]
pub fn tool(row: &AskRow) -> String {
    row.facts.get("tool").and_then(Value::as_str).map(|name| exact(name, NAME_CHARS)).unwrap_or_default()
}

/// What it would touch, on one line.
#[must_use]
pub fn touches(row: &AskRow) -> String {
    row.facts.get("resources").map(resources).unwrap_or_default()
}

/// How long is left, and until when.
#[must_use]
pub fn expiry(at: Timestamp) -> String {
    time_left(at, SystemClock::new().now())
}

fn time_left(at: Timestamp, now: Timestamp) -> String {
    let left = at.since(now);
    // Rounded up: what is still to come has not passed.
    match left.as_millis().div_ceil(1_000) {
        0 => format!("expired at {at}"),
        left @ 1..120 => format!("in {left} s ({at})"),
        left @ 120..7_200 => format!("in {} min ({at})", (left + 30) / 60),
        left => format!("in {} h ({at})", (left + 1_800) / 3_600),
    }
}

/// The host's folder that it is about.
#[must_use]
pub fn folder(ask: &AskView) -> String {
    ask.cwd().map_or_else(|| "-".to_owned(), |folder| exact(&folder, 4_096))
}

/// The session that asks; of a descendant also the one at whose root it surfaces.
#[must_use]
pub fn session(row: &AskRow) -> String {
    match row.root {
        Some(root) => format!("{} → {}", root.session_id, row.session_id),
        None => row.session_id.to_string(),
    }
}

/// How it stands: a settled one with who settled it, and how.
#[must_use]
pub fn standing(row: &AskRow) -> String {
    let by = row.approver.as_ref().map(|name| format!(" by {}", exact(name, 80))).unwrap_or_default();
    let said =
        row.reply.as_ref().map(|reply| if reply.allows() { format!("allowed{by}") } else { format!("denied{by}") });
    match (row.state, said) {
        (AskState::Answered, Some(said)) => said,
        (AskState::Voided, Some(said)) => {
            format!(
                "void: {said}, but before its call ran the session was interrupted, or things were no longer as shown; it did not run"
            )
        }
        (AskState::Voided, None) => "void: its call cannot run any more".to_owned(),
        (AskState::Expired, _) => "expired: nobody answered in time".to_owned(),
        (AskState::Superseded, _) => "withdrawn: its call is not wanted any more".to_owned(),
        (state, _) => word(&state),
    }
}

/// A suggested rule with its exact reach, behind what is said of it.
#[must_use]
pub fn suggestion(lead: &str, rule: &Value) -> String {
    let list = |name: &str| {
        let all = rule.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        exact(&all.collect::<Vec<_>>().join(", "), usize::MAX)
    };
    let reach = rule.get("reach").and_then(Value::as_str).unwrap_or_default();
    let mut text = format!("\n{lead}: allow {}\n", exact(reach, usize::MAX));
    let _ = writeln!(text, "  would allow: {}", list("would_allow"));
    let not = list("would_not_allow");
    if !not.is_empty() {
        let _ = writeln!(text, "  would not allow: {not}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::touched::resource;
    use super::*;

    #[test]
    fn a_long_text_is_shown_to_its_last_character_with_its_true_size() {
        let line = format!("{}; rm -rf /workspace/END", "echo x ".repeat(700));
        let shown = input(&json!({"command": line}), "");
        assert!(shown.contains("rm -rf /workspace/END"), "{shown}");
        assert!(shown.starts_with("command: 4923 characters, 1 line\n"), "{shown}");
        let shown = resources(&json!([{"kind": "opaque", "name": line, "as_written": line}]));
        assert!(shown.ends_with("rm -rf /workspace/END"), "{shown}");
    }

    #[test]
    fn a_line_of_a_call_cannot_look_like_one_of_ours() {
        let shown = input(&json!({"command": "true\n  sandbox         none\n\u{1b}[2J\u{202e}x"}), "");
        let rows: Vec<&str> = shown.lines().collect();
        assert_eq!(rows.len(), 4);
        assert!(rows[1..].iter().all(|row| row.starts_with(CALLS)), "{shown}");
        assert!(shown.contains("<U+001B>[2J<U+202E>x"), "{shown}");
    }

    #[test]
    fn a_variable_is_called_one_and_an_action_is_named_once() {
        for kind in ["shell", "mcp_tool"] {
            let variable = json!({"kind": kind, "name": "env:BASH_ENV", "as_written": "BASH_ENV"});
            assert_eq!(resource(&variable), "variable BASH_ENV", "{kind}");
        }
        assert_eq!(resource(&json!({"kind": "shell", "name": "shell", "as_written": "shell"})), "shell");
        assert_eq!(resource(&json!({"kind": "task", "name": "task_1", "as_written": "task_1"})), "task task_1");
        assert_eq!(resource(&json!({"kind": "mcp_tool", "name": "a__b", "as_written": "a__b"})), "mcp_tool a__b");
        assert_eq!(fact("actions", &json!(["shell_run", "shell_run", "write"])), "shell_run, write");
    }

    #[test]
    fn a_last_line_end_begins_no_line() {
        assert_eq!(counted("one\ntwo\n"), "8 characters, 2 lines");
        assert_eq!(block("one\ntwo\n"), "  │ one\n  │ two\n");
        assert_eq!(
            (counted("one\ntwo"), counted("one\n\n")),
            ("7 characters, 2 lines".into(), "5 characters, 2 lines".into())
        );
    }

    #[test]
    fn a_text_is_left_to_the_diff_only_where_the_diff_adds_all_of_it() {
        let value = json!({"content": "one\ntwo\nthree\n"});
        let whole = added("--- a\n+++ b\n@@ -0,0 +1,3 @@\n+one\n+two\n+three\n");
        assert_eq!(input(&value, &whole), "content: 14 characters, 3 lines, all of them added in the diff above");
        let part = added("--- a\n+++ b\n@@ -1,2 +1,3 @@\n one\n+two\n+three\n");
        assert!(input(&value, &part).contains("│ three"));
    }

    #[test]
    fn what_is_still_to_come_has_not_expired() {
        let now = Timestamp::from_micros(1_000_000_000_000);
        let left = |left| time_left(now.plus(left), now);
        assert!(left(Duration::ZERO).starts_with("expired at "));
        assert!(left(Duration::from_millis(1)).starts_with("in 1 s ("));
        assert!(left(Duration::from_millis(1_001)).starts_with("in 2 s ("));
        assert!(left(Duration::from_secs(86_400)).starts_with("in 24 h ("));
    }
}
