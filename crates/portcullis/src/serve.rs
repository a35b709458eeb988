//! A session held for as long as its owner likes: what others queue or answer runs as it comes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::{SessionId, limits};
use portcullis_pipeline::{Halt, Session};
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
pub(crate) struct Serving(Arc<Sessions>, SessionId);

impl Serving {
    pub(crate) fn begin(serving: &Arc<Sessions>, session: SessionId) -> Self {
        lock(serving).insert(session);
        Self(Arc::clone(serving), session)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        lock(&self.0).remove(&self.1);
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
        let _serving = Serving::begin(&self.process.serving, session);
        let served = self.attend_to(&held, stop).await.map_err(RuntimeError::from);
        // Nobody is left to attend to what runs on.
        held.cancel_tasks().await;
        give_back(held).await;
        served
    }

    /// Runs what others queue for a held session and what they answer in it, until `stop`.
    pub(crate) async fn attend_to(&self, held: &Session, stop: &CancellationToken) -> Result<(), Halt> {
        let mut changes = self.gate.store().changes_of(Topic::Session(held.key()));
        let attending = async {
            loop {
                // Before it looks: what is committed meanwhile wakes the next wait.
                changes.mark_unchanged();
                held.attend_until(stop).await?;
                if stop.is_cancelled() {
                    return Ok(());
                }
                news(&mut changes, stop).await;
            }
        };
        self.with_approver(held, attending).await
    }

    /// Whether this runtime serves the session now. A call that is made before it does is a call like any other, and
    /// waits for the background task that it becomes.
    #[must_use]
    pub fn serves(&self, session: SessionId) -> bool {
        lock(&self.process.serving).contains(&session)
    }
}
