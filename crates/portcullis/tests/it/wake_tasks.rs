//! Background tasks and the fact-check (tool-contract §24): what still runs proves nothing.

use std::sync::Arc;

use portcullis::harness::Settings;
use portcullis::{Background, CancellationToken, DefaultPolicy, Semantics, Tool, ToolFailure};
use portcullis_contract::VerificationKind;
use tokio::sync::Notify;

use crate::brain::{Brain, call, said};
use crate::world::{World, executed};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Tests {
    passes: bool,
}

/// Tests that go on in the background until they are let go.
fn tests(leave: &Arc<Notify>) -> Tool {
    let leave = Arc::clone(leave);
    let semantics = Semantics {
        backgroundable: true,
        default_policy: DefaultPolicy::Allow,
        verifies: Some(VerificationKind::Tests),
        ..Semantics::read_only()
    };
    Tool::builder::<Tests, String>("Runs the tests.")
        .semantics(semantics)
        .execute(move |input, context| {
            let leave = Arc::clone(&leave);
            async move {
                context.background(Background::default())?;
                leave.notified().await;
                match input.passes {
                    true => Ok("all is well".to_owned()),
                    false => Err(ToolFailure::command(Some(1), None, "one failed")),
                }
            }
        })
        .build()
        .expect("a sound tool")
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A call that lasts until it is let go.
fn pause(go: &Arc<Notify>) -> Tool {
    let go = Arc::clone(go);
    Tool::builder::<Nothing, String>("Waits.")
        .semantics(Semantics::read_only())
        .execute(move |_, _| {
            let go = Arc::clone(&go);
            async move {
                go.notified().await;
                Ok("on".to_owned())
            }
        })
        .build()
        .expect("a sound tool")
}

/// A session whose model starts the tests and then claims that they pass; `ended`: only when they have ended.
async fn claimed(passes: bool, ended: bool) -> (World, String, String) {
    let (leave, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let brain = Brain::new([
        vec![call("c1", "tests", &format!(r#"{{"passes":{passes}}}"#))],
        vec![call("c2", "pause", "{}")],
        vec![said("All tests pass.")],
        vec![said("As I said, all tests pass.")],
    ]);
    let with_tool = |builder: portcullis::RuntimeBuilder| {
        let builder = builder.tool("tests", tests(&leave)).expect("a name");
        builder.tool("pause", pause(&go)).expect("a name")
    };
    let world = World::with(brain, Settings::default(), with_tool).await;
    world.say("do the tests pass?").await;
    let (first, then, event) = if ended { (&leave, &go, "task.completed") } else { (&go, &leave, "final.checked") };
    first.notify_one();
    let never = CancellationToken::new();
    let (woken, ()) = tokio::join!(world.agent.wake(world.session, &never), async {
        world.until(event).await;
        then.notify_one();
    });
    let checked = executed(woken.expect("a wake")).checked.expect("it is checked");
    let fact = checked.claims.iter().map(|claim| format!("{claim:?}")).collect();
    (world, checked.verdict.as_str().to_owned(), fact)
}

#[tokio::test]
async fn l76_a_claim_about_tests_that_still_run_is_not_supported() {
    let (world, verdict, fact) = claimed(true, false).await;
    assert_eq!(verdict, "unsupported", "{fact}");
    assert!(fact.contains("runs as a background task"), "{fact}");
    // The next wake finds in the log how they ended.
    world.say("sure?").await;
    let checked = executed(world.wake().await).checked.expect("it is checked");
    assert_eq!(checked.verdict.as_str(), "supported", "{checked:?}");
}

#[tokio::test]
async fn l76_the_end_of_a_background_task_decides_what_it_verifies() {
    let (_, verdict, fact) = claimed(false, true).await;
    assert_eq!(verdict, "contradicted", "{fact}");
    let (_, verdict, fact) = claimed(true, true).await;
    assert_eq!(verdict, "supported", "{fact}");
}
