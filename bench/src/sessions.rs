//! Events a second with 64 sessions at once, FULL, beside plain rusqlite writing the same rows with
//! 64 appends a transaction.

use std::time::{Duration, Instant};

use anyhow::Result;
use portcullis::Runtime;

use crate::anchor::Rows;
use crate::table::Row;
use crate::world::{artifacts, call, hold, nothing, sqlite};

const SESSIONS: u128 = 64;
const CALLS: u128 = 60;

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let store = sqlite(folder.path())?;
    let runtime =
        Runtime::builder().store(store.clone(), artifacts(folder.path())?).tool("nothing", nothing()?)?.build()?;
    let mut held = Vec::new();
    for _ in 0..SESSIONS {
        let id = runtime.create_session("bench").await?;
        held.push(hold(&runtime, id).await?);
    }
    call(&held[0], 1, "nothing", r#"{"text":"x"}"#.to_owned()).await?;
    let rows = Rows::of_last_appends(&folder.path().join("portcullis.db"), 1)?.remove(0);

    let before = store.commits();
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for (i, session) in (1u128..).zip(held) {
        tasks.push(tokio::spawn(async move {
            for n in 0..CALLS {
                call(&session, i * 1_000_000 + n, "nothing", r#"{"text":"x"}"#.to_owned()).await?;
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    let events = SESSIONS * CALLS * rows.count() as u128;
    let ours = rate(events, begun.elapsed());
    let batch = (SESSIONS * CALLS) as f64 / (store.commits() - before) as f64;

    let plain = rows.fresh(&folder.path().join("plain.db"))?;
    let mut seq = 1_000_000;
    let begun = Instant::now();
    for _ in 0..CALLS {
        plain.execute_batch("begin immediate")?;
        // The same rows: they belong to 64 sessions, and so to 64 places of the table.
        for session in 0..SESSIONS {
            rows.write(&plain, &mut seq, session << 64 | 0x0192)?;
        }
        plain.execute_batch("commit")?;
    }
    let theirs = rate(events, begun.elapsed());
    Ok(vec![Row {
        what: format!("events/s through the gate, 64 sessions at once, FULL; {batch:.0} appends a sync"),
        measured: format!("{ours:.0}/s = {:.2} ×", ours / theirs),
        anchor: format!("{theirs:.0}/s plain, 64 appends a transaction"),
        must: "≥ 0.5 ×".to_owned(),
        reached: ours >= 0.5 * theirs,
    }])
}

fn rate(events: u128, span: Duration) -> f64 {
    events as f64 / span.as_secs_f64()
}
