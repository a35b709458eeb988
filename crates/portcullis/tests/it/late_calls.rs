//! The calls of an answer belong to the menu that they were shown with, however late they are made (tool-contract 8.3).

use std::sync::{Arc, Mutex};

use portcullis::harness::{Settings, WakeStop, Woken};
use portcullis::model::{AnswerPart, Message, UserPart};
use portcullis::{
    Agent, AskAnswer, CancellationToken, Reply, Runtime, RuntimeBuilder, Semantics, SessionId, Store, SystemClock,
    SystemIds, Tool,
};
use portcullis_event::{Body, LOCAL_TENANT};
use portcullis_store::{
    AskFilter, LeaseOwner, Liveness, LivenessOracle, Log as _, MemoryArtifacts, MemoryStore, SessionKey,
};
use portcullis_store_testkit::{Fault, FaultKind, FaultyStore};

use crate::brain::{Brain, call, said};
use crate::world::parts;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

const INPUT: &str = r#"{"text":"x"}"#;
/// What `look` says of itself, at first and redefined.
const SHOWN: &str = "Looks.";
const REDEFINED: &str = "Looks elsewhere.";

/// Whoever held a lease before is dead: here one process runs at a time.
struct AllDead;

impl LivenessOracle for AllDead {
    fn liveness(&self, _owner: &LeaseOwner) -> Liveness {
        Liveness::Dead
    }
}

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
    /// The definitions of `look` that ran, in order.
    ran: Arc<Mutex<Vec<&'static str>>>,
    session: SessionId,
}

impl World {
    async fn new() -> Self {
        let (clock, ids) = (Arc::new(SystemClock::new()), Arc::new(SystemIds::new()));
        let store = Arc::new(MemoryStore::new(clock, ids, Arc::new(AllDead), None));
        let mut world = Self { store, ran: Arc::default(), session: SessionId::from_u128(1) };
        world.session = world.runtime(Then::Nothing).create_session("late").await.expect("made");
        world
    }

    /// Another process, whose `look` is as it was shown or not.
    fn runtime(&self, then: Then) -> Runtime {
        self.runtime_over(Arc::clone(&self.store) as _, then)
    }

    fn runtime_over(&self, store: Arc<dyn Store>, then: Then) -> Runtime {
        let ran = Arc::clone(&self.ran);
        let words = if then == Then::Redefined { REDEFINED } else { SHOWN };
        let look = Tool::builder::<Text, String>(words).semantics(Semantics::read_only()).execute(move |input, _| {
            ran.lock().expect("no test panics with it").push(words);
            async move { Ok(input.text) }
        });
        let act = Tool::builder::<Text, String>("Acts.").execute(|input, _| async move { Ok(input.text) });
        let builder = Runtime::builder().store(store, Arc::new(MemoryArtifacts::default()));
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

    fn ran(&self) -> Vec<&'static str> {
        self.ran.lock().expect("no test panics with it").clone()
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
    assert_eq!(world.ran(), [SHOWN]);
}

#[tokio::test]
async fn l15_a_call_whose_tool_was_redefined_behind_an_ask_is_stale_and_runs_nothing() {
    for then in [Then::Redefined, Then::Gone] {
        let (world, seen) = behind_an_ask(then).await;
        assert_eq!(seen, [("stale_tool".to_owned(), true)]);
        assert!(world.ran().is_empty());
    }
}

/// Looks once, and then is done.
fn looks_once(messages: &[Message]) -> Vec<AnswerPart> {
    let shown = messages.iter().any(|message| match message {
        Message::User(parts) => parts.iter().any(|part| matches!(part, UserPart::Result(_))),
        Message::Assistant(_) => false,
    });
    if shown { vec![said("Done.")] } else { vec![call("c1", "look", INPUT)] }
}

/// A process dies at one call of the store, and another one, whose `look` is redefined, goes on. Tells whether the fault
/// came, and what became of `look`.
async fn behind_a_crash(fault: Fault) -> (bool, &'static str) {
    let world = World::new().await;
    world.runtime(Then::Nothing).say(world.session, "me", "go").await.expect("said");
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(fault)));
    let dying = world.runtime_over(Arc::clone(&faulty) as _, Then::Nothing);
    let agent = dying.agent(parts(Arc::new(Brain::shown(looks_once)), Settings::default()));
    let _ = agent.wake(world.session, &CancellationToken::new()).await;
    drop((dying, agent));
    let brain = Arc::new(Brain::shown(looks_once));
    let (_next, agent) = world.agent(Then::Redefined, &brain);
    for _ in 0..3 {
        let _ = agent.wake(world.session, &CancellationToken::new()).await.expect("the store is whole");
    }
    let (seen, ran) = (world.looked().await, world.ran());
    let [(code, first_menu)] = &seen[..] else { panic!("{fault:?}: one call, one observation: {seen:?}") };
    let became = match (brain.requests().len(), code.as_str()) {
        // It asked anew, with its own menu, and ran what it showed.
        (2, "ok") => {
            assert_eq!(ran.iter().filter(|ran| **ran == REDEFINED).count(), 1, "{fault:?}: {ran:?}");
            "asked again"
        }
        // The answer was in the log: what it calls is what was shown then, or nothing.
        (0 | 1, "ok") => {
            assert_eq!((&ran[..], *first_menu), (&[SHOWN][..], true), "{fault:?}");
            "ran before"
        }
        (1, "stale_tool") => {
            assert!(!ran.contains(&REDEFINED) && *first_menu, "{fault:?}: {ran:?}");
            "stale"
        }
        other => panic!("{fault:?}: {other:?}"),
    };
    (faulty.struck(), became)
}

#[tokio::test]
async fn l15_a_call_that_a_crash_cut_off_runs_what_it_was_shown_or_is_stale() {
    let mut met = std::collections::BTreeSet::new();
    for kind in [FaultKind::CrashBefore, FaultKind::CrashAfter] {
        for nth in 1.. {
            let (struck, became) = behind_a_crash(Fault { nth, kind }).await;
            met.insert(became);
            if !struck {
                break;
            }
        }
    }
    assert_eq!(Vec::from_iter(met), ["asked again", "ran before", "stale"], "every case was met");
}
