//! A wake that somebody wants to stop, and one that does not stop by itself.

use portcullis::CancellationToken;
use portcullis::harness::{Limit, Settings, WakeStop, Woken};
use portcullis_event::facts::StopReason;

use crate::brain::{Brain, call, said};
use crate::world::{WRITE, World, allow_pending, executed, pending, world};

#[tokio::test]
async fn h28_a_user_interrupt_ends_a_wake_that_waits_for_the_model() {
    let world = world(Brain::new([vec![said("Yes?")]])).await;
    world.say("hello").await;
    let silent = world.agent_with(Brain::silent());
    let never = CancellationToken::new();
    let (woken, ()) = tokio::join!(silent.wake(world.session, &never), async {
        world.until("span.model_request_start").await;
        world.runtime.interrupt(world.session, "me", Some("too slow")).await.expect("an interrupt");
    });
    assert_eq!(executed(woken.expect("a wake")).stop, WakeStop::Idle(StopReason::Interrupted));
    assert_eq!(world.wake().await, Woken::Idle, "the interrupt is consumed with the wake it ended");
    world.say("still there?").await;
    let end = executed(world.wake().await);
    assert_eq!(end.text, "Yes?");
    let heard = &world.brain.requests()[0];
    let (first, then) = (heard.find("user.interrupt: too slow"), heard.find("still there?"));
    assert!(first.is_some() && first < then, "the model hears of it, in its order: {heard}");
}

#[tokio::test]
async fn h26_an_interrupt_and_nothing_else_ends_the_wake_without_a_request() {
    let world = world(Brain::new([vec![call("c1", "write", WRITE)]])).await;
    world.say("make it").await;
    executed(world.wake().await);
    world.runtime.interrupt(world.session, "me", None).await.expect("an interrupt");
    assert_eq!(executed(world.wake().await).stop, WakeStop::Idle(StopReason::Interrupted));
    assert_eq!(world.brain.requests().len(), 1, "nobody was asked again");
    assert_eq!(world.wake().await, Woken::Idle);
    let kinds = world.kinds().await;
    let count = |kind: &str| kinds.iter().filter(|known| *known == kind).count();
    assert_eq!(count("tool.intent"), count("tool.observation"), "the call is settled as superseded");
}

#[tokio::test]
async fn check28_h26_an_interrupt_beats_a_confirmation_that_arrives_in_the_same_window() {
    let world = world(Brain::new([vec![call("c1", "write", WRITE)], vec![said("Stopped.")]])).await;
    world.say("make it").await;
    executed(world.wake().await);
    allow_pending(&world).await;
    world.runtime.interrupt(world.session, "me", Some("not that")).await.expect("an interrupt");
    world.say("what now?").await;
    let end = executed(world.wake().await);
    assert_eq!(end.text, "Stopped.");
    assert!(!world.folder.path().join("new.txt").exists(), "the answer is void");
    let heard = world.brain.requests();
    assert!(heard[1].contains("approval_superseded"), "{}", heard[1]);
}

#[tokio::test]
async fn check28_h28_an_interrupt_of_a_running_wake_cancels_what_was_to_come_by_itself() {
    let world = world(Brain::new([])).await;
    world.say("hello").await;
    let silent = world.agent_with(Brain::silent());
    let never = CancellationToken::new();
    let (woken, ()) = tokio::join!(silent.wake(world.session, &never), async {
        world.until("span.model_request_start").await;
        world.make_due().await;
        world.runtime.interrupt(world.session, "me", None).await.expect("an interrupt");
    });
    assert_eq!(executed(woken.expect("a wake")).stop, WakeStop::Idle(StopReason::Interrupted));
    assert_eq!(world.count("wake.cancelled").await, 1);
    assert_eq!(world.wake().await, Woken::Idle, "nothing goes on by itself");
}

#[tokio::test]
async fn a_model_that_always_calls_is_stopped_by_the_last_request_for_a_message() {
    let answers = (0..9).map(|n| vec![said("once more"), call(&format!("c{n}"), "read", r#"{"file_path":"a.txt"}"#)]);
    let settings = Settings { max_requests_per_message: 3, ..Settings::default() };
    let world = World::with(Brain::new(answers), settings, |builder| builder).await;
    std::fs::write(world.folder.path().join("a.txt"), "x\n").expect("a file");
    world.say("go").await;
    let end = executed(world.wake().await);
    assert_eq!((end.stop, end.limit), (WakeStop::Idle(StopReason::BudgetReached), Some(Limit::Requests(3))));
    assert_eq!(end.text, "once more");
    let heard = world.brain.requests();
    assert_eq!(heard.len(), 3, "three requests, not one more");
    assert!(heard[2].contains("this is the last request of this wake"), "{}", heard[2]);
    assert_eq!(world.count("tool.intent").await, 2, "the calls of the last answer are not run");
    world.say("go on").await;
    executed(world.wake().await);
    assert!(world.brain.requests()[3].starts_with(&heard[2]), "and the conversation goes on without them");
}

/// Two calls, of which the first asks: the second is held back.
fn two_calls() -> Vec<portcullis::model::AnswerPart> {
    vec![call("c1", "write", WRITE), call("c2", "write", r#"{"file_path":"b.txt","content":"x\n"}"#)]
}

#[tokio::test]
async fn check09_an_interrupt_ends_the_calls_that_were_held_back_as_well() {
    for words in [false, true] {
        let world = world(Brain::new([two_calls(), vec![said("Stopped.")]])).await;
        world.say("make them").await;
        executed(world.wake().await);
        world.runtime.interrupt(world.session, "me", None).await.expect("an interrupt");
        if words {
            world.say("do not write anything").await;
            assert_eq!(executed(world.wake().await).text, "Stopped.");
        } else {
            assert_eq!(executed(world.wake().await).stop, WakeStop::Idle(StopReason::Interrupted));
            world.say("and now?").await;
            assert_eq!(executed(world.wake().await).text, "Stopped.");
        }
        assert_eq!(world.count("tool.intent").await, 2, "both are told");
        assert_eq!(world.count("tool.observation").await, 2, "and settled");
        assert_eq!(world.count("tool.permission.asked").await, 1, "nobody was asked about the second");
        assert!(!world.folder.path().join("b.txt").exists() && !world.folder.path().join("new.txt").exists());
        let heard = &world.brain.requests()[1];
        assert!(heard.contains("cancelled_before_start"), "{heard}");
    }
}

#[tokio::test]
async fn check09_an_interrupt_while_an_approved_call_runs_lets_nothing_behind_it_run() {
    let (endless, began) = endless();
    let brain = Brain::new([vec![call("c1", "endless", "{}"), two_calls().remove(1)]]);
    let world =
        World::with(brain, Settings::default(), |builder| builder.tool("endless", endless).expect("a name")).await;
    world.say("go").await;
    executed(world.wake().await);
    allow_pending(&world).await;
    let never = CancellationToken::new();
    let (woken, ()) = tokio::join!(world.agent.wake(world.session, &never), async {
        began.notified().await;
        world.runtime.interrupt(world.session, "me", None).await.expect("an interrupt");
    });
    assert_eq!(executed(woken.expect("a wake")).stop, WakeStop::Idle(StopReason::Interrupted));
    assert_eq!(world.count("tool.observation").await, 2);
    assert!(!world.folder.path().join("b.txt").exists());
    assert_eq!(world.brain.requests().len(), 1);
}

/// Whoever carries out the answer, a wake or `approvals allow`: what was interrupted before it runs does not run.
#[tokio::test]
async fn check28_h26_an_answer_before_an_interrupt_runs_nothing_whoever_carries_it_out() {
    let world = world(Brain::new([vec![call("c1", "write", WRITE)], vec![said("Stopped.")]])).await;
    world.say("make it").await;
    executed(world.wake().await);
    let ask = allow_pending(&world).await;
    world.runtime.interrupt(world.session, "me", None).await.expect("an interrupt");
    let settled = world.runtime.see_through(ask, std::time::Duration::from_secs(20)).await.expect("settled");
    assert_eq!(settled.observed.code.known(), Some(portcullis::Code::ApprovalSuperseded));
    assert!(!world.folder.path().join("new.txt").exists());
    assert_eq!(world.count("tool.invocation.started").await, 0);
    // What is asked after it is not meant: an interrupt that no wake has taken up yet stops nothing new.
    let other = r#"{"file_path":"other.txt","content":"made\n"}"#;
    let parked = world.runtime.call(world.session, "write", other).await.expect("parked");
    let portcullis::CallOutcome::Waiting(ask) = parked else { panic!("{parked:?}") };
    world.runtime.reply(ask, portcullis::AskAnswer::by("me", portcullis::Reply::AllowOnce)).await.expect("a reply");
    let settled = world.runtime.see_through(ask, std::time::Duration::from_secs(20)).await.expect("settled");
    assert!(settled.observed.ok, "{}", settled.observed.summary);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A tool that asks and then runs until it is stopped, and a sign that it has begun.
fn endless() -> (portcullis::Tool, std::sync::Arc<tokio::sync::Notify>) {
    let began = std::sync::Arc::new(tokio::sync::Notify::new());
    let sign = std::sync::Arc::clone(&began);
    let semantics = portcullis::Semantics {
        default_policy: portcullis::DefaultPolicy::Ask,
        interrupt: portcullis::Interrupt::Cancel,
        ..portcullis::Semantics::mutating()
    };
    let endless = portcullis::Tool::builder::<Nothing, String>("Never ends.").semantics(semantics);
    let endless = endless.execute(move |_, context| {
        let sign = std::sync::Arc::clone(&sign);
        async move {
            sign.notify_one();
            context.cancelled().await;
            Ok("too late".to_owned())
        }
    });
    (endless.build().expect("a tool"), began)
}

#[tokio::test]
async fn check09_an_interrupt_stops_a_call_that_an_answer_let_run_outside_of_a_wake() {
    let (endless, began) = endless();
    let brain = Brain::new([vec![call("c1", "endless", "{}")]]);
    let world =
        World::with(brain, Settings::default(), |builder| builder.tool("endless", endless).expect("a name")).await;
    world.say("go").await;
    executed(world.wake().await);
    let ask = allow_pending(&world).await;
    let wait = std::time::Duration::from_secs(20);
    let (settled, ()) = tokio::join!(world.runtime.see_through(ask, wait), async {
        began.notified().await;
        world.runtime.interrupt(world.session, "me", None).await.expect("an interrupt");
    });
    assert_eq!(settled.expect("settled").observed.code.known(), Some(portcullis::Code::Cancelled));
}

#[tokio::test]
async fn h26_what_is_said_beside_an_interrupt_is_worked_on_with_all_its_calls() {
    let read = || vec![call("c2", "read", r#"{"file_path":"a.txt"}"#)];
    // Blocked at an ask, plainly idle, and before its first wake.
    for before in [Some(vec![call("c1", "write", WRITE)]), Some(vec![said("Hello.")]), None] {
        let answers = before.clone().into_iter().chain([read(), vec![said("Read it.")]]);
        let world = world(Brain::new(answers)).await;
        std::fs::write(world.folder.path().join("a.txt"), "x\n").expect("a file");
        world.say("go").await;
        if before.is_some() {
            executed(world.wake().await);
        }
        world.runtime.interrupt(world.session, "me", Some("not so")).await.expect("an interrupt");
        world.say("read it instead").await;
        assert_eq!(executed(world.wake().await).text, "Read it.");
        let heard = world.brain.requests().pop().expect("a request");
        assert!(!heard.contains("cancelled_before_start"), "{before:?}: {heard}");
        assert!(world.log().await.contains(r#""tool":"read""#));
    }
}

#[tokio::test]
async fn r4_a_stop_that_was_heeded_is_over_for_what_is_said_next() {
    let other = r#"{"file_path":"b.txt","content":"x\n"}"#;
    let answers = [vec![call("c1", "write", WRITE)], vec![call("c2", "write", other)], vec![said("Written.")]];
    let world = world(Brain::new(answers)).await;
    world.say("go").await;
    executed(world.wake().await);
    let reply = |reply| portcullis::AskAnswer::by("me", reply);
    world.runtime.reply(pending(&world).await, reply(portcullis::Reply::DenyAndStop)).await.expect("a reply");
    world.say("write the other").await;
    assert!(matches!(executed(world.wake().await).stop, WakeStop::RequiresAction(_)), "it asks for what is wanted now");
    world.runtime.reply(pending(&world).await, reply(portcullis::Reply::AllowOnce)).await.expect("a reply");
    let end = executed(world.wake().await);
    assert_eq!((end.stop, end.text.as_str()), (WakeStop::Idle(StopReason::EndTurn), "Written."));
    assert!(world.folder.path().join("b.txt").exists());
}

#[tokio::test]
async fn h28_the_summary_of_an_interrupted_wake_says_why() {
    let world = world(Brain::new([vec![call("c1", "write", WRITE)]])).await;
    world.say("go").await;
    executed(world.wake().await);
    world.runtime.interrupt(world.session, "me", Some("too slow")).await.expect("an interrupt");
    executed(world.wake().await);
    assert!(world.log().await.contains("User interrupted prior blocked or scheduled work: too slow"));
}
