//! Clocks of a run: they move with tokio's virtual time, and their wall time can be made to jump.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use portcullis_base::{Clock, Timestamp};
use tokio::time::Instant;

/// When every run begins: 2026-04-10.
const START: i64 = 1_775_818_800_000_000;

/// One machine's clock.
#[derive(Debug)]
pub struct SimClock {
    begun: Instant,
    jumped: AtomicI64,
}

impl SimClock {
    /// A clock of a run that began at `begun`.
    #[must_use]
    pub fn new(begun: Instant) -> Self {
        Self { begun, jumped: AtomicI64::new(0) }
    }

    /// Moves wall time, forwards or backwards. Monotonic time knows nothing of it.
    pub fn jump(&self, seconds: i64) {
        self.jumped.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    /// How far wall time is from what it would be.
    #[must_use]
    pub fn off_by(&self) -> i64 {
        self.jumped.load(Ordering::SeqCst) / 1_000_000
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.monotonic().as_micros()).unwrap_or(i64::MAX / 2);
        Timestamp::from_micros(START + passed + self.jumped.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Instant::now() - self.begun
    }
}
