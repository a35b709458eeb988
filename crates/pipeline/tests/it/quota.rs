//! The quota of artifacts: looked at before anything happens, and never a reason to name what is not there.

use crate::common;

use common::{Note, World, acting, acts, fresh_message, happened, observed, parked, proposal, turn_of};
use portcullis_base::{ArtifactKind, Clock as _, Code, Phase, SessionId, SideEffect, Timestamp};
use portcullis_contract::{Concurrency, Content, DefaultPolicy, Prepared, Resolved, Semantics, Tool, ToolContext};
use portcullis_event::facts::Reply;
use portcullis_pipeline::Append;
use portcullis_store::Retain;

/// Rewrites something of `size` bytes, with evidence of before and after as the file tools leave it.
fn rewrites(effects: &common::Effects, size: usize, policy: DefaultPolicy, diff: Option<usize>) -> Tool {
    let effects = effects.clone();
    let run = move |input: Note, context: ToolContext| {
        let effects = effects.clone();
        async move {
            effects.add(&input.text);
            let before = context.keep(ArtifactKind::File, "text/plain", vec![b'b'; size])?.to_string();
            let after = context.keep(ArtifactKind::File, "text/plain", vec![b'a'; size])?.to_string();
            context.did(SideEffect {
                before: Some(before.clone()),
                after: Some(after),
                reversible: true,
                ..happened(&input.text)
            });
            Ok(before)
        }
    };
    let concurrency = Concurrency::Keyed;
    acting(Semantics { default_policy: policy, concurrency, ..acts() }, run)
        .keyed()
        .resolve(|input, _| Ok(Resolved { keys: vec![format!("fs:/{}", input.text)], ..Resolved::default() }))
        .precheck(move |input: std::sync::Arc<Note>, _, _| async move {
            // Equal contents are kept once and count once; each text has a diff of its own.
            Ok(Prepared { diff: diff.map(|bytes| input.text.repeat(bytes).into()), ..Prepared::default() })
        })
        .to_model(|_, output| vec![Content::text(format!("kept as {}", output.as_str().unwrap_or_default()))])
        .build()
        .expect("a sound tool")
}

#[tokio::test]
async fn l57_a_call_that_acts_does_not_start_without_room_for_its_evidence() {
    let mut world = World::new().await;
    world.quota = 1;
    let process = world.process([("rewrite", rewrites(&world.effects, 10, DefaultPolicy::Allow, None))]);
    let seen = process.call("rewrite", "a").await;
    let seen = observed(&seen);
    assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Bound), Some(Code::RetentionFailed)));
    assert!(seen.retryable, "nothing happened");
    assert!(seen.summary.contains("not started") && seen.summary.contains("the quota is raised"), "{}", seen.summary);
    assert!(!seen.summary.contains("--artifacts"), "another folder has the same quota");
    assert_eq!(world.effects.count(), 0);
    assert!(!world.types().await.contains(&"tool.invocation.started".to_owned()));
}

#[tokio::test]
async fn s13_evidence_over_the_quota_is_named_nowhere() {
    let mut world = World::new().await;
    world.quota = 100_000;
    let process = world.process([("rewrite", rewrites(&world.effects, 150_000, DefaultPolicy::Allow, None))]);
    let seen = process.call("rewrite", "a").await;
    let seen = observed(&seen);
    assert_eq!(seen.code.known(), Some(Code::RetentionFailed));
    assert_eq!(world.effects.all(), ["a"], "it was within the quota when it began");
    let effect = &seen.side_effects.items[0];
    assert_eq!((&effect.before, &effect.after, effect.reversible), (&None, &None, false));
    let log: String = world.events().await.iter().filter_map(|event| event.payload.as_deref()).collect();
    assert!(!log.contains("art_"), "nothing is named that is not there");
    assert!(seen.model_view().to_string().contains("kept as (not kept)"));
}

#[tokio::test]
async fn s13_what_was_kept_is_still_named() {
    let mut world = World::new().await;
    world.quota = 100_000;
    let process = world.process([("rewrite", rewrites(&world.effects, 60_000, DefaultPolicy::Allow, None))]);
    let seen = process.call("rewrite", "a").await;
    let seen = observed(&seen);
    assert_eq!(seen.code.known(), Some(Code::RetentionFailed), "there was room for one of two");
    let effect = &seen.side_effects.items[0];
    assert_eq!(effect.before, Some(seen.artifacts[0].id.to_string()));
    assert_eq!((&effect.after, effect.reversible), (&None, true), "what was there before can be had back");
}

#[tokio::test]
async fn l57_the_diff_of_an_ask_counts() {
    let mut world = World::new().await;
    world.quota = 200_000;
    let process = world.process([("asks", rewrites(&world.effects, 10, DefaultPolicy::Ask, Some(60_000)))]);
    let mut asks = Vec::new();
    for text in ["a", "b", "c"] {
        asks.push(parked(&process.call("asks", text).await));
    }
    let seen = process.call("asks", "d").await;
    let seen = observed(&seen);
    assert_eq!(seen.code.known(), Some(Code::RetentionFailed), "nobody is asked about what cannot be shown");
    assert!(world.store.artifact_usage(world.key().tenant).await.expect("usage") <= world.quota);
    // An approval that finds no room to start is void, and says so.
    world.reply(asks[0], Reply::AllowOnce).await.expect("answered");
    let attended = process.open().await.attend().await.expect("attended");
    assert_eq!(observed(&attended[0].disposition).code.known(), Some(Code::RetentionFailed));
    assert_eq!(world.effects.count(), 0);
}

/// Two calls of one process at once: the second finds no room, counts the rows anew, and the first is not in them yet.
#[tokio::test]
async fn l57_counting_anew_forgets_no_call_that_is_on_its_way() {
    let mut world = World::new().await;
    world.quota = 150_000;
    let tool = |size| rewrites(&world.effects, size, DefaultPolicy::Allow, None);
    // Of other sizes, so of other contents: equal ones count once.
    let mut process = world.process([("first", tool(60_000)), ("second", tool(60_001)), ("third", tool(60_002))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let on_its_way = async |name: &str| {
        let proposed = proposal("c", fresh_message(), name, r#"{"text":"a"}"#);
        let (facts, seen) = session.admit(Append::new(), &turn, proposed).settled().await.expect("no halt");
        assert!(observed(&seen).ok);
        facts
    };
    let other = SessionId::make(&*world.ids, world.clock.now());
    world.create(other).await;
    process.session = other;
    let beside = async |name: &str| observed(&process.call(name, "b").await).code.known();
    let usage = async || world.store.artifact_usage(world.key().tenant).await.expect("usage");

    let lost = on_its_way("first").await;
    assert_eq!(beside("second").await, Some(Code::RetentionFailed), "what the first left has no rows yet, and counts");
    assert_eq!((world.effects.all(), usage().await), (vec!["a".to_owned()], 0));
    // Its end is never written: its room is free again.
    drop(lost);
    assert_eq!(beside("second").await, Some(Code::Ok));
    assert_eq!(usage().await, 120_002);
    assert_eq!(beside("third").await, Some(Code::RetentionFailed), "what was recorded counts once, and counts");
    assert!(usage().await <= world.quota);
}

/// A process that only asks and reads never comes to the look before a start.
#[tokio::test]
async fn l57_room_that_was_made_meanwhile_is_found_by_an_ask_too() {
    let mut world = World::new().await;
    world.quota = 100_000;
    let process = world.process([("asks", rewrites(&world.effects, 10, DefaultPolicy::Ask, Some(60_000)))]);
    parked(&process.call("asks", "a").await);
    let refused = process.call("asks", "b").await;
    assert_eq!(observed(&refused).code.known(), Some(Code::RetentionFailed));
    // As `gc --apply` does in another process.
    let tenant = world.key().tenant;
    let rows = world.store.artifacts(tenant, None, 10).await.expect("rows");
    let contents = rows.iter().map(|row| row.artifact.sha256).collect();
    world.store.retain(tenant, Retain::Bury(rows.iter().map(|row| row.artifact.id).collect())).await.expect("buried");
    let before = Timestamp::from_micros(i64::MAX);
    world.store.retain(tenant, Retain::Free { contents, before }).await.expect("freed");
    assert_eq!(world.store.artifact_usage(tenant).await, Ok(0));
    parked(&process.call("asks", "b").await);
}
