//! The directive as a call that ends a wake (agent-runtime 5.5, H30).

use std::sync::Arc;

use portcullis::harness::{WakeEnd, WakeStop};
use portcullis::model::AnswerPart;
use portcullis::{Agent, CancellationToken, CustomTool};
use portcullis_event::Body;
use portcullis_event::facts::StopReason;
use serde_json::json;

use crate::brain::{Brain, call, said};
use crate::world::{World, executed, world};

async fn wake(world: &World, agent: &Agent) -> WakeEnd {
    executed(agent.wake(world.session, &CancellationToken::new()).await.expect("a wake"))
}

fn ends(id: &str, input: &serde_json::Value) -> AnswerPart {
    call(id, "session_loop", &input.to_string())
}

#[tokio::test]
async fn h30_a_call_ends_the_wake_and_says_what_comes_after_it() {
    let wish = json!({
        "outcome": "sleep", "summary": "looked", "queuedWakes": [{"reason": "look again", "delaySeconds": 60}],
        "learnings": [{"title": "t", "detail": "d"}], "claims": ["tests pass"],
    });
    let read = call("c1", "read", r#"{"file_path":"a.txt"}"#);
    let world = world(Brain::new([vec![read, said("I looked."), ends("c2", &wish)], vec![said("Again.")]])).await;
    std::fs::write(world.folder.path().join("a.txt"), "x\n").expect("a file");
    let agent = world.alone(Arc::clone(&world.brain) as _);
    world.say("look").await;
    let end = wake(&world, &agent).await;
    assert!(matches!(end.stop, WakeStop::Rescheduled(_)), "{:?}", end.stop);
    assert_eq!(end.text, "I looked.");
    assert_eq!(world.brain.requests().len(), 1, "it is not asked once more");
    assert!(world.brain.menus()[0].contains(&"session_loop".to_owned()));
    assert_eq!((world.count("wake.queued").await, world.count("learning.captured").await), (1, 1));
    let claims = end.checked.expect("the answer is checked").claims;
    assert!(claims.iter().any(|claim| claim.claim.contains("tests pass")), "{claims:?}");
    assert_eq!(world.count("agent.message").await, 1, "what it said is told once");
    // The call and its result stand in the conversation like any other.
    world.say("and now?").await;
    wake(&world, &agent).await;
    let heard = world.brain.requests();
    assert!(heard[1].starts_with(&heard[0]) && heard[1].contains("This wake ends here."), "{}", heard[1]);
}

#[tokio::test]
async fn h30_a_call_that_says_nothing_valid_is_refused_and_the_model_goes_on() {
    let wrong = json!({"outcome": "later", "summary": "x"});
    let right = json!({"outcome": "sleep", "summary": "done now"});
    let world = world(Brain::new([vec![ends("c1", &wrong)], vec![ends("c2", &right)]])).await;
    let agent = world.alone(Arc::clone(&world.brain) as _);
    world.say("go").await;
    assert_eq!(wake(&world, &agent).await.stop, WakeStop::Idle(StopReason::EndTurn));
    assert!(world.brain.requests()[1].contains("schema_invalid"));
    let summary = world.events().await.into_iter().rev().find_map(|event| match event.body() {
        Body::SpanCompleted(span) => Some(span.summary),
        _ => None,
    });
    assert_eq!(summary.as_deref(), Some("done now"));
    assert_eq!(world.count("agent.message").await, 1, "a wake without words has its message too (H29)");
}

#[tokio::test]
async fn h30_where_somebody_reads_along_no_such_call_is_offered_or_heeded() {
    let wish = json!({"outcome": "continue", "summary": "x"});
    let world = world(Brain::new([vec![ends("c1", &wish)], vec![said("Well.")]])).await;
    world.say("go").await;
    let end = executed(world.wake().await);
    assert_eq!((end.text.as_str(), &end.stop), ("Well.", &WakeStop::Idle(StopReason::EndTurn)));
    assert!(!world.brain.menus()[0].contains(&"session_loop".to_owned()));
    assert!(world.brain.requests()[1].contains("unknown_tool"));
}

#[tokio::test]
async fn h30_a_client_cannot_take_its_name() {
    let world = world(Brain::new([])).await;
    let taken = CustomTool {
        name: "session_loop".to_owned(),
        description: "mine".to_owned(),
        input_schema: json!({"type": "object"}),
    };
    let made = world.runtime.create_session_with("x", &[taken]).await;
    assert!(made.is_err_and(|error| error.to_string().contains("session_loop")));
}
