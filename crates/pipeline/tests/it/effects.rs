//! The book of effects: what a call changes in the log itself is one append with its answer, a lost race is told to its tool,
//! and a call whose process ended after its effect is settled by it.

use std::sync::{Arc, OnceLock};

use portcullis_base::{Code, LearningId, Recorded, SideEffect, SideEffectState, SideEffects};
use portcullis_contract::{Semantics, Tool, ToolContext, ToolFailure};
use portcullis_event::Body;
use portcullis_event::facts::{LearningCaptured, LearningKind};
use portcullis_pipeline::{EffectBook, EffectError, Opened};
use portcullis_store::{Liveness, RecordWrite};
use portcullis_store_testkit::{CountingStore, Fault, FaultKind, FaultyStore};
use serde_json::json;

use crate::common::{Note, Process, World, acting, acts, call_in, observed};

/// A kind of rows that no product code reads.
const NOTE: &str = "test_note";

/// Where the book of a process is found by its tools, which are made before it.
type Shelf = Arc<OnceLock<EffectBook>>;

fn learnt(context: &ToolContext, title: &str) -> LearningCaptured {
    LearningCaptured {
        id: LearningId::from_u128(context.invocation_id().as_u128()),
        agent_id: None,
        session_id: context.caller().session_id,
        source_event_id: None,
        source_reason: "test".to_owned(),
        kind: LearningKind::Lesson,
        title: title.to_owned(),
        detail: String::new(),
        promote_to_memory: false,
        dedupe_key: title.to_owned(),
    }
}

fn noted(text: &str) -> SideEffects {
    let (kind, target) = ("note_written".to_owned(), text.to_owned());
    SideEffects::occurred(vec![SideEffect { kind, target, before: None, after: None, reversible: true }])
}

/// Writes a note under the expected version `EXPECTED:TEXT`, and then does what `then` says.
fn writes<F, Fut>(shelf: &Shelf, semantics: Semantics, then: F) -> Tool
where
    F: Fn(Result<(), EffectError>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolFailure>> + Send,
{
    let shelf = Arc::clone(shelf);
    let run = move |input: Note, context: ToolContext| {
        let (book, then) = (shelf.get().cloned().unwrap_or_default(), then.clone());
        async move {
            let (expected, text) = input.text.split_once(':').expect("a version and a text");
            let made = async {
                let mut effect = book.begin(&context)?;
                effect.note(&learnt(&context, text));
                let expected = expected.parse().ok();
                effect.write(RecordWrite { kind: NOTE.into(), id: "n".into(), expected, body: Some(json!(text)) });
                effect.commit(json!(format!("wrote {text}")), noted(text)).await
            };
            let made = made.await;
            then(made).await
        }
    };
    acting(semantics, run).build().expect("a sound tool")
}

async fn answers(made: Result<(), EffectError>) -> Result<String, ToolFailure> {
    match made {
        Ok(()) => Ok("wrote it".to_owned()),
        Err(error) => Err(ToolFailure::new("lost", error.to_string())),
    }
}

fn in_log() -> Semantics {
    Semantics { in_log: true, ..acts() }
}

fn process(world: &World, shelf: &Shelf, tool: Tool) -> Process {
    let process = world.process([("note", tool)]);
    let _ = shelf.set(process.gate.effects());
    process
}

async fn note(world: &World) -> Option<(u64, serde_json::Value)> {
    let row = world.store.record(world.key().tenant, NOTE, "n").await.expect("the store answers");
    row.map(|row| (row.version, row.body))
}

#[tokio::test]
async fn l23_a_call_that_changes_the_log_alone_costs_two_appends_and_others_three() {
    for (semantics, appends) in [(in_log(), 2), (acts(), 3)] {
        let world = World::new().await;
        let counting = Arc::new(CountingStore::new(Arc::clone(&world.store)));
        let shelf = Shelf::default();
        let tool = writes(&shelf, semantics, answers);
        let process = world.process_over(Arc::clone(&counting) as _, [("note", tool)]);
        let _ = shelf.set(process.gate.effects());
        let session = process.open().await;
        let before = counting.counts().commits;
        let (seen, _) = call_in(&session, "note", r#"{"text":"0:a"}"#).await.expect("no halt");
        assert_eq!(observed(&seen).side_effects, noted("a"));
        assert_eq!(counting.counts().commits - before, appends);
        assert_eq!(note(&world).await, Some((1, json!("a"))));
        let types = world.types().await;
        let at = |kind: &str| types.iter().position(|other| other == kind).expect("it is there");
        let order = ["tool.invocation.started", "learning.captured", "tool.invocation.effected"].map(at);
        assert!(order.is_sorted() && order[2] < at("tool.invocation.completed"), "{types:?}");
    }
}

#[tokio::test]
async fn a_lost_race_is_told_to_the_tool_and_writes_nothing() {
    for semantics in [in_log(), acts()] {
        let world = World::new().await;
        let shelf = Shelf::default();
        let process = process(&world, &shelf, writes(&shelf, semantics, answers));
        let first = process.call("note", "0:first").await;
        assert!(observed(&first).ok);
        let second = process.call("note", "0:second").await;
        let second = observed(&second);
        assert_eq!((second.ok, second.tool_code.as_deref()), (false, Some("lost")));
        assert!(second.summary.contains("expected version 0, found 1"), "{}", second.summary);
        assert_eq!(second.side_effects.state, SideEffectState::None);
        assert_eq!(note(&world).await, Some((1, json!("first"))));
        let learnt =
            world.events().await.iter().filter(|event| matches!(event.body(), Body::LearningCaptured(_))).count();
        assert_eq!(learnt, 1, "the fact of the lost race is not in the log");
        let third = process.call("note", "1:third").await;
        assert!(observed(&third).ok, "the session goes on");
    }
}

#[tokio::test]
async fn a_tool_that_lost_may_read_again_and_try_once_more_in_the_same_call() {
    let world = World::new().await;
    let shelf = Shelf::default();
    let inner = Arc::clone(&shelf);
    let stubborn = acting(in_log(), move |_, context| {
        let book = inner.get().cloned().unwrap_or_default();
        async move {
            for expected in [7, 0] {
                let mut effect = book.begin(&context).map_err(|e| ToolFailure::new("closed", e.to_string()))?;
                let body = Some(json!("x"));
                effect.write(RecordWrite { kind: NOTE.into(), id: "n".into(), expected: Some(expected), body });
                if effect.commit(json!("made"), noted("x")).await.is_ok() {
                    let twice = book.begin(&context).err();
                    assert!(matches!(twice, Some(EffectError::Twice)), "{twice:?}");
                    return Ok("made".to_owned());
                }
            }
            Err(ToolFailure::new("never", "both were refused"))
        }
    });
    let process = process(&world, &shelf, stubborn.build().expect("a sound tool"));
    assert!(observed(&process.call("note", "x").await).ok);
    assert_eq!(note(&world).await, Some((1, json!("x"))));
}

#[tokio::test]
async fn a_call_that_cannot_touch_the_world_makes_no_effect() {
    let world = World::new().await;
    let shelf = Shelf::default();
    let tool = writes(&shelf, Semantics::read_only(), |made| async move {
        assert!(matches!(made, Err(EffectError::NotStarted)), "{made:?}");
        Ok("refused".to_owned())
    });
    let process = process(&world, &shelf, tool);
    assert!(observed(&process.call("note", "0:a").await).ok);
    assert_eq!(note(&world).await, None);
}

#[tokio::test]
async fn an_effect_stands_whatever_the_tool_says_of_itself() {
    let world = World::new().await;
    let shelf = Shelf::default();
    let denies = writes(&shelf, in_log(), |_| async {
        Err(ToolFailure::new("denies", "nothing happened").with_side_effects(SideEffects::none()))
    });
    let process = process(&world, &shelf, denies);
    let seen = process.call("note", "0:a").await;
    assert!(!observed(&seen).ok);
    assert_eq!(observed(&seen).side_effects, noted("a"));
}

/// The process of a call dies at each store call of it in turn. Afterwards the note is there exactly if the call is told to
/// have written it, and it is never told as unknown.
#[tokio::test]
async fn l73_a_call_whose_process_died_after_its_effect_is_settled_by_it() {
    let (mut made, mut never) = (0, 0);
    for kind in [FaultKind::CrashBefore, FaultKind::CrashAfter] {
        for nth in 1..40 {
            let world = World::new().await;
            let faulty = Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(Fault { nth, kind })));
            let shelf = Shelf::default();
            let tool = writes(&shelf, in_log(), answers);
            let dying = world.process_over(Arc::clone(&faulty) as _, [("note", tool)]);
            let _ = shelf.set(dying.gate.effects());
            let opened = dying.gate.open(world.session, dying.owner.clone()).await;
            let survived = match opened {
                Ok(Opened::Ready(session)) => call_in(&session, "note", r#"{"text":"0:a"}"#).await.is_ok(),
                _ => false,
            };
            world.liveness.set(dying.owner.worker, Liveness::Dead);
            let shelf = Shelf::default();
            let next = process(&world, &shelf, writes(&shelf, in_log(), answers));
            let session = next.open().await;
            session.attend().await.expect("it recovers");
            let seen = world.observations().await;
            let codes: Vec<_> = seen.iter().map(|seen| seen.code.clone()).collect();
            match (note(&world).await, &seen[..]) {
                (Some(_), [seen]) => {
                    assert_eq!(seen.code, Recorded::Known(Code::Ok), "{kind:?} {nth}");
                    assert_eq!(seen.side_effects, noted("a"));
                    made += 1;
                }
                (None, []) => never += 1,
                (note, _) => panic!("{kind:?} {nth}: the note is {note:?} and the log tells {codes:?}"),
            }
            if survived && !faulty.struck() {
                break;
            }
        }
    }
    assert!(made > 1 && never > 1, "both were met: {made} and {never}");
}
