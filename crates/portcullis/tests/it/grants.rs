//! Remembered allows of an embedder, on a tool that runs commands.

use std::sync::Arc;

use portcullis::CancellationToken;
use portcullis::{
    AccessRequest, Action, AskAnswer, AskId, CallOutcome, Code, DefaultPolicy, GrantError, GrantId, MemoryArtifacts,
    MemoryStore, Reply, Resource, Risk, RiskSet, Runtime, RuntimeError, Semantics, SessionId, SystemClock, SystemIds,
    Tool,
};
use portcullis_base::{MessageId, WorkerId};
use portcullis_pipeline::{Append, Disposition, Opened, Proposal, Scheduling};
use portcullis_store::HostLiveness;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Commands {
    commands: Vec<Vec<String>>,
}

/// Names every command as the gate wants it; runs nothing.
fn shell(default: DefaultPolicy) -> Tool {
    Tool::builder::<Commands, String>("Runs commands.")
        .semantics(Semantics { default_policy: default, ..Semantics::mutating() })
        .plan_access(|input, _| {
            let request = |words: &Vec<String>| {
                let resource = Resource::argv(words, words.join(" "));
                AccessRequest::new(Action::new("shell"), resource, RiskSet::from([Risk::Execute]))
            };
            input.commands.iter().map(request).collect()
        })
        .execute(|input, _| async move { Ok(format!("{} ran", input.commands.len())) })
        .build()
        .expect("a tool")
}

fn memory() -> Arc<MemoryStore> {
    let liveness = Arc::new(HostLiveness::new());
    Arc::new(MemoryStore::new(Arc::new(SystemClock::new()), Arc::new(SystemIds::new()), liveness, None))
}

fn runtime(store: &Arc<MemoryStore>) -> Runtime {
    let builder = Runtime::builder().store(Arc::clone(store) as _, Arc::new(MemoryArtifacts::default()));
    builder.tool("shell", shell(DefaultPolicy::Ask)).expect("a name").build().expect("builds")
}

async fn call(runtime: &Runtime, session: SessionId, commands: &[&[&str]]) -> CallOutcome {
    let input = serde_json::json!({"commands": commands}).to_string();
    runtime.call(session, "shell", &input).await.expect("no fault")
}

#[track_caller]
fn asked(outcome: &CallOutcome) -> AskId {
    match outcome {
        CallOutcome::Waiting(ask) => *ask,
        other => panic!("it asks: {other:?}"),
    }
}

#[track_caller]
fn ran(outcome: &CallOutcome) -> Vec<GrantId> {
    match outcome {
        CallOutcome::Observed(seen) if seen.ok() => {
            let permission = seen.session_view().permission.clone();
            permission.map(|p| p.grant_ids).unwrap_or_default()
        }
        other => panic!("it runs: {other:?}"),
    }
}

const TEST: &[&str] = &["npm", "test"];

#[tokio::test]
async fn l33_l34_nineteen_of_twenty_equal_commands_run_and_a_neighbour_with_one_more_asks() {
    let store = memory();
    let runtime = runtime(&store);
    let session = runtime.create_session("x").await.expect("made");
    let ask = asked(&call(&runtime, session, &[TEST]).await);
    let grant = runtime.reply(ask, AskAnswer::by("ada", Reply::AllowSaved)).await.expect("recorded").expect("a grant");
    runtime.attend(session).await.expect("runs");
    for _ in 0..19 {
        assert_eq!(ran(&call(&runtime, session, &[TEST]).await), [grant]);
    }
    let elsewhere = runtime.create_session("y").await.expect("made");
    assert_eq!(ran(&call(&runtime, elsewhere, &[TEST]).await), [grant], "it is for the project");
    for neighbour in [&[TEST, &["curl", "x"]][..], &[&["npm", "test", "--watch"]], &[&["npm"]], &[&["npm", "*"]]] {
        asked(&call(&runtime, session, neighbour).await);
    }
    let all = runtime.gate().grants().all().await.expect("read");
    assert_eq!((all.len(), all[0].grant.uses), (1, 20));
}

/// Calls of one turn share appends, and every use of a grant is in one of them.
#[tokio::test]
async fn l34_uses_in_the_calls_of_a_turn_are_counted() {
    let store = memory();
    let runtime = runtime(&store);
    let session = runtime.create_session("x").await.expect("made");
    let ask = asked(&call(&runtime, session, &[TEST]).await);
    runtime.reply(ask, AskAnswer::by("ada", Reply::AllowSaved)).await.expect("recorded").expect("a grant");
    runtime.attend(session).await.expect("runs");
    let owner = HostLiveness::new().this_process(WorkerId::from_u128(7), "a test");
    let opened = runtime.gate().open(session, owner).await.expect("no fault");
    let Opened::Ready(held) = opened else { panic!("nobody holds it") };
    let mut facts = Append::new();
    let turn = held.begin_turn(&mut facts);
    let proposal = |n: u32| Proposal {
        actor: portcullis_base::Actor::user("tester"),
        message_id: MessageId::from_u128(7),
        call_id: n.to_string(),
        tool: "shell".to_owned(),
        input: serde_json::json!({"commands": [TEST]}).to_string(),
        stated_reason: None,
    };
    let calls = (0..3).map(proposal).collect();
    let end = held.calls(facts, &turn, calls, Scheduling::Segmented, &CancellationToken::new()).await.expect("runs");
    assert!(end.calls.iter().all(|call| matches!(call, Disposition::Settled(seen) if seen.ok())), "{:?}", end.calls);
    held.commit(end.facts).await.expect("durable");
    held.release().await.expect("given back");
    assert_eq!(runtime.gate().grants().all().await.expect("read")[0].grant.uses, 3);
}

#[tokio::test]
async fn l34_revoking_in_one_process_holds_in_the_next_decision_of_another() {
    let store = memory();
    let (one, two) = (runtime(&store), runtime(&store));
    let session = one.create_session("x").await.expect("made");
    let ask = asked(&call(&one, session, &[TEST]).await);
    let grant = one.reply(ask, AskAnswer::by("ada", Reply::AllowSession)).await.expect("recorded").expect("a grant");
    one.attend(session).await.expect("runs");
    assert_eq!(ran(&call(&two, session, &[TEST]).await), [grant]);
    let other = two.create_session("y").await.expect("made");
    asked(&call(&two, other, &[TEST]).await);
    one.revoke(grant, "ada").await.expect("revoked");
    asked(&call(&two, session, &[TEST]).await);
    let again = one.revoke(grant, "ada").await;
    assert!(matches!(again, Err(RuntimeError::Grant(GrantError::Revoked { .. }))), "{again:?}");
}

#[tokio::test]
async fn l35_a_second_answer_remembers_nothing() {
    let store = memory();
    let runtime = runtime(&store);
    let session = runtime.create_session("x").await.expect("made");
    let ask = asked(&call(&runtime, session, &[TEST]).await);
    runtime.reply(ask, AskAnswer::by("ada", Reply::Deny)).await.expect("recorded");
    runtime.reply(ask, AskAnswer::by("bob", Reply::AllowSaved)).await.expect_err("it is settled");
    assert!(runtime.gate().grants().all().await.expect("read").is_empty());
    asked(&call(&runtime, session, &[TEST]).await);
}

#[tokio::test]
async fn an_approver_that_would_remember_what_cannot_be_still_says_yes() {
    let pinned = shell(DefaultPolicy::AskPinned);
    let builder = Runtime::builder().tool("shell", pinned).expect("a name");
    let runtime = builder.approver(|_| std::future::ready(Reply::AllowSaved)).build().expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    let outcome = call(&runtime, session, &[TEST]).await;
    let CallOutcome::Observed(seen) = outcome else { panic!("{outcome:?}") };
    assert_eq!(seen.session_view().code.known(), Some(Code::Ok));
    assert!(runtime.gate().grants().all().await.expect("read").is_empty());
}

/// Asks before it starts, and then for every command midway.
fn script() -> Tool {
    Tool::builder::<Commands, String>("Runs commands one after the other.")
        .semantics(Semantics { dynamic_access: true, default_policy: DefaultPolicy::Ask, ..Semantics::mutating() })
        .plan_access(|_, _| {
            let resource = Resource::own(portcullis::NamedKind::McpTool, "script");
            vec![AccessRequest::new(Action::new("script"), resource, RiskSet::from([Risk::Write]))]
        })
        .parts_are_intents()
        .execute(|input, context| async move {
            for words in &input.commands {
                let resource = Resource::argv(words, words.join(" "));
                context.gate(AccessRequest::new(Action::new("shell"), resource, [Risk::Execute].into())).await?;
            }
            Ok(format!("{} ran", input.commands.len()))
        })
        .build()
        .expect("a tool")
}

#[tokio::test]
async fn l34_a_yes_to_what_a_running_call_asks_is_remembered_like_any_other() {
    let store = memory();
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let builder = Runtime::builder().store(Arc::clone(&store) as _, Arc::new(MemoryArtifacts::default()));
    let runtime = builder
        .tool("script", script())
        .expect("a name")
        .approver(move |ask| {
            let midway = ask.facts.get("stage").is_some();
            heard.lock().expect("no test panics with it").push(midway);
            async move { if midway { Reply::AllowSession } else { Reply::AllowOnce } }
        })
        .build()
        .expect("builds");
    let session = runtime.create_session("one").await.expect("a session");
    let input = serde_json::json!({"commands": [TEST, TEST, TEST]}).to_string();
    let run = || async {
        let called = tokio::time::timeout(std::time::Duration::from_secs(20), runtime.call(session, "script", &input));
        called.await.expect("it does not hang").expect("no fault")
    };
    ran(&run().await);
    assert_eq!(
        *asked.lock().expect("asked"),
        [false, true],
        "once before it starts, and once for three equal commands"
    );
    ran(&run().await);
    assert_eq!(*asked.lock().expect("asked"), [false, true, false], "the session remembers the command");
}
