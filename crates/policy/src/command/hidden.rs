//! Commands whose words do not say what they do: interpreters, shells that read their input, builtins that redefine.

use super::unwrap::{base, is_shell};

/// Interpreters that take a program as a word or from their input.
const INTERPRETERS: &[&str] = &[
    "python",
    "pypy",
    "node",
    "nodejs",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "osascript",
    "tclsh",
    "guile",
    "ghc",
    "elixir",
    "erl",
    "julia",
    "groovy",
    "pwsh",
    "powershell",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sqlite3",
    "irb",
];

/// Why nobody can tell from the words what the command does, if so.
pub(super) fn hidden_program(argv: &[String]) -> Option<&'static str> {
    let (program, words) = argv.split_first()?;
    let name = base(program);
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if is_shell(name) {
        let script = words.iter().any(|word| !word.starts_with(['-', '+']));
        return (!script).then_some("a shell takes its commands from its input");
    }
    if matches!(
        name,
        "source" | "." | "trap" | "alias" | "enable" | "mapfile" | "readarray" | "hash" | "complete" | "compgen"
    ) {
        return Some("a shell builtin runs or redefines commands");
    }
    if !INTERPRETERS.contains(&family) {
        return None;
    }
    if family.ends_with("awk") {
        return Some("an interpreter runs a program given as a word");
    }
    let short = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or("");
        !letters.starts_with('-') && letters.chars().any(|c| matches!(c, 'c' | 'e' | 'E' | 'p' | 'r' | 'n'))
    };
    let long =
        |word: &str| matches!(word.split('=').next(), Some("--eval" | "--print" | "eval" | "--execute" | "--run"));
    let inline = words.iter().any(|word| short(word) || long(word));
    let no_file = words.iter().all(|word| word.starts_with('-'));
    if inline {
        Some("an interpreter runs a program given as a word")
    } else if no_file && !words.iter().any(|word| matches!(word.as_str(), "--version" | "-V" | "-v" | "--help")) {
        Some("an interpreter takes its program from its input")
    } else {
        None
    }
}
