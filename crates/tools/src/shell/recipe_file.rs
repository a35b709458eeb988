//! The recipe of a justfile or a taskfile that a command would run.

use super::project_script::{LINES, NotKnown, Project, QuotedScript, cut, plain};

/// Options of `just` and `task` that take no value.
const RECIPE_FLAGS: [&str; 8] = ["-n", "--dry-run", "-q", "--quiet", "-v", "--verbose", "-y", "--yes"];

/// Beginnings of lines by which a file of recipes says more than its recipes.
const SAYS_MORE: [&str; 7] = ["import", "mod ", "mod? ", "alias ", "set ", "includes:", "!include"];

/// A recipe of a file in which its name stands at the beginning of a line, before a colon.
pub(super) fn recipe(
    words: &[String],
    files: &[&str],
    program: &str,
    project: &Project<'_>,
) -> Result<Vec<QuotedScript>, NotKnown> {
    let (folders, names) = (["-d", "--dir", "--working-directory"], ["-f", "--justfile", "-t", "--taskfile"]);
    let (_, folder) = plain(words, &folders, &names);
    let (plain, file) = plain(words, &names, &[folders.as_slice(), &["--set", "--shell"]].concat());
    if words.iter().any(|word| matches!(word.as_str(), "-g" | "--global" | "--global-justfile")) {
        return Err(NotKnown);
    }
    let wanted = plain.into_iter().find(|word| !word.contains('='));
    // `just folder/recipe`
    let (below, wanted) = match wanted.and_then(|wanted| wanted.rsplit_once('/')) {
        Some((below, wanted)) => (Some(below), Some(wanted)),
        None => (None, wanted),
    };
    let found = match file {
        Some(file) => Some(project.file(project.cwd, file)?),
        None => project.nearest(&project.inside(folder.or(below))?, files),
    };
    let Some((path, text)) = found else { return Ok(Vec::new()) };
    let named = [folders.as_slice(), names.as_slice(), &RECIPE_FLAGS].concat();
    let is_known = |word: &&String| {
        let option = word.split('=').next().unwrap_or(word);
        !word.starts_with('-') || word.contains('=') || named.contains(&option)
    };
    let option = words.iter().take_while(|word| *word != "--").find(|word| !is_known(word));
    let line = text.lines().find(|line| SAYS_MORE.iter().any(|start| line.trim_start().starts_with(start)));
    if let Some(word) = option.map(String::as_str).or(line) {
        return Ok(vec![QuotedScript::one_of(&path, &format!("of `{}`", word.trim()), text)]);
    }
    // Without a name `just` runs the first one, and `task` the one that is called so.
    let is_head = |line: &&str| {
        let head = line.trim().trim_start_matches('@').split_once(':').map(|(head, _)| head);
        let name = head.and_then(|head| head.split_whitespace().next());
        match wanted {
            None if program == "just" => name.is_some() && !line.contains(":=") && !line.starts_with([' ', '\t', '#']),
            _ => name == Some(wanted.unwrap_or("default")),
        }
    };
    let depth = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(is_head) else {
        return Ok(vec![QuotedScript::one_of(&path, "none of them has that name", text)]);
    };
    let own = depth(lines[at]);
    let mut body = lines[at + 1..].iter().take_while(|line| line.trim().is_empty() || depth(line) > own).copied();
    let mut shown = vec![lines[at]];
    shown.extend(body.by_ref().take(LINES));
    let name = lines[at].trim().trim_start_matches('@').split([':', ' ']).next().unwrap_or_default();
    let name = format!("{program} recipe `{name}` of {path}");
    let shown = format!("{}\nRecipes that it names run as well.", cut(shown, body.count()));
    Ok(vec![QuotedScript { name, text: shown, whole: text }])
}
