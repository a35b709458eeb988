//! Commands whose words do not say what they do: interpreters, shells that read their input, builtins that redefine.

use super::file_options::AwkWords;
use super::folders::Folder;
use super::shell::{self, is_input, is_shell};
use super::unwrap::{base, is_assignment};
use super::{builtin, database, inline, input_runners, marks, scripts};

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

/// Modules that run no program given as a word or typed in: tests, linters, builds and what shows something. Any other one
/// may, as `timeit`, `cProfile` or `fire` do.
const PYTHON_MODULES: &[&str] = &[
    "alembic",
    "ast",
    "autopep8",
    "bandit",
    "base64",
    "black",
    "build",
    "calendar",
    "celery",
    "compileall",
    "coverage",
    "dis",
    "django",
    "ensurepip",
    "flake8",
    "flask",
    "grpc_tools.protoc",
    "gunicorn",
    "gzip",
    "http.server",
    "hypercorn",
    "isort",
    "json",
    "json.tool",
    "jupyter",
    "maturin",
    "mkdocs",
    "mypy",
    "nox",
    "pip",
    "pip_audit",
    "pipdeptree",
    "pipenv",
    "piptools",
    "platform",
    "poetry",
    "pre_commit",
    "py_compile",
    "pycodestyle",
    "pydoc",
    "pyflakes",
    "pylint",
    "pyright",
    "pytest",
    "pyupgrade",
    "quart",
    "ruff",
    "safety",
    "setuptools_scm",
    "site",
    "sphinx",
    "sphinx.cmd.build",
    "sysconfig",
    "tabnanny",
    "tarfile",
    "tokenize",
    "tox",
    "twine",
    "unittest",
    "uv",
    "uvicorn",
    "venv",
    "virtualenv",
    "vulture",
    "wheel",
    "yapf",
    "zipfile",
];

/// The words from the module on that `python -m` runs, however the option is written.
fn python_module(words: &[String]) -> Option<(&str, &[String])> {
    let mut at = 0;
    loop {
        let letters = words.get(at)?.strip_prefix('-').filter(|letters| !letters.is_empty())?;
        at += 1;
        if letters.starts_with('-') {
            at += usize::from(letters == "-check-hash-based-pycs");
            continue;
        }
        let Some(place) = letters.find(['m', 'c', 'W', 'X', 'Q']) else { continue };
        let attached = &letters[place + 1..];
        match &letters[place..=place] {
            "m" if attached.is_empty() => return Some((words.get(at)?, &words[at + 1..])),
            "m" => return Some((attached, &words[at..])),
            "c" => return None,
            _ => at += usize::from(attached.is_empty()),
        }
    }
}

/// Whether a module of Python may run a program that its words hold.
fn module_runs(family: &str, words: &[String]) -> bool {
    let Some((module, rest)) = python_module(words).filter(|_| matches!(family, "python" | "pypy")) else {
        return false;
    };
    // It runs another module.
    let other = || rest.iter().position(|word| word.starts_with("-m")).map(|at| &rest[at..]);
    !PYTHON_MODULES.contains(&marks::bare(module))
        || (module == "coverage" && other().is_some_and(|words| module_runs(family, words)))
}

/// Whether an absolute path leads through `/proc` or `/dev`, where a name stands for what a process has open or for where it
/// is. A link among the folders before a `..` may lead there, too.
#[must_use]
pub fn is_of_a_process(path: &str) -> bool {
    let (mut depth, mut up) = (0_usize, false);
    path.starts_with('/')
        && path.split('/').any(|name| {
            match name {
                "" | "." => {}
                ".." => (depth, up) = (depth.saturating_sub(1), true),
                "proc" | "dev" if depth == 0 || up => return true,
                _ => depth += 1,
            }
            false
        })
}

/// Why nobody can tell from the words what the command does, if so.
pub(super) fn hidden_program(argv: &[String]) -> Option<&'static str> {
    let (program, words) = argv.split_first()?;
    if is_of_a_process(program) {
        return Some("which program a path below /proc or /dev is becomes known only when the line runs");
    }
    // The value of a variable may be a path.
    let name = if is_assignment(program) { program } else { inline::plain_name(base(program)) };
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
        .or_else(|| input_runners::runs_its_input(name, words).then_some("the input says which command is run"))
}

fn interpreter(name: &str, words: &[String]) -> Option<&'static str> {
    let family = family_of(name);
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
    if words.iter().any(|word| short(word) || long(word))
        || words.iter().any(|word| word.contains("data:"))
        || module_runs(family, words)
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
    words.get(script_at(family, words)?)
}

/// Long options that take the next word.
fn long_valued(family: &str) -> &'static [&'static str] {
    match family {
        "node" | "nodejs" => &["-require", "-import", "-loader", "-experimental-loader", "-conditions", "-title"],
        "python" | "pypy" => &["-check-hash-based-pycs"],
        _ => &[],
    }
}

/// Letters that make an interpreter read further commands from its input once its script has ended.
fn interactive(family: &str) -> &'static str {
    match family {
        "python" | "pypy" | "node" | "nodejs" | "lua" | "luajit" | "julia" => "i",
        "php" => "a",
        "perl" => "d",
        _ => "",
    }
}

/// Whether an option before its script makes an interpreter run something else too.
fn takes_more_than_its_script(family: &str, words: &[String]) -> bool {
    let end = script_at(family, words).unwrap_or(words.len());
    let values = valued(family);
    let verb = words.get(end).is_some_and(|word| matches!(word.as_str(), "repl" | "inspect" | "debug"));
    if verb && matches!(family, "node" | "nodejs" | "deno" | "bun") {
        return true;
    }
    // Their options load files and then read on from the input.
    if end > 0
        && end < words.len()
        && matches!(family, "guile" | "erl" | "osascript" | "pwsh" | "powershell" | "groovy")
    {
        return true;
    }
    words[..end].iter().any(|word| {
        let word = marks::bare(word);
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else {
            return word == "--interactive";
        };
        // A module of perl is code: `-MPOSIX;system(…)`.
        let plain = |c: char| c.is_ascii_alphanumeric() || "_:=,./+-".contains(c);
        if family == "perl" && !letters.chars().all(plain) {
            return true;
        }
        // The letters after `m` are a module, those after a letter with a value are that value.
        let own = letters.split(|c| matches!(c, 'm' | 'M') || values.contains(c)).next().unwrap_or("");
        own.contains(|c| interactive(family).contains(c))
    })
}

/// Where that word stands.
fn script_at(family: &str, words: &[String]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.strip_prefix('-') {
            None | Some("") => return Some(at),
            Some(letters) => {
                if matches!(family, "python" | "pypy") && letters.starts_with('m') && letters.len() > 1 {
                    return Some(at);
                }
                at += 1;
                let takes = |letter: char| valued(family).contains(letter);
                let long = long_valued(family).contains(&letters);
                at += usize::from(long || (!letters.starts_with('-') && letters.ends_with(takes)));
            }
        }
    }
    None
}

fn family_of(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

pub(super) fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.contains(&family_of(name))
}

/// The script or module that an interpreter or a shell runs, and where it stands; none if it runs something else.
pub(super) fn script_of<'w>(program: &str, words: &'w [String]) -> Option<(usize, &'w str)> {
    if is_shell(program) {
        let at = shell::script(words)?;
        return Some((at, words.get(at)?));
    }
    let family = family_of(program);
    let at = script_at(family, words)?;
    let inline = inline_before(family, &words[..=at]) || module_runs(family, words);
    if family.ends_with("awk") || family == "sqlite" || inline {
        return None;
    }
    let word = words.get(at)?;
    let module = word.strip_prefix("-m").or_else(|| (at > 0 && words[at - 1] == "-m").then_some(word.as_str()));
    Some((at, module.map_or(word.as_str(), |module| module.split('.').next().unwrap_or(module))))
}

/// The same of an interpreter or a shell that is known.
#[must_use]
pub fn interpreted<'w>(program: &str, words: &'w [String]) -> Option<(usize, &'w str)> {
    script_of(program, words).filter(|_| is_shell(program) || is_interpreter(program))
}

/// Letters after which an interpreter takes a program as a word.
const fn inline_letters(family: &str) -> &'static str {
    match family.as_bytes() {
        b"python" | b"pypy" => "c",
        b"node" | b"nodejs" => "ep",
        b"php" => "rRBEF",
        b"perl" | b"julia" => "eE",
        b"ruby" | b"lua" | b"luajit" | b"Rscript" | b"osascript" | b"groovy" | b"elixir" | b"ghc" => "e",
        _ => "ceEpr",
    }
}

/// Whether one of the words up to its script gives an interpreter a program.
fn inline_before(family: &str, words: &[String]) -> bool {
    let letters = inline_letters(family);
    words.iter().any(|word| {
        let long = matches!(word.split('=').next(), Some("--eval" | "--print" | "eval" | "--execute" | "--run"));
        let short = word.strip_prefix('-').is_some_and(|given| {
            // The letters after `m` are a module, those after a letter with a value are that value.
            let own = given.split(|c| c == 'm' || valued(family).contains(c)).next().unwrap_or("");
            !given.starts_with('-') && own.contains(|c| letters.contains(c))
        });
        long || short || word.contains("data:")
    })
}

/// Whether a command that [`hidden_program`] speaks of may run any program at all. A script of `awk` that calls none, or
/// a file that a shell reads by its name, tells as much as the name of a script does.
pub(super) fn hides(argv: &[String]) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let name = if is_assignment(program) { program } else { inline::plain_name(base(program)) };
    let family = family_of(name);
    if is_of_a_process(program)
        || open_before_script(name, words)
        || (is_interpreter(name) && takes_more_than_its_script(family, words))
    {
        return true;
    }
    if hidden_program(argv).is_none() {
        return false;
    }
    match name {
        "source" | "." => words.first().is_none_or(|file| marks::of(file).is_some() || is_input(file)),
        _ if family.ends_with("awk") && is_interpreter(name) => awk_runs(words),
        _ if family == "sqlite" => database::sqlite_runs(words),
        _ if is_interpreter(name) => {
            let Some(at) = script_at(family, words) else { return true };
            inline_before(family, &words[..=at])
                || module_runs(family, words)
                || words.iter().any(|word| is_input(word))
                || words[at] == "-"
        }
        _ => true,
    }
}

/// Whether the script of a command is its input by the folder that it runs in: `cd /dev; sh stdin`. The program itself may
/// be an open file: `/dev/stdin < x`.
pub(super) fn script_is_input(argv: &[String], folder: &Folder) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let relative = program.contains('/') && !program.starts_with('/');
    if is_input(program) || (relative && shell::is_input_in(folder, program)) {
        return true;
    }
    let scripts = scripts::of(program, words);
    scripts.is_some_and(|scripts| scripts.named().any(|word| shell::is_input_in(folder, word)))
}

/// Whether a program of awk may start another one, or is neither in the words nor in a file that they name.
fn awk_runs(words: &[String]) -> bool {
    let calls = |word: &str| {
        let text = word.replace("||", "");
        text.contains("system") || text.contains('|') || text.contains("getline") || text.contains('@')
    };
    let open = |word: &str| marks::of(word).is_some();
    let awk = AwkWords::of(words);
    awk.unknown
        || words.iter().any(|word| calls(word))
        || awk.programs.iter().any(|text| open(text))
        || awk.files.iter().any(|file| open(file) || *file == "-" || is_input(file))
        || (awk.programs.is_empty() && awk.files.is_empty())
}

/// Whether what an interpreter or a shell runs is not known before the line runs: `bash $x`, `python3 "$f"`.
fn open_before_script(name: &str, words: &[String]) -> bool {
    let interprets = is_shell(name) || (is_interpreter(name) && !family_of(name).ends_with("awk"));
    let end = words.iter().position(|word| !word.starts_with(['-', '+'])).map_or(words.len(), |at| at + 1);
    interprets && family_of(name) != "sqlite" && words[..end].iter().any(|word| marks::of(word).is_some())
}
