//! Asks whose answer is known as they are raised (tool-contract 13.7): one append with the start of the call, and in all
//! else what an answer that was waited for comes to.

use crate::common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Effects, World, acting, acts, call_in, change, follow_tokio, knows, look, observed, parked, proposal};
use portcullis_base::Code;
use portcullis_contract::{
    AccessRequest, Action, Bound, Concurrency, DefaultPolicy, Prepared, Resolved, Resource, Semantics,
    SurroundingFacts, Surroundings, Tool,
};
use portcullis_event::facts::{BY_FLAG, Reply};
use portcullis_event::{Actor, AskState, Body, Event, State};
use portcullis_pipeline::{Append, Disposition, Opened};
use portcullis_store::{AskFilter, AskRow, Liveness, Store};
use portcullis_store_testkit::{CountingStore, Fault, FaultKind, FaultyStore};
use serde_json::Value;
use tokio::sync::Notify;

const INPUT: &str = r#"{"text":"a"}"#;
/// Asks about looks, too.
const RULES: &str = "[[rules]]\nid = \"looks\"\naction = \"looks\"\neffect = \"ask\"\n";

/// Tools that ask, each with something of its own that an ask or its call may have.
fn tools(effects: &Effects) -> [(&'static str, Tool); 5] {
    let run = |effects: &Effects| {
        let effects = effects.clone();
        move |input: common::Note, _| {
            effects.add(input.text.clone());
            async move { Ok("done".to_owned()) }
        }
    };
    let asks = || Semantics { default_policy: DefaultPolicy::Ask, ..acts() };
    let shown = acting(asks(), run(effects)).precheck(|_, _, _| {
        let around = Surroundings::by(|| {
            let bound = vec![Bound::new("the folder", "/a", "1")];
            std::future::ready(SurroundingFacts { bound, ..SurroundingFacts::default() })
        });
        let diff = Some("+one".to_owned().into());
        std::future::ready(Ok(Prepared { diff, around: Some(around), ..Prepared::default() }))
    });
    let keyed = acting(Semantics { concurrency: Concurrency::Keyed, ..asks() }, run(effects))
        .keyed()
        .resolve(|_, _| Ok(Resolved { keys: vec!["fs:/a".to_owned()], ..Resolved::default() }));
    let pinned = acting(Semantics { default_policy: DefaultPolicy::AskPinned, ..acts() }, run(effects));
    [
        ("asks", change(effects, DefaultPolicy::Ask)),
        ("looks", look(effects)),
        ("shown", shown.build().expect("a sound tool")),
        ("keyed", keyed.build().expect("a sound tool")),
        ("pinned", pinned.build().expect("a sound tool")),
    ]
}

async fn world(reply: Option<Reply>) -> World {
    let mut world = World::new().await;
    world.rules = RULES.to_owned();
    world.answers = reply.and_then(|reply| knows(reply, "test"));
    world
}

async fn asks(world: &World) -> Vec<AskRow> {
    world.store.asks(world.key().tenant, AskFilter { session: None, pending: false }).await.expect("asks")
}

#[tokio::test]
async fn l23_an_asked_call_whose_answer_is_known_costs_the_commits_of_an_allowed_one() {
    for (reply, tool, commits, code) in [
        (Reply::AllowOnce, "asks", 2, Code::Ok),
        (Reply::AllowOnce, "keyed", 2, Code::Ok),
        (Reply::AllowOnce, "looks", 1, Code::Ok),
        (Reply::Deny, "asks", 1, Code::UserDenied),
        (Reply::Deny, "looks", 1, Code::UserDenied),
    ] {
        let world = world(Some(reply.clone())).await;
        let counting = Arc::new(CountingStore::new(Arc::clone(&world.store)));
        let process = world.process_over(Arc::clone(&counting) as Arc<dyn Store>, tools(&world.effects));
        let session = process.open().await;
        let before = counting.counts().commits;
        let (disposition, _) = call_in(&session, tool, INPUT).await.expect("no halt");
        assert_eq!(counting.counts().commits - before, commits, "{tool} {reply:?}");
        assert_eq!(observed(&disposition).code.known(), Some(code), "{tool} {reply:?}");
        let rows = asks(&world).await;
        let [row] = &rows[..] else { panic!("{tool}: one ask: {rows:?}") };
        assert_eq!((row.state, row.reply.clone()), (AskState::Answered, Some(reply)));
        let head = world.store.head(world.key()).await.expect("head").expect("there");
        assert_eq!(head.blocked_n, 0, "nothing waits for anybody");
    }
}

#[tokio::test]
async fn l21_the_ask_its_known_answer_and_the_start_stand_in_one_append() {
    let world = world(Some(Reply::AllowOnce)).await;
    let process = world.process(tools(&world.effects));
    let seen = process.call("asks", "a").await;
    let permission = observed(&seen).permission.clone().expect("a right");
    assert_eq!(permission.approver.as_deref(), Some("knower"));
    assert_eq!(permission.ask_id, Some(asks(&world).await[0].ask_id), "the right names the ask");
    assert_eq!(
        world.types().await,
        [
            "tool.menu",
            "tool.intent",
            "tool.lookup",
            "tool.validation",
            "tool.permission",
            "agent.tool_use",
            "tool.permission.asked",
            "tool.permission.replied",
            "tool.scheduled",
            "tool.invocation.started",
            "tool.invocation.completed",
            "tool.observation",
        ]
    );
    let log = world.events().await;
    let of = |kind: &str| log.iter().find(|event| event.kind.as_str() == kind).expect("there");
    let (asked, replied) = (of("tool.permission.asked"), of("tool.permission.replied"));
    let started = of("tool.invocation.started").append_id;
    assert_eq!((asked.append_id, replied.append_id), (started, started));
    assert_ne!(of("tool.invocation.completed").append_id, started);
    assert_eq!(replied.actor, Actor::user("knower"), "whoever answered is the actor of the answer");
    assert!(matches!(replied.body(), Body::AskReplied(said) if said.channel == "test"));
}

/// A state without what differs between any two sessions: ids, and where in the log things stand.
fn neutral(state: &State) -> Value {
    fn is_id(text: &str) -> bool {
        text.rsplit_once('_').is_some_and(|(_, id)| id.len() >= 20 && id.chars().all(|c| c.is_ascii_alphanumeric()))
    }
    fn strip(value: Value) -> Value {
        match value {
            Value::Object(all) if !all.is_empty() && all.keys().all(|key| is_id(key)) => {
                Value::Array(all.into_iter().map(|(_, value)| strip(value)).collect())
            }
            Value::Object(all) => {
                let kept = all.into_iter().filter(|(name, _)| !name.ends_with("seq"));
                Value::Object(kept.map(|(name, value)| (name, strip(value))).collect())
            }
            Value::Array(all) => Value::Array(all.into_iter().map(strip).collect()),
            Value::String(text) if is_id(&text) => Value::String("an id".to_owned()),
            other => other,
        }
    }
    strip(serde_json::to_value(state).expect("a state is JSON"))
}

/// The log of one asked call, answered at once or by `reply` after it was parked.
async fn log_of(tool: &str, reply: Reply, known: bool) -> Vec<Event> {
    let world = world(known.then(|| reply.clone())).await;
    let process = world.process(tools(&world.effects));
    let called = process.call(tool, "a").await;
    if !known {
        world.reply_as("knower", parked(&called), reply).await.expect("answered");
        let session = process.open().await;
        session.attend().await.expect("attended");
        session.release().await.expect("released");
    }
    world.events().await
}

#[tokio::test]
async fn l71_a_known_answer_folds_to_the_state_of_one_that_was_waited_for() {
    for tool in ["asks", "looks", "shown", "keyed", "pinned"] {
        for reply in [Reply::AllowOnce, Reply::Deny, Reply::DenyAndStop] {
            let at_once = log_of(tool, reply.clone(), true).await;
            let waited = log_of(tool, reply.clone(), false).await;
            let whole = |log: &[Event]| neutral(&State::fold(log));
            assert_eq!(whole(&at_once), whole(&waited), "{tool} {reply:?}");
            // Where a crash would leave it: what recovery finds is the same, too.
            let started = |log: &[Event]| {
                let until = log.iter().position(|event| event.kind.as_str() == "tool.invocation.started");
                until.map(|until| neutral(&State::fold(&log[..=until])))
            };
            let (at_once, waited) = (started(&at_once), started(&waited));
            assert_eq!(at_once.is_some(), reply.allows(), "{tool} {reply:?}");
            assert_eq!(at_once, waited, "{tool} {reply:?}");
        }
    }
}

/// Cut at every call of the store, in every way: the call leaves nothing, or an end that is true.
#[tokio::test]
async fn l73_a_known_answer_lets_its_call_run_once_wherever_its_process_dies() {
    let mut unknown = 0;
    for kind in FaultKind::ALL {
        for nth in 1.. {
            let world = world(Some(Reply::AllowOnce)).await;
            let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(Fault { nth, kind })));
            let process = world.process_over(Arc::clone(&store) as Arc<dyn Store>, tools(&world.effects));
            let life = async {
                let Ok(Opened::Ready(session)) = process.gate.open(world.session, process.owner.clone()).await else {
                    return;
                };
                if call_in(&session, "keyed", INPUT).await.is_ok() {
                    let _ = session.release().await;
                }
            };
            life.await;
            if !store.struck() {
                assert_eq!(world.effects.count(), 1);
                break;
            }
            let label = format!("{kind:?} at call {nth}");
            let head = world.store.head(world.key()).await.expect("head").expect("there");
            if let Some(owner) = head.lease_owner {
                world.liveness.set(owner.worker, Liveness::Dead);
            }
            let session = world.process(tools(&world.effects)).open().await;
            session.attend().await.unwrap_or_else(|halt| panic!("{label}: {halt}"));
            assert!(session.attend().await.expect("again").is_empty(), "{label}: nothing is left to do");
            session.release().await.expect("released");
            let seen = world.observations().await;
            let log = world.types().await;
            let count = |kind: &str| log.iter().filter(|found| *found == kind).count();
            assert!(world.effects.count() <= 1, "{label}: the answer was used twice");
            assert!(world.effects.count() <= seen.len(), "{label}: an effect without a record");
            for kind in ["tool.permission.asked", "tool.permission.replied", "tool.observation"] {
                assert_eq!(count(kind), seen.len(), "{label}: {kind}");
            }
            let codes: BTreeSet<_> = seen.iter().filter_map(|seen| seen.code.known()).collect();
            assert!(codes.iter().all(|code| [Code::Ok, Code::OutcomeUnknown].contains(code)), "{label}: {codes:?}");
            unknown += usize::from(codes.contains(&Code::OutcomeUnknown));
            assert!(asks(&world).await.iter().all(|row| row.state == AskState::Answered), "{label}");
        }
    }
    assert!(unknown > 0, "it was cut between its two appends as well");
}

/// A line that may hide a command which a rule denies.
fn hiding(effects: &Effects) -> Tool {
    let effects = effects.clone();
    let run = move |input: common::Note, _| {
        effects.add(input.text.clone());
        async move { Ok("done".to_owned()) }
    };
    let tool = Tool::builder::<common::Note, String>("Runs a line.")
        .semantics(Semantics { default_policy: DefaultPolicy::Ask, ..acts() });
    let access = |input: &common::Note, _: &Resolved| {
        let mut line = Resource::opaque(&input.text);
        line.command.hides = true;
        vec![AccessRequest::new(Action::new("change"), line, [portcullis_base::Risk::Execute].into())]
    };
    tool.plan_access(access).execute(run).build().expect("a sound tool")
}

#[tokio::test]
async fn l31_a_flag_does_not_answer_what_only_a_person_may_allow() {
    for (channel, reply, runs) in [
        (BY_FLAG, Reply::AllowOnce, None),
        (BY_FLAG, Reply::Deny, Some(false)),
        // An embedder's own rule reads what it is shown.
        ("callback", Reply::AllowOnce, Some(true)),
    ] {
        let mut world = World::new().await;
        world.rules = "[[rules]]\nid = \"never\"\naction = \"change\"\nargv = [\"danger\"]\neffect = \"deny\"\n".into();
        world.answers = knows(reply, channel);
        let process = world.process([("line", hiding(&world.effects))]);
        let called = process.call("line", "$(hidden)").await;
        match runs {
            None => {
                parked(&called);
                assert_eq!(asks(&world).await[0].state, AskState::Pending, "it waits for a person");
            }
            Some(runs) => assert_eq!(observed(&called).ok, runs, "{}", observed(&called).summary),
        }
        assert_eq!(world.effects.count(), usize::from(runs == Some(true)));
    }
}

#[tokio::test]
async fn l33_a_known_answer_remembers_what_a_person_s_would_and_a_pinned_ask_is_allowed_once() {
    let world = world(Some(Reply::AllowSaved)).await;
    let process = world.process(tools(&world.effects));
    for (tool, grants) in [("pinned", 0), ("asks", 1)] {
        assert!(observed(&process.call(tool, "a").await).ok);
        let all = process.gate.grants().all().await.expect("grants");
        assert_eq!(all.len(), grants, "{tool}");
        assert!(process.gate.grants().altered().await.expect("grants").is_empty(), "the log gave it");
    }
    let before = asks(&world).await.len();
    assert!(observed(&process.call("asks", "a").await).ok);
    assert_eq!(asks(&world).await.len(), before, "the grant answers, and nothing asks");
}

/// Whoever waited for its turn is looked at again, and a known answer is bound to what it was given for like any other.
#[tokio::test(start_paused = true)]
async fn l36_a_known_answer_is_void_where_the_surroundings_changed_while_the_call_waited() {
    for changes in [false, true] {
        let world = world(Some(Reply::AllowOnce)).await;
        let (started, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let place = Arc::new(Mutex::new("1"));
        let looked = Arc::new(AtomicBool::new(false));
        let holds = {
            let (started, go) = (Arc::clone(&started), Arc::clone(&go));
            let run = move |_: common::Note, _| {
                let (started, go) = (Arc::clone(&started), Arc::clone(&go));
                async move {
                    started.notify_one();
                    go.notified().await;
                    Ok("done".to_owned())
                }
            };
            acting(Semantics { default_policy: DefaultPolicy::Allow, ..acts() }, run).build().expect("a sound tool")
        };
        let placed = {
            let (effects, place, looked) = (world.effects.clone(), Arc::clone(&place), Arc::clone(&looked));
            let run = move |input: common::Note, _| {
                effects.add(input.text.clone());
                async move { Ok("done".to_owned()) }
            };
            let around = move || {
                let (place, looked) = (Arc::clone(&place), Arc::clone(&looked));
                Surroundings::by(move || {
                    looked.store(true, Ordering::SeqCst);
                    let identity = *place.lock().expect("nobody panics");
                    let bound = vec![Bound::new("the folder", "/a", identity)];
                    std::future::ready(SurroundingFacts { bound, ..SurroundingFacts::default() })
                })
            };
            let tool = acting(Semantics { default_policy: DefaultPolicy::Ask, ..acts() }, run);
            let found = move || Prepared { around: Some(around()), ..Prepared::default() };
            tool.precheck(move |_, _, _| std::future::ready(Ok(found()))).build().expect("a sound tool")
        };
        let process = world.process([("holds", holds), ("placed", placed)]);
        let _clock = follow_tokio(&world.clock);
        let session = process.open().await;
        let turn = common::turn_of(&session).await;
        let admit = |tool: &str| {
            session.admit(Append::new(), &turn, proposal("c", common::fresh_message(), tool, INPUT)).spawned()
        };
        let holds = admit("holds");
        started.notified().await;
        let waits = admit("placed");
        // Time is paused: it passes only when every task waits, and this one then waits for its turn.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(looked.load(Ordering::SeqCst), "it was answered");
        if changes {
            *place.lock().expect("nobody panics") = "2";
        }
        go.notify_one();
        let (facts, _) = holds.settled().await.expect("no halt");
        session.commit(facts).await.expect("committed");
        let (facts, waited) = waits.settled().await.expect("no halt");
        session.commit(facts).await.expect("committed");
        let seen = observed(&waited);
        assert_eq!(seen.ok, !changes, "{}", seen.summary);
        assert_eq!(world.effects.count(), usize::from(!changes));
        let state = if changes { AskState::Voided } else { AskState::Answered };
        assert_eq!(asks(&world).await[0].state, state);
        let head = world.store.head(world.key()).await.expect("head").expect("there");
        assert_eq!(head.blocked_n, 0);
    }
}

#[tokio::test]
async fn an_ask_of_which_nothing_is_known_waits_as_ever() {
    let mut world = world(None).await;
    world.answers = Some(Arc::new(|_, _| None));
    let process = world.process(tools(&world.effects));
    let called = process.call("asks", "a").await;
    assert!(matches!(called, Disposition::Parked(_)), "{called:?}");
    assert_eq!(world.effects.count(), 0);
}
