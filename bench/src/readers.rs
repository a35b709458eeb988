//! Readers that wait for a session each, while commits go to one of them: only its own reader wakes, and the commits cost
//! what they cost without anybody waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use portcullis_store::{Log as _, Notices as _, SessionKey, Topic};
use portcullis_store_sqlite::SqliteStore;
use portcullis_store_testkit::World;
use tokio::task::JoinSet;

use crate::lists::open;
use crate::table::{Row, millis, p50};

const READERS: usize = 1_000;
const COMMITS: usize = 400;

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let world = World::new(1);
    let store = open(&world, &folder.path().join("readers.db"))?;
    let key = world.session(&store).await?;
    let alone = commits(&world, &store, key).await?;
    let woken = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let mut readers = JoinSet::new();
    for n in 0..READERS {
        let session = if n == 0 { key } else { world.session(&store).await? };
        let (mut changes, woken) = (store.changes_of(Topic::Session(session)), Arc::clone(&woken));
        readers.spawn(async move {
            while changes.changed().await.is_ok() {
                woken[usize::from(n > 0)].fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    tokio::task::yield_now().await;
    let watched = commits(&world, &store, key).await?;
    readers.abort_all();
    let [own, others] = [0, 1].map(|at: usize| woken[at].load(Ordering::SeqCst));
    Ok(vec![Row {
        what: format!("{READERS} readers wait for a session each, {COMMITS} commits to one of them"),
        measured: format!("{others} others wake, its own {own} times; {} a commit, p50", millis(watched)),
        anchor: format!("{} with nobody waiting", millis(alone)),
        must: "0 others".to_owned(),
        reached: others == 0 && own > 0,
    }])
}

async fn commits(world: &World, store: &SqliteStore, key: SessionKey) -> Result<Duration> {
    let mut spans = Vec::new();
    for _ in 0..COMMITS {
        let begun = Instant::now();
        store.commit(world.input(key, "more")).await?;
        spans.push(begun.elapsed());
    }
    Ok(p50(spans))
}
