//! Somebody speaks while the model gives its last answer: the answer is told and checked all the same.

use std::sync::Arc;

use portcullis::CancellationToken;
use portcullis::harness::{WakeStop, Woken};
use portcullis_event::Body;

use crate::brain::{Brain, said};
use crate::world::{World, executed, world};

const FIRST: &str = r#"I created `src/new.rs`. <portcullis-session-loop>{"outcome":"sleep","summary":"s","queuedWakes":[{"reason":"look again","delaySeconds":60}],"learnings":[{"title":"t","detail":"d"}]}</portcullis-session-loop>"#;

/// A model that is spoken to, or interrupted, while it gives its first answer; and how each wake ended.
async fn meanwhile(interrupt: bool) -> (World, Vec<WakeStop>) {
    let world = world(Brain::new([])).await;
    let (runtime, session) = (world.runtime.clone(), world.session);
    let model = Brain::acting(move |n, _| {
        let runtime = runtime.clone();
        async move {
            match (n, interrupt) {
                (0, false) => drop(runtime.say(session, "me", "thanks").await.expect("said")),
                (0, true) => drop(runtime.interrupt(session, "me", None).await.expect("an interrupt")),
                _ => return vec![said("You are welcome.")],
            }
            vec![said(FIRST)]
        }
    });
    let agent = world.alone(Arc::new(model));
    world.say("go").await;
    let mut stops = Vec::new();
    while let Woken::Executed(end) = agent.wake(session, &CancellationToken::new()).await.expect("a wake") {
        stops.push(end.stop);
    }
    (world, stops)
}

/// What was said, and what each came to.
async fn told(world: &World) -> (Vec<String>, Vec<&'static str>) {
    let (mut words, mut verdicts) = (Vec::new(), Vec::new());
    for event in world.events().await {
        match event.body() {
            Body::AgentMessage(message) => words.push(portcullis_event::facts::text_of(&message.content)),
            Body::FinalChecked(checked) => verdicts.push(checked.verdict.as_str()),
            _ => {}
        }
    }
    (words, verdicts)
}

#[tokio::test]
async fn l76_an_answer_that_somebody_spoke_into_is_told_checked_and_heeded() {
    let (world, stops) = meanwhile(false).await;
    let (words, verdicts) = told(&world).await;
    assert_eq!(words, ["I created `src/new.rs`.", "You are welcome."]);
    assert_eq!(verdicts, ["contradicted", "no_claims"], "a lie is one, whoever speaks meanwhile");
    assert_eq!((world.count("wake.queued").await, world.count("learning.captured").await), (1, 1));
    assert!(matches!(stops[..], [WakeStop::Rescheduled(_)]), "{stops:?}");
}

#[tokio::test]
async fn l76_an_answer_that_was_interrupted_at_its_end_is_told_and_nothing_comes_of_it_by_itself() {
    let (world, stops) = meanwhile(true).await;
    let (words, verdicts) = told(&world).await;
    assert_eq!((words, verdicts), (vec!["I created `src/new.rs`.".to_owned()], vec!["contradicted"]));
    assert_eq!((world.count("wake.queued").await, world.count("learning.captured").await), (0, 1));
    assert!(matches!(stops[..], [WakeStop::Idle(_)]), "{stops:?}");
    // The next wake does not tell it again.
    world.say("and now?").await;
    let agent = world.alone(Arc::new(Brain::acting(|_, _| async { vec![said("Nothing.")] })));
    executed(agent.wake(world.session, &CancellationToken::new()).await.expect("a wake"));
    assert_eq!(told(&world).await.0, ["I created `src/new.rs`.", "Nothing."]);
}
