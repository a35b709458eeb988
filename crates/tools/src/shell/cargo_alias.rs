//! The alias of cargo that a command would run.

use super::places::joined;
use super::project_script::{NotKnown, Project, QuotedScript, plain};

/// Verbs that no alias of cargo can stand for.
const CARGO_VERBS: [&str; 45] = [
    "add",
    "b",
    "bench",
    "build",
    "c",
    "check",
    "clean",
    "config",
    "d",
    "doc",
    "fetch",
    "fix",
    "generate-lockfile",
    "git-checkout",
    "help",
    "info",
    "init",
    "install",
    "locate-project",
    "login",
    "logout",
    "metadata",
    "new",
    "owner",
    "package",
    "pkgid",
    "publish",
    "r",
    "read-manifest",
    "remove",
    "report",
    "rm",
    "run",
    "rustc",
    "rustdoc",
    "search",
    "t",
    "test",
    "tree",
    "uninstall",
    "update",
    "vendor",
    "verify-project",
    "version",
    "yank",
];

/// The verb of cargo, and the folder that its options name.
fn cargo_verb(words: &[String]) -> Option<(&str, Option<&str>)> {
    let (words, folder) = plain(words, &["-C"], &["--manifest-path", "--config", "-Z", "--color"]);
    let verb = words.into_iter().find(|word| !word.starts_with('+'))?;
    Some((verb, folder))
}

/// Whether the verb is none of cargo's own.
pub(super) fn may_be_alias(words: &[String]) -> bool {
    cargo_verb(words).is_some_and(|(verb, _)| !CARGO_VERBS.contains(&verb))
}

/// An alias of cargo: of the nearest file that has one, as the files are merged.
pub(super) fn alias(words: &[String], project: &Project<'_>) -> Result<Vec<QuotedScript>, NotKnown> {
    let Some((verb, folder)) = cargo_verb(words).filter(|_| may_be_alias(words)) else { return Ok(Vec::new()) };
    let mut folder = Some(project.inside(folder)?);
    while let Some(here) = folder {
        let files = [".cargo/config", ".cargo/config.toml"];
        for (path, text) in files.iter().filter_map(|name| (project.read)(&joined(&here, name))) {
            if let Some(text) = aliased(&text, verb) {
                return Ok(vec![QuotedScript { name: format!("alias `{verb}` of {path}"), whole: text.clone(), text }]);
            }
        }
        folder = here.rsplit_once('/').map(|(above, _)| above.to_owned());
    }
    Ok(Vec::new())
}

fn aliased(text: &str, verb: &str) -> Option<String> {
    let mut inside = false;
    text.lines().map(str::trim).find_map(|line| {
        if line.starts_with('[') {
            inside = line == "[alias]";
            return None;
        }
        let (name, value) = line.split_once('=')?;
        let name = name.trim().trim_matches('"');
        let is = (inside && name == verb) || name.strip_prefix("alias.").is_some_and(|name| name == verb);
        is.then(|| value.trim().to_owned())
    })
}
