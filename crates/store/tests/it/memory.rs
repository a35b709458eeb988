//! The in-memory backend keeps every rule of the suite.

use std::sync::Arc;

use portcullis_base::{Clock as _, Digest};
use portcullis_event::Event;
use portcullis_store::{Blob, Import, Log as _, Plan, plan_import};
use portcullis_store_testkit::World;
use portcullis_store_testkit::conformance::{Backend, f06_of, f17_of, s15_of};
use proptest::prelude::*;

fn memory(world: &World) -> Backend {
    Backend::new(Arc::new(world.memory()), ())
}

portcullis_store_testkit::conformance!(memory);

#[test]
fn f06_f13_each_of_a_hundred_thousand_wakes_due_at_once_is_consumed_once() {
    f06_of(memory, 2_000, 50);
}

#[test]
fn f17_whatever_the_seed_a_tenant_cannot_tell_that_there_is_another() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for seed in 1..=16 {
        runtime.block_on(f17_of(memory, seed * 100));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s15_rows_equal_the_fold_of_any_history(steps in prop::collection::vec(any::<(u8, u8)>(), 0..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(s15_of(memory, &steps));
    }
}

/// An export may hold a GiB of events and many contents: what is planned shares them with what was read.
#[tokio::test]
async fn an_import_is_held_once() {
    let world = World::new(3);
    let store = world.memory();
    let key = world.session(&store).await.expect("a session");
    store.commit(world.input(key, "some words")).await.expect("an append");
    let events = store.read(key, 0, 100).await.expect("a log");
    let bytes = b"a menu".to_vec();
    let blobs = vec![Blob { sha256: Digest::of(&bytes), bytes }];
    let import = Import { key, events, blobs, expired: Default::default() };
    let plan = Plan {
        now: world.clock.now(),
        ids: &*world.ids,
        key: None,
        head: None,
        ask: &|_| None,
        intent: &|_| None,
        wake: &|_| None,
        wakes: &Default::default,
        locks: &|_| Vec::new(),
    };
    let (commit, planned) = plan_import(&import, plan, &|_| false).expect("a sound log").expect("a new one");
    assert!(commit.blobs.is_empty(), "a backend writes them from where they are");
    assert_eq!(planned.events.len(), 2);
    for (read, planned) in import.events.iter().zip(&planned.events) {
        let at = |event: &Event| event.payload.as_deref().expect("not erased").as_ptr();
        assert_eq!(at(read), at(planned), "one copy of event {}", read.seq);
    }
    let there = world.memory();
    let sha256 = import.blobs[0].sha256;
    there.import(import).await.expect("taken in");
    assert_eq!(there.blob(key.tenant, sha256).await.expect("a look").as_deref(), Some(&b"a menu"[..]));
}
