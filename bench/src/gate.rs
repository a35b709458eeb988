//! The whole gate around an inert call, on the in-memory store.

use std::time::{Duration, Instant};

use anyhow::Result;
use portcullis::Runtime;

use crate::table::{Row, micros, p50};
use crate::world::{call, hold, nothing};

const CALLS: u128 = 5_000;

pub async fn run() -> Result<Vec<Row>> {
    let runtime = Runtime::builder().tool("nothing", nothing()?)?.build()?;
    let session = runtime.create_session("bench").await?;
    let session = hold(&runtime, session).await?;
    let mut samples = Vec::new();
    for n in 0..CALLS {
        let begun = Instant::now();
        call(&session, n, "nothing", r#"{"text":"x"}"#.to_owned()).await?;
        samples.push(begun.elapsed());
    }
    let measured = p50(samples.split_off(samples.len() / 10));
    Ok(vec![Row {
        what: "the whole gate around an inert call, in-memory store, p50".to_owned(),
        measured: micros(measured),
        anchor: "–".to_owned(),
        must: "≤ 60 µs".to_owned(),
        reached: measured <= Duration::from_micros(60),
    }])
}
