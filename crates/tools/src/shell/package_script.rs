//! The scripts of a `package.json` that a package manager would run.

use portcullis_command::verbs::{OptionArity, VerbGap};
use serde_json::Value;

use super::project_script::{NotKnown, Project, QuotedScript};

/// Scripts that installing packages runs of the project itself.
const INSTALLING: [&str; 7] =
    ["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish"];

/// Flags that every package manager has.
const FLAGS: [&str; 2] = ["--silent", "-s"];

/// Options and verbs by which a package manager runs the scripts of other packages than the nearest one.
fn runs_elsewhere(word: &str) -> bool {
    matches!(
        word.split('=').next().unwrap_or(word),
        "-w" | "--workspace"
            | "-ws"
            | "--workspaces"
            | "--filter"
            | "-F"
            | "-r"
            | "--recursive"
            | "workspace"
            | "workspaces"
    )
}

/// Options that name the folder of the package.
fn folder_options(program: &str) -> &'static [&'static str] {
    match program {
        "npm" => &["--prefix", "-C"],
        "pnpm" => &["--dir", "-C", "--prefix"],
        _ => &["--cwd"],
    }
}

/// The words of a package manager, as it reads them.
#[derive(Default)]
struct PackageWords<'w> {
    /// The verb and the name of a script.
    plain: Vec<&'w str>,
    folder: Option<&'w str>,
    /// A word that may be the value of an option or the verb.
    unclear: Option<&'w str>,
}

impl<'w> PackageWords<'w> {
    fn of(program: &str, words: &'w [String]) -> Self {
        let (mut out, options) = (Self::default(), VerbGap::of(program));
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                out.plain.extend(words.by_ref());
                break;
            }
            if !word.starts_with('-') {
                out.plain.push(word);
                continue;
            }
            if let Some(value) = folder_value(program, word) {
                out.folder = value.or_else(|| words.next());
                continue;
            }
            // Only those of npm are known one by one.
            let arity = match options.option(word) {
                _ if FLAGS.contains(&word) => OptionArity::None,
                _ if word.contains('=') => OptionArity::None,
                Some(OptionArity::None) if program == "npm" => OptionArity::None,
                Some(OptionArity::One) if program == "npm" && !matches!(word, "--dir" | "--cwd") => OptionArity::One,
                _ => OptionArity::Either,
            };
            match arity {
                OptionArity::None => {}
                OptionArity::One => _ = words.next(),
                OptionArity::Either if out.is_complete(&options) => {}
                OptionArity::Either => {
                    out.unclear = out.unclear.or(words.peek().filter(|next| !next.starts_with('-')).map(|_| word));
                }
            }
        }
        out
    }

    /// Whether the script is named already.
    fn is_complete(&self, options: &VerbGap) -> bool {
        self.plain.first().is_some_and(|verb| !options.same_verb("run", verb) || self.plain.len() > 1)
    }
}

/// The value of an option that names the folder: attached to it, or the next word. npm takes a long option by its
/// beginning.
fn folder_value<'w>(program: &str, word: &'w str) -> Option<Option<&'w str>> {
    let (option, attached) = word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
    let short = |name: &&str| (name.len() == 2).then(|| word.strip_prefix(*name)).flatten();
    let is = |name: &str| name == option || (program == "npm" && option.len() > 4 && name.starts_with(option));
    let names = folder_options(program);
    if names.iter().any(|name| is(name)) {
        return Some(attached);
    }
    names.iter().find_map(short).map(Some)
}

/// The scripts that run, with those before and after them.
pub(super) fn scripts(program: &str, words: &[String], project: &Project<'_>) -> Result<Vec<QuotedScript>, NotKnown> {
    if words.iter().take_while(|word| *word != "--").any(|word| runs_elsewhere(word)) {
        return Err(NotKnown);
    }
    let words = PackageWords::of(program, words);
    let inside = project.inside(words.folder)?;
    let Some((path, text)) = project.nearest(&inside, &["package.json"]) else { return Ok(Vec::new()) };
    // The value of a flag: `npm --json false run x`.
    let unclear = words.plain.iter().take(2).find(|word| matches!(**word, "true" | "false" | "null")).copied();
    if let Some(unclear) = words.unclear.or(unclear) {
        return Ok(vec![QuotedScript::one_of(&path, &format!("`{unclear}` may take the word after it"), text)]);
    }
    let package: Value = serde_json::from_str(&text).unwrap_or_default();
    let verb = words.plain.first().copied().unwrap_or(if program == "yarn" { "install" } else { "" });
    let means = |meant: &str| VerbGap::of(program).same_verb(meant, verb);
    let named: Vec<&str> = match verb {
        _ if means("run") => words.plain.get(1).copied().into_iter().collect(),
        _ if means("test") && program != "bun" => vec!["test"],
        _ if means("restart") => vec!["stop", "restart", "start"],
        "i" | "in" | "install" | "ci" | "add" | "rebuild" | "it" | "cit" | "pack" | "publish" | "link" => {
            INSTALLING.into()
        }
        other => vec![other],
    };
    let around = named.into_iter().flat_map(|name| [format!("pre{name}"), name.to_owned(), format!("post{name}")]);
    let mut out: Vec<QuotedScript> = Vec::new();
    for name in around {
        let script = package.get("scripts").and_then(|scripts| scripts.get(&name)).and_then(Value::as_str);
        let name = format!("scripts.{name} of {path}");
        if let Some(text) = script.filter(|_| !out.iter().any(|known| known.name == name)) {
            out.push(QuotedScript { name, whole: text.to_owned(), text: text.to_owned() });
        }
    }
    // Which package this is, and what else it says, counts as well.
    out.push(QuotedScript { name: format!("the file {path}"), text: String::new(), whole: text });
    Ok(out)
}
