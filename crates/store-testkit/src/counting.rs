//! A store that counts: how many durable commits a call costs is asserted with it (store 4.1).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_store::{Commit, Committed, Import, Imported, Store, StoreError};

use crate::{StoreCall, StoreWork, StoreWrapper, Wrapped};

/// How often each kind of call was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreCallCounts {
    /// Commits and imports that wrote something; refusals and repeats do not count.
    pub commits: u64,
    pub claims: u64,
    pub renews: u64,
    pub releases: u64,
    /// Every other call that writes, even one that is refused: snapshots, records, sweeps, erasures.
    pub writes: u64,
    pub reads: u64,
}

/// Counts the calls of a store and changes nothing.
pub type CountingStore<S> = Wrapped<CallCounter<S>>;

/// The counts of a [`CountingStore`].
pub struct CallCounter<S: ?Sized> {
    inner: Arc<S>,
    counts: Mutex<StoreCallCounts>,
}

impl<S: Store + ?Sized> CountingStore<S> {
    /// Counts from zero.
    #[must_use]
    pub fn new(inner: Arc<S>) -> Self {
        Wrapped(CallCounter { inner, counts: Mutex::default() })
    }
}

impl<S: Store + ?Sized> CallCounter<S> {
    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> StoreCallCounts {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, StoreCallCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, call: StoreCall) {
        let mut counts = self.lock();
        let count = match call {
            StoreCall::Read => &mut counts.reads,
            StoreCall::Claim => &mut counts.claims,
            StoreCall::Renew => &mut counts.renews,
            StoreCall::Release => &mut counts.releases,
            StoreCall::Append | StoreCall::Put | StoreCall::Upkeep => &mut counts.writes,
        };
        *count += 1;
    }
}

impl<S: Store + ?Sized> StoreWrapper for CallCounter<S> {
    type Inner = S;

    fn inside(&self) -> &S {
        &self.inner
    }

    async fn around<T: Send>(&self, call: StoreCall, work: impl StoreWork<T>) -> Result<T, StoreError> {
        self.count(call);
        work.await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let committed = self.inner.commit(commit).await?;
        self.lock().commits += u64::from(!committed.repeat);
        Ok(committed)
    }

    async fn import(&self, import: Import) -> Result<Imported, StoreError> {
        let imported = self.inner.import(import).await?;
        self.lock().commits += u64::from(!imported.repeat);
        Ok(imported)
    }
}
