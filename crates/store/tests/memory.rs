//! The in-memory backend keeps every rule of the suite.

use std::sync::Arc;

use portcullis_store::conformance::{Backend, f06_of, f17_of, s15_of};
use portcullis_store::testkit::World;
use proptest::prelude::*;

fn memory(world: &World) -> Backend {
    Backend::new(Arc::new(world.memory()), ())
}

portcullis_store::conformance!(memory);

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
