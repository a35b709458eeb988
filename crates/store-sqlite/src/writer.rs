//! The writer: group commit, and what happens when the disk fails.
//!
//! It takes what is queued now, runs it in one transaction with a savepoint for each operation,
//! commits and answers all. It never waits for more: the sync itself gathers the next batch. One
//! batch is written at a time, by the writer thread or, while that has nothing to do, by the caller who
//! comes with a single operation: being woken twice would cost more than the operation itself.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use portcullis_store::{Changes, SessionKey, StoreError, Topic};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::mpsc;

use crate::aftermath::{check_tails, landed};
use crate::ballast::Ballast;
use crate::batch::{BATCH, run_all, sql};
use crate::connect::{BUSY_PATIENCE, DatabaseFile};
use crate::error::{is_busy, is_unwritable, plain, unwritable};
use crate::files::Files;
use crate::headroom::Headroom;
use crate::idle::{Upkeep, truncate};
use crate::mark::NewestEvent;
use crate::op::{Env, Op, Trace, Tx};

/// Operations that may wait. The next caller waits until there is room.
pub(crate) const QUEUE: usize = 1_024;
/// When more pages than this stand only in the write-ahead log, closing folds them into the database.
const CLOSE_CHECKPOINT: i64 = 512;

/// What the writer and the store both see.
pub(crate) struct WriterShared {
    pub(crate) commits: AtomicU64,
    pub(crate) operations: AtomicU64,
    /// The writer thread has a batch under way or waits to begin it: the next caller joins the queue,
    /// where one sync will serve them all.
    busy: AtomicBool,
    /// Why no more writes are taken; set once, for good.
    pub(crate) stopped: OnceLock<StoreError>,
    pub(crate) changes: Changes,
    /// Makes the next COMMIT fail, before or after it took effect.
    #[cfg(test)]
    pub(crate) break_commit: std::sync::Mutex<Option<tests::Break>>,
}

impl WriterShared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            commits: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            stopped: OnceLock::new(),
            changes: Changes::default(),
            #[cfg(test)]
            break_commit: std::sync::Mutex::default(),
        })
    }

    /// The refusal of a store that stopped.
    pub(crate) fn refusal(&self) -> StoreError {
        self.stopped.get().cloned().unwrap_or_else(|| StoreError::ReadOnly("it is closing".to_owned()))
    }
}

/// Why a batch did not become durable.
struct Fault {
    error: rusqlite::Error,
    /// COMMIT itself failed: the rows may be there or not.
    at_commit: bool,
}

impl Fault {
    fn before_commit(error: rusqlite::Error) -> Self {
        Self { error, at_commit: false }
    }
}

pub(crate) struct Writer {
    /// `None` after a fault: a connection that failed a sync is never used again.
    conn: Option<Connection>,
    place: DatabaseFile,
    env: Env,
    shared: Arc<WriterShared>,
    headroom: Headroom,
    files: Files,
    batch: Vec<Box<dyn Op>>,
    /// What the batch under way appended.
    appended: Vec<(SessionKey, NewestEvent)>,
    /// What it is about, for those who listen.
    topics: Vec<Topic>,
    /// COMMIT was called for the batch under way.
    committing: bool,
    /// Faults since the last commit that went through.
    faults: u32,
}

impl Writer {
    pub(crate) fn new(
        conn: Connection,
        place: DatabaseFile,
        env: Env,
        shared: Arc<WriterShared>,
    ) -> Result<Self, StoreError> {
        let headroom = Headroom::beside(&place.path);
        let files = Files::of(&place.path)?;
        let (batch, appended, topics) = (Vec::with_capacity(BATCH), Vec::new(), Vec::new());
        let conn = Some(conn);
        Ok(Self { conn, place, env, shared, headroom, files, batch, appended, topics, committing: false, faults: 0 })
    }

    /// One batch, and if a defect of our own breaks it, an answer for everyone in it all the same.
    fn guarded(&mut self, queue: Option<&mut mpsc::Receiver<Box<dyn Op>>>) {
        // A caller that came before it stopped may get here after.
        if self.shared.stopped.get().is_some() {
            return self.settle(&Err(self.shared.refusal()));
        }
        if catch_unwind(AssertUnwindSafe(|| self.turn(queue))).is_err() {
            let why = "the writer met a defect of its own; start the program again";
            let _ = self.shared.stopped.set(StoreError::ReadOnly(why.to_owned()));
            // Its transaction ends with it.
            self.conn = None;
            let answer = if self.committing { StoreError::Ambiguous(why.to_owned()) } else { self.shared.refusal() };
            self.settle(&Err(answer));
        }
    }

    /// One batch from its first statement to its answers.
    fn turn(&mut self, mut queue: Option<&mut mpsc::Receiver<Box<dyn Op>>>) {
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        if !self.headroom.admits(&self.place) {
            // Who comes later than these is looked at in a batch of its own.
            queue = None;
            self.send_away();
            if self.batch.is_empty() {
                return;
            }
        }
        loop {
            let fault = match self.attempt(queue.as_deref_mut()) {
                Ok(wrote) => {
                    self.faults = 0;
                    return self.answer(wrote);
                }
                Err(fault) => fault,
            };
            let busy = is_busy(&fault.error) && !fault.at_commit;
            if busy && start.elapsed() < BUSY_PATIENCE {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
                continue;
            }
            if busy {
                let waited = start.elapsed().as_secs();
                return self.settle(&Err(StoreError::Unavailable(format!(
                    "another process kept the store locked for {waited} s; end it or try again"
                ))));
            }
            return self.recover(fault);
        }
    }

    /// Runs the batch in one transaction, with whatever came into the queue while it ran: one sync
    /// then serves all, and nobody waited for someone who might not come. `Ok(true)` = rows were
    /// written and synced.
    fn attempt(&mut self, queue: Option<&mut mpsc::Receiver<Box<dyn Op>>>) -> Result<bool, Fault> {
        self.committing = false;
        let conn = match self.conn.take() {
            Some(conn) => conn,
            None => self.place.writer().map_err(Fault::before_commit)?,
        };
        let conn = self.conn.insert(conn);
        sql(conn, "BEGIN IMMEDIATE").map_err(Fault::before_commit)?;
        let before = conn.total_changes();
        let tx = Tx { conn, env: &self.env, appended: RefCell::default(), topics: RefCell::default() };
        let ran = run_all(&tx, &mut self.batch, queue);
        self.appended = tx.appended.into_inner();
        self.topics = tx.topics.into_inner();
        if let Err(error) = ran {
            // The connection is closed next if this was serious; else the transaction must end here.
            let _ = sql(conn, "ROLLBACK");
            return Err(Fault::before_commit(error));
        }
        let wrote = conn.total_changes() != before;
        self.committing = true;
        if let Err(error) = commit(conn, &self.shared) {
            // A COMMIT that met a lock leaves its transaction open: ended here, it took no effect.
            let ended = is_busy(&error) && !conn.is_autocommit() && sql(conn, "ROLLBACK").is_ok();
            return Err(Fault { error, at_commit: !ended });
        }
        Ok(wrote)
    }

    /// Answers a batch that was committed, if it can be found again where it was written.
    fn answer(&mut self, wrote: bool) {
        if let Err(error) = self.files.check() {
            return self.gone(error);
        }
        self.env.mark.note(&std::mem::take(&mut self.appended));
        let operations = self.batch.len() as u64;
        self.shared.operations.fetch_add(operations, Ordering::SeqCst);
        if wrote {
            self.shared.commits.fetch_add(1, Ordering::SeqCst);
        }
        self.settle(&Ok(()));
        self.committing = false;
        if wrote {
            self.shared.changes.note(&std::mem::take(&mut self.topics));
        }
    }

    fn settle(&mut self, outcome: &Result<(), StoreError>) {
        for op in self.batch.drain(..) {
            op.settle(outcome.clone());
        }
    }

    /// The files are not those that were opened, or that cannot be told. No caller is told that something was kept.
    fn gone(&mut self, error: StoreError) {
        self.committing = false;
        match error {
            StoreError::Gone { .. } => {
                let _ = self.shared.stopped.set(error.clone());
                self.settle(&Err(error));
            }
            unseen => self.settle(&Err(StoreError::Ambiguous(unseen.to_string()))),
        }
    }

    /// After a fault: close, reopen, look what is really there, and say so. A sync that failed is
    /// never tried again in place, for the kernel may have dropped the pages meanwhile.
    fn recover(&mut self, fault: Fault) {
        if let Err(gone @ StoreError::Gone { .. }) = self.files.check() {
            // What is at the path now is not what this process wrote to; opening it would tell of another store.
            self.conn = None;
            return self.gone(gone);
        }
        let full = Headroom::is_full(&self.place, &fault.error);
        let touched: Vec<SessionKey> = self.batch.iter().filter_map(|op| op.session()).collect();
        let (reopened, landed) = self.look_again(&fault);
        if full {
            self.headroom.met_full();
            // Room may come back: the next batch tries on a fresh connection. Until then the log that stands in the
            // database already gives its own room back.
            self.conn = reopened.ok().inspect(truncate);
            return if landed == Some(false) { self.with_the_ballast() } else { self.say(&fault, landed, full) };
        }
        self.say(&fault, landed, full);
        self.faults += 1;
        let sound = reopened.map_err(|error| error.to_string()).and_then(|conn| {
            check_tails(&conn, &touched)?;
            Ok(conn)
        });
        match sound {
            Ok(_) if self.faults > 1 && is_unwritable(&fault.error) => self.stop(&unwritable(&self.place.path)),
            Ok(conn) if self.faults < 2 => self.conn = Some(conn),
            Ok(_) => self.stop(&format!("writing failed twice in a row: {}", fault.error)),
            Err(found) => self.stop(&format!("writing failed ({}), and then: {found}", fault.error)),
        }
    }

    /// A fresh connection, and whether the batch is there; `None` if that cannot be told.
    fn look_again(&mut self, fault: &Fault) -> (rusqlite::Result<Connection>, Option<bool>) {
        let traces: Vec<Trace> = self.batch.iter().filter_map(|op| op.trace()).collect();
        self.conn = None;
        let reopened = self.place.writer();
        let landed = match (&reopened, fault.at_commit) {
            (_, false) => Some(false),
            // A write that found no room left its transaction without an end, and such a one never counts.
            (Ok(conn), true) if fault.error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                landed(conn, &traces).or(Some(false))
            }
            (Ok(conn), true) => landed(conn, &traces),
            (Err(_), true) => None,
        };
        (reopened, landed)
    }

    /// Answers the batch of a fault.
    fn say(&mut self, fault: &Fault, landed: Option<bool>, full: bool) {
        let why = plain(&fault.error);
        self.settle(&match landed {
            Some(true) => Ok(()),
            Some(false) if full => Err(Headroom::refusal(&self.place)),
            Some(false) => Err(match why {
                StoreError::Corrupt(_) => why.clone(),
                _ if is_unwritable(&fault.error) => StoreError::ReadOnly(unwritable(&self.place.path)),
                _ => StoreError::Unavailable(format!("nothing was written: {}", fault.error)),
            }),
            None => Err(StoreError::Ambiguous(fault.error.to_string())),
        });
        self.committing = false;
        if landed == Some(true) {
            self.env.mark.note(&std::mem::take(&mut self.appended));
            self.shared.commits.fetch_add(1, Ordering::SeqCst);
            self.shared.changes.note(&std::mem::take(&mut self.topics));
        }
    }

    /// Refuses what can wait until there is room; what cannot stays in the batch.
    fn send_away(&mut self) {
        let refusal = Headroom::refusal(&self.place);
        let (kept, refused) = self.batch.drain(..).partition::<Vec<_>, _>(|op| op.cannot_wait());
        self.batch = kept;
        for op in refused {
            op.settle(Err(refusal.clone()));
        }
    }

    /// The disk is full, and nothing of the batch is there. What ends something is tried once more, in the room that
    /// was held for it.
    fn with_the_ballast(&mut self) {
        self.committing = false;
        self.send_away();
        if self.batch.is_empty() {
            return;
        }
        self.headroom.give();
        match self.attempt(None) {
            Ok(wrote) => self.answer(wrote),
            Err(fault) => {
                let full = Headroom::is_full(&self.place, &fault.error);
                let (reopened, landed) = self.look_again(&fault);
                self.say(&fault, landed, full);
                self.conn = reopened.ok();
            }
        }
    }

    fn stop(&mut self, why: &str) {
        let remedy = "look at the disk, then start the program again";
        let _ = self.shared.stopped.set(StoreError::ReadOnly(format!("{why}; {remedy}")));
    }

    /// Leaves the file as it is, but for a long write-ahead log: the next opener reads all of it.
    fn close(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        let waiting =
            conn.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?));
        if waiting.is_ok_and(|frames| frames > CLOSE_CHECKPOINT) {
            // Nothing rests on it: the next one to open does it as well.
            let _ = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }
}

/// Where a batch is written, one at a time.
#[derive(Clone)]
pub(crate) struct BatchDesk {
    writer: Arc<Mutex<Writer>>,
    shared: Arc<WriterShared>,
}

impl BatchDesk {
    pub(crate) fn new(writer: Writer) -> Self {
        let shared = Arc::clone(&writer.shared);
        Self { writer: Arc::new(Mutex::new(writer)), shared }
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // Its own panics are caught inside, so the state behind a poisoned lock is whole.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody seems to be writing or to wait for it.
    pub(crate) fn is_free(&self) -> bool {
        !self.shared.busy.load(Ordering::SeqCst) && !matches!(self.writer.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Writes one operation at once if nobody else is writing; else gives it back.
    pub(crate) fn at_once(&self, op: Box<dyn Op>) -> Result<(), Box<dyn Op>> {
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(op),
        };
        // It may have stopped since the caller looked, and then nothing is written any more.
        if self.shared.stopped.get().is_some() {
            op.settle(Err(self.shared.refusal()));
            return Ok(());
        }
        writer.batch.push(op);
        writer.guarded(None);
        Ok(())
    }

    /// Serves the queue until the store is dropped or must stop; everyone who waits is answered.
    pub(crate) fn serve(self, mut queue: mpsc::Receiver<Box<dyn Op>>) {
        let mut upkeep = Upkeep::new(Ballast::beside(&self.lock().place.path));
        while let Some(first) = upkeep.next(&mut queue, &self) {
            self.shared.busy.store(true, Ordering::SeqCst);
            let mut writer = self.lock();
            if self.shared.stopped.get().is_some() {
                first.settle(Err(self.shared.refusal()));
                break;
            }
            writer.batch.push(first);
            writer.guarded(Some(&mut queue));
            self.shared.busy.store(false, Ordering::SeqCst);
        }
        queue.close();
        while let Some(op) = queue.blocking_recv() {
            op.settle(Err(self.shared.refusal()));
        }
        upkeep.see_to_ballast(self.commits());
        self.lock().close();
    }

    /// How many batches were written so far.
    pub(crate) fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::SeqCst)
    }

    /// Runs a chore on the connection after the present write.
    pub(crate) fn once_free<T>(&self, chore: impl FnOnce(&Connection) -> T) -> Option<T> {
        self.lock().conn.as_ref().map(chore)
    }

    /// Runs chores on the connection while nobody writes; skipped otherwise.
    pub(crate) fn while_free<T>(&self, chore: impl FnOnce(&Connection) -> T) -> Option<T> {
        let writer = self.writer.try_lock().ok()?;
        writer.conn.as_ref().map(chore)
    }
}

#[cfg(not(test))]
fn commit(conn: &Connection, _: &WriterShared) -> rusqlite::Result<()> {
    sql(conn, "COMMIT")
}

#[cfg(test)]
fn commit(conn: &Connection, shared: &WriterShared) -> rusqlite::Result<()> {
    tests::commit_or_break(conn, shared)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
pub(crate) mod tests;
