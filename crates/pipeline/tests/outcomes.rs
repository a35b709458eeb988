//! Every outcome that the gate can give today, with what its row of the table (§12) promises; and the
//! laws of the path: what runs, when, how often, and what is written of it.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{
    Effects, Note, Process, World, acting, acts, call_in, call_on, change, follow_tokio, fresh_message, happened, look,
    name, observed, parked, proposal, row, runtime, tool, touches, turn_of,
};
use portcullis_base::{Clock as _, Code, IntentId, Phase, Reason, Recovery, SessionId, SideEffectState, SideEffects};
use portcullis_contract::{
    Concurrency, Content, DefaultPolicy, Interrupt, Precondition, Prepared, Resolved, Semantics, Timeout, Tool,
    ToolFailure, Variable, VariableKind,
};
use portcullis_event::facts::{Completed, Exit, Reply};
use portcullis_event::{Body, Event, Observed};
use portcullis_pipeline::{Append, Approvals, Disposition, Halt, Placement};
use portcullis_store::Store;
use portcullis_store::testkit::CountingStore;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use tokio::sync::Notify;

const INPUT: &str = r#"{"text":"x"}"#;
const NONE: SideEffectState = SideEffectState::None;
const OCCURRED: SideEffectState = SideEffectState::Occurred;
const UNKNOWN: SideEffectState = SideEffectState::Unknown;

/// One call of one tool in a world of its own.
async fn outcome(tool: Tool) -> (World, Observed) {
    outcome_of(tool, INPUT).await
}

async fn outcome_of(tool: Tool, input: &str) -> (World, Observed) {
    let world = World::new().await;
    let process = world.process([("t", tool)]);
    let seen = process.call_raw("t", input).await;
    (world, observed(&seen).clone())
}

fn failing(semantics: Semantics, failure: ToolFailure) -> Tool {
    let fail = move |_, _| {
        let failure = failure.clone();
        async move { Err::<String, _>(failure) }
    };
    acting(semantics, fail).build().expect("a sound tool")
}

async fn completed(world: &World) -> Vec<Completed> {
    let bodies = world.events().await.into_iter().map(|event| event.body());
    bodies.filter_map(|body| if let Body::Completed(c) = body { Some(c) } else { None }).collect()
}

fn text(seen: &Observed) -> String {
    seen.content.iter().filter_map(|part| part.text.clone()).collect()
}

// --- lookup and validate ------------------------------------------------------------------------

#[tokio::test]
async fn l22_duplicate_call_is_refused_whether_the_first_is_durable_or_rides_in_the_same_append() {
    let world = World::new().await;
    let process = world.process([("look", look(&world.effects))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let twice = fresh_message();
    let first = call_on(&session, &turn, proposal("c", twice, "look", INPUT)).await.expect("no halt");
    assert!(observed(&first).ok);
    let again = call_on(&session, &turn, proposal("c", twice, "look", INPUT)).await.expect("no halt");
    assert_eq!(row(observed(&again)), (Phase::Lookup, Code::DuplicateCall, NONE, false, Recovery::None));

    let together = fresh_message();
    let first = session.admit(Append::new(), &turn, proposal("c", together, "look", INPUT));
    let (facts, _) = first.settled().await.expect("no halt");
    let second = session.admit(facts, &turn, proposal("c", together, "look", INPUT));
    let (facts, again) = second.settled().await.expect("no halt");
    session.commit(facts).await.expect("committed");
    assert_eq!(observed(&again).code.known(), Some(Code::DuplicateCall));
    assert_eq!(world.effects.looks.load(Ordering::SeqCst), 2, "each first one ran, no second one");
}

#[tokio::test]
async fn l08_a_call_id_used_in_two_messages_is_two_calls() {
    let world = World::new().await;
    let process = world.process([("look", look(&world.effects))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let (one, two) = (fresh_message(), fresh_message());
    let mut ids = Vec::new();
    for (message, text) in [(one, "first"), (two, "second")] {
        let input = serde_json::json!({ "text": text }).to_string();
        let seen = call_on(&session, &turn, proposal("call_0", message, "look", &input)).await.expect("no halt");
        assert_eq!(self::text(observed(&seen)), format!("seen {text}"));
        ids.push(observed(&seen).intent_id);
    }
    let mut proposed = Vec::new();
    for event in world.events().await {
        if let Body::IntentProposed(intent) = event.body() {
            proposed.push((intent.intent_id, intent.message_id.to_string()));
        }
    }
    let message = |m: u128| portcullis_base::MessageId::from_u128(m).to_string();
    assert_eq!(proposed, [(ids[0], message(one)), (ids[1], message(two))]);
}

#[tokio::test]
async fn l03_input_unparseable() {
    let nested = format!("{{\"text\":{}1{}}}", "[".repeat(70), "]".repeat(70));
    let big = format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20));
    let huge = format!("{{\"text\":\"{}\"}}", "x".repeat(6 << 20));
    for raw in ["not json", "", "[1]", "\"text\"", "null", r#"{"text":"a","text":"b"}"#, &nested, &big, &huge] {
        let label: String = raw.chars().take(20).collect();
        let effects = Effects::default();
        let (world, seen) = outcome_of(look(&effects), raw).await;
        let expected = (Phase::Validate, Code::InputUnparseable, NONE, true, Recovery::FixInput);
        assert_eq!(row(&seen), expected, "{label}");
        assert!(!seen.errors.is_empty(), "{label}: it says what is wrong");
        assert_eq!(effects.looks.load(Ordering::SeqCst), 0, "{label}");
        let logged: usize = world.events().await.iter().map(|e| e.payload.as_ref().map_or(0, String::len)).sum();
        assert!(logged < 2 << 20, "{label}: the log does not swallow it whole ({logged} bytes)");
    }
}

#[tokio::test]
async fn l03_schema_invalid() {
    for (raw, path) in [
        (r#"{"text":"a","more":1}"#, ""),
        (r#"{"text":7}"#, "/text"),
        (r"{}", ""),
        (r#"{"text":null}"#, "/text"),
        (r#"{"Text":"a"}"#, ""),
    ] {
        let effects = Effects::default();
        let (_, seen) = outcome_of(look(&effects), raw).await;
        assert_eq!(row(&seen), (Phase::Validate, Code::SchemaInvalid, NONE, true, Recovery::FixInput), "{raw}");
        assert_eq!(seen.errors.first().map(|e| e.path.as_str()), Some(path), "{raw}: {:?}", seen.errors);
        assert_eq!(effects.looks.load(Ordering::SeqCst), 0, "{raw}");
    }
}

fn raw_input() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".{0,6}".prop_map(Into::into),
    ];
    let json = leaf.prop_recursive(3, 12, 3, |inner| {
        let key = prop_oneof![Just("text".to_owned()), ".{0,4}".prop_map(String::from)];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Into::into),
            prop::collection::btree_map(key, inner, 0..3)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    });
    prop_oneof![
        3 => json.clone().prop_map(|value| value.to_string()),
        2 => json.prop_map(|value| serde_json::json!({ "text": value }).to_string()),
        2 => ".{0,8}".prop_map(|text| serde_json::json!({ "text": text }).to_string()),
        1 => ".{0,20}".prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l03_the_executor_runs_only_for_what_the_schema_takes(raws in prop::collection::vec(raw_input(), 32)) {
        runtime().block_on(async {
            let world = World::new().await;
            let process = world.process([("look", look(&world.effects))]);
            let session = process.open().await;
            for raw in raws {
                // The oracle: an object with `text`, a string, and nothing else.
                let value = serde_json::from_str::<serde_json::Value>(&raw).ok();
                let fits = value.as_ref().and_then(|v| v.as_object()).is_some_and(|o| o.len() == 1 && o.get("text").is_some_and(|t| t.is_string()));
                let before = world.effects.looks.load(Ordering::SeqCst);
                let (seen, _) = call_in(&session, "look", &raw).await.expect("no halt");
                let ran = world.effects.looks.load(Ordering::SeqCst) - before;
                prop_assert_eq!(ran, usize::from(fits), "{}", raw);
                prop_assert_eq!(observed(&seen).ok, fits, "{}", raw);
                if !fits {
                    let parses = value.is_some_and(|v| v.is_object());
                    let code = if parses { Code::SchemaInvalid } else { Code::InputUnparseable };
                    prop_assert_eq!(observed(&seen).code.known(), Some(code), "{}", raw);
                }
            }
            Ok(())
        })?;
    }
}

/// A tool whose runtime validation finds something.
fn checking(found: Precondition) -> Tool {
    acting(acts(), |_, _| async { Ok("ran".to_owned()) })
        .precheck(move |_, _, _| {
            let found = found.clone();
            async move { Err::<Prepared, _>(found) }
        })
        .build()
        .expect("a sound tool")
}

#[tokio::test]
async fn l22_preconditions_found_before_the_gate() {
    let (world, seen) = outcome(checking(Precondition::failed(Reason::FileNotRead, "read it first"))).await;
    let precondition = (Phase::Validate, Code::RuntimePreconditionFailed, NONE, true, Recovery::SatisfyPrecondition);
    assert_eq!(row(&seen), precondition);
    assert_eq!(seen.reason.as_ref().and_then(|r| r.known()), Some(Reason::FileNotRead));
    assert!(!world.types().await.iter().any(|t| t == "tool.permission"), "nobody was asked for what cannot run");

    let (_, seen) = outcome(checking(Precondition::ambiguous("three places"))).await;
    assert_eq!(row(&seen), (Phase::Validate, Code::AmbiguousTarget, NONE, true, Recovery::NarrowTarget));
    let (_, seen) = outcome(checking(Precondition::stale("it changed"))).await;
    assert_eq!(row(&seen), (Phase::Validate, Code::StaleFileBaseline, NONE, true, Recovery::Reread));
    let (_, seen) = outcome(checking(Precondition::schema("/text", "not both"))).await;
    assert_eq!(row(&seen), (Phase::Validate, Code::SchemaInvalid, NONE, true, Recovery::FixInput));
    assert_eq!(seen.errors.first().map(|e| e.path.as_str()), Some("/text"));
}

#[tokio::test]
async fn l22_preconditions_found_while_resolving() {
    let resolving = acting(acts(), |_, _| async { Ok("ran".to_owned()) })
        .resolve(|_, _| Err(Precondition::failed(Reason::PathEscape, "outside")))
        .build()
        .expect("a sound tool");
    let (_, seen) = outcome(resolving).await;
    let precondition = (Phase::Validate, Code::RuntimePreconditionFailed, NONE, true, Recovery::SatisfyPrecondition);
    assert_eq!(row(&seen), precondition);
}

#[tokio::test]
async fn l22_preconditions_that_cease_to_hold_at_commit_are_execute() {
    let failed = ToolFailure::precondition(Precondition::failed(Reason::TargetExists, "somebody made it"));
    let (_, seen) = outcome(failing(acts(), failed)).await;
    let precondition = (Phase::Execute, Code::RuntimePreconditionFailed, NONE, true, Recovery::SatisfyPrecondition);
    assert_eq!(row(&seen), precondition);
    assert_eq!(seen.reason.as_ref().and_then(|r| r.known()), Some(Reason::TargetExists));
    let (_, seen) = outcome(failing(acts(), ToolFailure::precondition(Precondition::stale("it changed")))).await;
    assert_eq!(row(&seen), (Phase::Execute, Code::StaleFileBaseline, NONE, true, Recovery::Reread));
    // A code of the validate phase alone cannot come out of an execution.
    let (_, seen) = outcome(failing(acts(), ToolFailure::precondition(Precondition::ambiguous("two")))).await;
    assert_eq!(row(&seen), (Phase::Execute, Code::ToolFailure, NONE, true, Recovery::InspectThenDecide));
    assert_eq!(seen.tool_code.as_deref(), Some("ambiguous_target"));
}

#[tokio::test]
async fn l22_a_missing_variable_is_a_precondition_and_an_undeclared_one_is_never_there() {
    let variable = |name: &str, required| Variable {
        name: name.to_owned(),
        kind: VariableKind::Secret,
        required,
        scoped: false,
        description: "for the call".to_owned(),
    };
    let with = |variables: Vec<Variable>| {
        let sees = |_, context: portcullis_contract::ToolContext| async move {
            Ok(format!("{} {}", context.var("S0").is_some(), context.var("S1").is_some()))
        };
        acting(Semantics { variables, ..acts() }, sees).build().expect("a sound tool")
    };
    let (_, seen) = outcome(with(vec![variable("MISSING", true)])).await;
    let precondition = (Phase::Validate, Code::RuntimePreconditionFailed, NONE, true, Recovery::SatisfyPrecondition);
    assert_eq!(row(&seen), precondition);
    assert_eq!(seen.reason.as_ref().and_then(|r| r.known()), Some(Reason::VariableMissing));
    assert!(seen.summary.contains("MISSING"));

    let mut world = World::new().await;
    world.secrets = vec!["first-secret".to_owned(), "second-secret".to_owned()];
    let process = world.process([("t", with(vec![variable("S0", true), variable("MISSING", false)]))]);
    assert_eq!(text(observed(&process.call("t", "x").await)), "true false");
}

// --- permission -----------------------------------------------------------------------------------

#[tokio::test]
async fn l26_policy_denied_names_the_rule_and_l37_nothing_was_looked_at() {
    let mut world = World::new().await;
    world.rules =
        "[[rules]]\nid = \"hands-off\"\naction = \"change\"\npath = \"/workspace/x\"\neffect = \"deny\"\n".to_owned();
    let looked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&looked);
    let effects = world.effects.clone();
    let run = move |input: Note, _| {
        effects.add(input.text);
        async { Ok(String::new()) }
    };
    let tool = acting(acts(), run)
        .resolve(|input, _| {
            Ok(Resolved { resources: touches(&input.text).resources().cloned().collect(), ..Resolved::default() })
        })
        .precheck(move |_, _, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok(Prepared::default()) }
        })
        .build()
        .expect("a sound tool");
    let process = world.process([("t", tool)]);
    let seen = process.call("t", "x").await;
    let seen = observed(&seen);
    assert_eq!(row(seen), (Phase::Permission, Code::PolicyDenied, NONE, false, Recovery::Explain));
    assert_eq!(seen.permission.as_ref().map(|p| p.policy_ids.clone()), Some(vec!["hands-off".to_owned()]));
    assert!(seen.summary.contains("hands-off"), "{}", seen.summary);
    assert_eq!(looked.load(Ordering::SeqCst), 0, "L37: the check that may open content never ran");
    assert_eq!(world.effects.count(), 0);
    // The same tool on another name is looked at, once, and runs.
    assert!(observed(&process.call("t", "y").await).ok);
    assert_eq!(looked.load(Ordering::SeqCst), 1);
    assert_eq!(world.effects.all(), ["y"]);
}

// --- schedule ----------------------------------------------------------------------------------------

#[tokio::test]
async fn l24_cancelled_before_start() {
    for semantics in [acts(), Semantics::read_only()] {
        let world = World::new().await;
        let effects = world.effects.clone();
        let run = move |input: Note, _| {
            effects.add(input.text);
            async { Ok(String::new()) }
        };
        let process = world.process([("t", acting(semantics, run).build().expect("a sound tool"))]);
        let session = process.open().await;
        let turn = turn_of(&session).await;
        let admission = session.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT));
        admission.canceller().cancel();
        let (facts, seen) = admission.settled().await.expect("no halt");
        session.commit(facts).await.expect("committed");
        let expected = (Phase::Schedule, Code::CancelledBeforeStart, NONE, false, Recovery::None);
        assert_eq!(row(observed(&seen)), expected);
        assert_eq!(world.effects.count(), 0);
        assert!(!world.types().await.iter().any(|t| t == "tool.invocation.started"));
    }
}

/// A tool that holds the key `fs:/<text>` until it is told to end.
fn holding(effects: &Effects, semantics: Semantics, entered: &Arc<Notify>, leave: &Arc<Notify>) -> Tool {
    let (effects, entered, leave) = (effects.clone(), Arc::clone(entered), Arc::clone(leave));
    let run = move |input: Note, _| {
        let (effects, entered, leave) = (effects.clone(), Arc::clone(&entered), Arc::clone(&leave));
        async move {
            effects.add(input.text);
            entered.notify_one();
            leave.notified().await;
            Ok("done".to_owned())
        }
    };
    acting(Semantics { concurrency: Concurrency::Keyed, ..semantics }, run)
        .keyed()
        .resolve(|input, _| Ok(Resolved { keys: vec![format!("fs:/{}", input.text)], ..Resolved::default() }))
        .build()
        .expect("a sound tool")
}

/// Another session of the same location, in a process of its own.
async fn second(world: &World, tools: impl IntoIterator<Item = (&'static str, Tool)>) -> Process {
    let other = SessionId::make(&*world.ids, world.clock.now());
    world.create(other).await;
    let mut process = world.process(tools);
    process.session = other;
    process
}

#[tokio::test(start_paused = true)]
async fn l42_lock_conflict_when_another_live_session_keeps_the_key() {
    let world = World::new().await;
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let first = world.process([("t", holding(&world.effects, acts(), &entered, &leave))]);
    let quick = Arc::new(Notify::new());
    let second = second(&world, [("t", holding(&world.effects, acts(), &Arc::default(), &quick))]).await;
    let holder = first.open().await;
    let turn = turn_of(&holder).await;
    let held = holder.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT));
    entered.notified().await;

    let _clock = follow_tokio(&world.clock);
    let seen = second.call("t", "x").await;
    let seen = observed(&seen);
    assert_eq!(row(seen), (Phase::Schedule, Code::LockConflict, NONE, true, Recovery::Wait));
    assert!(seen.summary.contains("fs:/x") && seen.summary.contains(&world.session.to_string()), "{}", seen.summary);
    assert_eq!(world.effects.all(), ["x"], "only the holder ran");
    let events =
        world.store.read(portcullis_store::SessionKey { session: second.session, ..world.key() }, 0, 100).await;
    let kinds: Vec<String> = events.expect("read").iter().map(|e| e.kind.to_string()).collect();
    assert!(!kinds.iter().any(|k| k == "tool.invocation.started"), "{kinds:?}");
    // Another key is free meanwhile; this one is when the holder is done.
    quick.notify_one();
    assert!(observed(&second.call("t", "y").await).ok);
    leave.notify_one();
    let (facts, done) = held.settled().await.expect("no halt");
    holder.commit(facts).await.expect("committed");
    assert!(observed(&done).ok);
    quick.notify_one();
    assert!(observed(&second.call("t", "x").await).ok);
}

#[tokio::test(start_paused = true)]
async fn l24_a_call_that_is_cancelled_while_it_waits_for_a_key_never_starts() {
    let world = World::new().await;
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let first = world.process([("t", holding(&world.effects, acts(), &entered, &leave))]);
    let second = second(&world, [("t", holding(&world.effects, acts(), &Arc::default(), &leave))]).await;
    let holder = first.open().await;
    let turn = turn_of(&holder).await;
    let held = holder.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT));
    entered.notified().await;

    let _clock = follow_tokio(&world.clock);
    let waiting = second.open().await;
    let turn = turn_of(&waiting).await;
    let admission = waiting.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT));
    let cancel = admission.canceller();
    let begun = tokio::time::Instant::now();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    });
    let (facts, seen) = admission.settled().await.expect("no halt");
    waiting.commit(facts).await.expect("committed");
    let expected = (Phase::Schedule, Code::CancelledBeforeStart, NONE, false, Recovery::None);
    assert_eq!(row(observed(&seen)), expected);
    assert!(begun.elapsed() < Duration::from_secs(2), "it does not wait on for a key it no longer wants");
    assert_eq!(world.effects.count(), 1, "the holder's own");
    leave.notify_one();
    let (facts, _) = held.settled().await.expect("no halt");
    holder.commit(facts).await.expect("committed");
}

// --- execute -------------------------------------------------------------------------------------------

#[tokio::test]
async fn l22_tool_failure_keeps_its_word_and_says_itself_whether_to_retry() {
    for retryable in [true, false] {
        let failure = ToolFailure::new("out_of_paper", "no paper").retryable(retryable);
        let (_, seen) = outcome(failing(acts(), failure)).await;
        let expected = (Phase::Execute, Code::ToolFailure, NONE, retryable, Recovery::InspectThenDecide);
        assert_eq!(row(&seen), expected);
        assert_eq!(seen.tool_code.as_deref(), Some("out_of_paper"));
        assert_eq!(seen.summary, "no paper");
        assert!(!seen.ok && !seen.synthetic);
    }
}

#[tokio::test]
async fn l22_what_a_tool_did_before_it_failed_stays_said() {
    let run = |_, context: portcullis_contract::ToolContext| async move {
        context.did(happened("half"));
        Err::<String, _>(ToolFailure::new("broke", "in the middle"))
    };
    let (world, seen) = outcome(acting(acts(), run).build().expect("a sound tool")).await;
    assert_eq!(seen.side_effects, SideEffects::occurred(vec![happened("half")]));
    assert_eq!(completed(&world).await[0].side_effects, seen.side_effects);
}

#[tokio::test]
async fn l22_command_failed() {
    let failure = ToolFailure::command(Some(2), None, "exit code 2");
    let (world, seen) = outcome(failing(acts(), failure.clone())).await;
    assert_eq!(row(&seen), (Phase::Execute, Code::CommandFailed, UNKNOWN, true, Recovery::InspectThenDecide));
    assert_eq!((seen.exit_code, seen.signal), (Some(2), None));
    assert_eq!(completed(&world).await[0].exit_code, Some(2));
    let (_, seen) = outcome(failing(Semantics::read_only(), failure)).await;
    assert_eq!(seen.side_effects.state, NONE, "a read_only command did nothing");
    let (_, seen) = outcome(failing(acts(), ToolFailure::command(None, Some(9), "killed"))).await;
    assert_eq!((seen.exit_code, seen.signal), (None, Some(9)));
    let run = |_, context: portcullis_contract::ToolContext| async move {
        context.did(happened("a"));
        Err::<String, _>(ToolFailure::command(Some(1), None, "exit code 1"))
    };
    let (_, seen) = outcome(acting(acts(), run).build().expect("a sound tool")).await;
    assert_eq!(seen.side_effects.state, OCCURRED);
}

#[tokio::test]
async fn l22_failures_of_remote_sides() {
    let cases = [
        (ToolFailure::unreachable("no route"), Code::ExternalUnreachable, true, Recovery::Wait),
        (ToolFailure::external("isError"), Code::ExternalError, true, Recovery::FixInput),
        (ToolFailure::auth_required("log in"), Code::AuthRequired, false, Recovery::AskUser),
    ];
    for (failure, code, retryable, recovery) in cases {
        let (_, seen) = outcome(failing(acts(), failure.clone())).await;
        assert_eq!(row(&seen), (Phase::Execute, code, UNKNOWN, retryable, recovery));
        let (_, seen) = outcome(failing(Semantics::read_only(), failure)).await;
        assert_eq!(row(&seen), (Phase::Execute, code, NONE, retryable, recovery));
    }
}

#[tokio::test]
async fn l22_sandbox_unavailable_partially_applied_and_media_rejected() {
    let (_, seen) = outcome(failing(acts(), ToolFailure::sandbox_unavailable("no landlock"))).await;
    assert_eq!(row(&seen), (Phase::Execute, Code::SandboxUnavailable, NONE, false, Recovery::Explain));
    let done = SideEffects::occurred(vec![happened("one"), happened("two")]);
    let (_, seen) = outcome(failing(acts(), ToolFailure::partial(done.clone(), "three was not done"))).await;
    assert_eq!(row(&seen), (Phase::Execute, Code::PartiallyApplied, OCCURRED, true, Recovery::Reread));
    assert_eq!(seen.side_effects, done);
    let (_, seen) = outcome(failing(Semantics::read_only(), ToolFailure::media("too large"))).await;
    assert_eq!(row(&seen), (Phase::Bound, Code::MediaRejected, NONE, true, Recovery::NarrowTarget));
}

/// Writes a little, tells that it has, and then does what `then` says.
fn writing<F>(semantics: Semantics, written: &Arc<Notify>, then: F) -> Tool
where
    F: Fn(portcullis_contract::ToolContext) -> futures_util::future::BoxFuture<'static, Result<String, ToolFailure>>
        + Send
        + Sync
        + 'static,
{
    let written = Arc::clone(written);
    let run = move |_: Note, context: portcullis_contract::ToolContext| {
        let mut spool = context.spool("stdout");
        let wrote = spool.write(b"so far so good\n");
        written.notify_one();
        let then = then(context);
        async move {
            wrote.expect("room for it");
            let ended = then.await;
            drop(spool);
            ended
        }
    };
    acting(semantics, run).build().expect("a sound tool")
}

fn soon(semantics: Semantics) -> Semantics {
    Semantics { timeout: Timeout { default_ms: 1_500, max_ms: 1_500 }, ..semantics }
}

#[tokio::test(start_paused = true)]
async fn l45_timeout_with_the_output_so_far() {
    for (semantics, effects) in [(acts(), UNKNOWN), (Semantics::read_only(), NONE)] {
        let tool = writing(soon(semantics), &Arc::default(), |_| Box::pin(std::future::pending()));
        let begun = tokio::time::Instant::now();
        let (world, seen) = outcome(tool).await;
        assert_eq!(row(&seen), (Phase::Execute, Code::Timeout, effects, true, Recovery::InspectThenDecide));
        assert_eq!(text(&seen), "so far so good\n");
        assert!(seen.summary.contains("1500"), "{}", seen.summary);
        assert_eq!(completed(&world).await[0].exit, Exit::Timeout);
        // The grace to end by itself, and no longer.
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(1_500) && took < Duration::from_millis(1_500 + 3_100), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn l24_a_tool_that_says_ok_after_its_deadline_has_still_timed_out() {
    let late = writing(soon(acts()), &Arc::default(), |context| {
        Box::pin(async move {
            context.cancelled().await;
            context.did(happened("anyway"));
            Ok("I made it".to_owned())
        })
    });
    let (_, seen) = outcome(late).await;
    assert_eq!(row(&seen), (Phase::Execute, Code::Timeout, OCCURRED, true, Recovery::InspectThenDecide));
    assert!(!text(&seen).contains("I made it"), "no output is presented as a success");
}

/// Cancels a call of `tool` once it has written something; `at_once` also lets the tool go in the same moment.
async fn interrupted(tool: Tool, written: &Notify, at_once: Option<&Notify>) -> (World, Observed) {
    let world = World::new().await;
    let process = world.process([("t", tool)]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let admission = session.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT));
    written.notified().await;
    admission.canceller().cancel();
    if let Some(go) = at_once {
        go.notify_one();
    }
    let (facts, seen) = admission.settled().await.expect("no halt");
    session.commit(facts).await.expect("committed");
    (world, observed(&seen).clone())
}

fn heeds(semantics: Semantics) -> Semantics {
    Semantics { interrupt: Interrupt::Cancel, ..semantics }
}

#[tokio::test(start_paused = true)]
async fn l24_l45_cancelled_with_the_output_so_far() {
    let written = Arc::new(Notify::new());
    // One that ends when told to, one that never does.
    let obeys = writing(heeds(acts()), &written, |context| {
        Box::pin(async move {
            context.cancelled().await;
            Ok("I finished all the same".to_owned())
        })
    });
    let deaf = writing(heeds(acts()), &written, |_| Box::pin(std::future::pending()));
    for tool in [obeys, deaf] {
        let (world, seen) = interrupted(tool, &written, None).await;
        assert_eq!(row(&seen), (Phase::Execute, Code::Cancelled, UNKNOWN, false, Recovery::InspectThenDecide));
        assert!(seen.synthetic && !seen.ok);
        assert_eq!(text(&seen), "so far so good\n");
        assert_eq!(completed(&world).await[0].exit, Exit::Cancelled);
    }
    let quiet = writing(heeds(Semantics::read_only()), &written, |_| Box::pin(std::future::pending()));
    assert_eq!(interrupted(quiet, &written, None).await.1.side_effects.state, NONE);
}

#[tokio::test(start_paused = true)]
async fn l24_a_cancel_that_came_first_wins_even_in_the_same_moment() {
    let (written, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let released = Arc::clone(&go);
    let tool = writing(heeds(acts()), &written, move |_| {
        let released = Arc::clone(&released);
        Box::pin(async move {
            released.notified().await;
            Ok("done".to_owned())
        })
    });
    let (_, seen) = interrupted(tool, &written, Some(&go)).await;
    assert_eq!(seen.code.known(), Some(Code::Cancelled), "a cancelled invocation never yields ok");
    assert!(!seen.ok);
}

#[tokio::test(start_paused = true)]
async fn l24_a_tool_that_must_finish_is_let_finish() {
    let (written, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let released = Arc::clone(&go);
    let finishing = Semantics { interrupt: Interrupt::Finish, ..acts() };
    let tool = writing(finishing, &written, move |context| {
        let released = Arc::clone(&released);
        Box::pin(async move {
            released.notified().await;
            assert!(!context.is_cancelled(), "it was not even told");
            Ok("finished".to_owned())
        })
    });
    let (_, seen) = interrupted(tool, &written, Some(&go)).await;
    assert!(seen.ok, "{seen:?}");
    assert_eq!(text(&seen), "finished");
}

// --- defects -------------------------------------------------------------------------------------------

async fn assert_defect(world: &World, seen: &Observed, phase: Phase, effects: SideEffectState, words: &str) {
    assert_eq!(row(seen), (phase, Code::InternalError, effects, false, Recovery::None));
    assert!(seen.synthetic && seen.incident_id.is_some() && !seen.ok);
    let shown = seen_by_model(seen);
    assert!(!shown.contains(words), "R6: the defect's words are not for the model: {shown}");
    assert!(shown.contains(&seen.incident_id.expect("an incident").to_string()), "but its number is");
    let completed = completed(world).await;
    assert_eq!(completed.len(), 1, "L23: the fact stands");
    assert!(completed[0].defect.as_ref().is_some_and(|d| d.contains(words)), "{:?}", completed[0].defect);
}

fn seen_by_model(seen: &Observed) -> String {
    seen.model_view().to_string()
}

#[tokio::test]
async fn l23_a_panic_before_and_after_an_await_is_a_defect() {
    for (semantics, effects) in [(acts(), UNKNOWN), (Semantics::read_only(), NONE)] {
        let before: Tool = acting(semantics.clone(), |input: Note, _| {
            assert!(input.text.is_empty(), "the cable is loose");
            std::future::ready(Ok(String::new()))
        })
        .build()
        .expect("a sound tool");
        let (world, seen) = outcome(before).await;
        assert_defect(&world, &seen, Phase::Execute, effects, "the cable is loose").await;

        let after = acting(semantics, |_, context: portcullis_contract::ToolContext| async move {
            context.spool("stdout").write(b"began\n").expect("room");
            tokio::task::yield_now().await;
            panic!("the cable is loose")
        })
        .build()
        .expect("a sound tool");
        let (world, seen) = outcome(after).await;
        assert_defect(&world, &seen, Phase::Execute, effects, "the cable is loose").await;
        assert_eq!(text(&seen), "began\n", "L45: what it wrote is kept");
    }
}

/// Something is done, then a view of it panics.
fn unshowable(which: usize) -> Tool {
    let run = |_, context: portcullis_contract::ToolContext| async move {
        context.did(happened("done"));
        Ok("done".to_owned())
    };
    let builder = acting(acts(), run);
    let builder = match which {
        0 => builder.to_model(|_, _| panic!("no words for it")),
        1 => builder.to_user(|_, _| panic!("no words for it")),
        2 => builder.to_structured(|_, _| panic!("no words for it")),
        _ => builder.anchors(|_| panic!("no words for it")),
    };
    builder.build().expect("a sound tool")
}

#[tokio::test]
async fn l23_a_panicking_projection_erases_no_fact() {
    for which in 0..4 {
        let (world, seen) = outcome(unshowable(which)).await;
        assert_defect(&world, &seen, Phase::Normalize, OCCURRED, "no words for it").await;
        assert_eq!(completed(&world).await[0].exit, Exit::Ok, "{which}: it did end well");
        assert_eq!(seen.side_effects, SideEffects::occurred(vec![happened("done")]), "{which}");
        let types = world.types().await;
        let at = |kind: &str| types.iter().position(|t| t == kind);
        assert!(at("tool.invocation.completed") < at("tool.observation"), "{which}: {types:?}");
    }
}

/// Before anything started, a tool's own functions may break too.
fn unready(which: usize) -> Tool {
    let builder = acting(acts(), |_, _| async { Ok("ran".to_owned()) });
    let builder = match which {
        0 => builder.resolve(|_, _| panic!("no words for it")),
        1 => builder.plan_access(|_, _| panic!("no words for it")),
        2 => builder.precheck(|_, _, _| async { panic!("no words for it") }),
        3 => builder.precheck(|_, _, _| -> std::future::Ready<_> { panic!("no words for it") }),
        _ => builder.timeout(|_| panic!("no words for it")),
    };
    builder.build().expect("a sound tool")
}

#[tokio::test]
async fn l19_a_tool_that_panics_before_it_starts_still_gets_its_observation() {
    for which in 0..5 {
        let world = World::new().await;
        let process = world.process([("t", unready(which)), ("look", look(&world.effects))]);
        let session = process.open().await;
        let (seen, id) = call_in(&session, "t", INPUT).await.unwrap_or_else(|halt| panic!("{which}: {halt}"));
        let seen = observed(&seen);
        assert_eq!(seen.code.known(), Some(Code::InternalError), "{which}");
        assert_eq!((seen.side_effects.state, seen.ok, seen.retryable, seen.synthetic), (NONE, false, false, true));
        assert!(seen.incident_id.is_some(), "{which}");
        assert!(!seen_by_model(seen).contains("no words for it"), "{which}");
        let observations = world.observations().await;
        assert_eq!(observations.iter().filter(|o| o.intent_id == id).count(), 1, "{which}");
        assert!(!world.types().await.iter().any(|t| t == "tool.invocation.started"), "{which}");
        let (next, _) = call_in(&session, "look", INPUT).await.expect("the session goes on");
        assert!(observed(&next).ok);
    }
}

// --- normalize and bound ------------------------------------------------------------------------------

/// A tool with any output.
fn giving<O>(make: fn() -> O) -> Tool
where
    O: Serialize + JsonSchema + Send + 'static,
{
    Tool::builder::<Note, O>("Gives.")
        .semantics(acts())
        .plan_access(|input, _| vec![touches(&input.text)])
        .execute(move |_, context| async move {
            context.did(happened("given"));
            Ok(make())
        })
        .build()
        .expect("a sound tool")
}

/// Says that it is an object with a number, and is not.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Liar {
    number: u8,
}

impl Serialize for Liar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("not an object at all")
    }
}

#[tokio::test]
async fn l05_an_output_that_does_not_fit_is_never_a_success() {
    let expected = (Phase::Normalize, Code::OutputInvalid, OCCURRED, false, Recovery::None);
    for tool in [
        giving(|| f64::NAN),
        giving(|| vec![1.0, f64::INFINITY]),
        giving(|| (1u64 << 53) + 1),
        giving(|| i64::MIN),
        giving(|| std::collections::BTreeMap::from([(7u8, "seven")])),
        giving(|| Liar { number: 1 }),
    ] {
        let (world, seen) = outcome(tool).await;
        assert_eq!(row(&seen), expected);
        assert_eq!(seen.structured, None);
        assert!(text(&seen).is_empty());
        assert_eq!(completed(&world).await[0].exit, Exit::Ok, "the execution itself ended well");
    }
    let (_, seen) = outcome(giving(|| 1u64 << 53)).await;
    assert!(seen.ok);
}

#[tokio::test]
async fn l05_projections_get_the_encoded_value() {
    #[derive(Serialize, JsonSchema)]
    struct Shown {
        #[serde(rename = "renamed")]
        field: u8,
        #[serde(skip)]
        #[expect(dead_code, reason = "it must not be seen")]
        private: u8,
    }
    let got: Arc<Mutex<Vec<serde_json::Value>>> = Arc::default();
    let (a, b, c) = (Arc::clone(&got), Arc::clone(&got), Arc::clone(&got));
    let keep = |got: &Mutex<Vec<serde_json::Value>>, v: &serde_json::Value| {
        got.lock().expect("no test panics with it").push(v.clone());
    };
    let tool = Tool::builder::<Note, Shown>("Gives.")
        .semantics(Semantics::read_only())
        .execute(|_, _| async { Ok(Shown { field: 3, private: 4 }) })
        .to_model(move |_, v| {
            keep(&a, v);
            vec![Content::text("shown")]
        })
        .to_user(move |_, v| {
            keep(&b, v);
            portcullis_contract::UserText::default()
        })
        .to_structured(move |_, v| {
            keep(&c, v);
            v.clone()
        })
        .build()
        .expect("a sound tool");
    let (_, seen) = outcome(tool).await;
    let encoded = serde_json::json!({"renamed": 3});
    assert_eq!(*got.lock().expect("nobody panicked"), [encoded.clone(), encoded.clone(), encoded.clone()]);
    assert_eq!(seen.structured, Some(encoded));
}

#[tokio::test]
async fn l53_retention_failed_at_the_gate() {
    let mut world = World::new().await;
    world.quota = 10;
    let long = |_, _| async { Ok("long\n".repeat(100_000)) };
    let process = world.process([
        ("looks", tool(Semantics::read_only(), long)),
        (
            "acts",
            acting(acts(), |_, context: portcullis_contract::ToolContext| async move {
                context.did(happened("done"));
                Ok("long\n".repeat(100_000))
            })
            .build()
            .expect("a sound tool"),
        ),
    ]);
    let seen = process.call("looks", "x").await;
    let expected = (Phase::Bound, Code::RetentionFailed, NONE, true, Recovery::InspectThenDecide);
    assert_eq!(row(observed(&seen)), expected);
    let seen = process.call("acts", "x").await;
    let expected = (Phase::Bound, Code::RetentionFailed, OCCURRED, false, Recovery::InspectThenDecide);
    assert_eq!(row(observed(&seen)), expected, "nobody should rerun an action to get its output");
}

// --- the laws of the path -----------------------------------------------------------------------------

#[tokio::test]
async fn l01_only_the_executor_runs_once_for_each_call() {
    let effects = Effects::default();
    let (wrong, right) = (effects.clone(), effects.clone());
    let tool = acting(Semantics::read_only(), move |_, _| {
        wrong.add("replaced");
        async { Ok(String::new()) }
    })
    .execute(move |_, _| {
        right.add("the one");
        async { Ok("said".to_owned()) }
    })
    .build()
    .expect("a sound tool");
    let (_, seen) = outcome(tool).await;
    assert_eq!(text(&seen), "said");
    assert_eq!(effects.all(), ["the one"]);
}

#[tokio::test]
async fn l07_every_record_carries_the_ids_the_runner_gave() {
    let world = World::new().await;
    let seen_by_tool: Arc<Mutex<Vec<portcullis_contract::Caller>>> = Arc::default();
    let callers = Arc::clone(&seen_by_tool);
    let tool = acting(acts(), move |_, context: portcullis_contract::ToolContext| {
        callers.lock().expect("nobody panics").push(context.caller().clone());
        async { Ok(String::new()) }
    })
    .build()
    .expect("a sound tool");
    let process = world.process([("t", tool)]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let message = fresh_message();
    let admission = session.admit(Append::new(), &turn, proposal("call-77", message, "t", INPUT));
    let id = admission.intent_id();
    let (facts, _) = admission.settled().await.expect("no halt");
    session.commit(facts).await.expect("committed");

    let message = portcullis_base::MessageId::from_u128(message);
    let caller = seen_by_tool.lock().expect("nobody panicked")[0].clone();
    assert_eq!(
        (caller.session_id, caller.agent.as_str(), caller.message_id, caller.call_id.as_str(), caller.turn_id),
        (world.session, "tester", message, "call-77", turn.turn_id)
    );
    assert_eq!(caller.intent_id, id);
    let mut invocations = Vec::new();
    for event in world.events().await.iter().filter(|e| e.kind.as_str().starts_with("tool.")) {
        assert_eq!(event.turn_id, Some(turn.turn_id), "{}", event.kind);
        let named = match event.body() {
            Body::IntentProposed(b) => {
                assert_eq!((b.message_id, b.call_id.as_str()), (message, "call-77"));
                assert_eq!(b.menu_id, turn.menu_id);
                b.intent_id
            }
            Body::LookedUp(b) => b.intent_id,
            Body::Checked(b) => b.intent_id,
            Body::Decided(b) => b.intent_id,
            Body::Scheduled(b) => {
                invocations.push(b.plan.invocation_id);
                b.intent_id
            }
            Body::Started(b) => {
                invocations.push(b.invocation_id);
                b.intent_id
            }
            Body::Completed(b) => {
                invocations.push(b.invocation_id);
                b.intent_id
            }
            Body::Observed(b) => {
                assert_eq!((b.call_id.as_str(), b.turn_id, b.menu_id), ("call-77", turn.turn_id, turn.menu_id));
                invocations.extend(b.invocation_id);
                b.intent_id
            }
            _ => continue,
        };
        assert_eq!(named, id, "{}", event.kind);
    }
    assert_eq!(invocations.len(), 4);
    assert!(invocations.iter().all(|i| *i == invocations[0]));
}

#[tokio::test]
async fn l14_what_started_ends_as_if_nothing_had_changed() {
    for replace in [false, true] {
        let world = World::new().await;
        let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let process = world.process([]);
        let registrar = process.registry.registrar(Placement::Session(world.session));
        let tools = |tool| std::collections::BTreeMap::from([(name("t"), tool)]);
        let old = registrar.register(tools(holding(&world.effects, acts(), &entered, &leave))).expect("registered");
        let session = process.open().await;
        let turn = turn_of(&session).await;
        let admission = session.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT));
        entered.notified().await;
        let _new = replace.then(|| registrar.register(tools(look(&world.effects))).expect("registered"));
        drop(old);
        leave.notify_one();
        let (facts, seen) = admission.settled().await.expect("no halt");
        session.commit(facts).await.expect("committed");
        assert!(observed(&seen).ok);
        assert_eq!(text(observed(&seen)), "done");
        assert_eq!(world.effects.looks.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn l21_the_executor_finds_its_own_start_in_the_log() {
    let world = World::new().await;
    let store = Arc::clone(&world.store);
    let key = world.key();
    let tool = acting(acts(), move |_, context: portcullis_contract::ToolContext| {
        let store = Arc::clone(&store);
        async move {
            let events = store.read(key, 0, 1_000).await.expect("read");
            let mine = |event: &&Event| match event.body() {
                Body::Started(started) => started.invocation_id == context.invocation_id(),
                _ => false,
            };
            let started = events.iter().find(mine).map(|event| event.append_id);
            let with_it: Vec<String> =
                events.iter().filter(|e| Some(e.append_id) == started).map(|e| e.kind.to_string()).collect();
            Ok(with_it.join(" "))
        }
    })
    .build()
    .expect("a sound tool");
    let process = world.process([("t", tool)]);
    let seen = process.call("t", "x").await;
    assert_eq!(
        text(observed(&seen)),
        "tool.menu tool.intent tool.lookup tool.validation tool.permission tool.scheduled tool.invocation.started",
        "with every fact that gave it the right, in one append"
    );
}

/// Everything that can happen to an intent, in one session; returns it with what ran.
async fn zoo() -> (World, usize) {
    let mut world = World::new().await;
    world.rules =
        "[[rules]]\nid = \"no\"\naction = \"change\"\npath = \"/workspace/denied\"\neffect = \"deny\"\n".to_owned();
    let ran = Arc::new(AtomicUsize::new(0));
    let counting = |semantics: Semantics, ends: fn() -> Result<String, ToolFailure>| {
        let ran = Arc::clone(&ran);
        acting(semantics, move |_, _| {
            ran.fetch_add(1, Ordering::SeqCst);
            async move { ends() }
        })
    };
    let fine = || Ok("fine".to_owned());
    let build = |builder: portcullis_contract::ToolBuilder<Note, String>| builder.build().expect("a sound tool");
    let asks = Semantics { default_policy: DefaultPolicy::Ask, ..acts() };
    let never = |_, _, _| async { Err::<Prepared, _>(Precondition::failed(Reason::NotFound, "gone")) };
    let process = world.process([
        ("acts", build(counting(acts(), fine))),
        ("looks", build(counting(Semantics::read_only(), fine))),
        ("asks", build(counting(asks, fine))),
        ("checks", build(counting(acts(), fine).precheck(never))),
        ("fails", build(counting(acts(), || Err(ToolFailure::new("no", "no"))))),
        ("breaks", build(counting(acts(), || panic!("broken")))),
        ("boxless", build(counting(acts(), || Err(ToolFailure::sandbox_unavailable("none"))))),
        ("media", build(counting(acts(), || Err(ToolFailure::media("large"))))),
        ("unshown", build(counting(acts(), fine).to_model(|_, _| panic!("no")))),
        ("remote", build(counting(acts(), || Err(ToolFailure::external("500"))))),
    ]);
    for (tool, raw) in [
        ("acts", INPUT),
        ("acts", r#"{"text":"denied"}"#),
        ("acts", "[]"),
        ("acts", r#"{"text":1}"#),
        ("looks", INPUT),
        ("checks", INPUT),
        ("fails", INPUT),
        ("breaks", INPUT),
        ("boxless", INPUT),
        ("media", INPUT),
        ("unshown", INPUT),
        ("remote", INPUT),
        ("nowhere", INPUT),
    ] {
        process.call_raw(tool, raw).await;
    }
    for reply in [Reply::AllowOnce, Reply::Deny] {
        let ask = parked(&process.call("asks", "x").await);
        world.reply(ask, reply).await.expect("answered");
    }
    let session = process.open().await;
    assert_eq!(session.attend().await.expect("attended").len(), 2);
    session.release().await.expect("released");
    let ran = ran.load(Ordering::SeqCst);
    (world, ran)
}

#[tokio::test]
async fn l21_l22_phases_tell_the_truth() {
    let (world, ran) = zoo().await;
    let events = world.events().await;
    let of = |id: IntentId| -> Vec<Body> {
        events
            .iter()
            .map(Event::body)
            .filter(|body| match body {
                Body::Started(b) => b.intent_id == id,
                Body::Decided(b) => b.intent_id == id,
                Body::Checked(b) => b.intent_id == id,
                Body::Asked(b) => b.intent_id == id,
                _ => false,
            })
            .collect()
    };
    let seen = world.observations().await;
    assert_eq!(seen.len(), 15);
    let mut started = 0;
    for seen in &seen {
        let facts = of(seen.intent_id);
        let (phase, code) = (seen.phase.known().expect("known"), seen.code.known().expect("known"));
        assert!(code.row().phases.contains(&phase), "{code} with {phase}");
        let has_started = facts.iter().any(|b| matches!(b, Body::Started(_)));
        if phase == Phase::Execute && code != Code::SandboxUnavailable {
            assert!(has_started, "{code} in {phase} without a start");
        }
        if has_started {
            started += 1;
            assert!(matches!(phase, Phase::Execute | Phase::Normalize | Phase::Bound | Phase::WriteBack), "{code}");
            assert!(facts.iter().any(|b| matches!(b, Body::Checked(c) if c.ok)), "{code}: validated");
            assert!(facts.iter().any(|b| matches!(b, Body::Decided(_))), "{code}: decided");
        } else {
            assert_eq!(seen.side_effects, SideEffects::none(), "{code}");
            assert!(!seen.ok, "{code}");
        }
    }
    assert_eq!(started, ran, "nothing ran that did not start");
}

#[tokio::test]
async fn l23_the_number_of_commits_is_the_promised_one() {
    let world = World::new().await;
    let counting = Arc::new(CountingStore::new(Arc::clone(&world.store)));
    let process = world.process_over(
        Arc::clone(&counting) as Arc<dyn Store>,
        [
            ("look", look(&world.effects)),
            ("change", change(&world.effects, DefaultPolicy::Allow)),
            ("asks", change(&world.effects, DefaultPolicy::Ask)),
            ("fails", failing(acts(), ToolFailure::new("no", "no"))),
            ("fails-looking", failing(Semantics::read_only(), ToolFailure::new("no", "no"))),
            ("network", network()),
        ],
    );
    let session = process.open().await;
    for (tool, raw, commits) in [
        ("nowhere", INPUT, 1),
        ("look", "[]", 1),
        ("look", INPUT, 1),
        ("fails-looking", INPUT, 1),
        ("change", INPUT, 2),
        ("fails", INPUT, 2),
        ("network", INPUT, 2),
        ("asks", INPUT, 1),
    ] {
        let before = counting.counts().commits;
        let (disposition, _) = call_in(&session, tool, raw).await.expect("no halt");
        assert_eq!(counting.counts().commits - before, commits, "{tool} {raw}");
        if let Disposition::Parked(ask) = disposition {
            world.reply(ask, Reply::AllowOnce).await.expect("answered");
            let before = counting.counts().commits;
            session.resume(ask).await.expect("no halt").expect("settled");
            assert_eq!(counting.counts().commits - before, 2, "the park cost one more, not two");
        }
    }
    // Facts of a call before its view.
    let mut done = std::collections::BTreeSet::new();
    for event in world.events().await {
        match event.body() {
            Body::Completed(b) => {
                done.insert(b.intent_id);
            }
            Body::Observed(b) if b.invocation_id.is_some() => assert!(done.contains(&b.intent_id)),
            _ => {}
        }
    }
    assert_eq!(done.len(), 6);
}

/// Changes nothing here, but what it sent is a fact about the world: not inert.
fn network() -> Tool {
    let risk = [portcullis_base::Risk::Read, portcullis_base::Risk::Network].into();
    acting(Semantics { risk, ..Semantics::read_only() }, |_, _| async { Ok("sent".to_owned()) })
        .build()
        .expect("a sound tool")
}

#[tokio::test(start_paused = true)]
async fn l46_waiting_for_a_key_does_not_consume_the_timeout() {
    let world = World::new().await;
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let first = world.process([("t", holding(&world.effects, acts(), &entered, &leave))]);
    let slow = {
        let limits = Timeout { default_ms: 5_000, max_ms: 5_000 };
        let semantics = Semantics { concurrency: Concurrency::Keyed, timeout: limits, ..acts() };
        acting(semantics, |_, context: portcullis_contract::ToolContext| async move {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok(format!("{}", context.is_cancelled()))
        })
        .keyed()
        .resolve(|input, _| Ok(Resolved { keys: vec![format!("fs:/{}", input.text)], ..Resolved::default() }))
        .build()
        .expect("a sound tool")
    };
    let second = second(&world, [("t", slow)]).await;
    let holder = first.open().await;
    let turn = turn_of(&holder).await;
    let held = holder.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT));
    entered.notified().await;
    let _clock = follow_tokio(&world.clock);
    let committed = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(8)).await;
        leave.notify_one();
        let (facts, _) = held.settled().await.expect("no halt");
        holder.commit(facts).await.expect("committed");
    });
    let begun = tokio::time::Instant::now();
    let seen = second.call("t", "x").await;
    committed.await.expect("no panic");
    assert!(begun.elapsed() >= Duration::from_secs(12), "eight waiting and four working");
    assert_eq!((observed(&seen).ok, text(observed(&seen)).as_str()), (true, "false"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn l46_waiting_for_a_person_does_not_consume_the_timeout() {
    let world = World::new().await;
    let asks = Semantics { default_policy: DefaultPolicy::Ask, ..soon(acts()) };
    let slow = acting(asks, |_, _| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok("in time".to_owned())
    });
    let process = world.process([("t", slow.build().expect("a sound tool"))]);
    let ask = parked(&process.call("t", "x").await);
    world.clock.advance(Duration::from_secs(3_600));
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    assert!(observed(&attended[0].disposition).ok, "{attended:?}");
}

#[tokio::test(start_paused = true)]
async fn l46_a_timeout_beyond_the_longest_is_lowered_and_said() {
    let tool = acting(soon(Semantics::read_only()), |_, _| std::future::pending()).timeout(|_| Some(1_000_000));
    let (_, seen) = outcome(tool.build().expect("a sound tool")).await;
    assert_eq!(seen.code.known(), Some(Code::Timeout));
    assert!(seen.warnings.iter().any(|w| w.contains("1000000") && w.contains("1500")), "{:?}", seen.warnings);
}

#[tokio::test]
async fn a_dropped_admission_detaches_and_still_settles() {
    let world = World::new().await;
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let process =
        world.process([("t", holding(&world.effects, acts(), &entered, &leave)), ("look", look(&world.effects))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let mut changes = world.store.changes();
    drop(session.admit(Append::new(), &turn, proposal("a", fresh_message(), "t", INPUT)));
    drop(session.admit(Append::new(), &turn, proposal("b", fresh_message(), "look", INPUT)));
    entered.notified().await;
    leave.notify_one();
    while world.observations().await.len() < 2 {
        changes.changed().await.expect("the store lives");
    }
    assert!(world.observations().await.iter().all(|seen| seen.ok));
    assert_eq!(world.store.intents(world.key(), true).await.expect("rows").len(), 0);
    drop(session);
    process.gate.shutdown().await;
}

#[tokio::test]
async fn l36_a_voided_approval_is_recorded_as_void_whatever_voided_it() {
    let world = World::new().await;
    let asking = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&asking.call("change", "a").await);
    drop(asking);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    // The tool is gone in the process that attends.
    let later = world.process([]);
    let session = later.open().await;
    let attended = session.attend().await.expect("attended");
    assert_eq!(observed(&attended[0].disposition).code.known(), Some(Code::StaleTool));
    let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
    assert_eq!(row.state, portcullis_event::AskState::Voided, "13.7: the ask is recorded `closed: voided`");
}

#[tokio::test]
async fn l38_approval_unavailable_has_its_row() {
    let mut world = World::new().await;
    world.approvals = Approvals::Unavailable;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let seen = process.call("change", "a").await;
    let expected = (Phase::Permission, Code::ApprovalUnavailable, NONE, false, Recovery::Explain);
    assert_eq!(row(observed(&seen)), expected);
}

#[tokio::test]
async fn l26_user_denied_and_approval_expired_have_their_rows() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let denied = parked(&process.call("change", "a").await);
    let feedback = "use the other file, \"b\" — not this".to_owned();
    world.reply_with(denied, Reply::DenyWithFeedback, Some(feedback.clone())).await.expect("answered");
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!(row(seen), (Phase::Permission, Code::UserDenied, NONE, false, Recovery::Explain));
    assert_eq!(seen.model_view()["permission"]["feedback"], serde_json::json!(feedback), "verbatim");
    session.release().await.expect("released");

    parked(&process.call("change", "b").await);
    world.clock.advance(Duration::from_secs(25 * 3_600));
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!(row(seen), (Phase::Permission, Code::ApprovalExpired, NONE, true, Recovery::AskUser));
    assert_eq!(world.effects.count(), 0);
}

#[tokio::test]
async fn l19_a_failure_with_a_very_long_message_is_still_one_observation() {
    let failure = ToolFailure::new("long", "é".repeat(3 << 20));
    let (world, seen) = outcome(failing(acts(), failure)).await;
    assert_eq!(seen.code.known(), Some(Code::ToolFailure));
    let shown = seen_by_model(&seen).len();
    assert!(shown <= portcullis_base::limits::MAX_MODEL_BYTES, "L48: the model is shown {shown} bytes");
    assert_eq!(world.observations().await.len(), 1);
}

/// Only to name the type in one place: a halt is not an observation.
#[tokio::test]
async fn l75_a_halted_call_has_no_observation_and_no_effect() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Allow))]);
    let session = process.open().await;
    world.liveness.set(process.owner.worker, portcullis_store::Liveness::Dead);
    let thief = world.process([]);
    let _taken = thief.open().await;
    let halted = call_in(&session, "change", INPUT).await;
    assert!(matches!(halted, Err(Halt::FenceLost(_))), "{halted:?}");
    assert_eq!((world.effects.count(), world.observations().await.len()), (0, 0));
}
