//! What the tests inside this crate share.

use std::path::Path;

use portcullis_store_testkit::World;

use crate::{Durability, SqliteConfig};

/// A store in this file whose time, ids and proofs of death are the world's.
pub(crate) fn config(world: &World, path: &Path) -> SqliteConfig {
    SqliteConfig {
        path: path.to_owned(),
        durability: Durability::Full,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        liveness: world.liveness.clone(),
        checkpoint_key: Some(world.key.clone()),
    }
}
