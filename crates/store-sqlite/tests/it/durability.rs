//! Real files, several handles, processes that die.

use crate::common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_base::SessionId;
use portcullis_store::{Log as _, Notices as _, SessionKey, StoreError, verify_tenant};
use portcullis_store_sqlite::SqliteStore;
use portcullis_store_testkit::World;
use portcullis_store_testkit::conformance::assert_sound;

fn open_at(world: &World, path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(common::synced(path, world))
}

#[tokio::test]
async fn s06_what_was_acknowledged_is_there_after_reopening() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("deep/er/store.db");
    let world = World::new(1);
    let (key, head) = {
        let store = open_at(&world, &path).expect("a new store opens");
        let key = world.session(&store).await.expect("a session");
        let lease = world.claim(&store, key, 1).await.expect("a lease");
        store.commit(world.work(key, &lease, world.inert_call(&"x".repeat(5_000)))).await.expect("an append");
        (key, store.head(key).await.expect("a head"))
    };
    let mode = |path: &Path| path.metadata().expect("it exists").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
    assert_eq!(mode(path.parent().expect("a parent")), 0o700);
    let store = open_at(&world, &path).expect("it opens again");
    assert_eq!(store.head(key).await.expect("a head"), head);
    assert_sound(&store, key).await;
}

#[tokio::test]
async fn f19_files_that_are_not_ours_or_newer_are_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let world = World::new(1);
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "just a text, long enough to be looked at as a database header").expect("a file");
    let error = open_at(&world, &text).err().expect("no database");
    assert!(matches!(&error, StoreError::Corrupt(why) if why.contains("notes.txt")), "{error}");

    let path = folder.path().join("store.db");
    drop(open_at(&world, &path).expect("a new store opens"));
    let raw = rusqlite::Connection::open(&path).expect("the file opens");
    raw.execute("INSERT INTO schema_meta VALUES (99, zeroblob(32), 0)", []).expect("a future migration");
    let error = open_at(&world, &path).err().expect("a newer schema");
    assert!(error.to_string().contains("written by a newer program"), "{error}");
    assert!(error.to_string().contains("version 99"), "{error}");
}

/// Two handles are two writers with their own connections, as two processes would be.
#[test]
fn eight_threads_on_two_handles_meet_no_lock_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store.db");
    let world = Arc::new(World::new(1));
    let stores: Vec<_> = (0..2).map(|_| Arc::new(open_at(&world, &path).expect("it opens"))).collect();
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let (world, store) = (world.clone(), stores[n % 2].clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(async {
                    let key = world.session(&*store).await.expect("a session");
                    let lease = world.claim(&*store, key, 1).await.expect("a lease");
                    for i in 0..40 {
                        let call = world.work(key, &lease, world.inert_call("text"));
                        store.commit(call).await.expect("no lock error reaches a caller");
                        store.read(key, i * 9, 9).await.expect("nor a reader");
                    }
                    key
                })
            })
        })
        .collect();
    let keys: Vec<SessionKey> = threads.into_iter().map(|t| t.join().expect("no thread panics")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        for key in keys {
            let head = stores[0].head(key).await.expect("a head").expect("the session");
            assert_eq!(head.last_seq, 1 + 40 * 9);
            assert_sound(&*stores[1], key).await;
        }
        let audit = verify_tenant(&*stores[0], world.tenant, Some(&world.key), None).await.expect("an audit");
        assert!(audit.holds(), "{:?}", audit.faults);
    });
}

#[test]
fn several_processes_may_create_one_store_at_the_same_time() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = Arc::new(folder.path().join("store.db"));
        let threads: Vec<_> = (0..6)
            .map(|n| {
                let path = path.clone();
                std::thread::spawn(move || open_at(&World::new(n), &path).map(drop))
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic").expect("everyone opens it");
        }
    }
}

/// Not a test by itself: the body of the child that the next test kills.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(path) = std::env::var("PORTCULLIS_TEST_STORE") else { return };
    let seed: u64 = std::env::var("PORTCULLIS_TEST_SEED").ok().and_then(|s| s.parse().ok()).expect("a seed");
    let world = Arc::new(World::new(seed));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    runtime.block_on(async {
        let store = Arc::new(open_at(&world, Path::new(&path)).expect("the store opens, whatever the last one left"));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (world, store) = (world.clone(), store.clone());
            tasks.spawn(async move {
                let key = world.session(&*store).await.expect("a session");
                let lease = world.claim(&*store, key, 1).await.expect("a lease");
                loop {
                    let call = world.work(key, &lease, world.inert_call(&"y".repeat(1_500)));
                    let committed = store.commit(call).await.expect("an append");
                    println!("acknowledged {} {}", key.session, committed.last_seq);
                }
            });
        }
        tasks.join_next().await;
    });
}

#[test]
fn f04_kill_9_under_load_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store.db");
    let mut acknowledged: BTreeMap<SessionId, u64> = BTreeMap::new();
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "durability::child_that_writes_until_it_is_killed", "--nocapture"])
            .env("PORTCULLIS_TEST_STORE", &path)
            .env("PORTCULLIS_TEST_SEED", (100 + round).to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the child starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut seen = 0;
        for line in lines.map_while(Result::ok) {
            // The test runner's own words may stand before the first on its line.
            let Some((_, rest)) = line.split_once("acknowledged ") else { continue };
            // A line that the kill cut short was not acknowledged to anyone.
            let Some((session, seq)) = rest.split_once(' ') else { continue };
            let (Ok(session), Ok(seq)) = (session.parse::<SessionId>(), seq.parse::<u64>()) else { continue };
            if (seq - 1) % 9 != 0 {
                continue;
            }
            let last = acknowledged.entry(session).or_default();
            *last = seq.max(*last);
            seen += 1;
            if seen == 5 + round * 7 {
                child.kill().expect("SIGKILL");
            }
        }
        child.wait().expect("it is dead");
        assert!(seen > 0, "round {round} wrote something");
    }
    let world = World::new(1);
    let store = open_at(&world, &path).expect("it opens after every kill");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        for (session, seq) in &acknowledged {
            let key = SessionKey { tenant: world.tenant, session: *session };
            let head = store.head(key).await.expect("a head").expect("an acknowledged session exists");
            assert!(head.last_seq >= *seq, "{session}: acknowledged {seq}, found {}", head.last_seq);
            assert_eq!((head.last_seq - 1) % 9, 0, "an append is there whole or not at all");
            assert_sound(&store, key).await;
        }
        let audit = verify_tenant(&store, world.tenant, Some(&world.key), None).await.expect("an audit");
        assert!(audit.holds(), "{:?}", audit.faults);
    });
    assert!(acknowledged.len() >= 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_handle_s_commits_are_noticed_and_dropping_ends_the_poll() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store.db");
    let world = World::new(1);
    let (ours, theirs) = (open_at(&world, &path).expect("it opens"), open_at(&world, &path).expect("it opens"));
    let mut changes = ours.changes();
    let key = world.session(&theirs).await.expect("a session");
    let mut noticed = false;
    for i in 0..50 {
        changes.mark_unchanged();
        theirs.commit(world.input(key, &i.to_string())).await.expect("an append");
        if tokio::time::timeout(Duration::from_millis(200), changes.changed()).await.is_ok() {
            noticed = true;
            break;
        }
    }
    assert!(noticed, "a poll sees commits of other handles");
    let start = Instant::now();
    drop(ours);
    assert!(start.elapsed() < Duration::from_secs(2), "dropping is quick");
    assert!(changes.changed().await.is_err(), "the last sender is gone with the store");
}

#[tokio::test]
async fn dropping_a_store_answers_what_was_queued() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store.db");
    let world = Arc::new(World::new(1));
    let store = Arc::new(open_at(&world, &path).expect("it opens"));
    let key = world.session(&*store).await.expect("a session");
    let tasks: Vec<_> = (0..50)
        .map(|i| {
            let (world, store) = (world.clone(), store.clone());
            tokio::spawn(async move { store.commit(world.input(key, &i.to_string())).await })
        })
        .collect();
    drop(store);
    for task in tasks {
        task.await.expect("no panic").expect("it was queued, so it is written");
    }
    let store = open_at(&world, &path).expect("it opens");
    assert_eq!(store.head(key).await.expect("a head").expect("the session").last_seq, 51);
}
