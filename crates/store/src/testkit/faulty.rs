//! A store that fails on order: the N-th call that writes goes wrong in one of four ways (F2).

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use portcullis_base::{ArtifactId, AskId, Digest, IntentId, OutboxId, SessionId, TenantId, Timestamp};
use portcullis_event::{CheckpointKey, Event};
use tokio::sync::watch;

use crate::{
    ArtifactRow, AskFilter, AskRow, Checkpoint, Claim, Commit, Committed, Fairness, Head, Hit, Import, Imported,
    IntentRow, Lease, LeaseOwner, Log, Notices, OutboxEntry, Query, Queue, Record, RecordWrite, Records, Retain,
    Search, SessionKey, SessionSummary, Snapshot, Store, StoreError, Swept, WakeRow,
};

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Nothing is written, the caller is told so and lives on.
    ErrorBefore,
    /// It is written, but the answer is lost: the caller hears [`StoreError::Ambiguous`].
    ErrorAfter,
    /// The process dies before the call.
    CrashBefore,
    /// The process dies after the call took effect.
    CrashAfter,
}

impl FaultKind {
    /// Every way, for enumerations.
    pub const ALL: [Self; 4] = [Self::ErrorBefore, Self::ErrorAfter, Self::CrashBefore, Self::CrashAfter];
}

/// Which call goes wrong, counted from 1 over commit, claim, renew and release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub nth: u64,
    pub kind: FaultKind,
}

/// What others do while a call is on its way.
type Interlude = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Fails as planned. After a crash every call fails: build a new pipeline over the inner store.
pub struct FaultyStore<S: ?Sized> {
    inner: Arc<S>,
    plan: Option<Fault>,
    calls: AtomicU64,
    crashed: AtomicBool,
    closed: AtomicBool,
    interlude: Mutex<Option<Interlude>>,
}

impl<S: Store + ?Sized> FaultyStore<S> {
    /// Without a `plan` it only counts.
    #[must_use]
    pub fn new(inner: Arc<S>, plan: Option<Fault>) -> Self {
        let (crashed, closed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { inner, plan, calls: AtomicU64::new(0), crashed, closed, interlude: Mutex::default() }
    }

    /// How many calls of commit, claim, renew and release were made.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// While closed nothing is written, and every such call is told so, as on a full disk.
    pub fn close(&self, closed: bool) {
        self.closed.store(closed, Ordering::SeqCst);
    }

    /// `interlude` happens between the next such call and its effect.
    pub fn before_next<F: Future<Output = ()> + Send + 'static>(&self, interlude: impl FnOnce() -> F + Send + 'static) {
        let interlude: Interlude = Box::new(|| Box::pin(interlude()));
        *self.interlude.lock().unwrap_or_else(PoisonError::into_inner) = Some(interlude);
    }

    /// Whether the planned call happened: an enumeration ends with the first N for which it did not.
    #[must_use]
    pub fn struck(&self) -> bool {
        self.plan.is_some_and(|fault| fault.nth <= self.calls())
    }

    /// Whether the process is dead.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.crashed.load(Ordering::SeqCst)
    }

    /// The store that outlives the crash.
    pub fn inner(&self) -> &Arc<S> {
        &self.inner
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.has_crashed() {
            return Err(StoreError::Unavailable("crashed".to_owned()));
        }
        Ok(())
    }

    fn on_read(&self) -> Result<(), StoreError> {
        self.alive()
    }

    /// Counts the call and lets it go wrong if it is the one.
    async fn call<T>(&self, call: impl Future<Output = Result<T, StoreError>> + Send) -> Result<T, StoreError> {
        self.alive()?;
        let nth = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if self.closed.load(Ordering::SeqCst) {
            return Err(StoreError::DiskFull { free: 0, needed: 1 });
        }
        let interlude = self.interlude.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(interlude) = interlude {
            interlude().await;
        }
        let Some(fault) = self.plan.filter(|fault| fault.nth == nth) else {
            return call.await;
        };
        match fault.kind {
            FaultKind::ErrorBefore => Err(StoreError::Unavailable("planned fault".to_owned())),
            FaultKind::ErrorAfter => {
                call.await?;
                Err(StoreError::Ambiguous("planned fault".to_owned()))
            }
            FaultKind::CrashBefore => {
                self.crashed.store(true, Ordering::SeqCst);
                self.alive()?;
                call.await
            }
            FaultKind::CrashAfter => {
                let answer = call.await;
                self.crashed.store(true, Ordering::SeqCst);
                self.alive()?;
                answer
            }
        }
    }
}

/// [`Log`] for a wrapper: its own methods, and every reading one after `self.on_read()?`.
macro_rules! delegate_log {
    ($wrapper:ident { $($own:tt)* }) => {
        #[async_trait]
        impl<S: Store + ?Sized> Log for $wrapper<S> {
        $($own)*

        async fn read(
            &self,
            key: SessionKey,
            after: u64,
            limit: usize,
        ) -> Result<Vec<Event>, StoreError> {
            self.on_read()?;
            self.inner.read(key, after, limit).await
        }

        async fn head(&self, key: SessionKey) -> Result<Option<Head>, StoreError> {
            self.on_read()?;
            self.inner.head(key).await
        }

        async fn sessions(
            &self,
            tenant: TenantId,
            limit: usize,
        ) -> Result<Vec<SessionSummary>, StoreError> {
            self.on_read()?;
            self.inner.sessions(tenant, limit).await
        }

        async fn logs(&self, tenant: TenantId) -> Result<Vec<SessionId>, StoreError> {
            self.on_read()?;
            self.inner.logs(tenant).await
        }

        async fn intents(&self, key: SessionKey, open: bool) -> Result<Vec<IntentRow>, StoreError> {
            self.on_read()?;
            self.inner.intents(key, open).await
        }

        async fn asks(
            &self,
            tenant: TenantId,
            filter: AskFilter,
        ) -> Result<Vec<AskRow>, StoreError> {
            self.on_read()?;
            self.inner.asks(tenant, filter).await
        }

        async fn wakes(&self, key: SessionKey, pending: bool) -> Result<Vec<WakeRow>, StoreError> {
            self.on_read()?;
            self.inner.wakes(key, pending).await
        }

        async fn ask(&self, tenant: TenantId, ask: AskId) -> Result<Option<AskRow>, StoreError> {
            self.on_read()?;
            self.inner.ask(tenant, ask).await
        }

        async fn sealed(
            &self,
            key: SessionKey,
            intent: IntentId,
        ) -> Result<Option<Vec<u8>>, StoreError> {
            self.on_read()?;
            self.inner.sealed(key, intent).await
        }

        async fn artifact(
            &self,
            tenant: TenantId,
            id: ArtifactId,
        ) -> Result<Option<ArtifactRow>, StoreError> {
            self.on_read()?;
            self.inner.artifact(tenant, id).await
        }

        async fn artifacts(
            &self,
            tenant: TenantId,
            after: Option<ArtifactId>,
            limit: usize,
        ) -> Result<Vec<ArtifactRow>, StoreError> {
            self.on_read()?;
            self.inner.artifacts(tenant, after, limit).await
        }

        async fn blob(
            &self,
            tenant: TenantId,
            sha256: Digest,
        ) -> Result<Option<Vec<u8>>, StoreError> {
            self.on_read()?;
            self.inner.blob(tenant, sha256).await
        }

        async fn artifact_usage(&self, tenant: TenantId) -> Result<u64, StoreError> {
            self.on_read()?;
            self.inner.artifact_usage(tenant).await
        }

        async fn checkpoints(&self, key: SessionKey) -> Result<Vec<Checkpoint>, StoreError> {
            self.on_read()?;
            self.inner.checkpoints(key).await
        }

        async fn snapshot(
            &self,
            key: SessionKey,
            code_version: u32,
        ) -> Result<Option<Snapshot>, StoreError> {
            self.on_read()?;
            self.inner.snapshot(key, code_version).await
        }

        async fn outbox(&self, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
            self.on_read()?;
            self.inner.outbox(limit).await
        }

        fn checkpoint_key(&self) -> Option<CheckpointKey> {
            self.inner.checkpoint_key()
        }
        }
    };
}
pub(super) use delegate_log;

delegate_log!(FaultyStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.call(self.inner.commit(commit)).await
    }

    async fn import(&self, import: Import) -> Result<Imported, StoreError> {
        self.call(self.inner.import(import)).await
    }

    async fn erase(&self, erasure: Commit) -> Result<Committed, StoreError> {
        self.call(self.inner.erase(erasure)).await
    }

    async fn retain(&self, tenant: TenantId, change: Retain) -> Result<Vec<ArtifactRow>, StoreError> {
        self.alive()?;
        self.inner.retain(tenant, change).await
    }

    async fn put_snapshot(&self, key: SessionKey, snapshot: Snapshot) -> Result<(), StoreError> {
        self.alive()?;
        self.inner.put_snapshot(key, snapshot).await
    }

    async fn outbox_done(&self, ids: Vec<OutboxId>) -> Result<(), StoreError> {
        self.alive()?;
        self.inner.outbox_done(ids).await
    }
});

#[async_trait]
impl<S: Store + ?Sized> Queue for FaultyStore<S> {
    async fn claim_session(&self, key: SessionKey, owner: LeaseOwner, ttl: Duration) -> Result<Claim, StoreError> {
        self.call(self.inner.claim_session(key, owner, ttl)).await
    }

    async fn claim(
        &self,
        tenant: TenantId,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
    ) -> Result<Vec<Claim>, StoreError> {
        self.call(self.inner.claim(tenant, owner, limit, ttl)).await
    }

    async fn claim_any(
        &self,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
        fairness: Fairness,
    ) -> Result<Vec<(SessionKey, Lease)>, StoreError> {
        self.call(self.inner.claim_any(owner, limit, ttl, fairness)).await
    }

    async fn sweep(&self) -> Result<Swept, StoreError> {
        self.call(self.inner.sweep()).await
    }

    async fn renew(&self, key: SessionKey, fence: u64, ttl: Duration) -> Result<Timestamp, StoreError> {
        self.call(self.inner.renew(key, fence, ttl)).await
    }

    async fn release(&self, key: SessionKey, fence: u64, idle_at: Option<u64>) -> Result<(), StoreError> {
        self.call(self.inner.release(key, fence, idle_at)).await
    }

    async fn defer(&self, key: SessionKey, fence: u64, until: Timestamp) -> Result<(), StoreError> {
        self.call(self.inner.defer(key, fence, until)).await
    }
}

#[async_trait]
impl<S: Store + ?Sized> Records for FaultyStore<S> {
    async fn record(&self, tenant: TenantId, kind: &str, id: &str) -> Result<Option<Record>, StoreError> {
        self.alive()?;
        self.inner.record(tenant, kind, id).await
    }

    async fn records(&self, tenant: TenantId, kind: &str) -> Result<Vec<Record>, StoreError> {
        self.alive()?;
        self.inner.records(tenant, kind).await
    }

    async fn put_record(&self, tenant: TenantId, write: RecordWrite) -> Result<u64, StoreError> {
        self.alive()?;
        self.inner.put_record(tenant, write).await
    }
}

#[async_trait]
impl<S: Store + ?Sized> Search for FaultyStore<S> {
    async fn catch_up(&self, tenant: TenantId, limit: usize) -> Result<u64, StoreError> {
        self.call(self.inner.catch_up(tenant, limit)).await
    }

    async fn search_lag(&self, tenant: TenantId) -> Result<u64, StoreError> {
        self.on_read()?;
        self.inner.search_lag(tenant).await
    }

    async fn search(&self, tenant: TenantId, query: &Query, limit: usize) -> Result<Vec<Hit>, StoreError> {
        self.on_read()?;
        self.inner.search(tenant, query, limit).await
    }
}

impl<S: Store + ?Sized> Notices for FaultyStore<S> {
    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}
