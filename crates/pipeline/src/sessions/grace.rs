//! The time after a takeover in which a lost holder may still be inside an effect (store §5): what conflicts with it waits.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_base::Clock;
use portcullis_base::limits::EFFECT_GRACE;
use portcullis_store::{LockKey, conflicts};

/// Keys of calls that this process recovered under a lease that had run out. The store lets them linger for every process
/// (`Commit::linger`); what is known here is waited for before the line, so that nobody else is held up.
#[derive(Debug, Default)]
pub(crate) struct Grace {
    keys: Mutex<Vec<(String, Duration)>>,
}

impl Grace {
    /// A call with these keys was lost just now.
    pub(crate) fn lost(&self, keys: &[String], clock: &dyn Clock) {
        let until = clock.monotonic() + EFFECT_GRACE;
        self.lock().extend(keys.iter().map(|key| (key.clone(), until)));
    }

    /// How long a call that wants these keys has to wait.
    fn left(&self, wanted: &[LockKey], clock: &dyn Clock) -> Duration {
        let now = clock.monotonic();
        let mut keys = self.lock();
        keys.retain(|(_, until)| *until > now);
        let in_the_way = keys.iter().filter(|(lost, _)| wanted.iter().any(|lock| conflicts(lost, &lock.key)));
        in_the_way.map(|(_, until)| *until - now).max().unwrap_or_default()
    }

    /// Waits until no lost call is in the way of these keys.
    pub(crate) async fn over(&self, wanted: &[LockKey], clock: &dyn Clock) {
        loop {
            let left = self.left(wanted, clock);
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Duration)>> {
        // A list of keys is whole after any panic.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
