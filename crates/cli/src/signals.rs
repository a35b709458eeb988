//! Signals that ask a process to stop what it does, or to leave.

use std::{fs, io};

use rustix::process::Signal as Which;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::{ExitKind, fault};
use crate::render::Term;
use crate::spinner::{PATIENCE, Spinner};

/// A file that reaches its size limit (`ulimit -f`) is a write that fails, not the end of this process. The signal is
/// caught, not ignored: what this process starts gets the usual meaning of it back.
pub fn outlive_file_limits() -> io::Result<()> {
    signal(SignalKind::from_raw(Which::XFSZ.as_raw())).map(drop)
}

/// Ctrl-C from now on. One listener for a whole wait: between two, a Ctrl-C would be lost.
pub fn interrupts() -> io::Result<Signal> {
    signal(SignalKind::interrupt())
}

/// A signal from now on; none that whoever started this wants passed over (`nohup`).
pub fn heeded(which: Which) -> Option<Signal> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim).unwrap_or_default();
    let ignored = u64::from_str_radix(mask, 16).unwrap_or_default() & (1 << (which.as_raw() - 1)) != 0;
    if ignored { None } else { signal(SignalKind::from_raw(which.as_raw())).ok() }
}

/// The next of these; never, where they are not listened for.
pub async fn next(signals: &mut Option<Signal>) {
    match signals {
        Some(signals) => drop(signals.recv().await),
        None => std::future::pending().await,
    }
}

/// The signals that ask a process to leave.
pub struct Leave {
    interrupts: Signal,
    terminations: Option<Signal>,
    hangups: Option<Signal>,
}

impl Leave {
    /// From now on.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { terminations: heeded(Which::TERM), hangups: heeded(Which::HUP), ..Self::interrupts()? })
    }

    /// Ctrl-C alone: something else sees to the others.
    fn interrupts() -> io::Result<Self> {
        Ok(Self { interrupts: interrupts()?, terminations: None, hangups: None })
    }

    /// The next of them: how a process that follows it ends.
    pub async fn next(&mut self) -> ExitKind {
        tokio::select! {
            _ = self.interrupts.recv() => ExitKind::Interrupted,
            () = next(&mut self.terminations) => ExitKind::Terminated,
            () = next(&mut self.hangups) => ExitKind::HungUp,
        }
    }
}

/// What interrupts a session that is being driven: Ctrl-C, and what else asks to leave where no terminal is restored
/// for it.
pub struct Interrupts {
    signals: Leave,
    /// How a process ends that was last interrupted so.
    pub how: ExitKind,
}

impl Interrupts {
    /// Ctrl-C from now on.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { signals: Leave::interrupts()?, how: ExitKind::Interrupted })
    }

    /// From now on also what ends a process that nobody sits at.
    pub fn listen_to_all() -> io::Result<Self> {
        Ok(Self { signals: Leave::listen()?, how: ExitKind::Interrupted })
    }

    /// Waits for the next of them.
    pub async fn next(&mut self) {
        self.how = self.signals.next().await;
    }

    /// What a log calls it.
    pub fn word(&self) -> &'static str {
        match self.how {
            ExitKind::Terminated => "SIGTERM",
            ExitKind::HungUp => "SIGHUP",
            _ => "Ctrl-C",
        }
    }
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
                    return Err(fault(ExitKind::Interrupted, "left before the call was settled; its session can be resumed"));
                }
                interrupted = true;
                cancel.cancel();
                let say = || term.note("interrupted: waiting for the call to settle; Ctrl-C again leaves at once");
                spinner.as_ref().map_or_else(say, |spinner| spinner.aside(say));
            }
        }
    }
}
