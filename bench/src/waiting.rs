//! Sessions that wait for an approval: they are rows, and cost the process that made or serves them nothing.

use std::sync::Arc;

use anyhow::{Result, bail};
use async_trait::async_trait;
use portcullis::harness::{Crew, Post, Worker, WorkerSettings, WorkerStop};
use portcullis::{
    CallOutcome, CancellationToken, DefaultPolicy, Runtime, Semantics, SessionId, SystemClock, SystemIds,
};
use portcullis_base::{Clock as _, WorkerId};
use portcullis_store::HostLiveness;

use crate::memory::Peak;
use crate::table::Row;
use crate::world::{artifacts, asking, sqlite};

/// What must wait.
const SESSIONS: u32 = 10_000;
/// Caches are full by then.
const WARM: u32 = 2_000;
/// What SQLite and the allocator may keep, however many wait.
const NOISE_KIB: i64 = 4 * 1024;

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let store = sqlite(folder.path())?;
    let builder = Runtime::builder().store(store.clone(), artifacts(folder.path())?);
    let semantics = Semantics { default_policy: DefaultPolicy::Ask, ..Semantics::read_only() };
    let runtime = builder.tool("asks", asking(semantics)?)?.build()?;
    let park = async |n: u32| {
        let session = runtime.create_session(&format!("waits {n}")).await?;
        match runtime.call(session, "asks", r#"{"text":"x"}"#).await? {
            CallOutcome::Waiting(_) => anyhow::Ok(()),
            _ => bail!("it did not ask"),
        }
    };
    for n in 0..WARM {
        park(n).await?;
    }
    let peak = Peak::begin()?;
    for n in WARM..SESSIONS {
        park(n).await?;
    }
    let clock = SystemClock::new();
    let owner = HostLiveness::new().this_process(WorkerId::make(&SystemIds::new(), clock.now()), "bench");
    let worker = Worker {
        store,
        tenant: runtime.gate().tenant(),
        clock: Arc::new(clock),
        owner,
        crew: Arc::new(Nobody),
        settings: WorkerSettings::default(),
        journal: Arc::new(|_| {}),
    };
    if worker.run(&CancellationToken::new()).await? != WorkerStop::Idle {
        bail!("something was due, though everything waits");
    }
    let grown = peak.grown_kib()?;
    Ok(vec![Row {
        what: format!(
            "growth of the process while {} sessions more wait for an approval, a worker included",
            SESSIONS - WARM
        ),
        measured: format!("{grown} KiB"),
        anchor: "what SQLite and the allocator keep".to_owned(),
        must: format!("≤ {NOISE_KIB} KiB"),
        reached: grown <= NOISE_KIB,
    }])
}

/// Nothing is due, so nobody is needed.
struct Nobody;

#[async_trait]
impl Crew for Nobody {
    async fn take(&self, session: SessionId) -> Result<Post, String> {
        Err(format!("{session} was due, though it waits"))
    }
}
