//! How long a persistent shell lives: while somebody uses it, and no longer than its session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{World, binary, comes_by};
use portcullis::hand::Launcher;
use portcullis::{CallOutcome, Observed, Reply, Runtime, RuntimeBuilder, SessionId};
use portcullis_base::{AppendId, Clock as _, ManualClock, SystemIds, Timestamp, WorkerId, limits};
use portcullis_event::facts::StatusTerminated;
use portcullis_event::{Actor, LOCAL_TENANT, Stamp};
use portcullis_store::{Claim, Commit, HostLiveness, Log as _, MemoryArtifacts, MemoryStore, Queue as _, SessionKey};
use serde_json::{Value, json};

/// A runtime whose approver says yes to everything, and whose time moves only when told to.
struct Gate {
    world: World,
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    runtime: Runtime,
    session: SessionId,
}

async fn gate(change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder) -> Gate {
    let world = World::with_file("sub/file", "text\n");
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_775_818_800_000_000)));
    let ids = Arc::new(SystemIds::new());
    let store = Arc::new(MemoryStore::new(clock.clone(), ids, Arc::new(HostLiveness::new()), None));
    let builder = Runtime::builder().workspace(&world.workspace).launcher(Launcher::helper(binary()));
    let builder = builder.clock(clock.clone()).store(store.clone(), Arc::new(MemoryArtifacts::default()));
    let builder = builder.approver(|_| std::future::ready(Reply::AllowOnce));
    let runtime = change(builder).build().expect("builds");
    let session = runtime.create_session("test").await.expect("a session");
    Gate { world, clock, store, runtime, session }
}

impl Gate {
    async fn call(&self, tool: &str, input: Value) -> Observed {
        match self.runtime.call(self.session, tool, &input.to_string()).await.expect("a store") {
            CallOutcome::Observed(seen) => seen.session_view().clone(),
            other => panic!("{tool} was not run: {other:?}"),
        }
    }

    async fn ok(&self, command: &str) -> String {
        let seen = self.call("shell_exec", json!({ "command": command })).await;
        assert!(seen.ok, "`{command}`: {} {}", seen.code, seen.summary);
        seen.content.iter().filter_map(|part| part.text.as_deref()).collect()
    }

    async fn status(&self) -> String {
        let seen = self.call("shell_describe", json!({})).await;
        let described = seen.structured.expect("a document");
        described["persistentShell"]["status"].as_str().unwrap_or("none").to_owned()
    }

    /// A shell with a process in it that can be told from every other.
    async fn with_daemon(&self) -> String {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}{:03}", std::process::id() + 500_000, NEXT.fetch_add(1, Ordering::Relaxed));
        self.ok(&format!("cd sub; export A=1; sleep {mark} >/dev/null 2>&1 &")).await;
        // A process that a shell has just forked bears the shell's name for a moment.
        comes_by("the control: it is found while it runs", || alive(&mark)).await;
        mark
    }
}

fn alive(mark: &str) -> bool {
    std::fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(mark)
    })
}

/// So long that a shell which is to be closed would have been looked at many times.
const MANY_LOOKS: Duration = Duration::from_millis(700);

async fn closed_when_idle(gate: &Gate, idle: Duration) {
    let mark = gate.with_daemon().await;
    let almost = idle - Duration::from_millis(1);
    gate.clock.advance(almost);
    tokio::time::sleep(MANY_LOOKS).await;
    assert!(alive(&mark), "it was closed a moment too early");
    // Whoever uses it begins a new span.
    assert_eq!(gate.ok("pwd").await, "/workspace/sub\n");
    gate.clock.advance(almost);
    tokio::time::sleep(MANY_LOOKS).await;
    assert!(alive(&mark), "a use does not count");
    assert_eq!(gate.status().await, "active");
    gate.clock.advance(Duration::from_millis(1));
    comes_by("it is closed", || !alive(&mark)).await;
    // Who heeds a signal is gone before the shell is.
    let begun = Instant::now();
    while gate.status().await != "closed" {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is still told as open");
    }
    // The next one is where the old one was.
    assert_eq!(gate.ok("pwd; echo $A").await, "/workspace/sub\n1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_nobody_used_for_half_an_hour_is_closed() {
    let gate = gate(|builder| builder).await;
    assert_eq!(limits::SHELL_IDLE, Duration::from_secs(30 * 60));
    closed_when_idle(&gate, limits::SHELL_IDLE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_long_an_idle_shell_is_kept_can_be_set() {
    let idle = Duration::from_secs(10);
    let gate = gate(|builder| builder.shell_idle(idle)).await;
    closed_when_idle(&gate, idle).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_runs_for_longer_than_that_is_no_idle_shell() {
    let gate = gate(|builder| builder.shell_idle(Duration::from_millis(200))).await;
    let clock = Arc::clone(&gate.clock);
    let moving = tokio::spawn(async move {
        loop {
            clock.advance(Duration::from_millis(100));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert_eq!(gate.ok("sleep 1; echo whole").await, "whole\n");
    moving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_is_closed_when_its_session_is_terminated_by_whomever() {
    let gate = gate(|builder| builder).await;
    let mark = gate.with_daemon().await;
    // Nobody holds it now; what another process does is an append to its log.
    let ids = SystemIds::new();
    let worker = WorkerId::make(&ids, gate.clock.now());
    let key = SessionKey { tenant: LOCAL_TENANT, session: gate.session };
    let owner = HostLiveness::new().this_process(worker, "somebody else");
    let Claim::Granted(lease) = gate.store.claim_session(key, owner, limits::LEASE_TTL).await.expect("a store") else {
        panic!("the session is held")
    };
    let actor = Actor::worker(worker);
    let stamp = Stamp { ids: &ids, clock: &*gate.clock, actor: &actor, turn_id: None, wake_id: None };
    let fact = StatusTerminated { previous_status: "idle".to_owned(), stop_reason: "terminated".to_owned() };
    let append = AppendId::make(&ids, gate.clock.now());
    let mut commit = Commit::worker(key, worker, lease.fence, append, vec![stamp.draft(&fact)]);
    commit.idle = true;
    gate.store.commit(commit).await.expect("terminated");
    comes_by("its shell is closed", || !alive(&mark)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_was_shut_down_keeps_no_shell() {
    let gate = gate(|builder| builder).await;
    gate.ok("true").await;
    let soon = Duration::from_secs(60);
    tokio::time::timeout(soon, gate.runtime.shutdown()).await.expect("it ends");
    let seen = gate.call("shell_exec", json!({"command": "echo ran > ran"})).await;
    assert!(!seen.ok && seen.summary.contains("shutting down"), "{} {}", seen.code, seen.summary);
    assert!(!gate.world.workspace.join("ran").exists());
    tokio::time::timeout(soon, gate.runtime.shutdown()).await.expect("there is nothing left to wait for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_outlives_the_lease_of_its_session_and_not_its_runtime() {
    let gate = gate(|builder| builder).await;
    // Each call here claims the session and gives it back.
    let mark = gate.with_daemon().await;
    gate.ok("x=local").await;
    assert_eq!(gate.ok("echo $x").await, "local\n");
    let Gate { runtime, .. } = gate;
    drop(runtime);
    comes_by("it ends with the last that knows it", || !alive(&mark)).await;
}
