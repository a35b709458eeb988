//! Variables whose value a program runs: given before a command, exported, or as words of `make`.

use portcullis_base::{loads_code, make_runs, runs_by_its_ending};

use super::inline::{AS_OPTION, is_harmless};
use super::marks;
use super::shell::is_input;
use super::unwrap::{base, is_assignment};

/// Compilers behind another one: `ccache gcc`.
const COMPILER_CACHES: &[&str] = &["ccache", "sccache", "distcc", "icecc"];

/// Whether a value is more than one program with its flags: a shell or a builder that ran it would run something else too.
fn is_line(value: &str) -> bool {
    let acts = value.contains([';', '|', '&', '\n', '`', '!']) || value.contains("$(") || value.contains("${");
    let mut words = value.split_whitespace().peekable();
    if words.peek().is_some_and(|first| COMPILER_CACHES.contains(first)) {
        words.next();
    }
    // A list of flags, with their values.
    let flags = words.peek().is_none_or(|first| first.starts_with('-'));
    acts || (!flags && words.skip(1).any(|word| !word.starts_with('-')))
}

/// Whether a program runs a variable of this name as it is, whatever its value.
fn is_command(name: &str) -> bool {
    runs_by_its_ending(name).is_some()
        || matches!(name, "GIT_SSH" | "GIT_EXTERNAL_DIFF" | "TAR_OPTIONS" | "MANOPT" | "RUSTC" | "RUSTDOC")
}

/// Whether some value of this variable makes a program run something.
pub(super) fn value_is_run(name: &str) -> bool {
    name != "IFS" && !names_a_person(name) && (loads_code(name).is_some() || is_program(name))
}

/// `NAME=value` where the value is run by whatever looks at the variable.
pub(super) fn runs_variable(word: &str) -> bool {
    let Some((name, value)) = marks::bare(word).split_once('=') else { return false };
    let name = name.trim_end_matches('+');
    if is_command(name) {
        return !is_harmless(value);
    }
    let expands = value.contains(['$', '`']);
    match name {
        "PS0" | "PS1" | "PS2" | "PS3" | "PS4" | "BASH_ENV" | "ENV" => expands || is_input(value),
        "MAKEFLAGS" | "GNUMAKEFLAGS" | "MFLAGS" => expands || value.contains("eval") || sets_variable(value),
        "GOFLAGS" => ["exec", "vettool"].iter().any(|part| value.contains(part)),
        "NODE_OPTIONS" => ["data:", "import", "require", "loader"].iter().any(|part| value.contains(part)),
        "PERL5OPT" | "RUBYOPT" => value.contains(|c: char| !c.is_ascii_alphanumeric() && !"-_:./ =".contains(c)),
        "PERL5DB" | "GIT_CONFIG_PARAMETERS" | "GIT_CONFIG_COUNT" | "PYTHONINSPECT" => true,
        "PATH" | "GIT_EXEC_PATH" | "COMPILER_PATH" | "GCC_EXEC_PREFIX" => !value.split(':').all(is_trusted_folder),
        "IFS" => false,
        _ => {
            let starts = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "BASH_FUNC_", "CARGO_ALIAS_"];
            starts.iter().any(|start| name.starts_with(start))
                || npm_runs(name, value)
                || value.starts_with("() {")
                || is_input(value)
                // Arithmetic evaluates the value of a name, and what its index runs.
                || (value.contains('[') && (value.contains("$(") || value.contains('`')))
                || ((loads_code(name).is_some() || is_program(name)) && !names_a_person(name) && is_line(value))
        }
    }
}

/// Who wrote a commit, and when.
pub(super) fn names_a_person(name: &str) -> bool {
    name.starts_with("GIT_AUTHOR_") || name.starts_with("GIT_COMMITTER_")
}

/// Settings of npm that name a program.
fn npm_runs(name: &str, value: &str) -> bool {
    let Some(setting) = name.to_ascii_lowercase().strip_prefix("npm_config_").map(str::to_owned) else { return false };
    let programs =
        ["script_shell", "shell", "call", "git", "editor", "viewer", "browser", "node_options", "onload_script"];
    programs.contains(&setting.as_str()) && !is_harmless(value)
}

/// Whether flags of make hold a variable: `CC=x`, and not `--output-sync=target`.
fn sets_variable(flags: &str) -> bool {
    flags.contains('\\') || flags.split_whitespace().any(|word| !word.starts_with('-') && word.contains('='))
}

/// Where programs of the system lie.
pub(super) const SYSTEM: &[&str] = &["/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/", "/snap/"];

/// Folders that a line or the workspace may have filled.
const WRITABLE: &[&str] = &["/workspace/", "/tmp/", "/var/tmp/", "/dev/", "/proc/", "/run/"];

/// Variables of installations that a session finds set.
const INSTALLED: &[&str] = &[
    "PATH",
    "JAVA_HOME",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "CARGO_HOME",
    "NVM_DIR",
    "NVM_BIN",
    "PNPM_HOME",
    "BUN_INSTALL",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "ANDROID_HOME",
    "VOLTA_HOME",
    "CONDA_PREFIX",
];

/// Whether a folder of `PATH` holds installed programs alone. In any other one a name may be a link to any program.
pub(super) fn is_trusted_folder(folder: &str) -> bool {
    let named = |folder: &str| folder.strip_prefix('$').map(|rest| rest.replace(['{', '}'], ""));
    if folder.contains("..") || folder.contains(['`', '(', '*', '?']) {
        return false;
    }
    if let Some(variable) = named(folder) {
        let (name, below) = variable.split_once('/').unwrap_or((&variable, ""));
        let home = name == "HOME" && (below.starts_with('.') || matches!(below, "bin" | "go/bin"));
        return home || INSTALLED.contains(&name);
    }
    if let Some(below) = folder.strip_prefix("~/") {
        return below.starts_with('.') || matches!(below, "bin" | "go/bin");
    }
    let whole = format!("{folder}/");
    folder.starts_with('/') && !folder.contains('$') && !WRITABLE.iter().any(|place| whole.starts_with(place))
}

/// Why the words of make do not tell what it runs, if so.
pub(super) fn makes(words: &[String]) -> Option<&'static str> {
    let input =
        |word: &String| word == "-" || is_input(word) || word.strip_prefix("-f").is_some_and(|file| file == "-");
    let long = |word: &String| word.split_once('=').is_some_and(|(_, value)| value == "-" || is_input(value));
    if words.iter().any(|word| input(word) || long(word)) {
        return Some("make takes its rules from its input");
    }
    let variable = |word: &String| {
        let word = marks::bare(word);
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.starts_with('-')) else {
            return word.contains("$(") || word.contains("${") || word.contains('`');
        };
        let shell = ["SHELL", ".SHELLFLAGS"].iter().any(|known| name.starts_with(known));
        // `NAME!=value` runs the value.
        let runs = shell || name.ends_with('!') || is_program(name);
        let acts = value.contains([';', '|', '&', '\n', '`']) || value.contains("$(") || value.contains("${");
        shell || name.ends_with('!') || acts || (runs && is_line(value))
    };
    words.iter().any(variable).then_some(AS_OPTION)
}

/// Whether make finds a text among the variables of a line that it would run or expand: `LDLIBS='; x' make`. Its own rules
/// use any of them.
pub(super) fn make_expands(commands: &[Vec<String>]) -> bool {
    let is_make = |word: &String| matches!(base(marks::bare(word)), "make" | "gmake" | "bmake" | "pmake");
    let acts = |word: &String| {
        let value = word.split_once('=').filter(|_| is_assignment(word) && marks::of(word).is_none());
        value.is_some_and(|(_, value)| {
            value.contains([';', '|', '`', '\n']) || value.contains("$(") || value.contains("${")
        })
    };
    let makes = |argv: &Vec<String>| argv.iter().find(|word| !is_assignment(word)).is_some_and(is_make);
    commands.iter().any(makes) && commands.iter().flatten().any(acts)
}

/// Whether make's own rules run a variable: `CC`, `LINK.c`, `COMPILE.cc`.
fn is_program(name: &str) -> bool {
    let name = name.trim_end_matches([':', '+', '?', '!']);
    let rule =
        ["LINK.", "COMPILE.", "PREPROCESS.", "LEX.", "YACC.", "LINT."].iter().any(|start| name.starts_with(start));
    rule || make_runs(name)
}

/// The goals that words of make set in place of its first rule: `make .DEFAULT_GOAL=deploy`.
pub(super) fn goals_of_make(words: &[String]) -> impl Iterator<Item = String> {
    let set = |word: &String| {
        let (name, value) = marks::bare(word).split_once('=')?;
        let goal = value.trim();
        let named = name.trim_end_matches([':', '+', '?', '!']) == ".DEFAULT_GOAL";
        // A form that names the goal already is not made again.
        (named && !words.iter().any(|word| word == goal)).then(|| goal.to_owned())
    };
    words.iter().filter_map(set)
}

/// The programs that words of make set for its own rules.
pub(super) fn programs_of_make(words: &[String]) -> impl Iterator<Item = String> {
    let set = words.iter().filter_map(|word| marks::bare(word).split_once('='));
    set.filter(|(name, _)| is_program(name)).map(|(_, value)| value.to_owned())
}
