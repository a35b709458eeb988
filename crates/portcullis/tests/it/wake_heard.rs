//! What people say to a session is heard, at once and whatever it does: a no that means stop, an interrupt of what waits,
//! words beside a background task, another try.

use std::sync::Arc;
use std::time::Duration;

use portcullis::harness::{Guidance, Settings, WakeStop, Woken};
use portcullis::model::{Failure, ModelError};
use portcullis::{AskAnswer, Background, CancellationToken, DefaultPolicy, Reply, RuntimeError, Semantics, Tool};
use portcullis_event::facts::StopReason;
use portcullis_store::StoreError;

use crate::brain::{Brain, call, said};
use crate::world::{WRITE, World, allow_pending, executed, pending, world};

const OTHER: &str = r#"{"file_path":"b.txt","content":"x\n"}"#;

async fn refuse_and_stop(world: &World) {
    let ask = pending(world).await;
    world.runtime.reply(ask, AskAnswer::by("me", Reply::DenyAndStop)).await.expect("a reply");
}

#[tokio::test]
async fn r04_a_no_that_means_stop_leaves_the_session_idle_and_runs_nothing_behind_it() {
    let two = vec![call("c1", "write", WRITE), call("c2", "write", OTHER)];
    let world = world(Brain::new([two, vec![said("I stopped.")]])).await;
    world.say("make them").await;
    executed(world.wake().await);
    refuse_and_stop(&world).await;
    assert_eq!(executed(world.wake().await).stop, WakeStop::Idle(StopReason::Interrupted));
    assert_eq!(world.brain.requests().len(), 1, "the model is not asked again");
    assert_eq!(world.count("tool.permission.asked").await, 1, "nobody is asked about the second call");
    assert_eq!(world.count("tool.observation").await, 2, "both calls are settled");
    assert!(!world.folder.path().join("new.txt").exists() && !world.folder.path().join("b.txt").exists());
    assert_eq!(world.wake().await, Woken::Idle, "it rests");
    let head = world.runtime.gate().store().head(world.key()).await.expect("a store").expect("a head");
    assert_eq!(head.next_due_at, None);
    world.say("and now?").await;
    assert_eq!(executed(world.wake().await).text, "I stopped.", "the stop was heeded once");
    assert!(world.brain.requests()[1].contains("user_denied"));
}

#[tokio::test]
async fn r04_whoever_refuses_with_a_stop_and_speaks_is_heard() {
    let world = world(Brain::new([vec![call("c1", "write", WRITE)], vec![said("Then not.")]])).await;
    world.say("make it").await;
    executed(world.wake().await);
    world.say("tell me why instead").await;
    refuse_and_stop(&world).await;
    assert_eq!(executed(world.wake().await).text, "Then not.");
    assert_eq!(world.wake().await, Woken::Idle);
}

#[tokio::test]
async fn check28_an_interrupt_closes_what_waits_at_once_and_takes_no_answer_any_more() {
    let world = world(Brain::new([vec![call("c1", "write", WRITE)], vec![said("Stopped.")]])).await;
    world.say("make it").await;
    executed(world.wake().await);
    let ask = pending(&world).await;
    world.runtime.interrupt(world.session, "me", None).await.expect("an interrupt");
    // No wake has run since.
    let refused = world.runtime.reply(ask, AskAnswer::by("me", Reply::AllowSaved)).await;
    assert!(matches!(refused, Err(RuntimeError::Store(StoreError::AskSettled { .. }))), "{refused:?}");
    assert_eq!(world.count("grant.created").await, 0, "and nothing is remembered of it");
    assert_eq!(executed(world.wake().await).stop, WakeStop::Idle(StopReason::Interrupted));
    assert!(!world.folder.path().join("new.txt").exists());
    assert_eq!(world.count("tool.permission.closed").await, 1, "it was closed once");
    assert_eq!(world.count("tool.observation").await, 1);
}

#[tokio::test]
async fn guidance_is_told_first_also_where_the_first_wake_was_only_an_interrupt() {
    let guidance = Guidance { name: "AGENTS.md".to_owned(), text: "Use tabs.".to_owned() };
    let settings = Settings { guidance: Some(guidance), ..Settings::default() };
    let world = World::with(Brain::new([vec![said("Yes.")], vec![said("Again.")]]), settings, |builder| builder).await;
    world.runtime.interrupt(world.session, "me", Some("hold on")).await.expect("an interrupt");
    executed(world.wake().await);
    for _ in 0..2 {
        world.say("hello").await;
        executed(world.wake().await);
    }
    let heard = world.brain.requests();
    let (guided, said) = (heard[0].find("Use tabs."), heard[0].find("hello"));
    assert!(guided.is_some() && guided < said, "{}", heard[0]);
    assert_eq!(heard[1].matches("Use tabs.").count(), 1, "and once: {}", heard[1]);
}

/// A model that fails so many times and then answers.
fn failing(times: usize, failure: Failure) -> Brain {
    let fail = || Err(ModelError::new(failure, "no"));
    let failures = std::iter::repeat_with(fail).take(times);
    Brain::scripted(failures.chain([Ok(vec![said("Here I am.")])]))
}

async fn now(world: &World) -> Woken {
    world.agent.wake_now(world.session, &CancellationToken::new()).await.expect("a wake")
}

#[tokio::test]
async fn h35_an_operators_wake_tries_again_what_was_given_up() {
    let settings = Settings { other_tries: 1, ..Settings::default() };
    let world = World::with(failing(1, Failure::Auth), settings, |builder| builder).await;
    world.say("hello").await;
    assert!(matches!(executed(world.wake().await).stop, WakeStop::GaveUp { .. }));
    let head = world.runtime.gate().store().head(world.key()).await.expect("a store").expect("a head");
    assert_eq!(head.next_due_at, None, "nobody comes by themselves");
    assert_eq!(world.wake().await, Woken::Idle, "nor does a worker that passes by");
    assert_eq!(executed(now(&world).await).text, "Here I am.");
    assert_eq!(world.brain.requests()[1].matches("hello").count(), 1, "what was said stands there once");
    assert_eq!(world.wake().await, Woken::Idle, "answered once");
}

#[tokio::test]
async fn h35_an_operators_wake_does_not_wait_for_the_time_of_the_next_try() {
    let world = world(failing(2, Failure::Overloaded)).await;
    world.say("hello").await;
    for _ in 0..2 {
        assert!(matches!(executed(now(&world).await).stop, WakeStop::Retrying { .. }));
        assert_eq!(world.wake().await, Woken::Idle, "by itself it waits");
    }
    assert_eq!(executed(now(&world).await).text, "Here I am.");
    assert_eq!(now(&world).await, Woken::Idle, "no try is left");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A call that goes on in the background until somebody stops it, and leaves a file if nobody does.
fn endless(left: std::path::PathBuf) -> Tool {
    let semantics = Semantics { backgroundable: true, default_policy: DefaultPolicy::Allow, ..Semantics::read_only() };
    Tool::builder::<Nothing, String>("Goes on.")
        .semantics(semantics)
        .execute(move |_, context| {
            let left = left.clone();
            async move {
                context.background(Background::default())?;
                tokio::time::sleep(Duration::from_secs(60)).await;
                std::fs::write(left, "late").expect("a file");
                Ok("done".to_owned())
            }
        })
        .build()
        .expect("a sound tool")
}

#[tokio::test]
async fn h28_words_and_interrupts_are_heard_while_a_background_task_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let late = folder.path().join("late");
    let brain = Brain::new([vec![call("c1", "endless", "{}")], vec![said("It runs.")], vec![said("Yes, still.")]]);
    let with_tool =
        |builder: portcullis::RuntimeBuilder| builder.tool("endless", endless(late.clone())).expect("a name");
    let world = Arc::new(World::with(brain, Settings::default(), with_tool).await);
    world.say("start it").await;
    let agent = world.agent.clone();
    let session = world.session;
    let working = tokio::spawn(async move { agent.wake(session, &CancellationToken::new()).await });
    let answered = async |times: usize| {
        while world.count("final.checked").await < times {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let heard = async {
        answered(1).await;
        world.say("does it still run?").await;
        answered(2).await;
        assert_eq!(world.count("task.completed").await, 0, "it does");
        world.runtime.interrupt(session, "me", None).await.expect("an interrupt");
        working.await.expect("no panic").expect("a wake")
    };
    let end = tokio::time::timeout(Duration::from_secs(20), heard).await.expect("nobody waits for the task");
    assert_eq!(executed(end).stop, WakeStop::Idle(StopReason::Interrupted));
    assert_eq!(world.count("task.completed").await, 1, "the interrupt ended it");
    assert!(!late.exists());
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Step {
    file: String,
    /// It goes on until it is stopped.
    stays: bool,
}

fn step(folder: std::path::PathBuf) -> Tool {
    let semantics = Semantics { interrupt: portcullis::Interrupt::Cancel, ..Semantics::mutating() };
    Tool::builder::<Step, String>("Makes a file.")
        .semantics(semantics)
        .execute(move |step, context| {
            let file = folder.join(step.file);
            async move {
                std::fs::write(file, "").expect("a file");
                if step.stays {
                    context.cancelled().await;
                }
                Ok("made".to_owned())
            }
        })
        .build()
        .expect("a sound tool")
}

#[tokio::test]
async fn check05_a_process_that_is_told_to_end_leaves_what_it_has_not_begun() {
    let two = vec![
        call("c1", "step", r#"{"file":"first","stays":true}"#),
        call("c2", "step", r#"{"file":"second","stays":false}"#),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().to_owned();
    let rules = "[[rules]]\naction = \"step\"\nopaque = true\neffect = \"allow\"\n";
    let rules = portcullis::parse_rules(rules, "rules.toml", portcullis::Layer::User).expect("rules");
    let policy = portcullis::PolicyBuilder::new().rules(rules).build().expect("a policy");
    let with_tool =
        |builder: portcullis::RuntimeBuilder| builder.policy(policy).tool("step", step(made.clone())).expect("a name");
    let world = World::with(Brain::new([two, vec![said("Done.")]]), Settings::default(), with_tool).await;
    world.say("go").await;
    let stop = CancellationToken::new();
    let (woken, ()) = tokio::join!(world.agent.wake(world.session, &stop), async {
        world.until("tool.invocation.started").await;
        stop.cancel();
    });
    assert_eq!(executed(woken.expect("a wake")).stop, WakeStop::Broken);
    assert_eq!(world.count("tool.observation").await, 1, "the one that ran is settled, the other is as it was");
    assert!(!made.join("second").exists());
    assert_eq!(executed(world.wake().await).text, "Done.");
    assert!(made.join("second").exists(), "the next who comes takes it up");
    assert_eq!(world.count("tool.observation").await, 2);
}

/// A model that makes one call for ever, each of which a person allows.
async fn allowed_for_ever(command: impl Fn(usize) -> String, settings: Settings) -> World {
    let answers = (0..40).map(|n| {
        let input = serde_json::json!({"command": command(n)}).to_string();
        vec![call(&format!("c{n}"), "bash", &input)]
    });
    let world = World::with(Brain::new(answers), settings, |builder| builder).await;
    world.say("go").await;
    for _ in 0..40 {
        match executed(world.wake().await).stop {
            WakeStop::RequiresAction(_) => {
                allow_pending(&world).await;
            }
            _ => return world,
        }
    }
    panic!("it goes on for ever");
}

#[tokio::test]
async fn h28_the_limit_of_requests_holds_across_the_asks_of_one_piece_of_work() {
    let settings = Settings { max_requests_per_message: 5, max_turns_per_wake: 2, ..Settings::default() };
    let world = allowed_for_ever(|n| format!("touch made{n}"), settings).await;
    let heard = world.brain.requests();
    assert_eq!(heard.len(), 5, "asks in between make no more of it");
    assert!(heard[3].contains("the limit of 5 model requests for one message is near"), "{}", heard[3]);
    assert!(heard[4].contains("this is the last request of this wake"));
    assert_eq!(world.count("tool.invocation.started").await, 4);
    // A new word is new work.
    world.say("go on").await;
    assert!(matches!(executed(world.wake().await).stop, WakeStop::RequiresAction(_)));
}

#[tokio::test]
async fn l47_the_same_call_again_and_again_is_stopped_also_where_each_is_allowed_by_hand() {
    let world = allowed_for_ever(|_| "touch same".to_owned(), Settings::default()).await;
    let heard = world.brain.requests();
    assert_eq!(heard.len(), 8, "four that ran, three that were refused, and one that sums up");
    assert!(heard.iter().any(|heard| heard.contains("loop_detected")), "{}", heard.last().expect("a request"));
    assert_eq!(world.count("tool.invocation.started").await, 4);
}

/// What a process remembers of a conversation is what its log says: one that has just begun sends the same bytes.
#[tokio::test]
async fn l71_a_remembered_conversation_and_one_read_anew_are_the_same_bytes() {
    let asks = (0..6).map(|n| {
        let input = serde_json::json!({"file_path": format!("{n}.txt"), "content": "x\n"}).to_string();
        vec![said("Next."), call(&format!("c{n}"), "write", &input)]
    });
    let world = world(Brain::new(asks.chain([vec![said("Done.")]]))).await;
    world.say("write six files").await;
    executed(world.wake().await);
    for n in 0..6 {
        allow_pending(&world).await;
        let fresh = world.runtime.agent(crate::world::parts(Arc::clone(&world.brain) as _, Settings::default()));
        let agent = if n % 2 == 0 { &fresh } else { &world.agent };
        executed(agent.wake(world.session, &CancellationToken::new()).await.expect("a wake"));
    }
    let heard = world.brain.requests();
    assert_eq!(heard.len(), 7);
    for pair in heard.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "{}\n{}", pair[0], pair[1]);
    }
}

#[tokio::test]
async fn check36_a_wake_that_goes_on_with_an_answer_renders_only_what_is_new() {
    let asks = (0..6).map(|n| {
        let input = serde_json::json!({"file_path": format!("{n}.txt"), "content": "x\n"}).to_string();
        vec![call(&format!("c{n}"), "write", &input)]
    });
    let world = world(Brain::new(asks.chain([vec![said("Done.")]]))).await;
    world.say("write six files").await;
    executed(world.wake().await);
    for _ in 0..6 {
        allow_pending(&world).await;
        executed(world.wake().await);
    }
    assert_eq!(world.brain.requests().len(), 7);
    // What was asked for, and an answer and a result for each file; and one message of each wake once more, which its fold
    // had not read yet when it was given back.
    assert_eq!(world.brain.rendered(), 1 + 2 * 6 + 6, "rendered anew in each wake it would be 49");
}
