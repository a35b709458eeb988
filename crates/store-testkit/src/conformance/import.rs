//! A log taken in from another store is the same log: bytes, digests, rows (store §11, F15).

use portcullis_base::{ArtifactId, ArtifactKind, ArtifactRef, Digest, Trust};
use portcullis_event::facts::ArtifactStored;
use portcullis_event::{Event, chain_hash};
use portcullis_store::{
    AskFilter, Blob, Import, Imported, Log as _, SessionKey, Store, StoreError, deliver_outbox, verify_tenant,
};

use super::rows::{Step, compare, play};
use super::{Make, assert_sound, setup, whole};
use crate::World;

/// A fixed history that reaches every row change; generated ones come from each backend's tests.
pub async fn f15_an_imported_log_has_equal_digests_and_rows(make: Make) {
    let steps: Vec<Step> = (0u8..=254).map(|i| (i.wrapping_mul(41), i.wrapping_mul(13))).collect();
    f15_of(make, &steps).await;
}

/// Plays `steps` in memory, takes the log into the backend and from there into another memory, and compares.
pub async fn f15_of(make: Make, steps: &[Step]) {
    let (world, backend) = setup(make);
    let source = world.memory();
    let key = play(&world, &source, steps).await;
    let there = &*backend.store;
    carry(&world, &source, there, key).await;
    // The new store goes on with it: a later fence, the same chain.
    let fence = world.claim(there, key, 2).await.expect("a lease").fence;
    let earlier = whole(there, key).await.iter().filter_map(|event| event.fence).max();
    assert!(earlier.is_none_or(|earlier| earlier < fence), "S3 holds across the move");
    there.commit(world.input(key, "after the move")).await.expect("an append");
    assert_sound(there, key).await;
    carry(&world, there, &world.memory(), key).await;
}

async fn carry(world: &World, from: &dyn Store, to: &dyn Store, key: SessionKey) {
    let events = whole(from, key).await;
    let import = Import { key, events: events.clone(), blobs: Vec::new(), expired: Default::default() };
    let last_seq = events.len() as u64;
    assert_eq!(to.import(import.clone()).await, Ok(Imported { last_seq, repeat: false }));
    assert_eq!(to.import(import).await, Ok(Imported { last_seq, repeat: true }), "again is a no-op");
    assert_eq!(whole(to, key).await, events);
    compare(to, key).await;
    let filter = AskFilter { session: Some(key.session), pending: false };
    assert_eq!(to.intents(key, false).await, from.intents(key, false).await);
    assert_eq!(to.asks(key.tenant, filter).await, from.asks(key.tenant, filter).await);
    assert_eq!(to.wakes(key, false).await, from.wakes(key, false).await);
    let heads = (from.head(key).await.expect("a head").expect("it"), to.head(key).await.expect("a head").expect("it"));
    assert_eq!(
        (heads.0.last_hash, heads.0.blocked_n, heads.0.wake),
        (heads.1.last_hash, heads.1.blocked_n, heads.1.wake)
    );
    deliver_outbox(to).await.expect("the ledger is told");
    let audit = verify_tenant(to, key.tenant, Some(&world.key), None).await.expect("an audit");
    assert!(audit.holds(), "the ledger names it and its checkpoint holds: {:?}", audit.faults);
}

pub async fn an_import_is_whole_and_true_or_nothing(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let source = world.memory();
    let key = world.session(&source).await.expect("a session");
    for text in ["one", "two"] {
        source.commit(world.input(key, text)).await.expect("an append");
    }
    let events = whole(&source, key).await;
    let taken = async |events: Vec<Event>| {
        store.import(Import { key, events, blobs: Vec::new(), expired: Default::default() }).await
    };
    let mut altered = events.clone();
    altered[1].payload = Some("{}".into());
    // A fence from which no lease could be counted on.
    let mut far = events.clone();
    far[2].fence = Some(i64::MAX.unsigned_abs());
    far[2].hash = chain_hash(&far[2]);
    let forms = [Vec::new(), altered, events[1..].to_vec(), vec![events[0].clone(), events[2].clone()], far];
    for form in forms {
        let answer = taken(form).await;
        assert!(matches!(answer, Err(StoreError::NotImported { .. })), "{answer:?}");
        assert_eq!(store.head(key).await, Ok(None), "nothing was written");
    }
    assert_eq!(store.outbox(9).await, Ok(Vec::new()));

    // A log that goes on elsewhere is another log: neither replaces the other.
    taken(events[..2].to_vec()).await.expect("the first two events are a log");
    assert_eq!(taken(events.clone()).await, Err(StoreError::SessionExists(key.session)));
    assert_eq!(whole(store, key).await, events[..2]);

    // An erased payload stays erased, and its chain holds.
    let other = world.session(&source).await.expect("a session");
    source.commit(world.input(other, "erased")).await.expect("an append");
    let mut erased = whole(&source, other).await;
    erased[1].payload = None;
    store
        .import(Import { key: other, events: erased.clone(), blobs: Vec::new(), expired: Default::default() })
        .await
        .expect("taken in");
    assert_eq!(whole(store, other).await, erased);
    assert_sound(store, other).await;
}

pub async fn an_import_replaces_no_row_of_another_session(make: Make) {
    let (world, backend) = setup(make);
    let (store, source) = (&*backend.store, world.memory());
    let bytes = b"evidence".to_vec();
    let artifact = ArtifactRef {
        id: ArtifactId::from_u128(1),
        kind: ArtifactKind::CommandOutput,
        mime: "text/plain".to_owned(),
        bytes: bytes.len() as u64,
        lines: None,
        sha256: Digest::of(&bytes),
        complete: true,
        trust: Trust::ToolOutputUntrusted,
        expires_at: None,
    };
    let parked = world.parked();
    let mut logs = Vec::new();
    for _ in 0..2 {
        let key = world.session(&source).await.expect("a session");
        let lease = world.claim(&source, key, 1).await.expect("a lease");
        let stored = world.draft(&ArtifactStored { artifact: artifact.clone(), intent_id: None });
        source.commit(world.work(key, &lease, vec![stored])).await.expect("an append");
        logs.push(key);
    }
    let import = async |key: SessionKey, bytes: &[u8]| {
        let blobs = vec![Blob { sha256: artifact.sha256, bytes: bytes.to_vec() }];
        store.import(Import { key, events: whole(&source, key).await, blobs, expired: Default::default() }).await
    };
    assert!(matches!(import(logs[0], b"another").await, Err(StoreError::NotImported { .. })), "bytes have their hash");
    import(logs[0], &bytes).await.expect("taken in");
    let row = store.artifact(world.tenant, artifact.id).await.expect("a row").expect("the row came along");
    assert_eq!((row.session, row.artifact.clone()), (logs[0].session, artifact.clone()));
    assert_eq!(store.blob(world.tenant, artifact.sha256).await, Ok(Some(bytes.clone())));
    assert!(matches!(import(logs[1], &bytes).await, Err(StoreError::NotImported { .. })));
    assert_eq!(store.head(logs[1]).await, Ok(None));

    // The same ask in a session here and in a log from elsewhere.
    let here = world.session(store).await.expect("a session");
    let lease = world.claim(store, here, 1).await.expect("a lease");
    store.commit(world.work(here, &lease, parked.events.clone())).await.expect("an append");
    let there = world.session(&source).await.expect("a session");
    let lease = world.claim(&source, there, 1).await.expect("a lease");
    source.commit(world.work(there, &lease, parked.events)).await.expect("an append");
    let answer = store
        .import(Import {
            key: there,
            events: whole(&source, there).await,
            blobs: Vec::new(),
            expired: Default::default(),
        })
        .await;
    assert!(matches!(answer, Err(StoreError::NotImported { .. })), "{answer:?}");
    let ask = store.ask(world.tenant, parked.ask).await.expect("a row").expect("the ask");
    assert_eq!(ask.session_id, here.session);
}
