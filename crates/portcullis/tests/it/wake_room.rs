//! Turns that are longer than the model can read: the session goes on all the same (agent-runtime 6.4).

use portcullis::model::{AnswerPart, Opaque};

use crate::brain::{Brain, call, said};
use crate::world::{World, executed, world};

const CUT: &str = "cutByCompaction";

fn read(n: usize) -> AnswerPart {
    call(&format!("c{n}"), "read", &format!(r#"{{"file_path":"a{n}.txt"}}"#))
}

async fn with_files(brain: Brain) -> World {
    let world = world(brain).await;
    for n in 0..6 {
        let text = format!("{} words of {n}\n", "many".repeat(4)).repeat(800);
        std::fs::write(world.folder.path().join(format!("a{n}.txt")), text).expect("a file");
    }
    world
}

/// What the newest request was, and that the one after a reload begins with it.
async fn goes_on(world: &World) -> String {
    let sent = world.brain.requests().last().cloned().expect("a request");
    world.say("and now?").await;
    executed(world.wake().await);
    let after = world.brain.requests().last().cloned().expect("a request");
    assert!(after.starts_with(&sent), "L71: what the log gives is what was sent");
    sent
}

#[tokio::test]
async fn check36_results_of_one_turn_that_do_not_fit_are_shown_cut_and_the_wake_goes_on() {
    let answers = || [(0..6).map(read).collect(), vec![said("done")], vec![said("again")]];
    // Once by the window that is known, once by the provider's refusal.
    for brain in [Brain::new(answers()).with_window(16_000), Brain::new(answers()).reading_at_most(50_000)] {
        let world = with_files(brain).await;
        world.say("look at them all").await;
        let end = executed(world.wake().await);
        assert_eq!(end.text, "done", "{:?}", end.stop);
        let sent = goes_on(&world).await;
        assert!(sent.len() < 64_000, "{} bytes", sent.len());
        for n in 0..6 {
            let (call, result) = (format!(r#""id":"c{n}""#), format!(r#""call_id":"c{n}""#));
            assert!(sent.contains(&call) && sent.contains(&result), "every call has its result: {sent}");
        }
        assert_eq!(sent.matches(CUT).count(), 6, "each says so");
        assert!(sent.contains(r#"\"ofBytes\":"#) && sent.contains(r#"\"readTheRest\":"#), "{sent}");
    }
}

#[tokio::test]
async fn l65_what_was_shown_and_is_cut_can_be_read_anew() {
    let again = vec![call("again", "read", r#"{"file_path":"a0.txt"}"#)];
    let answers = [(0..6).map(read).collect(), again, vec![said("done")]];
    let world = with_files(Brain::new(answers).reading_at_most(50_000)).await;
    world.say("look at them all").await;
    assert_eq!(executed(world.wake().await).text, "done");
    let heard = world.brain.requests();
    let again = heard.iter().find_map(|sent| sent.split(r#""call_id":"again""#).nth(1)).expect("the second look");
    assert!(again.contains("words of 0") && !again.contains("unchangedSince"), "{again}");
}

#[tokio::test]
async fn an_answer_of_10_mb_of_words_thinking_or_arguments_does_not_end_the_session() {
    let huge = "so many words ".repeat(750_000);
    let opaque = AnswerPart::Opaque(Opaque::new("fake", format!("{{\"t\":\"{huge}\"}}")));
    let arguments = format!(r#"{{"file_path":"a0.txt","junk":"{huge}"}}"#);
    let firsts: [Vec<Vec<AnswerPart>>; 3] = [
        vec![vec![said(&huge)]],
        vec![vec![opaque, said("thought")]],
        vec![vec![said(&huge), call("c", "read", &arguments)], vec![said("called")]],
    ];
    for first in firsts {
        let answers = first.into_iter().chain([vec![said("fine")], vec![said("again")]]);
        let world = with_files(Brain::new(answers).reading_at_most(60_000)).await;
        world.say("go").await;
        executed(world.wake().await);
        world.say("go on").await;
        let end = executed(world.wake().await);
        assert_eq!(end.text, "fine", "{:?}", end.stop);
        let sent = goes_on(&world).await;
        assert!(sent.len() < 60_000 && sent.contains("go on"), "{} bytes", sent.len());
    }
}

#[tokio::test]
async fn a_first_message_longer_than_the_window_is_shown_in_part() {
    let world = with_files(Brain::new([vec![said("long")], vec![said("again")]]).reading_at_most(60_000)).await;
    world.say(&format!("BEGIN {} END", "words ".repeat(50_000))).await;
    let end = executed(world.wake().await);
    assert_eq!(end.text, "long", "{:?}", end.stop);
    let sent = goes_on(&world).await;
    assert!(sent.contains("BEGIN"), "{sent}");
}

/// More calls than fit even when each is cut to its least: the summary names what it can, and the session goes on.
#[tokio::test]
async fn a_turn_of_too_many_calls_gives_way_as_a_whole() {
    let many: Vec<AnswerPart> = (0..300).map(|n| call(&format!("m{n}"), "read", r#"{"file_path":"a1.txt"}"#)).collect();
    let world = with_files(Brain::new([many, vec![said("done")], vec![said("again")]]).reading_at_most(60_000)).await;
    world.say("look often").await;
    let end = executed(world.wake().await);
    assert_eq!(end.text, "done", "{:?}", end.stop);
    let sent = goes_on(&world).await;
    assert!(!sent.contains("\"call_id\":") && sent.contains("[context-compacted]"), "{sent}");
}
