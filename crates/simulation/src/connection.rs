//! A store as one process reaches it: late, cut off, refused or left without an answer, as the seed wants.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use portcullis_base::{ArtifactId, AskId, Digest, EventId, IntentId, OutboxId, SessionId, TenantId, Timestamp};
use portcullis_event::{CheckpointKey, Event};
use portcullis_store::{
    ArtifactRow, AskFilter, AskRow, Checkpoint, Claim, Commit, Committed, Fairness, Head, Hit, Import, Imported,
    IntentRow, Lease, LeaseOwner, Log, Notices, OutboxEntry, Query, Queue, Record, RecordWrite, Records, Retain,
    Search, SessionKey, SessionSummary, Snapshot, StoreError, Swept, WakeRow,
};
use tokio::sync::watch;

use crate::dice::Dice;
use crate::ground::Ground;
use crate::link::Link;

/// One process's way to the store.
pub struct Connection {
    ground: Arc<Ground>,
    link: Arc<Link>,
    dice: Dice,
}

/// Whether a lost answer leaves its caller in doubt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
}

type Answer<T> = Result<T, StoreError>;

impl Connection {
    /// The way of the process `name`.
    #[must_use]
    pub fn new(ground: &Arc<Ground>, link: &Arc<Link>, name: &str) -> Self {
        let dice = Dice::of(ground.options.seed, &format!("connection {name}"));
        Self { ground: Arc::clone(ground), link: Arc::clone(link), dice }
    }

    async fn read<T>(&self, work: impl Future<Output = Answer<T>> + Send) -> Answer<T> {
        self.call(Kind::Read, work).await
    }

    async fn write<T>(&self, work: impl Future<Output = Answer<T>> + Send) -> Answer<T> {
        self.call(Kind::Write, work).await
    }

    /// One request and its answer. What was sent arrives, even if its sender is dead by then; the dead hear nothing.
    async fn call<T>(&self, kind: Kind, work: impl Future<Output = Answer<T>> + Send) -> Answer<T> {
        self.link.up().await;
        if !self.ground.is_stormy() {
            return work.await;
        }
        let (options, cuts) = (&self.ground.options, self.link.cuts());
        let (refused, unanswered) = (self.dice.chance(options.refused), self.dice.chance(options.unanswered));
        self.travel().await;
        if refused {
            self.link.up().await;
            return Err(StoreError::Unavailable("a fault of the simulation".to_owned()));
        }
        self.link.through().await;
        let answer = work.await;
        self.travel().await;
        self.link.up().await;
        if kind == Kind::Write && (unanswered || cuts != self.link.cuts()) {
            return Err(StoreError::Ambiguous("a fault of the simulation".to_owned()));
        }
        answer
    }

    async fn travel(&self) {
        let most = self.ground.options.delay_ms;
        // Most of what is sent arrives at once; a network is not evenly slow.
        if most > 0 && self.dice.chance(40) {
            tokio::time::sleep(Duration::from_millis(self.dice.between(1, most))).await;
        }
    }
}

#[async_trait]
impl Log for Connection {
    async fn commit(&self, commit: Commit) -> Answer<Committed> {
        let (key, writer) = (commit.key, commit.writer.clone());
        let ids: Vec<EventId> = commit.events.iter().map(|draft| draft.id).collect();
        let work = async {
            let committed = self.ground.store.commit(commit).await?;
            if let Some(head) = self.ground.store.head(key).await? {
                self.ground.oracle.committed(key, &writer, &head, &committed);
            }
            self.ground.listeners.tell();
            Ok(committed)
        };
        self.ground.oracle.sent(key, &ids);
        let answer = self.write(work).await;
        self.ground.oracle.told(&ids, &answer);
        answer
    }

    async fn import(&self, import: Import) -> Answer<Imported> {
        self.write(self.ground.store.import(import)).await
    }

    async fn erase(&self, commit: Commit) -> Answer<Committed> {
        self.write(self.ground.store.erase(commit)).await
    }

    async fn read(&self, key: SessionKey, after: u64, limit: usize) -> Answer<Vec<Event>> {
        self.read(self.ground.store.read(key, after, limit)).await
    }

    async fn head(&self, key: SessionKey) -> Answer<Option<Head>> {
        self.read(self.ground.store.head(key)).await
    }

    async fn sessions(&self, tenant: TenantId, limit: usize) -> Answer<Vec<SessionSummary>> {
        self.read(self.ground.store.sessions(tenant, limit)).await
    }

    async fn logs(&self, tenant: TenantId) -> Answer<Vec<SessionId>> {
        self.read(self.ground.store.logs(tenant)).await
    }

    async fn intents(&self, key: SessionKey, open: bool) -> Answer<Vec<IntentRow>> {
        self.read(self.ground.store.intents(key, open)).await
    }

    async fn wakes(&self, key: SessionKey, pending: bool) -> Answer<Vec<WakeRow>> {
        self.read(self.ground.store.wakes(key, pending)).await
    }

    async fn asks(&self, tenant: TenantId, filter: AskFilter) -> Answer<Vec<AskRow>> {
        self.read(self.ground.store.asks(tenant, filter)).await
    }

    async fn ask(&self, tenant: TenantId, ask: AskId) -> Answer<Option<AskRow>> {
        self.read(self.ground.store.ask(tenant, ask)).await
    }

    async fn sealed(&self, key: SessionKey, intent: IntentId) -> Answer<Option<Vec<u8>>> {
        self.read(self.ground.store.sealed(key, intent)).await
    }

    async fn artifact(&self, tenant: TenantId, id: ArtifactId) -> Answer<Option<ArtifactRow>> {
        self.read(self.ground.store.artifact(tenant, id)).await
    }

    async fn artifacts(&self, tenant: TenantId, after: Option<ArtifactId>, limit: usize) -> Answer<Vec<ArtifactRow>> {
        self.read(self.ground.store.artifacts(tenant, after, limit)).await
    }

    async fn retain(&self, tenant: TenantId, change: Retain) -> Answer<Vec<ArtifactRow>> {
        self.write(self.ground.store.retain(tenant, change)).await
    }

    async fn blob(&self, tenant: TenantId, sha256: Digest) -> Answer<Option<Vec<u8>>> {
        self.read(self.ground.store.blob(tenant, sha256)).await
    }

    async fn artifact_usage(&self, tenant: TenantId) -> Answer<u64> {
        self.read(self.ground.store.artifact_usage(tenant)).await
    }

    async fn checkpoints(&self, key: SessionKey) -> Answer<Vec<Checkpoint>> {
        self.read(self.ground.store.checkpoints(key)).await
    }

    async fn snapshot(&self, key: SessionKey, code_version: u32) -> Answer<Option<Snapshot>> {
        self.read(self.ground.store.snapshot(key, code_version)).await
    }

    async fn put_snapshot(&self, key: SessionKey, snapshot: Snapshot) -> Answer<()> {
        self.write(self.ground.store.put_snapshot(key, snapshot)).await
    }

    async fn outbox(&self, limit: usize) -> Answer<Vec<OutboxEntry>> {
        self.read(self.ground.store.outbox(limit)).await
    }

    async fn outbox_done(&self, ids: Vec<OutboxId>) -> Answer<()> {
        self.write(self.ground.store.outbox_done(ids)).await
    }

    fn checkpoint_key(&self) -> Option<CheckpointKey> {
        self.ground.store.checkpoint_key()
    }
}

#[async_trait]
impl Queue for Connection {
    async fn claim_session(&self, key: SessionKey, owner: LeaseOwner, ttl: Duration) -> Answer<Claim> {
        self.write(self.ground.store.claim_session(key, owner, ttl)).await
    }

    async fn claim(&self, tenant: TenantId, owner: LeaseOwner, limit: usize, ttl: Duration) -> Answer<Vec<Claim>> {
        let work = async {
            let claims = self.ground.store.claim(tenant, owner, limit, ttl).await?;
            let granted = claims.iter().filter_map(|claim| match claim {
                Claim::Granted(lease) => Some(lease.session),
                Claim::Held { .. } | Claim::Refused(_) => None,
            });
            granted.for_each(|session| self.ground.oracle.taken_up(session));
            Ok(claims)
        };
        self.write(work).await
    }

    async fn claim_any(
        &self,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
        fairness: Fairness,
    ) -> Answer<Vec<(SessionKey, Lease)>> {
        let work = async {
            let leases = self.ground.store.claim_any(owner, limit, ttl, fairness).await?;
            leases.iter().for_each(|(key, _)| self.ground.oracle.taken_up(key.session));
            Ok(leases)
        };
        self.write(work).await
    }

    async fn sweep(&self) -> Answer<Swept> {
        self.write(self.ground.store.sweep()).await
    }

    async fn renew(&self, key: SessionKey, fence: u64, ttl: Duration) -> Answer<Timestamp> {
        self.write(self.ground.store.renew(key, fence, ttl)).await
    }

    async fn release(&self, key: SessionKey, fence: u64, idle_at: Option<u64>) -> Answer<()> {
        let work = async {
            self.ground.store.release(key, fence, idle_at).await?;
            self.ground.check_given_back(key).await
        };
        self.write(work).await
    }

    async fn defer(&self, key: SessionKey, fence: u64, until: Timestamp) -> Answer<()> {
        self.write(self.ground.store.defer(key, fence, until)).await
    }
}

#[async_trait]
impl Records for Connection {
    async fn record(&self, tenant: TenantId, kind: &str, id: &str) -> Answer<Option<Record>> {
        self.read(self.ground.store.record(tenant, kind, id)).await
    }

    async fn records(&self, tenant: TenantId, kind: &str) -> Answer<Vec<Record>> {
        self.read(self.ground.store.records(tenant, kind)).await
    }

    async fn put_record(&self, tenant: TenantId, write: RecordWrite) -> Answer<u64> {
        self.write(self.ground.store.put_record(tenant, write)).await
    }
}

#[async_trait]
impl Search for Connection {
    async fn catch_up(&self, tenant: TenantId, limit: usize) -> Answer<u64> {
        self.write(self.ground.store.catch_up(tenant, limit)).await
    }

    async fn search_lag(&self, tenant: TenantId) -> Answer<u64> {
        self.read(self.ground.store.search_lag(tenant)).await
    }

    async fn search(&self, tenant: TenantId, query: &Query, limit: usize) -> Answer<Vec<Hit>> {
        self.read(self.ground.store.search(tenant, query, limit)).await
    }
}

impl Notices for Connection {
    fn changes(&self) -> watch::Receiver<u64> {
        self.ground.listeners.join()
    }
}
