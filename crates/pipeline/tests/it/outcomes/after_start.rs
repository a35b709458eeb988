//! What became of calls that started: failures, deadlines, cancels, defects, outputs.

use super::*;

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
async fn l22_a_failure_of_work_under_way_leaves_its_effects_unknown() {
    for (failure, code) in [
        (ToolFailure::new("io_error", "lost sight of it"), Code::ToolFailure),
        (ToolFailure::resource_limit("disk_limit", "full"), Code::ResourceLimit),
    ] {
        let (world, seen) = outcome(failing(acts(), failure.clone().under_way())).await;
        assert_eq!((seen.code.known(), seen.side_effects.state), (Some(code), UNKNOWN));
        assert_eq!(completed(&world).await[0].side_effects.state, UNKNOWN);
        let (_, seen) = outcome(failing(Semantics::read_only(), failure.clone().under_way())).await;
        assert_eq!(seen.side_effects.state, NONE, "what only reads did nothing");
    }
    let run = |_, context: portcullis_contract::ToolContext| async move {
        context.did(happened("half"));
        Err::<String, _>(ToolFailure::new("broke", "in the middle").under_way())
    };
    let (_, seen) = outcome(acting(acts(), run).build().expect("a sound tool")).await;
    assert_eq!(seen.side_effects.state, OCCURRED, "unless it says what it did");
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
pub(crate) fn writing<F>(semantics: Semantics, written: &Arc<Notify>, then: F) -> Tool
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

pub(crate) fn soon(semantics: Semantics) -> Semantics {
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
pub(crate) async fn interrupted(tool: Tool, written: &Notify, at_once: Option<&Notify>) -> (World, Observed) {
    let world = World::new().await;
    let process = world.process([("t", tool)]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let admission = session.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", INPUT)).spawned();
    written.notified().await;
    admission.canceller().cancel();
    if let Some(go) = at_once {
        go.notify_one();
    }
    let (facts, seen) = admission.settled().await.expect("no halt");
    session.commit(facts).await.expect("committed");
    (world, observed(&seen).clone())
}

pub(crate) fn heeds(semantics: Semantics) -> Semantics {
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

pub(crate) async fn assert_defect(world: &World, seen: &Observed, phase: Phase, effects: SideEffectState, words: &str) {
    assert_eq!(row(seen), (phase, Code::InternalError, effects, false, Recovery::None));
    assert!(seen.synthetic && seen.incident_id.is_some() && !seen.ok);
    let shown = seen_by_model(seen);
    assert!(!shown.contains(words), "R6: the defect's words are not for the model: {shown}");
    assert!(shown.contains(&seen.incident_id.expect("an incident").to_string()), "but its number is");
    let completed = completed(world).await;
    assert_eq!(completed.len(), 1, "L23: the fact stands");
    assert!(completed[0].defect.as_ref().is_some_and(|d| d.contains(words)), "{:?}", completed[0].defect);
}

pub(crate) fn seen_by_model(seen: &Observed) -> String {
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
pub(crate) fn unshowable(which: usize) -> Tool {
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
pub(crate) fn unready(which: usize) -> Tool {
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
pub(crate) fn giving<O>(make: fn() -> O) -> Tool
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
pub(crate) struct Liar {
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
    world.quota = 65_536;
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
