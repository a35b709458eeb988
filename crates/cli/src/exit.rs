//! How a run ends: exit codes, and the one line an error is printed as.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use portcullis::local::InstallationError;
use portcullis::model::ModelError;
use portcullis::operations::{
    AskContentError, AskViewError, CallNameError, ErasureError, EvidenceError, ExportError, ExportFileError,
    GarbageError, IdPartError, ImportError,
};
use portcullis::{DISK_FULL, ForkError, GrantError, RuntimeError, StoreError};
use portcullis_base::{Code, Reason, Recorded};
use portcullis_config::home_workspace::WorkspaceRefusal;
use portcullis_config::{ConfigError, UnreadableFile};
use portcullis_event::Observed;
use portcullis_pipeline::{Halt, ShelfError};
use portcullis_policy::PolicyError;
use portcullis_secret::KeyFileError;
use portcullis_terminal::render::{StreamError, Term, safe};
use portcullis_terminal::signals::LeaveSignal;
use serde_json::{Value, json};

use crate::hints;

/// How a command ended that did what it could (cli §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Waits = 3,
    Denied = 4,
    Broken = 5,
    /// The terminal was closed (128 and the number of the signal, as a shell counts; so the two below).
    HungUp = 129,
    Interrupted = 130,
    Terminated = 143,
}

impl ExitKind {
    /// How the command that made this call ends.
    pub fn of(observed: &Observed) -> Self {
        match &observed.code {
            _ if observed.ok => Self::Done,
            Recorded::Known(Code::PolicyDenied | Code::UserDenied) => Self::Denied,
            // Hidden because a rule denies all it could do.
            Recorded::Known(Code::ToolNotVisible)
                if observed.reason.as_ref().and_then(|reason| reason.known()) == Some(Reason::WhollyDenied) =>
            {
                Self::Denied
            }
            Recorded::Known(Code::PersistFailed | Code::FenceLost) => Self::Broken,
            _ => Self::Failed,
        }
    }
}

impl From<LeaveSignal> for ExitKind {
    fn from(signal: LeaveSignal) -> Self {
        match signal {
            LeaveSignal::Interrupt => Self::Interrupted,
            LeaveSignal::Terminate => Self::Terminated,
            LeaveSignal::HangUp => Self::HungUp,
        }
    }
}

impl ExitKind {
    /// The same after Ctrl-C: what failed was interrupted.
    pub fn or_interrupted(self, interrupted: bool) -> Self {
        if interrupted && self == Self::Failed { Self::Interrupted } else { self }
    }
}

/// An error of this crate's own: what went wrong, where, what to do; and how the process ends.
#[derive(Debug)]
pub struct Fault {
    ended: ExitKind,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Fault {}

/// Wrong usage or configuration.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    fault(ExitKind::Usage, text)
}

/// The work failed.
pub fn failed(text: impl Into<String>) -> anyhow::Error {
    fault(ExitKind::Failed, text)
}

/// An error with an ending of the caller's choosing.
pub fn fault(ended: ExitKind, text: impl Into<String>) -> anyhow::Error {
    Fault { ended, text: text.into() }.into()
}

/// Prints what is to be printed and gives the exit code.
pub fn report(term: &Term, outcome: anyhow::Result<ExitKind>) -> ExitCode {
    let ended = match outcome {
        Ok(ended) => ended,
        // Only of streams: a result keeps its ending whether or not it was read.
        Err(error) if matches!(error.downcast_ref(), Some(StreamError::ReaderLeft)) => ExitKind::Done,
        Err(error) => {
            let (line, (ended, internal)) = (one_line(&error), ended_by(&error));
            if term.json && !error.is::<StreamedError>() {
                // Nobody is left to be told that nobody can be told; the line for a person follows.
                let _ = term.document(&error_document(&line, ended, code_of(&error)));
            }
            term.error(&line);
            // Only taken where RUST_BACKTRACE asks for it; what a person can mend has no use for it.
            if internal && error.backtrace().status() == std::backtrace::BacktraceStatus::Captured {
                term.note(&error.backtrace().to_string());
            }
            ended
        }
    };
    ExitCode::from(ended as u8)
}

/// An error that programs were told of as the last document of their stream.
#[derive(Debug)]
struct StreamedError(anyhow::Error);

impl fmt::Display for StreamedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for StreamedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.0.as_ref())
    }
}

/// Ends a stream of documents that has begun: its last one (`last`) says what went wrong, with the exit code.
pub fn streamed(term: &Term, mut last: Value, error: anyhow::Error) -> anyhow::Error {
    if !term.json || matches!(error.downcast_ref(), Some(StreamError::ReaderLeft)) {
        return error;
    }
    let ended = ended_by(&error).0;
    let mut told = error_document(&one_line(&error), ended, code_of(&error));
    last["exit"] = json!(ended as u8);
    last["error"] = told["error"].take();
    // Nobody is left to be told that nobody can be told; the line for a person follows.
    let _ = term.document(&last);
    StreamedError(error).into()
}

/// What a program reads in place of a result.
fn error_document(message: &str, ended: ExitKind, code: Option<&str>) -> Value {
    let mut document = json!({"error": {"message": message, "exit": ended as u8}});
    if let Some(code) = code {
        document["error"]["code"] = code.into();
    }
    document
}

/// The word for a fault that programs tell apart from others.
fn code_of(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().map(hints::bare).find_map(|cause| {
        match (cause.downcast_ref::<RuntimeError>(), cause.downcast_ref::<StoreError>()) {
            (Some(RuntimeError::Store(StoreError::DiskFull { .. })), _)
            | (Some(RuntimeError::Halted(Halt::PersistFailed(StoreError::DiskFull { .. }))), _)
            | (_, Some(StoreError::DiskFull { .. })) => Some(DISK_FULL),
            (Some(RuntimeError::Store(fault) | RuntimeError::Halted(Halt::PersistFailed(fault))), _)
            | (_, Some(fault)) => match fault {
                StoreError::Gone { .. } => Some("store_gone"),
                StoreError::Damaged { .. } => Some("session_damaged"),
                _ => None,
            },
            _ => None,
        }
    })
}

/// A command line that is not understood; help is asked for in the same way. A program that wants JSON gets it
/// here as well.
pub fn misused(error: &clap::Error) -> ! {
    let told = |message: &str| {
        if std::env::args_os().any(|word| word == "--json") {
            // Nobody is left to be told that nobody can be told.
            let _ = writeln!(io::stdout(), "{}", error_document(message, ExitKind::Usage, None));
        }
    };
    if let Some(text) = to_come(error).or_else(|| probably_meant(error)) {
        told(&text);
        let _ = writeln!(io::stderr(), "error: {text}");
        std::process::exit(ExitKind::Usage as i32);
    }
    if error.use_stderr() {
        let text = error.render().to_string();
        told(text.strip_prefix("error: ").unwrap_or(&text).lines().next().unwrap_or_default());
    }
    error.exit()
}

/// What is said of a command of the specification (cli §1) that this version cannot do.
fn to_come(error: &clap::Error) -> Option<String> {
    const TO_COME: [&str; 6] = ["serve", "mcp", "agents", "check", "vault", "keys"];
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let ContextValue::String(name) = error.get(ContextKind::InvalidSubcommand)? else { return None };
    let text = format!("`portcullis {name}` is not there yet; `portcullis --help` lists what this version can do");
    TO_COME.contains(&name.as_str()).then_some(text)
}

/// What is said of a mistyped command, where it is clear which one was meant.
fn probably_meant(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let program = <crate::args::Cli as clap::CommandFactory>::command();
    let known = program.get_subcommands().map(clap::Command::get_name);
    let meant = portcullis_policy::probably_meant(name, known)?;
    // That of `portcullis sessions lsit` is one of its own, and clap says so.
    let is_first = program.find_subcommand(name).is_none() && std::env::args().nth(1).as_deref() == Some(name);
    is_first.then(|| format!("there is no command `{}`: did you mean `portcullis {meant}`?", safe(name)))
}

/// The chain of causes on one line, with the hint for it. Some errors print their source themselves.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if line.contains(&text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
    }
    let line = hints::followed(line, hints::of(error.as_ref()).as_deref());
    safe(&line).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How the process ends, and whether the fault lies within: not with what was asked for, nor with a place that
/// a person chose.
fn ended_by(error: &anyhow::Error) -> (ExitKind, bool) {
    for cause in error.chain().map(hints::bare) {
        if let Some(fault) = cause.downcast_ref::<Fault>() {
            return (fault.ended, false);
        }
        if cause.is::<UnreadableFile>() {
            return (ExitKind::Usage, false);
        }
        if let Some(ended) = operation_ending(cause) {
            return (ended, false);
        }
        if let Some(error) = cause.downcast_ref::<ConfigError>() {
            return (config_ending(error), false);
        }
        let ended = if let Some(error) = cause.downcast_ref::<RuntimeError>() {
            match error {
                RuntimeError::Store(error) | RuntimeError::Grant(GrantError::Store(error)) => store_ending(error),
                RuntimeError::Grant(_) => ExitKind::Failed,
                RuntimeError::Halted(Halt::PersistFailed(error)) => store_ending(error),
                // A tool of a client that cannot be offered is a mistake in its file.
                RuntimeError::Workspace(_) | RuntimeError::CustomTool(_) | RuntimeError::NameTaken(_) => {
                    ExitKind::Usage
                }
                RuntimeError::Refused(_) => ExitKind::Failed,
                RuntimeError::NoObservation(_) => ExitKind::Failed,
                RuntimeError::OnlyAPerson(_) => ExitKind::Waits,
                RuntimeError::Withdrawn(_) => ExitKind::Interrupted,
                _ => ExitKind::Broken,
            }
        } else if let Some(error) = cause.downcast_ref::<StoreError>() {
            store_ending(error)
        } else if let Some(error) = cause.downcast_ref::<GrantError>() {
            match error {
                GrantError::Store(error) => store_ending(error),
                _ => ExitKind::Failed,
            }
        } else if cause.is::<PolicyError>() {
            ExitKind::Usage
        } else if cause.is::<KeyFileError>() || cause.is::<io::Error>() || cause.is::<StreamError>() {
            ExitKind::Broken
        } else if cause.is::<ShelfError>() {
            ExitKind::Failed
        } else {
            continue;
        };
        return (ended, ended == ExitKind::Broken && !of_the_world(cause));
    }
    (ExitKind::Failed, true)
}

/// How a command ends whose operation refused; where it failed for another error, that one says it.
fn operation_ending(cause: &(dyn std::error::Error + 'static)) -> Option<ExitKind> {
    match cause.downcast_ref::<InstallationError>() {
        Some(InstallationError::Unreadable(_)) => return Some(ExitKind::Broken),
        Some(InstallationError::Folder { .. }) | None => {}
        Some(_) => return Some(ExitKind::Failed),
    }
    if cause.is::<AskContentError>() || cause.is::<AskViewError>() {
        return Some(ExitKind::Broken);
    }
    if cause.is::<WorkspaceRefusal>()
        || cause.is::<IdPartError>()
        || cause.is::<CallNameError>()
        || cause.is::<ModelError>()
    {
        return Some(ExitKind::Usage);
    }
    if let Some(error) = cause.downcast_ref::<ImportError>() {
        let other = matches!(error, ImportError::File(_) | ImportError::Artifacts(_) | ImportError::Store(_));
        return (!other).then_some(ExitKind::Failed);
    }
    match cause.downcast_ref::<ErasureError>() {
        Some(ErasureError::Store(_)) => return None,
        Some(ErasureError::Held(..)) => return Some(ExitKind::Broken),
        Some(_) => return Some(ExitKind::Failed),
        None => {}
    }
    if cause.is::<ExportFileError>() {
        return Some(ExitKind::Usage);
    }
    let refused = matches!(cause.downcast_ref(), Some(ExportError::Content { .. }))
        || matches!(cause.downcast_ref(), Some(EvidenceError::Exists(_)))
        || matches!(cause.downcast_ref(), Some(GarbageError::Leftover { .. } | GarbageError::Content { .. }))
        || cause.is::<ForkError>();
    refused.then_some(ExitKind::Failed)
}

/// Whether a disk, a file or its permissions failed, so that where in this program it was met tells nobody anything.
fn of_the_world(cause: &(dyn std::error::Error + 'static)) -> bool {
    let store = match cause.downcast_ref::<RuntimeError>() {
        Some(
            RuntimeError::Store(error)
            | RuntimeError::Grant(GrantError::Store(error))
            | RuntimeError::Halted(Halt::PersistFailed(error)),
        ) => Some(error),
        _ => match cause.downcast_ref::<GrantError>() {
            Some(GrantError::Store(error)) => Some(error),
            _ => cause.downcast_ref::<StoreError>(),
        },
    };
    match store {
        Some(error) => matches!(
            error,
            StoreError::ReadOnly(_)
                | StoreError::DiskFull { .. }
                | StoreError::Unavailable(_)
                | StoreError::Locked(_)
                | StoreError::Ambiguous(_)
                | StoreError::Corrupt(_)
                | StoreError::Gone { .. }
                | StoreError::Damaged { .. }
                | StoreError::FenceLost { .. }
                | StoreError::LeaseRanOut(_)
                | StoreError::LockHeld { .. }
        ),
        None => cause.is::<KeyFileError>() || cause.is::<io::Error>() || cause.is::<StreamError>(),
    }
}

/// What a person configured is theirs to mend; a place that cannot be written to is the machine's fault.
fn config_ending(error: &ConfigError) -> ExitKind {
    match error {
        ConfigError::Invalid(_)
        | ConfigError::Unreadable(_)
        | ConfigError::Policy(_)
        | ConfigError::AllowForbidden(_) => ExitKind::Usage,
        ConfigError::DataFolder(_) | ConfigError::Key(_) | ConfigError::OwnFile { .. } => ExitKind::Broken,
    }
}

/// What a person asked for and is not there is failed work; the rest is the store's fault.
fn store_ending(error: &StoreError) -> ExitKind {
    match error {
        StoreError::NoSession(_)
        | StoreError::Erased(_)
        | StoreError::Terminated(_)
        | StoreError::NoAsk(_)
        | StoreError::AskSettled { .. } => ExitKind::Failed,
        StoreError::AskExpired(_) => ExitKind::Denied,
        _ => ExitKind::Broken,
    }
}

/// A defect is one line too, unless someone wants to see where it came from.
pub fn plain_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_some() {
        return;
    }
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|l| format!("{}:{}", l.file(), l.line())).unwrap_or_default();
        let what = info.payload_as_str().unwrap_or("no message");
        // Nobody is left to be told that nobody can be told.
        let _ = writeln!(io::stderr(), "defect at {place}: {what}; please report it (RUST_BACKTRACE=1 tells more)");
    }));
}
