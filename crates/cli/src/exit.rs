//! How a run ends: exit codes, and the one line an error is printed as.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use portcullis::{GrantError, RuntimeError};
use portcullis_base::{Code, Reason, Recorded};
use portcullis_event::Observed;
use portcullis_pipeline::{Halt, ShelfError};
use portcullis_policy::PolicyError;
use portcullis_secret::KeyFileError;
use portcullis_store::StoreError;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::render::{ReaderLeft, Term, safe};
use crate::spinner::{PATIENCE, Spinner};

/// How a command ended that did what it could (cli.md §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Waits = 3,
    Denied = 4,
    Broken = 5,
    Interrupted = 130,
}

impl Ended {
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

impl Ended {
    /// The same after Ctrl-C: what failed was interrupted.
    pub fn or_interrupted(self, interrupted: bool) -> Self {
        if interrupted && self == Self::Failed { Self::Interrupted } else { self }
    }
}

/// An error of this crate's own: what went wrong, where, what to do; and how the process ends.
#[derive(Debug)]
pub struct Fault {
    ended: Ended,
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
    fault(Ended::Usage, text)
}

/// The work failed.
pub fn failed(text: impl Into<String>) -> anyhow::Error {
    fault(Ended::Failed, text)
}

/// An error with an ending of the caller's choosing.
pub fn fault(ended: Ended, text: impl Into<String>) -> anyhow::Error {
    Fault { ended, text: text.into() }.into()
}

/// Prints what is to be printed and gives the exit code.
pub fn report(term: &Term, outcome: anyhow::Result<Ended>) -> ExitCode {
    let ended = match outcome {
        Ok(ended) => ended,
        // Only of streams: a result keeps its ending whether or not it was read.
        Err(error) if error.is::<ReaderLeft>() => Ended::Done,
        Err(error) => {
            term.error(&one_line(&error));
            // Only taken where RUST_BACKTRACE asks for it.
            if error.backtrace().status() == std::backtrace::BacktraceStatus::Captured {
                term.note(&error.backtrace().to_string());
            }
            ended_by(&error)
        }
    };
    ExitCode::from(ended as u8)
}

/// The chain of causes on one line. Some errors print their source themselves.
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
    safe(&line).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn ended_by(error: &anyhow::Error) -> Ended {
    for cause in error.chain() {
        if let Some(fault) = cause.downcast_ref::<Fault>() {
            return fault.ended;
        }
        if let Some(error) = cause.downcast_ref::<RuntimeError>() {
            return match error {
                RuntimeError::Store(error) | RuntimeError::Grant(GrantError::Store(error)) => store_ending(error),
                RuntimeError::Grant(_) => Ended::Failed,
                RuntimeError::Halted(Halt::PersistFailed(error)) => store_ending(error),
                RuntimeError::Workspace(_) => Ended::Usage,
                RuntimeError::NoObservation(_) => Ended::Failed,
                RuntimeError::Withdrawn(_) => Ended::Interrupted,
                _ => Ended::Broken,
            };
        }
        if let Some(error) = cause.downcast_ref::<StoreError>() {
            return store_ending(error);
        }
        if let Some(GrantError::Store(error)) = cause.downcast_ref::<GrantError>() {
            return store_ending(error);
        }
        if cause.is::<PolicyError>() {
            return Ended::Usage;
        }
        if cause.is::<KeyFileError>() || cause.is::<io::Error>() {
            return Ended::Broken;
        }
        if cause.is::<ShelfError>() {
            return Ended::Failed;
        }
    }
    Ended::Failed
}

/// What a person asked for and is not there is failed work; the rest is the store's fault.
fn store_ending(error: &StoreError) -> Ended {
    match error {
        StoreError::NoSession(_) | StoreError::NoAsk(_) | StoreError::AskSettled { .. } => Ended::Failed,
        StoreError::AskExpired(_) => Ended::Denied,
        _ => Ended::Broken,
    }
}

/// Ctrl-C from now on. One listener for a whole wait: between two, a Ctrl-C would be lost.
pub fn interrupts() -> io::Result<Signal> {
    signal(SignalKind::interrupt())
}

/// Waits for `work`, saying so in `words` if it takes long. The first Ctrl-C fires `cancel` and waits on,
/// the second leaves.
pub async fn interruptible<T>(
    term: &Term,
    words: &str,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> anyhow::Result<(T, bool)> {
    let mut interrupted = false;
    let mut interrupts = interrupts()?;
    let mut work = std::pin::pin!(work);
    let mut patience = std::pin::pin!(tokio::time::sleep(PATIENCE));
    let mut spinner = None;
    loop {
        tokio::select! {
            done = &mut work => return Ok((done, interrupted)),
            () = &mut patience, if spinner.is_none() => spinner = Some(Spinner::show(term, words)),
            Some(()) = interrupts.recv() => {
                if interrupted {
                    return Err(fault(Ended::Interrupted, "left before the call was settled; its session can be resumed"));
                }
                interrupted = true;
                cancel.cancel();
                let say = || term.note("interrupted: waiting for the call to settle; Ctrl-C again leaves at once");
                spinner.as_ref().map_or_else(say, |spinner| spinner.aside(say));
            }
        }
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
