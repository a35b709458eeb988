//! L47: a model that goes round in circles is told, then stopped; whoever calls from outside is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Note, World, acting, acts, fresh_message, happened, observed, proposal, tool};
use portcullis_base::{Code, Phase, limits};
use portcullis_contract::{Content, Semantics, Tool, UserText};
use portcullis_event::Observed;
use portcullis_pipeline::{Append, InContext, Session};

async fn turn(session: &Session, guarded: bool, tool: &str, text: &str) -> Observed {
    let mut facts = Append::new();
    let turn = match guarded {
        true => session.begin_loop_turn(&mut facts, &InContext::default()),
        false => session.begin_turn(&mut facts),
    };
    let input = serde_json::json!({ "text": text }).to_string();
    let admission = session.admit(facts, &turn, proposal("c", fresh_message(), tool, &input));
    let (facts, disposition) = admission.settled().await.expect("no halt");
    session.commit(facts).await.expect("committed");
    observed(&disposition).clone()
}

/// Says the same each time, and counts.
fn parrot(runs: &Arc<AtomicUsize>) -> Tool {
    let runs = Arc::clone(runs);
    tool(Semantics::read_only(), move |input: Note, _| {
        runs.fetch_add(1, Ordering::SeqCst);
        async move { Ok(format!("seen {}", input.text)) }
    })
}

#[tokio::test]
async fn l47_the_same_call_with_the_same_end_is_told_and_then_refused() {
    let world = World::new().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let process = world.process([("parrot", parrot(&runs))]);
    let session = process.open().await;
    for n in 1..limits::LOOP_STOP {
        let seen = turn(&session, true, "parrot", "x").await;
        assert!(seen.ok);
        assert_eq!(seen.warnings.len(), usize::from(n >= limits::LOOP_WARN), "call {n}: {:?}", seen.warnings);
    }
    for _ in 0..2 {
        let seen = turn(&session, true, "parrot", "x").await;
        assert_eq!((seen.code.known(), seen.phase.known()), (Some(Code::LoopDetected), Some(Phase::Validate)));
    }
    assert_eq!(runs.load(Ordering::SeqCst), 4, "a refused call does not run");
    assert!(turn(&session, true, "parrot", "y").await.ok, "something else goes on at once");
    assert!(turn(&session, true, "parrot", "x").await.ok, "and then the first is no circle any more");
}

#[tokio::test]
async fn l47_calls_that_repeat_in_turn_are_a_circle_as_well() {
    for cycle in [vec!["x", "y"], vec!["x", "y", "z"], vec!["x", "x", "y"]] {
        let world = World::new().await;
        let runs = Arc::new(AtomicUsize::new(0));
        let process = world.process([("parrot", parrot(&runs))]);
        let session = process.open().await;
        let rounds = (limits::LOOP_STOP - 1) as usize;
        for n in 0..rounds * cycle.len() {
            let seen = turn(&session, true, "parrot", cycle[n % cycle.len()]).await;
            assert!(seen.ok, "{cycle:?} {n}: {:?}", seen.code);
        }
        // From here on every call of it is refused, until another one is made.
        for n in 0..3 * cycle.len() {
            let seen = turn(&session, true, "parrot", cycle[n % cycle.len()]).await;
            assert_eq!(seen.code.known(), Some(Code::LoopDetected), "{cycle:?} {n}");
        }
        assert_eq!(runs.load(Ordering::SeqCst), rounds * cycle.len());
        assert!(turn(&session, true, "parrot", "another").await.ok);
        assert!(turn(&session, true, "parrot", "x").await.ok, "{cycle:?}");
    }
}

#[tokio::test]
async fn l47_another_end_or_another_effect_begins_anew() {
    let world = World::new().await;
    let steps = Arc::new(AtomicUsize::new(0));
    let (told, done) = (Arc::clone(&steps), Arc::new(AtomicUsize::new(0)));
    let poll = tool(Semantics::read_only(), move |_, _| {
        let step = told.fetch_add(1, Ordering::SeqCst);
        async move { Ok(format!("{} of 9 done", step / 2)) }
    });
    let act = acting(acts(), move |_, context| {
        let step = done.fetch_add(1, Ordering::SeqCst);
        async move {
            context.did(happened(&format!("row {step}")));
            Ok("done".to_owned())
        }
    });
    let process = world.process([("poll", poll), ("act", act.build().expect("a sound tool"))]);
    let session = process.open().await;
    for _ in 0..12 {
        assert!(turn(&session, true, "poll", "x").await.warnings.is_empty(), "it moves, however slowly");
    }
    for _ in 0..12 {
        assert!(turn(&session, true, "act", "x").await.warnings.is_empty(), "each time something else changed");
    }
}

/// A command names how long it took in its summary and its structured form. The model is shown the same text each time.
#[tokio::test]
async fn l47_how_long_a_call_took_is_no_other_end() {
    let world = World::new().await;
    let took = Arc::new(AtomicUsize::new(0));
    let command = Tool::builder::<Note, String>("A command.")
        .semantics(Semantics::read_only())
        .execute(move |_, _| {
            let took = took.fetch_add(7, Ordering::SeqCst);
            async move { Ok(format!("{took} ms")) }
        })
        .to_model(|_, _| vec![Content::text("the same text")])
        .to_user(|_, took| UserText { title: "ran".to_owned(), summary: took.to_string() })
        .build()
        .expect("a sound tool");
    let process = world.process([("command", command)]);
    let session = process.open().await;
    for _ in 1..limits::LOOP_STOP {
        assert!(turn(&session, true, "command", "x").await.ok);
    }
    assert_eq!(turn(&session, true, "command", "x").await.code.known(), Some(Code::LoopDetected));
}

#[tokio::test]
async fn l47_failures_count_and_calls_from_outside_do_not() {
    let world = World::new().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let broken = tool(Semantics::read_only(), move |_: Note, _| async {
        Err(portcullis_contract::ToolFailure::new("no_luck", "it never works"))
    });
    let process = world.process([("broken", broken), ("parrot", parrot(&runs))]);
    let session = process.open().await;
    for _ in 1..limits::LOOP_STOP {
        assert_eq!(turn(&session, true, "broken", "x").await.code.known(), Some(Code::ToolFailure));
    }
    assert_eq!(turn(&session, true, "broken", "x").await.code.known(), Some(Code::LoopDetected));
    for _ in 0..10 {
        let seen = turn(&session, false, "parrot", "x").await;
        assert!(seen.ok && seen.warnings.is_empty(), "`call` may repeat itself as it likes");
    }
}
