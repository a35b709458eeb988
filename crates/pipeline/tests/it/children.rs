//! Calls that wait for a child session or the worker of an environment (ruling 54): handed over with the right to them, they
//! hold nothing while they wait, and arrive once.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use portcullis_base::{AppendId, Clock as _, Code, Digest, EventId, Recorded, SessionId};
use portcullis_contract::{DefaultPolicy, Precondition, Semantics, Tool};
use portcullis_event::facts::{
    Block, SessionCreated, ThreadCreated, ThreadMessageKind, ThreadMessageReceived, UserInterrupt, UserMessage,
    UserToolResult,
};
use portcullis_event::{Actor, Body, Draft, LOCAL_TENANT, Stamp};
use portcullis_pipeline::{Disposition, EffectBook, Session};
use portcullis_store::{Commit, Liveness, SessionKey, StoreError};
use serde_json::json;

use crate::common::{Note, Process, World, call_in, observed};

type Shelf = Arc<OnceLock<EffectBook>>;

const CHILD: SessionId = SessionId::from_u128(0xc41d);

fn drafts(world: &World, root: SessionId, words: &str) -> Vec<Draft> {
    let actor = Actor::agent("parent");
    let stamp = Stamp { ids: &*world.ids, clock: &*world.clock, actor: &actor, turn_id: None, wake_id: None };
    let created = SessionCreated {
        agent_id: None,
        agent_version: 0,
        environment_id: None,
        parent_session_id: Some(root),
        root_session_id: root,
        depth: 1,
        name: None,
        tags: Vec::new(),
        config_hash: Digest::of(b""),
        has_setup: false,
        workspace: None,
        custom_tools: Vec::new(),
    };
    vec![stamp.draft(&created), stamp.draft(&UserMessage { content: vec![Block::text(words)] })]
}

/// Makes [`CHILD`] and waits for it; the texts `no` and `break` do what they say instead.
fn delegates(world: &World, shelf: &Shelf) -> Tool {
    let shelf = Arc::clone(shelf);
    let first = drafts(world, world.session, "do it");
    Tool::builder::<Note, String>("Has a child do it.")
        .semantics(Semantics { default_policy: DefaultPolicy::Allow, ..Semantics::mutating() })
        .plan_access(|input, _| vec![crate::common::touches(&input.text)])
        .by_child(
            move |input, _, caller| {
                let (book, first) = (shelf.get().cloned().unwrap_or_default(), first.clone());
                async move {
                    match input.text.as_str() {
                        "no" => {
                            return Err(Precondition::failed(
                                portcullis_base::Reason::NotInScope,
                                "there may be no child",
                            ));
                        }
                        "break" => panic!("as asked"),
                        _ => {}
                    }
                    let mut effect = book.hand_over(&caller).expect("it is about to be handed over");
                    effect.note(&ThreadCreated {
                        session_thread_id: CHILD,
                        agent_name: "helper".to_owned(),
                        name: None,
                        message: Some(input.text.clone()),
                        intent_id: Some(caller.intent_id),
                    });
                    effect.create(CHILD, Actor::agent("parent"), &first);
                    effect.prepare().expect("it was not handed over yet");
                    Ok(())
                }
            },
            |input, arrival| Ok(format!("{}: {} ({})", input.text, arrival.text, arrival.details["outcome"])),
        )
        .build()
        .expect("a sound tool")
}

fn process(world: &World) -> Process {
    let shelf = Shelf::default();
    let process = world.process([("delegate", delegates(world, &shelf))]);
    let _ = shelf.set(process.gate.effects());
    process
}

/// What the child says when it is done, as its outbox delivers it.
async fn completes(world: &World, words: &str) -> Result<usize, StoreError> {
    let said = ThreadMessageReceived {
        from_session_thread_id: CHILD,
        from_agent_name: None,
        content: vec![Block::text(words)],
        kind: ThreadMessageKind::Completion,
        outcome: Some("end_turn".to_owned()),
    };
    let actor = Actor::agent("helper");
    let stamp = Stamp { ids: &*world.ids, clock: &*world.clock, actor: &actor, turn_id: None, wake_id: None };
    let append = AppendId::make(&*world.ids, world.clock.now());
    let commit = Commit::outbox(world.key(), "completion".to_owned(), append, vec![stamp.draft(&said)]);
    world.store.commit(commit).await.map(|committed| committed.events.len())
}

async fn delegate(session: &Session, text: &str) -> Disposition {
    call_in(session, "delegate", &json!({ "text": text }).to_string()).await.expect("no halt").0
}

#[tokio::test]
async fn ruling54_a_call_that_waits_for_a_child_holds_nothing_and_arrives_once() {
    let world = World::new().await;
    let parent = process(&world);
    let session = parent.open().await;
    let before = world.events().await.len();
    let waiting = delegate(&session, "task").await;
    let Disposition::Elsewhere(event) = waiting else { panic!("{waiting:?}") };
    let appends: BTreeSet<_> = world.events().await[before..].iter().map(|event| event.append_id).collect();
    assert_eq!(appends.len(), 1, "the right to it and the child that it makes are one append");
    let child = SessionKey { tenant: LOCAL_TENANT, session: CHILD };
    let made = world.store.read(child, 0, 10).await.expect("read");
    let types: Vec<&str> = made.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(types, ["session.created", "user.message"]);
    let handed = world.events().await.into_iter().find(|one| one.id == event).expect("it is in the log");
    assert!(matches!(handed.body(), Body::ThreadCreated(made) if made.session_thread_id == CHILD));

    // The parent dies without a word. Its call is not lost: it waits.
    drop(session);
    world.liveness.set(parent.owner.worker, Liveness::Dead);
    let next = process(&world);
    let session = next.open().await;
    assert!(session.attend().await.expect("attended").is_empty(), "there is nothing to recover");
    session.release().await.expect("released");
    let head = world.store.head(world.key()).await.expect("head").expect("there");
    assert_eq!((head.lease_owner, head.next_due_at), (None, None), "nobody holds it and nobody is called for");

    assert_eq!(completes(&world, "did it").await.expect("delivered"), 1);
    assert_eq!(completes(&world, "did it").await.expect("delivered"), 0, "it is said once");
    let head = world.store.head(world.key()).await.expect("head").expect("there");
    assert!(head.next_due_at.is_some(), "now a worker is called for");
    let session = next.open().await;
    assert_eq!(session.attend().await.expect("attended").len(), 1);
    assert!(session.attend().await.expect("attended").is_empty());
    let seen = world.observations().await;
    let [seen] = &seen[..] else { panic!("{seen:?}") };
    assert!(seen.ok);
    assert_eq!(seen.structured, Some(json!("task: did it (\"end_turn\")")));
}

#[tokio::test]
async fn a_child_that_may_not_be_leaves_a_refusal_and_no_session() {
    for (text, code) in [("no", Code::RuntimePreconditionFailed), ("break", Code::InternalError)] {
        let world = World::new().await;
        let process = process(&world);
        let seen = process.call("delegate", text).await;
        assert_eq!(observed(&seen).code, Recorded::Known(code));
        let child = SessionKey { tenant: LOCAL_TENANT, session: CHILD };
        assert!(world.store.head(child).await.expect("head").is_none());
        assert_eq!(world.observations().await.len(), 1);
    }
}

#[tokio::test]
async fn l21_a_call_that_a_rule_denies_makes_no_child() {
    let mut world = World::new().await;
    world.rules = "[[rules]]\naction = \"change\"\neffect = \"deny\"\n".to_owned();
    let process = process(&world);
    let seen = process.call("delegate", "task").await;
    assert_eq!(observed(&seen).code, Recorded::Known(Code::PolicyDenied));
    let child = SessionKey { tenant: LOCAL_TENANT, session: CHILD };
    assert!(world.store.head(child).await.expect("head").is_none());
}

#[tokio::test]
async fn h26_a_result_that_comes_after_an_interrupt_does_not_count() {
    let world = World::new().await;
    let process = process(&world);
    let session = process.open().await;
    assert!(matches!(delegate(&session, "task").await, Disposition::Elsewhere(_)));
    world.client(world.session, &UserInterrupt { note: None }).await.expect("interrupted");
    completes(&world, "too late").await.expect("delivered");
    session.attend().await.expect("attended");
    let seen = world.observations().await;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].code, Recorded::Known(Code::ApprovalSuperseded));
    assert_ne!(seen[0].structured, Some(json!("task: too late (\"end_turn\")")));
}

#[tokio::test]
async fn r11_the_worker_of_the_environment_is_handed_a_call_and_its_result_arrives_once() {
    let world = World::new().await;
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let tool = Tool::of_environment("Runs over there.", schema).expect("a sound tool");
    let mut world = world;
    world.rules = "[[rules]]\naction = \"far\"\neffect = \"allow\"\nopaque = true\n".to_owned();
    let process = world.process([("far", tool)]);
    let session = process.open().await;
    let (waiting, _) = call_in(&session, "far", r#"{"text":"x"}"#).await.expect("no halt");
    let Disposition::Elsewhere(event) = waiting else { panic!("{waiting:?}") };
    let foreign = EventId::from_u128(1);
    for (of, more) in [(foreign, 0), (event, 1), (event, 0)] {
        let result = UserToolResult { tool_use_id: of, content: vec![Block::text("went well")], is_error: false };
        world.client(world.session, &result).await.expect("said");
        assert_eq!(session.attend().await.expect("attended").len(), more);
    }
    let seen = world.observations().await;
    assert_eq!(seen.len(), 1);
    assert!(seen[0].ok);
    assert_eq!(seen[0].content[0].text.as_deref(), Some("went well"));
}
