//! Checks over the text of every file: what may be written nowhere, and how long a source file may be.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::repo::Repo;
use crate::rules;
use crate::rust_source::{code_only, line_of, words};

/// Fails with every breach, one a line; prints warnings; otherwise says how many files were read.
pub fn check(repo: &Repo) -> Result<String> {
    let hosts = registry_hosts();
    let mut problems = Vec::new();
    let mut warnings = 0;
    let files = repo.files()?;
    for file in &files {
        let path = repo.path(file);
        if path.symlink_metadata().is_ok_and(|data| data.is_symlink() || data.is_dir()) {
            continue;
        }
        let bytes = fs::read(&path).with_context(|| format!("{file} cannot be read"))?;
        let text = String::from_utf8_lossy(&bytes);
        problems.extend(named_hosts(file, &text, &hosts));
        if file.ends_with(".rs") {
            problems.extend(forbidden_code(file, &text));
            let lines = text.lines().count();
            if lines > rules::LINES_FAIL {
                problems.push(format!(
                    "{file} has {lines} lines, more than {}: split it along its ideas",
                    rules::LINES_FAIL
                ));
            } else if lines > rules::LINES_WARN {
                warnings += 1;
                println!(
                    "warning: {file} has {lines} lines, more than {}; does it hold a second idea?",
                    rules::LINES_WARN
                );
            }
        }
    }
    if problems.is_empty() {
        return Ok(format!("{} files, {warnings} warnings", files.len()));
    }
    bail!("text that may not be here:\n  {}", problems.join("\n  "))
}

fn registry_hosts() -> Vec<String> {
    rules::REGISTRY_HOSTS.iter().map(|labels| labels.join(".")).collect()
}

/// Lines that name a registry's host. In Cargo.lock the `source` lines are cargo's own.
fn named_hosts(file: &str, text: &str, hosts: &[String]) -> Vec<String> {
    let lock = file == "Cargo.lock" || file.ends_with("/Cargo.lock");
    text.lines()
        .enumerate()
        .filter(|(_, line)| !(lock && line.starts_with("source = \"registry+")))
        .filter_map(|(index, line)| {
            let host = hosts.iter().find(|host| names(line, host))?;
            Some(format!("{file}:{}: names the registry host {host}", index + 1))
        })
        .collect()
}

/// Whether a line names the host itself or a host beneath it, and not merely a longer word that ends or begins so.
fn names(line: &str, host: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.match_indices(host).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + host.len()..].chars().next();
        let joins = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

fn forbidden_code(file: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let mut found = Vec::new();
    let mut report = |at: usize, what: &str| {
        found.push(format!("{file}:{}: {what}", line_of(text, at)));
    };
    if !file.starts_with(rules::UNSAFE_FOLDER) {
        for at in words(&code, "unsafe") {
            report(at, "unsafe code outside crates/sandbox");
        }
    }
    for name in ["todo", "unimplemented"] {
        for at in words(&code, name) {
            if code[at + name.len()..].starts_with('!') {
                report(at, &format!("`{name}!` is a stub"));
            }
        }
    }
    for at in words(&code, "ignore") {
        if code[..at].trim_end().ends_with("#[") {
            report(at, "an ignored test tests nothing");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_ignored_tests_and_unsafe_are_found_in_code_only() {
        let cases = [
            ("crates/base/src/a.rs", "fn f() { todo!() }", 1),
            ("crates/base/src/a.rs", "fn f() { unimplemented!(\"x\") }", 1),
            ("crates/base/src/a.rs", "#[ignore]\nfn f() {}", 1),
            ("crates/base/src/a.rs", "#[ignore = \"slow\"]\nfn f() {}", 1),
            ("crates/base/src/a.rs", "use ignore::Walk; // todo!()", 0),
            ("crates/base/src/a.rs", "fn f() { unsafe { g() } }", 1),
            ("crates/sandbox/src/a.rs", "fn f() { unsafe { g() } }", 0),
            ("crates/base/src/a.rs", "#![forbid(unsafe_code)]", 0),
            ("crates/base/src/a.rs", "let s = \"unsafe todo!() #[ignore]\";", 0),
        ];
        for (file, text, expected) in cases {
            let found = forbidden_code(file, text);
            assert_eq!(found.len(), expected, "{text}: {found:?}");
        }
    }

    #[test]
    fn a_registry_host_is_found_except_in_the_sources_of_a_lock_file() {
        let host = "registry.example".to_owned();
        let cases = [
            ("README.md", "see https://registry.example/x", 1),
            ("README.md", "see static.Registry.Example.", 1),
            ("README.md", "see myregistry.example or registry.examples", 0),
            ("Cargo.lock", "source = \"registry+https://registry.example/i\"", 0),
            ("fuzz/Cargo.lock", "source = \"registry+https://registry.example/i\"", 0),
            ("Cargo.lock", "name = \"registry.example\"", 1),
        ];
        for (file, text, expected) in cases {
            let found = named_hosts(file, text, std::slice::from_ref(&host));
            assert_eq!(found.len(), expected, "{file}: {text}");
        }
    }
}
