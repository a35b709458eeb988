//! One wake through the real gate and the real tools; only the model is a fake that says what it is told to.

mod brain;

use std::sync::Arc;

use brain::{Brain, call, said};
use portcullis::harness::{Settings, Stopped, Unwatched, Woken};
use portcullis::{Agent, AgentParts, CancellationToken, Profile, Runtime, SessionId, SystemIds};
use portcullis_event::facts::StopReason;

struct World {
    runtime: Runtime,
    agent: Agent,
    brain: Arc<Brain>,
    session: SessionId,
    folder: tempfile::TempDir,
}

async fn world(brain: Brain) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Runtime::builder().workspace(folder.path()).profile(Profile::Code).build().expect("a runtime");
    let brain = Arc::new(brain);
    let agent = runtime.agent(AgentParts {
        model: Arc::clone(&brain) as _,
        settings: Settings { directive: false, ..Settings::default() },
        watcher: Arc::new(Unwatched),
        entropy: Arc::new(SystemIds::new()),
        sandbox: "isolated".to_owned(),
    });
    let session = runtime.create_session("test").await.expect("a session");
    World { runtime, agent, brain, session, folder }
}

impl World {
    async fn events(&self) -> Vec<portcullis_event::Event> {
        let key = portcullis_store::SessionKey { tenant: self.runtime.gate().tenant(), session: self.session };
        self.runtime.gate().store().read(key, 0, 10_000).await.expect("the log")
    }

    async fn kinds(&self) -> Vec<String> {
        self.events().await.iter().map(|event| event.kind.to_string()).collect()
    }

    async fn wake(&self) -> Woken {
        self.agent.wake(self.session, &CancellationToken::new()).await.expect("a wake")
    }
}

#[tokio::test]
async fn check04_a_wake_with_nothing_pending_writes_nothing() {
    let world = world(Brain::new([])).await;
    let before = world.events().await.len();
    assert_eq!(world.wake().await, Woken::Idle);
    assert_eq!(world.events().await.len(), before);
}

#[tokio::test]
async fn a_message_is_answered_and_a_read_in_the_loop_costs_one_commit() {
    let brain = Brain::new([
        vec![said("I will look."), call("c1", "read", r#"{"file_path":"a.txt"}"#)],
        vec![said("It says hello.")],
    ]);
    let world = world(brain).await;
    std::fs::write(world.folder.path().join("a.txt"), "hello\n").expect("a file");
    world.runtime.say(world.session, "me", "what does a.txt say?").await.expect("said");
    let Woken::Executed(end) = world.wake().await else { panic!("there was work") };
    assert_eq!(end.stop, Stopped::Idle(StopReason::EndTurn));
    assert_eq!(end.text, "It says hello.");
    let events = world.events().await;
    let mut appends: Vec<_> = events.iter().map(|event| event.append_id).collect();
    appends.dedup();
    // Creation, the message, the first request; the read with the second request; the end.
    assert_eq!(appends.len(), 5, "{:?}", world.kinds().await);
    let heard = world.brain.requests();
    assert!(heard[1].starts_with(&heard[0]), "request 2 begins with the bytes of request 1");
    assert!(heard[1].contains("hello"), "{}", heard[1]);
    assert_eq!(world.wake().await, Woken::Idle, "consumed once");
}
