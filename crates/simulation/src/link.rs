//! The line between one process and the rest of the world. A process that is dead reaches nothing any more: no
//! store, no tool's effect. That is all of a crash that another process could see.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The state of the link between a process and the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    Up,
    /// Nothing gets through for now; what was sent arrives late. Effects that need no store go on.
    Cut,
    /// The process was killed. There is no way back.
    Dead,
}

/// One process's line.
#[derive(Debug)]
pub struct Link {
    /// How it is, and how often it was cut: an answer that was under way then is lost.
    line: Mutex<(LinkState, u64)>,
    /// Wakes in the order of arrival. A `watch` channel would not: it wakes its waiters in an order of chance.
    turned: Notify,
}

impl Default for Link {
    fn default() -> Self {
        Self { line: Mutex::new((LinkState::Up, 0)), turned: Notify::new() }
    }
}

impl Link {
    fn line(&self) -> MutexGuard<'_, (LinkState, u64)> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the line. The dead stay dead.
    pub fn set(&self, line: LinkState) {
        {
            let mut now = self.line();
            if now.0 == LinkState::Dead || now.0 == line {
                return;
            }
            now.0 = line;
            now.1 += u64::from(line == LinkState::Cut);
        }
        self.turned.notify_waiters();
    }

    /// How often it was cut.
    #[must_use]
    pub fn cuts(&self) -> u64 {
        self.line().1
    }

    /// Waits until the line is up; for ever if the process is dead.
    pub async fn up(&self) {
        self.when(|line| line == LinkState::Up).await;
    }

    /// Waits until what was sent gets through: it does so even if its sender died meanwhile.
    pub async fn through(&self) {
        self.when(|line| line != LinkState::Cut).await;
    }

    /// Waits for ever if the process is dead; a cut does not hold up what needs no store.
    pub async fn alive(&self) {
        self.when(|line| line != LinkState::Dead).await;
    }

    async fn when(&self, is: impl Fn(LinkState) -> bool) {
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            // In line before the look: no turn is missed between the two.
            turned.as_mut().enable();
            let now = self.line().0;
            if is(now) {
                return;
            }
            turned.await;
        }
    }
}
