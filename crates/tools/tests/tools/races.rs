//! What happens between the check and the commit. A holder keeps the path key, so the call has passed
//! its checks and waits; then the world changes; then it goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{Code, Phase, Reason, Risk, RiskSet};
use portcullis_contract::{
    AccessRequest, Action, Concurrency, DefaultPolicy, NamedKind, Resolved, Resource, Semantics, Tool,
};
use portcullis_event::Observed;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::world::{World, check_refusal};

#[derive(Deserialize, JsonSchema)]
struct Hold {
    key: String,
}

/// A tool that keeps a key until it is let go.
fn holder(begun: &Arc<Semaphore>, let_go: &Arc<Semaphore>) -> Tool {
    let (begun, let_go) = (Arc::clone(begun), Arc::clone(let_go));
    let semantics =
        Semantics { concurrency: Concurrency::Keyed, default_policy: DefaultPolicy::Allow, ..Semantics::mutating() };
    Tool::builder::<Hold, bool>("Keeps a key.")
        .semantics(semantics)
        .resolve(|input: &Hold, _| Ok(Resolved { keys: vec![input.key.clone()], ..Resolved::default() }))
        .keyed()
        .plan_access(|_, _| {
            let own = Resource::own(NamedKind::McpTool, "hold");
            vec![AccessRequest::new(Action::new("hold"), own, RiskSet::from([Risk::Write]))]
        })
        .execute(move |_, _| {
            let (begun, let_go) = (Arc::clone(&begun), Arc::clone(&let_go));
            async move {
                begun.add_permits(1);
                let_go.acquire().await.expect("open").forget();
                Ok(true)
            }
        })
        .build()
        .expect("a tool")
}

/// Calls `tool`, and `meanwhile` when it has passed every check and waits for its key.
async fn interrupted(world: &World, reads: &[&str], tool: &str, input: Value, meanwhile: impl FnOnce()) -> Observed {
    let (begun, let_go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let name = "hold".parse().expect("a name");
    let process = world.start_with(BTreeMap::from([(name, holder(&begun, &let_go))]));
    let hand = process.open(world.session().await).await;
    let other = process.open(world.session().await).await;
    for path in reads {
        hand.done("read", json!({"file_path": path})).await;
    }
    let key = format!("fs:/workspace/{}", input["file_path"].as_str().expect("a path"));
    let holding = other.propose("hold", &json!({"key": key}));
    begun.acquire().await.expect("open").forget();
    let call = hand.propose(tool, &input);
    // Time stands still: it moves only when every task waits, the call for its key among them.
    tokio::time::sleep(Duration::from_millis(1)).await;
    meanwhile();
    let_go.add_permits(1);
    other.settle(holding).await;
    hand.settle(call).await
}

#[tokio::test(start_paused = true)]
async fn a_file_created_meanwhile_is_not_overwritten() {
    let world = World::new();
    let write = json!({"file_path": "new", "content": "ours"});
    let observed = interrupted(&world, &[], "write", write, || world.put("new", "theirs")).await;
    check_refusal(&observed, Code::RuntimePreconditionFailed, Some(Reason::TargetExists), Phase::Execute);
    assert_eq!(world.get("new"), "theirs");
    assert_eq!(world.tree(), ["new"]);
}

#[tokio::test(start_paused = true)]
async fn a_file_changed_meanwhile_is_neither_edited_nor_overwritten() {
    for (tool, input) in [
        ("write", json!({"file_path": "a", "content": "ours"})),
        ("edit", json!({"file_path": "a", "old_string": "x", "new_string": "ours"})),
    ] {
        let world = World::new();
        world.put("a", "x\n");
        let observed = interrupted(&world, &["a"], tool, input, || world.put("a", "x theirs\n")).await;
        check_refusal(&observed, Code::StaleFileBaseline, None, Phase::Execute);
        assert_eq!(world.get("a"), "x theirs\n");
        assert_eq!(world.tree(), ["a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_directory_swapped_for_a_link_meanwhile_is_not_followed() {
    let world = World::new();
    world.put("dir/a", "x\n");
    world.put("other/a", "x\n");
    let input = json!({"file_path": "dir/a", "old_string": "x", "new_string": "ours"});
    let observed = interrupted(&world, &["dir/a"], "edit", input, || {
        std::fs::rename(world.path("dir"), world.path("moved")).expect("moved");
        std::os::unix::fs::symlink("other", world.path("dir")).expect("a link");
    })
    .await;
    // Seen before it starts: its words lead elsewhere now.
    check_refusal(&observed, Code::StaleFileBaseline, None, Phase::Validate);
    assert_eq!((world.get("other/a"), world.get("moved/a")), ("x\n".to_owned(), "x\n".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_only_waited_goes_on() {
    let world = World::new();
    world.put("a", "x\n");
    let input = json!({"file_path": "a", "old_string": "x", "new_string": "ours"});
    let observed = interrupted(&world, &["a"], "edit", input, || {}).await;
    assert!(observed.ok, "{}", observed.summary);
    assert_eq!(world.get("a"), "ours\n");
}
