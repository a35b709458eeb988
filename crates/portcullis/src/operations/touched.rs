//! What a call would touch, in words: each once, with its number, and nothing left out.

use std::collections::HashMap;

use portcullis_base::shown::{exact, quoted};
use serde_json::Value;

use super::ask_words::{counted, is_long};

/// All of it is shown, to its end.
const WHOLE: usize = usize::MAX;
/// So much of what a call touches stands among the other facts; all of it stands behind them.
const FEW: usize = 3;
const FEW_CHARS: usize = 240;

/// What a call touches, on one line.
#[must_use]
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
    /// What is touched, of a call with this input.
    #[must_use]
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
pub(super) fn counted_once(all: impl Iterator<Item = String>) -> Vec<String> {
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

/// What a resource is, in a word for a person. A variable of a shell is one, also in an ask from before it was called so.
fn kind(one: &Value) -> &str {
    match (part(one, "kind"), part(one, "name")) {
        ("shell" | "mcp_tool", name) if name.starts_with(ENV) => VARIABLE,
        ("opaque", _) => match part(one, "action") {
            "write" => "a file to write, whose place is known only when it runs:",
            "read" => "a file to read, whose place is known only when it runs:",
            _ => "code that its words do not show:",
        },
        (kind, _) => kind,
    }
}

/// Those that a command line does not show as it stands: all but the commands that it consists of.
#[must_use]
pub fn unsaid(line: &str, resources: &Value) -> Value {
    let line = unquoted(line);
    let is_said = |one: &&Value| {
        let words = serde_json::from_str::<Vec<String>>(part(one, "name")).unwrap_or_default();
        part(one, "kind") == "argv" && line.contains(&unquoted(&words.join(" ")))
    };
    resources.as_array().into_iter().flatten().filter(|one| !is_said(one)).cloned().collect()
}

/// A resource by its name, and as it was written where that is more than another way to quote it.
pub(super) fn resource(one: &Value) -> String {
    let (kind, name, raw) = (kind(one), part(one, "name"), part(one, "as_written"));
    if kind == VARIABLE {
        return format!("{kind} {}", name.trim_start_matches(ENV));
    }
    // The shell of the session that calls.
    if kind == name {
        return kind.to_owned();
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn argv(words: &[&str], raw: &str) -> Value {
        json!({"kind": "argv", "name": json!(words).to_string(), "as_written": raw})
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
}
