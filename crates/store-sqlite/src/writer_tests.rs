//! Faults of the disk and defects of our own, each produced at the exact step (F7, F8). In a runtime
//! of one thread the writer thread serves; in one of several, a lone operation is written on the spot.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{Digest, IdGen, Timestamp};
use portcullis_store::{Claim, Log as _, Queue as _, Search as _, StoreError};
use portcullis_store_testkit::World;
use portcullis_store_testkit::conformance::assert_sound;
use rusqlite::Connection;
use rusqlite::ffi;

use super::{BatchDesk, Writer, WriterShared, sql};
use crate::connect::DatabaseFile;
use crate::error::Fail;
use crate::op::{Env, Task, Tx, no_trace};
use crate::{SqliteConfig, SqliteStore, testing};

/// When a COMMIT fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    BeforeItTookEffect,
    AfterItTookEffect,
    /// Before it took effect, now and from now on: a disk that is gone.
    Always,
}

fn failure(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

pub(crate) fn commit_or_break(conn: &Connection, shared: &WriterShared) -> rusqlite::Result<()> {
    let mut next = shared.break_commit.lock().expect("no test panics while it holds this");
    let broken = if *next == Some(Break::Always) { *next } else { next.take() };
    drop(next);
    match broken {
        None => sql(conn, "COMMIT"),
        Some(Break::BeforeItTookEffect | Break::Always) => Err(failure(ffi::SQLITE_IOERR_FSYNC)),
        Some(Break::AfterItTookEffect) => {
            sql(conn, "COMMIT")?;
            Err(failure(ffi::SQLITE_IOERR_FSYNC))
        }
    }
}

fn config(world: &World, folder: &tempfile::TempDir) -> SqliteConfig {
    testing::config(world, &folder.path().join("store.db"))
}

fn open(world: &World) -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = SqliteStore::open(config(world, &folder)).expect("a new store opens");
    (folder, store)
}

fn break_next(store: &SqliteStore, how: Break) {
    *store.shared().break_commit.lock().expect("no test panics while it holds this") = Some(how);
}

/// Makes the batch it is in fail with this code.
async fn fault(store: &SqliteStore, code: i32) -> Result<(), StoreError> {
    store.on_writer(move |_| Err::<(), Fail>(failure(code).into())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn f08_a_commit_that_failed_after_taking_effect_is_answered_ok() {
    let world = World::new(1);
    let (_folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    break_next(&store, Break::AfterItTookEffect);
    let committed = store.commit(world.input(key, "kept")).await.expect("the log says it is there");
    assert_eq!((committed.last_seq, committed.repeat), (2, false));
    assert_eq!(store.read(key, 1, 9).await.expect("a page"), committed.events);
    assert_sound(&store, key).await;
}

#[tokio::test]
async fn f08_a_commit_that_failed_before_taking_effect_is_answered_so() {
    let world = World::new(1);
    let (_folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    break_next(&store, Break::BeforeItTookEffect);
    let commit = world.input(key, "lost");
    let error = store.commit(commit.clone()).await.expect_err("nothing was written");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert_eq!(store.read(key, 1, 9).await.expect("a page"), Vec::new());
    let again = store.commit(commit).await.expect("writing goes on");
    assert_eq!((again.last_seq, again.repeat), (2, false));
    assert_sound(&store, key).await;
}

#[tokio::test]
async fn f08_a_claim_that_failed_after_taking_effect_is_answered_ok() {
    let world = World::new(1);
    let (_folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    break_next(&store, Break::AfterItTookEffect);
    let claim = store.claim_session(key, world.owner(1), Duration::from_secs(30)).await.expect("it is there");
    assert!(matches!(claim, Claim::Granted(lease) if lease.fence == 1));
    break_next(&store, Break::AfterItTookEffect);
    let renewed = store.renew(key, 1, Duration::from_secs(30)).await;
    assert!(matches!(renewed, Err(StoreError::Ambiguous(_))), "a renewal leaves no trace: {renewed:?}");
}

#[tokio::test]
async fn f08_one_fault_fails_its_batch_and_the_next_goes_through() {
    let world = World::new(1);
    let (_folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    for code in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_CORRUPT] {
        fault(&store, code).await.expect_err("its batch is lost");
        store.commit(world.input(key, "next")).await.expect("a fresh connection writes");
    }
    assert_eq!(store.head(key).await.expect("a head").expect("the session").last_seq, 4);
    assert_sound(&store, key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f08_two_faults_in_a_row_make_the_store_read_only() {
    let world = World::new(1);
    let (_folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    for _ in 0..2 {
        fault(&store, ffi::SQLITE_IOERR_FSYNC).await.expect_err("its batch is lost");
    }
    for _ in 0..2 {
        let refused = store.commit(world.input(key, "no")).await;
        let Err(StoreError::ReadOnly(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("twice in a row"), "{why}");
    }
    assert_eq!(store.read(key, 0, 9).await.expect("reads still work").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f08_a_disk_that_fails_for_ever_acknowledges_nothing_more_and_keeps_what_it_did() {
    let world = Arc::new(World::new(1));
    let (folder, store) = open(&world);
    let store = Arc::new(store);
    let key = world.session(&*store).await.expect("a session");
    store.commit(world.input(key, "kept")).await.expect("an append");
    break_next(&store, Break::Always);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let (world, store) = (world.clone(), store.clone());
        tasks.spawn(async move { store.commit(world.input(key, &n.to_string())).await });
    }
    while let Some(answer) = tasks.join_next().await {
        let answer = answer.expect("no panic");
        assert!(matches!(answer, Err(StoreError::Unavailable(_) | StoreError::ReadOnly(_))), "{answer:?}");
    }
    let refused = store.commit(world.input(key, "no")).await;
    assert!(matches!(refused, Err(StoreError::ReadOnly(_))), "for good: {refused:?}");
    assert_eq!(store.read(key, 0, 99).await.expect("reads still work").len(), 2);
    drop(store);
    let store = SqliteStore::open(config(&world, &folder)).expect("it opens again");
    assert_eq!(store.read(key, 0, 99).await.expect("a page").len(), 2);
    assert_sound(&store, key).await;
    store.commit(world.input(key, "a new disk")).await.expect("it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn f08_a_damaged_tail_found_after_a_fault_stops_writing() {
    let world = World::new(1);
    let (folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    let raw = Connection::open(folder.path().join("store.db")).expect("the file opens");
    raw.execute("UPDATE runs SET actor = 'user:mallory'", []).expect("a change behind our back");
    break_next(&store, Break::BeforeItTookEffect);
    store.commit(world.input(key, "x")).await.expect_err("the commit failed");
    let refused = store.commit(world.input(key, "y")).await;
    let Err(StoreError::ReadOnly(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("does not agree with its head"), "{why}");
}

#[tokio::test]
async fn f07_a_full_disk_refuses_writes_keeps_reads_and_recovers_by_itself() {
    let world = World::new(1);
    let (_folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    let pages = |limit: i64| {
        move |tx: &crate::op::Tx<'_>| {
            tx.conn.pragma_update_and_check(None, "max_page_count", limit, |_| Ok(())).map_err(Fail::from)
        }
    };
    let used: i64 = store
        .on_writer(|tx| tx.conn.pragma_query_value(None, "page_count", |row| row.get(0)).map_err(Fail::from))
        .await
        .expect("a number");
    store.on_writer(pages(used + 4)).await.expect("a limit");
    // Noise, which packing does not make shorter.
    let big: String = (0..1_600_u32).map(|n| Digest::of(&n.to_be_bytes()).to_string()).collect();
    let refused = store.commit(world.input(key, &big)).await;
    let Err(full @ StoreError::DiskFull { .. }) = refused else { panic!("{refused:?}") };
    assert!(full.to_string().contains("read_only_disk_full"), "{full}");
    assert_eq!(store.read(key, 0, 9).await.expect("reads work").len(), 1);
    // The limit went with the failed connection, as if room had been made: no restart is needed.
    store.commit(world.input(key, &big)).await.expect("writing goes on by itself");
    for _ in 0..3 {
        fault(&store, ffi::SQLITE_FULL).await.expect_err("full again");
    }
    store.commit(world.input(key, "still")).await.expect("a full disk never closes the store for good");
    assert_sound(&store, key).await;
}

#[tokio::test]
async fn f09_every_commit_is_synced_before_it_is_acknowledged() {
    let world = World::new(1);
    let (_folder, store) = open(&world);
    let setting = |name: &'static str| {
        move |tx: &crate::op::Tx<'_>| {
            tx.conn
                .query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0))
                .map_err(Fail::from)
        }
    };
    const FULL: i64 = 2;
    assert_eq!(store.on_writer(setting("synchronous")).await, Ok(FULL.into()));
    assert_eq!(store.on_writer(setting("journal_mode")).await, Ok("wal".to_owned().into()));
}

#[tokio::test]
async fn a_value_sqlite_refuses_fails_alone() {
    let world = World::new(1);
    let (_folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    let first = world.input(key, "one");
    store.commit(first.clone()).await.expect("an append");
    // A new event before one that the log has already: the whole append is refused.
    let mut mixed = world.input(key, "two");
    mixed.events.push(first.events[0].clone());
    let (mixed, fine) = tokio::join!(store.commit(mixed), store.commit(world.input(key, "three")));
    assert!(matches!(mixed, Err(StoreError::Unavailable(_))), "{mixed:?}");
    fine.expect("the others of its batch go on");
    assert_eq!(store.head(key).await.expect("a head").expect("the session").last_seq, 3);
    assert_sound(&store, key).await;
}

/// Panics when it is told to.
struct Brittle(Arc<World>, std::sync::atomic::AtomicBool);

impl IdGen for Brittle {
    fn next(&self, at: Timestamp) -> u128 {
        assert!(!self.1.load(std::sync::atomic::Ordering::SeqCst), "a defect, on purpose");
        self.0.ids.next(at)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_writer_answers_everyone_and_ends_writing() {
    let world = Arc::new(World::new(1));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let brittle = Arc::new(Brittle(world.clone(), false.into()));
    let config = SqliteConfig { ids: brittle.clone(), ..config(&world, &folder) };
    let store = Arc::new(SqliteStore::open(config).expect("a new store opens"));
    let key = world.session(&*store).await.expect("a session");
    brittle.1.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (world, store) = (world.clone(), store.clone());
        // A creation makes an outbox entry, whose id comes from the brittle generator.
        tasks.spawn(async move { world.session(&*store).await });
    }
    while let Some(answer) = tasks.join_next().await {
        let answer = answer.expect("no caller panics");
        assert!(matches!(answer, Err(StoreError::ReadOnly(_))), "{answer:?}");
    }
    assert!(matches!(store.commit(world.input(key, "x")).await, Err(StoreError::ReadOnly(_))));
    assert_eq!(store.read(key, 0, 9).await.expect("reads still work").len(), 1);
    assert_eq!(store.logs(world.tenant).await.expect("logs").len(), 1, "nothing of the batch was written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn group_commit_merges_what_waits_and_counts_what_it_wrote() {
    let world = Arc::new(World::new(1));
    let (_folder, store) = open(&world);
    let store = Arc::new(store);
    let key = world.session(&*store).await.expect("a session");
    let before = (store.commits(), store.operations());
    store.commit(world.input(key, "one")).await.expect("an append");
    assert_eq!((store.commits(), store.operations()), (before.0 + 1, before.1 + 1), "one append is one transaction");
    assert!(store.renew(key, 9, Duration::from_secs(1)).await.is_err());
    assert_eq!(store.commits(), before.0 + 1, "a refusal writes nothing");

    // Hold the writer inside a batch while others queue up behind it.
    let (entered, wait_entered) = std::sync::mpsc::channel();
    let (go, wait_go) = std::sync::mpsc::channel::<()>();
    let held = {
        let store = store.clone();
        tokio::spawn(async move {
            store
                .on_writer(move |_| {
                    entered.send(()).expect("the test listens");
                    wait_go.recv().expect("the test lets go");
                    Ok(())
                })
                .await
        })
    };
    wait_entered.recv().expect("the writer is inside");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (world, store) = (world.clone(), store.clone());
        tasks.spawn(async move { store.commit(world.input(key, "many")).await });
    }
    // One of them is in the writer thread's hands already.
    while store.waiting() < 99 {
        tokio::task::yield_now().await;
    }
    let before = (store.commits(), store.operations());
    go.send(()).expect("the writer waits");
    held.await.expect("no panic").expect("it did nothing");
    while let Some(answer) = tasks.join_next().await {
        answer.expect("no panic").expect("an append");
    }
    assert_eq!(store.commits(), before.0 + 1, "a hundred appends shared one sync");
    assert_eq!(store.operations(), before.1 + 101);
    assert_sound(&*store, key).await;
}

/// Waits until something holds; the writer does it in its own time.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}");
}

#[tokio::test]
async fn an_idle_store_empties_its_write_ahead_log_and_goes_on() {
    let world = World::new(1);
    let (folder, store) = open(&world);
    let log = || folder.path().join("store.db-wal").metadata().expect("it stays").len();
    let key = world.session(&store).await.expect("a session");
    assert!(log() > 0);
    until("the log is emptied", || log() == 0).await;
    store.commit(world.input(key, "after")).await.expect("it goes on");
    assert!(log() > 0);
    until("and emptied again", || log() == 0).await;
    assert_sound(&store, key).await;
}

#[tokio::test]
async fn an_idle_store_makes_what_was_written_searchable() {
    let world = World::new(1);
    let (folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    for n in 0..600 {
        store.commit(world.input(key, &format!("word{n}"))).await.expect("an append");
    }
    assert_eq!(store.search_lag(world.tenant).await, Ok(601), "an append takes nothing in");
    let raw = Connection::open(folder.path().join("store.db")).expect("it opens");
    let docs = || -> u64 { raw.query_row("SELECT count(*) FROM search_docs", [], |row| row.get(0)).expect("a number") };
    until("all is taken in", || docs() == 601).await;
    assert_eq!(store.search_lag(world.tenant).await, Ok(0));
    let query = portcullis_store::Query::new(&["word599"]).expect("a word");
    assert_eq!(store.search(world.tenant, &query, 9).await.expect("an answer").len(), 1);
}

#[tokio::test]
async fn f07_the_ballast_is_made_after_the_first_write_and_again_when_there_is_room() {
    let world = World::new(1);
    let (folder, store) = open(&world);
    assert!(!store.has_ballast(), "opening costs nothing");
    let key = world.session(&store).await.expect("a session");
    until("it is made", || store.has_ballast()).await;
    assert!(matches!(fault(&store, ffi::SQLITE_FULL).await, Err(StoreError::DiskFull { .. })));
    assert!(store.has_ballast(), "kept for whoever must still write");
    store.release_ballast().expect("released");
    assert!(!folder.path().join("ballast").exists());
    store.commit(world.input(key, "shutting down")).await.expect("recorded");
    until("it is made again", || store.has_ballast()).await;
}

/// Store §5: a holder that cannot renew in time stops itself, so a renewal must let it see that time pass, even while
/// another process keeps the store locked.
#[tokio::test(flavor = "multi_thread")]
async fn s04_a_renewal_that_waits_for_another_process_lets_its_caller_give_up() {
    let world = World::new(1);
    let (folder, store) = open(&world);
    let key = world.session(&store).await.expect("a session");
    store.claim_session(key, world.owner(1), Duration::from_secs(30)).await.expect("a lease");
    let other = Connection::open(folder.path().join("store.db")).expect("opens");
    sql(&other, "BEGIN IMMEDIATE").expect("the lock is theirs");
    let begun = std::time::Instant::now();
    let renewing = store.renew(key, 1, Duration::from_secs(30));
    tokio::time::timeout(Duration::from_millis(50), renewing).await.expect_err("it waits for the lock");
    // SQLite alone would wait for longer.
    assert!(begun.elapsed() < crate::connect::BUSY_TIMEOUT, "{:?}", begun.elapsed());
    sql(&other, "ROLLBACK").expect("given back");
}

/// A caller may find the writer free just after it stopped for good.
#[test]
fn f08_a_writer_that_has_stopped_writes_nothing_on_the_spot_either() {
    let world = World::new(1);
    let (folder, store) = open(&world);
    drop(store);
    let config = config(&world, &folder);
    let place = DatabaseFile { path: config.path, durability: config.durability };
    let mark = Arc::new(crate::mark::Mark::beside(&place.path));
    let env = Env { clock: config.clock, ids: config.ids, liveness: config.liveness, key: None, mark };
    let shared = WriterShared::new();
    let desk = BatchDesk::new(
        Writer::new(place.writer().expect("opens"), place, env, Arc::clone(&shared)).expect("the files are there"),
    );
    shared.stopped.set(StoreError::ReadOnly("a fault".to_owned())).expect("for the first time");
    let (op, mut answer) = Task::queued(None, no_trace, false, |_: &Tx<'_>| Ok(()));
    assert!(desk.at_once(op).is_ok(), "it is answered");
    assert!(matches!(answer.try_recv(), Ok(Err(StoreError::ReadOnly(_)))));
}
