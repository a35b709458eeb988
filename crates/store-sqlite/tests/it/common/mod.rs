//! A store in a scratch file whose time, ids and proofs of death are a test world's.

use std::path::{Path, PathBuf};

use portcullis_event::CheckpointKey;
use portcullis_store::testkit::World;
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};

/// A new store, where it is, and the folder that goes with the test.
pub fn scratch(world: &World, key: Option<CheckpointKey>) -> (SqliteStore, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store.db");
    (open(&path, world, key), path, folder)
}

/// The store in this file. Nothing here tests a power failure, so nobody waits for the disk.
pub fn open(path: &Path, world: &World, checkpoint_key: Option<CheckpointKey>) -> SqliteStore {
    SqliteStore::open(SqliteConfig {
        path: path.to_owned(),
        durability: Durability::Relaxed,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        liveness: world.liveness.clone(),
        checkpoint_key,
    })
    .expect("the store opens")
}
