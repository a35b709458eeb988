//! The facts of an ask in words. Nothing of a fact is ever left out: what does not fit on the screen is paged.

use std::fmt::Write as _;

use serde_json::Value;

use crate::render::{self, YELLOW, exact, safe, styled};
use crate::world::quoted;

/// A fact is shown to its end.
const WHOLE: usize = usize::MAX;
/// A text of an input that has more characters stands in lines of its own.
const IN_A_LINE: usize = 160;

/// Where the lines of a long text begin. What stands behind the bar is the call's, whatever it looks like.
const BAR: &str = "                  │ ";

/// What a call touches, on one line.
pub fn resources(value: &Value) -> String {
    let named = value.as_array().into_iter().flatten().map(resource);
    exact(&named.collect::<Vec<_>>().join(", "), WHOLE)
}

/// The same beside an input that is shown whole: what is a text of it is not shown a second time.
pub fn resources_beside(value: &Value, input: &Value) -> String {
    let named = value.as_array().into_iter().flatten().map(|one| {
        let raw = part(one, "as_written");
        let same = input.as_object().into_iter().flatten().find(|(_, text)| text.as_str() == Some(raw));
        match same.filter(|_| is_long(raw) && part(one, "name") == raw) {
            Some((field, _)) => format!("{}: the whole `{field}` below ({})", part(one, "kind"), counted(raw)),
            None => resource(one),
        }
    });
    exact(&named.collect::<Vec<_>>().join(", "), WHOLE)
}

fn part<'v>(resource: &'v Value, name: &str) -> &'v str {
    resource.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn resource(one: &Value) -> String {
    let (kind, name, raw) = (part(one, "kind"), part(one, "name"), part(one, "as_written"));
    let raw = pasted(name, raw);
    if raw == name || raw.is_empty() { format!("{kind} {name}") } else { format!("{kind} {name} (written as {raw})") }
}

/// The words of a command, so that a shell takes them as they are; anything else as it was written.
fn pasted(name: &str, raw: &str) -> String {
    match serde_json::from_str::<Vec<String>>(name) {
        Ok(words) if words.join(" ") == raw => {
            words.iter().map(|word| quoted(word.as_bytes())).collect::<Vec<_>>().join(" ")
        }
        _ => raw.to_owned(),
    }
}

/// The lines that a diff adds.
pub fn added(diff: &str) -> String {
    let added = diff.lines().filter(|line| !line.starts_with("+++ ")).filter_map(|line| line.strip_prefix('+'));
    added.collect::<Vec<_>>().join("\n")
}

/// The input: on one line, or each long text of it in lines of its own, with its true size. A text that stands whole in
/// what the diff below adds is not shown a second time.
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
                let _ = writeln!(out, "{gap}{name}: {}, all of them added in the diff below", counted(text));
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
    for line in text.split('\n') {
        let _ = writeln!(out, "{BAR}{}", safe(line));
    }
    out
}

/// Its size as it is.
pub fn counted(text: &str) -> String {
    let characters = render::count(text.chars().count() as u64, "character");
    format!("{characters}, {}", render::count(text.split('\n').count() as u64, "line"))
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
        "project_scripts" => flag(&styled(YELLOW, "may run"), "cannot run"),
        "reversible" => flag("yes", &styled(YELLOW, "no")),
        "rule" => rule(value),
        "cwd" if value.is_null() => "/workspace".to_owned(),
        _ => match value {
            Value::String(text) if text.contains('\n') => format!("{}\n{}", counted(text), block(text).trim_end()),
            Value::String(text) => exact(text, WHOLE),
            Value::Array(all) if all.iter().all(Value::is_string) => {
                let words: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                exact(&words.join(", "), WHOLE)
            }
            other => exact(&other.to_string(), WHOLE),
        },
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
        assert!(rows[1..].iter().all(|row| row.starts_with(BAR)), "{shown}");
        assert!(shown.contains("<U+001B>[2J<U+202E>x"), "{shown}");
    }

    #[test]
    fn what_the_input_shows_whole_is_not_shown_twice() {
        let line = "for f in *; do rm $f; done\n".repeat(9);
        let touched = json!([{"kind": "opaque", "name": line, "as_written": line}]);
        let shown = resources_beside(&touched, &json!({"command": line}));
        assert_eq!(shown, "opaque: the whole `command` below (243 characters, 10 lines)");
        assert!(resources_beside(&touched, &json!({"command": "other"})).contains("rm $f"));
    }

    #[test]
    fn a_text_is_left_to_the_diff_only_where_the_diff_adds_all_of_it() {
        let value = json!({"content": "one\ntwo\nthree\n"});
        let whole = added("--- a\n+++ b\n@@ -0,0 +1,3 @@\n+one\n+two\n+three\n");
        assert_eq!(input(&value, &whole), "content: 14 characters, 4 lines, all of them added in the diff below");
        let part = added("--- a\n+++ b\n@@ -1,2 +1,3 @@\n one\n+two\n+three\n");
        assert!(input(&value, &part).contains("│ three"));
    }
}
