//! A wake that comes to its bound ends, and the next one goes on at once: nobody notices (agent-runtime 5.4, step 10).

use std::sync::{Arc, Mutex};

use portcullis::harness::{Limit, Live, Settings, WakeStop, Watcher, Woken};
use portcullis::{AgentParts, CancellationToken};
use portcullis_event::facts::StopReason;

use crate::brain::{Brain, call, said};
use crate::world::{World, executed, parts};

/// A model that makes `calls` calls, each another one, and then answers.
async fn working(calls: usize, settings: Settings) -> World {
    let calls = (0..calls).map(|n| vec![call(&format!("c{n}"), "glob", &format!(r#"{{"pattern":"{n}*"}}"#))]);
    World::with(Brain::new(calls.chain([vec![said("All done.")]])), settings, |builder| builder).await
}

fn bound(turns: u32) -> Settings {
    Settings { max_turns_per_wake: turns, ..Settings::default() }
}

/// What was said to whoever watches, by its first word.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Watcher for Seen {
    fn see(&self, live: Live<'_>) {
        let word = format!("{:?}", live.event);
        let word = word.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned();
        self.0.lock().expect("whole").push(word);
    }
}

#[tokio::test]
async fn h28_a_wake_at_its_bound_is_followed_by_the_next_without_a_word() {
    for directive in [false, true] {
        let world = working(7, Settings { directive, ..bound(3) }).await;
        world.say("go").await;
        let seen = Arc::new(Seen::default());
        let settings = Settings { directive, ..bound(3) };
        let parts = AgentParts { watcher: Arc::clone(&seen) as _, ..parts(Arc::clone(&world.brain) as _, settings) };
        let agent = world.runtime.agent(parts);
        let end = executed(agent.wake(world.session, &CancellationToken::new()).await.expect("a wake"));
        assert_eq!((end.stop, end.text.as_str(), end.limit), (WakeStop::Idle(StopReason::EndTurn), "All done.", None));
        assert_eq!(end.processed.len(), 1, "the message that it all began with");
        assert_eq!(world.count("span.started").await, 3, "8 requests, three a wake");
        assert_eq!(world.count("span.completed").await, 3);
        assert_eq!((world.count("wake.queued").await, world.count("wake.consumed").await), (2, 2));
        let words = seen.0.lock().expect("whole").clone();
        assert!(!words.iter().any(|word| word == "Warning" || word == "Compacted"), "{words:?}");
        // Each request is the one before and what came of it: the model is told nothing in between.
        let heard = world.brain.requests();
        assert_eq!(heard.len(), 8);
        for (before, after) in heard.iter().zip(&heard[1..]) {
            assert!(after.starts_with(before), "{after}");
            let new = &after[before.len()..];
            assert!(!new.contains("session-event") && !new.contains("<wake>") && !new.contains("[automatic"), "{new}");
        }
    }
}

#[tokio::test]
async fn h28_a_follow_on_wake_costs_one_commit() {
    let commits = |turns: u32| async move {
        let world = working(7, Settings { directive: false, ..bound(turns) }).await;
        world.say("go").await;
        let agent =
            world.runtime.agent(parts(Arc::clone(&world.brain) as _, Settings { directive: false, ..bound(turns) }));
        executed(agent.wake(world.session, &CancellationToken::new()).await.expect("a wake"));
        let mut appends: Vec<_> = world.events().await.iter().map(|event| event.append_id).collect();
        appends.dedup();
        appends.len()
    };
    assert_eq!(commits(3).await, commits(100).await + 2, "two wakes more");
}

#[tokio::test]
async fn h28_the_limit_of_a_message_holds_over_wakes_and_ends_the_work() {
    let settings = Settings { max_requests_per_message: 5, ..bound(2) };
    let world = working(20, settings).await;
    world.say("go").await;
    let end = executed(world.wake().await);
    assert_eq!((end.stop, end.limit), (WakeStop::Idle(StopReason::BudgetReached), Some(Limit::Requests(5))));
    let heard = world.brain.requests();
    assert_eq!(heard.len(), 5);
    assert!(heard[3].contains("the limit of 5 model requests for one message is near"), "{}", heard[3]);
    assert!(!heard[2].contains("is near"), "{}", heard[2]);
    assert!(heard[4].contains("no tool can be called any more"), "{}", heard[4]);
    assert_eq!(world.wake().await, Woken::Idle, "and nothing goes on by itself");
    // A new word is new work.
    world.say("go on").await;
    executed(world.wake().await);
    assert_eq!(world.brain.requests().len(), 10);
}
