//! `task_output`, `task_wait` and `task_cancel`: a session's own background tasks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{Code, Phase, Reason, SideEffectState};
use portcullis_contract::{Background, Concurrency, DefaultPolicy, Interrupt, Semantics, Tool, ToolName};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::world::{Hand, World, text};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Bytes {
    bytes: usize,
}

/// Alone in its location, writes so many bytes, and ends when it is told to.
fn job(leave: &Arc<Notify>) -> BTreeMap<ToolName, Tool> {
    let leave = Arc::clone(leave);
    let semantics = Semantics {
        backgroundable: true,
        concurrency: Concurrency::Exclusive,
        default_policy: DefaultPolicy::Allow,
        interrupt: Interrupt::Finish,
        ..Semantics::mutating()
    };
    let tool = Tool::builder::<Bytes, String>("A job of a test.")
        .semantics(semantics)
        .plan_access(|_, _| {
            let own = portcullis_contract::Resource::own(portcullis_contract::NamedKind::McpTool, "job");
            let risk = [portcullis_base::Risk::Write].into();
            vec![portcullis_contract::AccessRequest::new(portcullis_contract::Action::new("job"), own, risk)]
        })
        .execute(move |input, context| {
            let leave = Arc::clone(&leave);
            async move {
                let mut out = context.spool("stdout");
                for n in 0..input.bytes {
                    out.write(if n % 10 == 9 { b"\n" } else { b"." }).expect("kept");
                }
                context.background(Background::default())?;
                tokio::select! {
                    () = leave.notified() => Ok("the result".to_owned()),
                    _ = context.cancelled() => Ok("stopped".to_owned()),
                }
            }
        });
    BTreeMap::from([("job".parse().expect("a name"), tool.build().expect("a sound tool"))])
}

async fn begin(hand: &Hand<'_>, bytes: usize) -> Value {
    let seen = hand.done("job", json!({ "bytes": bytes })).await;
    assert_eq!(seen.code.known(), Some(Code::BackgroundStarted));
    seen.structured.expect("a task")["task_id"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_running_task_shows_what_it_wrote_and_an_ended_one_its_result() {
    let world = World::new();
    let leave = Arc::new(Notify::new());
    let process = world.start_with(job(&leave));
    let hand = process.open(world.session().await).await;
    let id = begin(&hand, 25).await;

    let seen = hand.done("task_output", json!({ "task_id": id })).await;
    assert_eq!(text(&seen), ".........\n.........\n.....");
    let view = seen.structured.expect("a view");
    assert_eq!((&view["state"], &view["tool"], &view["text"]), (&json!("running"), &json!("job"), &Value::Null));
    assert_eq!(view["streams"], json!([{"name": "stdout", "bytes": 25}]));
    let new = hand.done("task_output", json!({ "task_id": id, "range": [20, 0] })).await;
    assert_eq!(text(&new), ".....", "only what came since");
    let bad = json!({ "task_id": id, "range": [20, 10] });
    hand.refused("task_output", bad, Code::SchemaInvalid, None, Phase::Validate).await;

    let begun = tokio::time::Instant::now();
    let still = hand.done("task_wait", json!({ "task_id": id, "timeout_ms": 1_500 })).await;
    assert_eq!(still.structured.expect("a view")["state"], "running", "out of time is no failure");
    assert_eq!(begun.elapsed(), Duration::from_millis(1_500));
    let capped = hand.done("task_wait", json!({ "task_id": id, "timeout_ms": 3_600_000 })).await;
    assert_eq!(begun.elapsed(), Duration::from_millis(61_500));
    assert_eq!(capped.warnings, ["timeout_ms 3600000 was lowered to 60000"]);

    let waiting = hand.propose("task_wait", &json!({ "task_id": id }));
    leave.notify_one();
    let ended = hand.settle(waiting).await;
    assert_eq!(text(&ended), "the result");
    assert_eq!(ended.structured.expect("a view")["state"], "ok");
    let again = hand.done("task_output", json!({ "task_id": id, "range": [4, 7] })).await;
    assert_eq!(text(&again), "res", "of one that has ended, bytes of its text");
    let late = hand.done("task_cancel", json!({ "task_id": id })).await;
    assert_eq!(late.structured.expect("a view")["state"], "ok", "what has ended stays as it is");
    assert_eq!(late.side_effects.state, SideEffectState::None);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_holds_every_key_can_be_cancelled_without_asking() {
    let world = World::new();
    let process = world.start_with(job(&Arc::default()));
    let hand = process.open(world.session().await).await;
    let id = begin(&hand, 12).await;
    let begun = tokio::time::Instant::now();
    let seen = hand.done("task_cancel", json!({ "task_id": id })).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "it waits for no key of the task: {:?}", begun.elapsed());
    assert_eq!(seen.structured.as_ref().expect("a view")["state"], "cancelled");
    assert_eq!(text(&seen), ".........\n..", "what it wrote until then");
    assert_eq!(seen.side_effects.items[0].kind, "task_cancelled");
    hand.session.release().await.expect("nothing is left to wait for");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_another_session_is_not_found() {
    let world = World::new();
    let leave = Arc::new(Notify::new());
    let process = world.start_with(job(&leave));
    let hand = process.open(world.session().await).await;
    let id = begin(&hand, 1).await;
    let stranger = process.open(world.session().await).await;
    let none = json!("task_00000000000000000000000001");
    for (who, id) in [(&stranger, &id), (&hand, &none)] {
        let (code, reason) = (Code::RuntimePreconditionFailed, Some(Reason::NotFound));
        for tool in ["task_output", "task_wait", "task_cancel"] {
            let seen = who.call(tool, json!({ "task_id": id })).await;
            let told = (seen.code.known(), seen.reason.as_ref().and_then(|r| r.known()), seen.phase.known());
            assert_eq!(told, (Some(code), reason, Some(Phase::Execute)), "{tool}: {}", seen.summary);
        }
    }
    leave.notify_one();
    hand.session.tasks_ended().await;
    let seen = hand.done("task_output", json!({ "task_id": id })).await;
    assert_eq!(seen.structured.expect("a view")["state"], "ok", "the stranger's cancel stopped nothing");
}

#[tokio::test(start_paused = true)]
async fn l58_of_a_long_output_both_ends_are_held_and_the_rest_is_said_to_come() {
    let world = World::new();
    let leave = Arc::new(Notify::new());
    let process = world.start_with(job(&leave));
    let hand = process.open(world.session().await).await;
    let id = begin(&hand, 400_000).await;
    let seen = hand.done("task_output", json!({ "task_id": id })).await;
    assert!(!seen.truncated && seen.artifacts.is_empty(), "a look costs no evidence");
    assert!(text(&seen).contains("are not shown; look at them with range"), "{}", text(&seen).len());
    let middle = hand.done("task_output", json!({ "task_id": id, "range": [100_000, 100_020] })).await;
    assert_eq!(text(&middle), "[bytes 100000–100020 can be read when the task has ended]\n");
    let end = hand.done("task_output", json!({ "task_id": id, "range": [399_980, 0] })).await;
    assert_eq!(text(&end), ".........\n.........\n");
    hand.done("task_cancel", json!({ "task_id": id })).await;
    let ended = hand.done("task_output", json!({ "task_id": id })).await;
    let view = ended.structured.expect("a view");
    assert_eq!((&view["truncated"], &view["artifacts"][0]["bytes"]), (&json!(true), &json!(400_000)));
    let artifact = json!({ "id": view["artifacts"][0]["id"], "range": [100_000, 100_020] });
    assert_eq!(text(&hand.done("artifact_read", artifact).await), ".........\n.........\n", "L45: all of it");
}
