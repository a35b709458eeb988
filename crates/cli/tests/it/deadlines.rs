//! A command that is stopped at its deadline is remembered as timed out, however late its call could start it.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{World, binary};
use portcullis::hand::Launcher;
use portcullis::{CallOutcome, Observed, Reply, Runtime, SessionId};
use portcullis_base::{Code, ManualClock, SystemIds, Timestamp};
use portcullis_store::{HostLiveness, MemoryArtifacts, MemoryStore};
use serde_json::{Value, json};

/// How long the only thread for blocking work is busy when a call begins: its command starts that much later than its
/// clock, which is what a busy machine does by chance.
const LATE: Duration = Duration::from_millis(600);
/// The time of a call.
const TIMEOUT_MS: u64 = 1_500;

async fn call(runtime: &Runtime, session: SessionId, tool: &str, input: Value) -> Observed {
    match runtime.call(session, tool, &input.to_string()).await.expect("a store") {
        CallOutcome::Observed(seen) => seen.session_view().clone(),
        other => panic!("{tool} was not run: {other:?}"),
    }
}

/// The newest command that this session remembers, after one whose call began late and ran out of time.
async fn remembered(tool: &str) -> Value {
    let world = World::new();
    // It never moves: what is measured by it takes no time at all.
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_775_818_800_000_000)));
    let ids = Arc::new(SystemIds::new());
    let store = Arc::new(MemoryStore::new(clock.clone(), ids, Arc::new(HostLiveness::new()), None));
    let runtime = Runtime::builder()
        .workspace(&world.workspace)
        .launcher(Launcher::helper(binary()))
        .clock(clock)
        .store(store, Arc::new(MemoryArtifacts::default()))
        // Asked right before the call begins.
        .approver(|_| {
            drop(tokio::task::spawn_blocking(|| std::thread::sleep(LATE)));
            std::future::ready(Reply::AllowOnce)
        })
        .build()
        .expect("builds");
    let session = runtime.create_session("test").await.expect("a session");
    let input = json!({"command": "echo first; sleep 300", "timeoutMs": TIMEOUT_MS});
    let seen = call(&runtime, session, tool, input).await;
    assert_eq!(seen.code.known(), Some(Code::Timeout), "{tool}: {}", seen.summary);
    let history = call(&runtime, session, "shell_history", json!({})).await.structured.expect("a document");
    history["commands"][0].clone()
}

#[test]
fn a_command_stopped_at_its_deadline_is_timed_out_however_late_it_was_started() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    for tool in ["shell_run", "shell_exec"] {
        let command = runtime.block_on(remembered(tool));
        assert_eq!(command["timedOut"], true, "{tool}: {command}");
        assert_eq!(command["stdoutPreview"], "first\n", "{tool}: the control: it did run");
    }
}
