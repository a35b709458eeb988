//! The recipe of a makefile that a command would run.

use portcullis_command::MakeWords;

use super::project_script::{LINES, NotKnown, Project, QuotedScript, cut};

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
