//! Read-first intents (agent-runtime 6.8): suggests the one cheap read that answers a person's request, such as a listing
//! or a search. The first match wins.
//!
//! Only a person's own words are looked at, and a hint is a lead: nothing is run because of it.

use serde_json::{Value, json};

/// Characters of a message that are looked at, and of a pattern that is suggested.
const LOOKED_AT: usize = 2_000;
const PATTERN: usize = 120;
/// Entries that a listing is suggested with.
const LISTED: u32 = 40;

/// What the session knows that a suggestion needs.
#[derive(Debug, Clone, Copy)]
pub struct ShellKnown<'a> {
    /// A command has ended in this session.
    pub last_command: bool,
    pub cwd: Option<&'a str>,
}

/// One call that answers a person's words: suggested to the model, never made by the runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct LookSuggestion {
    pub intent: &'static str,
    pub tool: &'static str,
    pub input: Value,
}

/// The look that a message asks for. The first row that matches is the intent, whether its tool is offered or not: another
/// row would be a guess.
#[must_use]
pub fn first_look(said: &str, known: &ShellKnown<'_>) -> Option<LookSuggestion> {
    let said: String = said.chars().take(LOOKED_AT).collect();
    let words = said.to_lowercase();
    let table: [(&'static str, &'static str, Option<Value>); 5] = [
        ("shell_output", "shell_read_last_output", (known.last_command && shell_output(&words)).then(|| json!({}))),
        ("file_read", "read", file_read(&said, &words).map(|path| json!({"file_path": path}))),
        (
            "workspace_search",
            "grep",
            workspace_search(&said, &words)
                .map(|pattern| json!({"path": "/workspace", "pattern": pattern, "literal": true, "ignore_case": true})),
        ),
        (
            "workspace_listing",
            "glob",
            workspace_listing(&words).then(|| json!({"path": "/workspace", "pattern": "**/*", "limit": LISTED})),
        ),
        ("cwd_check", "bash", cwd_check(&words).then(|| json!({"command": "pwd", "cwd": known.cwd}))),
    ];
    table.into_iter().find_map(|(intent, tool, input)| Some(LookSuggestion { intent, tool, input: input? }))
}

fn any(words: &str, of: &[&str]) -> bool {
    of.iter().any(|phrase| holds(words, phrase))
}

/// Whether a phrase stands there as words of its own.
fn holds(words: &str, phrase: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    words
        .match_indices(phrase)
        .any(|(at, found)| edge(words[..at].chars().next_back()) && edge(words[at + found.len()..].chars().next()))
}

fn shell_output(words: &str) -> bool {
    let phrases = [
        "last output",
        "latest output",
        "stdout",
        "stderr",
        "last command",
        "what happened",
        "why failed",
        "why did it fail",
        "failure output",
        "error output",
        "log",
        "logs",
    ];
    any(words, &phrases)
}

/// The first word that looks like a path, where a file is to be looked at.
fn file_read<'s>(said: &'s str, words: &str) -> Option<&'s str> {
    if !any(words, &["read", "open", "show", "inspect", "check", "review", "look at", "see"]) {
        return None;
    }
    let mark = |c: char| matches!(c, '`' | '"' | '\'' | '(' | ')' | ',' | ';' | ':' | '!' | '?');
    // The end of a sentence may stand outside of quotes, and inside.
    let strip = |word: &'s str| word.trim_end_matches('.').trim_matches(mark).trim_end_matches('.');
    said.split_whitespace().map(strip).find(|word| is_path(word))
}

/// A token with a folder in it, or a name with an ending.
fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+' | '@');
    if word.is_empty() || !word.chars().all(plain) || word.contains("//") || word == "/" {
        return false;
    }
    let name = word.rsplit('/').next().unwrap_or(word);
    let ending = name.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty() && (1..=8).contains(&ending.len()) && ending.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    ending || (word.contains('/') && word.chars().any(char::is_alphabetic) && word.starts_with(['/', '.']))
}

/// What is looked for: a quoted text, else a name that no prose has.
fn workspace_search(said: &str, words: &str) -> Option<String> {
    let verbs = ["find", "search", "grep", "locate", "contains", "match", "where is", "which file"];
    if !any(words, &verbs) {
        return None;
    }
    let quoted =
        ['"', '`'].iter().find_map(|quote| said.split(*quote).nth(1).filter(|_| said.matches(*quote).count() > 1));
    let identifier = || {
        said.split(|c: char| !c.is_alphanumeric() && c != '_').find(|word| {
            let camel = word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase);
            word.len() > 2 && (word.contains('_') || camel)
        })
    };
    let pattern = quoted.filter(|text| !text.trim().is_empty()).or_else(identifier)?;
    Some(pattern.chars().take(PATTERN).collect())
}

fn workspace_listing(words: &str) -> bool {
    let phrases = [
        "list files",
        "list the files",
        "show files",
        "show the files",
        "which files",
        "inspect workspace",
        "inspect the workspace",
        "list directories",
        "list the directories",
        "show directory",
        "show the directory",
        "show folder",
        "show the folder",
    ];
    any(words, &phrases)
}

fn cwd_check(words: &str) -> bool {
    let phrases = ["cwd", "working dir", "working directory", "current dir", "current directory", "where am i"];
    any(words, &phrases)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(said: &str) -> Option<(&'static str, &'static str, Value)> {
        let look = first_look(said, &ShellKnown { last_command: true, cwd: Some("/workspace") })?;
        Some((look.intent, look.tool, look.input))
    }

    #[test]
    fn each_read_first_intent_matches_its_words_and_suggests_its_tool() {
        let search =
            |pattern: &str| json!({"path": "/workspace", "pattern": pattern, "literal": true, "ignore_case": true});
        let cases = [
            ("Why did it fail? Show me stderr", "shell_output", "shell_read_last_output", json!({})),
            ("please look at `src/main.rs`.", "file_read", "read", json!({"file_path": "src/main.rs"})),
            ("Open README.md, then wait", "file_read", "read", json!({"file_path": "README.md"})),
            ("where is \"two words\" said", "workspace_search", "grep", search("two words")),
            ("find parse_config", "workspace_search", "grep", search("parse_config")),
            (
                "Which files are there?",
                "workspace_listing",
                "glob",
                json!({"path": "/workspace", "pattern": "**/*", "limit": 40}),
            ),
            ("where am I", "cwd_check", "bash", json!({"command": "pwd", "cwd": "/workspace"})),
        ];
        for (said, intent, tool, input) in cases {
            assert_eq!(look(said), Some((intent, tool, input)), "{said}");
        }
    }

    #[test]
    fn other_words_suggest_nothing() {
        for said in
            ["", "make it faster", "I was ready and already openly sad", "find the bug", "version 1.2.3 please check"]
        {
            assert_eq!(look(said), None, "{said}");
        }
        let no_command = ShellKnown { last_command: false, cwd: None };
        assert_eq!(first_look("what happened", &no_command), None, "no command has ended");
    }
}
