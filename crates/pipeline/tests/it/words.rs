//! L69 for words that come from around a call: a person's answer, the caller's ids, a tool's labels.

use crate::common;

use std::sync::atomic::Ordering;

use common::{Note, World, acting, acts, call_on, change, fresh_message, look, observed, parked, proposal, turn_of};
use portcullis_base::{ArtifactKind, Code, Digest, FileFact};
use portcullis_contract::{Concurrency, DefaultPolicy, Resolved, Semantics, ToolContext};
use portcullis_event::facts::Reply;
use portcullis_policy::{Layer, PolicyBuilder, parse_rules};

const SECRET: &str = "hunter2-very-secret";

async fn secretive() -> World {
    let mut world = World::new().await;
    world.secrets = vec![SECRET.to_owned()];
    world
}

/// The kinds of events that hold the secret.
async fn told_in(world: &World) -> Vec<String> {
    let events = world.events().await.into_iter();
    let telling = events.filter(|event| event.payload.as_ref().is_some_and(|payload| payload.contains(SECRET)));
    telling.map(|event| event.kind.as_str().to_owned()).collect()
}

#[tokio::test]
async fn l69_a_secret_in_a_persons_answer_does_not_reach_the_model() {
    let world = secretive().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    // As a process without the secret would write it.
    let words = Some(format!("log in with {SECRET} first"));
    world.reply_with(ask, Reply::DenyWithFeedback, words).await.expect("answered");
    let attended = process.open().await.attend().await.expect("attended");
    let view = observed(&attended[0].disposition).model_view().to_string();
    assert!(!view.contains(SECRET) && view.contains("log in with *** first"), "{view}");
    assert_eq!(told_in(&world).await, ["tool.permission.replied"], "only where the other process wrote it");
    assert_eq!(process.gate.masked(&format!("{SECRET}!")), "***!");
}

#[tokio::test]
async fn l26_a_persons_no_is_told_as_a_denial() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    world.reply(ask, Reply::Deny).await.expect("answered");
    let attended = process.open().await.attend().await.expect("attended");
    let view = observed(&attended[0].disposition).model_view();
    assert_eq!(view["permission"]["decision"], "deny");
}

#[tokio::test]
async fn l07_l69_a_secret_in_a_call_id_is_masked_and_a_repeat_is_found_all_the_same() {
    let world = secretive().await;
    let process = world.process([("look", look(&world.effects))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let message = fresh_message();
    for expected in [Code::Ok, Code::DuplicateCall] {
        let said = proposal(&format!("id-{SECRET}"), message, "look", r#"{"text":"a"}"#);
        let seen = call_on(&session, &turn, said).await.expect("no halt");
        assert_eq!(observed(&seen).code.known(), Some(expected));
        assert_eq!(observed(&seen).call_id, "id-***");
    }
    assert_eq!(world.effects.looks.load(Ordering::SeqCst), 1);
    assert_eq!(told_in(&world).await, [""; 0]);
}

#[tokio::test]
async fn l07_a_call_id_too_long_to_be_told_apart_is_refused() {
    let world = World::new().await;
    let process = world.process([("look", look(&world.effects))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let message = fresh_message();
    for length in [600, 600, 900] {
        let said = proposal(&"x".repeat(length), message, "look", r#"{"text":"a"}"#);
        let seen = call_on(&session, &turn, said).await.expect("no halt");
        assert_eq!(observed(&seen).code.known(), Some(Code::InputUnparseable));
        assert!(observed(&seen).summary.contains("512"), "{}", observed(&seen).summary);
        assert!(observed(&seen).call_id.len() < 600, "no record holds it whole");
    }
    assert_eq!(world.effects.looks.load(Ordering::SeqCst), 0);
    let said = proposal(&"x".repeat(512), message, "look", r#"{"text":"a"}"#);
    assert!(observed(&call_on(&session, &turn, said).await.expect("no halt")).ok, "the limit itself is allowed");
}

#[tokio::test]
async fn l69_a_secret_in_the_type_of_evidence() {
    let world = secretive().await;
    let run = |_: Note, context: ToolContext| async move {
        let _ = context.keep(ArtifactKind::File, &format!("text/{SECRET}"), b"x".to_vec());
        Ok("done".to_owned())
    };
    let process = world.process([("keeps", acting(acts(), run).build().expect("a sound tool"))]);
    let seen = process.call("keeps", "a").await;
    assert_eq!(observed(&seen).artifacts[0].mime, "text/***");
    assert_eq!(told_in(&world).await, [""; 0]);
}

#[tokio::test]
async fn l20_a_lookup_that_found_nothing_says_why() {
    let world = World::new().await;
    let process = world.process([("look", look(&world.effects))]);
    process.call("nowhere", "a").await;
    process.call("look", "a").await;
    let looked = world.events().await.into_iter().filter_map(|event| match event.body() {
        portcullis_event::Body::LookedUp(looked) => Some((looked.found, looked.code.and_then(|code| code.known()))),
        _ => None,
    });
    assert_eq!(looked.collect::<Vec<_>>(), [(false, Some(Code::UnknownTool)), (true, None)]);
}

#[tokio::test]
async fn l69_a_secret_in_keys_and_paths_of_files() {
    let world = secretive().await;
    let run = |input: Note, context: ToolContext| async move {
        let path = format!("/workspace/{}", input.text);
        let sha256 = Digest::of(b"");
        context.file(FileFact::Written { path, sha256, size: 0, mtime: common::START, total_lines: 0 });
        context.did(common::happened(&input.text));
        Ok("done".to_owned())
    };
    let tool = acting(Semantics { concurrency: Concurrency::Keyed, ..acts() }, run)
        .keyed()
        .resolve(|input, _| Ok(Resolved { keys: vec![format!("fs:/workspace/{}", input.text)], ..Resolved::default() }))
        .build()
        .expect("a sound tool");
    let process = world.process([("writes", tool)]);
    let seen = process.call("writes", &format!("{SECRET}/x")).await;
    assert!(observed(&seen).ok);
    assert_eq!(observed(&seen).files[0].path(), "/workspace/***/x");
    assert_eq!(told_in(&world).await, [""; 0]);
}

/// R10, check 17: a model is told which rule it was, and not where on this machine that is written; a person is told.
#[tokio::test]
async fn r10_a_refusal_tells_a_model_the_rule_and_no_path_of_the_host() {
    const HOST: &str = "/home/somebody/.config/portcullis/config.toml";
    let mut world = World::new().await;
    world.approvals = portcullis_pipeline::Approvals::Unavailable;
    let text = "[[rules]]\nid = \"shut\"\naction = \"change\"\npath = \"/workspace/x\"\neffect = \"deny\"\n\
                [[rules]]\naction = \"change\"\npath = \"/workspace/y\"\neffect = \"ask\"\n\
                [[rules]]\nid = \"gone\"\naction = \"look\"\neffect = \"deny\"\n";
    let rules = parse_rules(text, HOST, Layer::User).expect("rules");
    let process =
        world.process([("change", change(&world.effects, DefaultPolicy::Allow)), ("look", look(&world.effects))]);
    process.gate.set_policy(PolicyBuilder::new().rules(rules).build().expect("a policy"));
    let cases = [
        ("change", "x", Code::PolicyDenied, "rule `shut` (user rules, line 1) denies", "config.toml:1"),
        ("change", "y", Code::ApprovalUnavailable, "(user rules, line 6) asks about", "config.toml:6"),
        ("look", "x", Code::ToolNotVisible, "rule `gone` denies it altogether", "config.toml:10"),
    ];
    for (tool, input, code, told, place) in cases {
        let seen = process.call(tool, input).await;
        let seen = observed(&seen);
        assert_eq!(seen.code.known(), Some(code));
        let view = seen.model_view().to_string();
        assert!(view.contains(told) && !view.contains("/home/"), "{view}");
        let [rule] = process.gate.rules_against(world.session, seen).try_into().expect("one rule");
        assert!(rule.contains(HOST) && rule.ends_with(place), "{rule}");
    }
}
