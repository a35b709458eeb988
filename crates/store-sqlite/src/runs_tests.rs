//! Runs of events on disk, and stores from before there were any.

use std::fs;
use std::path::Path;

use portcullis_base::{Digest, Timestamp, TurnId};
use portcullis_event::Event;
use portcullis_event::facts::SessionErased;
use portcullis_store::{Lease, Log as _, SessionKey, deliver_outbox, verify_tenant};
use portcullis_store_testkit::World;
use portcullis_store_testkit::conformance::assert_sound;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, params};

use super::{MOST_OF_A_BYTE, PACKED_FROM, RUN_BYTES, WORDS, packed, run_of, unpacked};
use crate::codec::id;
use crate::error::Fail;
use crate::migrate::{MIGRATIONS, migrate_with};
use crate::op::Tx;
use crate::{SqliteStore, testing};

fn open(world: &World, path: &Path) -> SqliteStore {
    SqliteStore::open(testing::config(world, path)).expect("the store opens")
}

/// Erases a log up to its last event.
async fn erase(world: &World, store: &SqliteStore, key: SessionKey, lease: &Lease) {
    let to_seq = store.head(key).await.expect("a head").expect("a session").last_seq;
    let fact = SessionErased { from_seq: 1, to_seq, by: "user:ada".to_owned(), reason: None };
    let mut erasure = world.work(key, lease, vec![world.draft(&fact)]);
    erasure.idle = true;
    store.erase(erasure).await.expect("erased");
}

fn stored(text: &str) -> Value {
    match packed(text) {
        ToSqlOutput::Owned(value) => value,
        ToSqlOutput::Borrowed(value) => Value::try_from(value).expect("text"),
        other => panic!("not a value: {other:?}"),
    }
}

#[test]
fn what_is_packed_is_unpacked_to_the_byte() {
    let hashes = (0..100_u32).map(|n| *Digest::of(&n.to_be_bytes()).as_bytes());
    let noise: String = hashes.flatten().map(|byte| char::from(b'!' + byte % 94)).collect();
    for text in ["", "{}", &"ä\0".repeat(PACKED_FROM), &"x".repeat(PACKED_FROM - 1), &"x".repeat(300_000), &noise] {
        let value = stored(text);
        assert_eq!(unpacked(ValueRef::from(&value)).as_deref(), Some(text), "{} bytes", text.len());
    }
    assert!(matches!(stored(&"x".repeat(PACKED_FROM - 1)), Value::Text(_)), "short ones stay text");
    assert!(matches!(stored(&"x".repeat(PACKED_FROM)), Value::Blob(_)));
    assert!(matches!(stored(&noise), Value::Text(_)), "what packing does not shorten stays text");
}

#[test]
fn what_claims_to_be_longer_than_it_can_be_is_not_unpacked() {
    let Value::Blob(honest) = stored(&"x".repeat(5_000)) else { panic!("it is packed") };
    let claims = |size: u32| [&size.to_le_bytes()[..], &honest[4..]].concat();
    assert!(unpacked(ValueRef::Blob(&claims(5_000))).is_some());
    for size in [0, 4_999, 5_001, u32::try_from(honest.len() * MOST_OF_A_BYTE + 1).expect("small"), u32::MAX] {
        assert_eq!(unpacked(ValueRef::Blob(&claims(size))), None, "{size}");
    }
    assert_eq!(unpacked(ValueRef::Blob(&[])), None);
    assert_eq!(unpacked(ValueRef::Text(&[0xff])), None);
}

#[tokio::test]
async fn a_run_ends_where_its_events_no_longer_share_their_origin_and_before_it_is_too_long_to_unpack() {
    let world = World::new(1);
    let store = world.memory();
    let key = world.session(&store).await.expect("a session");
    let lease = world.claim(&store, key, 1).await.expect("a lease");
    let calls = [world.inert_call("a"), world.inert_call("b")].concat();
    store.commit(world.work(key, &lease, calls)).await.expect("an append");
    let mut events = store.read(key, 1, 100).await.expect("events");
    let length = |events: &[Event]| run_of(&events[0], events);
    assert_eq!(length(&events), events.len(), "one append of one turn is one run");
    let mut turned = events.clone();
    turned[3].turn_id = Some(TurnId::from_u128(9));
    assert_eq!((length(&turned), length(&turned[3..])), (3, 1));
    events[2].payload = None;
    assert_eq!((length(&events), length(&events[2..])), (2, 1), "what was erased stands apart");
    events[1].payload = Some("x".repeat(RUN_BYTES).into());
    assert_eq!(length(&events), 2);
    events[0].payload = events[1].payload.clone();
    assert_eq!(length(&events), 1);
}

/// Rewrites a store as a program before runs would have left it.
fn as_before_runs(conn: &Connection, new: &Path, logs: &[(SessionKey, Vec<Event>)]) {
    migrate_with(conn, Timestamp::from_micros(1), &MIGRATIONS[..6]).expect("version 6");
    conn.execute("ATTACH ?1 AS new", params![new.display().to_string()]).expect("attached");
    for table in ["session_heads", "sessions", "checkpoints", "intents", "artifacts", "blobs", "records", "delivered"] {
        let columns: Vec<String> = conn
            .prepare("SELECT name FROM pragma_table_info(?1, 'main')")
            .and_then(|mut named| named.query_map([table], |row| row.get(0))?.collect())
            .expect("columns");
        let columns = columns.join(", ");
        conn.execute_batch(&format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}"))
            .expect("copied");
    }
    for (key, events) in logs {
        for event in events {
            let long = event.payload.as_deref().filter(|text| text.len() > 560);
            if let Some(text) = long {
                conn.execute("INSERT INTO main.payloads (payload) VALUES (?1)", [text]).expect("a payload");
            }
            conn.execute(
                "INSERT INTO main.events VALUES \
                 (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
                params![
                    id(key.tenant.as_u128()),
                    id(key.session.as_u128()),
                    event.seq,
                    id(event.id.as_u128()),
                    event.kind.as_str(),
                    event.at.as_micros(),
                    event.actor.as_str(),
                    event.worker_id.map(|w| id(w.as_u128())),
                    event.fence,
                    event.wake_id.map(|w| id(w.as_u128())),
                    event.turn_id.map(|t| id(t.as_u128())),
                    event.session_thread_id.map(|s| id(s.as_u128())),
                    id(event.append_id.as_u128()),
                    event.v,
                    event.payload.as_deref().filter(|_| long.is_none()),
                    long.map(|_| conn.last_insert_rowid()),
                    event.payload_hash.as_bytes(),
                    event.prev_hash.as_bytes(),
                    event.hash.as_bytes(),
                ],
            )
            .expect("an event");
        }
    }
    conn.execute_batch("DETACH new").expect("detached");
}

#[tokio::test]
async fn f19_the_logs_of_an_older_store_are_the_same_after_and_still_prove_themselves() {
    let world = World::new(1);
    let folder = tempfile::tempdir().expect("a folder");
    let (new, old) = (folder.path().join("new.db"), folder.path().join("old.db"));
    let store = open(&world, &new);
    let worked = world.session(&store).await.expect("a session");
    let lease = world.claim(&store, worked, 1).await.expect("a lease");
    for content in ["ä short one", &"a long one ".repeat(200)] {
        let mut commit = world.work(worked, &lease, world.inert_call(content));
        commit.idle = true;
        store.commit(commit).await.expect("an append");
    }
    let erased = world.session(&store).await.expect("a session");
    store.commit(world.input(erased, "a secret")).await.expect("an append");
    let lease = world.claim(&store, erased, 2).await.expect("a lease");
    erase(&world, &store, erased, &lease).await;
    deliver_outbox(&store).await.expect("deliveries");
    let mut logs = Vec::new();
    for session in store.logs(world.tenant).await.expect("logs") {
        let key = SessionKey { tenant: world.tenant, session };
        logs.push((key, store.read(key, 0, 1_000).await.expect("events")));
    }
    assert!(logs.iter().any(|(_, events)| events.iter().any(|event| event.payload.is_none())), "one was erased");
    drop(store);
    as_before_runs(&Connection::open(&old).expect("a file"), &new, &logs);

    let store = open(&world, &old);
    let raw = Connection::open(&old).expect("the file");
    let free: u64 = raw.pragma_query_value(None, "freelist_count", |row| row.get(0)).expect("a number");
    assert_eq!(free, 0, "what the rows left is given back");
    for (key, events) in &logs {
        assert_eq!(&store.read(*key, 0, 1_000).await.expect("events"), events);
        let tail = store.read(*key, 2, 1_000).await.expect("events");
        assert_eq!(
            tail,
            events.get(2..).unwrap_or_default(),
            "a page that begins in the middle is linked to the one before"
        );
    }
    let audit = verify_tenant(&store, world.tenant, Some(&world.key), None).await.expect("an audit");
    assert!(audit.holds(), "{:?}", audit.faults);
    assert_sound(&store, worked).await;
    store.commit(world.input(worked, "it goes on")).await.expect("an append");
    assert_sound(&store, worked).await;
}

#[tokio::test]
async fn f19_what_is_erased_after_a_store_was_brought_forward_is_in_no_page_of_it() {
    let world = World::new(1);
    let folder = tempfile::tempdir().expect("a folder");
    let (new, old) = (folder.path().join("new.db"), folder.path().join("old.db"));
    let store = open(&world, &new);
    let key = world.session(&store).await.expect("a session");
    let lease = world.claim(&store, key, 1).await.expect("a lease");
    let secrets: String = (0..2_000).map(|n| format!("zanzibar{n} ")).collect();
    let mut commit = world.work(key, &lease, world.inert_call(&secrets));
    commit.idle = true;
    store.commit(commit).await.expect("an append");
    let events = store.read(key, 0, 1_000).await.expect("events");
    drop(store);
    as_before_runs(&Connection::open(&old).expect("a file"), &new, &[(key, events)]);
    let holds = || fs::read(&old).expect("the file").windows(8).any(|bytes| bytes == b"zanzibar");
    assert!(holds(), "an older store has it as text");

    let store = open(&world, &old);
    erase(&world, &store, key, &lease).await;
    let mode = |tx: &Tx<'_>| tx.conn.pragma_query_value(None, "secure_delete", |row| row.get(0)).map_err(Fail::from);
    let after: i64 = store.on_writer(mode).await.expect("a mode");
    assert_eq!(after, 2, "`fast` again: later writes do not pay for it");
    drop(store);
    let raw = Connection::open(&old).expect("the file");
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("moved into the file");
    assert!(!holds(), "free pages hold nothing of it");
}

#[tokio::test]
async fn f19_a_log_without_a_head_is_brought_forward_too_and_keeps_nobody_from_working() {
    let world = World::new(1);
    let folder = tempfile::tempdir().expect("a folder");
    let (new, old) = (folder.path().join("new.db"), folder.path().join("old.db"));
    let store = open(&world, &new);
    let lost = world.session(&store).await.expect("a session");
    store.commit(world.input(lost, "evidence")).await.expect("an append");
    let events = store.read(lost, 0, 1_000).await.expect("events");
    drop(store);
    let raw = Connection::open(&old).expect("a file");
    as_before_runs(&raw, &new, &[(lost, events.clone())]);
    raw.execute("DELETE FROM session_heads", []).expect("someone removes the head");
    drop(raw);

    let store = open(&world, &old);
    assert_eq!(store.read(lost, 0, 1_000).await.expect("events"), events, "nothing is thrown away");
    let audit = verify_tenant(&store, world.tenant, Some(&world.key), None).await.expect("an audit");
    assert!(!audit.holds(), "and it is found");
    for _ in 0..2 {
        let other = world.session(&store).await.expect("another session begins");
        store.commit(world.input(other, "work")).await.expect("an append");
        assert_sound(&store, other).await;
    }
    // The same in a store of today: numbers are never given again.
    let newest = world.session(&store).await.expect("a session");
    let raw = Connection::open(&old).expect("the file");
    raw.execute("DELETE FROM session_heads WHERE session = ?1", params![id(newest.session.as_u128())]).expect("gone");
    raw.execute("DELETE FROM logs WHERE session = ?1", params![id(newest.session.as_u128())]).expect("gone");
    let next = world.session(&store).await.expect("another session begins");
    assert_sound(&store, next).await;
}

#[tokio::test]
async fn s14_a_run_of_another_log_is_neither_shown_nor_erased() {
    let world = World::new(1);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&world, &path);
    let (mine, theirs) =
        (world.session(&store).await.expect("a session"), world.session(&store).await.expect("a session"));
    store.commit(world.input(theirs, "not for others")).await.expect("an append");
    let raw = Connection::open(&path).expect("the file");
    let named = "UPDATE events SET (run, start, bytes) = (SELECT run, start, bytes FROM events WHERE log = \
                 (SELECT log FROM logs WHERE session = ?2) AND seq = 2) \
                 WHERE log = (SELECT log FROM logs WHERE session = ?1)";
    raw.execute(named, params![id(mine.session.as_u128()), id(theirs.session.as_u128())]).expect("a forged row");
    let shown = store.read(mine, 0, 9).await.expect("events");
    assert_eq!(shown[0].payload.as_deref(), Some(""), "it verifies as nothing of mine");
    let lease = world.claim(&store, mine, 1).await.expect("a lease");
    erase(&world, &store, mine, &lease).await;
    let kept = store.read(theirs, 1, 9).await.expect("events");
    assert!(kept[0].payload.as_deref().is_some_and(|text| text.contains("not for others")));
    assert_sound(&store, theirs).await;
}

#[test]
fn the_words_that_runs_are_packed_with_never_change() {
    assert_eq!(
        Digest::of(WORDS).to_string(),
        "42d7c5b9d284bdef2018204273a917fda494771b9a89808f20d5e11a55ebf283",
        "what was packed with other words could not be read any more: add another file instead"
    );
}

#[test]
fn what_older_programs_packed_is_still_read() {
    let text = r#"{"intent_id":"intent_01","decision":"allow"}"#.repeat(100);
    let older = lz4_flex::block::compress_prepend_size(text.as_bytes());
    assert_eq!(unpacked(ValueRef::Blob(&older)).as_deref(), Some(&*text));
    let ToSqlOutput::Owned(Value::Blob(newer)) = packed(&text) else { panic!("it packs") };
    assert_eq!(unpacked(ValueRef::Blob(&newer)).as_deref(), Some(&*text));
    assert!(newer.len() < older.len(), "{} {}", newer.len(), older.len());
    // A size that is not true is no run of ours, with the words and without.
    for mut forged in [older, newer] {
        forged[2] ^= 1;
        assert_eq!(unpacked(ValueRef::Blob(&forged)), None);
    }
}
