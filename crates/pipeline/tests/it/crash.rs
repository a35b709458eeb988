//! F2 and F3: a scenario with an inert, an allowed and an asking call, cut at every store call in
//! every way, on both backends. After each cut a new process attends; then everything must hold.

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Effects, Note, World, acting, acts, call_in, change, look};
use portcullis_base::{Clock, Code, IdGen, IntentId, ManualClock, SeededIds, SessionId, limits};
use portcullis_contract::{Background, Concurrency, DefaultPolicy, Resolved, Semantics, Timeout, ToolContext};
use portcullis_event::facts::{Exit, Reply};
use portcullis_event::{Body, Chain, CheckpointKey, IntentState, State};
use portcullis_pipeline::{Disposition, Halt};
use portcullis_store::{AskFilter, Claim, Liveness, LocalArtifacts, Store, StoreError};
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};
use portcullis_store_testkit::{Fault, FaultKind, FaultyStore, FixedLiveness};

fn tools(effects: &Effects) -> [(&'static str, portcullis_contract::Tool); 3] {
    [
        ("look", look(effects)),
        ("change", change(effects, DefaultPolicy::Allow)),
        ("asks", change(effects, DefaultPolicy::Ask)),
    ]
}

async fn memory_world(_: &std::path::Path) -> World {
    World::new().await
}

async fn sqlite_world(folder: &std::path::Path) -> World {
    let clock = Arc::new(ManualClock::new(common::START));
    let ids = Arc::new(SeededIds::new(1));
    let liveness = Arc::new(FixedLiveness::default());
    let store = SqliteStore::open(SqliteConfig {
        path: folder.join("portcullis.db"),
        durability: Durability::Full,
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ids: Arc::clone(&ids) as Arc<dyn IdGen>,
        liveness: Arc::clone(&liveness) as _,
        checkpoint_key: Some(CheckpointKey::from_bytes([7; 32])),
    })
    .expect("a store");
    let entropy = Arc::clone(&ids) as _;
    let artifacts = LocalArtifacts::open(&folder.join("artifacts"), entropy).expect("artifacts");
    World::over(Arc::new(store), Arc::new(artifacts), clock, ids, liveness).await
}

/// One process's life: three calls, an answer, and the answered call. Ends early where it is cut.
async fn live(world: &World, store: &Arc<FaultyStore<dyn Store>>) -> Result<(), Halt> {
    let process = world.process_over(Arc::clone(store) as Arc<dyn Store>, tools(&world.effects));
    let opened = process.gate.open(world.session, process.owner.clone()).await?;
    let portcullis_pipeline::Opened::Ready(session) = opened else { panic!("nobody else holds it") };
    call_in(&session, "look", r#"{"text":"l"}"#).await?;
    call_in(&session, "change", r#"{"text":"allowed"}"#).await?;
    let (disposition, _) = call_in(&session, "asks", r#"{"text":"asked"}"#).await?;
    let Disposition::Parked(ask) = disposition else { panic!("it asks") };
    // The person's answer does not go through the faulty process.
    world.reply(ask, Reply::AllowOnce).await?;
    session.resume(ask).await?;
    session.release().await?;
    Ok(())
}

/// What the log says of an intent.
#[derive(Default)]
struct Told {
    text: String,
    times: usize,
    code: Option<Code>,
}

/// Nothing acknowledged is lost, and nothing is claimed that did not happen: an effect that happened is
/// told, of its own intent, as done or as unknown, and one that is told as done happened.
fn untrue<'a>(effects: &[String], told: impl Iterator<Item = &'a Told> + Clone) -> Option<String> {
    let of = |text: &'a str| told.clone().filter(move |told| told.text == text);
    for text in ["allowed", "asked"] {
        let happened = effects.iter().filter(|done| *done == text).count();
        let done = of(text).filter(|told| told.code == Some(Code::Ok)).count();
        let unknown = of(text).filter(|told| told.code == Some(Code::OutcomeUnknown)).count();
        if happened > done + unknown {
            return Some(format!("`{text}` happened without a record"));
        }
        if done > happened {
            return Some(format!("`{text}` is told as done and did not happen"));
        }
    }
    None
}

#[test]
fn f02_the_matrix_notices_one_effect_without_a_record() {
    let told = |text: &str, code| Told { text: text.to_owned(), times: 1, code: Some(code) };
    let looked = told("l", Code::Ok);
    let refused = told("allowed", Code::CancelledBeforeStart);
    let effects = ["allowed".to_owned()];
    assert!(untrue(&effects, [&looked, &refused].into_iter()).is_some(), "a look that went well records no change");
    assert!(untrue(&effects, [&looked].into_iter()).is_some());
    assert!(untrue(&[], [&looked, &told("allowed", Code::Ok)].into_iter()).is_some());
    for code in [Code::Ok, Code::OutcomeUnknown] {
        assert_eq!(untrue(&effects, [&looked, &told("allowed", code)].into_iter()), None);
    }
}

/// What must hold after recovery, wherever the cut was.
async fn check(world: &World, label: &str) {
    // The old process is dead, and proven so.
    let process = world.process(tools(&world.effects));
    let head = world.store.head(world.key()).await.expect("head").expect("there");
    if let Some(owner) = head.lease_owner {
        world.liveness.set(owner.worker, Liveness::Dead);
    }
    let session = process.open().await;
    session.attend().await.unwrap_or_else(|halt| panic!("{label}: {halt}"));
    // The answer may have come after the cut; then the ask is still there (L36).
    let pending = world.store.asks(world.key().tenant, AskFilter { session: None, pending: true }).await.expect("asks");
    for row in pending {
        world.reply(row.ask_id, Reply::AllowOnce).await.expect("still open");
    }
    session.attend().await.unwrap_or_else(|halt| panic!("{label}: {halt}"));
    session.release().await.expect("released");

    let events = world.events().await;
    let mut chain = Chain::start(world.session);
    for event in &events {
        chain.step(event).unwrap_or_else(|fault| panic!("{label}: {fault}"));
    }
    let mut settled: BTreeMap<IntentId, Told> = BTreeMap::new();
    for event in &events {
        match event.body() {
            Body::IntentProposed(intent) => {
                let text = intent.raw_input["text"].as_str().unwrap_or_default().to_owned();
                settled.entry(intent.intent_id).or_default().text = text;
            }
            Body::Observed(seen) => {
                let told = settled.entry(seen.intent_id).or_default();
                told.times += 1;
                told.code = seen.code.known();
            }
            _ => {}
        }
    }
    for (intent, told) in &settled {
        assert_eq!(told.times, 1, "{label}: L19: {intent} has exactly one observation");
    }
    let effects = world.effects.all();
    for text in ["allowed", "asked"] {
        let times = effects.iter().filter(|done| *done == text).count();
        assert!(times <= 1, "{label}: L73: `{text}` happened {times} times");
    }
    if let Some(untrue) = untrue(&effects, settled.values()) {
        panic!("{label}: {untrue}");
    }
    let rows = world.store.intents(world.key(), false).await.expect("rows");
    assert!(rows.iter().all(|row| row.state == IntentState::Observed), "{label}: S9: {rows:?}");
    let state = State::fold(&events);
    assert_eq!(state.intents.open().count(), 0, "{label}: S15");
    let locks_free = world.process(tools(&world.effects));
    let session = locks_free.open().await;
    let (last, _) = call_in(&session, "change", r#"{"text":"after"}"#).await.expect("no key is left behind");
    assert!(common::observed(&last).ok, "{label}: keys of the dead are free");
}

async fn enumerate<W, F>(make: F)
where
    W: Future<Output = World>,
    F: Fn(std::path::PathBuf) -> W,
{
    for kind in FaultKind::ALL {
        for nth in 1.. {
            let folder = tempfile::tempdir().expect("a folder");
            let world = make(folder.path().to_owned()).await;
            let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(Fault { nth, kind })));
            let lived = live(&world, &store).await;
            if !store.struck() {
                lived.expect("an undisturbed life");
                assert_eq!(world.effects.all(), ["allowed", "asked"]);
                assert!(nth > 6, "the scenario makes more than {nth} store calls");
                break;
            }
            check(&world, &format!("{kind:?} at call {nth}")).await;
        }
    }
}

#[tokio::test]
async fn f02_f03_every_cut_in_memory_leaves_one_observation_and_at_most_one_effect() {
    enumerate(|folder| async move { memory_world(&folder).await }).await;
}

#[tokio::test]
async fn f02_f03_every_cut_on_sqlite_leaves_one_observation_and_at_most_one_effect() {
    enumerate(|folder| async move { sqlite_world(&folder).await }).await;
}

/// Goes on in the background, with the key `fs:/a`: what it does before and after its observation is counted.
fn going_on(effects: &Effects) -> portcullis_contract::Tool {
    let effects = effects.clone();
    let semantics = Semantics {
        concurrency: Concurrency::Keyed,
        backgroundable: true,
        timeout: Timeout { default_ms: 1_000, max_ms: 30_000 },
        ..acts()
    };
    let run = move |input: Note, context: ToolContext| {
        let effects = effects.clone();
        async move {
            effects.add(format!("{} begun", input.text));
            context.background(Background { wake: true })?;
            effects.add(format!("{} ended", input.text));
            Ok("done".to_owned())
        }
    };
    acting(semantics, run)
        .keyed()
        .resolve(|_, _| Ok(Resolved { keys: vec!["fs:/a".to_owned()], ..Resolved::default() }))
        .build()
        .expect("a sound tool")
}

/// One process's life with two tasks, one after the other's end. Ends early where it is cut.
async fn live_with_tasks(world: &World, store: &Arc<FaultyStore<dyn Store>>) -> Result<(), Halt> {
    let process = world.process_over(Arc::clone(store) as Arc<dyn Store>, [("task", going_on(&world.effects))]);
    let opened = process.gate.open(world.session, process.owner.clone()).await?;
    let portcullis_pipeline::Opened::Ready(session) = opened else { panic!("nobody else holds it") };
    for text in ["one", "two"] {
        let called = call_in(&session, "task", &serde_json::json!({ "text": text }).to_string()).await;
        // Also where the call halted: what is left of it comes to its end, as far as it can.
        session.tasks_ended().await;
        called?;
    }
    session.release().await?;
    Ok(())
}

/// What must hold after recovery: every intent has one observation, every task that began one end, nothing happened twice
/// or untold, and no lock survives.
async fn check_tasks(world: &World, label: &str) {
    let head = world.store.head(world.key()).await.expect("head").expect("there");
    if let Some(owner) = head.lease_owner {
        world.liveness.set(owner.worker, Liveness::Dead);
    }
    let process = world.process([("task", going_on(&world.effects))]);
    let before = world.effects.all();
    let session = process.open().await;
    session.attend().await.unwrap_or_else(|halt| panic!("{label}: {halt}"));
    session.attend().await.unwrap_or_else(|halt| panic!("{label}: {halt}"));
    session.release().await.expect("released");
    let effects = world.effects.all();
    // An intent whose start never became durable may run now, for the first time; nothing else does.
    for (at, effect) in effects.iter().enumerate() {
        assert!(!effects[..at].contains(effect), "{label}: L73: `{effect}` happened twice ({before:?}, {effects:?})");
    }
    let events = world.events().await;
    let state = State::fold(&events);
    assert_eq!(state.intents.open().count(), 0, "{label}: S15");
    assert_eq!(state.tasks.open().count(), 0, "{label}: no task is left open");
    let (mut told, mut ends): (BTreeMap<IntentId, Told>, BTreeMap<IntentId, Vec<Exit>>) = Default::default();
    for event in &events {
        match event.body() {
            Body::IntentProposed(intent) => {
                told.entry(intent.intent_id).or_default().text =
                    intent.raw_input["text"].as_str().unwrap_or_default().to_owned();
            }
            Body::Observed(seen) => {
                let told = told.entry(seen.intent_id).or_default();
                told.times += 1;
                told.code = seen.code.known();
            }
            Body::TaskCompleted(end) => ends.entry(end.intent_id).or_default().push(end.exit),
            _ => {}
        }
    }
    for (intent, Told { text, times, code }) in &told {
        assert_eq!(*times, 1, "{label}: L19: `{text}` has exactly one observation");
        let ended = ends.get(intent).map(Vec::as_slice).unwrap_or_default();
        let gone_on = *code == Some(Code::BackgroundStarted);
        assert_eq!(ended.len(), usize::from(gone_on), "{label}: `{text}` ({code:?}) ended as {ended:?}");
        let happened = |what: &str| effects.contains(&format!("{text} {what}"));
        assert!(!happened("begun") || gone_on || *code == Some(Code::OutcomeUnknown), "{label}: `{text}`: {code:?}");
        assert!(!ended.contains(&Exit::Ok) || happened("ended"), "{label}: `{text}` is told as done and is not");
    }
    for effect in &effects {
        let text = effect.split(' ').next();
        assert!(told.values().any(|told| Some(&*told.text) == text), "{label}: `{effect}` without a record");
    }
    let rows = world.store.intents(world.key(), false).await.expect("rows");
    assert!(rows.iter().all(|row| row.state == IntentState::Observed), "{label}: S9: {rows:?}");
    // From another session: to its own a lock would be no hindrance.
    let other = SessionId::from_u128(99);
    world.create(other).await;
    let mut neighbour = world.process([("task", going_on(&world.effects))]);
    neighbour.session = other;
    let seen = neighbour.call("task", "after").await;
    assert!(common::observed(&seen).ok, "{label}: no lock survives: {:?}", common::observed(&seen).summary);
}

async fn enumerate_tasks<W, F>(make: F)
where
    W: Future<Output = World>,
    F: Fn(std::path::PathBuf) -> W,
{
    for kind in FaultKind::ALL {
        for nth in 1.. {
            let folder = tempfile::tempdir().expect("a folder");
            let world = make(folder.path().to_owned()).await;
            let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(Fault { nth, kind })));
            let lived = live_with_tasks(&world, &store).await;
            if !store.struck() {
                lived.expect("an undisturbed life");
                assert_eq!(world.effects.all(), ["one begun", "one ended", "two begun", "two ended"]);
                assert!(nth > 6, "the scenario makes more than {nth} store calls");
                break;
            }
            check_tasks(&world, &format!("{kind:?} at call {nth}")).await;
        }
    }
}

#[tokio::test]
async fn f02_f03_every_cut_of_a_task_in_memory_leaves_one_observation_one_end_and_no_lock() {
    enumerate_tasks(|folder| async move { memory_world(&folder).await }).await;
}

#[tokio::test]
async fn f02_f03_every_cut_of_a_task_on_sqlite_leaves_one_observation_one_end_and_no_lock() {
    enumerate_tasks(|folder| async move { sqlite_world(&folder).await }).await;
}

#[tokio::test]
async fn l73_a_started_call_of_a_dead_process_is_unknown_and_never_rerun() {
    let world = World::new().await;
    // Append A is durable, the process dies before append B.
    let store =
        Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(Fault { nth: 3, kind: FaultKind::CrashBefore })));
    let process = world.process_over(Arc::clone(&store) as Arc<dyn Store>, tools(&world.effects));
    let session = process.open().await;
    let halted = call_in(&session, "change", r#"{"text":"once"}"#).await;
    assert!(matches!(halted, Err(Halt::PersistFailed(_))));
    assert_eq!(world.effects.all(), ["once"], "it happened, and nobody could be told");

    let head = world.store.head(world.key()).await.expect("head").expect("there");
    world.liveness.set(head.lease_owner.expect("held").worker, Liveness::Dead);
    let next = world.process(tools(&world.effects));
    let session = next.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = common::observed(&attended[0].disposition);
    assert_eq!(seen.code.known(), Some(Code::OutcomeUnknown));
    assert_eq!(seen.side_effects.state, portcullis_base::SideEffectState::Unknown);
    assert!(!seen.ok && !seen.retryable && seen.synthetic);
    assert!(session.attend().await.expect("attended").is_empty(), "recovery run twice equals once");
    assert_eq!(world.effects.all(), ["once"]);
}

#[tokio::test]
async fn s09_s11_a_session_given_back_with_an_unsettled_call_is_due_and_a_worker_settles_it() {
    let world = World::new().await;
    // Append B is refused, and the process lives on: it gives the session back like any other.
    let store =
        Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(Fault { nth: 3, kind: FaultKind::ErrorBefore })));
    let process = world.process_over(Arc::clone(&store) as Arc<dyn Store>, tools(&world.effects));
    let session = process.open().await;
    assert!(matches!(call_in(&session, "change", r#"{"text":"once"}"#).await, Err(Halt::PersistFailed(_))));
    session.release().await.expect("released");

    let worker = world.process(tools(&world.effects));
    let claims =
        world.store.claim(world.key().tenant, worker.owner.clone(), 8, limits::LEASE_TTL).await.expect("claimed");
    let [Claim::Granted(lease)] = &claims[..] else { panic!("nobody would ever come: {claims:?}") };
    let session = worker.gate.hold(lease.clone(), world.clock.monotonic()).await.expect("held");
    let attended = session.attend().await.expect("attended");
    assert_eq!(common::observed(&attended[0].disposition).code.known(), Some(Code::OutcomeUnknown));
    session.release().await.expect("released");
    let head = world.store.head(world.key()).await.expect("head").expect("there");
    assert_eq!(head.next_due_at, None, "nothing is left to do");
    assert_eq!(world.effects.all(), ["once"]);
}

#[tokio::test(start_paused = true)]
async fn l42_s04_a_lease_runs_from_before_its_claim_was_sent() {
    let world = World::new().await;
    // The first call over this way is a renewal, and it fails.
    let store =
        Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(Fault { nth: 1, kind: FaultKind::ErrorBefore })));
    let process = world.process_over(Arc::clone(&store) as Arc<dyn Store>, tools(&world.effects));
    let asked = world.clock.monotonic();
    let claim =
        world.store.claim_session(world.key(), process.owner.clone(), limits::LEASE_TTL).await.expect("claimed");
    let Claim::Granted(lease) = claim else { panic!("nobody else holds it") };
    // The answer, or the log that has to be folded, is under way for so long that hardly anything is left.
    world.clock.advance(limits::LEASE_TTL - limits::LEASE_MARGIN);
    let session = process.gate.hold(lease, asked).await.expect("held");
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(store.struck(), "it tried to renew at once");
    let before = world.events().await.len();
    let halted = call_in(&session, "change", r#"{"text":"late"}"#).await;
    assert!(matches!(halted, Err(Halt::FenceLost(StoreError::LeaseRanOut(_)))), "{halted:?}");
    assert_eq!(world.effects.count(), 0, "another may be at work on the same keys by now");
    assert_eq!(world.events().await.len(), before, "nothing is settled that whoever comes next could take up");
}

#[tokio::test]
async fn s04_a_holder_that_was_stopped_past_its_lease_goes_on_if_nobody_came() {
    for somebody_came in [false, true] {
        let world = World::new().await;
        let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), None));
        // The answer takes its time, as that of every real store does.
        store.before_next(|| tokio::time::sleep(std::time::Duration::from_millis(50)));
        let process = world.process_over(Arc::clone(&store) as Arc<dyn Store>, tools(&world.effects));
        let asked = world.clock.monotonic();
        let claim =
            world.store.claim_session(world.key(), process.owner.clone(), limits::LEASE_TTL).await.expect("claimed");
        let Claim::Granted(lease) = claim else { panic!("nobody else holds it") };
        world.clock.advance(limits::LEASE_TTL * 2);
        if somebody_came {
            world.liveness.set(process.owner.worker, Liveness::Dead);
            drop(world.process(tools(&world.effects)).open().await);
        }
        let session = process.gate.hold(lease, asked).await.expect("held");
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(store.calls(), 1, "it asked once more");
        assert_eq!(session.lost().is_cancelled(), somebody_came);
        let called = call_in(&session, "change", r#"{"text":"late"}"#).await;
        assert_eq!(called.is_ok(), !somebody_came, "{called:?}");
        assert_eq!(world.effects.count(), usize::from(!somebody_came));
    }
}

#[tokio::test]
async fn s04_a_process_that_lost_its_lease_writes_nothing_more() {
    let world = World::new().await;
    let old = world.process(tools(&world.effects));
    let zombie = old.open().await;
    world.liveness.set(old.owner.worker, Liveness::Dead);
    let new = world.process(tools(&world.effects));
    let session = new.open().await;
    let before = world.events().await.len();
    let halted = call_in(&zombie, "change", r#"{"text":"late"}"#).await;
    assert!(matches!(halted, Err(Halt::FenceLost(_))), "{halted:?}");
    assert_eq!(world.effects.count(), 0, "the fence is checked before the effect");
    assert_eq!(world.events().await.len(), before);
    call_in(&session, "change", r#"{"text":"mine"}"#).await.expect("the new holder works");
    assert_eq!(world.effects.all(), ["mine"]);
}

#[tokio::test]
async fn a_repeated_commit_after_a_lost_answer_is_found_again() {
    let world = World::new().await;
    let store =
        Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(Fault { nth: 2, kind: FaultKind::ErrorAfter })));
    let process = world.process_over(Arc::clone(&store) as Arc<dyn Store>, tools(&world.effects));
    let session = process.open().await;
    let (seen, _) = call_in(&session, "change", r#"{"text":"x"}"#).await.expect("the log knows the append");
    assert!(common::observed(&seen).ok);
    assert_eq!(world.effects.all(), ["x"]);
    let started = world.types().await.iter().filter(|kind| *kind == "tool.invocation.started").count();
    assert_eq!(started, 1);
}
