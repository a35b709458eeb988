//! What one append holds: whatever is proposed and whatever a tool leaves behind, the facts of a call fit
//! into the log, and calls that share an append neither wait for each other for ever nor run too early.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{
    Note, World, acting, acts, call_in, change, fresh_message, happened, look, observed, proposal, tool, turn_of,
};
use portcullis_base::{ArtifactKind, Code, ManualClock, SeededIds, SideEffectState, limits};
use portcullis_contract::{DefaultPolicy, Semantics, Tool, ToolContext};
use portcullis_event::{Body, CheckpointKey};
use portcullis_pipeline::Append;
use portcullis_store::LocalArtifacts;
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};
use portcullis_store_testkit::FixedLiveness;

/// Real SQLite and real files.
async fn on_disk(folder: &std::path::Path) -> World {
    let clock = Arc::new(ManualClock::new(common::START));
    let ids = Arc::new(SeededIds::new(1));
    let liveness = Arc::new(FixedLiveness::default());
    let store = SqliteStore::open(SqliteConfig {
        path: folder.join("portcullis.db"),
        durability: Durability::Full,
        clock: Arc::clone(&clock) as _,
        ids: Arc::clone(&ids) as _,
        liveness: Arc::clone(&liveness) as _,
        checkpoint_key: Some(CheckpointKey::from_bytes([7; 32])),
    })
    .expect("a store");
    let artifacts = LocalArtifacts::open(&folder.join("artifacts"), Arc::clone(&ids) as _).expect("artifacts");
    World::over(Arc::new(store), Arc::new(artifacts), clock, ids, liveness).await
}

/// Acts, and then hands over `pieces` pieces of evidence of `size` bytes, heeding the limit or not.
fn bulk(pieces: u32, size: usize, heeds: bool) -> Tool {
    let run = move |input: Note, context: ToolContext| async move {
        context.did(happened(&input.text));
        for n in 0..pieces {
            let mut bytes = n.to_be_bytes().to_vec();
            bytes.resize(size, b'e');
            let kept = context.keep(ArtifactKind::File, "text/plain", bytes);
            if heeds {
                kept?;
            }
        }
        Ok("done".to_owned())
    };
    acting(acts(), run).build().expect("a sound tool")
}

#[tokio::test]
async fn l19_an_input_of_control_characters_has_its_observation() {
    let world = World::new().await;
    let process = world.process([("look", look(&world.effects))]);
    let garbage = process.call_raw("look", &"\u{1}".repeat(1_000_000)).await;
    assert_eq!(observed(&garbage).code.known(), Some(Code::InputUnparseable));
    let huge = process.call("look", &"\u{1}".repeat(170_000)).await;
    assert!(observed(&huge).ok, "just below the limit as it is written: {:?}", observed(&huge).summary);
    let intents = world.types().await.iter().filter(|kind| *kind == "tool.intent").count();
    assert_eq!((intents, world.observations().await.len()), (2, 2));
}

#[tokio::test]
async fn l36_an_input_too_long_for_its_event_still_runs_as_it_was_approved() {
    let world = World::new().await;
    let effects = world.effects.clone();
    let run = move |input: serde_json::Value, _: ToolContext| {
        let effects = effects.clone();
        async move {
            effects.add(input["n"].as_array().map_or(0, Vec::len).to_string());
            Ok("done".to_owned())
        }
    };
    let asks = Tool::builder::<serde_json::Value, String>("Takes numbers.")
        .semantics(Semantics { default_policy: DefaultPolicy::Ask, ..Semantics::mutating() })
        .execute(run)
        .build()
        .expect("a sound tool");
    let process = world.process([("asks", asks)]);
    let input = format!("{{\"n\":[{}1e15]}}", "1e15,".repeat(199_999));
    let ask = common::parked(&process.call_raw("asks", &input).await);
    world.reply(ask, portcullis_event::facts::Reply::AllowOnce).await.expect("answered");
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    assert!(observed(&attended[0].disposition).ok, "{:?}", observed(&attended[0].disposition));
    assert_eq!(world.effects.all(), ["200000"]);
}

#[tokio::test]
async fn l23_s13_small_evidence_past_the_budget_of_an_append_is_in_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = on_disk(folder.path()).await;
    let process = world.process([("bulk", bulk(80, 60_000, true))]);
    let seen = process.call("bulk", "a").await;
    let seen = observed(&seen);
    assert!(seen.ok, "{seen:?}");
    assert_eq!(seen.artifacts.len(), 80);
    let (mut rows, mut files) = (0, 0);
    for (n, artifact) in (0u32..).zip(&seen.artifacts) {
        let (_, window) = process.gate.shelf().open(artifact.id, None).await.expect("readable");
        assert_eq!(window.slice(0, 4).expect("read"), n.to_be_bytes());
        let blob = world.store.blob(world.key().tenant, artifact.sha256).await.expect("read");
        let file = world.artifacts.open(world.key().tenant, artifact.sha256).is_ok();
        assert_ne!(blob.is_some(), file, "in one place");
        rows += blob.map_or(0, |bytes| bytes.len());
        files += usize::from(file);
    }
    assert!(rows <= limits::APPEND_BLOBS && files > 0, "{rows} bytes in the append, {files} files");
}

#[tokio::test]
async fn l23_more_evidence_than_a_call_may_leave_is_refused_to_the_tool_and_the_effect_is_told() {
    let world = World::new().await;
    let process = world.process([("heeds", bulk(1_000, 4, true)), ("ignores", bulk(1_000, 4, false))]);
    let seen = process.call("heeds", "a").await;
    let seen = observed(&seen);
    assert_eq!(seen.code.known(), Some(Code::ToolFailure));
    assert_eq!(seen.tool_code.as_deref(), Some("too_much_evidence"));
    assert!(seen.summary.contains("256"), "{}", seen.summary);
    assert_eq!(seen.artifacts.len(), limits::KEPT_ITEMS);
    let seen = process.call("ignores", "a").await;
    let seen = observed(&seen);
    assert_eq!(seen.code.known(), Some(Code::RetentionFailed), "no lossy success (L53)");
    assert!(seen.summary.contains("744"), "{}", seen.summary);
    assert_eq!(seen.side_effects.state, SideEffectState::Occurred);
    assert!(!seen.retryable);
}

#[tokio::test]
async fn l23_a_tool_that_reports_without_end_has_its_observation() {
    let world = World::new().await;
    let run = |_: Note, context: ToolContext| async move {
        for n in 0..50_000 {
            context.did(happened(&format!("/workspace/some/folder/with/a/long/name/file-{n}.txt")));
        }
        Ok("done".to_owned())
    };
    let process = world.process([("many", acting(acts(), run).build().expect("a sound tool"))]);
    let seen = process.call("many", "a").await;
    let seen = observed(&seen);
    assert_eq!(seen.code.known(), Some(Code::RetentionFailed));
    assert_eq!(seen.side_effects.state, SideEffectState::Occurred);
    let last = seen.side_effects.items.last().expect("listed");
    assert_eq!(last.target, "49968 more effects of this call");
    let completed = world.events().await.into_iter().find_map(|event| match event.body() {
        Body::InvocationCompleted(completed) => Some(completed),
        _ => None,
    });
    assert_eq!(completed.expect("recorded").side_effects, seen.side_effects, "both say the same");
}

#[tokio::test]
async fn l41_two_changes_in_one_append_run_one_after_the_other() {
    let world = World::new().await;
    let tools = [("change", change(&world.effects, DefaultPolicy::Allow)), ("look", look(&world.effects))];
    let process = world.process(tools);
    let session = process.open().await;
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    let message = fresh_message();
    for (n, tool) in (1..).zip(["change", "change", "look", "change"]) {
        let said = proposal(&format!("c{n}"), message, tool, &format!(r#"{{"text":"{n}"}}"#));
        let settled = session.admit(facts, &turn, said).settled();
        let settled = tokio::time::timeout(Duration::from_secs(10), settled).await.expect("it does not hang");
        let (rest, disposition) = settled.expect("no halt");
        assert!(observed(&disposition).ok);
        facts = rest;
    }
    session.commit(facts).await.expect("committed");
    assert_eq!(world.effects.all(), ["1", "2", "4"]);
    assert_eq!(world.observations().await.len(), 4);
    let locks = call_in(&session, "change", r#"{"text":"5"}"#).await.expect("no key is left behind");
    assert!(observed(&locks.0).ok);
}

#[tokio::test]
async fn l19_a_long_segment_of_reads_in_one_append_is_split_between_calls() {
    let world = World::new().await;
    let says = tool(Semantics::read_only(), |_, _| async { Ok("x".repeat(40_000)) });
    let process = world.process([("look", look(&world.effects)), ("says", says)]);
    for (name, calls) in [("look", 400), ("says", 200)] {
        let session = process.open().await;
        let turn = turn_of(&session).await;
        let (message, before) = (fresh_message(), world.observations().await.len());
        let mut facts = Append::new();
        for n in 0..calls {
            let said = proposal(&format!("c{n}"), message, name, r#"{"text":"a"}"#);
            facts = session.admit(facts, &turn, said).settled().await.expect("no halt").0;
        }
        session.commit(facts).await.expect("committed");
        session.release().await.expect("released");
        assert_eq!(world.observations().await.len(), before + calls);
    }
    assert_eq!(world.effects.looks.load(Ordering::SeqCst), 400);
}
