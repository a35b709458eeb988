//! Command lines that a read-only tool answers as well (agent-runtime 8.6), shape by shape.

mod covering;
mod pattern;

use portcullis_base::Reason;
use portcullis_command::{
    LINE_MAX, NotReadOnly, ReadPlan, deceptive, is_assignment, is_look_alike, lines_printed, path_text,
};
use serde_json::{Value, json};

pub use covering::covered_by;

/// A call that answers what a command would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// `read`, `glob`, `grep` or `bash`.
    pub tool: &'static str,
    pub input: Value,
    /// What the answer has more or less than the command's; none if it means the same.
    pub differs: Option<&'static str>,
}

/// Where a command would run: its working directory, and the places that can be read.
#[derive(Debug, Clone, Copy)]
pub struct Whereabouts<'a> {
    /// Absolute.
    pub cwd: &'a str,
    /// Absolute.
    pub mounts: &'a [&'a str],
}

impl Whereabouts<'_> {
    /// The absolute form of `path`, if it stays in a mount.
    pub(super) fn place(&self, path: &str) -> Option<String> {
        let place = path_text::join(self.cwd, path);
        (!path.is_empty() && self.mounts.iter().any(|mount| path_text::within(&place, mount))).then_some(place)
    }
}

/// Why the read-only hand does not run a line, and what to do instead.
#[must_use]
pub fn refusal(why: &NotReadOnly) -> String {
    let NotReadOnly { reason, what, better } = why;
    match better {
        Some(better) if *reason == Reason::PathEscape => format!("{what}; {better}"),
        Some(better) => format!("{what}; {better}, or run it with shell_run"),
        None => format!("{what}; run it with shell_run"),
    }
}

pub(super) fn same(tool: &'static str, input: Value) -> Alternative {
    Alternative { tool, input, differs: None }
}

/// Tools whose input is a command line.
const TOOLS: [&str; 3] = ["bash", "shell_run", "shell_exec"];

/// Where commands run that name no folder.
const WORKSPACE: &str = "/workspace";

/// What could be called instead of `tool` with this input, if the input is a command line and another tool answers it.
#[must_use]
pub fn instead_of(tool: &str, input: &str) -> Option<Alternative> {
    let input: Value = serde_json::from_str(input).ok()?;
    let line = input.get("command")?.as_str().filter(|_| TOOLS.contains(&tool))?;
    let cwd = input.get("cwd").and_then(Value::as_str).map(str::trim).filter(|cwd| !cwd.is_empty());
    let cwd = cwd.map_or(WORKSPACE.to_owned(), |cwd| path_text::join(WORKSPACE, cwd));
    let at = Whereabouts { cwd: &cwd, mounts: &[WORKSPACE] };
    let alternative = match input.get("args").and_then(Value::as_array) {
        Some(args) => {
            let args = args.iter().map(|arg| arg.as_str().map(str::to_owned));
            let argv: Option<Vec<String>> = std::iter::once(Some(line.to_owned())).chain(args).collect();
            mapped_argv(&argv?, at)
        }
        None => covered_by(line, at),
    };
    alternative.filter(|alternative| alternative.tool != tool)
}

/// The tool that does the same as the line, exactly by the table of agent-runtime 8.6; else the read-only hand, if the
/// line is one program that it runs. None for everything else, and for any line with a metacharacter.
#[must_use]
pub fn mapped(line: &str, at: Whereabouts<'_>) -> Option<Alternative> {
    mapped_argv(&words(line)?, at)
}

/// The same for words that were given one by one.
#[must_use]
pub fn mapped_argv(argv: &[String], at: Whereabouts<'_>) -> Option<Alternative> {
    first_class(argv, at).or_else(|| hand(argv, at))
}

fn hand(argv: &[String], at: Whereabouts<'_>) -> Option<Alternative> {
    let (program, args) = argv.split_first()?;
    let plan = ReadPlan::from_argv(program, args).ok()?;
    at.place(".")?;
    plan.outside(at.cwd, at.mounts)
        .is_none()
        .then(|| same("bash", json!({"command": program, "args": args, "cwd": at.cwd})))
}

/// The tokenizer of agent-runtime 8.6: words and whole quoted words, and nothing else.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    if deceptive(line).is_some() || line.len() > LINE_MAX {
        return None;
    }
    let mut line = line.trim_matches([' ', '\t']);
    for end in ["2>/dev/null", "2>&1"] {
        if let Some(rest) = line.strip_suffix(end).filter(|rest| rest.ends_with([' ', '\t'])) {
            line = rest.trim_end_matches([' ', '\t']);
            break;
        }
    }
    let mut out = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (word, after) = if matches!(first, '\'' | '"') {
            let (word, after) = rest[1..].split_once(first)?;
            if word.contains(['\\', '\n']) || (first == '"' && word.contains(['$', '`'])) {
                return None;
            }
            (word, after)
        } else {
            let end = rest.find([' ', '\t']).unwrap_or(rest.len());
            let word = &rest[..end];
            let meta = |c: char| "|&;<>()$`*?[]{}~!#\\'\"\n".contains(c) || is_look_alike(c);
            if word.contains(meta) {
                return None;
            }
            (word, &rest[end..])
        };
        if !after.is_empty() && !after.starts_with([' ', '\t']) {
            return None;
        }
        out.push(word.to_owned());
        rest = after.trim_start_matches([' ', '\t']);
    }
    let first = out.first()?;
    (!is_assignment(first)).then_some(out)
}

/// The rows of the table.
pub(super) fn first_class(argv: &[String], at: Whereabouts<'_>) -> Option<Alternative> {
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    if argv.iter().any(|word| deceptive(word).is_some() || word.contains(['\n', '\t'])) {
        return None;
    }
    let count = |text: &str| is_digits(text).then(|| text.parse::<u64>().ok()).flatten().filter(|n| *n > 0);
    let file = |path: &str| if path.starts_with('-') { None } else { at.place(path) };
    let read = |path: &str, key: &str, lines: u64| Some(same("read", json!({"file_path": file(path)?, key: lines})));
    match argv[..] {
        ["cat", path] => Some(same("read", json!({"file_path": file(path)?}))),
        ["head", path] if !path.starts_with('-') => read(path, "line_count", 10),
        ["head", "-n", lines, path] => read(path, "line_count", count(lines)?),
        ["head", lines, path] => read(path, "line_count", count(lines.strip_prefix('-')?)?),
        ["tail", path] if !path.starts_with('-') => read(path, "tail_lines", 10),
        ["tail", "-n", lines, path] => read(path, "tail_lines", count(lines)?),
        ["tail", lines, path] => read(path, "tail_lines", count(lines.strip_prefix('-')?)?),
        ["sed", "-n", script, path] if script.contains(',') => {
            let (first, Some(last)) = lines_printed(script)? else { return None };
            let lines = last.checked_sub(first)? + 1;
            Some(same("read", json!({"file_path": file(path)?, "start_line": first, "line_count": lines})))
        }
        ["wc", "-l", path] => read(path, "line_count", 1),
        ["ls", ref words @ ..] => ls(words, at),
        ["find", ref words @ ..] => find(words, at),
        ["grep", ref words @ ..] => grep(words, "niFrRE", false, at),
        ["rg", ref words @ ..] => grep(words, "niF", true, at),
        _ => None,
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn ls(words: &[&str], at: Whereabouts<'_>) -> Option<Alternative> {
    let (flags, paths): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    let known = |flag: &&str| flag.len() > 1 && flag[1..].chars().all(|c| "Aal1".contains(c));
    if !flags.iter().all(known) || paths.len() > 1 {
        return None;
    }
    let path = at.place(paths.first().unwrap_or(&"."))?;
    Some(same("glob", json!({"path": path, "pattern": "*", "max_depth": 1, "sort": "path", "limit": 80})))
}

fn find(words: &[&str], at: Whereabouts<'_>) -> Option<Alternative> {
    let (path, tests) = match words {
        [path, tests @ ..] if !path.starts_with('-') => (*path, tests),
        tests => (".", tests),
    };
    let (kind, name) = match tests {
        ["-name", name] => (None, name),
        ["-type", "f", "-name", name] => (Some("file"), name),
        ["-type", "d", "-name", name] => (Some("directory"), name),
        _ => return None,
    };
    let mut input = json!({"path": at.place(path)?, "pattern": pattern::of_name(name)?, "limit": 80});
    if let Some(kind) = kind {
        input["kind"] = json!(kind);
    }
    Some(same("glob", input))
}

fn grep(words: &[&str], known: &str, rust_syntax: bool, at: Whereabouts<'_>) -> Option<Alternative> {
    let flags: Vec<&str> = words.iter().copied().take_while(|word| word.starts_with('-')).collect();
    let (query, path) = match words[flags.len()..] {
        [query] => (query, "."),
        [query, path] if !path.starts_with('-') => (query, path),
        _ => return None,
    };
    if !flags.iter().all(|flag| flag.len() > 1 && flag[1..].chars().all(|c| known.contains(c))) || query.is_empty() {
        return None;
    }
    let has = |letter: char| flags.iter().any(|flag| flag.contains(letter));
    let (text, literal) = pattern::of_lines(query, has('F'), if rust_syntax { None } else { Some(has('E')) })?;
    let mut input = json!({"path": at.place(path)?, "pattern": text, "ignore_case": has('i'), "literal": literal});
    if rust_syntax {
        input["limit"] = json!(40);
    }
    Some(same("grep", input))
}
