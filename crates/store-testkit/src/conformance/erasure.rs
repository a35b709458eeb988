//! What goes: erased sessions, and artifacts that a policy takes.

use std::time::Duration;

use portcullis_base::{ArtifactId, Clock as _, Digest, TenantId};
use portcullis_event::facts::SessionErased;
use portcullis_event::{Body, SessionStatus, ledger_of};
use portcullis_store::{
    ArtifactRow, AskFilter, Blob, Claim, Commit, Lease, Query, RecordWrite, Retain, SessionKey, Snapshot, Store,
    StoreError, VARIABLE, deliver_outbox, variable_id, verify_tenant,
};

use super::extras::artifact;
use super::{Make, TTL, assert_sound, head, setup, whole};
use crate::World;

fn erasure(world: &World, key: SessionKey, lease: &Lease, to_seq: u64) -> Commit {
    let fact = SessionErased { from_seq: 1, to_seq, by: "user:ada".to_owned(), reason: None };
    let mut commit = world.work(key, lease, vec![world.draft(&fact)]);
    commit.idle = true;
    commit
}

/// Erases a free session.
pub(super) async fn erase_session(world: &World, store: &dyn Store, key: SessionKey) {
    let lease = world.claim(store, key, 9).await.expect("a lease");
    let last = head(store, key).await.last_seq;
    store.erase(erasure(world, key, &lease, last)).await.expect("erased");
}

/// A session with text, a variable, an ask that waits, a snapshot and two small artifacts, the second one not only its own.
async fn full_session(world: &World, store: &dyn Store, ids: [u128; 2]) -> (SessionKey, Lease) {
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let mut commit = world.work(key, &lease, world.inert_call("zanzibar, a word to be found"));
    for (id, bytes) in ids.into_iter().zip([format!("only of {}", ids[0]), "of both".to_owned()]) {
        let artifact = artifact(id, bytes.as_bytes());
        commit.blobs.push(Blob { sha256: artifact.sha256, bytes: bytes.into_bytes() });
        commit.artifacts.push(ArtifactRow::new(key.session, artifact));
    }
    let (id, body) = (variable_id(key.session, "A"), Some(serde_json::json!({"sealed": "00"})));
    commit.records.push(RecordWrite { kind: VARIABLE.to_owned(), id, expected: None, body });
    store.commit(commit).await.expect("an append");
    store.commit(world.work(key, &lease, world.parked().events)).await.expect("an ask");
    let state = "{\"zanzibar\":1}".to_owned();
    let snapshot = Snapshot { seq: 3, code_version: 1, digest: Digest::of(state.as_bytes()), state };
    store.put_snapshot(key, snapshot).await.expect("kept");
    (key, lease)
}

pub async fn an_erased_session_keeps_its_hashes_and_nothing_else(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (key, lease) = full_session(&world, store, [1, 2]).await;
    let (other, _) = full_session(&world, store, [3, 4]).await;
    while store.catch_up(world.tenant, 100).await.expect("taken in") > 0 {}
    let before = whole(store, key).await;
    let last = before.last().expect("events").seq;
    let erased = store.erase(erasure(&world, key, &lease, last)).await.expect("erased");
    assert_eq!((erased.last_seq, erased.repeat), (last + 1, false));

    let after = whole(store, key).await;
    assert!(after[..before.len()].iter().all(|event| event.payload.is_none()), "no payload is left");
    let hashes = |events: &[portcullis_event::Event]| events.iter().map(|e| (e.seq, e.hash)).collect::<Vec<_>>();
    assert_eq!(hashes(&after)[..before.len()], hashes(&before), "every hash is");
    assert!(
        matches!(after.last().map(portcullis_event::Event::body), Some(Body::SessionErased(fact)) if fact.to_seq == last)
    );
    assert_sound(store, key).await;
    let head = head(store, key).await;
    assert_eq!(
        (head.status, head.blocked_n, head.lease_owner, head.next_due_at),
        (SessionStatus::Terminated, 0, None, None)
    );

    // No row of it is left, and every one of the other session is.
    assert_eq!(store.intents(key, false).await, Ok(Vec::new()));
    let asks = async |session| store.asks(world.tenant, AskFilter { session: Some(session), pending: false }).await;
    assert_eq!((asks(key.session).await.expect("asks").len(), asks(other.session).await.expect("asks").len()), (0, 1));
    let listed = store.sessions(world.tenant, 9).await.expect("a list");
    assert_eq!(listed.iter().map(|s| s.session_id).collect::<Vec<_>>(), [other.session]);
    assert_eq!(store.snapshot(key, 1).await, Ok(None));
    assert!(store.snapshot(other, 1).await.expect("a snapshot").is_some());
    let variables = store.records(world.tenant, VARIABLE).await.expect("rows");
    let ids: Vec<&str> = variables.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, [variable_id(other.session, "A")], "a sealed value goes with its session");
    let left: Vec<u128> = store
        .artifacts(world.tenant, None, 9)
        .await
        .expect("rows")
        .iter()
        .map(|row| row.artifact.id.as_u128())
        .collect();
    assert_eq!(left, [3, 4]);
    assert_eq!(store.blob(world.tenant, Digest::of(b"only of 1")).await, Ok(None));
    assert!(store.blob(world.tenant, Digest::of(b"of both")).await.expect("a blob").is_some(), "the other names it");
    let query = Query::new(&["zanzibar"]).expect("a word");
    let hits = store.search(world.tenant, &query, 9).await.expect("hits");
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit.session_id == other.session), "{hits:?}");

    // The ledger tells it, and everything verifies.
    deliver_outbox(store).await.expect("delivered");
    let ledger = SessionKey { tenant: world.tenant, session: ledger_of(world.tenant) };
    let told = whole(store, ledger).await.into_iter().any(|event| {
        matches!(event.body(), Body::LedgerSessionDeleted(fact) if fact.session_id == key.session && fact.seq == last + 1)
    });
    assert!(told, "the ledger names the erasure");
    let audit = verify_tenant(store, world.tenant, Some(&world.key), None).await.expect("an audit");
    assert!(audit.holds(), "{:?}", audit.faults);
}

pub async fn nothing_is_added_to_an_erased_session(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (key, lease) = full_session(&world, store, [1, 2]).await;
    let last = head(store, key).await.last_seq;
    // Only the holder of the lease erases, the whole log, and nobody says so without doing it.
    let mut old = erasure(&world, key, &Lease { fence: lease.fence - 1, ..lease.clone() }, last);
    assert!(matches!(store.erase(old.clone()).await, Err(StoreError::FenceLost { .. })));
    old = erasure(&world, key, &lease, last - 1);
    assert!(matches!(store.erase(old).await, Err(StoreError::NotTheirs { .. })));
    let lie = erasure(&world, key, &lease, last);
    assert!(matches!(store.commit(lie).await, Err(StoreError::NotTheirs { .. })));
    assert!(matches!(store.erase(world.input(key, "no erasure")).await, Err(StoreError::NotTheirs { .. })));
    assert!(whole(store, key).await.iter().all(|event| event.payload.is_some()), "nothing was erased");

    let commit = erasure(&world, key, &lease, last);
    store.erase(commit.clone()).await.expect("erased");
    assert!(store.erase(commit).await.expect("the same again").repeat);
    let refused = Err(StoreError::Erased(key.session));
    assert_eq!(store.commit(world.input(key, "more")).await, refused);
    assert_eq!(store.commit(world.work(key, &lease, world.inert_call("more"))).await, refused);
    assert_eq!(
        store.claim_session(key, world.owner(2), TTL).await.map(|claim| matches!(claim, Claim::Held { .. })),
        Err(StoreError::Erased(key.session))
    );
    let snapshot = Snapshot { seq: 3, code_version: 1, state: "{}".to_owned(), digest: Digest::of(b"{}") };
    store.put_snapshot(key, snapshot).await.expect("no error");
    assert_eq!(store.snapshot(key, 1).await, Ok(None), "nobody brings a snapshot back");
}

pub async fn what_a_policy_takes_becomes_a_tombstone_and_then_goes(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (key, _) = full_session(&world, store, [1, 2]).await;
    full_session(&world, store, [3, 4]).await;
    let id = ArtifactId::from_u128;
    let retain = async |change| -> Vec<u128> {
        let rows = store.retain(world.tenant, change).await.expect("changed");
        rows.iter().map(|row| row.artifact.id.as_u128()).collect()
    };
    let held = store.artifact_usage(world.tenant).await.expect("a number");
    assert_eq!(retain(Retain::Pin { artifact: id(3), pinned: true }).await, [3]);
    assert_eq!(retain(Retain::Pin { artifact: id(3), pinned: true }).await, [0u128; 0]);
    // Pinned, unknown and buried ones stay as they are.
    assert_eq!(retain(Retain::Bury(vec![id(2), id(3), id(9), id(1)])).await, [1, 2]);
    assert_eq!(retain(Retain::Bury(vec![id(1), id(2), id(3)])).await, [0u128; 0]);
    let row = store.artifact(world.tenant, id(1)).await.expect("a row").expect("it stays");
    assert_eq!((row.session, row.artifact.sha256, row.artifact.bytes), (key.session, Digest::of(b"only of 1"), 9));
    assert!(row.tombstone.is_some_and(|stone| !stone.freed));
    assert_eq!(store.artifact_usage(world.tenant).await, Ok(held), "the bytes are still held");

    let contents = vec![Digest::of(b"only of 1"), Digest::of(b"of both"), Digest::of(b"only of 3")];
    let free = |before| Retain::Free { contents: contents.clone(), before };
    assert_eq!(retain(free(row.tombstone.expect("one").at)).await, [0u128; 0], "not before its time");
    let later = world.clock.now().plus(Duration::from_secs(1));
    assert_eq!(retain(free(later)).await, [1], "what a living row has stays");
    assert_eq!(store.blob(world.tenant, contents[0]).await, Ok(None));
    assert!(store.blob(world.tenant, contents[1]).await.expect("a blob").is_some());
    assert_eq!(store.artifact_usage(world.tenant).await, Ok(held - 9));
    assert_eq!(retain(Retain::Pin { artifact: id(3), pinned: false }).await, [3]);
    assert_eq!(retain(Retain::Bury(vec![id(3), id(4)])).await, [3, 4]);
    assert_eq!(retain(free(world.clock.now().plus(Duration::from_secs(1)))).await, [1, 2, 3, 4]);
    assert_eq!(store.artifact_usage(world.tenant).await, Ok(0));
    assert!(store.retain(TenantId::from_u128(77), Retain::Bury(vec![id(1)])).await.expect("nothing").is_empty());
}
