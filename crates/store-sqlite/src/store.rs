//! The store as its users see it: the traits, each method one question or one operation.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use portcullis_base::{ArtifactId, AskId, Clock, Digest, IdGen, IntentId, OutboxId, SessionId, TenantId, Timestamp};
use portcullis_event::{CheckpointKey, Event, EventType};
use portcullis_store::{
    ArtifactRow, AskFilter, AskQuery, AskRow, Checkpoint, Claim, ClaimedEntry, Commit, Committed, Cursor, Fairness,
    Head, Hit, Import, Imported, IntentRow, Lease, LeaseOwner, ListQuery, LivenessOracle, Log, LossBook, LostEnd,
    Notices, OutboxEntry, Page, Query, Queue, Record, RecordQuery, RecordWrite, Records, Retain, Search, SessionKey,
    SessionListing, SessionQuery, SessionSummary, Snapshot, StoreError, SweepResult, Topic, UnknownCall, UnknownQuery,
    WakeRow, page_size, place_of,
};
use rusqlite::{Connection, ErrorCode};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot, watch};

use crate::ballast::Ballast;
use crate::connect::{DatabaseFile, Durability};
use crate::error::{Fail, is_unwritable, obstacle, plain, unwritable};
use crate::headroom::Headroom;
use crate::idle::truncate;
use crate::mark::Mark;
use crate::notices::Poll;
use crate::op::{Env, Op, Task, Trace, Tx, no_trace};
use crate::readers::Readers;
use crate::writer::{BatchDesk, QUEUE, Writer, WriterShared};
use crate::{
    apply, backup, facts, heads, import, leases, lists, migrate, outbox, query, records, removal, search, sweep, tail,
    wakes,
};

/// What a store needs: a file, and where time, ids and proofs come from.
#[derive(Clone)]
pub struct SqliteConfig {
    /// The database; made if missing (folder 0700, file 0600).
    pub path: PathBuf,
    pub durability: Durability,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdGen>,
    pub liveness: Arc<dyn LivenessOracle>,
    /// Without a key there are no checkpoints.
    pub checkpoint_key: Option<CheckpointKey>,
}

/// Where the answer of an operation arrives.
type PendingReply<T> = oneshot::Receiver<Result<T, StoreError>>;

/// Finds items of a list behind a place, at most so many.
type Finder<Q> = fn(
    &Connection,
    TenantId,
    &Q,
    (Option<<Q as ListQuery>::Place>, usize),
) -> rusqlite::Result<Vec<<Q as ListQuery>::Item>>;

/// A store in one SQLite file, which several processes may share.
pub struct SqliteStore {
    /// `None` only while it is dropped: closing the queue ends the writer.
    queue: Option<mpsc::Sender<Box<dyn Op>>>,
    desk: BatchDesk,
    writer: Option<JoinHandle<()>>,
    readers: Arc<Readers>,
    shared: Arc<WriterShared>,
    place: DatabaseFile,
    key: Option<CheckpointKey>,
    mark: Arc<Mark>,
    lost: Vec<LostEnd>,
    poll: Mutex<Option<Poll>>,
}

impl SqliteStore {
    /// Opens the store and brings its schema up to date.
    ///
    /// # Errors
    /// If the file cannot be made or opened, lies on a network file system, is not a Portcullis
    /// store, or was written by a newer program.
    pub fn open(config: SqliteConfig) -> Result<Self, StoreError> {
        let place = DatabaseFile { path: config.path, durability: config.durability };
        place.prepare()?;
        let named = |error: StoreError| at_path(&place, error);
        let conn = open_writer(&place).map_err(named)?;
        migrate::migrate(&conn, config.clock.now(), &place.path).map_err(named)?;
        let mark = Arc::new(Mark::beside(&place.path));
        let lost = lost_ends(&conn, &mark).map_err(|error| named(plain(&error)))?;
        let env = Env {
            clock: config.clock,
            ids: config.ids,
            liveness: config.liveness,
            key: config.checkpoint_key.clone(),
            mark: Arc::clone(&mark),
        };
        let shared = WriterShared::new();
        let (queue, work) = mpsc::channel(QUEUE);
        let desk = BatchDesk::new(Writer::new(conn, place.clone(), env, Arc::clone(&shared))?);
        let thread = desk.clone();
        let writer = std::thread::Builder::new()
            .name("portcullis-writer".to_owned())
            .spawn(move || thread.serve(work))
            .map_err(|error| StoreError::Unavailable(format!("no thread to write: {error}")))?;
        Ok(Self {
            queue: Some(queue),
            desk,
            writer: Some(writer),
            readers: Readers::new(place.clone()),
            shared,
            place,
            key: config.checkpoint_key,
            mark,
            lost,
            poll: Mutex::default(),
        })
    }

    /// How many durable transactions this process made. Group commit merges operations, so this is
    /// at most their number; what wrote nothing is not counted.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::SeqCst)
    }

    /// How many operations went through the writer.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.shared.operations.load(Ordering::SeqCst)
    }

    /// Whether the headroom for a full disk is held: 16 MiB in the file `ballast` beside the database. It is made by
    /// a process that wrote, when it is idle or ends; where it is missing later, there was no room for it.
    #[must_use]
    pub fn has_ballast(&self) -> bool {
        Ballast::beside(&self.place.path).is_kept()
    }

    /// Gives the headroom back on a full disk, so that a process can still record its own shutdown. It is made again
    /// when there is room.
    ///
    /// # Errors
    /// If the file cannot be deleted.
    pub fn release_ballast(&self) -> Result<(), StoreError> {
        let released = Ballast::beside(&self.place.path).release();
        released.map_err(|error| StoreError::Unavailable(format!("the ballast cannot be deleted: {error}")))
    }

    /// Copies the whole store to a new file of mode 0600 while it is in use, and says how many bytes that has. It holds
    /// everything acknowledged before the call, opens like any store, and is complete or not there. Keys and files of
    /// large artifacts are not in it.
    ///
    /// # Errors
    /// If `to` exists or cannot be written; nothing is left behind then.
    pub async fn backup_to(&self, to: &Path) -> Result<u64, StoreError> {
        let (place, to) = (self.place.clone(), to.to_owned());
        let copied = tokio::task::spawn_blocking(move || backup::backup(&place, &to)).await;
        copied.map_err(|error| StoreError::Unavailable(format!("the backup stopped: {error}")))?
    }

    /// What the mark beside a path names though there is no database at it: the logs of one that was there.
    #[must_use]
    pub fn gone_from(path: &Path) -> Vec<LostEnd> {
        if !matches!(path.try_exists(), Ok(false)) {
            return Vec::new();
        }
        let named = Mark::beside(path).all().into_iter();
        named.map(|(key, newest)| LostEnd { key, recorded: newest.seq, found: 0 }).collect()
    }

    /// Ends the writer after what is queued; dropping the store does the same.
    pub fn close(self) {
        drop(self);
    }

    /// Hands an operation to the writer and waits for its answer.
    async fn write<T: Send + 'static>(
        &self,
        session: Option<SessionKey>,
        trace: fn(&T, Option<SessionKey>) -> Option<Trace>,
        run: impl FnMut(&Tx<'_>) -> Result<T, Fail> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.hand_over(Task::queued(session, trace, false, run)).await
    }

    /// The same for what is taken on a full disk too: the end of what began before, and what makes room.
    async fn write_now<T: Send + 'static>(
        &self,
        session: Option<SessionKey>,
        trace: fn(&T, Option<SessionKey>) -> Option<Trace>,
        run: impl FnMut(&Tx<'_>) -> Result<T, Fail> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.hand_over(Task::queued(session, trace, true, run)).await
    }

    async fn hand_over<T: Send + 'static>(
        &self,
        (op, answer): (Box<dyn Op>, PendingReply<T>),
    ) -> Result<T, StoreError> {
        if self.shared.stopped.get().is_some() {
            return Err(self.shared.refusal());
        }
        match self.at_once(op) {
            Ok(()) => self.answer(answer).await,
            Err(op) => self.write_queued(op, answer).await,
        }
    }

    /// The same on the writer's thread, whatever it costs: the caller can stop waiting.
    async fn write_queued<T>(&self, op: Box<dyn Op>, answer: PendingReply<T>) -> Result<T, StoreError> {
        let Some(queue) = &self.queue else {
            return Err(self.shared.refusal());
        };
        queue.send(op).await.map_err(|_| self.shared.refusal())?;
        self.answer(answer).await
    }

    /// From now on this store looks for commits of other processes: somebody listens.
    fn look_for_others(&self) {
        let mut poll = self.poll.lock().unwrap_or_else(PoisonError::into_inner);
        poll.get_or_insert_with(|| Poll::start(self.desk.clone(), Arc::clone(&self.shared)));
    }

    /// One page of a list.
    async fn list<Q>(
        &self,
        tenant: TenantId,
        query: &Q,
        limit: usize,
        cursor: Option<&Cursor>,
        find: Finder<Q>,
    ) -> Result<Page<Q::Item>, StoreError>
    where
        Q: ListQuery + Clone + Send + Sync + 'static,
        Q::Item: Send + 'static,
        Q::Place: Clone + Send + Sync + 'static,
    {
        let after = place_of(tenant, query, cursor)?;
        let (limit, looked_for) = page_size(limit);
        let asked = query.clone();
        let found = self.readers.scan(move |conn| find(conn, tenant, &asked, (after.clone(), looked_for))).await?;
        Ok(Page::of(tenant, query, found, limit))
    }

    async fn answer<T>(&self, answer: PendingReply<T>) -> Result<T, StoreError> {
        // Every operation in the queue is answered, even by a writer that panicked.
        answer.await.map_err(|_| StoreError::Ambiguous("the writer went away without an answer".to_owned()))?
    }

    /// Writes in the caller's own thread while the writer is idle. Only a runtime with other threads can
    /// go on meanwhile.
    fn at_once(&self, op: Box<dyn Op>) -> Result<(), Box<dyn Op>> {
        match Handle::try_current().map(|handle| handle.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) if self.desk.is_free() => {
                tokio::task::block_in_place(|| self.desk.at_once(op))
            }
            _ => Err(op),
        }
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &WriterShared {
        &self.shared
    }

    /// How many operations wait in the queue.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.max_capacity() - queue.capacity())
    }

    /// Runs anything on the writer's connection, inside a batch.
    #[cfg(test)]
    pub(crate) async fn on_writer<T: Send + 'static>(
        &self,
        run: impl FnMut(&Tx<'_>) -> Result<T, Fail> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write(None, no_trace, run).await
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.poll.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            // It catches its own panics and has answered everyone by now.
            let _ = writer.join();
        }
    }
}

/// The first connection of a process makes the memory that all share, and on a full disk may find no room for it. A
/// reader needs it as well, so the ballast is given for it.
fn open_writer(place: &DatabaseFile) -> Result<Connection, StoreError> {
    let no_room = match place.writer() {
        Err(error) if Headroom::is_full(place, &error) => Headroom::refusal(place),
        Err(error) if is_unwritable(&error) => return Err(StoreError::ReadOnly(unwritable(&place.path))),
        Err(error) => {
            // Where the files that SQLite works with cannot be made, it only says that it cannot open one.
            let place = (error.sqlite_error_code() == Some(ErrorCode::CannotOpen)).then(|| obstacle(&place.path));
            return Err(place.flatten().map_or_else(|| plain(&error), StoreError::ReadOnly));
        }
        Ok(conn) => return Ok(conn),
    };
    Headroom::beside(&place.path).give();
    place.writer().map_err(|_| no_room)
}

impl LossBook for SqliteStore {
    fn lost(&self) -> &[LostEnd] {
        &self.lost
    }

    fn set_lost_aside(&self) {
        self.mark.set_aside(&self.lost.iter().map(|lost| lost.key).collect::<Vec<_>>());
    }

    fn accept_lost(&self) -> Result<(), StoreError> {
        let forgotten = self.mark.forget(&self.lost.iter().map(|lost| lost.key).collect::<Vec<_>>());
        forgotten.map_err(|error| StoreError::Unavailable(format!("the mark cannot be written: {error}")))
    }
}

/// What the mark names and the database does not hold. The mark was read first, and names only what was durable by then.
fn lost_ends(conn: &Connection, mark: &Mark) -> rusqlite::Result<Vec<LostEnd>> {
    let mut lost = Vec::new();
    for (key, newest) in mark.all() {
        if let Err(found) = tail::holds(conn, key, newest.seq, newest.hash)? {
            lost.push(LostEnd { key, recorded: newest.seq, found });
        }
    }
    Ok(lost)
}

/// An error of opening says which file it is about.
fn at_path(place: &DatabaseFile, error: StoreError) -> StoreError {
    let path = place.path.display();
    match error {
        StoreError::Unavailable(why) => StoreError::Unavailable(format!("{path}: {why}")),
        StoreError::Locked(why) => StoreError::Locked(format!("{path}: {why}")),
        StoreError::Corrupt(why) => StoreError::Corrupt(format!("{path}: {why}")),
        other => other,
    }
}

#[async_trait]
impl Log for SqliteStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let (key, cannot_wait) = (Some(commit.key), commit.ends_work());
        self.hand_over(Task::queued(key, apply::trace, cannot_wait, move |tx| apply::commit(tx, &commit))).await
    }

    async fn erase(&self, erasure: Commit) -> Result<Committed, StoreError> {
        let key = Some(erasure.key);
        let erased = self.write_now(key, apply::trace, move |tx| removal::erase(tx, &erasure)).await?;
        // What was there stands in the write-ahead log until it is emptied; if someone reads, an idle time does it.
        let desk = self.desk.clone();
        let _ = tokio::task::spawn_blocking(move || desk.once_free(truncate)).await;
        Ok(erased)
    }

    async fn import(&self, import: Import) -> Result<Imported, StoreError> {
        let key = Some(import.key);
        self.write(key, import::trace, move |tx| import::import(tx, &import)).await.map(|(imported, _)| imported)
    }

    async fn read(&self, key: SessionKey, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.readers.scan(move |conn| query::events(conn, key, after, limit)).await
    }

    async fn of_kinds(&self, key: SessionKey, kinds: &[EventType]) -> Result<Vec<Event>, StoreError> {
        let kinds = kinds.to_vec();
        self.readers.scan(move |conn| query::of_kinds(conn, key, &kinds)).await
    }

    async fn head(&self, key: SessionKey) -> Result<Option<Head>, StoreError> {
        self.readers.look(|conn| heads::read(conn, key)).await
    }

    async fn sessions(&self, tenant: TenantId, limit: usize) -> Result<Vec<SessionSummary>, StoreError> {
        self.readers.scan(move |conn| query::sessions(conn, tenant, limit)).await
    }

    async fn session(&self, key: SessionKey) -> Result<Option<SessionListing>, StoreError> {
        self.readers.look(|conn| lists::session(conn, key)).await
    }

    async fn find_sessions(
        &self,
        tenant: TenantId,
        query: &SessionQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SessionListing>, StoreError> {
        self.list(tenant, query, limit, cursor, lists::sessions).await
    }

    async fn find_asks(
        &self,
        tenant: TenantId,
        query: &AskQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<AskRow>, StoreError> {
        self.list(tenant, query, limit, cursor, lists::asks).await
    }

    async fn unknown_outcomes(
        &self,
        tenant: TenantId,
        query: &UnknownQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<UnknownCall>, StoreError> {
        self.list(tenant, query, limit, cursor, facts::unknown).await
    }

    async fn logs(&self, tenant: TenantId) -> Result<Vec<SessionId>, StoreError> {
        self.readers.scan(move |conn| query::logs(conn, tenant)).await
    }

    async fn intents(&self, key: SessionKey, open: bool) -> Result<Vec<IntentRow>, StoreError> {
        self.readers.scan(move |conn| query::intents(conn, key, open)).await
    }

    async fn asks(&self, tenant: TenantId, filter: AskFilter) -> Result<Vec<AskRow>, StoreError> {
        self.readers.scan(move |conn| query::asks(conn, tenant, filter)).await
    }

    async fn wakes(&self, key: SessionKey, pending: bool) -> Result<Vec<WakeRow>, StoreError> {
        self.readers.scan(move |conn| wakes::of(conn, key, pending)).await
    }

    async fn ask(&self, tenant: TenantId, ask: AskId) -> Result<Option<AskRow>, StoreError> {
        self.readers.look(|conn| query::ask(conn, tenant, ask)).await
    }

    async fn sealed(&self, key: SessionKey, intent: IntentId) -> Result<Option<Vec<u8>>, StoreError> {
        self.readers.look(|conn| query::sealed(conn, key, intent)).await
    }

    async fn artifact(&self, tenant: TenantId, id: ArtifactId) -> Result<Option<ArtifactRow>, StoreError> {
        self.readers.look(|conn| query::artifact(conn, tenant, id)).await
    }

    async fn artifacts(
        &self,
        tenant: TenantId,
        after: Option<ArtifactId>,
        limit: usize,
    ) -> Result<Vec<ArtifactRow>, StoreError> {
        self.readers.scan(move |conn| query::artifacts(conn, tenant, after, limit)).await
    }

    async fn blob(&self, tenant: TenantId, sha256: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = self.readers.look(|conn| query::blob(conn, tenant, sha256)).await?;
        match bytes {
            Some(bytes) if Digest::of(&bytes) != sha256 => {
                Err(StoreError::Corrupt(format!("the stored bytes of artifact content {sha256} have another hash")))
            }
            other => Ok(other),
        }
    }

    async fn artifact_usage(&self, tenant: TenantId) -> Result<u64, StoreError> {
        self.readers.scan(move |conn| query::artifact_usage(conn, tenant)).await
    }

    async fn retain(&self, tenant: TenantId, change: Retain) -> Result<Vec<ArtifactRow>, StoreError> {
        self.write_now(None, no_trace, move |tx| Ok(removal::retain(tx.conn, tenant, &change, tx.env.clock.now())?))
            .await
    }

    async fn checkpoints(&self, key: SessionKey) -> Result<Vec<Checkpoint>, StoreError> {
        self.readers.scan(move |conn| query::checkpoints(conn, key)).await
    }

    async fn snapshot(&self, key: SessionKey, code_version: u32) -> Result<Option<Snapshot>, StoreError> {
        self.readers.look(|conn| query::snapshot(conn, key, code_version)).await
    }

    async fn put_snapshot(&self, key: SessionKey, snapshot: Snapshot) -> Result<(), StoreError> {
        self.write(Some(key), no_trace, move |tx| {
            let head = heads::read(tx.conn, key)?;
            match removal::check_not_erased(tx.conn, key, head.as_ref()) {
                // A late writer brings nothing back.
                Err(Fail::Refused(_)) => Ok(()),
                Err(fail) => Err(fail),
                Ok(()) => {
                    tail::check(tx, key, head.as_ref())?;
                    Ok(query::put_snapshot(tx.conn, key, &snapshot)?)
                }
            }
        })
        .await
    }

    async fn outbox(&self, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        self.readers.look(move |conn| outbox::inside(conn, limit)).await
    }

    async fn outbox_done(&self, ids: Vec<OutboxId>) -> Result<(), StoreError> {
        self.write(None, no_trace, move |tx| Ok(outbox::done(tx.conn, &ids)?)).await
    }

    async fn claim_outbox(&self, limit: usize, ttl: Duration) -> Result<Vec<ClaimedEntry>, StoreError> {
        self.write(None, no_trace, move |tx| Ok(outbox::claim(tx.conn, limit, (tx.env.clock.now(), ttl))?)).await
    }

    async fn outbox_failed(&self, id: OutboxId, attempt: u32, next_at: Timestamp) -> Result<bool, StoreError> {
        self.write(None, no_trace, move |tx| Ok(outbox::failed(tx.conn, id, attempt, next_at)?)).await
    }

    fn checkpoint_key(&self) -> Option<CheckpointKey> {
        self.key.clone()
    }
}

#[async_trait]
impl Queue for SqliteStore {
    async fn claim_session(&self, key: SessionKey, owner: LeaseOwner, ttl: Duration) -> Result<Claim, StoreError> {
        self.write(Some(key), leases::claim_trace, move |tx| leases::claim_session(tx, key, &owner, ttl)).await
    }

    async fn claim(
        &self,
        tenant: TenantId,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
    ) -> Result<Vec<Claim>, StoreError> {
        self.write(None, no_trace, move |tx| leases::claim_due(tx, tenant, &owner, limit, ttl)).await
    }

    async fn claim_any(
        &self,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
        fairness: Fairness,
    ) -> Result<Vec<(SessionKey, Lease)>, StoreError> {
        self.write(None, no_trace, move |tx| leases::claim_any(tx, &owner, limit, ttl, fairness)).await
    }

    async fn sweep(&self) -> Result<SweepResult, StoreError> {
        self.write(None, no_trace, sweep::sweep).await
    }

    async fn renew(&self, key: SessionKey, fence: u64, ttl: Duration) -> Result<Timestamp, StoreError> {
        // Never in the caller's own thread: while another process keeps the store locked, the renewing task must see
        // his time run out, and stop (store §5).
        let renews = move |tx: &Tx<'_>| leases::renew(tx, key, fence, ttl);
        let (op, answer) = Task::queued(Some(key), no_trace, true, renews);
        self.write_queued(op, answer).await
    }

    async fn release(&self, key: SessionKey, fence: u64, idle_at: Option<u64>) -> Result<(), StoreError> {
        self.write_now(Some(key), no_trace, move |tx| leases::release(tx, key, fence, idle_at)).await
    }

    async fn defer(&self, key: SessionKey, fence: u64, until: Timestamp) -> Result<(), StoreError> {
        self.write_now(Some(key), no_trace, move |tx| leases::defer(tx, key, fence, until)).await
    }
}

#[async_trait]
impl Records for SqliteStore {
    async fn record(&self, tenant: TenantId, kind: &str, id: &str) -> Result<Option<Record>, StoreError> {
        self.readers.look(|conn| records::one(conn, tenant, kind, id)).await
    }

    async fn records(&self, tenant: TenantId, kind: &str) -> Result<Vec<Record>, StoreError> {
        let kind = kind.to_owned();
        self.readers.scan(move |conn| records::all(conn, tenant, &kind)).await
    }

    async fn find_records(
        &self,
        tenant: TenantId,
        query: &RecordQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Record>, StoreError> {
        query.wanted()?;
        self.list(tenant, query, limit, cursor, records::find).await
    }

    async fn put_record(&self, tenant: TenantId, write: RecordWrite) -> Result<u64, StoreError> {
        self.write(None, no_trace, move |tx| {
            records::check(tx.conn, tenant, std::slice::from_ref(&write))?;
            let now = tx.env.clock.now();
            Ok(records::write(tx.conn, tenant, &write, now)?)
        })
        .await
    }
}

#[async_trait]
impl Search for SqliteStore {
    async fn catch_up(&self, tenant: TenantId, limit: usize) -> Result<u64, StoreError> {
        self.write(None, no_trace, move |tx| Ok(search::catch_up(tx.conn, tenant, limit)?)).await
    }

    async fn search_lag(&self, tenant: TenantId) -> Result<u64, StoreError> {
        self.readers.scan(move |conn| search::lag(conn, tenant)).await
    }

    async fn search(&self, tenant: TenantId, query: &Query, limit: usize) -> Result<Vec<Hit>, StoreError> {
        let query = query.clone();
        let found = self.readers.scan(move |conn| search::search(conn, tenant, &query, limit)).await?;
        if !found.erased.is_empty() {
            // They are not shown either way; a store that takes no writes now forgets them later.
            let _ = self.write(None, no_trace, move |tx| Ok(search::forget(tx.conn, &found.erased)?)).await;
        }
        Ok(found.hits)
    }
}

impl Notices for SqliteStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.look_for_others();
        self.shared.changes.all()
    }

    fn changes_of(&self, topic: Topic) -> watch::Receiver<u64> {
        self.look_for_others();
        self.shared.changes.of(topic)
    }
}
