//! Asks of descendants (tool-contract 13.6, L38): every one is visible at the root while it is pending, and the root is
//! told how its call ended.

use crate::common;

use std::sync::Arc;

use common::{Process, World, acts, call_in, change, observed, parked, touches};
use portcullis_base::{Clock as _, Code, SessionId};
use portcullis_contract::{DefaultPolicy, Semantics, Tool};
use portcullis_event::facts::{Reply, SessionCreated, ToolResult};
use portcullis_event::{Body, Event, LOCAL_TENANT};
use portcullis_pipeline::{Approvals, Disposition, Opened};
use portcullis_store::{AskFilter, AskRow, SessionKey, Store, deliver_outbox};
use portcullis_store_testkit::{Fault, FaultKind, FaultyStore};

/// A root, its child, and that one's child: the world's own session.
async fn family() -> (World, SessionId) {
    let mut world = World::new().await;
    let root = world.session;
    let mut parent = root;
    for depth in 1..=2 {
        let session = SessionId::make(&*world.ids, world.clock.now());
        let created = SessionCreated {
            agent_id: None,
            agent_version: 0,
            environment_id: None,
            parent_session_id: Some(parent),
            root_session_id: root,
            depth,
            name: None,
            tags: Vec::new(),
            config_hash: portcullis_base::Digest::of(b""),
            has_setup: false,
            workspace: None,
            custom_tools: Vec::new(),
        };
        world.client(session, &created).await.expect("created");
        parent = session;
    }
    world.session = parent;
    (world, root)
}

fn asking(world: &World) -> Process {
    world.process([("asks", change(&world.effects, DefaultPolicy::Ask))])
}

/// What the log of the root holds besides its creation.
async fn told(world: &World, root: SessionId) -> Vec<Event> {
    let key = SessionKey { tenant: LOCAL_TENANT, session: root };
    let log = world.store.read(key, 0, 1_000).await.expect("read");
    log.into_iter().filter(|event| event.kind.as_str().starts_with("agent.")).collect()
}

async fn pending(world: &World) -> Vec<AskRow> {
    let filter = AskFilter { session: None, pending: true };
    world.store.asks(LOCAL_TENANT, filter).await.expect("asks")
}

#[tokio::test]
async fn l38_an_ask_of_a_descendant_is_visible_at_the_root_and_so_is_its_end() {
    for (reply, failed) in [(Reply::AllowOnce, false), (Reply::Deny, true)] {
        let (world, root) = family().await;
        let process = asking(&world);
        let session = process.open().await;
        let (disposition, intent) = call_in(&session, "asks", r#"{"text":"x"}"#).await.expect("no halt");
        let ask = parked(&disposition);

        // At once, while the child still holds its session.
        let copies = told(&world, root).await;
        let [copy] = &copies[..] else { panic!("{copies:?}") };
        assert_eq!(copy.session_thread_id, Some(world.session), "it says whose it is");
        let own = world.events().await.into_iter().find(|event| event.kind.as_str() == "agent.tool_use");
        assert_eq!(own.as_ref().map(|own| &own.payload), Some(&copy.payload), "a copy, to the letter");
        let rows = pending(&world).await;
        let [row] = &rows[..] else { panic!("{rows:?}") };
        let at = row.root.expect("it surfaces");
        assert_eq!((row.ask_id, at.session_id, at.tool_use_id), (ask, root, copy.id), "one ask, known by both events");
        assert_eq!(row.tool_use_id, own.map(|own| own.id));

        world.reply(ask, reply).await.expect("an answer");
        session.attend().await.expect("attended");
        session.release().await.expect("released");
        let results = told(&world, root).await;
        let [_, result] = &results[..] else { panic!("{results:?}") };
        let fact = ToolResult { tool_use_id: copy.id, intent_id: intent, is_error: failed };
        assert!(matches!(result.body(), Body::ToolResult(said) if *said == fact), "{result:?}");
        assert_eq!(result.session_thread_id, Some(world.session));

        assert_eq!(deliver_outbox(&*world.store).await.expect("delivered"), 0, "nothing is left to deliver");
        assert_eq!(told(&world, root).await.len(), 2, "and nothing came twice");
        let key = SessionKey { tenant: LOCAL_TENANT, session: root };
        let head = world.store.head(key).await.expect("head").expect("there");
        assert_eq!((head.blocked_n, head.next_due_at), (0, None), "the root itself waits for nothing");
    }
}

#[tokio::test]
async fn l38_an_ask_of_a_descendant_whose_answer_is_known_is_told_at_the_root_with_its_end() {
    for (reply, failed) in [(Reply::AllowOnce, false), (Reply::Deny, true)] {
        for tool in ["asks", "looks"] {
            let (mut world, root) = family().await;
            world.rules = "[[rules]]\nid = \"looks\"\naction = \"looks\"\neffect = \"ask\"\n".to_owned();
            world.answers = common::knows(reply.clone(), "test");
            let tools = [("asks", change(&world.effects, DefaultPolicy::Ask)), ("looks", common::look(&world.effects))];
            assert_eq!(observed(&world.process(tools).call(tool, "x").await).ok, !failed);
            let copies = told(&world, root).await;
            let [copy, result] = &copies[..] else { panic!("{tool} {reply:?}: {copies:?}") };
            assert!(matches!(copy.body(), Body::ToolUse(_)));
            let ends = |said: &ToolResult| said.tool_use_id == copy.id && said.is_error == failed;
            assert!(matches!(result.body(), Body::ToolResult(said) if ends(&said)), "{result:?}");
        }
    }
}

#[tokio::test]
async fn l38_an_ask_that_a_running_call_of_a_descendant_holds_is_visible_at_the_root() {
    let (world, root) = family().await;
    let tool = Tool::builder::<common::Note, String>("Asks midway.")
        .semantics(Semantics { dynamic_access: true, ..acts() })
        .plan_access(|_, _| vec![touches("script")])
        .parts_are_intents()
        .execute(|input, context| async move {
            context.gate(touches(&input.text)).await?;
            Ok("done".to_owned())
        })
        .build()
        .expect("a sound tool");
    let rules = "[[rules]]\nid = \"asks\"\naction = \"change\"\npath = \"/workspace/ask\"\neffect = \"ask\"\n";
    let world = World { rules: rules.to_owned(), ..world };
    let process = world.process([("script", tool)]);
    let session = process.open().await;
    let answering = async {
        loop {
            // Only what the root was told is looked at.
            if let [copy] = &told(&world, root).await[..] {
                let rows = pending(&world).await;
                let row = rows.iter().find(|row| row.root.is_some_and(|root| root.tool_use_id == copy.id));
                let row = row.expect("the copy names an ask");
                break world.reply(row.ask_id, Reply::AllowOnce).await.expect("an answer");
            }
            tokio::task::yield_now().await;
        }
    };
    let (called, ()) = tokio::join!(call_in(&session, "script", r#"{"text":"ask"}"#), answering);
    let (disposition, _) = called.expect("no halt");
    assert_eq!(observed(&disposition).code.known(), Some(Code::Ok));
    session.release().await.expect("released");
    assert!(matches!(told(&world, root).await[1].body(), Body::ToolResult(said) if !said.is_error));
}

#[tokio::test]
async fn l38_where_nobody_can_be_asked_a_descendant_s_ask_settles_at_once_and_the_root_is_not_bothered() {
    let (mut world, root) = family().await;
    world.approvals = Approvals::Unavailable;
    let seen = asking(&world).call("asks", "x").await;
    assert_eq!(observed(&seen).code.known(), Some(Code::ApprovalUnavailable));
    assert!(told(&world, root).await.is_empty());
}

#[tokio::test]
async fn l38_a_root_that_is_not_there_any_more_holds_nobody_up() {
    let (world, _) = family().await;
    let gone = SessionId::make(&*world.ids, world.clock.now());
    let orphan = SessionId::make(&*world.ids, world.clock.now());
    let created = SessionCreated {
        agent_id: None,
        agent_version: 0,
        environment_id: None,
        parent_session_id: Some(gone),
        root_session_id: gone,
        depth: 1,
        name: None,
        tags: Vec::new(),
        config_hash: portcullis_base::Digest::of(b""),
        has_setup: false,
        workspace: None,
        custom_tools: Vec::new(),
    };
    world.client(orphan, &created).await.expect("created");
    let world = World { session: orphan, ..world };
    let ask = parked(&asking(&world).call("asks", "x").await);
    assert_eq!(pending(&world).await.first().map(|row| row.ask_id), Some(ask), "it can be answered where it is");
    assert!(world.store.outbox(10).await.expect("outbox").is_empty(), "what is for nobody is not kept");
}

#[tokio::test]
async fn l38_a_session_that_is_nobody_s_child_asks_for_itself() {
    let world = World::new().await;
    parked(&asking(&world).call("asks", "x").await);
    let used: Vec<Event> = told(&world, world.session).await;
    let [used] = &used[..] else { panic!("{used:?}") };
    assert!(matches!(used.body(), Body::ToolUse(_)));
    assert_eq!((used.session_thread_id, pending(&world).await[0].root), (None, None));
}

/// Cut at every call of the store, in every way: the root knows of exactly the asks that the child's log knows of.
#[tokio::test]
async fn f02_l38_no_cut_parts_an_ask_from_its_copy() {
    for kind in FaultKind::ALL {
        for nth in 1..100 {
            let (world, root) = family().await;
            let faulty = Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(Fault { nth, kind })));
            let tools = [("asks", change(&world.effects, DefaultPolicy::Ask))];
            let process = world.process_over(Arc::clone(&faulty) as Arc<dyn Store>, tools);
            let life = async {
                let opened = process.gate.open(world.session, process.owner.clone()).await;
                let Ok(Opened::Ready(session)) = opened else { return };
                let Ok((Disposition::Parked(ask), _)) = call_in(&session, "asks", r#"{"text":"x"}"#).await else {
                    return;
                };
                world.reply(ask, Reply::Deny).await.expect("an answer");
                let _ = session.attend().await;
                let _ = session.release().await;
            };
            life.await;
            // Whoever comes next delivers what is left.
            deliver_outbox(&*world.store).await.expect("delivered");
            let log = world.events().await;
            let count = |kind: &str| log.iter().filter(|event| event.kind.as_str() == kind).count();
            let (asked, ended) = (count("tool.permission.asked"), count("tool.observation"));
            let copies = told(&world, root).await;
            let copied = |kind: &str| copies.iter().filter(|event| event.kind.as_str() == kind).count();
            let label = format!("{kind:?} at {nth}");
            assert_eq!((copied("agent.tool_use"), copied("agent.tool_result")), (asked, ended), "{label}");
            if !faulty.struck() {
                break;
            }
        }
    }
}
