//! What the runtime does itself, in the place of a program (agent-runtime 8.7).

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use portcullis_command::{Builtin, Stage};
use portcullis_pipeline::Environment;
use portcullis_sandbox::{self as sandbox, Attempt, FileError, Kind, VirtualPath};

use super::operands::Outlook;

/// Where programs are looked for: never along a `PATH` that a session could have set, never in the workspace.
pub(super) const TRUSTED: [&str; 2] = ["/usr/bin", "/bin"];

/// The output of a stage and its exit code.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StageOutput {
    pub(super) out: Vec<u8>,
    pub(super) err: Vec<u8>,
    pub(super) code: i32,
}

impl StageOutput {
    fn line(text: &str) -> Self {
        Self { out: format!("{text}\n").into_bytes(), ..Self::default() }
    }

    fn bit(holds: bool) -> Self {
        Self { code: i32::from(!holds), ..Self::default() }
    }

    /// A stage that could not begin, in the words of a shell.
    pub(super) fn failed(text: &str) -> Self {
        Self { err: format!("{text}\n").into_bytes(), code: 1, ..Self::default() }
    }
}

/// How a builtin ended.
pub(super) enum BuiltinEnd {
    Said(StageOutput),
    /// The stages after it run there.
    Moved(VirtualPath),
}

/// Does what `stage` says, of which `builtin` is the kind. `variables` is what `env` shows.
pub(super) fn run(
    builtin: Builtin,
    stage: &Stage,
    at: &Outlook<'_>,
    variables: &dyn Fn() -> Vec<u8>,
) -> Result<BuiltinEnd, FileError> {
    let words: Vec<&str> = stage.args().iter().filter_map(|arg| arg.word().as_literal()).collect();
    let last = words.last().copied().unwrap_or_default();
    Ok(BuiltinEnd::Said(match builtin {
        Builtin::True => StageOutput::default(),
        Builtin::Pwd => StageOutput::line(at.cwd.as_str()),
        Builtin::Env => StageOutput { out: variables(), ..StageOutput::default() },
        Builtin::CommandV => {
            found(last).map_or_else(|| StageOutput::bit(false), |found| StageOutput::line(&found.word(last)))
        }
        Builtin::Type => match found(last) {
            Some(found) => StageOutput::line(&found.sentence(last)),
            None => StageOutput::failed(&format!("type: {last}: not found")),
        },
        Builtin::Test => match words[..] {
            [test, path, ..] => StageOutput::bit(holds(test, path, at)?),
            // Invariant: a plan has both words.
            _ => StageOutput::bit(false),
        },
        Builtin::Cd => match at.place(last)? {
            Some(place) if place.kind() == Some(Kind::Directory) => {
                if sandbox::would_allow(&place, Attempt::Execute)? {
                    return Ok(BuiltinEnd::Moved(place.path().clone()));
                }
                StageOutput::failed(&format!("cd: {last}: Permission denied"))
            }
            Some(place) if place.kind().is_some() => StageOutput::failed(&format!("cd: {last}: Not a directory")),
            _ => StageOutput::failed(&format!("cd: {last}: No such file or directory")),
        },
    }))
}

fn holds(test: &str, path: &str, at: &Outlook<'_>) -> Result<bool, FileError> {
    let Some(place) = at.place(path)?.filter(|place| place.kind().is_some()) else { return Ok(false) };
    // A slash at the end asks for a directory.
    if path.ends_with('/') && place.kind() != Some(Kind::Directory) {
        return Ok(false);
    }
    Ok(match test {
        "-e" => true,
        "-f" => place.kind() == Some(Kind::File),
        "-d" => place.kind() == Some(Kind::Directory),
        "-s" => sandbox::stat(&place)?.size > 0,
        "-r" => sandbox::would_allow(&place, Attempt::Read)?,
        "-w" => sandbox::would_allow(&place, Attempt::Write)?,
        "-x" => sandbox::would_allow(&place, Attempt::Execute)?,
        // Invariant: a plan has no other test.
        _ => false,
    })
}

/// Words of a shell's own grammar.
const KEYWORDS: [&str; 22] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while", "{", "}",
];

/// What a shell does itself.
const SHELL_BUILTINS: [&str; 61] = [
    ".",
    ":",
    "[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// What the name of a command stands for.
enum ResolvedCommand {
    Keyword,
    Builtin,
    Program(PathBuf),
}

impl ResolvedCommand {
    fn word(&self, name: &str) -> String {
        match self {
            Self::Keyword | Self::Builtin => name.to_owned(),
            Self::Program(path) => path.display().to_string(),
        }
    }

    fn sentence(&self, name: &str) -> String {
        match self {
            Self::Keyword => format!("{name} is a shell keyword"),
            Self::Builtin => format!("{name} is a shell builtin"),
            Self::Program(path) => format!("{name} is {}", path.display()),
        }
    }
}

fn found(name: &str) -> Option<ResolvedCommand> {
    if KEYWORDS.contains(&name) {
        return Some(ResolvedCommand::Keyword);
    }
    if SHELL_BUILTINS.contains(&name) {
        return Some(ResolvedCommand::Builtin);
    }
    program(name).map(ResolvedCommand::Program)
}

/// The program of that name on the trusted path.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let runs =
        |path: &PathBuf| path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    TRUSTED.iter().map(|folder| PathBuf::from(folder).join(name)).find(runs)
}

/// Parts of names whose values are secrets by custom. Values come from `export` in a shell as well, and a person who
/// sourced a file of credentials there did not mean to have them printed into a log.
const SECRET_NAMES: [&str; 9] =
    ["SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "_KEY", "AUTH"];

/// What `env` shows: `own` as programs here have them, and the session's, whose secrets are names alone.
pub(super) fn environment(own: &[(String, String)], session: &Environment) -> Vec<u8> {
    let mut lines: Vec<(String, String)> = own.to_vec();
    for (name, value) in &session.values {
        let upper = name.as_str().to_ascii_uppercase();
        let secret = SECRET_NAMES.iter().any(|part| upper.contains(part));
        lines.push((name.as_str().to_owned(), if secret { "***".to_owned() } else { value.expose().to_owned() }));
    }
    lines.sort();
    lines.into_iter().map(|(name, value)| format!("{name}={value}\n")).collect::<String>().into_bytes()
}
