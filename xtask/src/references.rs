//! Every reference to the specification resolves: in the comments of all sources and in the documents.
//!
//! A rule is cited by its number (`L37`, `SA-17`, `check 18`, `ruling 50`), a section by its document and its number
//! (`tool-contract §24`, `agent-runtime 5.7`, further ones behind it). What stands between backticks is code; there the
//! name of a test cites the rules that it begins with.

use std::fs;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use regex::{Captures, Regex};

use crate::citations;
use crate::repo::Repo;
use crate::rules;
use crate::rust_source::{NO_TEXT, comments_only, line_of};
use crate::spec::{DOCUMENTS, FOLDER, Rule, SERIES, Spec};

/// Fails with every reference that does not resolve, one a line; otherwise says how many there are.
pub fn check(repo: &Repo, spec: &Spec) -> Result<String> {
    let patterns = Patterns::new()?;
    let mut problems = Vec::new();
    let mut count = 0;
    for file in repo.files()? {
        if rules::REFERENCES_UNCHECKED.iter().any(|(unchecked, _)| *unchecked == file) {
            continue;
        }
        let read = || fs::read_to_string(repo.path(&file)).with_context(|| format!("{file} cannot be read"));
        let (text, home) = if file.ends_with(".rs") {
            (comments_only(&read()?), None)
        } else if file.ends_with(".md") {
            (read()?, file.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(".md")))
        } else {
            continue;
        };
        let read = Reading { spec, patterns: &patterns, home }.read(&text);
        count += read.count;
        problems.extend(read.problems.iter().map(|(at, problem)| format!("{file}:{}: {problem}", line_of(&text, *at))));
    }
    if problems.is_empty() {
        return Ok(format!("{count} references resolve"));
    }
    bail!("references that do not resolve:\n  {}", problems.join("\n  "))
}

/// Words after which a number with a point is taken for a section: "the table of 8.6".
const SECTION_WORDS: &[&str] = &["of", "as", "in", "by", "see", "and", "to"];
/// What makes a number a quantity.
const UNITS: &[&str] = &["s", "ms", "µs", "seconds", "minutes", "times", "KB", "MB", "GB", "KiB", "MiB", "GiB", "%"];

/// How references are written.
struct Patterns {
    fenced: Regex,
    code: Regex,
    lettered: Regex,
    worded: Regex,
    sections: Regex,
    item: Regex,
    number: Regex,
    test_name: Regex,
}

impl Patterns {
    fn new() -> Result<Self> {
        let documents = DOCUMENTS.join("|");
        // A series whose mark ends with a space is cited by a word, in any case and number: `Checks 4 and 5`.
        let (words, letters): (Vec<&str>, Vec<&str>) =
            SERIES.iter().map(|series| series.written).partition(|written| written.ends_with(' '));
        let letters = letters.join("|");
        let words: Vec<String> = words.iter().map(|word| word.trim_end().replace(' ', r"\s+")).collect();
        let words = words.join("|");
        let item = r"(?:§\s?\d{1,2}(?:\.\d{1,2})?|\d{1,2}\.\d{1,2})";
        Ok(Self {
            fenced: Regex::new("(?s)```.*?```")?,
            code: Regex::new(r"`[^`\x00]*`")?,
            lettered: Regex::new(&format!(r"\b({letters})(\d{{1,3}})\b"))?,
            worded: Regex::new(&format!(r"\b(?i:({words}))s?\s+(\d{{1,3}}(?:(?:–|,\s+|\s+and\s+)\d{{1,3}})*)\b"))?,
            sections: Regex::new(&format!(
                r"\b(?i:({documents}))(\.md)?\s+({item}(?:(?:–|(?:,|;)\s+(?:and\s+)?|\s+and\s+|\s+or\s+)(?:{item})|–\d{{1,2}})*)"
            ))?,
            item: Regex::new(&format!(r"{item}|\d{{1,2}}"))?,
            number: Regex::new(r"\d{1,3}")?,
            test_name: Regex::new(r"`(?:\w+::)*([a-z]+_?\d{1,3}_\w*)")?,
        })
    }
}

/// One text being read. `home` is the document of the specification that it is: its own sections need no name there.
struct Reading<'a> {
    spec: &'a Spec,
    patterns: &'a Patterns,
    home: Option<&'a str>,
}

/// What was found in a text.
#[derive(Default)]
struct References {
    count: usize,
    /// Each with its offset.
    problems: Vec<(usize, String)>,
}

impl Reading<'_> {
    fn read(&self, text: &str) -> References {
        let mut references = References::default();
        for found in self.patterns.test_name.captures_iter(text) {
            for rule in citations::rules_in(&found[1]).0 {
                references.count += 1;
                if !self.spec.has(rule) {
                    let name = &found[1];
                    references.problems.push((
                        found.get_match().start(),
                        format!("`{name}` cites {rule}, which docs/spec does not have; name the test that is meant"),
                    ));
                }
            }
        }
        let mut prose = without(&self.patterns.code, &without(&self.patterns.fenced, text));
        for found in self.patterns.sections.captures_iter(&prose.clone()) {
            self.named_sections(&found, &mut references);
            erase(&mut prose, found.get_match().range());
        }
        for found in self.patterns.worded.captures_iter(&prose) {
            let written =
                format!("{} ", found[1].to_ascii_lowercase().split_whitespace().collect::<Vec<_>>().join(" "));
            for number in self.patterns.number.find_iter(&found[2]) {
                self.rule(&written, number.as_str(), found.get_match().start(), &mut references);
            }
        }
        for found in self.patterns.lettered.captures_iter(&prose) {
            let at = found.get_match().start();
            // Part of a longer word: `ISO-8859-S1`, `a/L3`.
            if prose[..at].ends_with(['-', '/', '.', '_']) {
                continue;
            }
            self.rule(&found[1], &found[2], at, &mut references);
        }
        self.bare_sections(&prose, &mut references);
        references
    }

    fn rule(&self, written: &str, number: &str, at: usize, references: &mut References) {
        references.count += 1;
        let known = number.parse().ok().and_then(|number| Rule::written(written, number));
        if !known.is_some_and(|rule| self.spec.has(rule)) {
            references.problems.push((
                at,
                format!(
                    "docs/spec has no {written}{number}; cite the rule that is meant, or reword what is no reference"
                ),
            ));
        }
    }

    /// `tool-contract §24`, `agent-runtime 10.1–10.3`, `store §8, §11`.
    fn named_sections(&self, found: &Captures<'_>, references: &mut References) {
        let document = found[1].to_ascii_lowercase();
        let at = found.get_match().start();
        for item in self.patterns.item.find_iter(&found[3]) {
            references.count += 1;
            let number = item.as_str().trim_start_matches(['§', ' ']);
            let form = cited(&document, number);
            if found.get(2).is_some() || (item.as_str().starts_with('§') && number.contains('.')) {
                references.problems.push((at, format!("`{}` is written `{form}`", found.get_match().as_str())));
            } else if !self.spec.has_section(&document, number) {
                references.problems.push((at, format!("docs/spec has no {form}; cite the section that is meant")));
            }
        }
    }

    /// Section numbers without a document. In a document of the specification they are its own.
    fn bare_sections(&self, prose: &str, references: &mut References) {
        for found in self.patterns.item.find_iter(prose) {
            let at = found.start();
            let number = found.as_str().trim_start_matches(['§', ' ']);
            let marked = found.as_str().starts_with('§');
            let meant = marked || number.contains('.') && self.looks_like_a_section(prose, found.range());
            if !meant {
                continue;
            }
            references.count += 1;
            match self.home {
                Some(home) if self.spec.has_section(home, number) => {}
                _ => references.problems.push((at, self.bare(found.as_str(), number))),
            }
        }
    }

    fn bare(&self, written: &str, number: &str) -> String {
        let meant: Vec<String> = DOCUMENTS
            .iter()
            .filter(|document| self.spec.has_section(document, number))
            .map(|document| format!("`{}`", cited(document, number)))
            .collect();
        match meant.as_slice() {
            [] => format!("`{written}` names no document, and none has such a section; cite the one that is meant"),
            _ => format!("`{written}` names no document; write it as {}", meant.join(" or ")),
        }
    }

    /// Whether a number with a point is meant as a section: a document has it, and it stands alone in brackets or behind
    /// a word such as `of`, but not before a unit.
    fn looks_like_a_section(&self, prose: &str, number: Range<usize>) -> bool {
        let (before, after) = (&prose[..number.start], &prose[number.end..]);
        if !self.spec.is_section_number(&prose[number]) || !after.starts_with(ends_a_number) {
            return false;
        }
        if before.ends_with('(') {
            return after.starts_with([')', ',', ';', ':']);
        }
        let word = before.split_whitespace().next_back().filter(|_| before.ends_with(char::is_whitespace));
        let next = after.split_whitespace().next().unwrap_or_default().trim_end_matches([',', '.', ';', ')']);
        word.is_some_and(|word| SECTION_WORDS.contains(&word)) && !UNITS.contains(&next)
    }
}

fn ends_a_number(c: char) -> bool {
    c.is_whitespace() || matches!(c, ')' | ',' | ';' | ':')
}

/// The one form in which a section is cited.
fn cited(document: &str, number: &str) -> String {
    let mark = if number.contains('.') { "" } else { "§" };
    format!("{document} {mark}{number}")
}

fn without(pattern: &Regex, text: &str) -> String {
    let mut left = text.to_owned();
    for found in pattern.find_iter(text) {
        erase(&mut left, found.range());
    }
    left
}

/// Overwrites a range with what no pattern matches; line breaks stay.
fn erase(text: &mut String, range: Range<usize>) {
    let erased: String =
        text[range.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { char::from(NO_TEXT) }).collect();
    text.replace_range(range, &erased);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of a comment (or of the document `home`), without their offsets, and how many references there are.
    fn problems(text: &str, home: Option<&str>) -> Result<(usize, Vec<String>)> {
        let spec = Spec::read(&Repo::find()?)?;
        let references = Reading { spec: &spec, patterns: &Patterns::new()?, home }.read(text);
        Ok((references.count, references.problems.into_iter().map(|(_, problem)| problem).collect()))
    }

    #[test]
    fn a_reference_to_what_the_specification_has_resolves() -> Result<()> {
        let cases = [
            ("kept (L37), R1 and S12; F3, H18.", 5),
            ("SA-17 and SA-28–SA-30", 3),
            ("check 18, checks 5 and 7, Check 4: nothing", 4),
            ("ruling 50 and http-api test 3", 2),
            ("(tool-contract §24)", 1),
            ("(agent-runtime 10.1–10.3, 5.4, step 10)", 3),
            ("Store §8, §11 and tool-contract 13.7", 3),
            ("tool-contract\n §24", 1),
            ("(tool-contract §19, 15.2, L65)", 3),
            ("see `check38_a_rule` and `around::l36_x`", 2),
            ("since Linux 5.4, in 2.5 s, version 0.2, v5.4, 127.0.0.1, TLS 1.3 (1.3 is newer)", 0),
            ("`L999`, `§99`, ISO-L999, a/S99", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(problems(text, None)?, (expected, Vec::new()), "{text}");
        }
        Ok(())
    }

    #[test]
    fn what_does_not_resolve_is_told_with_what_to_do() -> Result<()> {
        let cases = [
            ("L999", "docs/spec has no L999; cite the rule"),
            ("SA-999", "docs/spec has no SA-999;"),
            ("check 99", "docs/spec has no check 99;"),
            ("ruling 99", "docs/spec has no ruling 99;"),
            ("store §99", "docs/spec has no store §99;"),
            ("agent-runtime 5.99", "docs/spec has no agent-runtime 5.99;"),
            ("cli.md §4", "`cli.md §4` is written `cli §4`"),
            ("store §4.1", "`store §4.1` is written `store 4.1`"),
            ("cut (§17)", "`§17` names no document; write it as `tool-contract §17` or `agents-and-subagents §17`"),
            ("cut (§99)", "`§99` names no document, and none has such a section;"),
            ("an ask (13.6)", "`13.6` names no document;"),
            ("the table of 8.6:", "`8.6` names no document;"),
            ("`l999_x`", "`l999_x` cites L999,"),
        ];
        for (text, expected) in cases {
            let (_, problems) = problems(text, None)?;
            assert!(matches!(problems.as_slice(), [one] if one.starts_with(expected)), "{text}: {problems:?}");
        }
        Ok(())
    }

    #[test]
    fn a_document_of_the_specification_cites_its_own_sections_by_number() -> Result<()> {
        assert_eq!(problems("as in §6 and (5.4)", Some("agent-runtime"))?, (2, Vec::new()));
        assert_eq!(problems("as in §26", Some("agent-runtime"))?.1.len(), 1);
        Ok(())
    }

    #[test]
    fn only_the_comments_of_a_source_are_read() -> Result<()> {
        let source = "let a = \"§1\"; // of tool-contract\n// §24\nlet b = S99;\n// §5\n";
        assert_eq!(problems(&comments_only(source), None)?.1.len(), 1);
        Ok(())
    }
}
