//! The calls of this process that have started and whose end is not durable yet. Recovery leaves them
//! alone: they are not lost, they are at work.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::IntentId;
use tokio::sync::Notify;

#[derive(Debug, Clone, Default)]
pub(crate) struct AtWork {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    calls: Mutex<HashSet<IntentId>>,
    one_ended: Notify,
}

impl AtWork {
    fn calls(&self) -> MutexGuard<'_, HashSet<IntentId>> {
        self.inner.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self, intent: IntentId) -> WorkingCall {
        self.calls().insert(intent);
        WorkingCall { at_work: self.clone(), intent }
    }

    pub(crate) fn has(&self, intent: IntentId) -> bool {
        self.calls().contains(&intent)
    }

    /// Waits until none is at work any more.
    pub(crate) async fn done(&self) {
        loop {
            let ended = self.inner.one_ended.notified();
            if self.calls().is_empty() {
                return;
            }
            ended.await;
        }
    }
}

/// The entry of one running call. It is dropped once the end of the call is durable.
#[derive(Debug)]
pub(crate) struct WorkingCall {
    at_work: AtWork,
    intent: IntentId,
}

impl Drop for WorkingCall {
    fn drop(&mut self) {
        self.at_work.calls().remove(&self.intent);
        self.at_work.inner.one_ended.notify_waiters();
    }
}
