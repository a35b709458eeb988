//! Capturing and bounding a 256 MiB stream: how much this process grows.

use anyhow::{Result, ensure};
use portcullis::{Runtime, Semantics, SpoolRef, Tool, ToolFailure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::Peak;
use crate::table::Row;
use crate::world::{artifacts, call, hold, sqlite};

const CHUNK: usize = 64 << 10;
const CHUNKS: usize = (256 << 20) / CHUNK;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Output {
    spool: SpoolRef,
}

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let store = sqlite(folder.path())?;
    let tool = Tool::builder::<Nothing, Output>("Writes a lot.")
        .semantics(Semantics::read_only())
        .execute(|_, context| async move {
            let mut spool = context.spool("stdout");
            let line = b"a line of output that is neither short nor long\n".repeat(CHUNK / 48 + 1);
            for _ in 0..CHUNKS {
                spool.write(&line[..CHUNK]).map_err(|e| ToolFailure::new("io_error", e.to_string()))?;
            }
            Ok(Output { spool: spool.finish() })
        })
        .to_model(|_, output| {
            serde_json::from_value::<SpoolRef>(output["spool"].clone())
                .map(portcullis::Content::Spool)
                .into_iter()
                .collect()
        })
        .build()?;
    let runtime = Runtime::builder().store(store, artifacts(folder.path())?).tool("flood", tool)?.build()?;
    let session = runtime.create_session("bench").await?;
    let session = hold(&runtime, session).await?;
    let peak = Peak::begin()?;
    let seen = call(&session, 1, "flood", "{}".to_owned()).await?;
    let grown = peak.grown_kib()?;
    let seen = seen.session_view();
    ensure!(seen.truncated && seen.capture.first().is_some_and(|c| !c.complete), "it is told as cut and incomplete");
    Ok(vec![Row {
        what: "capturing and bounding a 256 MiB stream: growth of peak memory".to_owned(),
        measured: format!("{:.1} MiB", grown as f64 / 1024.0),
        anchor: "–".to_owned(),
        must: "< 16 MiB".to_owned(),
        reached: grown < 16 << 10,
    }])
}
