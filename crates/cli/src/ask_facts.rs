//! The facts of an ask in words. Nothing of a fact is ever left out: what does not fit on the screen is paged.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::hints;
use crate::render::{self, YELLOW, exact, safe_in_ask, styled};
use crate::world::quoted;

/// A fact is shown to its end.
const WHOLE: usize = usize::MAX;
/// Characters of a name. What a call would do is never cut.
pub const NAME_CHARS: usize = 2_000;
/// A text of an input that has more characters stands in lines of its own.
const IN_A_LINE: usize = 160;

/// Where the lines of a text of the call begin, whatever it looks like.
const CALLS: &str = "  │ ";

/// So much of what a call touches stands among the other facts; all of it stands behind them.
const FEW: usize = 3;
const FEW_CHARS: usize = 240;

/// What a call touches, on one line.
pub fn resources(value: &Value) -> String {
    let named = value.as_array().into_iter().flatten().map(resource);
    exact(&counted_once(named).join(", "), WHOLE)
}

/// What a call touches, beside an input that is shown whole.
pub struct TouchedView {
    /// All of it, or the first few with the true number of all.
    pub few: String,
    /// All of it, where those are few of many.
    pub all: Option<String>,
}

impl TouchedView {
    pub fn of(value: &Value, input: &Value) -> Self {
        let resources = value.as_array().map(Vec::as_slice).unwrap_or_default();
        // What is a text of the input is not shown a second time.
        let all = counted_once(resources.iter().map(|one| match whole_field(one, input) {
            Some((field, text)) => {
                format!("{}: the whole `{field}` of the input ({})", kind(one).trim_end_matches(':'), counted(text))
            }
            None => resource(one),
        }));
        let mut room = FEW_CHARS;
        let fits = |one: &&String| room.checked_sub(one.chars().count()).map(|left| room = left).is_some();
        let few: Vec<&str> = all.iter().take_while(fits).map(String::as_str).collect();
        if few.len() == all.len() && few.len() <= FEW + 1 {
            return Self { few: exact(&all.join(", "), WHOLE), all: None };
        }
        let few = &few[..few.len().min(FEW)];
        let more = format!("{} in all, listed below the other facts", resources.len());
        let words = if few.is_empty() { more } else { format!("{}, …: {more}", few.join(", ")) };
        Self { few: exact(&words, WHOLE), all: Some(exact(&all.join(", "), WHOLE)) }
    }
}

/// The text of the input that a resource is named by, where it is long.
fn whole_field<'v>(one: &'v Value, input: &'v Value) -> Option<(&'v str, &'v str)> {
    let raw = part(one, "as_written");
    let same = input.as_object().into_iter().flatten().find(|(_, text)| text.as_str() == Some(raw));
    same.filter(|_| is_long(raw) && part(one, "name") == raw).map(|(field, _)| (field.as_str(), raw))
}

/// Each once, in the order in which they came first, with its number where it came again.
fn counted_once(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut once: Vec<(String, usize)> = Vec::new();
    for one in all {
        let at = *known.entry(one.clone()).or_insert(once.len());
        match once.get_mut(at) {
            Some((_, times)) => *times += 1,
            None => once.push((one, 1)),
        }
    }
    once.into_iter().map(|(one, times)| if times > 1 { format!("{one} ({times} times)") } else { one }).collect()
}

fn part<'v>(resource: &'v Value, name: &str) -> &'v str {
    resource.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A variable is named so.
const ENV: &str = "env:";
const VARIABLE: &str = "variable";

/// What a resource is, in a word for a person.
fn kind(one: &Value) -> &str {
    match (part(one, "kind"), part(one, "name")) {
        ("mcp_tool", name) if name.starts_with(ENV) => VARIABLE,
        ("opaque", _) => match part(one, "action") {
            "write" => "a file to write, whose place is known only when it runs:",
            "read" => "a file to read, whose place is known only when it runs:",
            _ => "code that its words do not show:",
        },
        (kind, _) => kind,
    }
}

/// Those that a command line does not show as it stands: all but the commands that it consists of.
pub fn unsaid(line: &str, resources: &Value) -> Value {
    let line = unquoted(line);
    let is_said = |one: &&Value| {
        let words = serde_json::from_str::<Vec<String>>(part(one, "name")).unwrap_or_default();
        part(one, "kind") == "argv" && line.contains(&unquoted(&words.join(" ")))
    };
    resources.as_array().into_iter().flatten().filter(|one| !is_said(one)).cloned().collect()
}

/// A resource by its name, and as it was written where that is more than another way to quote it.
fn resource(one: &Value) -> String {
    let (kind, name, raw) = (kind(one), part(one, "name"), part(one, "as_written"));
    if kind == VARIABLE {
        return format!("{kind} {}", name.trim_start_matches(ENV));
    }
    let words = serde_json::from_str::<Vec<String>>(name).ok();
    // The words of a command, so that a shell takes them as they are.
    let pasted = words.as_ref().map(|words| words.iter().map(|word| quoted(word.as_bytes())).collect::<Vec<_>>());
    let shown = pasted.map_or_else(|| name.to_owned(), |words| words.join(" "));
    let same = words.map_or(raw == name, |words| unquoted(&words.join(" ")) == unquoted(raw));
    if same || raw.is_empty() { format!("{kind} {shown}") } else { format!("{kind} {shown} (written as {raw})") }
}

/// Without what only quotes: two command lines that differ in nothing else have the same words.
fn unquoted(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect()
}

/// The lines that a diff adds.
pub fn added(diff: &str) -> String {
    let added = diff.lines().filter(|line| !line.starts_with("+++ ")).filter_map(|line| line.strip_prefix('+'));
    added.collect::<Vec<_>>().join("\n")
}

/// The command line of an input, and its other fields if it has any.
pub fn command_of(input: &Value) -> Option<(&str, Option<Value>)> {
    let fields = input.as_object()?;
    let command = fields.get("command")?.as_str()?;
    let mut others = fields.clone();
    others.remove("command");
    Some((command, (!others.is_empty()).then_some(Value::Object(others))))
}

/// A command line in rows of its own, with its true size where it is long.
pub fn command(text: &str) -> String {
    match is_long(text) {
        true => format!("  command: {}\n{}", counted(text), block(text)),
        false => block(text),
    }
}

/// The input: on one line, or each long text of it in lines of its own, with its true size. A text that stands whole in
/// what the diff above adds is not shown a second time.
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
pub fn block(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_terminator('\n') {
        let _ = writeln!(out, "{CALLS}{}", safe_in_ask(line));
    }
    out
}

/// Its size as it is.
pub fn counted(text: &str) -> String {
    let characters = render::count(text.chars().count() as u64, "character");
    format!("{characters}, {}", render::count(text.split_terminator('\n').count() as u64, "line"))
}

fn lines(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains('\n'))
}

pub fn is_long(text: &str) -> bool {
    text.contains('\n') || text.chars().count() > IN_A_LINE
}

/// One fact in words.
pub fn fact(name: &str, value: &Value) -> String {
    let flag = |yes: &str, no: &str| match value {
        Value::Bool(true) => yes.to_owned(),
        _ => no.to_owned(),
    };
    match name {
        "resources" => resources(value),
        "input" => input(value, ""),
        "project_scripts" => flag(&styled(YELLOW, "those of the project may run"), "none can run"),
        "reversible" => flag("yes", &styled(YELLOW, "no")),
        "rule" => rule(value),
        // The list may hold the newest alone.
        "since_last_answer" => format!("{} ({})", plain(value), hints::ALL_WARNINGS),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn what_the_input_shows_whole_is_not_shown_twice() {
        let line = "for f in *; do rm $f; done\n".repeat(9);
        let touched = json!([{"kind": "opaque", "name": line, "as_written": line}]);
        let shown = TouchedView::of(&touched, &json!({"command": line}));
        assert_eq!(
            shown.few,
            "code that its words do not show: the whole `command` of the input (243 characters, 9 lines)"
        );
        let shown = TouchedView::of(&touched, &json!({"command": "other"}));
        assert!(shown.few.starts_with("1 in all, ") && shown.all.is_some_and(|all| all.contains("rm $f")));
    }

    #[test]
    fn a_command_of_a_line_is_said_by_the_line_and_code_that_it_does_not_show_is_not() {
        let all =
            json!([argv(&["ls"], "ls"), argv(&["git", "push"], "git -C . push"), {"kind": "opaque", "name": "x"}]);
        let unsaid = unsaid("ls && git -C . push", &all);
        assert_eq!(resources(&unsaid), "argv git push (written as git -C . push), code that its words do not show: x");
        assert_eq!(super::unsaid("'ls'", &json!([argv(&["ls"], "'ls'")])), json!([]));
    }

    #[test]
    fn a_variable_is_called_one_and_an_action_is_named_once() {
        assert_eq!(
            resource(&json!({"kind": "mcp_tool", "name": "env:BASH_ENV", "as_written": "BASH_ENV"})),
            "variable BASH_ENV"
        );
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

    fn argv(words: &[&str], raw: &str) -> Value {
        json!({"kind": "argv", "name": json!(words).to_string(), "as_written": raw})
    }

    #[test]
    fn of_many_things_a_few_are_shown_with_their_true_number_and_all_of_them_behind_the_other_facts() {
        let many: Vec<Value> = (0..95).map(|n| argv(&["echo", &n.to_string()], &format!("echo {n}"))).collect();
        let shown = TouchedView::of(&json!(many), &json!({"command": "x"}));
        assert_eq!(shown.few, "argv echo 0, argv echo 1, argv echo 2, …: 95 in all, listed below the other facts");
        let all = shown.all.expect("many");
        assert!((0..95).all(|n| all.split(", ").any(|one| one == format!("argv echo {n}"))), "{all}");
        let four = TouchedView::of(&json!(many[..4]), &json!({}));
        assert!(four.all.is_none() && four.few.ends_with("argv echo 3"), "{}", four.few);
        // The same again and again is counted, and long names are not left out.
        let same = vec![argv(&["true"], "true"); 7];
        assert_eq!(TouchedView::of(&json!(same), &json!({})).few, "argv true (7 times)");
        let long = TouchedView::of(&json!([argv(&["echo", &"y".repeat(900)], "echo y")]), &json!({}));
        assert!(long.few.starts_with("1 in all") && long.all.is_some_and(|all| all.contains(&"y".repeat(900))));
    }

    #[test]
    fn what_was_written_is_told_where_it_differs_in_more_than_quoting() {
        for (words, raw) in [
            (&["git", "push"][..], "git push"),
            (&["git", "push"], "'git'  \"pu\"sh"),
            (&["sh", "-c", "a && b"], "sh -c a && b"),
            (&["echo", "a b"], "echo a\\ b"),
        ] {
            assert!(!resource(&argv(words, raw)).contains("written as"), "{raw}");
        }
        assert_eq!(resource(&argv(&["sh", "-c", "a && b"], "sh -c a && b")), "argv sh -c 'a && b'");
        assert_eq!(resource(&argv(&["git", "push"], "git -C . push")), "argv git push (written as git -C . push)");
        let path = json!({"kind": "path", "name": "/workspace/a", "as_written": "a"});
        assert_eq!(resource(&path), "path /workspace/a (written as a)");
    }

    #[test]
    fn a_text_is_left_to_the_diff_only_where_the_diff_adds_all_of_it() {
        let value = json!({"content": "one\ntwo\nthree\n"});
        let whole = added("--- a\n+++ b\n@@ -0,0 +1,3 @@\n+one\n+two\n+three\n");
        assert_eq!(input(&value, &whole), "content: 14 characters, 3 lines, all of them added in the diff above");
        let part = added("--- a\n+++ b\n@@ -1,2 +1,3 @@\n one\n+two\n+three\n");
        assert!(input(&value, &part).contains("│ three"));
    }
}
