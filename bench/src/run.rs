//! `portcullis run` against a model on loopback, and how soon an answer of a person lets a tool start.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use portcullis::harness::{Crew, NoWatcher, Post, Settings, Worker, WorkerSettings};
use portcullis::{
    Agent, AgentParts, AskAnswer, CancellationToken, DefaultPolicy, Reply, Runtime, Semantics, SessionId, SystemClock,
    SystemIds, Tool,
};
use portcullis_base::{Clock as _, WorkerId};
use portcullis_store::{AskFilter, HostLiveness, Log as _};
use serde_json::json;

use crate::loopback;
use crate::memory::peak_kib;
use crate::table::{Row, millis, p50};
use crate::turns::{AtOnce, Make};
use crate::world::{artifacts, sqlite};

const STARTS: usize = 30;
const CALLS: usize = 500;
const REPLIES: usize = 100;

pub async fn run() -> Result<Vec<Row>> {
    let (started, memory) = tokio::task::spawn_blocking(|| anyhow::Ok((started()?, memory()?))).await??;
    Ok(vec![started, memory, replied().await?])
}

/// Runs the real binary in a workspace of its own.
fn portcullis(home: &Path, workspace: &Path, address: &str) -> Result<Command> {
    let binary = std::env::current_exe()?.with_file_name("portcullis");
    let mut command = Command::new(binary);
    command
        .args(["run", "--model", "openai-chat/bench", "--base-url", address, "go"])
        .current_dir(workspace)
        .env("PORTCULLIS_HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

fn started() -> Result<Row> {
    let (home, workspace) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let first: Arc<Mutex<Option<Instant>>> = Arc::default();
    let seen = Arc::clone(&first);
    let asked = move |_: usize| {
        seen.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
    };
    let address = loopback::start(Arc::new(|_| None), Arc::new(asked))?;
    let mut spans = Vec::new();
    for round in 0..=STARTS {
        *first.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let begun = Instant::now();
        let ended = portcullis(home.path(), workspace.path(), &address)?.status().context("build the binary first")?;
        ensure!(ended.success(), "`portcullis run` ended with {ended}");
        let asked = first.lock().unwrap_or_else(PoisonError::into_inner).context("it asked")?;
        // The first makes the store.
        if round > 0 {
            spans.push(asked - begun);
        }
    }
    let span = p50(spans);
    Ok(Row {
        what: "start of `portcullis run` to its first request, warm, p50".to_owned(),
        measured: millis(span),
        anchor: "–".to_owned(),
        must: "≤ 50 ms".to_owned(),
        reached: span <= Duration::from_millis(50),
    })
}

fn memory() -> Result<Row> {
    let (home, workspace) = (tempfile::tempdir()?, tempfile::tempdir()?);
    for n in 0..CALLS {
        std::fs::write(workspace.path().join(format!("{n}.txt")), format!("{n:063}\n").repeat(64))?;
    }
    let process = Arc::new(AtomicU32::new(0));
    let peak = Arc::new(Mutex::new(0));
    let (whose, most) = (Arc::clone(&process), Arc::clone(&peak));
    let asked = move |_: usize| {
        let now = peak_kib(whose.load(Ordering::SeqCst)).unwrap_or_default();
        let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
        *most = now.max(*most);
    };
    let next = |n: usize| (n < CALLS).then(|| ("read".to_owned(), json!({"file_path": format!("{n}.txt")})));
    let address = loopback::start(Arc::new(next), Arc::new(asked))?;
    let config = home.path().join("bench.toml");
    std::fs::write(&config, format!("[model]\nmax_turns = {}\nwindow = 10_000_000\n", CALLS + 2))?;
    let mut child = portcullis(home.path(), workspace.path(), &address)?.env("PORTCULLIS_CONFIG", config).spawn()?;
    process.store(child.id(), Ordering::SeqCst);
    ensure!(child.wait()?.success(), "`portcullis run` works");
    let peak = *peak.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Row {
        what: format!("peak memory of `portcullis run` with {CALLS} reads"),
        measured: format!("{:.1} MB", peak as f64 * 1024.0 / 1e6),
        anchor: "–".to_owned(),
        must: "≤ 50 MB".to_owned(),
        reached: peak > 0 && peak * 1024 <= 50_000_000,
    })
}

/// Runs wakes of the one agent.
struct One(Agent);

#[async_trait]
impl Crew for One {
    async fn take(&self, _: SessionId) -> Result<Post, String> {
        Ok(self.0.post())
    }
}

/// From a person's answer to the start of the tool, with a worker in the same process.
async fn replied() -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let store = sqlite(folder.path())?;
    let (began, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let semantics = Semantics { default_policy: DefaultPolicy::Ask, ..Semantics::read_only() };
    let asks = Tool::builder::<Nothing, String>("Asks.")
        .semantics(semantics)
        .execute(move |_, _| {
            let _ = began.send(Instant::now());
            async { Ok("done".to_owned()) }
        })
        .build()?;
    let builder = Runtime::builder().store(store.clone(), artifacts(folder.path())?);
    let runtime = builder.tool("asks", asks)?.build()?;
    let mut spans = Vec::new();
    for n in 0..REPLIES {
        let make: Make = Box::new(|_| ("asks".to_owned(), "{}".to_owned()));
        let agent = runtime.agent(AgentParts {
            model: Arc::new(AtOnce::new(1, make, Arc::clone(&store))?),
            settings: Settings { directive: false, ..Settings::default() },
            watcher: Arc::new(NoWatcher),
            entropy: Arc::new(SystemIds::new()),
            sandbox: "isolated".to_owned(),
        });
        let session = runtime.create_session(&format!("asks {n}")).await?;
        runtime.say(session, "bench", "go").await?;
        agent.wake(session, &CancellationToken::new()).await?;
        let filter = AskFilter { session: Some(session), pending: true };
        let asks = store.asks(runtime.gate().tenant(), filter).await?;
        let ask = asks.first().context("it asks")?.ask_id;
        let clock = SystemClock::new();
        let owner = HostLiveness::new().this_process(WorkerId::make(&SystemIds::new(), clock.now()), "bench");
        let worker = Worker {
            store: Arc::clone(&store) as _,
            tenant: runtime.gate().tenant(),
            clock: Arc::new(clock),
            owner,
            crew: Arc::new(One(agent)),
            settings: WorkerSettings { watch: true, max_cycles: Some(1), ..WorkerSettings::default() },
            journal: Arc::new(|_| {}),
        };
        let working = tokio::spawn(async move { worker.run(&CancellationToken::new()).await });
        // It listens by then; what is measured is the answer.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let begun = Instant::now();
        runtime.reply(ask, AskAnswer::by("bench", Reply::AllowOnce)).await?;
        spans.push(begins.recv().await.context("the tool starts")? - begun);
        working.await??;
    }
    spans.sort();
    let p99 = spans[spans.len() * 99 / 100];
    Ok(Row {
        what: "a person's answer to the start of the tool, a worker in the same process, p99".to_owned(),
        measured: millis(p99),
        anchor: format!("{} p50", millis(p50(spans))),
        must: "< 100 ms".to_owned(),
        reached: p99 < Duration::from_millis(100),
    })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}
