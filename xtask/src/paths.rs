//! Every file that a document names is there: sources between backticks (`crates/event/src/table.rs`, or without
//! `crates/`), and the targets of links.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use regex::Regex;

use crate::repo::Repo;
use crate::rust_source::line_of;

/// Fails with every file that is named and not there, one a line; otherwise says how many are named.
pub fn check(repo: &Repo) -> Result<String> {
    let files: BTreeSet<String> = repo.files()?.into_iter().collect();
    let (source, link) = (Regex::new(r"`([\w./-]+\.rs)`")?, Regex::new(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")?);
    let mut problems = Vec::new();
    let mut count = 0;
    for file in files.iter().filter(|file| file.ends_with(".md")) {
        let text = fs::read_to_string(repo.path(file)).with_context(|| format!("{file} cannot be read"))?;
        let mut named = |at: usize, there: bool, name: &str| {
            count += 1;
            if !there {
                problems.push(format!("{file}:{}: there is no `{name}`", line_of(&text, at)));
            }
        };
        for found in source.captures_iter(&text).filter(|found| is_source(&found[1])) {
            let name = &found[1];
            let there = files.contains(name) || files.contains(&format!("crates/{name}"));
            named(found.get(1).map_or(0, |name| name.start()), there, name);
        }
        for found in link.captures_iter(&text).filter(|found| !found[1].contains("://")) {
            let folder = Path::new(file).parent().unwrap_or(Path::new(""));
            let there = repo.path(&folder.join(&found[1]).to_string_lossy()).exists();
            named(found.get(1).map_or(0, |name| name.start()), there, &found[1]);
        }
    }
    if problems.is_empty() {
        return Ok(format!("{count} files that documents name are there"));
    }
    bail!("documents name files that are not there:\n  {}", problems.join("\n  "))
}

/// Whether a name means a file of this repository: a name in capitals stands for any file, a bare name for an idea.
fn is_source(name: &str) -> bool {
    let folders = name.contains("src/") || name.contains("tests/");
    folders && !name.split(['/', '.']).any(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_capitals_and_a_bare_name_mean_no_file() {
        for name in ["crates/event/src/table.rs", "event/src/fold/mod.rs", "cli/tests/it/main.rs"] {
            assert!(is_source(name), "{name}");
        }
        for name in ["crates/event/src/fold/NAME.rs", "main.rs", "hand/plan.rs"] {
            assert!(!is_source(name), "{name}");
        }
    }
}
