//! Outbox and ledger, blobs and artifacts, records, snapshots, lists and hints.

use std::time::Duration;

use portcullis_base::{
    AppendId, ArtifactId, ArtifactKind, ArtifactRef, Clock as _, Digest, EventId, OutboxId, SessionId, Timestamp, Trust,
};
use portcullis_event::{Body, ledger_of};
use portcullis_store::{
    ArtifactRow, Blob, Commit, OutboxEntry, OutboxKind, RecordWrite, SessionKey, Snapshot, StoreError, deliver_outbox,
};
use serde_json::json;

use super::{Make, assert_sound, setup, whole};

pub(super) fn artifact(id: u128, bytes: &[u8]) -> ArtifactRef {
    ArtifactRef {
        id: ArtifactId::from_u128(id),
        kind: ArtifactKind::CommandOutput,
        mime: "text/plain".to_owned(),
        bytes: bytes.len() as u64,
        lines: None,
        sha256: Digest::of(bytes),
        complete: false,
        trust: Trust::ToolOutputUntrusted,
        expires_at: Some(Timestamp::from_micros(5)),
    }
}

pub async fn s13_a_blob_is_readable_with_its_append(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    for (id, bytes) in [(1, Vec::new()), (2, vec![0, 255, 128]), (3, vec![7; 65_536]), (4, vec![0, 255, 128])] {
        let artifact = artifact(id, &bytes);
        let mut commit = world.input(key, "names an artifact");
        commit.blobs = vec![Blob { sha256: artifact.sha256, bytes: bytes.clone() }];
        commit.artifacts = vec![ArtifactRow::new(key.session, artifact.clone())];
        store.commit(commit).await.expect("an append");
        assert_eq!(store.blob(key.tenant, artifact.sha256).await, Ok(Some(bytes)));
        let row = store.artifact(key.tenant, artifact.id).await.expect("a row");
        assert_eq!(row, Some(ArtifactRow::new(key.session, artifact)));
    }
    let ids = async |after: Option<u128>, limit| -> Vec<u128> {
        let page = store.artifacts(key.tenant, after.map(ArtifactId::from_u128), limit).await.expect("rows");
        page.iter().map(|row| row.artifact.id.as_u128()).collect()
    };
    assert_eq!((ids(None, 3).await, ids(Some(3), 3).await, ids(Some(4), 3).await), (vec![1, 2, 3], vec![4], vec![]));
    assert_eq!(store.blob(key.tenant, Digest::of(b"never")).await, Ok(None));
    assert_eq!(store.artifact(key.tenant, ArtifactId::from_u128(9)).await, Ok(None));
}

pub async fn artifacts_are_counted_once_by_content(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    assert_eq!(store.artifact_usage(key.tenant).await, Ok(0));
    for (id, bytes) in [(1, "aaaa"), (2, "aaaa"), (3, "bb")] {
        let mut commit = world.input(key, "names an artifact");
        let artifact = artifact(id, bytes.as_bytes());
        commit.artifacts = vec![ArtifactRow::new(key.session, artifact)];
        store.commit(commit).await.expect("an append");
    }
    assert_eq!(store.artifact_usage(key.tenant).await, Ok(6));
}

pub async fn the_outbox_is_delivered_exactly_once(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    for _ in 0..3 {
        world.session(store).await.expect("a session");
    }
    let waiting = store.outbox(100).await.expect("the outbox");
    assert_eq!(waiting.len(), 3);
    assert_eq!(store.outbox(2).await.expect("the outbox"), waiting[..2], "oldest first, no more than asked for");
    assert_eq!(deliver_outbox(store).await, Ok(3));
    assert_eq!(store.outbox(100).await, Ok(Vec::new()), "a ledger has no entries about itself");
    assert_eq!(deliver_outbox(store).await, Ok(0));

    // A deliverer that died after delivering and before saying so: everything comes again.
    let ledger = SessionKey { tenant: world.tenant, session: ledger_of(world.tenant) };
    let before = whole(store, ledger).await;
    let mut commit = world.input(world.session(store).await.expect("a session"), "again");
    commit.outbox = waiting.clone();
    store.commit(commit).await.expect("an append");
    assert_eq!(deliver_outbox(store).await, Ok(1), "only the new session's entry takes effect");
    assert_eq!(whole(store, ledger).await.len(), before.len() + 1);
    store.outbox_done(vec![waiting[0].id]).await.expect("a missing entry is no error");

    // The key alone decides: another event under a key that was delivered takes no effect either.
    let once = || Commit::outbox(ledger, "some:key".to_owned(), world.append(), vec![world.queued("x")]);
    assert!(!store.commit(once()).await.expect("a delivery").repeat);
    let length = whole(store, ledger).await.len();
    assert!(store.commit(once()).await.expect("the same key").repeat);
    assert_eq!(whole(store, ledger).await.len(), length);
}

/// More entries that nobody can take than one round looks at, and before all the others.
pub async fn an_entry_that_its_log_refuses_holds_up_no_other_log(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let known = store.outbox(1).await.expect("the outbox").remove(0);
    let OutboxKind::Session { event_type, payload, .. } = known.work else { panic!("the ledger is told of a session") };
    deliver_outbox(store).await.expect("the ledger is told");
    let nobody = SessionId::from_u128(0xdead);
    let entry = |n: u128, session_id: SessionId| OutboxEntry {
        id: OutboxId::from_u128(n),
        tenant: world.tenant,
        at: world.clock.now(),
        work: OutboxKind::Session {
            session_id,
            dedupe: format!("entry:{n}"),
            event_id: EventId::from_u128(n),
            append_id: AppendId::from_u128(n),
            event_type: event_type.clone(),
            payload: payload.clone(),
            copied_from: None,
        },
    };
    let mut commit = world.input(key, "with deliveries");
    commit.outbox = (1..=300).map(|n| entry(n, nobody)).collect();
    store.commit(commit).await.expect("an append");
    let later = world.session(store).await.expect("another session");
    let told = |events: &[portcullis_event::Event]| {
        events
            .iter()
            .filter(|event| event.payload.as_deref().is_some_and(|text| text.contains(&later.session.to_string())))
            .count()
    };
    assert_eq!(deliver_outbox(store).await, Err(StoreError::NoSession(nobody)));
    let ledger = SessionKey { tenant: world.tenant, session: ledger_of(world.tenant) };
    assert_eq!(told(&whole(store, ledger).await), 1, "the ledger knows of the session that came after them");
    assert_eq!(store.outbox(1_000).await.expect("the outbox").len(), 300, "what was refused waits");
    assert_eq!(deliver_outbox(store).await, Err(StoreError::NoSession(nobody)));
    assert_eq!(told(&whole(store, ledger).await), 1);
}

pub async fn the_ledger_names_sessions_and_checkpoints(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let mut commit = world.work(key, &lease, world.inert_call("x"));
    commit.idle = true;
    let last = store.commit(commit).await.expect("an append").events.pop().expect("its last event");
    deliver_outbox(store).await.expect("deliveries");
    let ledger = SessionKey { tenant: world.tenant, session: ledger_of(world.tenant) };
    let first = store.read(key, 0, 1).await.expect("a page")[0].hash;
    let entries: Vec<Body> = whole(store, ledger).await.iter().map(portcullis_event::Event::body).collect();
    let [Body::LedgerSessionCreated(created), Body::LedgerCheckpoint(checkpoint)] = entries.as_slice() else {
        panic!("a creation and a checkpoint, found {entries:?}")
    };
    assert_eq!((created.session_id, created.first_hash), (key.session, first));
    assert_eq!((checkpoint.session_id, checkpoint.seq, checkpoint.hash), (key.session, last.seq, last.hash));
    let checkpoints = store.checkpoints(ledger).await.expect("checkpoints");
    assert_eq!(checkpoints.last().map(|checkpoint| checkpoint.seq), Some(2), "its tail is under a checkpoint");
    assert_sound(store, ledger).await;
    assert!(store.logs(world.tenant).await.expect("logs").contains(&ledger.session));
}

pub async fn records_have_versions(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let write = |id: &str, expected, body| RecordWrite { kind: "rule".to_owned(), id: id.to_owned(), expected, body };
    let put = async |w| store.put_record(world.tenant, w).await;
    let conflict = |expected, found| {
        Err(StoreError::VersionConflict { kind: "rule".to_owned(), id: "a".to_owned(), expected, found })
    };
    assert_eq!(put(write("a", Some(1), Some(json!(1)))).await, conflict(1, 0));
    assert_eq!(put(write("a", Some(0), Some(json!({"x": [1.5, "é"]})))).await, Ok(1));
    assert_eq!(put(write("a", Some(0), Some(json!(2)))).await, conflict(0, 1));
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(put(write("a", None, Some(json!(3)))).await, Ok(2));
    let record = store.record(world.tenant, "rule", "a").await.expect("a record").expect("it exists");
    let now = portcullis_base::Clock::now(&*world.clock);
    assert_eq!((record.version, record.body, record.updated_at), (2, json!(3), now));
    assert_eq!(put(write("B", None, Some(json!(1)))).await, Ok(1));
    let ids: Vec<String> =
        store.records(world.tenant, "rule").await.expect("records").into_iter().map(|r| r.id).collect();
    assert_eq!(ids, ["B", "a"], "by id, byte by byte");
    assert_eq!(store.records(world.tenant, "other").await, Ok(Vec::new()));
    put(write("a", Some(2), None)).await.expect("a removal");
    assert_eq!(store.record(world.tenant, "rule", "a").await, Ok(None));
}

pub async fn records_ride_with_a_commit_or_not_at_all(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let grant =
        RecordWrite { kind: "grant".to_owned(), id: "g".to_owned(), expected: Some(0), body: Some(json!("once")) };
    let mut commit = world.input(key, "with a grant");
    commit.records = vec![grant.clone()];
    store.commit(commit).await.expect("an append");
    let mut stale = world.input(key, "with a stale grant");
    stale.records = vec![grant];
    assert!(matches!(store.commit(stale).await, Err(StoreError::VersionConflict { .. })));
    assert_eq!(whole(store, key).await.len(), 2);
    assert_eq!(store.record(key.tenant, "grant", "g").await.expect("a record").map(|r| r.version), Some(1));
}

pub async fn s16_a_snapshot_is_kept_by_code_version(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    assert_eq!(store.snapshot(key, 1).await, Ok(None));
    let snapshot = |seq, code_version, state: &str| Snapshot {
        seq,
        code_version,
        state: state.to_owned(),
        digest: Digest::of(state.as_bytes()),
    };
    for seq in [3, 9] {
        store.put_snapshot(key, snapshot(seq, 1, "{\"a\":1}")).await.expect("a snapshot");
    }
    assert_eq!(store.snapshot(key, 1).await, Ok(Some(snapshot(9, 1, "{\"a\":1}"))));
    assert_eq!(store.snapshot(key, 2).await, Ok(None), "another fold cannot use it");
    store.put_snapshot(key, snapshot(9, 2, "{}")).await.expect("a snapshot");
    assert_eq!(store.snapshot(key, 2).await, Ok(Some(snapshot(9, 2, "{}"))));
}

pub async fn changes_move_after_a_commit(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let mut changes = store.changes();
    changes.mark_unchanged();
    let key = world.session(store).await.expect("a session");
    let moved = tokio::time::timeout(Duration::from_secs(5), changes.changed()).await;
    moved.expect("a hint comes").expect("the store lives");
    // Whoever follows the hint finds the rows.
    assert!(store.head(key).await.expect("a head").is_some());
}

pub async fn lists_are_newest_first_without_reserved_logs(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let mut keys = Vec::new();
    for _ in 0..4 {
        world.clock.advance(Duration::from_secs(1));
        keys.push(world.session(store).await.expect("a session"));
    }
    world.clock.advance(Duration::from_secs(1));
    store.commit(world.input(keys[0], "touched last")).await.expect("an append");
    deliver_outbox(store).await.expect("deliveries");
    let listed: Vec<_> =
        store.sessions(world.tenant, 3).await.expect("a list").into_iter().map(|s| s.session_id).collect();
    assert_eq!(listed, [keys[0].session, keys[3].session, keys[2].session]);
    let all = store.sessions(world.tenant, 100).await.expect("a list");
    assert_eq!(all.len(), 4, "the ledger is not a session");
    assert_eq!((all[0].row.title.as_deref(), all[0].row.tags.as_slice()), (Some("test"), &["one".to_owned()][..]));
    assert_eq!(all[0].row.workspace.as_deref(), Some("/work/tree"));
    assert_eq!(Some(&all[0].head), store.head(keys[0]).await.expect("a head").as_ref());
}
