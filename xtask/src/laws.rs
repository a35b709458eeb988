//! `cargo xtask laws`: docs/laws.md, which says where each numbered rule stands and which tests prove it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::citations::{self, Citations};
use crate::references;
use crate::repo::Repo;
use crate::spec::{Clause, DOCUMENTS, FOLDER, Rule, SERIES, Series, Spec};

pub const HELP: &str = "\
The rules of the specification and their tests: docs/laws.md.

Usage: cargo xtask laws [--write]

Reads the numbered rules and sections of docs/spec, the names of the tests under crates/, and every comment and document.

A test cites a rule by the beginning of its name: l07_, s03_, f02_, h11_, r01_, check05_, sa_017_, ruling50_, api03_ (two
for two rules: l12_s06_). A test is a function under #[test] or #[tokio::test], one inside proptest!, or a rule in the
list of conformance!, which is one test of every backend. An example that must not compile has no name: a file whose
first line of documentation is about compile_fail examples says there which rule they stand for, as (L2).

A comment or a document cites L37, R1, S12, F3, H18, SA-17, check 18, ruling 50, http-api test 3, or a section with the
name of its document: tool-contract §24, agent-runtime 5.7.

Fails if a test, a comment or a document cites what docs/spec does not have, or a section without its document. Without
--write, fails also if docs/laws.md is not what the specification and the tests say; with it, writes that file.";

const FILE: &str = "docs/laws.md";

pub fn run(args: &[String]) -> Result<()> {
    let write = match args {
        [] => false,
        [flag] if flag == "--write" => true,
        _ => bail!("`cargo xtask laws` takes --write or nothing"),
    };
    let repo = Repo::find()?;
    if !write {
        println!("{}", check(&repo)?);
        return Ok(());
    }
    let spec = Spec::read(&repo)?;
    let citations = citations::scan(&repo, &spec)?;
    fs::write(repo.path(FILE), rendered(&spec, &citations)).with_context(|| format!("{FILE} cannot be written"))?;
    println!("wrote {FILE}: {}", summary(&spec, &citations));
    println!("{}", references::check(&repo, &spec)?);
    Ok(())
}

/// Fails unless every reference resolves and docs/laws.md is what the specification and the tests say.
pub fn check(repo: &Repo) -> Result<String> {
    let spec = Spec::read(repo)?;
    let citations = citations::scan(repo, &spec)?;
    let references = references::check(repo, &spec)?;
    let written = fs::read_to_string(repo.path(FILE)).unwrap_or_default();
    if written != rendered(&spec, &citations) {
        bail!("{FILE} is not current; `cargo xtask laws --write` brings it up to date");
    }
    Ok(format!("{}; {references}", summary(&spec, &citations)))
}

fn summary(spec: &Spec, citations: &Citations) -> String {
    format!("{} of {} rules have a test", citations.len(), spec.clauses.len())
}

fn rendered(spec: &Spec, citations: &Citations) -> String {
    let mut text = String::from(
        "# Laws\n\n\
         <!-- Written by `cargo xtask laws --write`; do not edit. -->\n\n\
         This page lists every numbered rule of the [specification](spec/README.md) with its place and its tests. `cargo\n\
         xtask laws --write` makes it from `docs/spec` and from the names of the tests. A rule is changed in `docs/spec`, in\n\
         the commit that changes the behaviour. The sentences here are cut; the specification holds the whole rule.\n\n\
         | series | cited as | a test begins with | rules | with a test | without |\n|---|---|---|---|---|---|\n",
    );
    for (index, series) in SERIES.iter().enumerate() {
        let rules = spec.rules_of(index).count();
        let tested = spec.rules_of(index).filter(|(rule, _)| citations.contains_key(rule)).count();
        let without = spec.rules_of(index).filter(|(rule, clause)| lacks_test(citations, rule, clause)).count();
        let without = if without == 0 { "–".to_owned() } else { format!("**{without}**") };
        text.push_str(&format!(
            "| [{}](#{}) | `{}N` | `{}N_` | {rules} | {tested} | {without} |\n",
            series.title,
            crate::markdown::anchor(series.title),
            series.written,
            series.in_name
        ));
    }
    text.push_str(
        "\nA ruling between documents is carried out by the rules that it names, so it needs no test of its own.\n",
    );
    for (index, series) in SERIES.iter().enumerate() {
        text.push_str(&format!(
            "\n## {}\n\n| rule | what it says | place | tests |\n|---|---|---|---|\n",
            series.title
        ));
        for (rule, clause) in spec.rules_of(index) {
            let row =
                [rule.to_string(), clause.sentence.clone(), place(series, clause), tests(citations, rule, clause)];
            text.push_str(&format!("| {} |\n", row.join(" | ")));
        }
    }
    text.push_str("\n## Sections\n\nA comment cites a section with the name of its document: `tool-contract §24`, `agent-runtime 5.7`.\n");
    for document in DOCUMENTS {
        text.push_str(&format!("\n### {document}\n\n| section | heading |\n|---|---|\n"));
        for section in spec.sections(document) {
            let mark = if section.number.contains('.') { "" } else { "§" };
            text.push_str(&format!(
                "| [{mark}{}](spec/{document}.md#{}) | {} |\n",
                section.number, section.anchor, section.heading
            ));
        }
    }
    text
}

fn lacks_test(citations: &Citations, rule: &Rule, clause: &Clause) -> bool {
    !citations.contains_key(rule) && clause.carried_out_by.is_none()
}

fn place(series: &Series, clause: &Clause) -> String {
    let name = match &clause.section {
        Some(section) => format!("{} §{section}", series.document),
        None => series.document.to_owned(),
    };
    // The links are relative to docs/.
    let folder = FOLDER.strip_prefix("docs/").unwrap_or(FOLDER);
    format!("[{name}]({folder}{}.md#{})", series.document, clause.anchor)
}

/// The tests of a rule, those of one file together.
fn tests(citations: &Citations, rule: &Rule, clause: &Clause) -> String {
    let Some(tests) = citations.get(rule) else {
        return match &clause.carried_out_by {
            Some(places) => format!("carried out by {places}"),
            None => "**no test yet**".to_owned(),
        };
    };
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, test) in tests {
        files.entry(file).or_default().push(format!("`{test}`"));
    }
    let lists: Vec<String> = files.iter().map(|(file, tests)| format!("{} ({file})", tests.join(", "))).collect();
    lists.join("<br>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_shows_its_place_and_its_tests_and_one_without_a_test_stands_out() -> Result<()> {
        let mut spec = Spec::default();
        spec.add(
            "store",
            "## 3. Invariants\n| S1 | No gap. |\n| S2 | A chain. |\n## 12. Fault tests\n| F1 | a | b |\n",
        )?;
        spec.add("README", "## Conflicts and rulings\n| 1 | case | table | all |\n")?;
        let rule = Rule::written("S", 1).context("the series exists")?;
        let mut citations = Citations::new();
        for (file, test) in [("crates/a.rs", "s01_x"), ("crates/b.rs", "s01_z"), ("crates/a.rs", "s01_y")] {
            citations.entry(rule).or_default().insert((file.to_owned(), test.to_owned()));
        }
        let text = rendered(&spec, &citations);
        let lines = [
            "| [Invariants of the store](#invariants-of-the-store) | `SN` | `sN_` | 2 | 1 | **1** |",
            "| [Rulings between documents](#rulings-between-documents) | `ruling N` | `rulingN_` | 1 | 0 | – |",
            "| S1 | No gap. | [store §3](spec/store.md#3-invariants) | `s01_x`, `s01_y` (crates/a.rs)<br>`s01_z` (crates/b.rs) |",
            "| S2 | A chain. | [store §3](spec/store.md#3-invariants) | **no test yet** |",
            "| ruling 1 | case → table | [README](spec/README.md#conflicts-and-rulings) | carried out by all |",
            "| [§3](spec/store.md#3-invariants) | Invariants |",
        ];
        for line in lines {
            assert!(text.lines().any(|written| written == line), "{line}\nis not in\n{text}");
        }
        Ok(())
    }
}
