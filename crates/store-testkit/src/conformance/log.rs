//! Order, chain, repeats and refusals of appends.

use std::sync::Arc;

use portcullis_base::Digest;
use portcullis_base::limits::APPEND_EVENTS;
use portcullis_event::facts::ArtifactsExpired;
use portcullis_event::{Actor, Body, Draft, EventType, operator_log_of};
use portcullis_store::{Commit, Idempotency, RecordWrite, SessionKey, StoreError};
use serde_json::json;

use super::{Make, assert_sound, head, setup, whole};

pub async fn s01_seqs_have_no_gap_under_clients_and_a_worker(make: Make) {
    let (world, backend) = setup(make);
    let (world, store) = (Arc::new(world), backend.store.clone());
    let key = world.session(&*store).await.expect("a session");
    let lease = world.claim(&*store, key, 1).await.expect("a lease");
    let mut tasks = tokio::task::JoinSet::new();
    for client in 0..4 {
        let (world, store, lease) = (world.clone(), store.clone(), lease.clone());
        tasks.spawn(async move {
            for i in 0..25 {
                let commit = if client == 0 {
                    world.work(key, &lease, world.inert_call("text"))
                } else {
                    world.input(key, &format!("{client}/{i}"))
                };
                store.commit(commit).await.expect("every append goes through");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no client panics");
    }
    let seqs: Vec<u64> = whole(&*store, key).await.iter().map(|e| e.seq).collect();
    let wanted: Vec<u64> = (1..=1 + 25 * 9 + 3 * 25).collect();
    assert_eq!(seqs, wanted);
    assert_sound(&*store, key).await;
}

pub async fn s02_the_chain_verifies_and_ends_in_the_head(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    for size in [0, 100, 559, 560, 561, 5_000, 200_000] {
        let mut commit = world.work(key, &lease, world.inert_call(&"é".repeat(size)));
        commit.idle = size == 5_000;
        let committed = store.commit(commit).await.expect("an append");
        let last = committed.last_seq;
        assert_eq!(committed.events, store.read(key, last - 9, 100).await.expect("a page"), "{size}");
    }
    assert_sound(store, key).await;
    let checkpoints = store.checkpoints(key).await.expect("checkpoints");
    let [checkpoint] = checkpoints.as_slice() else { panic!("one checkpoint at idle, found {checkpoints:?}") };
    let at = store.read(key, checkpoint.seq - 1, 1).await.expect("its event");
    assert_eq!(at[0].hash, checkpoint.hash);
    assert!(world.key.verifies(key.session, checkpoint.seq, checkpoint.hash, &checkpoint.mac));
}

pub async fn s05_a_reader_never_sees_a_gap(make: Make) {
    let (world, backend) = setup(make);
    let (world, store) = (Arc::new(world), backend.store.clone());
    let key = world.session(&*store).await.expect("a session");
    let writer = {
        let (world, store) = (world.clone(), store.clone());
        tokio::spawn(async move {
            for i in 0..60 {
                let committed = store.commit(world.input(key, &i.to_string())).await.expect("an append");
                // What was acknowledged is in every later list.
                let listed = store.read(key, committed.last_seq - 1, 1).await.expect("a page");
                assert_eq!(listed.first().map(|e| e.seq), Some(committed.last_seq));
            }
        })
    };
    let mut seen = 0;
    while seen < 61 {
        let page = store.read(key, seen, 100).await.expect("a page");
        for event in page {
            assert_eq!(event.seq, seen + 1);
            seen = event.seq;
        }
        tokio::task::yield_now().await;
    }
    writer.await.expect("the writer ends");
}

pub async fn a_stale_expected_seq_is_chained_after_the_client(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    store.commit(world.input(key, "meanwhile")).await.expect("a client's append");
    let mut commit = world.work(key, &lease, vec![world.intent().1]);
    commit.expected_seq = Some(1);
    let committed = store.commit(commit).await.expect("a stale seq is no error");
    assert_eq!(committed.events[0].seq, 3);
    assert_sound(store, key).await;
}

/// Equal and falling times change nothing: the order is that of the appends.
pub async fn check03_events_stand_in_the_order_of_their_appends_whatever_their_times_say(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let begun = world.now().as_micros();
    let mut wanted = Vec::new();
    for (n, seconds) in [0, 0, -3_600, -3_600, 7_200, -86_400, 0].into_iter().enumerate() {
        world.clock.jump_to(portcullis_base::Timestamp::from_micros(begun + seconds * 1_000_000));
        let commit = world.input(key, &format!("word {n}"));
        wanted.push(commit.events[0].id);
        store.commit(commit).await.expect("an append");
    }
    let log = whole(store, key).await;
    assert_eq!(log.iter().skip(1).map(|event| event.id).collect::<Vec<_>>(), wanted);
    assert_sound(store, key).await;
}

pub async fn check01_a_repeated_append_is_a_no_op(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let commit = world.input(key, "once");
    let first = store.commit(commit.clone()).await.expect("an append");
    assert!(!first.repeat);
    store.commit(world.input(key, "later")).await.expect("another append");
    // By the id of the append, and by those of its events.
    for same in [commit.clone(), Commit { append_id: world.append(), ..commit }] {
        let again = store.commit(same).await.expect("a repeat is no error");
        assert!(again.repeat && again.events.is_empty());
        assert_eq!(again.last_seq, 3);
        assert_eq!(whole(store, key).await.len(), 3);
    }
    // A session's creation may be repeated too: an ambiguous answer is retried.
    let other = world.key();
    let creation = world.creation(other);
    assert!(!store.commit(creation.clone()).await.expect("a creation").repeat);
    assert!(store.commit(creation).await.expect("a repeat").repeat);
}

pub async fn a_refused_commit_leaves_nothing(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let before = store.head(key).await.expect("a head");
    let mut commit = world.input(key, "refused");
    commit.idempotency = Some(Idempotency {
        route: "r".to_owned(),
        key: "k".to_owned(),
        body_hash: Digest::of(b"a"),
        response: json!(1),
    });
    commit.records = vec![
        RecordWrite { kind: "rule".to_owned(), id: "a".to_owned(), expected: Some(0), body: Some(json!(1)) },
        RecordWrite { kind: "rule".to_owned(), id: "b".to_owned(), expected: Some(9), body: Some(json!(1)) },
    ];
    let refused = store.commit(commit.clone()).await;
    assert!(matches!(refused, Err(StoreError::VersionConflict { expected: 9, found: 0, .. })), "{refused:?}");
    assert_eq!(store.head(key).await.expect("a head"), before);
    assert_eq!(whole(store, key).await.len(), 1);
    assert_eq!(store.record(key.tenant, "rule", "a").await.expect("a record"), None);
    commit.records.clear();
    assert!(!store.commit(commit).await.expect("nothing of it was kept").repeat);
}

pub async fn clients_and_deliveries_append_only_the_types_that_are_theirs(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let typed = |word: &'static str| Draft { kind: EventType::known(word), ..world.queued("x") };
    let before = store.head(key).await.expect("a head");
    for word in
        ["tool.recovered", "tool.invocation.started", "tool.observation", "ledger.checkpoint", "from.the_future"]
    {
        let kind = EventType::known(word);
        // Hidden behind one that is theirs.
        let commit = Commit::client(key, world.append(), vec![world.queued("y"), typed(word)]);
        assert_eq!(store.commit(commit).await, Err(StoreError::NotTheirs { writer: "a client", kind: kind.clone() }));
        if word != "ledger.checkpoint" {
            let delivery = Commit::outbox(key, word.to_owned(), world.append(), vec![typed(word)]);
            assert_eq!(store.commit(delivery).await, Err(StoreError::NotTheirs { writer: "an outbox", kind }));
        }
    }
    assert_eq!(store.head(key).await.expect("a head"), before, "nothing was written");
    for word in ["user.message", "tool.queued", "grant.created", "variable.set"] {
        let commit = Commit::client(
            key,
            world.append(),
            vec![Draft { payload: "{}".into(), payload_hash: Digest::of(b"{}"), ..typed(word) }],
        );
        store.commit(commit).await.unwrap_or_else(|error| panic!("{word}: {error}"));
    }
    assert_sound(store, key).await;
}

pub async fn a_session_is_created_once_and_needs_its_creation(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.key();
    assert_eq!(store.commit(world.input(key, "early")).await, Err(StoreError::NoSession(key.session)));
    assert_eq!(store.head(key).await, Ok(None));
    let fence_zero = Commit::worker(key, world.owner(1).worker, 0, world.append(), vec![world.created(key)]);
    assert_eq!(store.commit(fence_zero).await, Err(StoreError::NoSession(key.session)));
    store.commit(world.creation(key)).await.expect("a creation");
    assert_eq!(store.commit(world.creation(key)).await, Err(StoreError::SessionExists(key.session)));
}

pub async fn an_oversized_append_is_refused(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let events: Vec<Draft> = (0..=APPEND_EVENTS).map(|_| world.queued("x")).collect();
    let refused = store.commit(Commit::client(key, world.append(), events)).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
    let events: Vec<Draft> = (0..APPEND_EVENTS).map(|_| world.queued("x")).collect();
    store.commit(Commit::client(key, world.append(), events)).await.expect("the limit itself is allowed");
    assert_eq!(store.checkpoints(key).await.expect("checkpoints").len(), 1, "one is due every 1,000 events");
    assert_sound(store, key).await;
}

pub async fn l72_an_unknown_type_survives_unchanged(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let payload = "{ \"b\":1.0, \"a\" : [\"\\u00e9\", null] }".to_owned();
    let mut draft = world.queued("x");
    draft.kind = EventType::recorded("from.the_future".to_owned());
    draft.actor = Actor::recorded("mcp:someone".to_owned());
    draft.v = 7;
    draft.payload_hash = Digest::of(payload.as_bytes());
    draft.payload = payload.as_str().into();
    let lease = world.claim(store, key, 1).await.expect("a lease");
    store.commit(world.work(key, &lease, vec![draft.clone()])).await.expect("an append");
    let read = &store.read(key, 1, 1).await.expect("a page")[0];
    assert_eq!((read.kind.as_str(), read.v, read.payload.as_deref()), ("from.the_future", 7, Some(payload.as_str())));
    assert_eq!(read.actor, draft.actor);
    assert!(matches!(read.body(), Body::Unknown { raw: Some(raw), .. } if raw == payload));
    assert_sound(store, key).await;
}

/// What a person changes outside any session is a commit to the operator log: what was done, the rows that say so, and the
/// response to the request, all or nothing.
pub async fn s17_a_request_outside_sessions_is_one_commit_of_events_records_and_response(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = SessionKey { tenant: world.tenant, session: operator_log_of(world.tenant) };
    let record = |id: &str, expected, body| RecordWrite { kind: "rule".to_owned(), id: id.to_owned(), expected, body };
    let expired = |n| ArtifactsExpired { by: format!("user:{n}"), artifacts: Vec::new() };
    let request = |n: u64, records: Vec<RecordWrite>| {
        let events = (0..3).map(|_| world.draft(&expired(n))).collect();
        let mut commit = Commit::client(key, world.append(), events);
        commit.records = records;
        commit.idempotency = Some(Idempotency {
            route: "POST /rules".to_owned(),
            key: n.to_string(),
            body_hash: Digest::of(&n.to_be_bytes()),
            response: json!({ "made": n }),
        });
        commit
    };
    let versions = async || {
        let rows = store.records(world.tenant, "rule").await.expect("records");
        rows.into_iter().map(|row| (row.id, row.version)).collect::<Vec<_>>()
    };
    let two = vec![record("a", Some(0), Some(json!(1))), record("b", None, Some(json!(2)))];
    let first = store.commit(request(1, two.clone())).await.expect("a log that begins with it");
    assert_eq!((first.events.len(), first.last_seq, first.repeat), (3, 3, false));
    assert_eq!(first.response, Some(json!({ "made": 1 })));
    assert_eq!(versions().await, [("a".to_owned(), 1), ("b".to_owned(), 1)]);

    // The same request with other events: its first answer, and nothing is written.
    let again = store.commit(request(1, two)).await.expect("a repeat");
    assert_eq!((again.events.len(), again.last_seq, again.repeat), (0, 3, true));
    assert_eq!(again.response, first.response);

    // A record that has moved on refuses the whole of it, the response too.
    let late = request(2, vec![record("b", None, None), record("a", Some(0), Some(json!(3)))]);
    assert!(matches!(store.commit(late.clone()).await, Err(StoreError::VersionConflict { .. })));
    assert_eq!((head(store, key).await.last_seq, versions().await.len()), (3, 2));
    let mut retried = late;
    retried.records[1].expected = Some(1);
    let second = store.commit(retried).await.expect("the request was not answered before");
    assert_eq!((second.repeat, second.last_seq), (false, 6));
    assert_eq!(versions().await, [("a".to_owned(), 2)]);
    assert_sound(store, key).await;
    assert_eq!(store.session(key).await, Ok(None), "it is no session");
    assert_eq!(head(store, key).await.next_due_at, None, "and nobody is to work on it");
}

pub async fn s17_an_idempotent_request_takes_effect_once(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let request = |body: &[u8], response| {
        let mut commit = world.input(key, "request");
        commit.idempotency = Some(Idempotency {
            route: "POST /events".to_owned(),
            key: "k1".to_owned(),
            body_hash: Digest::of(body),
            response,
        });
        commit
    };
    let first = store.commit(request(b"body", json!({"n": 1}))).await.expect("a request");
    assert_eq!((first.repeat, first.response), (false, Some(json!({"n": 1}))));
    let again = store.commit(request(b"body", json!({"n": 2}))).await.expect("the same request");
    assert_eq!((again.repeat, again.response, again.last_seq), (true, Some(json!({"n": 1})), 2));
    let other = store.commit(request(b"other", json!(3))).await;
    assert_eq!(other, Err(StoreError::IdempotencyMismatch("k1".to_owned())));
    assert_eq!(whole(store, key).await.len(), 2);
}
