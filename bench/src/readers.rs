//! Readers that wait for a session each, while commits go to one of them: only its own reader wakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use portcullis_store::{Log as _, Notices as _, SessionKey, Topic};
use portcullis_store_sqlite::SqliteStore;
use portcullis_store_testkit::World;
use tokio::task::JoinSet;

use crate::lists::open;
use crate::table::Row;

const READERS: usize = 1_000;
const COMMITS: usize = 400;

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let world = World::new(1);
    let store = open(&world, &folder.path().join("readers.db"))?;
    let key = world.session(&store).await?;
    let mut sessions = vec![key];
    while sessions.len() < READERS {
        sessions.push(world.session(&store).await?);
    }
    // These also let the hints about the creations go by: a commit is answered before its hint is given.
    commits(&world, &store, key).await?;
    let woken = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let mut readers = JoinSet::new();
    for (n, session) in sessions.into_iter().enumerate() {
        let (mut changes, woken) = (store.changes_of(Topic::Session(session)), Arc::clone(&woken));
        readers.spawn(async move {
            while changes.changed().await.is_ok() {
                woken[usize::from(n > 0)].fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    tokio::task::yield_now().await;
    commits(&world, &store, key).await?;
    readers.abort_all();
    let [own, others] = [0, 1].map(|at: usize| woken[at].load(Ordering::SeqCst));
    Ok(vec![Row {
        what: format!("{READERS} readers wait for a session each, {COMMITS} commits to one of them"),
        measured: format!("{others} others wake, its own {own} times"),
        anchor: "counted".to_owned(),
        must: "0 others".to_owned(),
        reached: others == 0 && own > 0,
    }])
}

async fn commits(world: &World, store: &SqliteStore, key: SessionKey) -> Result<()> {
    for _ in 0..COMMITS {
        store.commit(world.input(key, "more")).await?;
    }
    Ok(())
}
