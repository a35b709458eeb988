//! A mutant: a small wrong change to the code, and the tests that must notice it.
//!
//! The mutants of `crates/NAME` are in `mutants/NAME.toml`. Each is kept as a text to find and a text to put in its
//! place, so that a function may move within its file. `mutants/README.md` describes the keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::repo::Repo;
use crate::rules;

const FOLDER: &str = "mutants/";

/// Tests that each store runs: a macro names them in the crate of the store.
const SHARED_TESTS: &str = "crates/store-testkit/src/conformance/";

/// One wrong change, as it is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    pub name: String,
    /// The promise that is broken, for a person.
    pub what: String,
    /// The folder under `crates/` whose code is changed.
    pub of: String,
    /// The folder under `crates/` whose tests must notice it.
    pub tests_in: String,
    /// Names of test functions there; each must fail.
    pub tests: Vec<String>,
    edits: Vec<Edit>,
}

/// One text of a file, and what is put in its place.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// In a document relative to the crate, in a [`Mutant`] relative to the repository.
    file: String,
    find: String,
    replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    mutant: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    what: String,
    file: String,
    find: String,
    replace: String,
    tests_in: Option<String>,
    killed_by: Vec<String>,
    /// What else must be changed for the mutant to be wrong.
    #[serde(default)]
    edit: Vec<Edit>,
}

impl Mutant {
    /// Every mutant of the repository: by crate, then in the order of its file.
    pub fn all(repo: &Repo) -> Result<Vec<Self>> {
        Self::among(repo, &repo.files()?)
    }

    fn among(repo: &Repo, files: &[String]) -> Result<Vec<Self>> {
        let mut mutants = Vec::new();
        for file in files.iter().filter(|file| file.starts_with(FOLDER) && **file != format!("{FOLDER}README.md")) {
            let Some(of) = file.strip_prefix(FOLDER).and_then(|file| file.strip_suffix(".toml")) else {
                bail!("{file} is no list of mutants; each crate has one, {FOLDER}CRATE.toml");
            };
            mutants.extend(Self::parse(of, &read(repo, file)?).with_context(|| file.clone())?);
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = mutants.iter().find(|mutant| !names.insert(&mutant.name)) {
            bail!("two mutants are named `{}`", twice.name);
        }
        Ok(mutants)
    }

    /// Reads the list of one crate.
    fn parse(of: &str, text: &str) -> Result<Vec<Self>> {
        let document: Document = toml::from_str(text)?;
        document
            .mutant
            .into_iter()
            .map(|entry| {
                let name = entry.name.clone();
                Self::read(of, entry).with_context(|| format!("mutant `{name}`"))
            })
            .collect()
    }

    fn read(of: &str, entry: Entry) -> Result<Self> {
        if entry.name.is_empty()
            || !entry.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        {
            bail!("a name is made of small letters, digits and hyphens");
        }
        if entry.what.trim().is_empty() {
            bail!("`what` is empty");
        }
        if entry.killed_by.is_empty() {
            bail!("`killed_by` names no test");
        }
        if let Some(odd) = entry.killed_by.iter().find(|test| !is_test_name(test)) {
            bail!("`{odd}` in `killed_by` is not the name of a test");
        }
        let first = Edit { file: entry.file, find: entry.find, replace: entry.replace };
        let mut edits = Vec::new();
        for edit in std::iter::once(first).chain(entry.edit) {
            if edit.find.trim().is_empty() || edit.find == edit.replace {
                bail!("`find` must hold something, and `replace` something else");
            }
            edits.push(Edit { file: format!("crates/{of}/{}", edit.file), ..edit });
        }
        Ok(Self {
            name: entry.name,
            what: entry.what,
            of: of.to_owned(),
            tests_in: entry.tests_in.unwrap_or_else(|| of.to_owned()),
            tests: entry.killed_by,
            edits,
        })
    }

    /// The package whose tests must notice it.
    pub fn package(&self) -> String {
        match self.tests_in.as_str() {
            "portcullis" => "portcullis".to_owned(),
            folder => format!("portcullis-{folder}"),
        }
    }

    /// The files that it changes, each with its new text. Fails unless every text to find is there exactly once.
    pub fn changed(&self, read: impl Fn(&str) -> Result<String>) -> Result<BTreeMap<String, String>> {
        let mut changed = BTreeMap::new();
        for Edit { file, find, replace } in &self.edits {
            let text = match changed.remove(file) {
                Some(text) => text,
                None => read(file)?,
            };
            match text.matches(find.as_str()).count() {
                1 => changed.insert(file.clone(), text.replacen(find.as_str(), replace, 1)),
                count => bail!("{file} holds {count} times, not once: {find}"),
            };
        }
        Ok(changed)
    }
}

/// A function's name, alone or behind the modules that it is in.
fn is_test_name(name: &str) -> bool {
    let word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    name.split("::").all(word)
}

fn read(repo: &Repo, file: &str) -> Result<String> {
    fs::read_to_string(repo.path(file)).with_context(|| format!("{file} cannot be read"))
}

/// Fails with every mutant that no longer fits the sources; otherwise says how many do. Builds nothing.
pub fn check(repo: &Repo) -> Result<String> {
    let files = repo.files()?;
    let mutants = Mutant::among(repo, &files)?;
    if mutants.len() > rules::MUTANTS {
        bail!("{} mutants are more than {}: keep the ones that matter", mutants.len(), rules::MUTANTS);
    }
    let mut sources = BTreeMap::new();
    let mut problems = Vec::new();
    for mutant in &mutants {
        let name = &mutant.name;
        if let Err(error) = mutant.changed(|file| read(repo, file)) {
            problems.push(format!("{name}: {error:#}"));
        }
        if !sources.contains_key(&mutant.tests_in) {
            sources.insert(&mutant.tests_in, sources_of(repo, &files, &mutant.tests_in)?);
        }
        let source = &sources[&mutant.tests_in];
        let absent = mutant.tests.iter().filter(|test| !holds_function(source, test));
        problems.extend(absent.map(|test| format!("{name}: crates/{} has no test `{test}`", mutant.tests_in)));
    }
    if !problems.is_empty() {
        bail!("mutants that no longer fit (mutants/README.md says how to mend one):\n  {}", problems.join("\n  "));
    }
    Ok(format!("{} of at most {} mutants fit", mutants.len(), rules::MUTANTS))
}

/// All Rust sources in which a crate's tests may stand.
fn sources_of(repo: &Repo, files: &[String], folder: &str) -> Result<String> {
    let own = format!("crates/{folder}/");
    let rust = files.iter().filter(|file| file.ends_with(".rs"));
    rust.filter(|file| file.starts_with(&own) || file.starts_with(SHARED_TESTS)).map(|file| read(repo, file)).collect()
}

fn holds_function(source: &str, test: &str) -> bool {
    let name = test.rsplit("::").next().unwrap_or(test);
    source.contains(&format!("fn {name}("))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "[[mutant]]\nname = 'a-b'\nwhat = 'W.'\nfile = 'src/x.rs'\nfind = 'old'\nreplace = 'new'\n\
                       killed_by = ['l01_x', 'm::y']\n";

    fn refused(text: &str) -> String {
        Mutant::parse("store", text).map_or_else(|error| format!("{error:#}"), |_| String::new())
    }

    #[test]
    fn an_entry_names_what_it_breaks_and_who_notices() -> Result<()> {
        let more = "[[mutant.edit]]\nfile = 'src/y.rs'\nfind = 'a'\nreplace = ''\n";
        let edit = |file: &str, find: &str, replace: &str| Edit {
            file: file.to_owned(),
            find: find.to_owned(),
            replace: replace.to_owned(),
        };
        let expected = Mutant {
            name: "a-b".to_owned(),
            what: "W.".to_owned(),
            of: "store".to_owned(),
            tests_in: "store".to_owned(),
            tests: vec!["l01_x".to_owned(), "m::y".to_owned()],
            edits: vec![edit("crates/store/src/x.rs", "old", "new"), edit("crates/store/src/y.rs", "a", "")],
        };
        assert_eq!(Mutant::parse("store", &format!("{ONE}{more}"))?, [expected]);
        Ok(())
    }

    #[test]
    fn tests_are_of_the_same_crate_unless_another_is_named() -> Result<()> {
        let package = |of: &str, text: &str| Ok::<_, anyhow::Error>(Mutant::parse(of, text)?[0].package());
        assert_eq!(package("store", ONE)?, "portcullis-store");
        assert_eq!(package("portcullis", ONE)?, "portcullis");
        assert_eq!(package("store", &format!("{ONE}tests_in = 'cli'\n"))?, "portcullis-cli");
        Ok(())
    }

    #[test]
    fn an_entry_that_lacks_something_is_refused() {
        let cases = [
            ("what = 'W.'\n", "", "what"),
            ("'W.'", "' '", "`what` is empty"),
            ("'a-b'", "'A b'", "small letters"),
            ("killed_by = ['l01_x', 'm::y']\n", "", "killed_by"),
            ("['l01_x', 'm::y']", "[]", "names no test"),
            ("m::y", "m:y", "not the name"),
            ("'old'", "'new'", "something else"),
            ("'old'", "''", "must hold something"),
            ("find", "found", "found"),
        ];
        for (from, to, expected) in cases {
            let error = refused(&ONE.replacen(from, to, 1));
            assert!(error.contains(expected), "{from} -> {to}: {error:?}");
        }
    }

    #[test]
    fn a_text_is_replaced_if_it_is_there_once() -> Result<()> {
        let mutant = &Mutant::parse("store", ONE)?[0];
        let given = |text: &str| mutant.changed(|_| Ok(text.to_owned()));
        let expected = BTreeMap::from([("crates/store/src/x.rs".to_owned(), "a new b".to_owned())]);
        assert_eq!(given("a old b")?, expected);
        for (text, count) in [("a b", "0 times"), ("old old", "2 times")] {
            let error = given(text).map_or_else(|error| format!("{error:#}"), |_| String::new());
            assert!(error.contains(count), "{error:?}");
        }
        Ok(())
    }

    #[test]
    fn edits_of_one_file_follow_each_other() -> Result<()> {
        let more = "[[mutant.edit]]\nfile = 'src/x.rs'\nfind = 'b'\nreplace = 'c'\n";
        let mutant = &Mutant::parse("store", &format!("{ONE}{more}"))?[0];
        let changed = mutant.changed(|_| Ok("old b".to_owned()))?;
        assert_eq!(changed.into_values().collect::<Vec<_>>(), ["new c"]);
        Ok(())
    }

    #[test]
    fn a_test_is_a_function_of_that_very_name() {
        let source = "async fn l01_x() {}";
        assert!(holds_function(source, "l01_x") && holds_function(source, "m::l01_x"));
        assert!(!holds_function(source, "l01") && !holds_function(source, "01_x"));
    }
}
