//! Commands that use up what they may: the record says which limit it was, what changes it, and that what the command did
//! is not known.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use crate::common::{World, binary};
use portcullis::hand::{FreeSpace, Launcher};
use portcullis::{CallOutcome, Observed, Reply, Runtime};
use portcullis_base::{Code, SideEffectState};
use serde_json::{Value, json};

/// A disk that loses space once a command has written its file.
#[derive(Debug)]
struct Disk {
    file: PathBuf,
    before: u64,
    after: u64,
}

impl FreeSpace for Disk {
    fn free(&self, _: BorrowedFd<'_>) -> io::Result<u64> {
        Ok(if self.file.exists() { self.after } else { self.before })
    }
}

const GIB: u64 = 1 << 30;

/// What becomes of a command that writes `big` and would go on for long, on a disk like that.
async fn on_a_disk(tool: &str, before: u64, after: u64, command: &str) -> (World, Observed) {
    let world = World::new();
    let disk = Disk { file: world.workspace.join("big"), before, after };
    let runtime = Runtime::builder()
        .workspace(&world.workspace)
        .launcher(Launcher::helper(binary()).measuring(Arc::new(disk)))
        .approver(|_| std::future::ready(Reply::AllowOnce))
        .build()
        .expect("builds");
    let session = runtime.create_session("test").await.expect("a session");
    let input = json!({"command": command, "timeoutMs": 600_000}).to_string();
    let seen = match runtime.call(session, tool, &input).await.expect("a store") {
        CallOutcome::Observed(seen) => seen.session_view().clone(),
        other => panic!("{tool} was not run: {other:?}"),
    };
    (world, seen)
}

#[tokio::test]
async fn a_command_is_stopped_when_its_disk_fills_up() {
    for tool in ["shell_run", "shell_exec"] {
        for (before, after, setting) in
            [(100 * GIB, 80 * GIB - 1, "`max_disk_use`"), (5 * GIB, GIB - 1, "`min_disk_free`")]
        {
            let (world, seen) =
                on_a_disk(tool, before, after, "echo first; echo x > big; sleep 300; echo > later").await;
            assert_eq!(seen.code.known(), Some(Code::ResourceLimit), "{tool}: {} {}", seen.code, seen.summary);
            assert_eq!(seen.tool_code.as_deref(), Some("disk_limit"), "{tool}");
            assert!(seen.summary.contains(setting) && seen.summary.contains("/workspace"), "{tool}: {}", seen.summary);
            assert_ne!(seen.side_effects.state, SideEffectState::None, "{tool}: it wrote a file");
            let text: String = seen.content.iter().filter_map(|part| part.text.as_deref()).collect();
            assert!(text.contains("first"), "{tool}: what it wrote so far is kept: {text}");
            assert!(world.workspace.join("big").exists() && !world.workspace.join("later").exists(), "{tool}");
        }
    }
}

#[tokio::test]
async fn a_disk_that_was_nearly_full_before_does_not_stop_a_command() {
    // Two looks at the disk are made while it sleeps.
    let (_, seen) = on_a_disk("shell_run", GIB - 1, GIB / 2, "echo x > big; sleep 0.7; echo done").await;
    assert!(seen.ok, "{} {}", seen.code, seen.summary);
    let (_, seen) = on_a_disk("shell_run", 100 * GIB, 80 * GIB, "echo x > big; sleep 0.7; echo done").await;
    assert!(seen.ok, "exactly the limit: {} {}", seen.code, seen.summary);
}

/// How the newest call of a session ended, by its log.
fn last_completed(world: &World, session: &str) -> Value {
    let events = world.run(&["sessions", "events", session, "--json"]).ends(0).lines();
    let mut completed = events.iter().filter(|event| event["type"] == "tool.invocation.completed");
    let payload = completed.next_back().expect("an end")["payload"].as_str().expect("a payload");
    serde_json::from_str(payload).expect("a document")
}

/// The controls: one command that ended by itself, and one that was never started.
#[test]
fn what_a_command_did_is_told_if_it_ended_and_nothing_if_it_never_ran() {
    let world = World::new();
    let session = world.document("shell_describe")["sessionId"].as_str().expect("an id").to_owned();
    world.run(&["--approvals", "allow", "call", "shell_run", r#"{"command":"touch made"}"#]).ends(0);
    assert_eq!(last_completed(&world, &session)["side_effects"]["state"], "occurred");
    let gone = r#"{"command":"true","env":{"LD_LIBRARY_PATH":"/x"},"cwd":"nowhere"}"#;
    world.run(&["--approvals", "allow", "call", "shell_run", gone]).ends(1).warns("side effects: none");
}

/// One gibibyte of output: the producer will not end by itself. An unoptimised build takes minutes for so much, so this
/// runs in `cargo xtask soak` alone; what becomes of the failure is tested in `tools` (`launched`) and `pipeline`.
#[tokio::test]
async fn a_flood_of_output_is_a_resource_limit_and_what_the_command_did_is_not_known() {
    if std::env::var_os("PORTCULLIS_SOAK").is_none() {
        return;
    }
    for tool in ["shell_run", "shell_exec"] {
        let (world, seen) = on_a_disk(tool, GIB, GIB, "touch made; cat /dev/zero; touch later").await;
        assert_eq!(seen.code.known(), Some(Code::ResourceLimit), "{tool}: {} {}", seen.code, seen.summary);
        assert_eq!(seen.tool_code.as_deref(), Some("output_limit"), "{tool}");
        assert!(seen.summary.contains("more than 1073741824 bytes were written"), "{tool}: {}", seen.summary);
        assert_ne!(seen.side_effects.state, SideEffectState::None, "{tool}: it made a file");
        assert!(world.workspace.join("made").exists() && !world.workspace.join("later").exists(), "{tool}");
    }
}
