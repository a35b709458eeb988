//! Sessions that a process holds open: calls side by side under one lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portcullis::{
    AccessRequest, Action, Actor, AskAnswer, CallOutcome, DefaultPolicy, HeldSession, Reply, Resource, Risk, Runtime,
    RuntimeBuilder, RuntimeError, Semantics, SessionId, SystemClock, SystemIds, Tool,
};
use portcullis_event::{Body, LOCAL_TENANT};
use portcullis_store::{HostLiveness, Log as _, MemoryArtifacts, MemoryStore, SessionKey};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

const INPUT: &str = r#"{"text":"x"}"#;
/// Calls that are made at once.
const SIDE_BY_SIDE: usize = 64;

/// A store, and what happened in it.
struct World {
    store: Arc<MemoryStore>,
    most: Arc<AtomicUsize>,
    acted: Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        let (clock, ids) = (Arc::new(SystemClock::new()), Arc::new(SystemIds::new()));
        let store = Arc::new(MemoryStore::new(clock, ids, Arc::new(HostLiveness::new()), None));
        Self { store, most: Arc::default(), acted: Arc::default() }
    }

    /// A process with a tool that looks, and takes a while, and one that acts and asks first.
    fn process(&self) -> RuntimeBuilder {
        let (most, now) = (Arc::clone(&self.most), Arc::new(AtomicUsize::new(0)));
        let looks = Tool::builder::<Text, String>("Looks.").semantics(Semantics::read_only());
        let looks = looks.execute(move |input, _| {
            let (most, now) = (Arc::clone(&most), Arc::clone(&now));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(input.text)
            }
        });
        let acted = Arc::clone(&self.acted);
        let acts = Tool::builder::<Text, String>("Acts.")
            .semantics(Semantics { default_policy: DefaultPolicy::Ask, ..Semantics::mutating() })
            .plan_access(|_, _| {
                let place = Resource::path("/workspace/x", "x");
                vec![AccessRequest::new(Action::new("touch"), place, [Risk::Write].into())]
            })
            .execute(move |input, _| {
                acted.fetch_add(1, Ordering::SeqCst);
                async move { Ok(input.text) }
            });
        let builder = Runtime::builder().store(Arc::clone(&self.store) as _, Arc::new(MemoryArtifacts::default()));
        let tools = builder.tool("look", looks.build().expect("a tool"));
        tools.and_then(|builder| builder.tool("act", acts.build().expect("a tool"))).expect("names")
    }

    async fn appends(&self, session: SessionId) -> usize {
        let log = self.store.read(SessionKey { tenant: LOCAL_TENANT, session }, 0, 10_000).await.expect("read");
        log.iter().map(|event| event.append_id).collect::<std::collections::BTreeSet<_>>().len()
    }

    async fn proposers(&self, session: SessionId) -> Vec<String> {
        let log = self.store.read(SessionKey { tenant: LOCAL_TENANT, session }, 0, 10_000).await.expect("read");
        let proposed = log.iter().filter(|event| matches!(event.body(), Body::IntentProposed(_)));
        proposed.map(|event| event.actor.to_string()).collect()
    }
}

async fn held(runtime: &Runtime) -> HeldSession {
    let session = runtime.create_session("held").await.expect("made");
    runtime.hold_open(session).await.expect("held")
}

fn ok(outcome: &CallOutcome) -> bool {
    matches!(outcome, CallOutcome::Observed(seen) if seen.ok())
}

#[tokio::test]
async fn calls_of_one_held_session_run_side_by_side_and_cost_one_append_each() {
    let world = World::new();
    let runtime = world.process().build().expect("builds");
    let held = held(&runtime).await;
    let before = world.appends(held.session()).await;
    let calls: Vec<_> =
        (0..SIDE_BY_SIDE).map(|n| held.begin_as(Actor::mcp(&format!("caller-{n}")), "look", INPUT)).collect();
    for call in calls {
        assert!(ok(&call.outcome().await.expect("no fault")));
    }
    assert_eq!(world.appends(held.session()).await - before, SIDE_BY_SIDE);
    assert!(world.most.load(Ordering::SeqCst) > 1, "some ran at the same time");
    let mut proposers = world.proposers(held.session()).await;
    proposers.sort();
    let mut callers: Vec<String> = (0..SIDE_BY_SIDE).map(|n| format!("mcp:caller-{n}")).collect();
    callers.sort();
    assert_eq!(proposers, callers);
}

#[tokio::test]
async fn an_answer_from_another_process_runs_in_the_process_that_holds_the_session() {
    let world = World::new();
    let (runtime, other) = (world.process().build().expect("builds"), world.process().build().expect("builds"));
    let held = held(&runtime).await;
    let CallOutcome::Waiting(ask) = held.call("act", INPUT).await.expect("no fault") else { panic!("it asks") };
    other.reply(ask, AskAnswer::by("ann", Reply::AllowOnce)).await.expect("recorded");
    let seen = other.see_through(ask, Duration::from_secs(20)).await.expect("seen through");
    assert!(seen.observed.ok && !seen.ran_here);
    assert_eq!(world.acted.load(Ordering::SeqCst), 1);
    // A call of its own process, and one of another, are queued for it.
    assert!(ok(&runtime.call(held.session(), "look", INPUT).await.expect("no fault")));
    assert!(ok(&other.call(held.session(), "look", INPUT).await.expect("no fault")));
}

#[tokio::test]
async fn the_approver_of_the_process_answers_while_others_go_on() {
    let world = World::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let runtime = world.process().approver(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Reply::AllowOnce }
    });
    let runtime = runtime.build().expect("builds");
    let held = held(&runtime).await;
    let (acted, looked) = tokio::join!(held.call("act", INPUT), held.call("look", INPUT));
    assert!(ok(&acted.expect("no fault")) && ok(&looked.expect("no fault")));
    assert_eq!((asked.load(Ordering::SeqCst), world.acted.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn a_session_is_held_by_one_process_until_it_is_closed() {
    let world = World::new();
    let (runtime, other) = (world.process().build().expect("builds"), world.process().build().expect("builds"));
    let held = held(&runtime).await;
    let session = held.session();
    let refused = other.attend(session).await;
    assert!(matches!(refused, Err(RuntimeError::Held(_))), "{refused:?}");
    assert!(runtime.serves(session));
    held.close().await;
    assert!(!runtime.serves(session));
    other.attend(session).await.expect("free");
}
