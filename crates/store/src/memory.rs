//! The in-memory backend: for embedders, tests and simulation. The same plan as every backend, and
//! a map instead of tables. It keeps its promises while the process lives.

mod apply;
mod heads;
mod listing;
mod outbox;
mod queue;
mod records;
mod removal;
mod search;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use portcullis_base::{
    ArtifactId, AskId, Clock, Digest, EventId, IdGen, IntentId, InvocationId, OutboxId, QueuedWakeId, SessionId,
    TenantId, Timestamp,
};
use portcullis_event::facts::WakeState;
use portcullis_event::fold::Wakes;
use portcullis_event::{
    AskState, CheckpointKey, Event, IntentState, SessionFacts, SessionRow, UnknownOutcome, ledger_of, operator_log_of,
};
use serde_json::Value;
use tokio::sync::watch;

use crate::import::plan_import;
use crate::memory::heads::Heads;
use crate::memory::outbox::OutboxRow;
use crate::plan::{AskNow, Plan, plan};
use crate::{
    ArtifactRow, AskFilter, AskQuery, AskRow, Changes, Checkpoint, ClaimedEntry, Commit, Committed, Cursor, Head,
    Import, Imported, IntentRow, LivenessOracle, LockKey, Log, Notices, OutboxEntry, Page, Record, Retain, SessionKey,
    SessionListing, SessionQuery, SessionSummary, Snapshot, StoreError, Topic, UnknownCall, UnknownQuery, WakeRow,
    plan_erase,
};

#[derive(Default)]
struct Tables {
    heads: Heads,
    sessions: BTreeMap<SessionKey, SessionRow>,
    facts: BTreeMap<SessionKey, SessionFacts>,
    unknown: BTreeMap<(SessionKey, InvocationId), UnknownOutcome>,
    events: HashMap<SessionKey, Vec<Event>>,
    intents: HashMap<SessionKey, BTreeMap<IntentId, IntentRow>>,
    asks: BTreeMap<(TenantId, AskId), AskRow>,
    wakes: HashMap<SessionKey, BTreeMap<QueuedWakeId, WakeRow>>,
    sealed: HashMap<(SessionKey, IntentId), Vec<u8>>,
    locks: BTreeMap<(TenantId, LockKey), LockRow>,
    artifacts: HashMap<(TenantId, ArtifactId), ArtifactRow>,
    blobs: HashMap<(TenantId, Digest), Vec<u8>>,
    checkpoints: HashMap<SessionKey, Vec<Checkpoint>>,
    snapshots: HashMap<SessionKey, Snapshot>,
    records: BTreeMap<(TenantId, String, String), Record>,
    idempotency: HashMap<(TenantId, String, String), StoredResponse>,
    /// Every event id ever appended: a repeat is found without reading a log.
    event_ids: HashSet<(SessionKey, EventId)>,
    delivered: HashSet<(SessionKey, String)>,
    outbox: BTreeMap<OutboxId, OutboxRow>,
    /// The last seq of each log that can be searched.
    searched: BTreeMap<SessionKey, u64>,
}

/// Who holds a scheduler key.
#[derive(Clone, Copy)]
struct LockRow {
    session: SessionId,
    /// Its holder was lost: it is free from then on.
    until: Option<Timestamp>,
}

/// The response to an idempotent request.
struct StoredResponse {
    body_hash: Digest,
    response: Value,
    at: Timestamp,
}

/// A store in this process's memory.
pub struct MemoryStore {
    tables: Mutex<Tables>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    liveness: Arc<dyn LivenessOracle>,
    key: Option<CheckpointKey>,
    changes: Changes,
}

impl MemoryStore {
    /// An empty store. Without a `key` there are no checkpoints.
    #[must_use]
    pub fn new(
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        liveness: Arc<dyn LivenessOracle>,
        key: Option<CheckpointKey>,
    ) -> Self {
        Self { tables: Mutex::default(), clock, ids, liveness, key, changes: Changes::default() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // A panic while the lock is held happens before any table changed: `apply` cannot fail.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Log for MemoryStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let (committed, topics) = {
            let mut tables = self.tables();
            let left = commit.undelivered(|key| tables.is_delivered(commit.key, key));
            let commit = left.unwrap_or(commit);
            if let Some(repeat) = tables.repeat(&commit)? {
                return Ok(repeat);
            }
            tables.check_not_erased(commit.key)?;
            let now = self.clock.now();
            let planned = tables.planned(self, &commit, now, plan)?;
            tables.check_records(commit.key.tenant, &commit.records)?;
            let topics = planned.topics(commit.key);
            (tables.apply(commit, planned, now), topics)
        };
        self.changes.note(&topics);
        Ok(committed)
    }

    async fn erase(&self, erasure: Commit) -> Result<Committed, StoreError> {
        let (committed, topics) = {
            let mut tables = self.tables();
            if let Some(repeat) = tables.repeat(&erasure)? {
                return Ok(repeat);
            }
            tables.check_not_erased(erasure.key)?;
            let now = self.clock.now();
            let planned = tables.planned(self, &erasure, now, plan_erase)?;
            let key = erasure.key;
            let topics = planned.topics(key);
            tables.erase(key);
            (tables.apply(erasure, planned, now), topics)
        };
        self.changes.note(&topics);
        Ok(committed)
    }

    async fn import(&self, import: Import) -> Result<Imported, StoreError> {
        let topics = {
            let mut tables = self.tables();
            let now = self.clock.now();
            let tenant = import.key.tenant;
            let plan = Plan {
                now,
                ids: &*self.ids,
                key: self.key.as_ref(),
                head: tables.heads.get(&import.key).cloned(),
                ask: &|ask| {
                    let row = tables.asks.get(&(tenant, ask))?;
                    Some(AskNow { session: row.session_id, state: row.state, expires_at: row.expires_at })
                },
                intent: &|_| None,
                wake: &|_| None,
                wakes: &Wakes::default,
                locks: &|_| Vec::new(),
            };
            let Some((commit, planned)) =
                plan_import(&import, plan, &|id| tables.artifacts.contains_key(&(tenant, id)))?
            else {
                return Ok(Imported { last_seq: import.events.len() as u64, repeat: true });
            };
            let topics = planned.topics(import.key);
            tables.apply(commit, planned, now);
            tables.blobs.extend(import.blobs.into_iter().map(|blob| ((tenant, blob.sha256), blob.bytes)));
            topics
        };
        self.changes.note(&topics);
        Ok(Imported { last_seq: import.events.len() as u64, repeat: false })
    }

    async fn read(&self, key: SessionKey, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let tables = self.tables();
        let events = tables.events.get(&key).map(Vec::as_slice).unwrap_or_default();
        let start = usize::try_from(after).unwrap_or(usize::MAX).min(events.len());
        Ok(events[start..].iter().take(limit).cloned().collect())
    }

    async fn head(&self, key: SessionKey) -> Result<Option<Head>, StoreError> {
        Ok(self.tables().heads.get(&key).cloned())
    }

    async fn sessions(&self, tenant: TenantId, limit: usize) -> Result<Vec<SessionSummary>, StoreError> {
        let tables = self.tables();
        let reserved = [ledger_of(tenant), operator_log_of(tenant)];
        let mut found: Vec<SessionSummary> = tables
            .sessions
            .iter()
            .filter(|(key, _)| key.tenant == tenant && !reserved.contains(&key.session))
            .filter_map(|(key, row)| {
                let head = tables.heads.get(key)?.clone();
                Some(SessionSummary { session_id: key.session, row: row.clone(), head })
            })
            .collect();
        found.sort_by_key(|s| std::cmp::Reverse((s.head.updated_at, s.session_id)));
        found.truncate(limit);
        Ok(found)
    }

    async fn session(&self, key: SessionKey) -> Result<Option<SessionListing>, StoreError> {
        Ok(self.tables().listing(key))
    }

    async fn find_sessions(
        &self,
        tenant: TenantId,
        query: &SessionQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SessionListing>, StoreError> {
        self.tables().find_sessions(tenant, query, limit, cursor)
    }

    async fn find_asks(
        &self,
        tenant: TenantId,
        query: &AskQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<AskRow>, StoreError> {
        self.tables().find_asks(tenant, query, limit, cursor)
    }

    async fn unknown_outcomes(
        &self,
        tenant: TenantId,
        query: &UnknownQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<UnknownCall>, StoreError> {
        self.tables().unknown_outcomes(tenant, query, limit, cursor)
    }

    async fn logs(&self, tenant: TenantId) -> Result<Vec<SessionId>, StoreError> {
        Ok(self.tables().heads.iter().filter(|(key, _)| key.tenant == tenant).map(|(key, _)| key.session).collect())
    }

    async fn intents(&self, key: SessionKey, open: bool) -> Result<Vec<IntentRow>, StoreError> {
        let tables = self.tables();
        let rows = tables.intents.get(&key).into_iter().flat_map(BTreeMap::values);
        Ok(rows.filter(|row| !open || row.state != IntentState::Observed).cloned().collect())
    }

    async fn asks(&self, tenant: TenantId, filter: AskFilter) -> Result<Vec<AskRow>, StoreError> {
        let tables = self.tables();
        let rows = tables.asks.iter().filter(|((t, _), _)| *t == tenant).map(|(_, row)| row);
        Ok(rows
            .filter(|row| filter.session.is_none_or(|s| s == row.session_id))
            .filter(|row| !filter.pending || row.state == AskState::Pending)
            .cloned()
            .collect())
    }

    async fn wakes(&self, key: SessionKey, pending: bool) -> Result<Vec<WakeRow>, StoreError> {
        let tables = self.tables();
        let rows = tables.wakes.get(&key).into_iter().flat_map(BTreeMap::values);
        let mut rows: Vec<WakeRow> = rows.filter(|row| !pending || row.state == WakeState::Pending).cloned().collect();
        rows.sort_by_key(|row| (row.wake.due_at, row.wake.queued_wake_id));
        Ok(rows)
    }

    async fn ask(&self, tenant: TenantId, ask: AskId) -> Result<Option<AskRow>, StoreError> {
        Ok(self.tables().asks.get(&(tenant, ask)).cloned())
    }

    async fn sealed(&self, key: SessionKey, intent: IntentId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.tables().sealed.get(&(key, intent)).cloned())
    }

    async fn artifact(&self, tenant: TenantId, id: ArtifactId) -> Result<Option<ArtifactRow>, StoreError> {
        Ok(self.tables().artifacts.get(&(tenant, id)).cloned())
    }

    async fn artifacts(
        &self,
        tenant: TenantId,
        after: Option<ArtifactId>,
        limit: usize,
    ) -> Result<Vec<ArtifactRow>, StoreError> {
        let tables = self.tables();
        let later = |id: ArtifactId| after.is_none_or(|after| id > after);
        let rows = tables.artifacts.iter().filter(|((of, id), _)| *of == tenant && later(*id));
        let mut rows: Vec<ArtifactRow> = rows.map(|(_, row)| row.clone()).collect();
        rows.sort_by_key(|row| row.artifact.id);
        rows.truncate(limit);
        Ok(rows)
    }

    async fn blob(&self, tenant: TenantId, sha256: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.tables().blobs.get(&(tenant, sha256)).cloned())
    }

    async fn artifact_usage(&self, tenant: TenantId) -> Result<u64, StoreError> {
        let tables = self.tables();
        let mut seen = HashSet::new();
        let rows = tables.artifacts.iter().filter(|((t, _), _)| *t == tenant).map(|(_, row)| row);
        let held = rows.filter(|row| row.tombstone.is_none_or(|stone| !stone.freed)).map(|row| &row.artifact);
        Ok(held.filter(|artifact| seen.insert(artifact.sha256)).map(|artifact| artifact.bytes).sum())
    }

    async fn retain(&self, tenant: TenantId, change: Retain) -> Result<Vec<ArtifactRow>, StoreError> {
        let now = self.clock.now();
        Ok(self.tables().retain(tenant, change, now))
    }

    async fn checkpoints(&self, key: SessionKey) -> Result<Vec<Checkpoint>, StoreError> {
        Ok(self.tables().checkpoints.get(&key).cloned().unwrap_or_default())
    }

    async fn snapshot(&self, key: SessionKey, code_version: u32) -> Result<Option<Snapshot>, StoreError> {
        Ok(self.tables().snapshots.get(&key).filter(|s| s.code_version == code_version).cloned())
    }

    async fn put_snapshot(&self, key: SessionKey, snapshot: Snapshot) -> Result<(), StoreError> {
        let mut tables = self.tables();
        // A late writer brings nothing back.
        if tables.check_not_erased(key).is_ok() {
            tables.snapshots.insert(key, snapshot);
        }
        Ok(())
    }

    async fn outbox(&self, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        Ok(self.tables().outbox_inside(limit))
    }

    async fn outbox_done(&self, ids: Vec<OutboxId>) -> Result<(), StoreError> {
        let mut tables = self.tables();
        for id in ids {
            tables.outbox.remove(&id);
        }
        Ok(())
    }

    async fn claim_outbox(&self, limit: usize, ttl: Duration) -> Result<Vec<ClaimedEntry>, StoreError> {
        let now = self.clock.now();
        Ok(self.tables().claim_outbox(limit, (now, ttl)))
    }

    async fn outbox_failed(&self, id: OutboxId, attempt: u32, next_at: Timestamp) -> Result<bool, StoreError> {
        Ok(self.tables().outbox_failed(id, attempt, next_at))
    }

    fn checkpoint_key(&self) -> Option<CheckpointKey> {
        self.key.clone()
    }
}

impl Notices for MemoryStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.all()
    }

    fn changes_of(&self, topic: Topic) -> watch::Receiver<u64> {
        self.changes.of(topic)
    }
}
