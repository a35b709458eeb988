//! A command in a shell that is open: what the gate, the shell and its answer cost together. The store is in memory, so
//! its two commits cost next to nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use portcullis::{Layer, PolicyBuilder, Profile, Runtime, parse_rules};

use crate::table::{Row, micros, p50};
use crate::world::{call, hold};

const CALLS: u128 = 400;
/// `:` is `true` by another name, and one that the read-only hand does not know: it is the shell's.
const RULES: &str = "[[rules]]\naction = \"bash\"\nargv = [\":\"]\neffect = \"allow\"\n";

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let policy = PolicyBuilder::new().rules(parse_rules(RULES, "bench", Layer::User)?).build()?;
    let builder = Runtime::builder().workspace(folder.path()).profile(Profile::Code).policy(policy);
    let runtime = builder.build()?;
    let session = runtime.create_session("bench").await?;
    let held = hold(&runtime, session).await?;
    let mut samples = Vec::new();
    for n in 0..CALLS {
        let begun = Instant::now();
        call(&held, n, "bash", r#"{"command":":"}"#.to_owned()).await?;
        samples.push(begun.elapsed());
    }
    ensure!(samples.len() > 10, "nothing was measured");
    let measured = p50(samples.split_off(samples.len() / 10));
    drop(held);
    runtime.shutdown().await;
    Ok(vec![Row {
        what: "`shell_exec true` in an open shell, whole gate, in-memory store, p50".to_owned(),
        measured: micros(measured),
        anchor: "–".to_owned(),
        must: "≤ 2 ms beyond its two commits".to_owned(),
        reached: measured <= Duration::from_millis(2),
    }])
}
