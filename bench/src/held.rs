//! Calls side by side on a session that is held open, against calls that claim the session one after the other.

use std::time::Instant;

use anyhow::{Result, ensure};
use portcullis::{CallOutcome, Runtime};
use tokio::task::JoinSet;

use crate::table::Row;
use crate::world::{artifacts, nothing, sqlite};

const CALLS: usize = 640;
const AT_ONCE: usize = 64;
const MUST: f64 = 3.0;
const INPUT: &str = r#"{"text":"x"}"#;

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let builder = Runtime::builder().store(sqlite(folder.path())?, artifacts(folder.path())?);
    let runtime = builder.tool("nothing", nothing()?)?.build()?;
    let session = runtime.create_session("one at a time").await?;
    runtime.call(session, "nothing", INPUT).await?;
    let begun = Instant::now();
    for _ in 0..CALLS {
        settled(&runtime.call(session, "nothing", INPUT).await?)?;
    }
    let alone = CALLS as f64 / begun.elapsed().as_secs_f64();

    let held = runtime.hold_open(runtime.create_session("held").await?).await?;
    held.call("nothing", INPUT).await?;
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let held = held.clone();
        callers.spawn(async move {
            for _ in 0..CALLS / AT_ONCE {
                settled(&held.call("nothing", INPUT).await?)?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    let together = CALLS as f64 / begun.elapsed().as_secs_f64();
    held.close().await;
    Ok(vec![Row {
        what: format!("{AT_ONCE} concurrent reads on one held session"),
        measured: format!("{together:.0} calls/s, {:.1} ×", together / alone),
        anchor: format!("{alone:.0} calls/s one at a time through `Runtime::call`"),
        must: format!("≥ {MUST} ×"),
        reached: together >= MUST * alone,
    }])
}

fn settled(outcome: &CallOutcome) -> Result<()> {
    ensure!(matches!(outcome, CallOutcome::Observed(seen) if seen.ok()), "it did not settle: {outcome:?}");
    Ok(())
}
