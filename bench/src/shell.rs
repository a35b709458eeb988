//! Commands in a shell that is open, and one that prints a lot.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use portcullis::{Runtime, SessionId};
use portcullis_pipeline::Session;
use portcullis_store_sqlite::SqliteStore;
use serde_json::json;
use tempfile::TempDir;

use crate::anchor::{Key, Rows};
use crate::asked::{allowed, carry_out};
use crate::memory::Peak;
use crate::table::{Row, millis, p50};
use crate::world::{artifacts, call, hold, sqlite};

const ROUNDS: u128 = 200;
/// What a command in an open shell may take beyond its two commits.
const BEYOND: Duration = Duration::from_millis(2);
const PRINTED: u64 = 768 << 20;
/// What this process may grow by while it captures all that.
const GROWTH_KIB: i64 = 16 << 10;
/// A call that hangs is a finding, not a reason to hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// A workspace, a store on disk and a session in it that stays claimed.
struct World {
    folder: TempDir,
    store: Arc<SqliteStore>,
    runtime: Runtime,
    session: Session,
}

impl World {
    async fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace)?;
        let store = sqlite(folder.path())?;
        let runtime =
            Runtime::builder().store(store.clone(), artifacts(folder.path())?).workspace(&workspace).build()?;
        let session: SessionId = runtime.create_session("bench").await?;
        let session = hold(&runtime, session).await?;
        Ok(Self { folder, store, runtime, session })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn end(self) -> Result<()> {
        self.session.release().await?;
        ensure!(
            tokio::time::timeout(PATIENCE, self.runtime.shutdown()).await.is_ok(),
            "the runtime did not shut down: a shell does not end"
        );
        Ok(())
    }
}

pub async fn run() -> Result<Vec<Row>> {
    Ok(vec![printed().await?, open_shell().await?])
}

async fn open_shell() -> Result<Row> {
    let world = World::new().await?;
    let input = json!({"command": "true"});
    let opened = call(&world.session, 1, "shell_open", "{}".to_owned()).await?;
    ensure!(opened.ok(), "shell_open works: {}", opened.session_view().summary);
    let ask = allowed(&world.runtime, &world.session, 2, "shell_exec", &input).await?;
    carry_out(&world.session, ask).await?;
    let appends = Rows::of_last_appends(&world.path("portcullis.db"), 2)?.into_iter().zip([Key::Frees, Key::Takes]);
    let commits: Vec<Rows> = appends.map(|(rows, key)| rows.and_key(key)).rev().collect();
    let plain = commits[0].fresh(&world.path("plain.db"))?;
    let mut seq = 1_000_000;
    let (mut ours, mut written) = (Vec::new(), Vec::new());
    let mut a_call = 0;
    for n in 0..ROUNDS {
        let ask = allowed(&world.runtime, &world.session, 1_000 + n, "shell_exec", &input).await?;
        let before = world.store.commits();
        let begun = Instant::now();
        tokio::time::timeout(PATIENCE, carry_out(&world.session, ask)).await??;
        ours.push(begun.elapsed());
        a_call = world.store.commits() - before;
        let mut span = Duration::ZERO;
        for rows in &commits {
            span += rows.commit(&plain, &mut seq)?;
        }
        written.push(span);
    }
    world.end().await?;
    let (ours, written) = (p50(ours), p50(written));
    let beyond = ours.saturating_sub(written);
    Ok(Row {
        what: format!(
            "`shell_exec true` in an open shell, whole gate, beyond its two commits, p50; {a_call} commits a call"
        ),
        measured: millis(beyond),
        anchor: format!("{} in all, {} two plain commits", millis(ours), millis(written)),
        must: "≤ 2 ms beyond its two commits".to_owned(),
        reached: beyond <= BEYOND,
    })
}

/// More than is kept: it must run to its end, take no memory, and be told as cut.
async fn printed() -> Result<Row> {
    let world = World::new().await?;
    // Once without much, so that what every first call loads is not counted.
    let small = json!({"command": "printf x"});
    let ask = allowed(&world.runtime, &world.session, 1, "shell_run", &small).await?;
    carry_out(&world.session, ask).await?;
    let input =
        json!({"command": format!("yes 'a line of output that is neither short nor long' | head -c {PRINTED}")});
    let ask = allowed(&world.runtime, &world.session, 2, "shell_run", &input).await?;
    let peak = Peak::begin()?;
    let begun = Instant::now();
    let seen = tokio::time::timeout(PATIENCE, carry_out(&world.session, ask)).await??;
    let took = begun.elapsed();
    let grown = peak.grown_kib()?;
    let seen = seen.session_view();
    let stdout = seen.capture.first();
    ensure!(
        stdout.is_some_and(|stream| !stream.complete && stream.total_bytes == PRINTED),
        "it is told how much there was and that not all of it is kept: {stdout:?}"
    );
    world.end().await?;
    Ok(Row {
        what: "768 MiB printed by a command: it ends, and growth of peak memory".to_owned(),
        measured: format!("{:.1} MiB, ended after {:.1} s", grown as f64 / 1024.0, took.as_secs_f64()),
        anchor: "–".to_owned(),
        must: "ends, < 16 MiB".to_owned(),
        reached: grown < GROWTH_KIB,
    })
}
