//! Folding a log from stored rows, decoding included.

use std::time::Instant;

use anyhow::Result;
use portcullis::Runtime;
use portcullis_event::State;
use portcullis_store::{Log as _, SessionKey};

use crate::table::Row;
use crate::world::{artifacts, call, hold, nothing, sqlite};

const CALLS: u128 = 1_000;
const PAGE: usize = 1_000;

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let store = sqlite(folder.path())?;
    let runtime =
        Runtime::builder().store(store.clone(), artifacts(folder.path())?).tool("nothing", nothing()?)?.build()?;
    let id = runtime.create_session("bench").await?;
    let session = hold(&runtime, id).await?;
    for n in 0..CALLS {
        call(&session, n, "nothing", r#"{"text":"x"}"#.to_owned()).await?;
    }
    let key = SessionKey { tenant: runtime.gate().tenant(), session: id };
    let begun = Instant::now();
    let mut state = State::default();
    loop {
        let events = store.read(key, state.seq, PAGE).await?;
        if events.is_empty() {
            break;
        }
        for event in &events {
            state.apply(event);
        }
    }
    let rate = state.seq as f64 / begun.elapsed().as_secs_f64();
    Ok(vec![Row {
        what: format!("fold from stored rows, decoding included ({} events)", state.seq),
        measured: format!("{rate:.0} events/s"),
        anchor: "–".to_owned(),
        must: "≥ 200,000 events/s".to_owned(),
        reached: rate >= 200_000.0,
    }])
}
