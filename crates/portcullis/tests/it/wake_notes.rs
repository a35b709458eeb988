//! The automatic notes of a wake (agent-runtime 6.7), through a real session.

use portcullis::CancellationToken;
use portcullis::harness::{Settings, Woken};

use crate::brain::{Brain, call, said};
use crate::world::{World, executed, world};

#[tokio::test]
async fn l67_context_pressure_is_told_with_counts_and_no_word_of_a_tool() {
    let answers = (0..8).map(|n| vec![call(&format!("c{n}"), "read", &format!(r#"{{"file_path":"a{n}.txt"}}"#))]);
    let brain = Brain::new(answers.chain([vec![said("done")], vec![said("again")]])).with_window(12_000);
    let world = world(brain).await;
    for n in 0..8 {
        let text = format!("SECRETWORD {n} and more words\n").repeat(100);
        std::fs::write(world.folder.path().join(format!("a{n}.txt")), text).expect("a file");
    }
    world.say("look at them all").await;
    executed(world.wake().await);
    assert!(world.count("agent.thread_context_compacted").await > 0);
    let heard = world.brain.requests();
    assert!(!heard[0].contains("[context-pressure]"), "there was room");
    world.say("again").await;
    executed(world.wake().await);
    let heard = world.brain.requests();
    let last = heard.last().expect("a request");
    let note = &last[last.rfind("[context-pressure]").expect("it is told")..];
    let note = &note[..note.find('"').expect("the end of the note")];
    assert!(note.contains("pressure=crowded") && note.contains("droppedConversation="), "{note}");
    assert!(!note.contains("SECRETWORD") && !note.contains("nextTool"), "{note}");
    assert!(last.rfind("again") < last.rfind("[context-pressure]"), "after what the person said");
}

#[tokio::test]
async fn h38_a_long_message_does_not_press_by_itself() {
    let settings = Settings { token_budget: Some(100), ..Settings::default() };
    let world = World::with(Brain::new([vec![said("Yes.")]]), settings, |builder| builder).await;
    world.say(&"words ".repeat(2_000)).await;
    executed(world.wake().await);
    let heard = &world.brain.requests()[0];
    assert!(!heard.contains("[context-pressure]"), "2,000 tokens are left beside it");
    assert_eq!(world.count("agent.thread_context_compacted").await, 0);
}

#[tokio::test]
async fn a_session_without_a_reader_is_told_what_to_read_first() {
    let brain = Brain::new([vec![said("Hello.")], vec![said("I see.")]]);
    let world = World::with(brain, Settings::default(), |builder| builder).await;
    world.say("what does a.txt say? look at a.txt").await;
    // A conversation with a person gets none.
    executed(world.wake().await);
    assert!(!world.brain.requests()[0].contains("[read-first]"));
    let agent = world.runtime.agent(portcullis::AgentParts {
        settings: Settings::default(),
        ..crate::world::parts(std::sync::Arc::clone(&world.brain) as _, Settings::default())
    });
    world.say("look at a.txt").await;
    let woken = agent.wake(world.session, &CancellationToken::new()).await.expect("a wake");
    assert!(matches!(woken, Woken::Executed(_)));
    let heard = &world.brain.requests()[1];
    assert_eq!(heard.matches("[read-first] intent=file_read nextTool=read").count(), 1, "{heard}");
}
