//! The calls of an answer belong to the menu that they were shown with, however late they are made (tool-contract 8.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis::harness::{Settings, WakeStop, Woken};
use portcullis::{
    Agent, AskAnswer, CancellationToken, Reply, Runtime, RuntimeBuilder, Semantics, SessionId, SystemClock, SystemIds,
    Tool,
};
use portcullis_event::{Body, LOCAL_TENANT};
use portcullis_store::{AskFilter, HostLiveness, Log as _, MemoryArtifacts, MemoryStore, SessionKey};

use crate::brain::{Brain, call, said};
use crate::world::parts;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

const INPUT: &str = r#"{"text":"x"}"#;

/// What changes between the request and the late call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    /// `look` is described in other words.
    Redefined,
    /// `look` is gone.
    Gone,
}

struct World {
    store: Arc<MemoryStore>,
    looks: Arc<AtomicUsize>,
    session: SessionId,
}

impl World {
    async fn new() -> Self {
        let (clock, ids) = (Arc::new(SystemClock::new()), Arc::new(SystemIds::new()));
        let store = Arc::new(MemoryStore::new(clock, ids, Arc::new(HostLiveness::new()), None));
        let mut world = Self { store, looks: Arc::default(), session: SessionId::from_u128(1) };
        world.session = world.runtime(Then::Nothing).create_session("late").await.expect("made");
        world
    }

    /// Another process, whose `look` is as it was shown or not.
    fn runtime(&self, then: Then) -> Runtime {
        let looks = Arc::clone(&self.looks);
        let words = if then == Then::Redefined { "Looks elsewhere." } else { "Looks." };
        let look = Tool::builder::<Text, String>(words).semantics(Semantics::read_only()).execute(move |input, _| {
            looks.fetch_add(1, Ordering::SeqCst);
            async move { Ok(input.text) }
        });
        let act = Tool::builder::<Text, String>("Acts.").execute(|input, _| async move { Ok(input.text) });
        let builder = Runtime::builder().store(Arc::clone(&self.store) as _, Arc::new(MemoryArtifacts::default()));
        let with = |builder: RuntimeBuilder, name: &str, tool: Tool| builder.tool(name, tool).expect("a name");
        let builder = with(builder, "act", act.build().expect("a tool"));
        match then {
            Then::Gone => builder,
            _ => with(builder, "look", look.build().expect("a tool")),
        }
        .build()
        .expect("builds")
    }

    fn agent(&self, then: Then, brain: &Arc<Brain>) -> (Runtime, Agent) {
        let runtime = self.runtime(then);
        let agent = runtime.agent(parts(Arc::clone(brain) as _, Settings::default()));
        (runtime, agent)
    }

    /// The codes of the observations of `look`, and the menus that its intents name.
    async fn looked(&self) -> Vec<(String, bool)> {
        let key = SessionKey { tenant: LOCAL_TENANT, session: self.session };
        let log = self.store.read(key, 0, 10_000).await.expect("read");
        let requests = log.iter().filter_map(|event| match event.body() {
            Body::ModelRequestStart(start) => Some(start.menu_id),
            _ => None,
        });
        let first = requests.into_iter().next().expect("a request");
        let mut shown = Vec::new();
        for event in &log {
            match event.body() {
                Body::IntentProposed(intent) if intent.tool == "look" => shown.push((intent.intent_id, intent.menu_id)),
                _ => {}
            }
        }
        let mut seen = Vec::new();
        for event in &log {
            if let Body::Observed(observed) = event.body()
                && let Some((_, menu)) = shown.iter().find(|(intent, _)| *intent == observed.intent_id)
            {
                seen.push((observed.code.to_string(), *menu == first));
            }
        }
        seen
    }
}

async fn wake(agent: &Agent, session: SessionId) -> WakeStop {
    match agent.wake(session, &CancellationToken::new()).await.expect("a wake") {
        Woken::Executed(end) => end.stop,
        other => panic!("{other:?}"),
    }
}

/// A model calls `act`, which asks, and `look` behind it. Another process answers and goes on.
async fn behind_an_ask(then: Then) -> (World, Vec<(String, bool)>) {
    let world = World::new().await;
    let brain = Arc::new(Brain::new([vec![call("c1", "act", INPUT), call("c2", "look", INPUT)], vec![said("Done.")]]));
    let (asking, agent) = world.agent(Then::Nothing, &brain);
    asking.say(world.session, "me", "go").await.expect("said");
    assert!(matches!(wake(&agent, world.session).await, WakeStop::RequiresAction(_)));
    drop((asking, agent));
    let (answering, agent) = world.agent(then, &brain);
    // Calls that others make meanwhile freeze menus of their own.
    answering.call(world.session, "nothing", INPUT).await.expect("no fault");
    let filter = AskFilter { session: Some(world.session), pending: true };
    let ask = world.store.asks(LOCAL_TENANT, filter).await.expect("asks")[0].ask_id;
    answering.reply(ask, AskAnswer::by("me", Reply::AllowOnce)).await.expect("recorded");
    assert!(matches!(wake(&agent, world.session).await, WakeStop::Idle(_)));
    let seen = world.looked().await;
    (world, seen)
}

#[tokio::test]
async fn l15_a_call_that_was_held_back_behind_an_ask_keeps_the_menu_that_it_was_shown_with() {
    let (world, seen) = behind_an_ask(Then::Nothing).await;
    assert_eq!(seen, [("ok".to_owned(), true)], "the control: nothing changed, and it runs");
    assert_eq!(world.looks.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn l15_a_call_whose_tool_was_redefined_behind_an_ask_is_stale_and_runs_nothing() {
    for then in [Then::Redefined, Then::Gone] {
        let (world, seen) = behind_an_ask(then).await;
        assert_eq!(seen, [("stale_tool".to_owned(), true)]);
        assert_eq!(world.looks.load(Ordering::SeqCst), 0);
    }
}
