//! Patterns over file names, matched by us against the confined tree (agent-runtime 8.7): what a shell would put in
//! their place, but nothing outside the mounts, and no name that a program could take for an option.

use std::collections::BTreeSet;

use portcullis_sandbox::{self as sandbox, FileError, Kind, MountTable, VirtualPath};
use regex::Regex;

use super::operands::place_text;

/// Names that one pattern may yield.
pub(super) const NAMES_MAX: usize = 1_000;

/// Directory entries that are looked at for one pattern: a pattern is answered while its call waits.
const ENTRIES_MAX: usize = 100_000;

/// What a pattern stands for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Matches {
    /// As a program is given them: sorted by their bytes, none of which could be an option.
    pub(super) names: Vec<String>,
    /// Names that matched and lead outside, or cannot be written as text.
    pub(super) left_out: usize,
}

/// Why a pattern has no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GlobFailure {
    #[error("`{pattern}` matches no file name; quote it if it is meant as text, or look with glob")]
    Nothing { pattern: String },
    #[error("`{pattern}` matches more than {NAMES_MAX} names; narrow it, or use find or glob")]
    TooMany { pattern: String },
    #[error("`{pattern}` would look at more than {ENTRIES_MAX} names; narrow it, or use find or glob")]
    TooWide { pattern: String },
}

/// Matches `pattern`, seen from `cwd`.
///
/// # Errors
/// If it matches nothing, or too much.
pub(super) fn expand(mounts: &MountTable, cwd: &VirtualPath, pattern: &str) -> Result<Matches, GlobFailure> {
    let mut expansion = Expansion { mounts, cwd, pattern, looked_at: 0, left_out: 0 };
    // What was matched so far, as text: each ends where the next component begins.
    let mut found: Vec<String> = vec![String::new()];
    let components: Vec<&str> = pattern.split('/').collect();
    for (at, text) in components.iter().enumerate() {
        let last = at + 1 == components.len();
        let mut next = Vec::new();
        for prefix in &found {
            expansion.step(prefix, &component(text), last, &mut next)?;
        }
        found = next;
    }
    expansion.finish(found)
}

/// The names that a pattern matches, as they are written in a line; `None` if there are too many to tell.
pub(crate) fn matched(mounts: &MountTable, cwd: &VirtualPath, pattern: &str) -> Option<Vec<String>> {
    match expand(mounts, cwd, pattern) {
        Ok(matches) => Some(matches.names),
        Err(GlobFailure::Nothing { .. }) => Some(Vec::new()),
        Err(GlobFailure::TooMany { .. } | GlobFailure::TooWide { .. }) => None,
    }
}

struct Expansion<'a> {
    mounts: &'a MountTable,
    cwd: &'a VirtualPath,
    pattern: &'a str,
    looked_at: usize,
    left_out: usize,
}

impl Expansion<'_> {
    fn resolve(&self, text: &str) -> Result<sandbox::ResolvedPlace, FileError> {
        self.mounts.resolve(&place_text(self.cwd, text))
    }

    fn step(
        &mut self,
        prefix: &str,
        component: &Component,
        last: bool,
        next: &mut Vec<String>,
    ) -> Result<(), GlobFailure> {
        let slash = if last { "" } else { "/" };
        match component {
            Component::Literal(name) => next.push(format!("{prefix}{name}{slash}")),
            Component::Wild(wild) => {
                let here = if prefix.is_empty() { "." } else { prefix };
                let Ok(dir) = self.resolve(here).and_then(|dir| sandbox::open_dir(&dir)) else { return Ok(()) };
                let Ok(entries) = dir.entries() else { return Ok(()) };
                for entry in entries.flatten() {
                    self.looked_at += 1;
                    if self.looked_at > ENTRIES_MAX {
                        return Err(GlobFailure::TooWide { pattern: self.pattern.to_owned() });
                    }
                    let name = entry.file_name();
                    let Some(name) = name.to_str() else {
                        self.left_out += 1;
                        continue;
                    };
                    // Further components need a directory, or a link that may lead to one.
                    let passable = last || entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
                    if passable && wild.matches(name) {
                        next.push(format!("{prefix}{name}{slash}"));
                    }
                }
            }
        }
        if next.len() > ENTRIES_MAX {
            return Err(GlobFailure::TooWide { pattern: self.pattern.to_owned() });
        }
        Ok(())
    }

    /// What stands there, in the order of bytes, which is that of the locale the programs run with.
    fn finish(mut self, found: Vec<String>) -> Result<Matches, GlobFailure> {
        let mut names = BTreeSet::new();
        for name in found {
            match self.resolve(&name) {
                Ok(place) if name.ends_with('/') && place.kind() != Some(Kind::Directory) => {}
                Ok(place) if place.kind().is_some() => {
                    names.insert(never_an_option(name));
                }
                // A link to nothing is a name all the same, as for a shell; a name that is not there is none.
                Ok(place) if !place.also_named().is_empty() && !name.ends_with('/') => {
                    names.insert(never_an_option(name));
                }
                Ok(_) | Err(FileError::NotFound { .. } | FileError::WrongKind { .. }) => {}
                Err(_) => self.left_out += 1,
            }
            if names.len() > NAMES_MAX {
                return Err(GlobFailure::TooMany { pattern: self.pattern.to_owned() });
            }
        }
        if names.is_empty() {
            return Err(GlobFailure::Nothing { pattern: self.pattern.to_owned() });
        }
        Ok(Matches { names: names.into_iter().collect(), left_out: self.left_out })
    }
}

/// A file may be called `-rf` or `--pre=x`.
fn never_an_option(name: String) -> String {
    if name.starts_with('/') || name.starts_with("./") { name } else { format!("./{name}") }
}

/// What stands between two slashes.
enum Component {
    Literal(String),
    Wild(WildName),
}

/// A name of a pattern that holds wildcards.
struct WildName {
    /// None: nothing can match it.
    regex: Option<Regex>,
    /// Its first character is a dot that was written.
    dot: bool,
}

impl WildName {
    fn matches(&self, name: &str) -> bool {
        (self.dot || !name.starts_with('.')) && self.regex.as_ref().is_some_and(|regex| regex.is_match(name))
    }
}

/// Reads one component: `*`, `?`, `[…]`, and `\` before a character that stands for itself.
fn component(text: &str) -> Component {
    let (mut regex, mut literal, mut wild) = (String::from(r"(?s)\A"), String::new(), false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '*' => {
                wild = true;
                regex.push_str(".*");
            }
            '?' => {
                wild = true;
                regex.push('.');
            }
            '[' => match bracket(rest) {
                Some((class, after)) => {
                    wild = true;
                    regex.push_str(&class);
                    rest = after;
                }
                None => plain('[', &mut regex, &mut literal),
            },
            '\\' => {
                let quoted = rest.chars().next().unwrap_or('\\');
                rest = rest.get(quoted.len_utf8()..).unwrap_or("");
                plain(quoted, &mut regex, &mut literal);
            }
            c => plain(c, &mut regex, &mut literal),
        }
    }
    if !wild {
        return Component::Literal(literal);
    }
    regex.push_str(r"\z");
    let dot = text.starts_with('.') || text.starts_with("\\.");
    Component::Wild(WildName { regex: Regex::new(&regex).ok(), dot })
}

fn plain(c: char, regex: &mut String, literal: &mut String) {
    literal.push(c);
    regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

/// After `[`: the class as a regular expression has it and what follows, if it ends.
fn bracket(text: &str) -> Option<(String, &str)> {
    let mut class = String::from("[");
    let mut rest = text;
    if let Some(after) = rest.strip_prefix(['!', '^']) {
        class.push('^');
        rest = after;
    }
    let mut first = true;
    loop {
        let c = rest.chars().next()?;
        let after = &rest[c.len_utf8()..];
        match c {
            ']' if !first => {
                class.push(']');
                return Some((class, after));
            }
            '[' if after.starts_with(':') => match after[1..].split_once(":]") {
                Some((name, after)) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase()) => {
                    class.push_str(&format!("[:{name}:]"));
                    rest = after;
                    first = false;
                    continue;
                }
                _ => class.push_str(r"\["),
            },
            '\\' => {
                let quoted = after.chars().next()?;
                class.push('\\');
                // A letter after a backslash would mean something of its own.
                if quoted.is_alphanumeric() {
                    class.pop();
                }
                class.push(quoted);
                rest = &after[quoted.len_utf8()..];
                first = false;
                continue;
            }
            '-' if first || after.starts_with(']') => class.push_str(r"\-"),
            '[' | ']' | '&' | '~' | '^' | '#' => {
                class.push('\\');
                class.push(c);
            }
            c => class.push(c),
        }
        rest = after;
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        match component(pattern) {
            Component::Literal(text) => text == name,
            Component::Wild(wild) => wild.matches(name),
        }
    }

    #[test]
    fn h03_a_component_matches_what_a_shell_matches() {
        for (pattern, yes, no) in [
            ("*.rs", &["a.rs", "\n.rs", "ü.rs"][..], &[".rs", ".a.rs", "a.rsx"][..]),
            ("?", &["a", "ü", "\n"], &["", "ab", "."]),
            ("[a-c]x", &["ax", "cx"], &["dx", "-x", "x"]),
            ("[!a]x", &["bx"], &["ax", ".x"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[a-]", &["-", "a"], &["b"]),
            ("[[:digit:]]*", &["1", "1a"], &["a"]),
            (r"\*", &["*"], &["a", "**"]),
            (r"[a\-c]", &["-", "a", "c"], &["b"]),
            ("[a", &["[a"], &["a"]),
            (".*", &[".a", ".ab"], &["a"]),
            ("[.]a", &[], &[".a"]),
            ("**", &["a"], &[".a"]),
            ("[&&a]", &["&", "a"], &["b"]),
            ("[z-a]*", &[], &["a", "z"]),
            ("{a,b}*", &["{a,b}c"], &["a", "b"]),
        ] {
            for name in yes {
                assert!(fits(pattern, name), "{pattern} {name:?}");
            }
            for name in no {
                assert!(!fits(pattern, name), "{pattern} {name:?}");
            }
        }
    }
}
