//! Which tests cite which rules. A test cites a rule by its name: `l07_stale_call_is_refused`, `check05_…`, `sa_017_…`. A
//! test that stands for two says both: `l12_s06_…`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};

use crate::repo::Repo;
use crate::rust_source::{closing, code_only, is_word, line_of, words};
use crate::spec::{Rule, SERIES, Spec};

/// The tests of each rule: the file first, then the names in it.
pub type Citations = BTreeMap<Rule, BTreeSet<(String, String)>>;

/// A test that cites rules.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Citing {
    rules: Vec<Rule>,
    test: String,
}

/// Reads every source file under crates/. Fails with every test that cites what the specification does not have.
pub fn scan(repo: &Repo, spec: &Spec) -> Result<Citations> {
    let mut citations = Citations::new();
    let mut problems = Vec::new();
    for file in repo.files()? {
        if !file.starts_with("crates/") || !file.ends_with(".rs") {
            continue;
        }
        let source = fs::read_to_string(repo.path(&file)).with_context(|| format!("{file} cannot be read"))?;
        for (line, cited) in cited_in(&source, spec) {
            match cited {
                Ok(citing) => {
                    for rule in citing.rules {
                        citations.entry(rule).or_default().insert((file.clone(), citing.test.clone()));
                    }
                }
                Err(problem) => problems.push(format!("{file}:{line}: {problem}")),
            }
        }
    }
    if problems.is_empty() {
        return Ok(citations);
    }
    bail!("names of tests that cite no rule of docs/spec:\n  {}", problems.join("\n  "))
}

/// The tests of one source file that cite rules, each with its line.
fn cited_in(source: &str, spec: &Spec) -> Vec<(usize, Result<Citing, String>)> {
    let code = code_only(source);
    let properties = macro_bodies(&code, "proptest");
    let mut names: Vec<(usize, &str)> = words(&code, "fn")
        .filter(|at| properties.iter().any(|(from, to)| (*from..*to).contains(at)) || is_test(&code, *at))
        .map(|at| (at, name_at(&code, at + "fn".len())))
        .collect();
    names.extend(conformance_rules(&code));
    let mut cited: Vec<(usize, Result<Citing, String>)> = names
        .into_iter()
        .filter_map(|(at, name)| Some((line_of(source, at), citing(name, spec).transpose()?)))
        .collect();
    cited.extend(compile_failures(source, spec).map(|result| (1, result)));
    cited
}

fn name_at(code: &str, at: usize) -> &str {
    let name = code[at..].trim_start();
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    &name[..end]
}

/// What a test's name cites. A rule that does not exist is a slip, or a name to change.
fn citing(name: &str, spec: &Spec) -> Result<Option<Citing>, String> {
    let (rules, behaviour) = rules_in(name);
    if rules.is_empty() {
        return Ok(None);
    }
    if let Some(rule) = rules.iter().find(|rule| !spec.has(**rule)) {
        return Err(format!("the test `{name}` cites {rule}, which docs/spec does not have; give it another name"));
    }
    if behaviour.is_empty() {
        return Err(format!("the test `{name}` says which rule, but not which behaviour"));
    }
    Ok(Some(Citing { rules, test: name.to_owned() }))
}

/// The rules at the head of a test's name, and the rest of the name.
pub fn rules_in(name: &str) -> (Vec<Rule>, &str) {
    let mut rules = Vec::new();
    let mut rest = name;
    while let Some((rule, behind)) = SERIES.iter().enumerate().find_map(|(index, series)| {
        let digits = rest.strip_prefix(series.in_name)?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let behind = if end == digits.len() { "" } else { digits[end..].strip_prefix('_')? };
        // Longer numbers are none of a rule: `s1000_sessions`.
        let number = (1..=3).contains(&end).then(|| digits[..end].parse().ok())??;
        Some((Rule { series: index, number }, behind))
    }) {
        rules.push(rule);
        rest = behind;
    }
    (rules, rest)
}

/// The names in the list of `conformance! { @rules …; names }`: each becomes a test of every backend.
fn conformance_rules(code: &str) -> Vec<(usize, &str)> {
    let mut rules = Vec::new();
    for (from, to) in macro_bodies(code, "conformance") {
        let body = &code[from..to];
        let Some(list) = body.find("@rules").and_then(|at| Some(at + body[at..].find(';')? + 1)) else { continue };
        let mut at = from + list;
        for name in body[list..].split(|c: char| !(c.is_alphanumeric() || c == '_')) {
            if !name.is_empty() {
                rules.push((at, name));
            }
            // Names are separated by one ASCII character each; blanked literals are spaces.
            at += name.len() + 1;
        }
    }
    rules
}

/// The examples of a file's own documentation that must not compile. They have no names; the first line of that
/// documentation says which rules they stand for, in brackets.
fn compile_failures(source: &str, spec: &Spec) -> Option<Result<Citing, String>> {
    let examples = source.lines().filter(|line| line.trim() == "//! ```compile_fail").count();
    let (_, rest) = source.lines().next().filter(|_| examples > 0)?.split_once('(')?;
    let rules: Vec<Rule> = rest
        .split(|c: char| !c.is_alphanumeric())
        .flat_map(|word| rules_in(&format!("{}_a", word.to_ascii_lowercase())).0)
        .collect();
    if let Some(rule) = rules.iter().find(|rule| !spec.has(**rule)) {
        return Some(Err(format!("the examples cite {rule}, which docs/spec does not have")));
    }
    (!rules.is_empty()).then(|| Ok(Citing { rules, test: format!("{examples} compile_fail examples") }))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Result<Spec> {
        Spec::read(&Repo::find()?)
    }

    #[test]
    fn a_test_is_found_by_its_attribute_and_its_rule_by_its_name() -> Result<()> {
        let cases: &[(&str, &[&str])] = &[
            ("#[test]\nfn l07_a() {}", &["L7"]),
            ("#[test]\nfn l7_a() {}", &["L7"]),
            ("#[tokio::test]\nasync fn s03_a() {}", &["S3"]),
            ("#[tokio::test(flavor = \"multi_thread\")]\nasync fn f21_a() {}", &["F21"]),
            ("#[test]\n#[cfg(unix)]\n// why\nfn h45_a() {}", &["H45"]),
            ("#[cfg(unix)]\n#[test]\nfn r13_a() {}", &["R13"]),
            ("#[test]\nfn l12_s06_a() {}", &["L12", "S6"]),
            ("#[test]\nfn check28_h26_a() {}", &["check 28", "H26"]),
            ("#[test]\nfn sa_017_a() {}", &["SA-17"]),
            ("#[test]\nfn sa_017_l07_a() {}", &["SA-17", "L7"]),
            ("#[test]\nfn ruling50_a() {}", &["ruling 50"]),
            ("#[test]\nfn api03_a() {}", &["http-api test 3"]),
            ("#[test]\nfn check_5_7_a() {}", &[]),
            ("#[test]\nfn s1000_sessions_a() {}", &[]),
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
        let spec = spec()?;
        for (source, expected) in cases {
            let mut found = Vec::new();
            for (_, citing) in cited_in(source, &spec) {
                found.extend(citing.map_err(anyhow::Error::msg)?.rules.iter().map(Rule::to_string));
            }
            assert_eq!(found, *expected, "{source}");
        }
        Ok(())
    }

    #[test]
    fn a_rule_that_does_not_exist_and_a_bare_number_are_refused_with_their_line() -> Result<()> {
        let spec = spec()?;
        for name in ["l999_a", "l00_a", "s99_a", "f64_a", "check99_a", "sa_999_a", "ruling99_a", "l07", "l07_s03"] {
            let source = format!("\n#[test]\nfn {name}() {{}}");
            let cited = cited_in(&source, &spec);
            assert!(matches!(cited.as_slice(), [(3, Err(_))]), "{name} was read: {cited:?}");
        }
        let list = "conformance! { @rules make;\n s01_a\n s99_b\n}";
        let cited = cited_in(list, &spec);
        assert!(matches!(cited.as_slice(), [(2, Ok(_)), (3, Err(_))]), "{cited:?}");
        Ok(())
    }
}
