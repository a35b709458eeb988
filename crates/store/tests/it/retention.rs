//! Which artifacts a policy takes: a function of the rows, the heads and the time.

use std::time::Duration;

use portcullis_base::{ArtifactId, ArtifactKind, ArtifactRef, Clock as _, Digest, Trust};
use portcullis_store::{
    ArtifactRow, HeldArtifacts, Log as _, MemoryStore, ORPHAN_GRACE, Queue as _, Retain, Retention, RetentionLimit,
    SessionKey,
};
use portcullis_store_testkit::World;

fn artifact(id: u128, content: &str, bytes: u64) -> ArtifactRef {
    ArtifactRef {
        id: ArtifactId::from_u128(id),
        kind: ArtifactKind::CommandOutput,
        mime: "text/plain".to_owned(),
        bytes,
        lines: None,
        sha256: Digest::of(content.as_bytes()),
        complete: true,
        trust: Trust::ToolOutputUntrusted,
        expires_at: None,
    }
}

async fn named(world: &World, store: &MemoryStore, key: SessionKey, artifacts: &[ArtifactRef]) {
    let mut commit = world.input(key, "names them");
    commit.artifacts = artifacts.iter().map(|artifact| ArtifactRow::new(key.session, artifact.clone())).collect();
    store.commit(commit).await.expect("an append");
}

async fn taken(world: &World, store: &MemoryStore, policy: Retention) -> Vec<(u128, RetentionLimit)> {
    let now = world.clock.now();
    let held = HeldArtifacts::read(store, world.tenant, now).await.expect("read");
    held.expired(&policy, now).into_iter().map(|(row, why)| (row.artifact.id.as_u128(), why)).collect()
}

#[tokio::test]
async fn only_what_is_over_a_limit_goes_and_nothing_pinned_or_at_work() {
    let world = World::new(1);
    let store = world.memory();
    let (old, young) = (world.session(&store).await.expect("one"), world.session(&store).await.expect("two"));
    named(&world, &store, old, &[artifact(1, "a", 10), artifact(2, "b", 30), artifact(3, "b", 30)]).await;
    let hour = Duration::from_secs(3_600);
    world.clock.advance(10 * hour);
    named(&world, &store, young, &[artifact(4, "c", 5), artifact(5, "d", 20)]).await;
    assert_eq!(taken(&world, &store, Retention::default()).await, [], "no policy, nothing goes");
    let idle = Retention { idle: Some(hour), ..Retention::default() };
    assert_eq!(
        taken(&world, &store, idle).await,
        [(2, RetentionLimit::Idle), (3, RetentionLimit::Idle), (1, RetentionLimit::Idle)],
        "largest first"
    );
    let count = Retention { count: Some(3), ..Retention::default() };
    assert_eq!(
        taken(&world, &store, count).await,
        [(2, RetentionLimit::Count), (1, RetentionLimit::Count)],
        "the newest stay"
    );
    // Equal contents count once: 20 + 5 + 30 fit, ten more do not.
    let bytes = Retention { bytes: Some(55), ..Retention::default() };
    assert_eq!(taken(&world, &store, bytes).await, [(1, RetentionLimit::Bytes)]);
    let change = Retain::Pin { artifact: ArtifactId::from_u128(2), pinned: true };
    store.retain(world.tenant, change).await.expect("pinned");
    assert_eq!(taken(&world, &store, idle).await, [(3, RetentionLimit::Idle), (1, RetentionLimit::Idle)]);
    // While someone holds the session, or is asked something in it, it is not idle.
    let lease = world.claim(&store, old, 1).await.expect("a lease");
    assert_eq!(taken(&world, &store, idle).await, []);
    store.release(old, lease.fence, None).await.expect("released");
    world.clock.advance(2 * hour);
    assert_eq!(taken(&world, &store, idle).await.len(), 4, "both are idle now");
    let lease = world.claim(&store, old, 1).await.expect("a lease");
    store.commit(world.work(old, &lease, world.parked().events)).await.expect("an ask");
    store.release(old, lease.fence, None).await.expect("released");
    world.clock.advance(2 * hour);
    assert_eq!(taken(&world, &store, idle).await, [(5, RetentionLimit::Idle), (4, RetentionLimit::Idle)]);
}

#[tokio::test]
async fn bytes_go_after_the_grace_and_only_if_no_other_row_has_them() {
    let world = World::new(1);
    let store = world.memory();
    let key = world.session(&store).await.expect("a session");
    named(&world, &store, key, &[artifact(1, "a", 10), artifact(2, "b", 30), artifact(3, "b", 30)]).await;
    let bury = |ids: &[u128]| Retain::Bury(ids.iter().copied().map(ArtifactId::from_u128).collect());
    store.retain(world.tenant, bury(&[1, 2])).await.expect("buried");
    let freeable = async || -> Vec<u128> {
        let now = world.clock.now();
        let held = HeldArtifacts::read(&store, world.tenant, now).await.expect("read");
        held.freeable(now).iter().map(|row| row.artifact.id.as_u128()).collect()
    };
    assert_eq!(freeable().await, [0u128; 0]);
    world.clock.advance(ORPHAN_GRACE + Duration::from_secs(1));
    assert_eq!(freeable().await, [1], "3 lives and has the bytes of 2");
    store.retain(world.tenant, bury(&[3])).await.expect("buried");
    assert_eq!(freeable().await, [1], "the youngest tombstone counts");
    world.clock.advance(ORPHAN_GRACE + Duration::from_secs(1));
    assert_eq!(freeable().await, [2, 1], "each content once, largest first");
}
