//! What each builtin of bash leaves behind in the shell that runs it.

use portcullis_base::loads_code;

use super::builtin;

/// What a command by its words leaves behind in its shell, as the end of a sentence. A word is `None` if it is not literal.
pub(super) fn argv_leaves(words: &[Option<String>]) -> Option<String> {
    let (first, rest) = builtin::behind_prefixes(words)?.split_first()?;
    let Some(name) = first else { return Some("runs a program whose name is not written out".to_owned()) };
    let all = |known: &[&str]| rest.iter().all(|word| word.as_ref().is_some_and(|word| known.contains(&word.as_str())));
    let names = |options: &[&str]| {
        rest.iter().find_map(|word| match word {
            None => Some("sets a variable whose name is not written out".to_owned()),
            Some(word) if word.starts_with(['-', '+']) => {
                (!options.contains(&word.as_str())).then(|| format!("changes variables with `{name} {}`", brief(word)))
            }
            Some(word) => variable(word.split(['[', '=', '+']).next().unwrap_or(word)),
        })
    };
    match name.as_str() {
        ":" | "true" | "false" | "echo" | "pwd" | "cd" | "pushd" | "popd" | "dirs" | "test" | "[" | "wait" | "jobs"
        | "kill" | "type" | "times" | "umask" | "ulimit" | "fg" | "bg" | "disown" | "suspend" | "help" | "caller"
        | "return" | "break" | "continue" | "shift" | "exit" | "logout" | "unalias" | "getopts" => None,
        "printf" if rest.first().is_some_and(|word| word.as_ref().is_none_or(|word| word.starts_with("-v"))) => {
            Some("sets a variable".to_owned())
        }
        "printf" => None,
        "export" | "readonly" | "declare" | "typeset" | "local" => names(&["-x", "-p", "-r", "-g", "--"]),
        "unset" => names(&["-v", "--"]),
        "read" => names(&["-r", "-s", "-a", "-e", "--"]),
        "mapfile" | "readarray" => names(&["-t", "--"]),
        "set" => {
            let plain = |word: &&Option<String>| word.as_ref().is_some_and(|word| SET.contains(&word.as_str()));
            let mut rest = rest.iter().take_while(|word| word.as_deref() != Some("--"));
            rest.find(|word| !plain(word)).map(|word| format!("changes the shell with `set {}`", shown(word.as_ref())))
        }
        "shopt" if all(&SHOPT) => None,
        "hash" if rest.len() == 1 && all(&["-r"]) => None,
        "alias" if rest.iter().all(|word| word.as_ref().is_some_and(|word| !word.contains('='))) => None,
        "trap" if rest.first().is_none_or(|word| matches!(word.as_deref(), Some("-p" | "-l"))) => None,
        "alias" => Some("defines an alias".to_owned()),
        "trap" => Some("sets a trap".to_owned()),
        "hash" => Some("tells the shell where a program is".to_owned()),
        "eval" | "source" | "." => Some(format!("runs text in the shell itself (`{name}`)")),
        // Words of a shell that stand where a command does are not understood.
        "coproc" | "function" | "select" | "time" | "!" => Some(format!("changes the shell itself (`{name}`)")),
        // What no line above says to be harmless.
        _ if builtin::is_builtin(name) => Some(format!("changes the shell itself (`{name}`)")),
        _ => None,
    }
}

/// Options of `set` that change how a line fails or what is printed, and not what a word means.
const SET: [&str; 22] = [
    "-e", "+e", "-u", "+u", "-x", "+x", "-v", "+v", "-f", "+f", "-o", "+o", "-eu", "-ex", "-euo", "-exo", "-eo",
    "pipefail", "errexit", "nounset", "xtrace", "noglob",
];
/// Options of `shopt` that change which files a pattern finds.
const SHOPT: [&str; 11] =
    ["-s", "-u", "-q", "-p", "globstar", "nullglob", "dotglob", "extglob", "failglob", "nocaseglob", "inherit_errexit"];

/// A variable that the shell or later programs act on.
pub(super) fn variable(name: &str) -> Option<String> {
    loads_code(name).map(|_| format!("sets {name}"))
}

fn shown(word: Option<&String>) -> String {
    word.map_or_else(|| "…".to_owned(), |word| brief(word))
}

pub(super) fn brief(text: &str) -> String {
    text.chars().take(40).collect()
}
