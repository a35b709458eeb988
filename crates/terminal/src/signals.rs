//! Signals that ask a process to stop what it does, or to leave.

use std::{fs, io};

use rustix::process::Signal as Which;
use tokio::signal::unix::{Signal, SignalKind, signal};

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

/// A signal that asks a process to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveSignal {
    Interrupt,
    Terminate,
    HangUp,
}

impl LeaveSignal {
    /// What a log calls it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Interrupt => "Ctrl-C",
            Self::Terminate => "SIGTERM",
            Self::HangUp => "SIGHUP",
        }
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

    /// The next of them.
    pub async fn next(&mut self) -> LeaveSignal {
        tokio::select! {
            _ = self.interrupts.recv() => LeaveSignal::Interrupt,
            () = next(&mut self.terminations) => LeaveSignal::Terminate,
            () = next(&mut self.hangups) => LeaveSignal::HangUp,
        }
    }
}

/// What interrupts a session that is being driven: Ctrl-C, and what else asks to leave where no terminal is restored
/// for it.
pub struct Interrupts {
    signals: Leave,
    /// The last of them.
    pub how: LeaveSignal,
}

impl Interrupts {
    /// Ctrl-C from now on.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { signals: Leave::interrupts()?, how: LeaveSignal::Interrupt })
    }

    /// From now on also what ends a process that nobody sits at.
    pub fn listen_to_all() -> io::Result<Self> {
        Ok(Self { signals: Leave::listen()?, how: LeaveSignal::Interrupt })
    }

    /// Waits for the next of them.
    pub async fn next(&mut self) {
        self.how = self.signals.next().await;
    }
}
