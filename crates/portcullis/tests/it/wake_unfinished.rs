//! Answers that their provider took back, or that came to a limit before they said anything; and names that are secrets.

use std::sync::{Arc, Mutex};

use portcullis::harness::{Live, Settings, WakeStop, Watcher};
use portcullis::model::{Failure, Stop};
use portcullis::{AgentParts, CancellationToken};
use portcullis_event::facts::StopReason;

use crate::brain::{Brain, call, said};
use crate::world::{WRITE, World, executed, parts, world};

/// Remembers what a person was shown.
#[derive(Default)]
struct Seen(Mutex<String>);

impl Watcher for Seen {
    fn see(&self, live: Live<'_>) {
        self.0.lock().expect("whole").push_str(&format!("{:?}\n", live.event));
    }
}

/// Wakes the session while somebody watches, and gives what they saw.
async fn watched(world: &World, settings: Settings) -> (WakeStop, String) {
    let seen = Arc::new(Seen::default());
    let parts = AgentParts { watcher: Arc::clone(&seen) as _, ..parts(Arc::clone(&world.brain) as _, settings) };
    let agent = world.runtime.agent(parts);
    let end = executed(agent.wake(world.session, &CancellationToken::new()).await.expect("a wake"));
    let shown = seen.0.lock().expect("whole").clone();
    (end.stop, shown)
}

#[tokio::test]
async fn no_call_of_an_answer_that_was_refused_is_run() {
    let write = vec![said("I will"), call("w1", "write", WRITE)];
    let brain = Brain::new([write, vec![said("again")]]).always_ending(Stop::Refusal);
    let world = world(brain).await;
    world.say("make it").await;
    let (stop, shown) = watched(&world, Settings::default()).await;
    assert_eq!(stop, WakeStop::Idle(StopReason::Refusal));
    assert!(shown.contains("the 1 calls in it were not run"), "{shown}");
    assert_eq!(world.count("intent.proposed").await, 0);
    world.say("and now?").await;
    executed(world.wake().await);
    let sent = &world.brain.requests()[1];
    assert!(sent.contains("I will") && !sent.contains("w1"), "no call without a result: {sent}");
}

#[tokio::test]
async fn an_answer_of_nothing_that_ended_for_an_unknown_reason_is_tried_again() {
    let brain = Brain::new([vec![], vec![said("again")]]).always_ending(Stop::Other("who_knows".to_owned()));
    let world = world(brain).await;
    world.say("go").await;
    let WakeStop::Retrying { error, .. } = executed(world.wake().await).stop else { panic!("it is tried again") };
    assert!(error.failure == Failure::Server && error.message.contains("who_knows"), "{error}");
}

#[tokio::test]
async fn an_answer_that_used_up_its_limit_before_it_said_anything_is_no_end_of_the_work() {
    let world = world(Brain::new([vec![]]).always_ending(Stop::MaxTokens)).await;
    world.say("go").await;
    assert_eq!(executed(world.wake().await).stop, WakeStop::Idle(StopReason::BudgetReached));
}

#[tokio::test]
async fn a_wake_whose_last_answer_only_calls_came_to_a_limit() {
    let calls = (0..3).map(|n| vec![call(&format!("c{n}"), "glob", r#"{"pattern":"*"}"#)]);
    let world = world(Brain::new(calls)).await;
    world.say("go").await;
    let (stop, _) = watched(&world, Settings { max_requests_per_message: 2, ..Settings::default() }).await;
    assert_eq!(stop, WakeStop::Idle(StopReason::BudgetReached));
}

const SECRET: &str = "hunter2-very-secret";

#[tokio::test]
async fn l69_a_secret_as_the_name_of_a_tool_is_in_no_event_in_no_request_and_on_no_screen() {
    let known = |builder: portcullis::RuntimeBuilder| builder.conceal(portcullis::SecretText::new(SECRET.to_owned()));
    let arguments = format!(r#"{{"command":"echo {SECRET}"}}"#);
    let first = vec![call("c1", SECRET, "{}"), call("c2", "bash", &arguments)];
    // Its words come in pieces of a few bytes.
    let so = vec![said(&format!("The key is {SECRET}, so")), said(" be it: größer. ")];
    let brain = Brain::new([first, so]).in_pieces(3).warning(&format!("the id `{SECRET}` had been used before"));
    let world = World::with(brain, Settings::default(), known).await;
    world.say("go").await;
    let (_, shown) = watched(&world, Settings::default()).await;
    assert!(!world.log().await.contains(SECRET));
    assert!(world.brain.requests().iter().all(|sent| !sent.contains(SECRET)));
    assert!(shown.contains("had been used before") && !shown.contains(SECRET), "{shown}");
    let told: String = shown.lines().filter_map(|line| line.strip_prefix("Text(\"")?.strip_suffix("\")")).collect();
    assert_eq!(told, "The key is ***, so be it: größer. ", "nothing of it is told, and nothing else is lost");
}
