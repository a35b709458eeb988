//! A store in a scratch file whose time, ids and proofs of death are a test world's.

use std::path::{Path, PathBuf};

use portcullis_event::CheckpointKey;
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};
use portcullis_store_testkit::World;

/// A new store, where it is, and the folder that goes with the test.
pub fn scratch(world: &World, key: Option<CheckpointKey>) -> (SqliteStore, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store.db");
    (open(&path, world, key), path, folder)
}

/// The store in this file.
pub fn open(path: &Path, world: &World, checkpoint_key: Option<CheckpointKey>) -> SqliteStore {
    SqliteStore::open(config(path, world, checkpoint_key)).expect("the store opens")
}

/// How it is opened. Few tests are about a power failure, so nobody else waits for the disk.
pub fn config(path: &Path, world: &World, checkpoint_key: Option<CheckpointKey>) -> SqliteConfig {
    SqliteConfig {
        path: path.to_owned(),
        durability: Durability::Relaxed,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        liveness: world.liveness.clone(),
        checkpoint_key,
    }
}

/// The same, synced.
pub fn synced(path: &Path, world: &World) -> SqliteConfig {
    SqliteConfig { durability: Durability::Full, ..config(path, world, Some(world.key.clone())) }
}
