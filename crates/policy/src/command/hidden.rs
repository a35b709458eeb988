//! Commands whose words do not say what they do: interpreters, shells that read their input, builtins that redefine.

use super::shell::{self, is_input, is_shell};
use super::unwrap::{base, is_assignment};
use super::{builtin, given, inline};

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
    "sqlite",
    "irb",
];

/// Letters after which an interpreter takes the next word for the option's value.
fn valued(family: &str) -> &'static str {
    match family {
        "python" | "pypy" => "WX",
        "node" | "nodejs" => "rC",
        "perl" => "I",
        "ruby" | "irb" => "IrCE",
        "php" => "dczSt",
        "lua" | "luajit" => "l",
        _ => "",
    }
}

/// Modules that run a program given as a word or typed in.
const PYTHON_MODULES: &[&str] = &["timeit", "code", "pdb", "asyncio", "idlelib", "IPython", "doctest"];

/// Why nobody can tell from the words what the command does, if so.
pub(super) fn hidden_program(argv: &[String]) -> Option<&'static str> {
    let (program, words) = argv.split_first()?;
    // The value of a variable may be a path.
    let name = if is_assignment(program) { program } else { base(program) };
    if is_shell(name) {
        return shell::hidden(name, words);
    }
    // Alone it is no command: `docker build .`
    if name == "." && words.is_empty() {
        return None;
    }
    if matches!(
        name,
        "source" | "." | "trap" | "alias" | "enable" | "mapfile" | "readarray" | "hash" | "complete" | "compgen"
    ) {
        return Some("a shell builtin runs or redefines commands");
    }
    builtin::hidden(name, words)
        .or_else(|| interpreter(name, words))
        .or_else(|| inline::hidden(name, words))
        .or_else(|| given::runs_its_input(name, words).then_some("the input says which command is run"))
}

fn interpreter(name: &str, words: &[String]) -> Option<&'static str> {
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !INTERPRETERS.contains(&family) {
        return None;
    }
    if matches!(words, [only] if matches!(only.as_str(), "--version" | "--help")) {
        return None;
    }
    if family.ends_with("awk") || family == "sqlite" {
        return Some("an interpreter runs a program given as a word");
    }
    let short = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or("");
        !letters.starts_with('-') && letters.chars().any(|c| matches!(c, 'c' | 'e' | 'E' | 'p' | 'r' | 'n'))
    };
    let long =
        |word: &str| matches!(word.split('=').next(), Some("--eval" | "--print" | "eval" | "--execute" | "--run"));
    let module = |word: &String| PYTHON_MODULES.contains(&word.strip_prefix("-m").unwrap_or(word));
    if words.iter().any(|word| short(word) || long(word))
        || words.iter().any(|word| word.contains("data:"))
        || (family == "python" && words.iter().take(2).any(module))
    {
        return Some("an interpreter runs a program given as a word");
    }
    let asks = |word: &String| matches!(word.as_str(), "--version" | "-V" | "-v" | "--help" | "--test");
    let script = script(family, words);
    let verbs = matches!(family, "deno" | "bun");
    let input = words.iter().any(|word| is_input(word) || (verbs && word == "-"))
        || script.is_some_and(|word| word == "-")
        || (script.is_none() && !words.iter().any(asks));
    input.then_some("an interpreter takes its program from its input")
}

/// The word that names a script or, after `-m`, a module.
fn script<'w>(family: &str, words: &'w [String]) -> Option<&'w String> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.strip_prefix('-') {
            None | Some("") => return Some(word),
            Some(letters) => {
                at += 1;
                let takes = |letter: char| valued(family).contains(letter);
                at += usize::from(!letters.starts_with('-') && letters.ends_with(takes));
                if letters.starts_with('m') && letters.len() > 1 {
                    return Some(word);
                }
            }
        }
    }
    None
}
