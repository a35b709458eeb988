//! SQLite keeps every rule of the suite.

use crate::common;

use std::sync::Arc;

use portcullis_store_testkit::World;
use portcullis_store_testkit::conformance::{Backend, f06_of, f15_of, f17_of, s15_of};
use proptest::prelude::*;

fn sqlite(world: &World) -> Backend {
    let (store, _, folder) = common::scratch(world, Some(world.key.clone()));
    Backend::new(Arc::new(store), folder)
}

portcullis_store_testkit::conformance!(sqlite);

#[test]
fn f06_f13_each_of_many_wakes_due_at_once_is_consumed_once() {
    f06_of(sqlite, 150, 20);
}

#[test]
fn f17_whatever_the_seed_a_tenant_cannot_tell_that_there_is_another() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for seed in 1..=4 {
        runtime.block_on(f17_of(sqlite, seed * 100));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s15_rows_equal_the_fold_of_any_history(steps in prop::collection::vec(any::<(u8, u8)>(), 0..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(s15_of(sqlite, &steps));
    }

    #[test]
    fn f15_any_history_moves_between_backends_with_equal_digests(steps in prop::collection::vec(any::<(u8, u8)>(), 0..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(f15_of(sqlite, &steps));
    }
}
