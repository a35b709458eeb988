//! A session held for as long as its owner likes: what others queue or answer runs as it comes.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_base::{SessionId, limits};
use portcullis_store::Topic;
use tokio_util::sync::CancellationToken;

use crate::RuntimeError;
use crate::queue::news;
use crate::runtime::{Runtime, give_back};

type Sessions = Mutex<BTreeSet<SessionId>>;

fn lock(serving: &Sessions) -> MutexGuard<'_, BTreeSet<SessionId>> {
    // A set of ids is whole between any two of its changes.
    serving.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the session out of the set again, however serving ends.
struct Serving<'a>(&'a Sessions, SessionId);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        lock(self.0).remove(&self.1);
    }
}

impl Runtime {
    /// Holds a session until `stop`, and runs every call that others queue for it and every ask they
    /// answer: `portcullis call` and `approvals allow` then wait for this process. Calls of this very
    /// runtime in the session are queued, too. `stop` also interrupts what runs, as its semantics allow, and ends
    /// background tasks. While a session is served, a call that goes into the background is settled at once, and
    /// `task_output`, `task_wait` and `task_cancel` are calls like any other.
    ///
    /// # Errors
    /// If another live process holds it, or the store fails.
    pub async fn serve(&self, session: SessionId, stop: &CancellationToken) -> Result<(), RuntimeError> {
        let held = self.claim(session, limits::CALL_LEASE_WAIT).await?;
        lock(&self.process.serving).insert(session);
        let _serving = Serving(&self.process.serving, session);
        let mut changes = self.gate.store().changes_of(Topic::Session(self.key(session)));
        let served = loop {
            // Before it looks: what is committed meanwhile wakes the next wait.
            changes.mark_unchanged();
            if let Err(halt) = held.attend_until(stop).await {
                break Err(halt.into());
            }
            if stop.is_cancelled() {
                break Ok(());
            }
            news(&mut changes, stop).await;
        };
        // Nobody is left to attend to what runs on.
        held.cancel_tasks().await;
        give_back(held).await;
        served
    }

    /// Whether this runtime serves the session now. A call that is made before it does is a call like any other, and
    /// waits for the background task that it becomes.
    #[must_use]
    pub fn serves(&self, session: SessionId) -> bool {
        lock(&self.process.serving).contains(&session)
    }
}
