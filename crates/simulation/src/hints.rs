//! Hints that something was committed, on their way to those who wait: lost, doubled or out of order (F12). The tables are
//! the truth; whoever waits for a hint looks again after a while.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::dice::Dice;
use crate::options::{Hints, Options};

/// The latest a late hint arrives, in milliseconds.
const LATE_MS: u64 = 3_000;
/// How often a doubled hint arrives.
const TIMES: u64 = 10;

/// Everyone who listens. Each has a channel of its own: a channel with several waiters wakes them in an order of chance,
/// which no seed decides.
pub struct Listeners {
    hints: Hints,
    dice: Dice,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    commits: u64,
    listeners: Vec<Arc<watch::Sender<u64>>>,
}

impl Listeners {
    /// Nobody yet.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self { hints: options.hints, dice: Dice::of(options.seed, "hints"), inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    #[must_use]
    pub fn join(&self) -> watch::Receiver<u64> {
        let mut inner = self.lock();
        let (sender, receiver) = watch::channel(inner.commits);
        // Kept even if none is ever sent: a channel that closed would be a hint, too.
        inner.listeners.push(Arc::new(sender));
        receiver
    }

    /// Something was committed.
    pub fn tell(&self) {
        let mut inner = self.lock();
        inner.commits += 1;
        let commits = inner.commits;
        inner.listeners.retain(|listener| !listener.is_closed());
        for listener in &inner.listeners {
            match self.hints {
                Hints::Kept => _ = listener.send_replace(commits),
                Hints::Dropped => {}
                Hints::Doubled => {
                    for n in 0..TIMES {
                        send_after(listener, commits, n);
                    }
                }
                Hints::Late => send_after(listener, commits, self.dice.between(1, LATE_MS)),
            }
        }
    }
}

fn send_after(listener: &Arc<watch::Sender<u64>>, commits: u64, millis: u64) {
    let listener = Arc::clone(listener);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        listener.send_replace(commits);
    });
}
