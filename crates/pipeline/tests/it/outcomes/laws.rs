//! The laws of the path: what runs, when, how often, and what is written of it.

use super::*;

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
    let admission = session.admit(Append::new(), &turn, proposal("call-77", message, "t", INPUT)).spawned();
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
            Body::InputValidated(b) => b.intent_id,
            Body::PermissionDecided(b) => b.intent_id,
            Body::Scheduled(b) => {
                invocations.push(b.plan.invocation_id);
                b.intent_id
            }
            Body::InvocationStarted(b) => {
                invocations.push(b.invocation_id);
                b.intent_id
            }
            Body::InvocationCompleted(b) => {
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
        let registrar =
            process.registry.registrar(Placement::Session(world.session), portcullis_contract::ToolOrigin::External);
        let tools = |tool| std::collections::BTreeMap::from([(name("t"), tool)]);
        let old = registrar.register(tools(holding(&world.effects, acts(), &entered, &leave))).expect("registered");
        let session = process.open().await;
        let turn = turn_of(&session).await;
        let admission = session.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT)).spawned();
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
async fn l21_s08_the_executor_finds_its_own_start_in_the_log() {
    let world = World::new().await;
    let store = Arc::clone(&world.store);
    let key = world.key();
    let tool = acting(acts(), move |_, context: portcullis_contract::ToolContext| {
        let store = Arc::clone(&store);
        async move {
            let events = store.read(key, 0, 1_000).await.expect("read");
            let mine = |event: &&Event| match event.body() {
                Body::InvocationStarted(started) => started.invocation_id == context.invocation_id(),
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
pub(crate) async fn zoo() -> (World, usize) {
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
                Body::InvocationStarted(b) => b.intent_id == id,
                Body::PermissionDecided(b) => b.intent_id == id,
                Body::InputValidated(b) => b.intent_id == id,
                Body::PermissionAsked(b) => b.intent_id == id,
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
        let has_started = facts.iter().any(|b| matches!(b, Body::InvocationStarted(_)));
        if phase == Phase::Execute && code != Code::SandboxUnavailable {
            assert!(has_started, "{code} in {phase} without a start");
        }
        if has_started {
            started += 1;
            assert!(matches!(phase, Phase::Execute | Phase::Normalize | Phase::Bound | Phase::WriteBack), "{code}");
            assert!(facts.iter().any(|b| matches!(b, Body::InputValidated(c) if c.ok)), "{code}: validated");
            assert!(facts.iter().any(|b| matches!(b, Body::PermissionDecided(_))), "{code}: decided");
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
            Body::InvocationCompleted(b) => {
                done.insert(b.intent_id);
            }
            Body::Observed(b) if b.invocation_id.is_some() => assert!(done.contains(&b.intent_id)),
            _ => {}
        }
    }
    assert_eq!(done.len(), 6);
}

/// Changes nothing here, but what it sent is a fact about the world: not inert.
pub(crate) fn network() -> Tool {
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
    let held = holder.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT)).spawned();
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

#[tokio::test(start_paused = true)]
async fn l24_a_safe_call_that_waits_for_room_beside_others_is_cancelled_at_once() {
    let world = World::new().await;
    let inside = Arc::new(tokio::sync::Semaphore::new(0));
    let entered = Arc::clone(&inside);
    let stays = acting(Semantics::read_only(), move |_, _| {
        entered.add_permits(1);
        std::future::pending()
    });
    let process = world.process([("t", stays.build().expect("a sound tool"))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let admit = || session.admit(Append::new(), &turn, proposal("a", fresh_message(), "t", INPUT)).spawned();
    let most = portcullis_base::limits::MAX_PARALLEL_SAFE_PROCESS;
    let others: Vec<_> = (0..most).map(|_| admit()).collect();
    let all = inside.acquire_many(u32::try_from(most).expect("few")).await.expect("open");
    let late = admit();
    // Time stands still until everyone waits.
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    late.canceller().cancel();
    let (_, seen) = tokio::time::timeout(std::time::Duration::from_secs(1), late.settled())
        .await
        .expect("it waits for nobody")
        .expect("no halt");
    assert!(!observed(&seen).ok && inside.available_permits() == 0, "it never ran");
    drop(all);
    others.iter().for_each(|other| other.canceller().cancel());
}

/// Whoever drops what it waited for lets the call go on; nobody may take it for lost meanwhile.
#[tokio::test(start_paused = true)]
async fn l75_a_call_that_goes_on_by_itself_keeps_its_lease() {
    let world = World::new().await;
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let process = world.process([("t", holding(&world.effects, acts(), &entered, &leave))]);
    let _clock = follow_tokio(&world.clock);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    drop(session.admit(Append::new(), &turn, proposal("a", fresh_message(), "t", INPUT)));
    entered.notified().await;
    drop(session);
    tokio::time::sleep(portcullis_base::limits::LEASE_TTL * 2).await;
    let other = world.process([]);
    let opened = other.gate.open(world.session, other.owner.clone()).await.expect("no fault");
    assert!(matches!(opened, portcullis_pipeline::Opened::Held(_)), "its effect is under way");
    let mut changes = world.store.changes();
    leave.notify_one();
    while world.observations().await.is_empty() {
        changes.changed().await.expect("the store lives");
    }
    assert!(world.observations().await[0].ok);
    // Then the lease is nobody's any more, and runs out.
    tokio::time::sleep(portcullis_base::limits::LEASE_TTL * 2).await;
    other.open().await;
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
