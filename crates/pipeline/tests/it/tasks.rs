//! Background tasks (tool-contract §14): one observation at once, one end later, keys held between them, and nothing
//! lost.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::{Note, Process, World, acting, acts, call_in, follow_tokio, fresh_message, happened, observed, proposal};
use portcullis_base::{Clock as _, Code, TaskId, limits};
use portcullis_contract::{Background, Concurrency, Interrupt, NotBackgrounded, Resolved, Semantics, Timeout, Tool};
use portcullis_event::facts::{Exit, TaskCompleted};
use portcullis_event::{Body, IntentState, Observed, State};
use portcullis_pipeline::{Append, Session, TaskStanding};
use portcullis_store::Liveness;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Whom the tests tell to go on.
#[derive(Clone, Default)]
struct Signs {
    /// A task that waits for it ends.
    leave: Arc<Notify>,
}

fn backgroundable() -> Semantics {
    Semantics {
        backgroundable: true,
        stream_progress: true,
        concurrency: Concurrency::Keyed,
        timeout: Timeout { default_ms: 1_000, max_ms: 30_000 },
        ..acts()
    }
}

fn keyed(
    semantics: Semantics,
    run: impl Fn(Note, portcullis_contract::ToolContext) -> futures_util::future::BoxFuture<'static, Ended>
    + Send
    + Sync
    + 'static,
) -> Tool {
    acting(semantics, run)
        .keyed()
        .resolve(|_, _| Ok(Resolved { keys: vec!["fs:/a".to_owned()], ..Resolved::default() }))
        .build()
        .expect("a sound tool")
}

type Ended = Result<String, portcullis_contract::ToolFailure>;

/// Goes into the background and does as its text says.
fn task(semantics: Semantics, signs: &Signs) -> Tool {
    let signs = signs.clone();
    keyed(semantics, move |input, context| {
        let signs = signs.clone();
        Box::pin(async move {
            let mut out = context.spool("stdout");
            out.write(b"before\n").expect("kept");
            context.did(happened("first"));
            context.background(Background { wake: input.text.contains("wake") })?;
            out.write(b"after\n").expect("kept");
            if input.text.contains("stubborn") {
                std::future::pending::<()>().await;
            }
            tokio::select! {
                () = signs.leave.notified() => {}
                _ = context.cancelled() => return Ok("stopped".to_owned()),
            }
            context.did(happened("second"));
            if input.text.contains("panic") {
                panic!("broken on purpose");
            }
            let _ = out.finish();
            if input.text.contains("long") {
                return Ok("line\n".repeat(30_000));
            }
            Ok("the result".to_owned())
        })
    })
}

/// Takes the same key, and ends at once.
fn edit() -> Tool {
    keyed(Semantics { concurrency: Concurrency::Keyed, ..acts() }, |_, _| Box::pin(async { Ok("edited".to_owned()) }))
}

async fn go(session: &Session, text: &str) -> (Observed, TaskId) {
    let (seen, _) = call_in(session, "task", &serde_json::json!({ "text": text }).to_string()).await.expect("no halt");
    let seen = observed(&seen).clone();
    let id = seen.structured.as_ref().and_then(|s| s["task_id"].as_str()).map(|id| id.parse().expect("an id"));
    (seen, id.expect("a task id"))
}

fn tools(signs: &Signs) -> Vec<(&'static str, Tool)> {
    vec![("task", task(backgroundable(), signs)), ("edit", edit())]
}

async fn ends(world: &World) -> Vec<TaskCompleted> {
    let bodies = world.events().await.into_iter().map(|event| event.body());
    bodies.filter_map(|body| if let Body::TaskCompleted(fact) = body { Some(*fact) } else { None }).collect()
}

/// Which append each event of these types is in, by its place among the appends that have one.
async fn appends(world: &World, kinds: &[&str]) -> Vec<(String, usize)> {
    let events = world.events().await;
    let mut seen = Vec::new();
    let found = events.iter().filter(|event| kinds.contains(&event.kind.as_str())).map(|event| {
        let at = seen.iter().position(|id| *id == event.append_id).unwrap_or_else(|| {
            seen.push(event.append_id);
            seen.len() - 1
        });
        (event.kind.as_str().to_owned(), at)
    });
    found.collect()
}

async fn is_lawful(world: &World) {
    let events = world.events().await;
    let rows = world.store.intents(world.key(), false).await.expect("rows");
    assert!(rows.iter().all(|row| row.state == IntentState::Observed), "S15: {rows:?}");
    let state = State::fold(&events);
    assert_eq!(state.intents.open().count(), 0);
    assert_eq!(state.tasks.open().count(), 0, "no task is left open");
}

#[tokio::test(start_paused = true)]
async fn l19_a_call_that_goes_into_the_background_has_one_observation_and_its_task_one_end() {
    let world = World::new().await;
    let signs = Signs::default();
    let process = world.process(tools(&signs));
    let session = process.open().await;
    let (seen, id) = go(&session, "wake").await;
    assert!(seen.ok);
    assert_eq!(seen.code.known(), Some(Code::BackgroundStarted));
    let text = seen.content[0].text.as_deref().expect("words");
    for word in [id.to_string().as_str(), "task_output", "task_wait", "task_cancel"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert_eq!(seen.side_effects.items.len(), 1, "what it did so far");
    assert!(session.state().tasks.open().count() == 1 && session.state().intents.open().count() == 0);

    signs.leave.notify_one();
    session.tasks_ended().await;
    let ends = ends(&world).await;
    assert_eq!(ends.len(), 1);
    assert_eq!((ends[0].task_id, ends[0].intent_id, ends[0].exit), (id, seen.intent_id, Exit::Ok));
    assert_eq!((ends[0].code.known(), ends[0].text.as_str()), (Some(Code::Ok), "the result"));
    assert_eq!(world.observations().await.len(), 1, "its end is no second observation");
    let of = [
        "tool.invocation.backgrounded",
        "tool.observation",
        "tool.invocation.completed",
        "task.completed",
        "wake.queued",
    ];
    let expected: Vec<(String, usize)> = of.iter().zip([0, 0, 1, 1, 1]).map(|(k, n)| ((*k).to_owned(), n)).collect();
    assert_eq!(appends(&world, &of).await, expected, "two appends: the observation, and the end with its wake");
    let completed = world.events().await.into_iter().find_map(|event| match event.body() {
        Body::InvocationCompleted(fact) => Some(fact),
        _ => None,
    });
    assert_eq!(completed.expect("a fact").side_effects.items.len(), 2, "all that it did");
    is_lawful(&world).await;
    session.release().await.expect("released");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_at_once_is_still_observed_first() {
    let world = World::new().await;
    let quick = keyed(backgroundable(), |_, context| {
        Box::pin(async move {
            let first = context.background(Background::default())?;
            assert_eq!(context.background(Background { wake: true }), Ok(first), "the same task a second time");
            Ok("done".to_owned())
        })
    });
    let process = world.process([("task", quick)]);
    let session = process.open().await;
    let turn = common::turn_of(&session).await;
    let admission = session.admit(Append::new(), &turn, proposal("c", fresh_message(), "task", r#"{"text":"x"}"#));
    let (facts, seen) = admission.settled().await.expect("no halt");
    // The observation waits for its caller, and so does the end, however long it takes.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(ends(&world).await.is_empty(), "no end before its beginning is durable");
    assert_eq!(observed(&seen).code.known(), Some(Code::BackgroundStarted));
    session.commit(facts).await.expect("committed");
    session.tasks_ended().await;
    let types = world.types().await;
    let last: Vec<&str> = types.iter().rev().take(4).rev().map(String::as_str).collect();
    let order = ["tool.invocation.backgrounded", "tool.observation", "tool.invocation.completed", "task.completed"];
    assert_eq!(last, order);
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_observation_is_thrown_away_stops_and_writes_nothing() {
    let world = World::new().await;
    let process = world.process(tools(&Signs::default()));
    let session = process.open().await;
    let turn = common::turn_of(&session).await;
    let admission = session.admit(Append::new(), &turn, proposal("c", fresh_message(), "task", r#"{"text":"x"}"#));
    let (facts, _) = admission.settled().await.expect("no halt");
    drop(facts);
    session.tasks_ended().await;
    assert!(ends(&world).await.is_empty());
    let attended = session.attend().await.expect("attended");
    assert_eq!(observed(&attended[0].disposition).code.known(), Some(Code::OutcomeUnknown));
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn l42_a_task_keeps_its_keys_to_its_end_and_a_conflicting_call_waits() {
    let world = World::new().await;
    let signs = Signs::default();
    let process = world.process(tools(&signs));
    let _clock = follow_tokio(&world.clock);
    let session = process.open().await;
    let (_, id) = go(&session, "x").await;

    // Longer than a call waits for a key: it is told who holds it, and what to do.
    let (refused, _) = call_in(&session, "edit", r#"{"text":"e"}"#).await.expect("no halt");
    let refused = observed(&refused);
    assert_eq!(refused.code.known(), Some(Code::LockConflict));
    assert!(refused.summary.contains(&id.to_string()) && refused.summary.contains("task_wait"), "{}", refused.summary);

    let turn = common::turn_of(&session).await;
    let waiting =
        session.admit(Append::new(), &turn, proposal("c", fresh_message(), "edit", r#"{"text":"e"}"#)).spawned();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(ends(&world).await.is_empty());
    signs.leave.notify_one();
    let (facts, seen) = waiting.settled().await.expect("no halt");
    session.commit(facts).await.expect("committed");
    assert!(observed(&seen).ok, "{}", observed(&seen).summary);
    let events = world.events().await;
    let at = |kind: &str| events.iter().rposition(|event| event.kind.as_str() == kind).expect("there");
    assert!(at("task.completed") < at("tool.invocation.started"), "the edit began after the end was durable");
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn l42_the_key_of_a_task_is_held_in_the_store_and_by_a_detached_one_is_not() {
    for (interrupt, free) in [(Interrupt::Cancel, false), (Interrupt::Detach, true)] {
        let mut world = World::new().await;
        let signs = Signs::default();
        let semantics = Semantics { interrupt, ..backgroundable() };
        let process = world.process([("task", task(semantics, &signs))]);
        let _clock = follow_tokio(&world.clock);
        let session = process.open().await;
        go(&session, "x").await;
        // Another process: nothing but the store's rows keeps them apart.
        let first = world.session;
        world.session = portcullis_base::SessionId::from_u128(99);
        world.create(world.session).await;
        let other = world.process([("edit", edit())]);
        let seen = other.call("edit", "e").await;
        let expected = if free { Code::Ok } else { Code::LockConflict };
        assert_eq!(observed(&seen).code.known(), Some(expected), "{interrupt:?}");
        signs.leave.notify_one();
        session.tasks_ended().await;
        assert!(observed(&other.call("edit", "e").await).ok, "{interrupt:?}: free after its end");
        world.session = first;
        is_lawful(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_sends_a_detaching_call_into_the_background() {
    let world = World::new().await;
    let leave = Arc::new(Notify::new());
    for (backgroundable, expected) in [(true, Code::BackgroundStarted), (false, Code::Cancelled)] {
        let let_go = Arc::clone(&leave);
        let semantics = Semantics { interrupt: Interrupt::Detach, backgroundable, ..self::backgroundable() };
        let slow = keyed(semantics, move |_, context| {
            let leave = Arc::clone(&let_go);
            Box::pin(async move {
                tokio::select! {
                    () = leave.notified() => Ok("by itself".to_owned()),
                    _ = context.cancelled() => Ok("stopped".to_owned()),
                }
            })
        });
        let process = world.process([("slow", slow)]);
        let session = process.open().await;
        let turn = common::turn_of(&session).await;
        let stop = CancellationToken::new();
        let admission = session.admit(Append::new(), &turn, proposal("c", fresh_message(), "slow", r#"{"text":"x"}"#));
        let (_, settled) = tokio::join!(
            async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                stop.cancel();
            },
            admission.settled_until(&stop)
        );
        let (facts, seen) = settled.expect("no halt");
        session.commit(facts).await.expect("committed");
        assert_eq!(observed(&seen).code.known(), Some(expected), "backgroundable: {backgroundable}");
        leave.notify_one();
        session.release().await.expect("released");
    }
    let ends = ends(&world).await;
    assert_eq!((ends.len(), ends[0].text.as_str(), ends[0].exit), (1, "by itself", Exit::Ok));
    is_lawful(&world).await;
}

#[tokio::test]
async fn a_tool_that_is_not_declared_so_cannot_go_and_is_not_changed_by_asking() {
    let world = World::new().await;
    let plain = acting(acts(), |_, context| async move {
        assert_eq!(context.background(Background::default()), Err(NotBackgrounded::NotDeclared));
        Ok("done all the same".to_owned())
    });
    let process = world.process([("plain", plain.build().expect("a sound tool"))]);
    let seen = process.call("plain", "x").await;
    assert_eq!(observed(&seen).code.known(), Some(Code::Ok));
    assert!(!world.types().await.iter().any(|kind| kind.contains("backgrounded") || kind.starts_with("task.")));
}

#[tokio::test(start_paused = true)]
async fn a_session_has_at_most_so_many_tasks() {
    let world = World::new().await;
    let signs = Signs::default();
    let many = acting(Semantics { backgroundable: true, ..Semantics::read_only() }, {
        let signs = signs.clone();
        move |_, context| {
            let signs = signs.clone();
            async move {
                context.background(Background::default())?;
                signs.leave.notified().await;
                Ok("done".to_owned())
            }
        }
    });
    let process = world.process([("task", many.build().expect("a sound tool"))]);
    let session = process.open().await;
    for _ in 0..limits::MAX_TASKS {
        go(&session, "x").await;
    }
    let (seen, _) = call_in(&session, "task", r#"{"text":"x"}"#).await.expect("no halt");
    assert_eq!((observed(&seen).ok, observed(&seen).tool_code.as_deref()), (false, Some("not_backgrounded")));
    signs.leave.notify_one();
    while session.state().tasks.open().count() == limits::MAX_TASKS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    go(&session, "x").await;
    signs.leave.notify_waiters();
    session.tasks_ended().await;
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn l45_l46_a_task_runs_to_the_longest_timeout_and_what_it_wrote_is_kept() {
    let world = World::new().await;
    let process = world.process(tools(&Signs::default()));
    let _clock = follow_tokio(&world.clock);
    let session = process.open().await;
    let begun = tokio::time::Instant::now();
    go(&session, "x").await;
    session.tasks_ended().await;
    let ran = begun.elapsed();
    assert!(ran >= Duration::from_secs(30) && ran < Duration::from_secs(31), "{ran:?}: not the 1 s of its call");
    let ends = ends(&world).await;
    assert_eq!((ends[0].exit, ends[0].code.known()), (Exit::Timeout, Some(Code::Timeout)));
    assert_eq!(ends[0].text, "before\nafter\n", "L45");
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn l24_a_cancelled_task_is_no_success_and_a_stubborn_one_is_stopped() {
    let world = World::new().await;
    let process = world.process(tools(&Signs::default()));
    let session = process.open().await;
    let (_, polite) = go(&session, "x").await;
    let book = process.gate.tasks();
    let seen = book.cancel(world.session, polite).await.expect("a task");
    let TaskStanding::Ended(end) = seen.standing else { panic!("{seen:?}") };
    assert_eq!(
        (end.exit, end.code.known(), end.text.as_str()),
        (Exit::Cancelled, Some(Code::Cancelled), "before\nafter\n")
    );

    let (_, stubborn) = go(&session, "stubborn").await;
    let begun = tokio::time::Instant::now();
    let seen = book.cancel(world.session, stubborn).await.expect("a task");
    assert!(begun.elapsed() >= limits::KILL_GRACE && begun.elapsed() < limits::KILL_GRACE * 2);
    assert!(matches!(seen.standing, TaskStanding::Ended(end) if end.exit == Exit::Cancelled));
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn l23_a_task_that_panics_is_a_defect_with_its_facts() {
    let world = World::new().await;
    let signs = Signs::default();
    let process = world.process(tools(&signs));
    let session = process.open().await;
    go(&session, "panic").await;
    signs.leave.notify_one();
    session.tasks_ended().await;
    let ends = ends(&world).await;
    assert_eq!((ends[0].exit, ends[0].code.known()), (Exit::Error, Some(Code::InternalError)));
    assert!(!ends[0].summary.contains("on purpose") && !ends[0].text.contains("on purpose"), "{:?}", ends[0]);
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn l48_l50_the_view_of_a_long_end_is_bounded_and_the_rest_is_kept() {
    let world = World::new().await;
    let signs = Signs::default();
    let process = world.process(tools(&signs));
    let session = process.open().await;
    go(&session, "long").await;
    signs.leave.notify_one();
    session.tasks_ended().await;
    let end = ends(&world).await.remove(0);
    assert!(end.truncated && end.text.len() <= limits::MAX_MODEL_BYTES && end.text.contains("artifact_read"));
    let (artifact, window) = process.gate.shelf().open(end.artifacts[0].id, Some(world.session)).await.expect("kept");
    assert_eq!((artifact.bytes, window.len()), (150_000, 150_000));
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn l69_no_secret_is_in_the_words_of_a_task() {
    let mut world = World::new().await;
    world.secrets = vec!["correct-horse-battery".to_owned()];
    let leaky = keyed(backgroundable(), |_, context| {
        Box::pin(async move {
            let mut out = context.spool("stdout");
            out.write(b"pass correct-horse-").expect("kept");
            context.progress("saw correct-horse-battery");
            context.background(Background { wake: true })?;
            out.write(b"battery\n").expect("kept");
            context.progress("still correct-horse-battery");
            Err(portcullis_contract::ToolFailure::new("no", "not correct-horse-battery"))
        })
    });
    let process = world.process([("task", leaky)]);
    let mut watched = process.gate.progress();
    let session = process.open().await;
    go(&session, "x").await;
    session.tasks_ended().await;
    assert!(!watched.recv().await.expect("a delta").text.contains("horse"));
    for event in world.events().await {
        assert!(!event.payload.as_deref().unwrap_or_default().contains("horse-battery"), "{}", event.kind);
    }
    assert_eq!(ends(&world).await.len(), 1);
}

/// A new process after the old one is proven dead.
async fn take_over(world: &World, old: &Process, tools: Vec<(&'static str, Tool)>) -> (Process, Session) {
    world.liveness.set(old.owner.worker, Liveness::Dead);
    let process = world.process(tools);
    let session = process.open().await;
    (process, session)
}

#[tokio::test(start_paused = true)]
async fn l73_a_task_of_a_dead_process_is_unknown_once() {
    let world = World::new().await;
    let signs = Signs::default();
    let old = world.process(tools(&signs));
    let zombie = old.open().await;
    let (seen, id) = go(&zombie, "wake").await;
    let before = world.events().await.len();

    let (new, session) = take_over(&world, &old, tools(&signs)).await;
    let standing = new.gate.tasks().look(world.session, id).await.expect("a task").standing;
    assert!(matches!(standing, TaskStanding::Lost), "{standing:?}");
    assert!(session.attend().await.expect("attended").is_empty(), "its intent is settled already");
    session.attend().await.expect("attended");
    let ends = ends(&world).await;
    assert_eq!(ends.len(), 1, "once");
    assert_eq!((ends[0].task_id, ends[0].exit, ends[0].code.known()), (id, Exit::Unknown, Some(Code::OutcomeUnknown)));
    let since: Vec<String> = world.types().await.split_off(before - 1);
    assert_eq!(since, ["tool.recovered", "task.completed", "wake.queued"], "who asked to be woken is");
    assert_eq!(world.observations().await.len(), 1, "no second observation of {}", seen.intent_id);
    let (edited, _) = call_in(&session, "edit", r#"{"text":"e"}"#).await.expect("no halt");
    assert!(observed(&edited).ok, "and the session works on");
    is_lawful(&world).await;

    // The old process ends its work, and can tell nobody (S4).
    let told = world.events().await;
    signs.leave.notify_waiters();
    zombie.tasks_ended().await;
    assert_eq!(world.events().await, told);
}

#[tokio::test(start_paused = true)]
async fn l73_whoever_wants_the_key_of_a_dead_task_recovers_it() {
    let mut world = World::new().await;
    let _clock = follow_tokio(&world.clock);
    let old = world.process(tools(&Signs::default()));
    let zombie = old.open().await;
    go(&zombie, "x").await;
    world.liveness.set(old.owner.worker, Liveness::Dead);
    let first = world.session;
    world.session = portcullis_base::SessionId::from_u128(99);
    world.create(world.session).await;
    let other = world.process([("edit", edit())]);
    assert!(observed(&other.call("edit", "e").await).ok);
    world.session = first;
    assert_eq!(ends(&world).await[0].exit, Exit::Unknown);
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn f05_what_conflicts_with_a_lost_task_waits_until_that_must_have_stopped() {
    let world = World::new().await;
    let old = world.process(tools(&Signs::default()));
    let lost = old.open().await;
    go(&lost, "x").await;
    world.liveness.set(old.owner.worker, Liveness::Unknown);
    world.clock.jump_to(world.clock.now().plus(limits::LEASE_TTL));
    let recovering = world.process([("edit", edit())]).open().await;
    recovering.attend().await.expect("attended");
    recovering.release().await.expect("released");
    assert_eq!(ends(&world).await[0].exit, Exit::Unknown);
    let _clock = follow_tokio(&world.clock);
    let begun = tokio::time::Instant::now();
    assert!(observed(&world.process([("edit", edit())]).call("edit", "e").await).ok);
    assert!(begun.elapsed() >= limits::EFFECT_GRACE, "{:?}", begun.elapsed());
    is_lawful(&world).await;
}

#[tokio::test(start_paused = true)]
async fn attending_leaves_a_task_of_this_process_alone() {
    let world = World::new().await;
    let signs = Signs::default();
    let process = world.process(tools(&signs));
    let session = process.open().await;
    go(&session, "x").await;
    assert!(session.attend().await.expect("attended").is_empty());
    assert!(ends(&world).await.is_empty());
    signs.leave.notify_one();
    session.tasks_ended().await;
    session.attend().await.expect("attended");
    assert_eq!(ends(&world).await.len(), 1);
    assert_eq!(ends(&world).await[0].exit, Exit::Ok);
}

#[tokio::test(start_paused = true)]
async fn s04_a_lost_lease_stops_the_tasks_and_they_write_nothing() {
    let world = World::new().await;
    let old = world.process(tools(&Signs::default()));
    let zombie = old.open().await;
    go(&zombie, "x").await;
    let (_, session) = take_over(&world, &old, tools(&Signs::default())).await;
    session.attend().await.expect("attended");
    let told = world.events().await;
    // The old one finds out with its next renewal, long before the task would have ended.
    let begun = tokio::time::Instant::now();
    zombie.tasks_ended().await;
    assert!(begun.elapsed() <= limits::LEASE_RENEW + limits::KILL_GRACE, "{:?}", begun.elapsed());
    assert_eq!(world.events().await, told);
}

#[tokio::test(start_paused = true)]
async fn a_release_waits_for_tasks_and_a_cancel_ends_them() {
    let world = World::new().await;
    let signs = Signs::default();
    let process = world.process(tools(&signs));
    let session = process.open().await;
    go(&session, "x").await;
    let releasing = tokio::spawn(session.release());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!releasing.is_finished());
    signs.leave.notify_one();
    releasing.await.expect("no panic").expect("released");
    assert_eq!(ends(&world).await[0].exit, Exit::Ok);

    let session = process.open().await;
    go(&session, "x").await;
    session.cancel_tasks().await;
    assert_eq!(ends(&world).await[1].exit, Exit::Cancelled);
    session.release().await.expect("released");

    let session = process.open().await;
    go(&session, "x").await;
    process.gate.shutdown().await;
    assert_eq!(ends(&world).await[2].exit, Exit::Cancelled, "a shutdown does not leave them to their fate");
}

#[tokio::test(start_paused = true)]
async fn l70_l71_tasks_are_the_same_from_the_log_at_every_prefix() {
    let world = World::new().await;
    let signs = Signs::default();
    let process = world.process(tools(&signs));
    let session = process.open().await;
    go(&session, "x").await;
    assert_eq!(session.state(), State::fold(&world.events().await), "with a task at work");
    signs.leave.notify_one();
    session.tasks_ended().await;
    let events = world.events().await;
    assert_eq!(session.state(), State::fold(&events));
    let mut stepwise = State::default();
    for (n, event) in events.iter().enumerate() {
        stepwise.apply(event);
        assert_eq!(stepwise, State::fold(&events[..=n]));
        let kept: State = serde_json::from_str(&serde_json::to_string(&stepwise).expect("json")).expect("a state");
        assert_eq!(kept, stepwise);
    }
}

#[tokio::test(start_paused = true)]
async fn the_book_shows_a_session_its_own_tasks_and_what_they_wrote_so_far() {
    let world = World::new().await;
    let signs = Signs::default();
    let process = world.process(tools(&signs));
    let session = process.open().await;
    let (_, id) = go(&session, "x").await;
    let book = process.gate.tasks();
    tokio::task::yield_now().await;
    let seen = book.wait(world.session, id, Duration::from_secs(2)).await.expect("a task");
    let TaskStanding::Running(streams) = seen.standing else { panic!("{seen:?}") };
    assert_eq!((streams[0].name.as_str(), streams[0].head.as_slice()), ("stdout", b"before\nafter\n".as_slice()));
    let stranger = portcullis_base::SessionId::from_u128(99);
    assert!(book.look(stranger, id).await.is_err(), "another session's task is not found");
    assert!(book.look(world.session, TaskId::from_u128(5)).await.is_err());

    let waiting = book.wait(world.session, id, limits::TASK_WAIT);
    let begun = tokio::time::Instant::now();
    signs.leave.notify_one();
    let seen = waiting.await.expect("a task");
    assert!(begun.elapsed() < Duration::from_secs(1), "it does not wait longer than it must");
    assert!(matches!(seen.standing, TaskStanding::Ended(end) if end.text == "the result"));
    assert_eq!(seen.tool, "task");
}
