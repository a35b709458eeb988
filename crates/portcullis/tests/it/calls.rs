//! Calls of an embedder: approvers that think, cancels, sessions that someone holds, stores that fail.

use std::sync::Arc;
use std::time::Duration;

use portcullis::{
    AskAnswer, AskId, CallOutcome, CancellationToken, Code, DefaultPolicy, Interrupt, MemoryArtifacts, Reply, Runtime,
    RuntimeBuilder, RuntimeError, Semantics, SessionId, Store, StoreError, SystemClock, SystemIds, Tool,
};
use portcullis_base::AppendId;
use portcullis_event::facts::{SessionCreated, ToolQueued};
use portcullis_event::{Actor, Body, LOCAL_TENANT, Stamp};
use portcullis_store::{Commit, HostLiveness, Log as _, MemoryStore, SessionKey};
use portcullis_store_testkit::{Fault, FaultKind, FaultyStore};
use tokio::sync::Notify;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

const INPUT: &str = r#"{"text":"a"}"#;

fn asks() -> Semantics {
    Semantics { default_policy: DefaultPolicy::Ask, interrupt: Interrupt::Cancel, ..Semantics::mutating() }
}

fn echo(semantics: Semantics) -> Tool {
    let tool = Tool::builder::<Text, String>("Says it again.").semantics(semantics);
    tool.execute(|input, _| async move { Ok(input.text) }).build().expect("a tool")
}

/// Runs until it is cancelled; tells when it began.
fn endless(began: &Arc<Notify>, semantics: Semantics) -> Tool {
    let began = Arc::clone(began);
    let tool = Tool::builder::<Text, String>("Never ends.").semantics(semantics);
    tool.execute(move |_, context| {
        let began = Arc::clone(&began);
        async move {
            began.notify_one();
            context.cancelled().await;
            Ok("too late".to_owned())
        }
    })
    .build()
    .expect("a tool")
}

fn memory() -> Arc<MemoryStore> {
    let liveness = Arc::new(HostLiveness::new());
    Arc::new(MemoryStore::new(Arc::new(SystemClock::new()), Arc::new(SystemIds::new()), liveness, None))
}

fn over(store: Arc<dyn Store>) -> RuntimeBuilder {
    Runtime::builder().store(store, Arc::new(MemoryArtifacts::default()))
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it does not hang")
}

fn code(outcome: &CallOutcome) -> Option<Code> {
    match outcome {
        CallOutcome::Observed(seen) => seen.session_view().code.known(),
        _ => None,
    }
}

fn waiting(outcome: CallOutcome) -> AskId {
    match outcome {
        CallOutcome::Waiting(ask) => ask,
        other => panic!("it waits: {other:?}"),
    }
}

#[tokio::test]
async fn an_approver_that_thinks_holds_up_nobody_and_a_cancel_withdraws_its_call() {
    let thinking = Arc::new(Notify::new());
    let told = Arc::clone(&thinking);
    let builder = Runtime::builder().tool("write", echo(asks())).expect("a name");
    let builder = builder.tool("read", echo(Semantics::read_only())).expect("a name").approver(move |_| {
        told.notify_one();
        std::future::pending::<Reply>()
    });
    let runtime = builder.build().expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    let running = runtime.begin(session, "write", INPUT);
    soon(thinking.notified()).await;
    let other = soon(runtime.call(session, "read", INPUT)).await.expect("the session is free");
    assert_eq!(code(&other), Some(Code::Ok));
    running.cancel();
    let outcome = soon(running.outcome()).await.expect("settled");
    assert_eq!(code(&outcome), Some(Code::ApprovalSuperseded));
}

#[tokio::test]
async fn an_approver_s_yes_runs_the_call_and_its_no_refuses_it() {
    for (reply, expected) in [(Reply::AllowOnce, Code::Ok), (Reply::Deny, Code::UserDenied)] {
        let builder = Runtime::builder().tool("write", echo(asks())).expect("a name");
        let builder = builder.approver(move |_| std::future::ready(reply.clone()));
        let runtime = builder.build().expect("builds");
        let session = runtime.create_session("x").await.expect("made");
        let outcome = soon(runtime.call(session, "write", INPUT)).await.expect("settled");
        assert_eq!(code(&outcome), Some(expected));
    }
}

#[tokio::test]
async fn a_cancel_interrupts_the_call_of_an_answered_ask() {
    let began = Arc::new(Notify::new());
    let runtime = Runtime::builder().tool("endless", endless(&began, asks())).expect("a name").build().expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    let ask = waiting(runtime.call(session, "endless", INPUT).await.expect("parked"));
    runtime.reply(ask, AskAnswer::by("ada", Reply::AllowOnce)).await.expect("recorded");
    let cancel = CancellationToken::new();
    let (settled, ()) = soon(async {
        tokio::join!(runtime.see_through_until(ask, &cancel), async {
            began.notified().await;
            cancel.cancel();
        })
    })
    .await;
    let settled = settled.expect("settled");
    assert_eq!((settled.observed.code.known(), settled.ran_here), (Some(Code::Cancelled), true));
}

#[tokio::test]
async fn a_cancel_before_an_answered_call_began_does_not_spend_the_answer() {
    let runtime = Runtime::builder().tool("write", echo(asks())).expect("a name").build().expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    let ask = waiting(runtime.call(session, "write", INPUT).await.expect("parked"));
    runtime.reply(ask, AskAnswer::by("ada", Reply::AllowOnce)).await.expect("recorded");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    assert!(runtime.see_through_until(ask, &cancelled).await.is_err(), "not run");
    let settled = soon(runtime.see_through(ask, Duration::from_secs(5))).await.expect("settled");
    assert!(settled.observed.ok);
}

#[tokio::test]
async fn a_cancel_interrupts_a_queued_call_that_is_taken_up() {
    let began = Arc::new(Notify::new());
    let store = memory();
    let tool = endless(&began, Semantics { interrupt: Interrupt::Cancel, ..Semantics::read_only() });
    let runtime = over(store.clone()).tool("endless", tool).expect("a name").build().expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    queue(&*store, session, "endless").await;
    let running = runtime.begin(session, "endless", INPUT);
    soon(began.notified()).await;
    running.cancel();
    // What was taken up first is interrupted; the caller's own call then does not begin.
    assert_eq!(code(&soon(running.outcome()).await.expect("settled")), Some(Code::CancelledBeforeStart));
    let events = store.read(SessionKey { tenant: LOCAL_TENANT, session }, 0, 1_000).await.expect("read");
    let codes = events.iter().filter_map(|event| match event.body() {
        Body::Observed(seen) => seen.code.known(),
        _ => None,
    });
    assert_eq!(codes.collect::<Vec<_>>(), [Code::Cancelled, Code::CancelledBeforeStart]);
}

#[tokio::test]
async fn calls_in_a_served_session_are_run_by_whoever_serves_it() {
    let store = memory();
    let build = |what: &str| {
        let builder = over(store.clone()).called(what).tool("read", echo(Semantics::read_only())).expect("a name");
        builder.tool("write", echo(asks())).expect("a name").build().expect("builds")
    };
    let (server, client) = (build("a server"), build("a client"));
    let session = server.create_session("x").await.expect("made");
    let stop = CancellationToken::new();
    let serving = tokio::spawn({
        let (server, stop) = (server.clone(), stop.clone());
        async move { server.serve(session, &stop).await }
    });
    let key = SessionKey { tenant: LOCAL_TENANT, session };
    while store.head(key).await.expect("read").is_some_and(|head| head.lease_owner.is_none()) {
        tokio::task::yield_now().await;
    }
    for caller in [&client, &server] {
        let seen = soon(caller.call(session, "read", INPUT)).await.expect("settled");
        assert_eq!(code(&seen), Some(Code::Ok));
    }
    let ask = waiting(soon(client.call(session, "write", INPUT)).await.expect("parked"));
    client.reply(ask, AskAnswer::by("ada", Reply::AllowOnce)).await.expect("recorded");
    let settled = soon(client.see_through_until(ask, &CancellationToken::new())).await.expect("settled");
    assert!(settled.observed.ok && !settled.ran_here);
    stop.cancel();
    soon(serving).await.expect("no panic").expect("given back");
    let events = store.read(key, 0, 1_000).await.expect("read");
    assert_eq!(events.iter().filter(|event| event.kind.as_str() == "tool.queued").count(), 3);
}

/// Queues a call as another process does.
async fn queue(store: &dyn Store, session: SessionId, name: &str) {
    let (ids, clock, actor) = (SystemIds::new(), SystemClock::new(), Actor::user("ada"));
    let stamp = Stamp { ids: &ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
    let input = serde_json::json!({"text": "a"});
    let draft = stamp.draft(&ToolQueued { name: name.to_owned(), input, by: "user:ada".to_owned() });
    let key = SessionKey { tenant: LOCAL_TENANT, session };
    let append = AppendId::from_u128(draft.id.as_u128());
    store.commit(Commit::client(key, append, vec![draft])).await.expect("queued");
}

/// Whatever fails after a call is settled, its caller is told what became of it.
#[tokio::test]
async fn a_settled_call_is_reported_as_settled_whatever_fails_after_it() {
    let mut failed_after = 0;
    for nth in 1..=6 {
        let inner = memory();
        let probe = {
            let inner = Arc::clone(&inner);
            let tool = Tool::builder::<Text, String>("Is queued for meanwhile.").semantics(Semantics::read_only());
            tool.execute(move |input, context| {
                let inner = Arc::clone(&inner);
                let session = context.caller().session_id;
                async move {
                    queue(&*inner, session, "read").await;
                    Ok(input.text)
                }
            })
            .build()
            .expect("a tool")
        };
        let plain = over(inner.clone()).build().expect("builds");
        let session = plain.create_session("x").await.expect("made");
        let faulty = Arc::new(FaultyStore::new(Arc::clone(&inner), Some(Fault { nth, kind: FaultKind::ErrorBefore })));
        let builder = over(faulty.clone()).tool("probe", probe).expect("a name");
        let runtime = builder.tool("read", echo(Semantics::read_only())).expect("a name").build().expect("builds");
        let outcome = soon(runtime.call(session, "probe", INPUT)).await;
        let key = SessionKey { tenant: LOCAL_TENANT, session };
        let events = inner.read(key, 0, 1_000).await.expect("read");
        if events.iter().any(|event| event.kind.as_str() == "tool.observation") {
            failed_after += u32::from(faulty.struck());
            assert_eq!(code(&outcome.expect("told")), Some(Code::Ok), "failure {nth}");
        } else {
            assert!(outcome.is_err(), "failure {nth}");
        }
    }
    assert!(failed_after >= 2, "the take-up and the release failed once each");
}

/// Every workspace is `/workspace` to its tools: a yes for one is none for another.
#[tokio::test]
async fn l36_an_approval_counts_in_the_workspace_it_was_given_for() {
    let store = memory();
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("another")];
    let [one, two] = folders.each_ref().map(|folder| {
        let builder = Runtime::builder().workspace(folder.path());
        builder.store(Arc::clone(&store) as _, Arc::new(MemoryArtifacts::default())).build().expect("builds")
    });
    let session = one.create_session("x").await.expect("made");
    let outcome = one.call(session, "write", r#"{"file_path":"a.txt","content":"x"}"#).await.expect("no fault");
    let CallOutcome::Waiting(ask) = outcome else { panic!("it asks: {outcome:?}") };
    one.reply(ask, AskAnswer::by("ada", Reply::AllowOnce)).await.expect("recorded");
    two.attend(session).await.expect("no fault");
    let settled = one.see_through(ask, Duration::from_secs(5)).await.expect("settled").observed;
    assert_eq!(settled.code.known(), Some(Code::StaleFileBaseline), "{}", settled.summary);
    assert!(folders.iter().all(|folder| !folder.path().join("a.txt").exists()), "nothing was written");
}

#[tokio::test]
async fn l38_an_answer_to_the_copy_at_the_root_answers_the_ask_of_the_child() {
    for at_root in [true, false] {
        let store = memory();
        let runtime =
            over(Arc::clone(&store) as _).tool("echo", echo(asks())).expect("a name").build().expect("builds");
        let root = runtime.create_session("root").await.expect("a session");
        let child = SessionId::from_u128(77);
        let created = SessionCreated {
            agent_id: None,
            agent_version: 0,
            environment_id: None,
            parent_session_id: Some(root),
            root_session_id: root,
            depth: 1,
            name: None,
            tags: Vec::new(),
            config_hash: portcullis_base::Digest::of(b""),
            has_setup: false,
            workspace: None,
            custom_tools: Vec::new(),
        };
        let (clock, ids, actor) = (SystemClock::new(), SystemIds::new(), Actor::system());
        let stamp = Stamp { ids: &ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
        let key = |session| SessionKey { tenant: LOCAL_TENANT, session };
        let append = AppendId::from_u128(7);
        store.commit(Commit::client(key(child), append, vec![stamp.draft(&created)])).await.expect("created");

        let CallOutcome::Waiting(ask) = soon(runtime.call(child, "echo", INPUT)).await.expect("no fault") else {
            panic!("it asks")
        };
        let shown = store.read(key(if at_root { root } else { child }), 0, 100).await.expect("read");
        let shown = shown.iter().find(|event| event.kind.as_str() == "agent.tool_use").expect("it is shown there");
        let answer = || AskAnswer::by("ada", Reply::AllowOnce);
        let (answered, _) = runtime.reply_to(shown.id, answer()).await.expect("recorded");
        assert_eq!(answered, ask);
        let settled = soon(runtime.see_through(ask, Duration::from_secs(5))).await.expect("it ran");
        assert_eq!(settled.observed.code.known(), Some(Code::Ok));
        let again = runtime.reply_to(shown.id, answer()).await;
        assert!(matches!(again, Err(RuntimeError::Store(StoreError::AskSettled { .. }))), "{again:?}");
        let nothing = runtime.reply_to(portcullis::EventId::from_u128(1), answer()).await;
        assert!(matches!(nothing, Err(RuntimeError::NothingAsked(_))), "{nothing:?}");
    }
}
