//! `cargo xtask laws`: which test stands for which numbered law, kept in ARCHITECTURE.md.
//!
//! A test cites its law by its name: `l07_stale_call_is_refused`, `s03_…`, `f02_…`. A test that stands for two says both:
//! `l12_s06_…`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::repo::Repo;
use crate::rules;
use crate::rust_source::{closing, code_only, is_word, line_of, words};

pub const HELP: &str = "\
The table law -> tests of ARCHITECTURE.md.

Usage: cargo xtask laws [--write]

Reads every .rs file under crates/ for tests whose names begin with the law they stand for: l07_, s3_, f02_, h11_, r1_,
check05_ (two for two laws: l12_s06_). A test is a function under #[test] or #[tokio::test], one inside proptest!, or a rule in
the list of conformance!, which is one test of every backend. What must not compile has no name: a file whose first
line of documentation is about compile_fail examples says there which law they stand for, as (L2). Without --write, fails if the block between `<!-- laws:begin -->` and `<!-- laws:end -->` is not what the sources say; with it, replaces
that block. Laws L, S and F and checks that no test names are listed in a line below the table.";

const FILE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- laws:begin -->";
const END: &str = "<!-- laws:end -->";

/// The number of a law: its series and its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Law {
    /// Index into `rules::LAW_SERIES`, so that laws sort as the specification lists them.
    series: usize,
    number: u32,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", rules::LAW_SERIES[self.series].written, self.number)
    }
}

/// A test that names laws.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Citation {
    laws: Vec<Law>,
    test: String,
}

type Table = BTreeMap<Law, BTreeSet<(String, String)>>;

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
    let table = scan(&repo)?;
    let old = read(&repo)?;
    let new = with_block(&old, &rendered(&table))?;
    if new == old {
        println!("{FILE} is already current: {}", summary(&table));
        return Ok(());
    }
    fs::write(repo.path(FILE), new).with_context(|| format!("{FILE} cannot be written"))?;
    println!("wrote {FILE}: {}", summary(&table));
    Ok(())
}

/// Fails unless the block in ARCHITECTURE.md is what the sources say.
pub fn check(repo: &Repo) -> Result<String> {
    let table = scan(repo)?;
    let old = read(repo)?;
    if with_block(&old, &rendered(&table))? != old {
        bail!("the table of laws in {FILE} is not current; `cargo xtask laws --write` brings it up to date");
    }
    Ok(summary(&table))
}

fn read(repo: &Repo) -> Result<String> {
    fs::read_to_string(repo.path(FILE)).with_context(|| format!("{FILE} cannot be read"))
}

fn summary(table: &Table) -> String {
    let tests: BTreeSet<_> = table.values().flatten().collect();
    format!("{} laws named by {} tests", table.len(), tests.len())
}

fn scan(repo: &Repo) -> Result<Table> {
    let mut table = Table::new();
    for file in repo.files()? {
        if !file.starts_with("crates/") || !file.ends_with(".rs") {
            continue;
        }
        let source = fs::read_to_string(repo.path(&file)).with_context(|| format!("{file} cannot be read"))?;
        for citation in citations(&source).with_context(|| format!("in {file}"))? {
            for law in citation.laws {
                table.entry(law).or_default().insert((citation.test.clone(), file.clone()));
            }
        }
    }
    Ok(table)
}

/// The tests of one source file that name laws.
fn citations(source: &str) -> Result<Vec<Citation>> {
    let code = code_only(source);
    let properties = macro_bodies(&code, "proptest");
    let mut found = Vec::new();
    for at in words(&code, "fn") {
        let name: String =
            code[at + 2..].trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let in_property = properties.iter().any(|(from, to)| (*from..*to).contains(&at));
        if !in_property && !is_test(&code, at) {
            continue;
        }
        let line = line_of(source, at);
        let laws = laws_in(&name).with_context(|| format!("line {line}: the test `{name}`"))?;
        if !laws.is_empty() {
            found.push(Citation { laws, test: name });
        }
    }
    for name in conformance_rules(&code) {
        let laws = laws_in(name).with_context(|| format!("the rule `{name}`"))?;
        if !laws.is_empty() {
            found.push(Citation { laws, test: name.to_owned() });
        }
    }
    found.extend(compile_failures(source)?);
    Ok(found)
}

/// The names in the list of `conformance! { @rules …; names }`: each becomes a test of every backend.
fn conformance_rules(code: &str) -> Vec<&str> {
    let mut rules = Vec::new();
    for (from, to) in macro_bodies(code, "conformance") {
        let body = &code[from..to];
        let Some(list) = body.find("@rules").and_then(|at| Some(at + body[at..].find(';')? + 1)) else { continue };
        rules.extend(body[list..].split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|name| !name.is_empty()));
    }
    rules
}

/// The examples of a file's own documentation that must not compile. They have no names; the first line of that
/// documentation says which laws they stand for, in brackets.
fn compile_failures(source: &str) -> Result<Vec<Citation>> {
    let examples = source.lines().filter(|line| line.trim() == "//! ```compile_fail").count();
    let Some((_, rest)) = source.lines().next().filter(|_| examples > 0).and_then(|line| line.split_once('(')) else {
        return Ok(Vec::new());
    };
    let mut laws = Vec::new();
    for word in rest.split(|c: char| !c.is_alphanumeric()) {
        laws.extend(laws_in(&format!("{}_a", word.to_ascii_lowercase()))?);
    }
    let test = format!("{examples} compile_fail examples");
    Ok(if laws.is_empty() { Vec::new() } else { vec![Citation { laws, test }] })
}

/// The laws at the head of a test's name. A number beyond its series is an error: a slip, or a name to change.
fn laws_in(name: &str) -> Result<Vec<Law>> {
    let mut laws = Vec::new();
    for part in name.split('_') {
        let numbered = |series: &rules::LawSeries| {
            let digits = part.strip_prefix(series.in_name)?;
            (matches!(digits.len(), 1 | 2) && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)
        };
        let found = rules::LAW_SERIES.iter().enumerate().find_map(|(at, series)| Some((at, series, numbered(series)?)));
        let Some((series, rules::LawSeries { written, last, .. }, digits)) = found else {
            break;
        };
        let number: u32 = digits.parse()?;
        if number == 0 || number > *last {
            bail!(
                "names {written}{number}, and there are only {written}1 to {written}{last}; give the test another name"
            );
        }
        laws.push(Law { series, number });
    }
    // A name that is nothing but numbers says no behaviour.
    if !laws.is_empty() && name.split('_').count() == laws.len() {
        bail!("says which law, but not which behaviour");
    }
    Ok(laws)
}

/// Where the bodies of `name! { … }` begin and end.
fn macro_bodies(code: &str, name: &str) -> Vec<(usize, usize)> {
    words(code, name)
        .filter_map(|at| {
            let rest = code[at + name.len()..].strip_prefix('!')?;
            let open = code.len() - rest.trim_start().len();
            code[open..].starts_with(['{', '(']).then(|| (open, closing(code, open)))
        })
        .collect()
}

/// Whether one of the attributes above the `fn` at this offset is `#[test]` or `#[tokio::test…]`.
fn is_test(code: &str, at: usize) -> bool {
    let mut head = code[..at].trim_end();
    loop {
        if let Some(rest) = without_modifier(head) {
            head = rest.trim_end();
        } else if head.ends_with(']') {
            let Some(open) = opening(head) else {
                return false;
            };
            let attribute = head[open + 1..head.len() - 1].trim();
            let Some(rest) = head[..open].trim_end().strip_suffix('#') else {
                return false;
            };
            let path: String =
                attribute.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
            if path == "test" || path == "tokio::test" {
                return true;
            }
            head = rest.trim_end();
        } else {
            return false;
        }
    }
}

/// The text before a word that may stand between the attributes and `fn`.
fn without_modifier(head: &str) -> Option<&str> {
    ["async", "pub", "const"].into_iter().find_map(|word| {
        let rest = head.strip_suffix(word)?;
        let joined = rest.bytes().next_back().is_some_and(is_word);
        (!joined).then_some(rest)
    })
}

/// The bracket that opens the one with which `head` ends.
fn opening(head: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in head.bytes().enumerate().rev() {
        match byte {
            b']' => depth += 1,
            b'[' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn rendered(table: &Table) -> String {
    let mut text = String::from("| law | tests |\n|---|---|\n");
    for (law, tests) in table {
        let list: Vec<String> = tests.iter().map(|(test, file)| format!("`{test}` ({file})")).collect();
        text.push_str(&format!("| {law} | {} |\n", list.join("<br>")));
    }
    let gaps: Vec<String> = rules::LAW_SERIES
        .iter()
        .enumerate()
        .filter(|(_, series)| series.gaps_listed)
        .flat_map(|(index, _)| gaps(table, index))
        .collect();
    if gaps.is_empty() {
        text.push_str("\nEvery law has a test.\n");
    } else {
        text.push_str(&format!("\nWithout a test yet: {}.\n", gaps.join(", ")));
    }
    text
}

/// The laws of a series that no test names, runs of three or more written as `L3–L7`.
fn gaps(table: &Table, series: usize) -> Vec<String> {
    let rules::LawSeries { written, last, .. } = rules::LAW_SERIES[series];
    let missing: Vec<u32> = (1..=last).filter(|number| !table.contains_key(&Law { series, number: *number })).collect();
    missing
        .chunk_by(|a, b| a + 1 == *b)
        .flat_map(|run| match run {
            [first, .., end] if run.len() > 2 => vec![format!("{written}{first}–{written}{end}")],
            short => short.iter().map(|n| format!("{written}{n}")).collect(),
        })
        .collect()
}

/// The document with the text between its two marks replaced.
fn with_block(document: &str, block: &str) -> Result<String> {
    let missing = || format!("{FILE} has no `{BEGIN}` … `{END}` block");
    let (before, rest) = document.split_once(BEGIN).with_context(missing)?;
    let (_, after) = rest.split_once(END).with_context(missing)?;
    Ok(format!("{before}{BEGIN}\n{block}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Result<Vec<(String, String)>> {
        Ok(citations(source)?
            .into_iter()
            .flat_map(|citation| {
                let test = citation.test;
                citation.laws.into_iter().map(move |law| (law.to_string(), test.clone()))
            })
            .collect())
    }

    #[test]
    fn a_test_is_found_by_its_attribute_and_its_law_by_its_name() -> Result<()> {
        let cases: &[(&str, &[&str])] = &[
            ("#[test]\nfn l07_a() {}", &["L7"]),
            ("#[test]\nfn l7_a() {}", &["L7"]),
            ("#[tokio::test]\nasync fn s03_a() {}", &["S3"]),
            ("#[tokio::test(flavor = \"multi_thread\")]\nasync fn f21_a() {}", &["F21"]),
            ("#[test]\n#[cfg(unix)]\n// why\nfn h45_a() {}", &["H45"]),
            ("#[cfg(unix)]\n#[test]\nfn r13_a() {}", &["R13"]),
            ("#[test]\nfn l12_s06_a() {}", &["L12", "S6"]),
            ("#[test]\nfn check28_h26_a() {}", &["check 28", "H26"]),
            ("#[test]\nfn check_5_7_a() {}", &[]),
            ("$crate::conformance! { @rules $make;\n s01_a\n s10_b // c\n l72_c\n d\n}\n s02_e", &["S1", "S10", "L72"]),
            ("conformance! { make }\nmacro_rules! conformance { ($m:expr) => { s03_a } }", &[]),
            ("//! What must not compile (L2 and the phases).\n//! ```compile_fail\n//! a\n//! ```", &["L2"]),
            ("//! What compiles (L2).\n//! ```\n//! a\n//! ```", &[]),
            ("fn l07_a() {}", &[]),
            ("#[inline]\nfn l07_a() {}", &[]),
            ("#[test]\nfn other() {}\nfn l07_a() {}", &[]),
            ("#[test]\nfn later_l07_a() {}", &[]),
            ("#[test]\nfn leaves_are_kept() {}", &[]),
            ("// #[test]\n// fn l07_a() {}", &[]),
            ("let s = \"#[test] fn l07_a() {}\";", &[]),
            ("proptest! {\n #[test]\n fn l09_a(x in 0..3u8) { b(x) }\n}", &["L9"]),
            ("proptest! {\n fn l09_a(x in \"}\") {}\n}\nfn l10_b() {}", &["L9"]),
            ("proptest! { #![proptest_config(c())]\n #[test] fn l09_a(x in 0..3u8) {} }", &["L9"]),
        ];
        for (source, expected) in cases {
            let found: Vec<String> = names(source)?.into_iter().map(|(law, _)| law).collect();
            assert_eq!(found, *expected, "{source}");
        }
        Ok(())
    }

    #[test]
    fn a_number_beyond_its_series_or_a_bare_number_is_refused() {
        for name in ["l78_a", "l00_a", "s18_a", "f64_a", "check39_a", "l07", "l07_s03"] {
            let source = format!("#[test]\nfn {name}() {{}}");
            assert!(citations(&source).is_err(), "{name} was read");
        }
    }

    #[test]
    fn the_block_is_replaced_and_gaps_are_listed() -> Result<()> {
        let law = |number| Law { series: 1, number };
        let mut table = Table::new();
        for number in [1, 3, 4, 9, 12, 13, 14, 15, 16, 17] {
            table
                .entry(law(number))
                .or_default()
                .insert((format!("s{number:02}_a"), "crates/store/src/a.rs".to_owned()));
        }
        assert_eq!(gaps(&table, 1), ["S2", "S5–S8", "S10", "S11"]);
        let block = rendered(&table);
        assert!(block.contains("| S3 | `s03_a` (crates/store/src/a.rs) |\n"));
        assert!(block.contains("Without a test yet: L1–L77, S2, S5–S8, S10, S11, F1–F21, check 1–check 38.\n"));
        let document = format!("head\n{BEGIN}\nold\n{END}\ntail\n");
        let written = with_block(&document, &block)?;
        assert_eq!(written, format!("head\n{BEGIN}\n{block}{END}\ntail\n"));
        assert_eq!(with_block(&written, &block)?, written);
        assert!(with_block("no marks", &block).is_err());
        Ok(())
    }
}
