//! Full text over a million events, or as many as could be made in time.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use portcullis_base::limits::APPEND_EVENTS;
use portcullis_store::{Log as _, Query, Search as _};
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};
use portcullis_store_testkit::World;

use crate::table::{Row, millis, p50};

const EVENTS: u64 = 1_000_000;
const SESSIONS: usize = 200;
/// Making the rows and the index is not what is measured.
const PATIENCE: Duration = Duration::from_secs(240);
const BATCH: usize = 5_000;

/// Common and rare words, phrases, and words that never meet.
const QUERIES: &[&[&str]] = &[
    &["read"],
    &["module7"],
    &["src/module7/file42.rs"],
    &["needle"],
    &["nowhere"],
    &["error", "module9"],
    &["error", "needle"],
    &["module1", "module2"],
    &["the quick fix"],
];

pub async fn run() -> Result<Vec<Row>> {
    let world = World::new(1);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("portcullis.db");
    let store = SqliteStore::open(SqliteConfig {
        path: path.clone(),
        durability: Durability::Relaxed,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        liveness: world.liveness.clone(),
        checkpoint_key: None,
    })?;
    let begun = Instant::now();
    let mut keys = Vec::new();
    for _ in 0..SESSIONS {
        keys.push(world.session(&store).await?);
    }
    let mut made = 0;
    while made < EVENTS && begun.elapsed() < PATIENCE {
        let mut commit = world.input(keys[made as usize / APPEND_EVENTS % SESSIONS], "the first of many");
        for n in made..made + APPEND_EVENTS as u64 - 1 {
            world.clock.advance(Duration::from_millis(3));
            let text = format!(
                "call {n}: the quick {} of src/module{}/file{}.rs {}",
                if n % 3 == 0 { "fix" } else { "error" },
                n % 50,
                n % 997,
                if n % 100_003 == 0 { "needle" } else { "as before" },
            );
            commit.events.push(world.queued(&text));
        }
        made += commit.events.len() as u64;
        store.commit(commit).await?;
    }
    let (written, bytes) = (begun.elapsed(), std::fs::metadata(&path)?.len());
    let begun_index = Instant::now();
    let mut taken = 0;
    while begun.elapsed() < PATIENCE {
        match store.catch_up(world.tenant, BATCH).await? {
            0 => break,
            more => taken += more,
        }
    }
    let took = begun_index.elapsed();
    let index = std::fs::metadata(&path)?.len().saturating_sub(bytes);
    let mut samples = Vec::new();
    let mut slowest = (Duration::ZERO, "");
    for round in 0..20 {
        for words in QUERIES {
            let query = Query::new(words).context("the words")?;
            let start = Instant::now();
            store.search(world.tenant, &query, 20).await?;
            let span = start.elapsed();
            // The first round warms the cache.
            if round > 0 {
                samples.push(span);
                slowest = slowest.max((span, words[0]));
            }
        }
    }
    let middle = p50(samples);
    Ok(vec![Row {
        what: format!(
            "full-text search over {taken} events, 9 queries; written in {:.0} s, taken in at {:.0} events/s, {} bytes of \
             index an event; slowest {} (`{}`)",
            written.as_secs_f64(),
            taken as f64 / took.as_secs_f64(),
            index / taken.max(1),
            millis(slowest.0),
            slowest.1,
        ),
        measured: format!("{} p50", millis(middle)),
        anchor: "–".to_owned(),
        must: "< 50 ms p50 over 1,000,000".to_owned(),
        reached: middle < Duration::from_millis(50) && taken >= EVENTS,
    }])
}
