//! Accesses that a call finds midway (R3, L25): the gate decides as ever, what it stopped stays stopped, and an ask is
//! held live by the running call, which an answer after its death does not bring back.

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{
    Effects, Process, World, acting, acts, call_in, change, follow_tokio, happened, observed, row, runtime, touches,
};
use portcullis_base::{AskId, Clock as _, Code, Phase, Recovery, SideEffectState, SideEffects};
use portcullis_contract::{DefaultPolicy, GateStop, Interrupt, Semantics, Timeout, Tool, ToolContext, ToolFailure};
use portcullis_event::facts::{Reply, Verdict};
use portcullis_event::{AskState, Body, Event, Observed};
use portcullis_pipeline::{Append, Approvals, Session};
use portcullis_store::{AskFilter, Liveness, Store};
use portcullis_store_testkit::{Fault, FaultKind, FaultyStore};

/// What a tool was told, in order.
type Told = Arc<Mutex<Vec<Result<(), GateStop>>>>;

fn midway() -> Semantics {
    Semantics { dynamic_access: true, ..acts() }
}

/// A tool that asks the gate about each word of its input and does what it may.
fn script(effects: &Effects, semantics: Semantics) -> (Tool, Told) {
    let told = Told::default();
    let (effects, heard) = (effects.clone(), Arc::clone(&told));
    let run = move |input: common::Note, context: ToolContext| {
        let (effects, heard) = (effects.clone(), Arc::clone(&heard));
        async move {
            effects.add("begun");
            for part in input.text.split(' ') {
                let said = context.gate(touches(part)).await;
                heard.lock().expect("no test panics with it").push(said);
                said?;
                effects.add(part);
                context.did(happened(part));
                // Each part takes its time, which counts.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok(format!("did {}", input.text))
        }
    };
    (built(semantics, run), told)
}

fn built<F, Fut>(semantics: Semantics, run: F) -> Tool
where
    F: Fn(common::Note, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolFailure>> + Send + 'static,
{
    // The call as a whole touches what its rule allows; what it does, it asks about.
    let tool = Tool::builder::<common::Note, String>("Does several things.").semantics(semantics);
    tool.plan_access(|_, _| vec![touches("script")]).parts_are_intents().execute(run).build().expect("a sound tool")
}

/// `ask*` asks and `den*` is denied, whatever the tool's default says.
const RULES: &str = r#"
[[rules]]
id = "asks"
action = "change"
path = "/workspace/ask*"
effect = "ask"
[[rules]]
id = "denies"
action = "change"
path = "/workspace/den*"
effect = "deny"
"#;

async fn ruled() -> World {
    let mut world = World::new().await;
    world.rules = RULES.to_owned();
    world
}

async fn pending(world: &World) -> Option<AskId> {
    let filter = AskFilter { session: None, pending: true };
    let rows = world.store.asks(world.key().tenant, filter).await.expect("asks");
    rows.first().map(|row| row.ask_id)
}

/// Waits until a call is held, and says by what.
async fn held(world: &World) -> AskId {
    loop {
        match pending(world).await {
            Some(ask) => return ask,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn call(session: &Session, text: &str) -> Observed {
    let input = serde_json::json!({ "text": text }).to_string();
    let (disposition, _) = call_in(session, "script", &input).await.expect("no halt");
    observed(&disposition).clone()
}

/// One call that is held once, and what is answered.
async fn answered(world: &World, process: &Process, text: &str, reply: Reply, feedback: Option<&str>) -> Observed {
    let session = process.open().await;
    let answering = async {
        let ask = held(world).await;
        world.reply_with(ask, reply, feedback.map(str::to_owned)).await.expect("an answer");
    };
    let (seen, ()) = tokio::join!(call(&session, text), answering);
    session.release().await.expect("released");
    seen
}

fn kinds(events: &[Event]) -> Vec<&str> {
    let tool = events.iter().map(|event| event.kind.as_str()).filter(|kind| kind.starts_with("tool."));
    tool.skip_while(|kind| *kind != "tool.invocation.started").collect()
}

#[tokio::test]
async fn l21_what_is_allowed_midway_is_in_the_log_before_the_call_goes_on() {
    let world = ruled().await;
    let store = Arc::clone(&world.store);
    let key = world.key();
    let tool = built(midway(), move |_, context| {
        let store = Arc::clone(&store);
        async move {
            context.gate(touches("fine")).await?;
            let log = store.read(key, 0, 1_000).await.expect("read");
            let last = log.last().expect("events").body();
            let Body::PermissionDecided(fact) = last else { panic!("{last:?}") };
            assert_eq!((fact.decision, fact.resources[0].name.as_str()), (Verdict::Allow, "/workspace/fine"));
            Ok("went on".to_owned())
        }
    });
    let process = world.process([("script", tool)]);
    let seen = process.call("script", "x").await;
    assert_eq!(observed(&seen).code.known(), Some(Code::Ok), "{:?}", observed(&seen));
    let events = world.events().await;
    let (started, decided) = (vec!["tool.invocation.started"], vec!["tool.permission"]);
    let rest = vec!["tool.invocation.completed", "tool.observation"];
    assert_eq!(kinds(&events), [started, decided, rest].concat());
}

#[tokio::test]
async fn l21_r3_a_known_answer_to_what_is_asked_midway_is_in_the_log_before_the_call_goes_on() {
    for (reply, done) in [(Reply::AllowOnce, vec!["begun", "ask"]), (Reply::Deny, vec!["begun"])] {
        let mut world = ruled().await;
        world.answers = common::knows(reply.clone(), "test");
        let (tool, _told) = script(&world.effects, midway());
        let seen = world.process([("script", tool)]).call("script", "ask").await;
        assert_eq!(observed(&seen).ok, reply.allows(), "{}", observed(&seen).summary);
        assert_eq!(world.effects.all(), done);
        let events = world.events().await;
        let asked = vec!["tool.permission", "tool.permission.asked", "tool.permission.replied"];
        let rest = vec!["tool.invocation.completed", "tool.observation"];
        assert_eq!(kinds(&events), [vec!["tool.invocation.started"], asked, rest].concat());
        assert_eq!(pending(&world).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn l25_what_the_gate_stopped_is_observed_so_whatever_the_call_returns() {
    type End = fn() -> Result<String, ToolFailure>;
    let ends: [(&str, End); 4] = [
        ("success", || Ok("all went well".to_owned())),
        ("failure", || Err(ToolFailure::new("could_not", "could not do it"))),
        ("command", || Err(ToolFailure::command(Some(2), None, "exit 2"))),
        ("defect", || panic!("broken on purpose")),
    ];
    for (what, end) in ends {
        for reported in [true, false] {
            let world = ruled().await;
            let _clock = follow_tokio(&world.clock);
            let tool = built(midway(), move |_, context| async move {
                if reported {
                    context.did(happened("before"));
                }
                assert_eq!(context.gate(touches("denied")).await, Err(GateStop::ByGate));
                // It cannot ask again, not even for what it may do.
                assert_eq!(context.gate(touches("fine")).await, Err(GateStop::ByGate));
                context.nothing_found();
                end()
            });
            let seen = observed(&world.process([("script", tool)]).call("script", "x").await).clone();
            let state = match (reported, what) {
                (true, _) => SideEffectState::Occurred,
                (false, "defect") => SideEffectState::Unknown,
                (false, _) => SideEffectState::None,
            };
            let promised = (Phase::Permission, Code::PolicyDenied, state, false, Recovery::Explain);
            assert_eq!(row(&seen), promised, "{what}");
            assert!(!seen.ok && seen.tool_code.is_none() && seen.structured.is_none(), "{seen:?}");
            let permission = seen.permission.expect("the gate's");
            assert_eq!((permission.decision, permission.policy_ids), (Verdict::Deny, vec!["denies".to_owned()]));
            let events = world.events().await;
            let decided = events.iter().filter(|event| event.kind.as_str() == "tool.permission").count();
            assert_eq!(decided, 2, "{what}: the call's, and the one that stopped it");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn l25_a_stopped_call_that_does_not_end_is_observed_as_stopped() {
    for cancelled in [false, true] {
        let world = ruled().await;
        let _clock = follow_tokio(&world.clock);
        let timeout = Timeout { default_ms: 1_000, max_ms: 1_000 };
        let semantics = Semantics { timeout, interrupt: Interrupt::Cancel, ..midway() };
        let tool = built(semantics, |_, context| async move {
            let _ = context.gate(touches("denied")).await;
            std::future::pending().await
        });
        let process = world.process([("script", tool)]);
        let session = process.open().await;
        let mut facts = Append::new();
        let turn = session.begin_turn(&mut facts);
        let admission =
            session.admit(facts, &turn, common::proposal("c", common::fresh_message(), "script", r#"{"text":"x"}"#));
        let cancel = admission.canceller();
        if cancelled {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(500)).await;
                cancel.cancel();
            });
        }
        let (facts, disposition) = admission.settled().await.expect("no halt");
        session.commit(facts).await.expect("committed");
        let promised = (Phase::Permission, Code::PolicyDenied, SideEffectState::Unknown, false, Recovery::Explain);
        assert_eq!(row(observed(&disposition)), promised);
    }
}

#[tokio::test(start_paused = true)]
async fn l25_l26_a_no_stops_the_call_where_it_is_and_its_words_reach_the_model() {
    let world = ruled().await;
    let _clock = follow_tokio(&world.clock);
    let (tool, told) = script(&world.effects, midway());
    let process = world.process([("script", tool)]);
    let seen = answered(&world, &process, "one ask two", Reply::DenyWithFeedback, Some("not on a Friday")).await;
    assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Permission), Some(Code::UserDenied)));
    assert!(seen.model_view().to_string().contains("not on a Friday"), "{}", seen.model_view());
    assert_eq!(seen.side_effects, SideEffects::occurred(vec![happened("one")]));
    assert_eq!(world.effects.all(), ["begun", "one"]);
    assert_eq!(*told.lock().expect("told"), [Ok(()), Err(GateStop::ByGate)]);
}

#[tokio::test(start_paused = true)]
async fn l46_a_held_call_keeps_its_keys_and_its_clock_stands_still() {
    let world = ruled().await;
    let _clock = follow_tokio(&world.clock);
    let timeout = Timeout { default_ms: 1_000, max_ms: 1_000 };
    let (tool, _told) = script(&world.effects, Semantics { timeout, ..midway() });
    let process = world.process([("script", tool)]);
    let other = world.process([("change", change(&world.effects, DefaultPolicy::Allow))]);
    let elsewhere = portcullis_base::SessionId::make(&*world.ids, world.clock.now());
    world.create(elsewhere).await;
    let session = process.open().await;
    let answering = async {
        let ask = held(&world).await;
        // A person thinks for longer than the call may run.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let head = world.store.head(world.key()).await.expect("head").expect("there");
        assert_eq!(head.blocked_n, 1, "the session waits for a person");
        let refused = call_elsewhere(&other, elsewhere).await;
        assert_eq!(refused.code.known(), Some(Code::LockConflict), "{refused:?}");
        world.reply(ask, Reply::AllowOnce).await.expect("an answer");
    };
    let (seen, ()) = tokio::join!(call(&session, "ask"), answering);
    assert_eq!(seen.code.known(), Some(Code::Ok), "{seen:?}");
    assert!(seen.duration_us < 1_000_000, "it ran for {} µs", seen.duration_us);
    assert_eq!(world.effects.all(), ["begun", "ask"]);
    let head = world.store.head(world.key()).await.expect("head").expect("there");
    assert_eq!(head.blocked_n, 0);
    session.release().await.expect("released");
    let free = call_elsewhere(&other, elsewhere).await;
    assert_eq!(free.code.known(), Some(Code::Ok), "the keys are free again");
}

async fn call_elsewhere(process: &Process, session: portcullis_base::SessionId) -> Observed {
    let opened = process.gate.open(session, process.owner.clone()).await.expect("open");
    let portcullis_pipeline::Opened::Ready(session) = opened else { panic!("nobody else holds it") };
    let (disposition, _) = call_in(&session, "change", r#"{"text":"x"}"#).await.expect("no halt");
    let seen = observed(&disposition).clone();
    session.release().await.expect("released");
    seen
}

#[tokio::test(start_paused = true)]
async fn l46_only_what_was_held_is_not_counted() {
    let world = ruled().await;
    let _clock = follow_tokio(&world.clock);
    let timeout = Timeout { default_ms: 1_000, max_ms: 1_000 };
    let semantics = Semantics { timeout, interrupt: Interrupt::Cancel, ..midway() };
    let tool = built(semantics, |_, context| async move {
        tokio::time::sleep(Duration::from_millis(600)).await;
        context.gate(touches("ask")).await?;
        tokio::time::sleep(Duration::from_millis(600)).await;
        Ok("too late".to_owned())
    });
    let process = world.process([("script", tool)]);
    let seen = answered(&world, &process, "x", Reply::AllowOnce, None).await;
    assert_eq!(seen.code.known(), Some(Code::Timeout), "{seen:?}");
}

#[tokio::test]
async fn l22_a_tool_that_does_not_say_so_cannot_ask_midway() {
    let world = ruled().await;
    let heard = Told::default();
    let told = Arc::clone(&heard);
    let tool = acting(acts(), move |_, context: ToolContext| {
        let told = Arc::clone(&told);
        async move {
            let said = context.gate(touches("fine")).await;
            told.lock().expect("told").push(said);
            Ok("went on".to_owned())
        }
    });
    let process = world.process([("script", tool.build().expect("a sound tool"))]);
    let seen = process.call("script", "x").await;
    assert_eq!(observed(&seen).code.known(), Some(Code::Ok), "nothing has changed for it");
    assert_eq!(*heard.lock().expect("told"), [Err(GateStop::NotDeclared)]);
    assert_eq!(
        kinds(&world.events().await),
        ["tool.invocation.started", "tool.invocation.completed", "tool.observation"]
    );
}

#[tokio::test]
async fn l22_where_nobody_can_be_asked_the_call_is_stopped_at_once() {
    let mut world = ruled().await;
    world.approvals = Approvals::Unavailable;
    let (tool, told) = script(&world.effects, midway());
    let seen = observed(&world.process([("script", tool)]).call("script", "ask").await).clone();
    let promised = (Phase::Permission, Code::ApprovalUnavailable, SideEffectState::None, false, Recovery::Explain);
    assert_eq!(row(&seen), promised);
    assert_eq!(*told.lock().expect("told"), [Err(GateStop::ByGate)]);
    assert_eq!(world.effects.all(), ["begun"]);
}

#[tokio::test(start_paused = true)]
async fn l22_a_held_call_that_nobody_answers_expires_and_one_that_is_cancelled_is_superseded() {
    for (cancelled, code) in [(false, Code::ApprovalExpired), (true, Code::ApprovalSuperseded)] {
        let world = ruled().await;
        let clock = follow_tokio(&world.clock);
        // A tool that is let finish: to wait for a person is no work that must be.
        let (tool, _told) = script(&world.effects, midway());
        let process = world.process([("script", tool)]);
        let session = process.open().await;
        let mut facts = Append::new();
        let turn = session.begin_turn(&mut facts);
        let input = r#"{"text":"ask"}"#;
        let admission = session.admit(facts, &turn, common::proposal("c", common::fresh_message(), "script", input));
        let cancel = admission.canceller();
        let waiting = async {
            let ask = held(&world).await;
            if cancelled {
                cancel.cancel();
            } else {
                // The lease goes on; a day passes for the ask alone.
                drop(clock);
                world.clock.advance(Duration::from_secs(25 * 3_600));
            }
            ask
        };
        let (settled, ask) = tokio::join!(admission.settled(), waiting);
        let (facts, disposition) = settled.expect("no halt");
        session.commit(facts).await.expect("committed");
        let seen = observed(&disposition);
        assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Permission), Some(code)));
        assert_eq!(world.effects.all(), ["begun"]);
        let late = world.reply(ask, Reply::AllowOnce).await;
        assert!(late.is_err(), "nobody waits for it any more");
    }
}

#[tokio::test(start_paused = true)]
async fn l15_a_yes_under_other_rules_lets_nothing_happen() {
    let world = ruled().await;
    let _clock = follow_tokio(&world.clock);
    let (tool, _told) = script(&world.effects, midway());
    let process = world.process([("script", tool)]);
    let session = process.open().await;
    let answering = async {
        let ask = held(&world).await;
        let more = format!("{RULES}[[rules]]\nid = \"new\"\naction = \"other\"\neffect = \"deny\"\n");
        let changed = World { rules: more, ..ruled().await }.policy();
        process.gate.set_policy(changed);
        world.reply(ask, Reply::AllowOnce).await.expect("an answer");
        ask
    };
    let (seen, ask) = tokio::join!(call(&session, "ask"), answering);
    assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Permission), Some(Code::PolicyDenied)));
    assert_eq!(world.effects.all(), ["begun"]);
    let row = world.store.ask(world.key().tenant, ask).await.expect("asks").expect("the ask");
    assert_eq!(row.state, AskState::Voided);
}

#[tokio::test(start_paused = true)]
async fn l35_a_yes_counts_once() {
    let world = ruled().await;
    let _clock = follow_tokio(&world.clock);
    let (tool, told) = script(&world.effects, midway());
    let process = world.process([("script", tool)]);
    let session = process.open().await;
    let answering = async {
        let first = held(&world).await;
        world.reply(first, Reply::AllowOnce).await.expect("an answer");
        assert!(world.reply(first, Reply::Deny).await.is_err(), "the first answer counts");
        let second = loop {
            let ask = held(&world).await;
            if ask != first {
                break ask;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        world.reply(second, Reply::Deny).await.expect("an answer");
    };
    let (seen, ()) = tokio::join!(call(&session, "ask ask"), answering);
    assert_eq!(seen.code.known(), Some(Code::UserDenied), "the same again is asked again");
    assert_eq!(*told.lock().expect("told"), [Ok(()), Err(GateStop::ByGate)]);
    assert_eq!(world.effects.all(), ["begun", "ask"]);
}

/// A runtime of its own dies with everything in it, as a process does.
fn dies_held() -> (World, AskId) {
    runtime().block_on(async {
        let world = ruled().await;
        let (tool, _told) = script(&world.effects, midway());
        let process = world.process([("script", tool)]);
        let session = process.open().await;
        let ask = tokio::select! {
            seen = call(&session, "ask") => panic!("{seen:?}"),
            ask = held(&world) => ask,
        };
        world.liveness.set(process.owner.worker, Liveness::Dead);
        (world, ask)
    })
}

#[test]
fn l36_l73_an_answer_after_the_death_of_a_held_call_runs_nothing() {
    for reply in [None, Some(Reply::AllowOnce), Some(Reply::Deny)] {
        let (world, ask) = dies_held();
        runtime().block_on(async {
            let (tool, _told) = script(&world.effects, midway());
            let next = world.process([("script", tool)]);
            let state = if reply.is_some() { AskState::Answered } else { AskState::Voided };
            if let Some(reply) = reply {
                world.reply(ask, reply).await.expect("it is pending until somebody attends");
            }
            let session = next.open().await;
            assert!(session.resume(ask).await.expect("no halt").is_some());
            assert!(session.attend().await.expect("attended").is_empty(), "there is nothing left to do");
            let seen = world.observations().await;
            let [seen] = &seen[..] else { panic!("{seen:?}") };
            assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Execute), Some(Code::OutcomeUnknown)));
            assert_eq!(seen.side_effects.state, SideEffectState::Unknown);
            assert_eq!(world.effects.all(), ["begun"], "nothing ran by the answer");
            let row = world.store.ask(world.key().tenant, ask).await.expect("asks").expect("the ask");
            assert_eq!(row.state, state);
            let head = world.store.head(world.key()).await.expect("head").expect("there");
            assert_eq!(head.blocked_n, 0);
            session.release().await.expect("released");
            let seen = next.call("script", "fine").await;
            assert_eq!(observed(&seen).code.known(), Some(Code::Ok), "the keys of the dead are free");
        });
    }
}

/// Another session that wants the keys of a dead one recovers it, and the ask that it held goes with it.
#[test]
fn l36_whoever_wants_the_keys_of_a_dead_held_call_closes_its_ask() {
    let (world, ask) = dies_held();
    runtime().block_on(async {
        let _clock = follow_tokio(&world.clock);
        let other = world.process([("change", change(&world.effects, DefaultPolicy::Allow))]);
        let elsewhere = portcullis_base::SessionId::make(&*world.ids, world.clock.now());
        world.create(elsewhere).await;
        assert_eq!(call_elsewhere(&other, elsewhere).await.code.known(), Some(Code::Ok));
        let row = world.store.ask(world.key().tenant, ask).await.expect("asks").expect("the ask");
        assert_eq!(row.state, AskState::Voided);
        let head = world.store.head(world.key()).await.expect("head").expect("there");
        assert_eq!(head.blocked_n, 0);
    });
}

/// F2 for a held call: cut at every call of the store, in every way.
#[test]
fn f02_l25_every_cut_of_a_held_call_leaves_one_observation_and_no_open_ask() {
    let mut stopped = 0;
    for kind in FaultKind::ALL {
        for nth in 1.. {
            let (world, struck) = runtime().block_on(async {
                let world = ruled().await;
                let fault = Some(Fault { nth, kind });
                let faulty = Arc::new(FaultyStore::new(Arc::clone(&world.store), fault));
                let (tool, _told) = script(&world.effects, midway());
                let process = world.process_over(Arc::clone(&faulty) as Arc<dyn Store>, [("script", tool)]);
                let life = async {
                    let opened = process.gate.open(world.session, process.owner.clone()).await;
                    let Ok(portcullis_pipeline::Opened::Ready(session)) = opened else { return };
                    let _ = call_in(&session, "script", r#"{"text":"one ask two"}"#).await;
                };
                let answering = async {
                    let ask = held(&world).await;
                    world.reply(ask, Reply::AllowOnce).await.expect("an answer");
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    () = life => {}
                    () = answering => {}
                    // A call that is cut off from the log may wait for its lease to run out.
                    () = tokio::time::sleep(Duration::from_secs(120)) => {}
                }
                (world, faulty.struck())
            });
            let seen = runtime().block_on(settles(&world, kind, nth));
            let unrecorded = |seen: &&Observed| seen.warnings.iter().any(|warning| warning.contains("would not take"));
            if let Some(seen) = seen.iter().find(unrecorded) {
                stopped += 1;
                assert_eq!(seen.code.known(), Some(Code::Cancelled), "{seen:?}");
            }
            if !struck {
                break;
            }
            assert!(nth < 200, "the scenario is shorter than that");
        }
    }
    assert!(stopped >= 3, "a call whose decision is not kept goes no further, and says so: {stopped}");
}

async fn settles(world: &World, kind: FaultKind, nth: u64) -> Vec<Observed> {
    let label = format!("{kind:?} at {nth}");
    let head = world.store.head(world.key()).await.expect("head").expect("there");
    if let Some(owner) = head.lease_owner {
        world.liveness.set(owner.worker, Liveness::Dead);
    }
    let (tool, _told) = script(&world.effects, midway());
    let next = world.process([("script", tool)]);
    let session = next.open().await;
    session.attend().await.expect("attended");
    let seen = world.observations().await;
    assert!(seen.len() <= 1, "{label}: {seen:?}");
    assert_eq!(pending(world).await, None, "{label}");
    let head = world.store.head(world.key()).await.expect("head").expect("there");
    assert_eq!(head.blocked_n, 0, "{label}");
    let effects = world.effects.all();
    assert!(effects.len() <= 4 && effects.iter().filter(|done| *done == "ask").count() <= 1, "{label}: {effects:?}");
    if effects.iter().any(|done| done != "begun") {
        // What happened is told as done, or as not known.
        let told = seen.first().map(|seen| seen.side_effects.state);
        assert!(matches!(told, Some(SideEffectState::Occurred | SideEffectState::Unknown)), "{label}: {seen:?}");
    }
    // L21: each part that happened has its right in the log.
    let bodies: Vec<Body> = world.events().await.iter().map(Event::body).collect();
    for part in effects.iter().filter(|done| *done != "begun") {
        let named = bodies.iter().any(|body| {
            matches!(body, Body::PermissionDecided(fact) if fact.resources.iter().any(|r| r.name == format!("/workspace/{part}")))
        });
        assert!(named, "{label}: {part} happened without a right");
    }
    seen
}
