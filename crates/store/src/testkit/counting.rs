//! A store that counts: how many durable commits a call costs is asserted with it (store 4.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use portcullis_base::{ArtifactId, AskId, Digest, IntentId, OutboxId, SessionId, TenantId, Timestamp};
use portcullis_event::{CheckpointKey, Event};
use tokio::sync::watch;

use crate::testkit::faulty::delegate_log;
use crate::{
    ArtifactRow, AskFilter, AskRow, Checkpoint, Claim, Commit, Committed, Fairness, Head, Hit, Import, Imported,
    IntentRow, Lease, LeaseOwner, Log, Notices, OutboxEntry, Query, Queue, Record, RecordWrite, Records, Retain,
    Search, SessionKey, SessionSummary, Snapshot, Store, StoreError, Swept, WakeRow,
};

/// How often each kind of call was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// [`Log::commit`] that wrote something; refusals and repeats do not count.
    pub commits: u64,
    pub claims: u64,
    pub renews: u64,
    pub releases: u64,
    /// Every other call that writes: snapshots, records, done outbox entries.
    pub writes: u64,
    pub reads: u64,
}

#[derive(Default)]
struct Cells {
    commits: AtomicU64,
    claims: AtomicU64,
    renews: AtomicU64,
    releases: AtomicU64,
    writes: AtomicU64,
    reads: AtomicU64,
}

/// Counts the calls of a store and changes nothing.
pub struct CountingStore<S: ?Sized> {
    inner: Arc<S>,
    cells: Cells,
}

impl<S: Store + ?Sized> CountingStore<S> {
    /// Counts from zero.
    #[must_use]
    pub fn new(inner: Arc<S>) -> Self {
        let cells = Cells::default();
        Self { inner, cells }
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let get = |cell: &AtomicU64| cell.load(Ordering::SeqCst);
        Counts {
            commits: get(&self.cells.commits),
            claims: get(&self.cells.claims),
            renews: get(&self.cells.renews),
            releases: get(&self.cells.releases),
            writes: get(&self.cells.writes),
            reads: get(&self.cells.reads),
        }
    }

    /// The store inside.
    pub fn inner(&self) -> &Arc<S> {
        &self.inner
    }

    fn on_read(&self) -> Result<(), StoreError> {
        self.cells.reads.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn one(cell: &AtomicU64) {
        cell.fetch_add(1, Ordering::SeqCst);
    }
}

delegate_log!(CountingStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let committed = self.inner.commit(commit).await?;
        if !committed.repeat {
            Self::one(&self.cells.commits);
        }
        Ok(committed)
    }

    async fn import(&self, import: Import) -> Result<Imported, StoreError> {
        let imported = self.inner.import(import).await?;
        if !imported.repeat {
            Self::one(&self.cells.commits);
        }
        Ok(imported)
    }

    async fn erase(&self, erasure: Commit) -> Result<Committed, StoreError> {
        self.inner.erase(erasure).await
    }

    async fn retain(&self, tenant: TenantId, change: Retain) -> Result<Vec<ArtifactRow>, StoreError> {
        self.inner.retain(tenant, change).await
    }

    async fn put_snapshot(&self, key: SessionKey, snapshot: Snapshot) -> Result<(), StoreError> {
        Self::one(&self.cells.writes);
        self.inner.put_snapshot(key, snapshot).await
    }

    async fn outbox_done(&self, ids: Vec<OutboxId>) -> Result<(), StoreError> {
        Self::one(&self.cells.writes);
        self.inner.outbox_done(ids).await
    }
});

#[async_trait]
impl<S: Store + ?Sized> Queue for CountingStore<S> {
    async fn claim_session(&self, key: SessionKey, owner: LeaseOwner, ttl: Duration) -> Result<Claim, StoreError> {
        Self::one(&self.cells.claims);
        self.inner.claim_session(key, owner, ttl).await
    }

    async fn claim(
        &self,
        tenant: TenantId,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
    ) -> Result<Vec<Claim>, StoreError> {
        Self::one(&self.cells.claims);
        self.inner.claim(tenant, owner, limit, ttl).await
    }

    async fn claim_any(
        &self,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
        fairness: Fairness,
    ) -> Result<Vec<(SessionKey, Lease)>, StoreError> {
        Self::one(&self.cells.claims);
        self.inner.claim_any(owner, limit, ttl, fairness).await
    }

    async fn sweep(&self) -> Result<Swept, StoreError> {
        Self::one(&self.cells.writes);
        self.inner.sweep().await
    }

    async fn renew(&self, key: SessionKey, fence: u64, ttl: Duration) -> Result<Timestamp, StoreError> {
        Self::one(&self.cells.renews);
        self.inner.renew(key, fence, ttl).await
    }

    async fn release(&self, key: SessionKey, fence: u64, idle_at: Option<u64>) -> Result<(), StoreError> {
        Self::one(&self.cells.releases);
        self.inner.release(key, fence, idle_at).await
    }

    async fn defer(&self, key: SessionKey, fence: u64, until: Timestamp) -> Result<(), StoreError> {
        Self::one(&self.cells.releases);
        self.inner.defer(key, fence, until).await
    }
}

#[async_trait]
impl<S: Store + ?Sized> Records for CountingStore<S> {
    async fn record(&self, tenant: TenantId, kind: &str, id: &str) -> Result<Option<Record>, StoreError> {
        self.on_read()?;
        self.inner.record(tenant, kind, id).await
    }

    async fn records(&self, tenant: TenantId, kind: &str) -> Result<Vec<Record>, StoreError> {
        self.on_read()?;
        self.inner.records(tenant, kind).await
    }

    async fn put_record(&self, tenant: TenantId, write: RecordWrite) -> Result<u64, StoreError> {
        Self::one(&self.cells.writes);
        self.inner.put_record(tenant, write).await
    }
}

#[async_trait]
impl<S: Store + ?Sized> Search for CountingStore<S> {
    async fn catch_up(&self, tenant: TenantId, limit: usize) -> Result<u64, StoreError> {
        Self::one(&self.cells.writes);
        self.inner.catch_up(tenant, limit).await
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

impl<S: Store + ?Sized> Notices for CountingStore<S> {
    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}
