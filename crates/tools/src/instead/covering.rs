//! Beyond the table of agent-runtime 8.6: reads, listings and searches that a tool answers as well or with more, each
//! with a word about what differs. They are offered, never put in a command's place.

use serde_json::{Value, json};

use portcullis_command::options::{Parsed, Role};
use portcullis_command::{Arg, ReadPlan, Redirection, Stage, Word, lines_printed, path_text, read_only};

use super::{Alternative, Whereabouts, first_class, mapped, pattern, same, words};

/// The tool that answers what the line asks: by the table of agent-runtime 8.6; else with a word about what differs;
/// else the read-only hand.
#[must_use]
pub fn covered_by(text: &str, at: Whereabouts<'_>) -> Option<Alternative> {
    let exact = words(text).and_then(|words| first_class(&words, at));
    exact.or_else(|| covering(&read_only(text).ok()?, at)).or_else(|| mapped(text, at))
}

/// Of a plan of one stage.
fn covering(plan: &ReadPlan, at: Whereabouts<'_>) -> Option<Alternative> {
    let [(_, pipeline)] = plan.pipelines() else { return None };
    let [stage] = pipeline.stages() else { return None };
    if plan.outside(at.cwd, at.mounts).is_some() {
        return None;
    }
    let asked = ParsedStage::of(stage)?;
    match stage.program() {
        "cat" | "nl" | "tac" | "head" | "tail" | "sed" | "wc" => asked.page(stage, at),
        "ls" => asked.listing(at),
        "find" => find(stage, at),
        "grep" | "rg" => asked.search(stage.program(), at),
        _ => None,
    }
}

/// A stage by its options and operands.
struct ParsedStage<'s> {
    parsed: Parsed<'s>,
    operands: Vec<&'s Word>,
    stdin: Option<&'s str>,
}

impl<'s> ParsedStage<'s> {
    fn of(stage: &'s Stage) -> Option<Self> {
        let parsed = stage.options()?;
        let words = stage.args().iter().map(Arg::word);
        let operands =
            words.zip(&parsed.roles).filter(|(_, role)| **role == Role::Operand).map(|(word, _)| word).collect();
        let mut stdin = None;
        for redirection in stage.redirections() {
            match redirection {
                Redirection::Stdin(file) => stdin = Some(file.as_str()),
                Redirection::StderrNull | Redirection::StderrToStdout => {}
                // Nobody would see the answer.
                Redirection::StdoutNull | Redirection::BothNull => return None,
            }
        }
        Some(Self { parsed, operands, stdin })
    }

    fn value(&self, names: &[&str]) -> Option<&'s str> {
        self.parsed.given.iter().rev().find(|(name, _)| names.contains(&name.as_str())).and_then(|(_, value)| *value)
    }

    fn only(&self, names: &[&str]) -> bool {
        self.parsed.given.iter().all(|(name, _)| names.contains(&name.as_str()))
    }

    /// The one file that is read.
    fn file(&self, operands: &[&Word], at: Whereabouts<'_>) -> Option<String> {
        match (operands, self.stdin) {
            ([Word::Literal(path)], None) if path != "-" => at.place(path),
            ([], Some(path)) => at.place(path),
            _ => None,
        }
    }

    fn page(&self, stage: &Stage, at: Whereabouts<'_>) -> Option<Alternative> {
        if stage.program() == "sed" {
            let (script, files) = stage.args().get(1..)?.split_first()?;
            let files: Vec<&Word> = files.iter().filter(|arg| arg.is_path()).map(Arg::word).collect();
            let (first, last) = lines_printed(script.word().as_literal()?)?;
            let file = self.file(&files, at)?;
            return Some(same(
                "read",
                match last {
                    None => json!({"file_path": file, "view_range": [first, 0]}),
                    Some(last) => {
                        json!({"file_path": file, "start_line": first, "line_count": last.checked_sub(first)? + 1})
                    }
                },
            ));
        }
        let file = self.file(&self.operands, at)?;
        let mut input = json!({"file_path": file});
        let lines = self.value(&["n", "lines", "number"]);
        let mut differs = None;
        match stage.program() {
            "cat" if self.only(&["n", "number"]) => {
                differs = (!self.parsed.given.is_empty()).then_some("lines come without their numbers");
            }
            "cat" => differs = Some("the text comes as it is in the file"),
            "nl" => differs = Some("lines come without their numbers"),
            "tac" => differs = Some("lines come in the order of the file"),
            "wc" if self.only(&["l", "lines", "c", "bytes"]) => input["line_count"] = json!(1),
            "wc" => return None,
            "head" => match (lines, self.value(&["c", "bytes"])) {
                (_, Some(bytes)) => {
                    input["max_chars"] = json!(positive(bytes)?);
                    differs = Some("characters are counted, not bytes");
                }
                (lines, None) => input["line_count"] = json!(positive(lines.unwrap_or("10"))?),
            },
            _ => match (lines, self.value(&["c", "bytes"])) {
                (_, Some(_)) => return None,
                (Some(from), None) if from.starts_with('+') => input["view_range"] = json!([positive(&from[1..])?, 0]),
                (lines, None) => input["tail_lines"] = json!(positive(lines.unwrap_or("10"))?),
            },
        }
        Some(Alternative { tool: "read", input, differs })
    }

    fn listing(&self, at: Whereabouts<'_>) -> Option<Alternative> {
        let itself = self.parsed.has(&["d", "directory"]);
        let recursive = self.parsed.has(&["R", "recursive"]);
        let sort = if self.parsed.has(&["t"]) { "mtime" } else { "path" };
        let mut input = json!({"path": at.place(".")?, "pattern": "*", "max_depth": 1, "sort": sort, "limit": 80});
        match &self.operands[..] {
            [] if !itself => {}
            [Word::Literal(path)] if !itself => input["path"] = json!(at.place(path)?),
            [Word::Glob(glob)] if !recursive => {
                let glob = glob.as_str();
                let folders = glob.strip_suffix('/');
                if glob.starts_with('/') || glob.contains("..") || glob.contains("**") || (folders.is_none() && !itself)
                {
                    return None;
                }
                let name = folders.unwrap_or(glob);
                input["pattern"] = json!(name);
                if let Some(_only) = folders {
                    input["kind"] = json!("directory");
                }
                input["max_depth"] = json!(name.split('/').count());
            }
            many if !itself && many.len() > 1 => {
                let names: Option<Vec<&str>> = many.iter().map(|word| word.as_literal()).collect();
                let names = names?;
                if names
                    .iter()
                    .any(|name| name.contains(['{', '}', ',', '*', '?', '[', '\\', '/']) || name.starts_with('.'))
                {
                    return None;
                }
                input["pattern"] = json!(format!("{{{}}}/*", names.join(",")));
                input["max_depth"] = json!(2);
            }
            _ => return None,
        }
        if recursive {
            input.as_object_mut()?.remove("max_depth");
        }
        let details = self.parsed.has(&["h", "r", "human-readable", "reverse"]);
        Some(Alternative { tool: "glob", input, differs: details.then_some("names alone, in the usual order") })
    }

    fn search(&self, program: &str, at: Whereabouts<'_>) -> Option<Alternative> {
        let has = |names: &[&str]| self.parsed.has(names);
        let (mut queries, mut operands) = (Vec::new(), &self.operands[..]);
        queries.extend(
            self.parsed
                .given
                .iter()
                .filter(|(name, _)| matches!(name.as_str(), "e" | "regexp"))
                .filter_map(|(_, value)| *value),
        );
        let mut differs = None;
        if has(&["files"]) {
            differs = Some("names the files by what is in them; an empty one is left out");
        } else if queries.is_empty() {
            let (query, paths) = operands.split_first()?;
            queries.push(query.as_literal()?);
            operands = paths;
        }
        let extended = (program == "grep").then(|| has(&["E", "extended-regexp"]));
        let fixed = has(&["F", "fixed-strings"]);
        let read: Option<Vec<(String, bool)>> =
            queries.iter().map(|query| pattern::of_lines(query, fixed, extended)).collect();
        let mut read = read?;
        let (mut text, mut literal) = match read.len() {
            0 => ("^".to_owned(), false),
            1 => read.remove(0),
            _ => {
                let each = read
                    .iter()
                    .map(|(text, literal)| if *literal { regex::escape(text) } else { format!("(?:{text})") });
                (each.collect::<Vec<_>>().join("|"), false)
            }
        };
        if text.is_empty() {
            return None;
        }
        if has(&["w", "word-regexp"]) {
            let plain = literal && text.chars().all(|c| c.is_alphanumeric() || c == '_');
            differs = (!plain).then_some("the ends of words may be seen elsewhere");
            let body = if literal { regex::escape(&text) } else { format!("(?:{text})") };
            (text, literal) = (format!(r"\b{body}\b"), false);
        }
        if has(&["v", "invert-match"]) {
            (text, literal) = ("^".to_owned(), false);
            differs = Some("every line comes, also those that would be left out");
        }
        let wider = ["include", "exclude", "g", "glob", "t", "type", "hidden"];
        let other =
            ["A", "B", "C", "after-context", "before-context", "context", "o", "only-matching", "U", "multiline", "L"];
        if has(&wider) {
            differs = differs.or(Some("other files of the folder are searched too"));
        } else if has(&other) {
            differs = differs.or(Some("matching lines come whole and alone"));
        }
        let path = match operands {
            [] => at.place(self.stdin.unwrap_or("."))?,
            [Word::Literal(path)] => at.place(path)?,
            // A tool searches one place.
            many => {
                let places: Option<Vec<String>> = many.iter().map(|word| at.place(word.as_literal()?)).collect();
                differs = Some("everything in the folder is searched");
                common(&places?)
            }
        };
        at.place(&path)?;
        let mut input =
            json!({"path": path, "pattern": text, "ignore_case": has(&["i", "ignore-case"]), "literal": literal});
        if program == "rg" {
            input["limit"] = json!(40);
        }
        Some(Alternative { tool: "grep", input, differs })
    }
}

/// The folder that holds all of `places`.
fn common(places: &[String]) -> String {
    let mut folder = places.first().map(String::as_str).unwrap_or("");
    while !folder.is_empty() && !places.iter().all(|place| path_text::within(place, folder) && place != folder) {
        folder = folder.rfind('/').map_or("", |cut| &folder[..cut]);
    }
    if folder.is_empty() { "/".to_owned() } else { folder.to_owned() }
}

fn positive(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten().filter(|n| *n > 0)
}

/// One folder and one name; other tests only narrow what is found.
fn find(stage: &Stage, at: Whereabouts<'_>) -> Option<Alternative> {
    let words: Option<Vec<&str>> = stage.args().iter().map(|arg| arg.word().as_literal()).collect();
    let words = words?;
    let start = words.iter().take_while(|word| !word.starts_with('-') && !matches!(**word, "(" | "!")).count();
    let folder = match &words[..start] {
        [] => ".",
        [folder] => folder,
        _ => return None,
    };
    let mut input = json!({"path": at.place(folder)?, "pattern": "**/*", "limit": 80});
    let (mut names, mut differs, mut negated) = (0, None, false);
    let mut tests = words[start..].iter();
    let mut before = "";
    while let Some(test) = tests.next() {
        let after = std::mem::replace(&mut before, test);
        let narrows = Some("more is listed: the other tests are left out");
        match *test {
            "-name" | "-iname" => {
                let name = tests.next()?;
                if negated {
                    differs = narrows;
                } else {
                    names += 1;
                    input["pattern"] = Value::String(if *test == "-name" {
                        pattern::of_name(name)?
                    } else {
                        pattern::of_name_in_any_case(name)?
                    });
                }
            }
            "-type" => match (tests.next()?, negated) {
                (&"f", false) => input["kind"] = json!("file"),
                (&"d", false) => input["kind"] = json!("directory"),
                _ => differs = narrows,
            },
            "-maxdepth" => input["max_depth"] = json!(positive(tests.next()?)?),
            "-path" | "-size" | "-newer" | "-mtime" | "-mindepth" => {
                tests.next()?;
                differs = narrows;
            }
            "-print" => {}
            "-not" | "!" => {
                negated = true;
                continue;
            }
            "-prune" => differs = narrows,
            // Any other branch would be missed.
            "-o" if after == "-prune" => {}
            _ => return None,
        }
        negated = false;
    }
    (names <= 1).then_some(Alternative { tool: "glob", input, differs })
}
