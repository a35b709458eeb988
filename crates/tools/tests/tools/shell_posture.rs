//! What is suggested of a shell: only what the session is offered, and only what fits how the shell stands.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::{Code, SessionId, ShellId, Timestamp};
use portcullis_contract::{Semantics, ShellFact, Tool, ToolName};
use portcullis_tools::{Change, LiveCommand, LiveShell, LiveView, ShellBusy};
use serde_json::{Value, json};

use crate::shell::runs;
use crate::world::{World, text};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn tool(told: Vec<ShellFact>) -> Tool {
    Tool::builder::<Nothing, String>("A tool of a test.")
        .semantics(Semantics::read_only())
        .execute(move |_, context| {
            told.clone().into_iter().for_each(|fact| context.shell(fact));
            async { Ok("done".to_owned()) }
        })
        .build()
        .expect("a sound tool")
}

/// The tools that start processes, by name alone, and one that opens a shell.
fn others() -> BTreeMap<ToolName, Tool> {
    let (shell_id, shell_path, cwd) = (ShellId::from_u128(1), "/bin/bash".to_owned(), "/workspace".to_owned());
    let mut tools = runs(1, "out\n");
    for name in ["bash", "shell_open", "shell_restart", "shell_wait", "shell_run", "shell_exec", "shell_close"] {
        tools.insert(name.parse().expect("a name"), tool(Vec::new()));
    }
    tools.insert("opens".parse().expect("a name"), tool(vec![ShellFact::Opened { shell_id, shell_path, cwd }]));
    tools
}

/// One shell that does as the test says, and keeps what was changed.
#[derive(Default)]
struct OneShell {
    view: Mutex<Option<LiveView>>,
    changes: Mutex<Vec<Change>>,
}

impl LiveShell for OneShell {
    fn look(&self, _: SessionId) -> Option<LiveView> {
        self.view.lock().expect("no test panics with it").clone()
    }

    fn change(&self, session: SessionId, change: Change) -> BoxFuture<'_, Result<(), ShellBusy>> {
        let busy = self.look(session).is_some_and(|view| view.current.is_some());
        if !busy {
            self.changes.lock().expect("no test panics with it").push(change);
        }
        std::future::ready(if busy { Err(ShellBusy) } else { Ok(()) }).boxed()
    }
}

fn live(current: Option<LiveCommand>) -> LiveView {
    let at = Timestamp::from_micros(1_800_000_000_000_000);
    LiveView {
        shell_id: ShellId::from_u128(1),
        shell_path: "/bin/bash".to_owned(),
        mount_path: "/workspace".to_owned(),
        cwd: "/workspace/live".to_owned(),
        started_at: at,
        updated_at: at,
        last_command_at: None,
        command_count: 3,
        current,
        env_keys: vec!["A".to_owned()],
        env: std::collections::BTreeMap::new(),
        changed: Vec::new(),
        altered: None,
    }
}

async fn describe(hand: &crate::world::Hand<'_>) -> Value {
    serde_json::from_str(&text(&hand.done("shell_describe", json!({})).await)).expect("a document")
}

#[tokio::test]
async fn a_shell_that_died_with_its_process_is_closed_and_to_be_restarted() {
    let world = World::new();
    let process = world.start_with(others());
    let hand = process.open(world.session().await).await;
    let seen = describe(&hand).await;
    assert_eq!((&seen["persistentShell"], &seen["shellState"]), (&Value::Null, &Value::Null));
    assert_eq!(seen["recoveryPlan"]["tool"], "shell_open", "there never was one");
    assert_eq!(seen["recoveryPlan"]["args"], json!({"cwd": "/workspace"}));
    let first: Vec<&Value> =
        seen["shellReadFirstAlternatives"].as_array().expect("a list").iter().map(|s| &s["tool"]).collect();
    assert_eq!(first, ["bash"], "no command has run, and it does not name itself");

    hand.done("opens", json!({})).await;
    hand.done("run", json!({})).await;
    let seen = describe(&hand).await;
    assert_eq!(seen["persistentShell"]["status"], "closed", "the log calls it active, and nobody runs it");
    assert_eq!(seen["shellState"]["persistentShell"]["status"], "closed");
    assert_eq!(seen["recoveryPlan"]["tool"], "shell_restart");
    assert_eq!(seen["shellReadFirstAlternatives"][0]["args"], json!({"command": "pwd", "cwd": "/workspace"}));
    assert_eq!(seen["shellReadFirstAlternatives"][1]["tool"], "shell_read_last_output");
    assert_eq!(seen["busyPlan"], Value::Null);
    let history: Value = serde_json::from_str(&text(&hand.done("shell_history", json!({})).await)).expect("json");
    assert_eq!(history["nextStep"]["tool"], "shell_restart");
}

#[tokio::test]
async fn what_the_session_is_not_offered_is_not_suggested() {
    let world = World::new();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = describe(&hand).await;
    assert_eq!((&seen["recoveryPlan"], &seen["shellReadFirstAlternatives"]), (&Value::Null, &json!([])));
}

#[tokio::test]
async fn a_busy_shell_is_waited_for_looked_at_and_not_changed() {
    let mut world = World::new();
    let shell = Arc::new(OneShell::default());
    world.live = shell.clone();
    let process = world.start_with(others());
    let hand = process.open(world.session().await).await;
    let command = LiveCommand {
        command: "cargo test".to_owned(),
        started_at: Timestamp::from_micros(1_800_000_001_000_000),
        stdout_preview: Some("running 3 tests".to_owned()),
        stderr_preview: None,
    };
    *shell.view.lock().expect("nobody panicked") = Some(live(Some(command)));
    let seen = describe(&hand).await;
    let plan = &seen["busyPlan"];
    assert_eq!((&plan["tool"], &plan["args"]), (&json!("shell_wait"), &json!({"timeoutMs": 1000})));
    let reads =
        ["shell_wait", "shell_describe", "shell_history", "shell_read_last_output", "bash", "read", "glob", "grep"];
    assert_eq!(plan["allowlistedReadTools"], json!(reads), "of those that there are");
    assert_eq!(plan["avoidTools"], json!(["shell_run", "shell_exec", "shell_restart", "shell_close"]));
    assert_eq!(plan["evidencePlan"]["tool"], "shell_read_last_output");
    assert_eq!(plan["liveOutputPreview"]["stdoutPreview"], "running 3 tests");
    assert_eq!((&seen["recoveryPlan"], &seen["cwd"]), (&Value::Null, &json!("/workspace/live")));
    let shown = &seen["persistentShell"];
    assert_eq!((&shown["busy"], &shown["status"], &shown["commandCount"]), (&json!(true), &json!("active"), &json!(3)));
    assert_eq!(shown["currentCommandStartedAt"], "2027-01-15T08:00:01.000Z");
    let last: Value = serde_json::from_str(&text(&hand.done("shell_read_last_output", json!({})).await)).expect("json");
    assert_eq!(last["liveCommand"]["command"], "cargo test");
    assert_eq!(last["nextStep"]["tool"], "shell_wait");

    for (tool, input) in [
        ("shell_set_cwd", json!({"path": "."})),
        ("shell_set_env", json!({"key": "A", "value": "canary"})),
        ("shell_unset_env", json!({"key": "A"})),
    ] {
        let seen = hand.call(tool, input).await;
        assert_eq!((seen.code.known(), seen.tool_code.as_deref()), (Some(Code::ToolFailure), Some("shell_busy")));
        assert!(seen.retryable && !format!("{seen:?}").contains("canary"), "{tool}");
    }
    assert_eq!(hand.session.state().shell.updated_at(), None, "nothing was told");
    *shell.view.lock().expect("nobody panicked") = Some(live(None));
    hand.done("shell_set_env", json!({"key": "A", "value": "v"})).await;
    hand.done("shell_unset_env", json!({"key": "A"})).await;
    hand.done("shell_set_cwd", json!({"path": "."})).await;
    let changes = shell.changes.lock().expect("nobody panicked").clone();
    let key = || "A".parse().expect("a name");
    let value = portcullis_secret::SecretText::new("v");
    let cwd = Change::Cwd("/workspace".to_owned());
    assert_eq!(changes, [Change::EnvSet(key(), value), Change::EnvUnset(key()), cwd], "an idle shell goes along");
}
