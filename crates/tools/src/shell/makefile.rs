//! The recipe of a makefile that a command would run.

use super::project_script::{LINES, NotKnown, Project, QuotedScript, cut};

/// The words of `make`, as it reads them.
#[derive(Default)]
struct MakeWords<'w> {
    folders: Vec<&'w str>,
    files: Vec<&'w str>,
    targets: Vec<&'w str>,
}

impl<'w> MakeWords<'w> {
    fn of(words: &'w [String]) -> Self {
        let mut out = Self::default();
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                out.targets.extend(words.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let is = |whole: &str, least: usize| name.len() >= least && whole.starts_with(name);
                let others = ["include-dir", "old-file", "assume-old", "new-file", "assume-new", "what-if", "eval"];
                if is("directory", 2) {
                    out.folders.extend(value.or_else(|| words.next()));
                } else if is("file", 2) || is("makefile", 2) {
                    out.files.extend(value.or_else(|| words.next()));
                } else if value.is_none() && others.contains(&name) {
                    words.next();
                }
            } else if let Some(letters) = word.strip_prefix('-') {
                let Some(at) = letters.find(['C', 'f', 'I', 'o', 'W', 'E', 'j', 'l', 'O']) else { continue };
                let attached = Some(&letters[at + 1..]).filter(|value| !value.is_empty());
                match &letters[at..=at] {
                    "C" => out.folders.extend(attached.or_else(|| words.next())),
                    "f" => out.files.extend(attached.or_else(|| words.next())),
                    // Their value may be left out.
                    "j" | "l" => {
                        let number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                        _ = attached.or_else(|| words.next_if(number));
                    }
                    "O" => {}
                    _ => _ = attached.or_else(|| words.next()),
                }
            } else if !word.contains('=') {
                out.targets.push(word);
            }
        }
        out
    }
}

/// The recipes that `make` would run first.
pub(super) fn recipes(words: &[String], project: &Project<'_>) -> Result<Vec<QuotedScript>, NotKnown> {
    let MakeWords { folders, files, targets } = MakeWords::of(words);
    let folder = project.inside(folders)?;
    let found = match files.as_slice() {
        [] => {
            ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| (project.read)(&format!("{folder}/{name}")))
        }
        [file] => Some(project.file(&folder, file)?),
        _ => return Err(NotKnown),
    };
    let Some((path, text)) = found else { return Ok(Vec::new()) };
    let first = || {
        let mut heads = text.lines().filter_map(|line| line.split_once(':')).map(|(names, _)| names);
        heads.find(|names| names.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '/'))
    };
    let targets = if targets.is_empty() { first().into_iter().collect() } else { targets };
    let one = |target: &str| {
        let is_head = |line: &&str| {
            let names = line.split_once(':').map(|(names, _)| names);
            !line.starts_with(['\t', '#', '.', ' '])
                && names.is_some_and(|names| names.split_whitespace().any(|n| n == target))
        };
        let recipe = text.lines().skip_while(|line| !is_head(line));
        let mut recipe = recipe.enumerate().take_while(|(at, line)| *at == 0 || line.starts_with('\t')).map(|(_, l)| l);
        let shown: Vec<&str> = recipe.by_ref().take(LINES).collect();
        match shown.len() {
            0 => "no recipe of that name stands in this file; a pattern or an included file may have one".to_owned(),
            _ => cut(shown, recipe.count()),
        }
    };
    let quoted = targets.iter().map(|target| {
        let name = format!("recipe `{}` of {path}", target.trim());
        QuotedScript { name, text: one(target.trim()), whole: text.clone() }
    });
    Ok(quoted.collect())
}
