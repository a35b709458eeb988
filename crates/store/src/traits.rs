//! The traits. Each method says what every outcome means; a backend that does otherwise fails the
//! conformance suite.

use std::time::Duration;

use async_trait::async_trait;
use portcullis_base::{ArtifactId, AskId, Digest, IntentId, OutboxId, SessionId, TenantId, Timestamp};
use portcullis_event::{CheckpointKey, Event, EventType};
use tokio::sync::watch;

use crate::{
    ArtifactRow, AskFilter, AskQuery, AskRow, Checkpoint, Claim, ClaimedEntry, Commit, Committed, Cursor, Fairness,
    Head, Hit, Import, Imported, IntentRow, Lease, LeaseOwner, OutboxEntry, Page, Query, Record, RecordQuery, Retain,
    SessionKey, SessionListing, SessionQuery, SessionSummary, Snapshot, StoreError, SweepResult, Topic, UnknownCall,
    UnknownQuery, WakeRow,
};

/// Events that a search through a log holds at once.
const SCANNED: usize = 512;

/// Logs, and the rows that follow from them.
#[async_trait]
pub trait Log: Send + Sync {
    /// The one write verb. `Ok` = durable (S6). [`StoreError::Ambiguous`] = all or nothing, ask the
    /// log which (an equal `append_id` at its tail = all); calling again with the same commit is
    /// then safe. Any other error = nothing was written.
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError>;

    /// Erases a session (store §11), all or nothing: the payloads of its events become null, and its rows, snapshots, the
    /// rows of its artifacts and those of their small contents that nothing else names are deleted. What is left are the
    /// hashes, so that the chain still verifies, and the one event of `erasure`, a `session.erased` by the holder of the
    /// lease, which ends the log and the lease; the ledger is told. Afterwards every commit and claim is
    /// [`StoreError::Erased`]. Files of large artifacts are the caller's to delete.
    async fn erase(&self, erasure: Commit) -> Result<Committed, StoreError>;

    /// Takes in the whole log of a session of another store, with the rows that follow from it, all or nothing. A log that
    /// is here already, with the same head, is a no-op; another one under the same name is
    /// [`StoreError::SessionExists`]. [`StoreError::NotImported`] = its chain does not hold, or it names what belongs to
    /// another session. Bytes of large artifacts must be durable before (S13).
    async fn import(&self, import: Import) -> Result<Imported, StoreError>;

    /// Events with `seq > after`, in order, at most `limit`. Never a gap (S5).
    async fn read(&self, key: SessionKey, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// Every event of these types, in order: what made a row is looked up there, because a row is only a copy of it.
    async fn of_kinds(&self, key: SessionKey, kinds: &[EventType]) -> Result<Vec<Event>, StoreError> {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let page = self.read(key, after, SCANNED).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.seq;
            found.extend(page.into_iter().filter(|event| kinds.contains(&event.kind)));
        }
    }

    /// The head row, `None` if there is no such log.
    async fn head(&self, key: SessionKey) -> Result<Option<Head>, StoreError>;

    /// Sessions of a tenant, newest first, reserved logs excluded.
    async fn sessions(&self, tenant: TenantId, limit: usize) -> Result<Vec<SessionSummary>, StoreError>;

    /// One session with what a page about it shows, `None` if there is none such: it is of another tenant, was erased, or is
    /// a reserved log.
    async fn session(&self, key: SessionKey) -> Result<Option<SessionListing>, StoreError>;

    /// Sessions that a question is about, at most `limit` and at most [`crate::PAGE_MOST`], from behind `cursor` on.
    /// [`StoreError::ForeignCursor`] = the cursor came from another question or tenant.
    async fn find_sessions(
        &self,
        tenant: TenantId,
        query: &SessionQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SessionListing>, StoreError>;

    /// Asks that a question is about, like [`Log::find_sessions`].
    async fn find_asks(
        &self,
        tenant: TenantId,
        query: &AskQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<AskRow>, StoreError>;

    /// Calls that were settled as unknown and of which nobody said what became of them, like [`Log::find_sessions`]. No log
    /// is read.
    async fn unknown_outcomes(
        &self,
        tenant: TenantId,
        query: &UnknownQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<UnknownCall>, StoreError>;

    /// Every log of a tenant that has events, reserved ones included.
    async fn logs(&self, tenant: TenantId) -> Result<Vec<SessionId>, StoreError>;

    /// Intents of a session in order of admission; with `open`, those without observation only.
    async fn intents(&self, key: SessionKey, open: bool) -> Result<Vec<IntentRow>, StoreError>;

    /// Asks, oldest first.
    async fn asks(&self, tenant: TenantId, filter: AskFilter) -> Result<Vec<AskRow>, StoreError>;

    /// Queued wakes of a session, the earliest due first; with `pending`, those that nobody took up or cancelled only.
    async fn wakes(&self, key: SessionKey, pending: bool) -> Result<Vec<WakeRow>, StoreError>;

    /// One ask.
    async fn ask(&self, tenant: TenantId, ask: AskId) -> Result<Option<AskRow>, StoreError>;

    /// The sealed sensitive input of an intent that has not settled.
    async fn sealed(&self, key: SessionKey, intent: IntentId) -> Result<Option<Vec<u8>>, StoreError>;

    /// The row of an artifact.
    async fn artifact(&self, tenant: TenantId, id: ArtifactId) -> Result<Option<ArtifactRow>, StoreError>;

    /// Rows of artifacts in the order of their ids, those after `after`, at most `limit`.
    async fn artifacts(
        &self,
        tenant: TenantId,
        after: Option<ArtifactId>,
        limit: usize,
    ) -> Result<Vec<ArtifactRow>, StoreError>;

    /// The bytes of a small artifact, `None` if they are not a row of this store.
    async fn blob(&self, tenant: TenantId, sha256: Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Bytes of all artifacts of a tenant that are still held, counted in rows; equal contents count once.
    async fn artifact_usage(&self, tenant: TenantId) -> Result<u64, StoreError>;

    /// Changes what is kept of artifacts, and gives the rows that changed as they are then. Rows that the change does not
    /// fit, and those that are not there, are left as they are.
    async fn retain(&self, tenant: TenantId, change: Retain) -> Result<Vec<ArtifactRow>, StoreError>;

    /// Checkpoints of a log, ascending.
    async fn checkpoints(&self, key: SessionKey) -> Result<Vec<Checkpoint>, StoreError>;

    /// The newest snapshot with this code version, if any.
    async fn snapshot(&self, key: SessionKey, code_version: u32) -> Result<Option<Snapshot>, StoreError>;

    /// Keeps a snapshot, replacing older ones. A cache: it may be lost, and is not a commit of a call.
    async fn put_snapshot(&self, key: SessionKey, snapshot: Snapshot) -> Result<(), StoreError>;

    /// Outbox entries that wait to be delivered inside the store, oldest first.
    async fn outbox(&self, limit: usize) -> Result<Vec<OutboxEntry>, StoreError>;

    /// Takes entries that tell somebody outside and are due, the longest due first, at most `limit`: for `ttl` nobody else
    /// is given them. Each is one try more.
    async fn claim_outbox(&self, limit: usize, ttl: Duration) -> Result<Vec<ClaimedEntry>, StoreError>;

    /// A try of a claimed entry failed: it is due again at `next_at`. `false` = it is not this try's any more: somebody
    /// claimed it since, or it was done.
    async fn outbox_failed(&self, id: OutboxId, attempt: u32, next_at: Timestamp) -> Result<bool, StoreError>;

    /// Removes delivered entries. A missing one is no error.
    async fn outbox_done(&self, ids: Vec<OutboxId>) -> Result<(), StoreError>;

    /// The key that checkpoints are made with, if this store has one.
    fn checkpoint_key(&self) -> Option<CheckpointKey>;
}

/// Who may write which session.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Takes the lease of one session, due or not. A lease that ran out, or whose owner is proven
    /// dead, is taken over with the next fence; else [`Claim::Held`].
    async fn claim_session(&self, key: SessionKey, owner: LeaseOwner, ttl: Duration) -> Result<Claim, StoreError>;

    /// Takes up to `limit` due sessions of a tenant, the most urgent first ([`crate::urgency`]), then the longest due. What
    /// a dead holder left is due, whatever it was doing.
    async fn claim(
        &self,
        tenant: TenantId,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
    ) -> Result<Vec<Claim>, StoreError>;

    /// The same over every tenant of the store, shared by [`crate::fair_share`]. It is for the workers of the operator
    /// who runs the store, never for a tenant's own call (S14).
    async fn claim_any(
        &self,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
        fairness: Fairness,
    ) -> Result<Vec<(SessionKey, Lease)>, StoreError>;

    /// Does what time alone asks for, in every tenant, at most [`portcullis_base::limits::SWEEP_BATCH`] rows of each kind: sessions whose ask
    /// has expired become due, so that a worker closes it and tells the model; responses of requests that nobody repeats
    /// any more go. [`SweepResult::more`] = call again.
    async fn sweep(&self) -> Result<SweepResult, StoreError>;

    /// Extends a lease. [`StoreError::FenceLost`] = someone took it over; write nothing more.
    async fn renew(&self, key: SessionKey, fence: u64, ttl: Duration) -> Result<Timestamp, StoreError>;

    /// Gives a lease back. [`StoreError::FenceLost`] = it was not ours any more: someone took it over, or it was given
    /// back before; nothing changes then. `idle_at` = the seq up to which the holder saw the log and left nothing to do: if
    /// the log ends there, only a pending wake makes the session due again. `None` = there is work left.
    async fn release(&self, key: SessionKey, fence: u64, idle_at: Option<u64>) -> Result<(), StoreError>;

    /// Gives a lease back with the work undone: the session is due again at `until`, or as soon as a person says
    /// something to it. For a holder that cannot work on it now (agent-runtime 5.7).
    async fn defer(&self, key: SessionKey, fence: u64, until: Timestamp) -> Result<(), StoreError>;
}

/// Ordinary rows: kind, id, version, body. They change through [`Commit::records`] or here.
#[async_trait]
pub trait Records: Send + Sync {
    async fn record(&self, tenant: TenantId, kind: &str, id: &str) -> Result<Option<Record>, StoreError>;

    /// All records of a kind, by id.
    async fn records(&self, tenant: TenantId, kind: &str) -> Result<Vec<Record>, StoreError>;

    /// Records of a kind by id, like [`Log::find_sessions`]. [`StoreError::NotIndexed`] = the kind does not declare such a
    /// field.
    async fn find_records(
        &self,
        tenant: TenantId,
        query: &RecordQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Record>, StoreError>;

    /// Writes one record outside any session. [`StoreError::VersionConflict`] if `expected` does not hold.
    async fn put_record(&self, tenant: TenantId, write: crate::RecordWrite) -> Result<u64, StoreError>;
}

/// Full text over the sessions of a tenant: a projection with a cursor for each log, which lags. It is never part of an
/// append; a search brings it up to date first, or a store that has nothing else to do.
#[async_trait]
pub trait Search: Send + Sync {
    /// Takes up to `limit` more events in and says how many. 0 = nothing is left. A store that takes no writes refuses;
    /// what was taken in before can still be searched.
    async fn catch_up(&self, tenant: TenantId, limit: usize) -> Result<u64, StoreError>;

    /// How many events wait to be taken in.
    async fn search_lag(&self, tenant: TenantId) -> Result<u64, StoreError>;

    /// Events taken in that hold every phrase of `query`, newest first (by the millisecond of their time), at most
    /// `limit`. Reserved logs are not searched. An erased payload is never found, whenever it was taken in.
    async fn search(&self, tenant: TenantId, query: &Query, limit: usize) -> Result<Vec<Hit>, StoreError>;
}

/// Hints that something was committed. They may be lost or doubled: the tables are the truth.
pub trait Notices: Send + Sync {
    /// A counter that moves after commits of this process, and of others as far as the backend sees them.
    fn changes(&self) -> watch::Receiver<u64>;

    /// A counter that moves with changes of one topic, and perhaps with others: what the backend cannot tell apart, such as
    /// the commits of another process, wakes everybody.
    fn changes_of(&self, topic: Topic) -> watch::Receiver<u64>;
}

/// A whole store.
pub trait Store: Log + Queue + Records + Search + Notices {}

impl<T: Log + Queue + Records + Search + Notices> Store for T {}
