//! F4 and its kin with real processes on one SQLite file: `kill -9` under load, and many processes at once.
//!
//! A child is this very test binary, run again with an environment variable that says what to do.

use crate::common::soak;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis::{CallOutcome, DefaultPolicy, Runtime, Semantics, SessionId, SideEffect, Tool, ToolFailure};
use portcullis_base::{Clock, IdGen, SystemClock, SystemIds};
use portcullis_event::{Body, CheckpointKey, LOCAL_TENANT};
use portcullis_store::{HostLiveness, LocalArtifacts, Log as _, SessionKey, deliver_outbox, verify_tenant};
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};
use schemars::JsonSchema;
use serde::Deserialize;

const CHILD: &str = "PORTCULLIS_TEST_CHILD";
const KEY: [u8; 32] = [5; 32];
/// How many kills; `cargo xtask soak` multiplies it.
const KILLS: usize = 200;

#[derive(Deserialize, JsonSchema)]
struct Mark {
    text: String,
}

fn store(home: &Path) -> Arc<SqliteStore> {
    Arc::new(
        SqliteStore::open(SqliteConfig {
            path: home.join("portcullis.db"),
            durability: Durability::Full,
            clock: Arc::new(SystemClock::new()) as Arc<dyn Clock>,
            ids: Arc::new(SystemIds::new()) as Arc<dyn IdGen>,
            liveness: Arc::new(HostLiveness::new()),
            checkpoint_key: Some(CheckpointKey::from_bytes(KEY)),
        })
        .expect("the store opens"),
    )
}

/// A tool whose effect is a line in a file: the world outside the log.
fn mark_tool(effects: PathBuf) -> Tool {
    Tool::builder::<Mark, String>("Leaves a mark.")
        .semantics(Semantics { default_policy: DefaultPolicy::Allow, ..Semantics::mutating() })
        .plan_access(|input, _| {
            let resource = portcullis::Resource::path("/workspace/effects", &input.text);
            vec![portcullis::AccessRequest::new(
                portcullis::Action::new("mark"),
                resource,
                [portcullis::Risk::Write].into(),
            )]
        })
        .execute(move |input, context| {
            let effects = effects.clone();
            async move {
                let failed = |e: std::io::Error| ToolFailure::new("io_error", e.to_string());
                let mut file = OpenOptions::new().create(true).append(true).open(effects).map_err(failed)?;
                // In one piece: a kill between two would leave half a line for the next effect to stand behind.
                file.write_all(format!("{}\n", context.invocation_id()).as_bytes()).map_err(failed)?;
                let (kind, target) = ("marked".to_owned(), input.text.clone());
                context.did(SideEffect { kind, target, before: None, after: None, reversible: false });
                Ok("marked".to_owned())
            }
        })
        .build()
        .expect("a sound tool")
}

fn runtime(home: &Path) -> (Runtime, Arc<SqliteStore>) {
    let store = store(home);
    let artifacts = LocalArtifacts::open(&home.join("artifacts"), Arc::new(SystemIds::new())).expect("artifacts");
    let built = Runtime::builder()
        .store(store.clone(), Arc::new(artifacts))
        .tool("mark", mark_tool(home.join("effects")))
        .expect("a name")
        .called("a test child")
        .build()
        .expect("a runtime");
    (built, store)
}

/// `HOME SESSION CALLS`: makes calls and prints each acknowledged invocation.
#[test]
fn child_process() {
    let Ok(order) = std::env::var(CHILD) else { return };
    let mut words = order.split(' ');
    let mut word = || words.next().expect("three words").to_owned();
    let (home, session, calls) = (word(), word(), word());
    let session: SessionId = session.parse().expect("a session id");
    let calls: usize = calls.parse().expect("a number");
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    threads.block_on(async {
        let (runtime, _store) = runtime(Path::new(&home));
        runtime.create_session_as(session, "child").await.expect("the session is there");
        for n in 0..calls {
            let input = format!("{{\"text\":\"{n}\"}}");
            match runtime.call(session, "mark", &input).await.expect("a call never fails for the store's sake") {
                CallOutcome::Observed(seen) => {
                    let seen = seen.session_view();
                    assert!(seen.ok, "{}", seen.summary);
                    println!("ack {}", seen.invocation_id.expect("it ran"));
                }
                other => panic!("{other:?} was not expected"),
            }
        }
        println!("done");
    });
}

fn spawn(home: &Path, session: SessionId, calls: usize) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "faults::child_process", "--nocapture", "--test-threads", "1"])
        .env(CHILD, format!("{} {session} {calls}", home.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    (child, out)
}

fn acknowledged(line: &str) -> Option<&str> {
    // The test harness may print its own words before ours on the same line.
    line.split("ack ").nth(1).map(str::trim)
}

#[test]
fn f04_two_hundred_kills_lose_nothing_acknowledged_and_repeat_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let session = SessionId::from_u128(0x0192_0000_0000_7000_8000_0000_0000_0001);
    let mut acks: Vec<String> = Vec::new();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for kill in 0..KILLS * soak() {
        let (mut child, mut out) = spawn(home.path(), session, 1_000_000);
        // A seeded number of acknowledgements, then a seeded instant inside the next call.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wanted = 1 + (seed >> 60) as usize % 3;
        let pause = Duration::from_micros((seed >> 32) % 4_000);
        let begun = Instant::now();
        let mut line = String::new();
        let mut seen = 0;
        while seen < wanted && out.read_line(&mut line).expect("its output") > 0 {
            if let Some(ack) = acknowledged(&line) {
                if seen == 0 && kill > 0 {
                    let taken = begun.elapsed();
                    assert!(taken < Duration::from_secs(10), "the dead holder was taken over after {taken:?}");
                }
                acks.push(ack.to_owned());
                seen += 1;
            }
            line.clear();
        }
        assert!(seen > 0, "kill {kill}: the child made no call");
        std::thread::sleep(pause);
        child.kill().expect("killed");
        child.wait().expect("reaped");
        // What it had printed before it died counts.
        while out.read_line(&mut line).expect("its output") > 0 {
            acks.extend(acknowledged(&line).map(str::to_owned));
            line.clear();
        }
    }
    let threads = tokio::runtime::Runtime::new().expect("threads");
    threads.block_on(async {
        let (runtime, store) = runtime(home.path());
        runtime.attend(session).await.expect("recovered");
        check(&store, session, home.path(), &acks).await;
    });
}

/// No acknowledged event lost, no effect twice, one observation an intent, a clean chain.
async fn check(store: &SqliteStore, session: SessionId, home: &Path, acks: &[String]) {
    deliver_outbox(store).await.expect("delivered");
    let audit =
        verify_tenant(store, LOCAL_TENANT, Some(&CheckpointKey::from_bytes(KEY)), None).await.expect("verified");
    assert!(audit.holds(), "{:?}", audit.faults);
    let key = SessionKey { tenant: LOCAL_TENANT, session };
    let events = store.read(key, 0, usize::MAX >> 1).await.expect("read");
    let mut observations: BTreeMap<String, usize> = BTreeMap::new();
    let mut told: BTreeMap<String, bool> = BTreeMap::new();
    for event in &events {
        match event.body() {
            Body::IntentProposed(intent) => {
                observations.entry(intent.intent_id.to_string()).or_default();
            }
            Body::Observed(seen) => {
                *observations.entry(seen.intent_id.to_string()).or_default() += 1;
                if let Some(invocation) = seen.invocation_id {
                    told.insert(invocation.to_string(), seen.ok);
                }
            }
            _ => {}
        }
    }
    assert!(observations.values().all(|count| *count == 1), "every intent has exactly one observation");
    for ack in acks {
        assert_eq!(told.get(ack), Some(&true), "{ack} was acknowledged as done");
    }
    let effects = std::fs::read_to_string(home.join("effects")).expect("effects");
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for line in effects.lines() {
        *times.entry(line).or_default() += 1;
    }
    assert!(times.values().all(|count| *count == 1), "no effect happened twice");
    for (invocation, ok) in &told {
        if *ok {
            assert_eq!(times.get(invocation.as_str()), Some(&1), "{invocation} is told as done, so it happened");
        }
    }
    for invocation in times.keys() {
        assert!(told.contains_key(*invocation), "{invocation} happened, so it is told");
    }
}

#[test]
fn eight_processes_with_five_hundred_calls_each_share_one_database() {
    let home = tempfile::tempdir().expect("a folder");
    let sessions: Vec<SessionId> =
        (1..=8u128).map(|n| SessionId::from_u128(0x0192_0000_0000_7000_8000_0000_0000_1000 + n)).collect();
    let children: Vec<(Child, BufReader<ChildStdout>)> =
        sessions.iter().map(|session| spawn(home.path(), *session, 500)).collect();
    let readers: Vec<_> = children
        .into_iter()
        .map(|(mut child, out)| {
            std::thread::spawn(move || {
                let acks: Vec<String> = out
                    .lines()
                    .map_while(Result::ok)
                    .filter_map(|line| acknowledged(&line).map(str::to_owned))
                    .collect();
                let mut error = String::new();
                if let Some(mut stderr) = child.stderr.take() {
                    std::io::Read::read_to_string(&mut stderr, &mut error).expect("its errors");
                }
                let status = child.wait().expect("it ends");
                assert!(status.success(), "{error}");
                acks
            })
        })
        .collect();
    let threads = tokio::runtime::Runtime::new().expect("threads");
    for (reader, session) in readers.into_iter().zip(sessions) {
        let acks = reader.join().expect("a child that did well");
        assert_eq!(acks.len(), 500);
        let folder = home.path().to_owned();
        threads.block_on(async {
            let store = store(&folder);
            let key = SessionKey { tenant: LOCAL_TENANT, session };
            let events = store.read(key, 0, usize::MAX >> 1).await.expect("read");
            let done = events.iter().filter(|event| event.kind.as_str() == "tool.observation").count();
            assert_eq!(done, 500);
        });
    }
    threads.block_on(async {
        let store = store(home.path());
        deliver_outbox(&*store).await.expect("delivered");
        let key = CheckpointKey::from_bytes(KEY);
        let audit = verify_tenant(&*store, LOCAL_TENANT, Some(&key), None).await.expect("verified");
        assert!(audit.holds(), "{:?}", audit.faults);
        let effects = std::fs::read_to_string(home.path().join("effects")).expect("effects");
        assert_eq!(effects.lines().count(), 4_000);
    });
}
