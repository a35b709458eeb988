//! The in-memory backend keeps every rule of the suite.

use std::sync::Arc;

use portcullis_store::conformance::{Backend, s15_of};
use portcullis_store::testkit::World;
use proptest::prelude::*;

fn memory(world: &World) -> Backend {
    Backend::new(Arc::new(world.memory()), ())
}

portcullis_store::conformance!(memory);

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s15_rows_equal_the_fold_of_any_history(steps in prop::collection::vec(any::<(u8, u8)>(), 0..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(s15_of(memory, &steps));
    }
}
