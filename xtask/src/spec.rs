//! The specification as data: every numbered rule and every numbered section of docs/spec, as they are written there.
//!
//! No number of rules is written here. A rule exists because its document has a line for it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::markdown::{self, anchor, headings};
use crate::repo::Repo;

pub const FOLDER: &str = "docs/spec/";

/// The documents whose sections a comment may cite, in the order in which they take precedence.
pub const DOCUMENTS: &[&str] =
    &["tool-contract", "store", "agent-runtime", "agents-and-subagents", "http-api", "mcp", "cli"];

/// A series of numbered rules: where its lines stand and how a line begins.
#[derive(Debug)]
pub struct Series {
    pub title: &'static str,
    /// How a document or a comment writes the rule before its number.
    pub written: &'static str,
    /// How the name of a test writes it.
    pub in_name: &'static str,
    pub document: &'static str,
    /// The heading under which all lines of the series stand; `None` if they stand all over the document.
    heading: Option<&'static str>,
    form: Form,
}

/// How one rule is written down.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// `- **L1 Title.** Text.`
    Bullet,
    /// `1. Text.`
    Listed,
    /// A row whose first cell is the number, after `mark`. `text` are the cells that say the rule, in order.
    Row { mark: &'static str, text: &'static [usize], carried_out_by: Option<usize> },
}

pub const SERIES: &[Series] = &[
    Series {
        title: "Laws of a tool call",
        written: "L",
        in_name: "l",
        document: "tool-contract",
        heading: Some("25. LAWS"),
        form: Form::Bullet,
    },
    Series {
        title: "Rulings of the tool contract",
        written: "R",
        in_name: "r",
        document: "tool-contract",
        heading: Some("2. Rulings where the sources disagree"),
        form: Form::Row { mark: "R", text: &[1, 3], carried_out_by: None },
    },
    Series {
        title: "Invariants of the store",
        written: "S",
        in_name: "s",
        document: "store",
        heading: Some("3. Invariants"),
        form: Form::Row { mark: "S", text: &[1], carried_out_by: None },
    },
    Series {
        title: "Fault tests of the store",
        written: "F",
        in_name: "f",
        document: "store",
        heading: Some("12. Fault tests"),
        form: Form::Row { mark: "F", text: &[1], carried_out_by: None },
    },
    Series {
        title: "Acceptance checks of the agent runtime",
        written: "check ",
        in_name: "check",
        document: "agent-runtime",
        heading: Some("11. Acceptance checks"),
        form: Form::Row { mark: "", text: &[1], carried_out_by: None },
    },
    Series {
        title: "Failures that the agent runtime prevents",
        written: "H",
        in_name: "h",
        document: "agent-runtime",
        heading: Some("12. Where we go beyond"),
        form: Form::Row { mark: "H", text: &[1, 2], carried_out_by: None },
    },
    Series {
        title: "Clauses on agents and subagents",
        written: "SA-",
        in_name: "sa_",
        document: "agents-and-subagents",
        heading: None,
        form: Form::Row { mark: "SA-", text: &[3], carried_out_by: None },
    },
    Series {
        title: "Conformance tests of the HTTP API",
        written: "http-api test ",
        in_name: "api",
        document: "http-api",
        heading: Some("14. Conformance tests"),
        form: Form::Listed,
    },
    Series {
        title: "Rulings between documents",
        written: "ruling ",
        in_name: "ruling",
        document: "README",
        heading: Some("Conflicts and rulings"),
        form: Form::Row { mark: "", text: &[1, 2], carried_out_by: Some(3) },
    },
];

/// One numbered rule: its series and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Index into [`SERIES`].
    pub series: usize,
    pub number: u32,
}

impl Rule {
    /// The rule that a document writes so, such as `L` and 7, `SA-` and 17, `check ` and 5.
    pub fn written(written: &str, number: u32) -> Option<Self> {
        let series = SERIES.iter().position(|series| series.written == written)?;
        Some(Self { series, number })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", SERIES[self.series].written, self.number)
    }
}

/// What the specification says under a rule's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The rule in one sentence of Markdown, cut where it is long.
    pub sentence: String,
    /// The heading above it: its number (none in the README) and its anchor.
    pub section: Option<String>,
    pub anchor: String,
    /// The places whose rules carry out this one. Such a rule needs no test of its own.
    pub carried_out_by: Option<String>,
}

/// A numbered heading, or a paragraph that begins with a number of the kind `15.2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub number: String,
    pub heading: String,
    pub anchor: String,
}

/// The whole specification.
#[derive(Debug, Default)]
pub struct Spec {
    pub clauses: BTreeMap<Rule, Clause>,
    sections: BTreeMap<&'static str, Vec<Section>>,
}

impl Spec {
    pub fn read(repo: &Repo) -> Result<Self> {
        let mut spec = Self::default();
        for document in DOCUMENTS.iter().copied().chain(["README"]) {
            let file = format!("{FOLDER}{document}.md");
            let text = fs::read_to_string(repo.path(&file)).with_context(|| format!("{file} cannot be read"))?;
            spec.add(document, &text).with_context(|| format!("in {file}"))?;
        }
        Ok(spec)
    }

    /// Takes in one document. A series without a line means that this module no longer reads what is written there.
    pub fn add(&mut self, document: &'static str, text: &str) -> Result<()> {
        self.sections.insert(document, sections(text));
        for (index, series) in SERIES.iter().enumerate().filter(|(_, series)| series.document == document) {
            let before = self.clauses.len();
            for (number, clause) in clauses(series, text) {
                let rule = Rule { series: index, number };
                if self.clauses.insert(rule, clause).is_some() {
                    bail!("{rule} is written twice");
                }
            }
            if self.clauses.len() == before {
                bail!("no rule of the series {} was found; xtask/src/spec.rs says how one is written", series.title);
            }
        }
        Ok(())
    }

    pub fn has(&self, rule: Rule) -> bool {
        self.clauses.contains_key(&rule)
    }

    pub fn sections(&self, document: &str) -> &[Section] {
        self.sections.get(document).map_or(&[], Vec::as_slice)
    }

    pub fn has_section(&self, document: &str, number: &str) -> bool {
        self.sections(document).iter().any(|section| section.number == number)
    }

    /// Whether a section of any document has this number.
    pub fn is_section_number(&self, number: &str) -> bool {
        DOCUMENTS.iter().any(|document| self.has_section(document, number))
    }

    pub fn rules_of(&self, series: usize) -> impl Iterator<Item = (&Rule, &Clause)> {
        self.clauses.iter().filter(move |(rule, _)| rule.series == series)
    }
}

fn sections(text: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    for (heading, lines) in headings(text) {
        let anchor = anchor(heading);
        if let Some((number, title)) = numbered(heading) {
            sections.push(Section { number, heading: title.to_owned(), anchor: anchor.clone() });
        }
        for line in lines {
            if let Some((number, rest)) = numbered(line).filter(|(number, _)| number.contains('.')) {
                sections.push(Section { number, heading: markdown::sentence(&[rest]), anchor: anchor.clone() });
            }
        }
    }
    sections
}

/// `13. Permission` → `13`, `13.7 After the reply` → `13.7`.
fn numbered(line: &str) -> Option<(String, &str)> {
    let (number, rest) = line.split_once(' ')?;
    let number = number.strip_suffix('.').unwrap_or(number);
    let is_number = number.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_number.then(|| (number.to_owned(), rest.trim()))
}

fn clauses(series: &Series, text: &str) -> Vec<(u32, Clause)> {
    let mut found = Vec::new();
    for (heading, lines) in headings(text) {
        if series.heading.is_some_and(|prefix| !heading.starts_with(prefix)) {
            continue;
        }
        let section = numbered(heading).map(|(number, _)| number);
        for line in lines {
            let Some((number, sentence, carried_out_by)) = series.form.read(series.written, line) else { continue };
            let clause = Clause { sentence, section: section.clone(), anchor: anchor(heading), carried_out_by };
            found.push((number, clause));
        }
    }
    found
}

impl Form {
    /// The number, the sentence and the places that carry it out, if the line is a rule of this form.
    fn read(self, written: &str, line: &str) -> Option<(u32, String, Option<String>)> {
        match self {
            Self::Bullet => {
                let (number, text) = line.strip_prefix("- **")?.strip_prefix(written)?.split_once(' ')?;
                let (title, text) = text.split_once("**")?;
                Some((
                    number.parse().ok()?,
                    markdown::sentence(&[&format!("{}: {}", title.trim_end_matches('.'), text.trim())]),
                    None,
                ))
            }
            Self::Listed => {
                let (number, text) = line.split_once(". ")?;
                Some((number.parse().ok()?, markdown::sentence(&[text]), None))
            }
            Self::Row { mark, text, carried_out_by } => {
                let cells = markdown::cells(line)?;
                let number = cells.first()?.strip_prefix(mark)?.parse().ok()?;
                let parts = text.iter().map(|at| cells.get(*at).copied()).collect::<Option<Vec<_>>>()?;
                let places = carried_out_by.and_then(|at| cells.get(at)).map(|cell| (*cell).to_owned());
                Some((number, markdown::sentence(&parts), places))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(written: &str) -> &'static Series {
        SERIES.iter().find(|series| series.written == written).expect("the tests name series that exist")
    }

    fn read(written: &str, text: &str) -> Vec<(u32, String)> {
        clauses(series(written), text).into_iter().map(|(number, clause)| (number, clause.sentence)).collect()
    }

    #[test]
    fn each_form_of_a_rule_is_read() {
        let cases = [
            ("L", "## 25. LAWS\n- **L7 Identity.** Every record. More.\n", (7, "Identity: Every record.")),
            ("R", "## 2. Rulings where the sources disagree\n| R4 | no | a | **b** |\n", (4, "no → b")),
            ("S", "## 3. Invariants (each)\n| S12 | A wake `a\\|b` |\n", (12, "A wake `a\\|b`")),
            ("check ", "## 11. Acceptance checks (minimum)\n| 5 | Two. Three. |\n", (5, "Two.")),
            ("SA-", "## 1. Tool kinds\n| SA-155 | M | C | rule | test |\n", (155, "rule")),
            ("http-api test ", "## 14. Conformance tests\n1. **SDK**: fresh. More.\n", (1, "SDK: fresh.")),
            ("ruling ", "## Conflicts and rulings\n| 50 | a | b | store §4 |\n", (50, "a → b")),
        ];
        for (written, text, (number, sentence)) in cases {
            assert_eq!(read(written, text), [(number, sentence.to_owned())], "{text}");
        }
    }

    #[test]
    fn a_rule_counts_only_under_its_heading_and_outside_code() {
        assert_eq!(read("check ", "## 10. Sandbox\n| 5 | Two. |\n"), []);
        assert_eq!(read("L", "## 25. LAWS\n```\n- **L7 Identity.** Text.\n```\n"), []);
        assert_eq!(read("S", "## 3. Invariants\n| # | Invariant |\n|---|---|\n"), []);
    }

    #[test]
    fn a_number_that_is_written_twice_and_a_series_without_rules_are_refused() {
        let twice = "## 3. Invariants\n| S1 | a |\n| S1 | b |\n## 12. Fault tests\n| F1 | a | b |\n";
        let error = Spec::default().add("store", twice).expect_err("S1 is there twice");
        assert_eq!(error.to_string(), "S1 is written twice");
        let none = "## 3. Invariants\n| S1 | a |\n";
        assert!(Spec::default().add("store", none).is_err(), "there is no fault test");
    }

    #[test]
    fn sections_are_numbered_headings_and_numbered_paragraphs() -> Result<()> {
        let mut spec = Spec::default();
        spec.add(
            "cli",
            "# The command line\n## 1. Commands\n### 1.2 Flags: `-q`\n1.3 A file. More.\n1. listed\n## Other\n",
        )?;
        let found: Vec<_> =
            spec.sections("cli").iter().map(|s| (s.number.as_str(), s.heading.as_str(), s.anchor.as_str())).collect();
        assert_eq!(
            found,
            [("1", "Commands", "1-commands"), ("1.2", "Flags: `-q`", "12-flags--q"), ("1.3", "A file.", "12-flags--q")]
        );
        assert!(spec.has_section("cli", "1.2") && !spec.has_section("cli", "2"));
        assert!(spec.is_section_number("1.3") && !spec.is_section_number("1.4"));
        Ok(())
    }

    #[test]
    fn the_specification_of_this_repository_is_read() -> Result<()> {
        let spec = Spec::read(&Repo::find()?)?;
        for (written, number) in [("L", 77), ("R", 13), ("S", 17), ("F", 21), ("H", 45), ("SA-", 155), ("check ", 38)] {
            let rule = Rule::written(written, number).context("the series exists")?;
            assert!(spec.has(rule), "{rule} is not found");
        }
        assert!(spec.has_section("tool-contract", "15.2"));
        assert!(spec.has_section("agent-runtime", "7.0"));
        Ok(())
    }
}
