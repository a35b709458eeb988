//! A mutant's patch: a small wrong change, and the tests that must notice it.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::process;
use crate::repo::Repo;

const FOLDER: &str = "mutants";

/// One file of `mutants/`, its header read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub name: String,
    /// What the change breaks, for a person.
    pub what: String,
    pub package: String,
    /// Names of test functions in that package; each must fail.
    pub tests: Vec<String>,
}

impl Patch {
    /// Every patch of the repository, by name.
    pub fn all(repo: &Repo) -> Result<Vec<Self>> {
        let mut patches = Vec::new();
        for file in repo.files()? {
            let Some(name) = file.strip_prefix("mutants/").and_then(|file| file.strip_suffix(".patch")) else {
                continue;
            };
            let text = fs::read_to_string(repo.path(&file)).with_context(|| format!("{file} cannot be read"))?;
            patches.push(Self::parse(name, &text).with_context(|| file.clone())?);
        }
        Ok(patches)
    }

    /// Reads the header: the lines before the diff.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let mut what = None;
        let mut killed_by = None;
        let mut diff = false;
        for line in text.lines() {
            if line.starts_with("diff --git ") || line.starts_with("--- ") {
                diff = true;
                break;
            }
            let slot = if line.starts_with("# what:") {
                &mut what
            } else if line.starts_with("# killed-by:") {
                &mut killed_by
            } else {
                continue;
            };
            let value = line.split_once(':').map_or("", |(_, value)| value.trim());
            if slot.replace(value.to_owned()).is_some() {
                bail!("`{line}` is the second of its kind");
            }
        }
        if !diff {
            bail!("it holds no diff");
        }
        let what = what.filter(|what| !what.is_empty());
        let what = what.context("the line `# what: …` is missing before the diff")?;
        let killed_by = killed_by.context("the line `# killed-by: -p CRATE TEST…` is missing before the diff")?;
        let mut words = killed_by.split_whitespace();
        let (Some("-p"), Some(package)) = (words.next(), words.next()) else {
            bail!("`# killed-by: {killed_by}` must read `-p CRATE TEST…`");
        };
        let tests: Vec<String> = words.map(str::to_owned).collect();
        if tests.is_empty() {
            bail!("`# killed-by: {killed_by}` names no test");
        }
        if let Some(odd) = tests.iter().find(|test| !is_test_name(test)) {
            bail!("`{odd}` in `# killed-by:` is not the name of a test");
        }
        Ok(Self { name: name.to_owned(), what, package: package.to_owned(), tests })
    }

    pub fn file(&self) -> String {
        format!("{FOLDER}/{}.patch", self.name)
    }
}

fn is_test_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
}

/// Fails with every patch that no longer applies to the tree; otherwise says how many do.
pub fn check(repo: &Repo) -> Result<String> {
    let patches = Patch::all(repo)?;
    let mut problems = Vec::new();
    for patch in &patches {
        let file = patch.file();
        if let Err(error) = process::output(repo.git().args(["apply", "--check", &file])) {
            problems.push(format!("{error:#}"));
        }
    }
    if !problems.is_empty() {
        bail!("mutants that no longer apply (write them anew, see mutants/README.md):\n  {}", problems.join("\n  "));
    }
    Ok(match patches.len() {
        0 => "there are no mutants yet".to_owned(),
        count => format!("{count} patches apply"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";

    #[test]
    fn a_header_names_what_it_breaks_and_who_notices() -> Result<()> {
        let text = format!("# what: skips the fence\n# killed-by: -p portcullis-store a_b m::c\n{DIFF}");
        assert_eq!(
            Patch::parse("fence", &text)?,
            Patch {
                name: "fence".to_owned(),
                what: "skips the fence".to_owned(),
                package: "portcullis-store".to_owned(),
                tests: vec!["a_b".to_owned(), "m::c".to_owned()],
            }
        );
        Ok(())
    }

    #[test]
    fn a_header_that_lacks_something_is_refused() {
        let cases = [
            (format!("# killed-by: -p p t\n{DIFF}"), "what"),
            (format!("# what:\n# killed-by: -p p t\n{DIFF}"), "what"),
            (format!("# what: w\n{DIFF}"), "killed-by"),
            (format!("# what: w\n# killed-by: p t\n{DIFF}"), "must read"),
            (format!("# what: w\n# killed-by: -p p\n{DIFF}"), "names no test"),
            (format!("# what: w\n# killed-by: -p p a;b\n{DIFF}"), "not the name"),
            (format!("# what: w\n# what: v\n# killed-by: -p p t\n{DIFF}"), "second"),
            ("# what: w\n# killed-by: -p p t\n".to_owned(), "no diff"),
            (format!("{DIFF}# what: w\n# killed-by: -p p t\n"), "what"),
        ];
        for (text, expected) in cases {
            let error = Patch::parse("x", &text).map_or_else(|error| format!("{error:#}"), |_| String::new());
            assert!(error.contains(expected), "{text}: {error:?}");
        }
    }
}
