//! Intents that are settled before anything started: lookup, validation, permission, schedule.

use super::*;

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
        let logged: usize = world.events().await.iter().map(|e| e.payload.as_deref().map_or(0, str::len)).sum();
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

pub(crate) fn raw_input() -> impl Strategy<Value = String> {
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
pub(crate) fn checking(found: Precondition) -> Tool {
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
        let admission = session.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT)).spawned();
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
pub(crate) fn holding(effects: &Effects, semantics: Semantics, entered: &Arc<Notify>, leave: &Arc<Notify>) -> Tool {
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
pub(crate) async fn second(world: &World, tools: impl IntoIterator<Item = (&'static str, Tool)>) -> Process {
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
    let held = holder.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT)).spawned();
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
    let held = holder.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT)).spawned();
    entered.notified().await;

    let _clock = follow_tokio(&world.clock);
    let waiting = second.open().await;
    let turn = turn_of(&waiting).await;
    let admission = waiting.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT)).spawned();
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
