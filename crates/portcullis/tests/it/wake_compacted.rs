//! What a compaction keeps, and what it says of the rest (agent-runtime 6.4).

use portcullis::harness::WakeStop;
use portcullis::model::AnswerPart;

use crate::brain::{Brain, call, said};
use crate::world::{WRITE, World, executed, pending, world};

/// A file so long that a few of them force a compaction.
fn long(n: usize) -> String {
    format!("words and more words of {n}\n").repeat(100)
}

fn read(id: &str, file: &str) -> Vec<AnswerPart> {
    vec![call(id, "read", &serde_json::json!({ "file_path": file }).to_string())]
}

async fn with_long_files(answers: impl IntoIterator<Item = Vec<AnswerPart>>) -> World {
    let world = world(Brain::new(answers).with_window(12_000)).await;
    for n in 0..12 {
        std::fs::write(world.folder.path().join(format!("a{n}.txt")), long(n)).expect("a file");
    }
    world
}

fn reads() -> impl Iterator<Item = Vec<AnswerPart>> {
    (0..12).map(|n| read(&format!("c{n}"), &format!("a{n}.txt")))
}

async fn compactions(world: &World) -> usize {
    world.count("agent.thread_context_compacted").await
}

#[tokio::test]
async fn check36_what_a_person_wants_stays_whole_when_the_rest_gives_way() {
    let task = (0..60).map(|n| format!("condition {n} must hold;")).collect::<Vec<_>>().join(" ");
    let world = with_long_files(reads().chain([vec![said("done")]])).await;
    world.say(&task).await;
    executed(world.wake().await);
    assert!(compactions(&world).await > 0);
    let last = world.brain.requests().last().cloned().expect("a request");
    assert_eq!(last.matches(&task).count(), 1, "every condition, once: {last}");
}

#[tokio::test]
async fn check36_what_a_person_interrupted_with_outlives_a_compaction() {
    let first = vec![call("w1", "write", WRITE)];
    let world = with_long_files([first].into_iter().chain(reads()).chain([vec![said("done")]])).await;
    world.say("make it").await;
    executed(world.wake().await);
    world.runtime.interrupt(world.session, "me", Some("only read from now on")).await.expect("an interrupt");
    world.say("go on").await;
    let end = executed(world.wake().await);
    assert!(matches!(end.stop, WakeStop::Idle(_)), "{:?}", end.stop);
    assert!(compactions(&world).await > 0);
    let last = world.brain.requests().last().cloned().expect("a request");
    for words in ["(with an interrupt) only read from now on", "the person said: go on"] {
        assert_eq!(last.matches(words).count(), 1, "{words}: {last}");
    }
}

#[tokio::test]
async fn check36_a_no_with_its_reason_outlives_a_compaction() {
    let first = vec![call("w1", "write", WRITE)];
    let world = with_long_files([first].into_iter().chain(reads()).chain([vec![said("done")]])).await;
    world.say("make it").await;
    executed(world.wake().await);
    let mut answer = portcullis::AskAnswer::by("me", portcullis::Reply::DenyWithFeedback);
    answer.feedback = Some("never touch new.txt".to_owned());
    world.runtime.reply(pending(&world).await, answer).await.expect("a reply");
    executed(world.wake().await);
    assert!(compactions(&world).await > 0);
    let last = world.brain.requests().last().cloned().expect("a request");
    assert_eq!(last.matches("the person said: (of a call of write) never touch new.txt").count(), 1, "{last}");
}

/// Two turns are protected whatever they weigh. A conversation whose protected part is over the budget by itself must not
/// be compacted at every request: nothing would be freed, and no request would begin with the bytes of the one before.
#[tokio::test]
async fn check36_what_cannot_be_made_smaller_is_not_compacted_at_every_request() {
    let big = "b".repeat(60_000);
    let answers = (0..10).map(|n| read(&format!("c{n}"), &format!("small{n}.txt"))).chain([vec![said("done")]]);
    let world = world(Brain::new(answers).with_window(12_000)).await;
    for n in 0..10 {
        std::fs::write(world.folder.path().join(format!("small{n}.txt")), "x\n").expect("a file");
    }
    world.say(&big).await;
    executed(world.wake().await);
    let compacted = compactions(&world).await;
    assert!(compacted <= 1, "{compacted} compactions in 11 requests");
    let heard = world.brain.requests();
    let stable = heard.windows(2).filter(|pair| pair[1].starts_with(&pair[0])).count();
    assert!(stable >= 9, "{stable} of 10 requests begin with the one before");
}

#[tokio::test]
async fn l65_a_result_that_points_to_lines_which_are_gone_says_so_live_and_from_the_log() {
    const GONE: &str = "The lines that this result points to are not in view any more";
    let mut met = false;
    for before in 0..8 {
        let mut answers = vec![read("c0", "a.txt")];
        answers.extend((0..before).map(|n| read(&format!("b{n}"), &format!("a{n}.txt"))));
        answers.push(read("c1", "a.txt"));
        answers.extend((before..before + 2).map(|n| read(&format!("b{n}"), &format!("a{n}.txt"))));
        answers.extend([vec![said("Seen.")], vec![said("Again.")]]);
        let world = with_long_files(answers).await;
        std::fs::write(world.folder.path().join("a.txt"), "the one\n").expect("a file");
        world.say("read them").await;
        executed(world.wake().await);
        world.say("again").await;
        executed(world.wake().await);
        let heard = world.brain.requests();
        for request in &heard {
            let points = request.contains(r#"\"unchangedSince\":{\"callId\":\"c0\"}"#);
            let there = request.contains(r#""call_id":"c0""#);
            assert_eq!(request.contains(GONE), points && !there, "{request}");
            met |= points && !there;
        }
        let (live, reloaded) = (&heard[heard.len() - 2], &heard[heard.len() - 1]);
        assert!(reloaded.starts_with(live), "what the log gives is what was sent");
    }
    assert!(met, "no compaction fell between the two");
}
