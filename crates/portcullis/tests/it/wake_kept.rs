//! What a wake keeps: nothing that was said is lost, and nothing that is secret is written.

use portcullis::harness::{Settings, WakeStop, Woken};
use portcullis::model::{AnswerPart, Failure, ModelError, Opaque};
use portcullis::{CancellationToken, Tool};
use portcullis_contract::Semantics;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::brain::{Brain, call, said};
use crate::world::{WRITE, World, allow_pending, executed, world};

#[derive(Deserialize, JsonSchema)]
struct Login {
    user: String,
    #[schemars(extend("x-portcullis-sensitive" = true))]
    password: String,
}

const PASSWORD: &str = "correct-horse-battery";

fn login(semantics: Semantics) -> Tool {
    Tool::builder::<Login, String>("Logs in.")
        .semantics(semantics)
        .execute(|login, _| async move { Ok(format!("{} came with {} letters", login.user, login.password.len())) })
        .build()
        .expect("a sound tool")
}

fn login_call(id: &str) -> Vec<portcullis::model::AnswerPart> {
    vec![call(id, "login", &format!(r#"{{"user":"ada","password":"{PASSWORD}"}}"#))]
}

#[tokio::test]
async fn l69_l71_a_sensitive_argument_runs_and_is_in_no_event_and_in_no_later_request() {
    let brain = Brain::new([login_call("c1"), vec![said("In.")], vec![said("Still in.")]]);
    let with_tool =
        |builder: portcullis::RuntimeBuilder| builder.tool("login", login(Semantics::read_only())).expect("a name");
    let world = World::with(brain, Settings::default(), with_tool).await;
    world.say("log in").await;
    assert_eq!(executed(world.wake().await).text, "In.");
    world.say("and now?").await;
    executed(world.wake().await);
    let heard = world.brain.requests();
    assert!(heard[1].contains("ada came with 21 letters"), "the tool got the value itself: {}", heard[1]);
    assert!(heard[1].contains(r#"\"password\":\"***\""#), "what the model said stands masked: {}", heard[1]);
    for event in world.events().await {
        let text = event.payload.as_deref().unwrap_or_default();
        assert!(!text.contains(PASSWORD), "{} holds it", event.kind);
    }
    assert!(heard.iter().all(|request| !request.contains(PASSWORD)), "and no request");
    assert!(heard[2].starts_with(&heard[1]), "live and reloaded the same");
}

/// Of a name that stands twice in the arguments only the last is a value; the other is in the text all the same.
#[tokio::test]
async fn l69_a_known_secret_in_a_repeated_name_is_masked_in_the_recorded_answer() {
    let secret = "hunter2-very-secret";
    let twice = format!(r#"{{"file_path":"{secret}","file_path":"a.txt"}}"#);
    let brain = Brain::new([vec![call("c1", "read", &twice)], vec![said("Read.")]]);
    let known =
        |builder: portcullis::RuntimeBuilder| builder.variable("TOKEN", portcullis::SecretText::new(secret.to_owned()));
    let world = World::with(brain, Settings::default(), known).await;
    world.say("read it").await;
    executed(world.wake().await);
    for event in world.events().await {
        assert!(!event.payload.as_deref().unwrap_or_default().contains(secret), "{} holds it", event.kind);
    }
    assert!(!world.brain.requests()[1].contains(secret));
}

/// The process is gone between the answer and its call: the mask is not run in place of the value.
#[tokio::test]
async fn l69_a_masked_call_that_was_never_run_is_refused_after_a_restart_and_not_run_with_the_mask() {
    let brain = Brain::new([vec![call("c1", "write", WRITE), login_call("c2").remove(0)], vec![said("Again, then.")]]);
    let with_tool =
        |builder: portcullis::RuntimeBuilder| builder.tool("login", login(Semantics::mutating())).expect("a name");
    let world = World::with(brain, Settings::default(), with_tool).await;
    world.say("write, then log in").await;
    // The first call asks, which holds the second back: it has no intent yet when the wake ends.
    executed(world.wake().await);
    allow_pending(&world).await;
    executed(world.wake().await);
    let heard = world.brain.requests();
    assert!(heard[1].contains("input_unparseable") && heard[1].contains("c2"), "{}", heard[1]);
    assert!(!heard[1].contains("came with"), "nothing ran with the mask: {}", heard[1]);
}

const SECRET: &str = "hunter2-very-secret";

async fn with_secret(brain: Brain) -> World {
    let known = |builder: portcullis::RuntimeBuilder| builder.conceal(portcullis::SecretText::new(SECRET.to_owned()));
    World::with(brain, Settings::default(), known).await
}

#[tokio::test]
async fn l69_thinking_that_holds_a_secret_is_not_kept_and_not_sent_back() {
    let thought = |text: &str| {
        let raw = serde_json::json!({"type": "thinking", "thinking": text}).to_string();
        AnswerPart::Opaque(Opaque { wire: "fake".to_owned(), from: None, raw })
    };
    let first = vec![thought("plain"), thought(&format!("it is {SECRET}")), said("x")];
    let world = with_secret(Brain::new([first, vec![said("y")]])).await;
    for words in ["hello", "again"] {
        world.say(words).await;
        executed(world.wake().await);
    }
    assert!(!world.log().await.contains(SECRET));
    let heard = &world.brain.requests()[1];
    assert!(heard.contains("plain") && !heard.contains("it is"), "{heard}");
}

#[tokio::test]
async fn l69_a_directive_hides_no_secret_behind_an_escape() {
    let words = r"it is hunter2\u002dvery-secret";
    let block = format!(
        r#"<portcullis-session-loop>{{"outcome":"sleep","summary":"{words}","claims":["{words}"],"queuedWakes":[{{"reason":"{words}","delaySeconds":60,"note":"{words}"}}],"learnings":[{{"title":"{words}","detail":"{words}"}}],"customToolRequest":{{"name":"x","input":{{"a":"{words}"}}}}}}</portcullis-session-loop>"#
    );
    let world = with_secret(Brain::new([vec![said(&block)]])).await;
    let agent = world.alone(std::sync::Arc::clone(&world.brain) as _);
    world.say("hello").await;
    executed(agent.wake(world.session, &CancellationToken::new()).await.expect("a wake"));
    assert_eq!((world.count("learning.captured").await, world.count("wake.queued").await), (1, 1));
    assert!(!world.log().await.contains(SECRET));
}

#[tokio::test]
async fn check05_input_that_was_taken_up_and_never_shown_is_shown_by_the_next_wake() {
    let world = world(Brain::new([vec![call("c1", "write", WRITE)], vec![said("I heard you.")]])).await;
    world.say("make it").await;
    executed(world.wake().await);
    // An answer and a message together: the wake is written before the call runs, and breaks off right there.
    allow_pending(&world).await;
    world.say("and tell me when it is done").await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let woken = world.agent.wake(world.session, &cancel).await.expect("a wake");
    assert_eq!(executed(woken).stop, WakeStop::Broken);
    assert_eq!(world.brain.requests().len(), 1, "nobody was asked in between");
    let end = executed(world.wake().await);
    assert_eq!(end.text, "I heard you.");
    let heard = &world.brain.requests()[1];
    assert_eq!(heard.matches("and tell me when it is done").count(), 1, "{heard}");
    assert_eq!(world.wake().await, Woken::Idle);
}

#[tokio::test]
async fn an_interrupted_request_leaves_what_was_said_in_the_conversation_once() {
    let world = world(Brain::new([vec![said("Both heard.")]])).await;
    world.say("first").await;
    let silent = world.agent_with(Brain::silent());
    let never = CancellationToken::new();
    let (woken, ()) = tokio::join!(silent.wake(world.session, &never), async {
        world.until("span.model_request_start").await;
        world.runtime.interrupt(world.session, "me", None).await.expect("an interrupt");
    });
    executed(woken.expect("a wake"));
    world.say("second").await;
    executed(world.wake().await);
    let heard = &world.brain.requests()[0];
    assert_eq!((heard.matches("first").count(), heard.matches("second").count()), (1, 1), "{heard}");
}

#[tokio::test]
async fn a_conversation_too_long_for_the_provider_is_shrunk_once_and_then_told() {
    let overflow = || Err(ModelError::new(Failure::ContextOverflow, "the prompt is too long"));
    let reads = (0..4).map(|n| Ok(vec![call(&format!("c{n}"), "read", r#"{"file_path":"a.txt"}"#)]));
    let answers = reads.chain([overflow(), Ok(vec![said("Now it fits.")]), overflow(), overflow()]);
    let world = world(Brain::scripted(answers)).await;
    std::fs::write(world.folder.path().join("a.txt"), "words\n".repeat(200)).expect("a file");
    world.say("look").await;
    assert_eq!(executed(world.wake().await).text, "Now it fits.");
    let heard = world.brain.requests();
    assert!(heard[5].len() < heard[4].len() && heard[5].contains("[context-compacted]"), "{}", heard[5]);
    world.say("once more").await;
    let end = executed(world.wake().await);
    let WakeStop::Retrying { error, .. } = &end.stop else { panic!("{:?}", end.stop) };
    assert_eq!(error.failure, Failure::ContextOverflow);
    assert!(world.brain.requests().len() <= 8, "shrunk once, not for ever");
}

#[tokio::test]
async fn l71_a_compaction_is_rebuilt_from_the_log_to_the_byte() {
    let answers = (0..12).map(|n| vec![call(&format!("c{n}"), "read", &format!(r#"{{"file_path":"a{n}.txt"}}"#))]);
    let brain = Brain::new(answers.chain([vec![said("done")], vec![said("again")]])).with_window(12_000);
    let world = world(brain).await;
    for n in 0..12 {
        let text = format!("words and more words of {n}\n").repeat(100);
        std::fs::write(world.folder.path().join(format!("a{n}.txt")), text).expect("a file");
    }
    world.say("look at them all").await;
    executed(world.wake().await);
    assert!(world.count("agent.thread_context_compacted").await > 0);
    let before = world.brain.requests().last().cloned().expect("a request");
    world.say("again").await;
    executed(world.wake().await);
    let after = world.brain.requests().last().cloned().expect("a request");
    assert!(after.starts_with(&before), "the summary and what was kept are what was sent");
}

#[tokio::test]
async fn a_conversation_is_shrunk_for_the_provider_again_when_it_has_gone_on() {
    let overflow = || Err(ModelError::new(Failure::ContextOverflow, "the prompt is too long"));
    let read = |n: usize| Ok(vec![call(&format!("c{n}"), "read", &format!(r#"{{"file_path":"a{n}.txt"}}"#))]);
    let twice = [overflow(), overflow()];
    let answers = (0..4).map(read).chain([overflow()]).chain((4..9).map(read)).chain([overflow()]);
    let world = world(Brain::scripted(answers.chain((9..14).map(read)).chain(twice))).await;
    for n in 0..14 {
        std::fs::write(world.folder.path().join(format!("a{n}.txt")), "words\n".repeat(200)).expect("a file");
    }
    world.say("look").await;
    let end = executed(world.wake().await);
    let WakeStop::Retrying { error, .. } = &end.stop else { panic!("{:?}", end.stop) };
    assert_eq!(error.failure, Failure::ContextOverflow, "twice in a row is an error");
    assert!(world.count("agent.thread_context_compacted").await >= 3, "each time, and by what was learnt");
}
