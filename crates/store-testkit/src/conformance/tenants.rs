//! No row of one tenant is reachable by a call that carries another (S14).

use std::time::Duration;

use portcullis_base::{ArtifactId, ArtifactKind, ArtifactRef, Digest, LocationId, TenantId, Trust};
use portcullis_event::facts::{Priority, Reply};
use portcullis_event::ledger_of;
use portcullis_store::{
    ArtifactRow, AskFilter, Blob, Commit, Idempotency, LockKey, RecordWrite, SessionKey, Snapshot, StoreError,
};
use serde_json::json;

use super::{Make, TTL, setup};

pub async fn s14_no_call_reaches_another_tenant(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let parked = world.parked();
    let bytes = b"small".to_vec();
    let sha256 = Digest::of(&bytes);
    let artifact = ArtifactRef {
        id: ArtifactId::from_u128(5),
        kind: ArtifactKind::File,
        mime: "text/plain".to_owned(),
        bytes: 5,
        lines: Some(1),
        sha256,
        complete: true,
        trust: Trust::ToolOutputUntrusted,
        expires_at: None,
    };
    let lock = LockKey { location: LocationId::from_u128(1), key: "fs:/a".to_owned() };
    let idempotency = Idempotency {
        route: "r".to_owned(),
        key: "k".to_owned(),
        body_hash: Digest::of(b"b"),
        response: json!("theirs"),
    };
    let record = RecordWrite { kind: "rule".to_owned(), id: "a".to_owned(), expected: None, body: Some(json!(1)) };
    let (wake, queued) = world.wake(Duration::ZERO, Priority::High, None);
    let mut commit = world.work(key, &lease, [parked.events, vec![queued]].concat());
    commit.sealed = vec![(parked.intent, vec![9])];
    commit.blobs = vec![Blob { sha256, bytes }];
    commit.artifacts = vec![ArtifactRow::new(key.session, artifact.clone())];
    commit.take = vec![lock.clone()];
    commit.idempotency = Some(idempotency.clone());
    commit.records = vec![record.clone()];
    commit.idle = true;
    store.commit(commit).await.expect("an append");
    let snapshot = Snapshot { seq: 1, code_version: 1, state: "{}".to_owned(), digest: Digest::of(b"{}") };
    store.put_snapshot(key, snapshot).await.expect("a snapshot");

    // The other tenant knows every id.
    let b = TenantId::from_u128(77);
    let key_b = SessionKey { tenant: b, session: key.session };
    let filter = AskFilter { session: Some(key.session), pending: false };
    assert_eq!(store.read(key_b, 0, 100).await, Ok(Vec::new()));
    assert_eq!(store.head(key_b).await, Ok(None));
    assert_eq!(store.sessions(b, 100).await, Ok(Vec::new()));
    assert_eq!(store.logs(b).await, Ok(Vec::new()));
    assert_eq!(store.intents(key_b, false).await, Ok(Vec::new()));
    assert_eq!(store.asks(b, filter).await, Ok(Vec::new()));
    assert_eq!(store.ask(b, parked.ask).await, Ok(None));
    assert_eq!(store.wakes(key_b, false).await, Ok(Vec::new()));
    assert_eq!(store.sealed(key_b, parked.intent).await, Ok(None));
    assert_eq!(store.artifact(b, artifact.id).await, Ok(None));
    assert_eq!(store.artifacts(b, None, 9).await, Ok(Vec::new()));
    assert_eq!(store.blob(b, sha256).await, Ok(None));
    assert_eq!(store.artifact_usage(b).await, Ok(0));
    assert_eq!(store.checkpoints(key_b).await, Ok(Vec::new()));
    assert_eq!(store.snapshot(key_b, 1).await, Ok(None));
    assert_eq!(store.record(b, "rule", "a").await, Ok(None));
    assert_eq!(store.records(b, "rule").await, Ok(Vec::new()));
    let none = StoreError::NoSession(key.session);
    assert_eq!(store.claim_session(key_b, world.owner(2), TTL).await, Err(none.clone()));
    assert_eq!(store.claim(b, world.owner(2), 9, TTL).await, Ok(Vec::new()));
    assert_eq!(store.renew(key_b, lease.fence, TTL).await, Err(none.clone()));
    assert_eq!(store.release(key_b, lease.fence, None).await, Err(none.clone()));
    assert_eq!(store.commit(world.input(key_b, "x")).await, Err(none));

    // And may use the same ids for itself: nothing of A is in its way, nothing of A changes.
    store.commit(world.creation(key_b)).await.expect("its own session with that id");
    let answer = Commit::client(key_b, world.append(), vec![world.replied(parked.ask, Reply::AllowOnce)]);
    assert_eq!(store.commit(answer).await, Err(StoreError::NoAsk(parked.ask)));
    let cancel = Commit::client(key_b, world.append(), vec![world.cancelled(wake)]);
    assert_eq!(store.commit(cancel).await, Err(StoreError::NoWake(wake)));
    let mut own = world.input(key_b, "own");
    own.take = vec![lock];
    own.idempotency = Some(Idempotency { response: json!("ours"), ..idempotency });
    own.records = vec![RecordWrite { expected: Some(0), ..record }];
    let own = store.commit(own).await.expect("no lock, key or record of A is seen");
    assert_eq!((own.repeat, own.response), (false, Some(json!("ours"))));
    let head = store.head(key).await.expect("a head").expect("A's session");
    assert_eq!((head.fence, head.lease_owner, head.last_seq), (1, Some(lease.owner), 5));
    assert_ne!(ledger_of(b), ledger_of(key.tenant));
}
