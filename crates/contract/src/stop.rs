//! Why a running call is told to stop. The runtime says so once; the tool reads the cause and never guesses it from
//! how long it ran, because the runtime's clock starts before the tool's own.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Why a running call is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// Its time is up.
    Deadline,
    /// Somebody interrupted it: a person, `task_cancel`, or the end of what it was part of.
    Interrupt,
    /// The runtime must let go of it: the session is another process's now, or the log takes nothing more.
    Shutdown,
}

/// Tells a call to stop, and why. Clones are one signal.
#[derive(Debug, Clone, Default)]
pub struct StopSignal(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    token: CancellationToken,
    cause: OnceLock<StopCause>,
}

impl StopSignal {
    /// Tells it. The first cause stays.
    pub fn fire(&self, cause: StopCause) {
        // Before the token: who is woken by it finds the cause.
        let _ = self.0.cause.set(cause);
        self.0.token.cancel();
    }

    /// Why it was told to stop, if it was.
    #[must_use]
    pub fn cause(&self) -> Option<StopCause> {
        self.0.cause.get().copied()
    }

    /// Resolves once it was told.
    pub async fn fired(&self) -> StopCause {
        self.0.token.cancelled().await;
        // Invariant: the token is private and cancelled by `fire` alone, which sets the cause first.
        self.cause().expect("a signal that fired has a cause")
    }
}
