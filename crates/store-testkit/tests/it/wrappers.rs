//! The kit itself: a fault strikes where it was planned, and counts are exact.

use std::sync::Arc;
use std::time::Duration;

use portcullis_store::{Log as _, Queue as _, StoreError};
use portcullis_store_testkit::{CountingStore, Fault, FaultKind, FaultyStore, StoreCallCounts, World};

/// Creates, claims, works, renews, releases: five calls that write.
async fn scenario(world: &World, store: &FaultyStore<portcullis_store::MemoryStore>) -> Result<(), StoreError> {
    let key = world.session(store).await?;
    let lease = world.claim(store, key, 1).await?;
    store.commit(world.work(key, &lease, world.inert_call("x"))).await?;
    store.renew(key, lease.fence, Duration::from_secs(30)).await?;
    store.release(key, lease.fence, Some(u64::MAX)).await
}

#[tokio::test]
async fn f02_every_call_of_a_scenario_can_be_made_to_fail_in_every_way() {
    for kind in FaultKind::ALL {
        let mut nth = 1;
        loop {
            let world = World::new(nth);
            let inner = Arc::new(world.memory());
            let store = FaultyStore::new(inner.clone(), Some(Fault { nth, kind }));
            let answer = scenario(&world, &store).await;
            if !store.struck() {
                assert_eq!(answer, Ok(()));
                break;
            }
            let logs = inner.logs(world.tenant).await.expect("the inner store lives");
            let events = match logs.first() {
                Some(session) => {
                    let key = portcullis_store::SessionKey { tenant: world.tenant, session: *session };
                    inner.read(key, 0, 100).await.expect("the inner store lives").len()
                }
                None => 0,
            };
            let after = matches!(kind, FaultKind::ErrorAfter | FaultKind::CrashAfter);
            let wanted = match (nth, after) {
                (1, false) => 0,
                (1, true) | (2, _) | (3, false) => 1,
                _ => 10,
            };
            assert_eq!(events, wanted, "{kind:?} at call {nth}");
            let crashed = matches!(kind, FaultKind::CrashBefore | FaultKind::CrashAfter);
            match answer {
                Err(StoreError::Ambiguous(_)) => assert_eq!(kind, FaultKind::ErrorAfter),
                Err(StoreError::Unavailable(why)) => assert_eq!(why == "crashed", crashed, "{why}"),
                other => panic!("{kind:?} at call {nth}: {other:?}"),
            }
            assert_eq!(store.has_crashed(), crashed);
            assert_eq!(store.logs(world.tenant).await.is_err(), crashed, "a dead process reads nothing either");
            nth += 1;
        }
        assert_eq!(nth, 6, "five calls, and no sixth");
    }
}

#[tokio::test]
async fn counts_are_of_what_was_written() {
    let world = World::new(1);
    let store = CountingStore::new(Arc::new(world.memory()));
    let key = world.session(&store).await.expect("a session");
    let lease = world.claim(&store, key, 1).await.expect("a lease");
    let call = world.work(key, &lease, world.inert_call("x"));
    store.commit(call.clone()).await.expect("an append");
    assert!(store.commit(call).await.expect("a repeat").repeat);
    let mut stale = lease.clone();
    stale.fence = 9;
    store.commit(world.work(key, &stale, world.inert_call("x"))).await.expect_err("another fence");
    store.head(key).await.expect("a head");
    store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
    let wanted = StoreCallCounts { commits: 2, claims: 1, renews: 0, releases: 1, writes: 0, reads: 1 };
    assert_eq!(store.counts(), wanted);
}
