//! One session of many, opened from its id alone, and one read admitted in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use portcullis::{CallOutcome, Runtime, SessionId};
use tokio::task::JoinSet;

use crate::anchor::Rows;
use crate::table::{Row, millis, p50};
use crate::world::{artifacts, sqlite};

const MANY: usize = 10_000;
/// Sessions that are made at once: they share a sync.
const AT_ONCE: usize = 64;
/// Sessions that are opened, spread over all.
const OPENED: usize = 200;
const MUST: Duration = Duration::from_millis(3);

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    std::fs::write(workspace.join("f.txt"), "x\n".repeat(2_000))?;
    let builder = Runtime::builder().store(sqlite(folder.path())?, artifacts(folder.path())?);
    let runtime = Arc::new(builder.workspace(&workspace).build()?);
    let mut sessions: Vec<SessionId> = Vec::with_capacity(MANY);
    while sessions.len() < MANY {
        let mut making = JoinSet::new();
        for _ in 0..AT_ONCE.min(MANY - sessions.len()) {
            let runtime = Arc::clone(&runtime);
            making.spawn(async move { runtime.create_session("one of many").await });
        }
        while let Some(made) = making.join_next().await {
            sessions.push(made??);
        }
    }
    // Another process: it knows nothing of them.
    drop(runtime);
    let store = sqlite(folder.path())?;
    let fresh = Runtime::builder().store(store.clone(), artifacts(folder.path())?).workspace(&workspace).build()?;
    let database = folder.path().join("portcullis.db");
    let (mut spans, mut commits) = (Vec::new(), 0);
    for session in sessions.iter().step_by(MANY / OPENED) {
        let (begun, before) = (Instant::now(), store.commits());
        let outcome = fresh.call(*session, "read", r#"{"file_path":"f.txt"}"#).await?;
        spans.push(begun.elapsed());
        commits += store.commits() - before;
        ensure!(matches!(&outcome, CallOutcome::Observed(seen) if seen.ok()), "it did not settle: {outcome:?}");
    }
    let rows = Rows::of_last_appends(&database, 1)?;
    let [append] = &rows[..] else { anyhow::bail!("the append of the last read") };
    let plain = append.fresh(&folder.path().join("plain.db"))?;
    let mut seq = 1_000_000;
    let written = (0..OPENED).map(|_| append.commit(&plain, &mut seq)).collect::<Result<Vec<_>>>()?;
    let (all, written) = (p50(spans), p50(written));
    // The claim, the release and the ledger are synced as well, each as the append of the read is.
    let each = commits as f64 / OPENED as f64;
    let beyond = all.saturating_sub(written.mul_f64(each));
    Ok(vec![Row {
        what: format!("open one session of {MANY} from its id and admit one read, beyond its commits, p50"),
        measured: millis(beyond),
        anchor: format!("{} in all, {} one plain commit; {each:.1} commits", millis(all), millis(written)),
        must: format!("≤ {}", millis(MUST)),
        reached: beyond <= MUST,
    }])
}
