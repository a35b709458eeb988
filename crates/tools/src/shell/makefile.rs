//! The recipes of a makefile that a command would run.
//!
//! Only a makefile of plain rules and assignments is understood. Of any other one it is said that nobody can tell before it
//! runs.

use std::collections::BTreeMap;

use portcullis_command::MakeWords;

use super::project_script::{LINES, NotKnown, Project, QuotedScript, cut};

/// Recipes of one command that are shown.
const RECIPES: usize = 16;

/// Variables that decide which recipes run, from which files, and by which shell.
const DECIDING: [&str; 7] =
    [".DEFAULT_GOAL", ".RECIPEPREFIX", "MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "SHELL", ".SHELLFLAGS"];

/// Functions that run something or add rules wherever they stand.
const RUNNING: [&str; 5] = ["shell ", "eval ", "call ", "guile ", "file "];

/// A word of `make` that adds to the makefile, or decides which recipes run.
fn adding<'w>(words: &MakeWords<'w>) -> Option<&'w str> {
    let decides = |word: &&str| assigned(word).is_none_or(|(name, value)| DECIDING.contains(&name) || runs(value));
    words.evaluates.or_else(|| words.assignments.iter().copied().find(decides))
}

/// The name and the value of an assignment.
fn assigned(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!']).trim();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    plain.then_some((name, value))
}

fn runs(text: &str) -> bool {
    RUNNING.iter().any(|name| text.contains(&format!("$({name}")) || text.contains(&format!("${{{name}")))
}

/// A rule: what it needs, and its lines.
#[derive(Default)]
struct MakeRule<'t> {
    needs: Vec<&'t str>,
    lines: Vec<&'t str>,
}

/// The rules of a makefile.
#[derive(Default)]
struct MakeRules<'t> {
    by_target: BTreeMap<&'t str, MakeRule<'t>>,
    first: Option<&'t str>,
    /// Those with a pattern or a suffix for a target.
    patterns: Vec<&'t str>,
}

impl<'t> MakeRules<'t> {
    /// Reads a makefile.
    ///
    /// # Errors
    /// The first line that is no plain rule, assignment or comment.
    fn read(text: &'t str) -> Result<Self, &'t str> {
        let mut out = Self::default();
        let mut open: Vec<&'t str> = Vec::new();
        let mut lines = logical(text).into_iter().peekable();
        while let Some(line) = lines.next() {
            if line.starts_with('\t') && !open.is_empty() {
                continue;
            }
            let code = line.split('#').next().unwrap_or(line);
            if code.trim().is_empty() {
                continue;
            }
            let plain = !code.starts_with([' ', '\t']) && !runs(code) && !code.contains("!=");
            if let Some((name, _)) = assigned(code).filter(|_| plain) {
                if DECIDING.contains(&name) {
                    return Err(line);
                }
                open.clear();
                continue;
            }
            let (targets, rest) = code.split_once(':').filter(|_| plain).ok_or(line)?;
            let needs = rest.split(';').next().unwrap_or(rest);
            if targets.contains('$') || rest.starts_with(':') || needs.contains(['$', '=', ':', '|']) {
                return Err(line);
            }
            open = targets.split_whitespace().collect();
            let mut body = vec![line];
            while let Some(next) = lines.next_if(|next| next.starts_with('\t')) {
                body.push(next);
            }
            for target in &open {
                out.add(target, needs, &body).ok_or(line)?;
            }
        }
        Ok(out)
    }

    /// `None` if there is one of that name already.
    fn add(&mut self, target: &'t str, needs: &'t str, body: &[&'t str]) -> Option<()> {
        if target.contains('%') || (target.starts_with('.') && target[1..].contains('.')) {
            self.patterns.extend(body);
            return Some(());
        }
        if target.starts_with('.') && !target.contains('/') {
            // `.PHONY` and its like say something of others; only these run something.
            return (!matches!(target, ".DEFAULT" | ".SECONDEXPANSION" | ".ONESHELL") && body.len() == 1).then_some(());
        }
        self.first = self.first.or(Some(target));
        let needs = needs.split_whitespace().filter(|need| *need != "\\").collect();
        let rule = MakeRule { needs, lines: body.to_vec() };
        self.by_target.insert(target, rule).is_none().then_some(())
    }

    /// The targets that are made, each before what it needs.
    fn closure(&self, targets: &[&'t str]) -> Vec<&'t str> {
        let (mut out, mut todo): (Vec<&str>, Vec<&str>) = (Vec::new(), targets.iter().rev().copied().collect());
        while let Some(target) = todo.pop() {
            if !out.contains(&target) {
                out.push(target);
                todo.extend(self.by_target.get(target).into_iter().flat_map(|rule| rule.needs.iter().rev()));
            }
        }
        out
    }

    /// What is shown of a target.
    fn shown(&self, target: &str) -> Option<String> {
        let lines = self.by_target.get(target).map_or(self.patterns.as_slice(), |rule| rule.lines.as_slice());
        let mut lines = lines.iter().flat_map(|line| line.lines());
        let shown: Vec<&str> = lines.by_ref().take(LINES).collect();
        (!shown.is_empty()).then(|| cut(shown, lines.count()))
    }
}

/// The lines of a text, each with those that continue it.
fn logical(text: &str) -> Vec<&str> {
    let (mut out, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        at += line.len();
        if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            out.push(text[start..at].trim_end());
            start = at;
        }
    }
    out.push(text[start..].trim_end());
    out
}

/// The recipes that `make` would run.
pub(super) fn recipes(words: &[String], project: &Project<'_>) -> Result<Vec<QuotedScript>, NotKnown> {
    let words = MakeWords::of(words);
    let adds = adding(&words);
    let MakeWords { folders, files, targets, .. } = words;
    let folder = project.inside(folders)?;
    let found = match files.as_slice() {
        [] => {
            ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| (project.read)(&format!("{folder}/{name}")))
        }
        [file] => Some(project.file(&folder, file)?),
        _ => return Err(NotKnown),
    };
    let Some((path, text)) = found else { return if adds.is_some() { Err(NotKnown) } else { Ok(Vec::new()) } };
    let not_known = |why: String| Ok(vec![QuotedScript::one_of(&path, &why, text.clone())]);
    if let Some(word) = adds {
        return not_known(format!("`{word}` adds to it"));
    }
    let rules = match MakeRules::read(&text) {
        Ok(rules) => rules,
        Err(line) => return not_known(format!("it has the line `{}`", line.lines().next().unwrap_or(line).trim())),
    };
    let targets = if targets.is_empty() { rules.first.into_iter().collect() } else { targets };
    let all = rules.closure(&targets);
    let quote = |name: String, shown: String| QuotedScript { name, text: shown, whole: text.clone() };
    let mut out = Vec::new();
    for target in all.iter().take(RECIPES) {
        let shown = rules.shown(target).or_else(|| {
            let none = "no recipe of that name stands in this file; a built-in rule may have one";
            targets.contains(target).then(|| none.to_owned())
        });
        out.extend(shown.map(|shown| quote(format!("recipe `{target}` of {path}"), shown)));
    }
    if all.len() > RECIPES {
        let more = format!("{} more that these need are bound and not shown", all.len() - RECIPES);
        out.push(quote(format!("further recipes of {path}"), more));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(makefile: &str, words: &str) -> Vec<(String, String)> {
        let read = |path: &str| (path == "/w/Makefile").then(|| (path.to_owned(), makefile.to_owned()));
        let folder = |path: &str| Some(path.to_owned());
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let found = recipes(&words, &Project { cwd: "/w", read: &read, folder: &folder }).expect("known");
        found.into_iter().map(|one| (one.name, one.text)).collect()
    }

    #[test]
    fn what_a_recipe_needs_is_quoted_as_well() {
        let text = "X = 1\n# b:\n.PHONY: all\nall: a b \\\n  c ; @echo all\n\t@echo more\na: x.o\n\techo a\n\nb c:\n\techo bc\n";
        let names = |words: &str| {
            let all: Vec<String> = make(text, words).into_iter().map(|(name, _)| name).collect();
            all.iter().map(|name| name.split('`').nth(1).expect("a name").to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(""), "all a b c");
        assert_eq!(names("b"), "b");
        assert_eq!(names("a X=2"), "a");
        assert_eq!(make(text, "")[0].1, "all: a b \\\n  c ; @echo all\n\t@echo more");
        assert!(make(text, "zz")[0].1.contains("no recipe of that name"));
        let pattern = "all: x.o\n%.o: %.c\n\tcc $<\n";
        assert!(make(pattern, "").iter().any(|(_, text)| text.contains("cc $<")), "{:?}", make(pattern, ""));
    }

    #[test]
    fn a_makefile_that_is_more_than_plain_rules_is_not_known() {
        let plain = "all:\n\techo shown\nevil:\n\techo evil\n";
        for more in [
            ".DEFAULT_GOAL := evil\n",
            "override .DEFAULT_GOAL = evil\n",
            "include more\n",
            "-include more\n",
            "all:\n\techo evil\n",
            "all::\n\techo evil\n",
            "ifdef NEVER\nendif\n",
            "define x\nendef\n",
            "$(eval all: evil)\n",
            "X := $(shell touch evil)\n",
            "X != touch evil\n",
            "SHELL = ./evil\n",
            ".RECIPEPREFIX = >\n",
            "$(X): evil\n",
            "all: X = evil\n",
            ".DEFAULT:\n\techo evil\n",
            "export SHELL = x\n",
        ] {
            for text in [format!("{plain}{more}"), format!("{more}{plain}")] {
                let shown = make(&text, "");
                assert!(shown.len() == 1 && shown[0].1.contains("not known before it runs"), "{text}: {shown:?}");
            }
        }
        for words in ["--eval=x", "--eval x", "-E x", "--ev=x", ".DEFAULT_GOAL=evil", "SHELL=./x", "-- SHELL=./x"] {
            assert!(make(plain, words)[0].1.contains("not known before it runs"), "{words}");
        }
    }
}
