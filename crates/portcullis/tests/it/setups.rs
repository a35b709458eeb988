//! What a session runs as (ruling 51): recorded when it is made, acted by in every process, changed by an event.

use std::sync::Arc;

use portcullis::{
    CallOutcome, Code, ModelSetup, Profile, Runtime, RuntimeBuilder, RuntimeError, Semantics, SessionId, Setup,
    SetupOrigin, Store, StoreError, SystemClock, SystemIds, Tool, session_setup, session_setup_at,
};
use portcullis_base::{AppendId, Digest, IsolationLevel};
use portcullis_event::facts::SessionCreated;
use portcullis_event::{Actor, Body, LOCAL_TENANT, Stamp};
use portcullis_store::{Blob, Commit, HostLiveness, Log as _, MemoryArtifacts, MemoryStore, SessionKey};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

const INPUT: &str = r#"{"text":"a"}"#;

fn memory() -> Arc<MemoryStore> {
    let clock = Arc::new(SystemClock::new());
    Arc::new(MemoryStore::new(clock, Arc::new(SystemIds::new()), Arc::new(HostLiveness::new()), None))
}

fn over(store: &Arc<MemoryStore>) -> RuntimeBuilder {
    let tool = Tool::builder::<Text, String>("Says it again.").semantics(Semantics::read_only());
    let tool = tool.execute(|input, _| async move { Ok(input.text) }).build().expect("a tool");
    let builder = Runtime::builder().store(Arc::clone(store) as _, Arc::new(MemoryArtifacts::default()));
    builder.tool("echo", tool).expect("a name")
}

fn key(session: SessionId) -> SessionKey {
    SessionKey { tenant: LOCAL_TENANT, session }
}

async fn echoes(runtime: &Runtime, session: SessionId) {
    let CallOutcome::Observed(seen) = runtime.call(session, "echo", INPUT).await.expect("no fault") else {
        panic!("it does not settle")
    };
    assert_eq!(seen.session_view().code.known(), Some(Code::Ok));
}

/// How often a log names another setup.
async fn changes(store: &dyn Store, session: SessionId) -> usize {
    let events = store.read(key(session), 0, 1_000).await.expect("read");
    events.iter().filter(|event| matches!(event.body(), Body::SessionUpdated(_))).count()
}

/// A log as it was written before there were setups.
async fn old_log(store: &dyn Store, session: SessionId) {
    let created = SessionCreated {
        agent_id: None,
        agent_version: 0,
        environment_id: None,
        parent_session_id: None,
        root_session_id: session,
        depth: 0,
        name: None,
        tags: Vec::new(),
        config_hash: Digest::of(b"rules"),
        has_setup: false,
        workspace: Some("/somewhere".to_owned()),
        custom_tools: Vec::new(),
    };
    let (clock, ids, actor) = (SystemClock::new(), SystemIds::new(), Actor::system());
    let stamp = Stamp { ids: &ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
    let append = AppendId::from_u128(7);
    store.commit(Commit::client(key(session), append, vec![stamp.draft(&created)])).await.expect("created");
}

#[tokio::test]
async fn a_session_is_made_with_its_setup_and_calls_of_the_same_runtime_add_nothing() {
    let store = memory();
    let runtime = over(&store).principal("ann").profile(Profile::Code).build().expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    let known = session_setup(&*store, key(session)).await.expect("known");
    assert_eq!(known.origin, SetupOrigin::Recorded(runtime.setup().hash()));
    assert_eq!((known.setup.principal.as_str(), known.setup.profile), ("ann", Profile::Code));
    echoes(&runtime, session).await;
    echoes(&runtime, session).await;
    assert_eq!(changes(&*store, session).await, 0);
}

#[tokio::test]
async fn a_runtime_that_runs_a_session_otherwise_says_so_in_its_log_before_it_runs_anything() {
    let store = memory();
    let ann = over(&store).principal("ann").build().expect("builds");
    let bob = over(&store).principal("bob").build().expect("builds");
    let mine = Setup { phase: Some("review".to_owned()), ..ann.setup().clone() };
    let session = ann.create_session_by("x", &mine).await.expect("made");
    echoes(&ann, session).await;
    assert_eq!(changes(&*store, session).await, 0, "what is the session's own is no difference");
    let asked_by_ann = store.head(key(session)).await.expect("read").expect("a head").last_seq;
    echoes(&bob, session).await;
    echoes(&bob, session).await;
    assert_eq!(changes(&*store, session).await, 1);
    let now = session_setup(&*store, key(session)).await.expect("known").setup;
    assert_eq!((now.principal.as_str(), now.phase.as_deref()), ("bob", Some("review")));
    let then = session_setup_at(&*store, key(session), asked_by_ann).await.expect("known").setup;
    assert_eq!(then, mine, "what was asked then runs as it was asked");
    let events = store.read(key(session), asked_by_ann, 1_000).await.expect("read");
    assert!(matches!(events[0].body(), Body::SessionUpdated(_)), "before anything of that runtime");
}

#[tokio::test]
async fn a_log_from_before_has_a_setup_that_is_derived_and_recorded_by_the_first_who_runs_it() {
    let store = memory();
    let session = SessionId::from_u128(9);
    old_log(&*store, session).await;
    let derived = session_setup(&*store, key(session)).await.expect("known");
    assert_eq!((derived.origin, derived.setup.workspace.as_deref()), (SetupOrigin::Derived, Some("/somewhere")));
    let runtime = over(&store).build().expect("builds");
    echoes(&runtime, session).await;
    let recorded = session_setup(&*store, key(session)).await.expect("known");
    assert!(matches!(recorded.origin, SetupOrigin::Recorded(_)));
    assert_eq!(recorded.setup.workspace.as_deref(), Some("/somewhere"), "a runtime without a folder takes none away");
    // A process that only appends changes nothing.
    let other = SessionId::from_u128(10);
    old_log(&*store, other).await;
    let appends = over(&store).appends_only().build().expect("builds");
    appends.say(other, "ann", "hello").await.expect("said");
    appends.withdraw_asks(other).await.expect("looked");
    assert_eq!(changes(&*store, other).await, 0);
}

#[tokio::test]
async fn of_two_who_change_a_setup_at_once_one_is_told() {
    let store = memory();
    let runtime = over(&store).build().expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    let seen = session_setup(&*store, key(session)).await.expect("known");
    let with = |name: &str| {
        let model = ModelSetup { name: name.to_owned(), ..ModelSetup::default() };
        Setup { model: Some(model), ..seen.setup.clone() }
    };
    let (one, other) = (with("a/b"), with("c/d"));
    let both = tokio::join!(runtime.change_setup(session, &seen, &one), runtime.change_setup(session, &seen, &other));
    let refused =
        |changed: &Result<(), RuntimeError>| matches!(changed, Err(RuntimeError::SetupChanged(of)) if *of == session);
    assert!(both.0.is_ok() && refused(&both.1) || both.1.is_ok() && refused(&both.0), "{both:?}");
    assert_eq!(changes(&*store, session).await, 1);
    let won = session_setup(&*store, key(session)).await.expect("known").setup;
    assert_eq!(won, if both.0.is_ok() { one.clone() } else { other });
    // The same change twice is one.
    runtime.change_setup(session, &seen, &won).await.expect("it is so already");
    assert_eq!(changes(&*store, session).await, 1);
}

#[tokio::test]
async fn a_setup_that_is_gone_or_not_understood_refuses_to_open_and_the_log_stays() {
    for content in [None, Some(&br#"{"v":2}"#[..]), Some(b"no setup")] {
        let store = memory();
        let runtime = over(&store).build().expect("builds");
        let session = SessionId::from_u128(11);
        old_log(&*store, session).await;
        let (clock, ids, actor) = (SystemClock::new(), SystemIds::new(), Actor::system());
        let stamp = Stamp { ids: &ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
        let bytes = content.unwrap_or(b"never stored").to_vec();
        let hash = Digest::of(&bytes);
        let changed = portcullis_event::facts::SessionUpdated { config_hash: Some(hash), ..Default::default() };
        let mut commit = Commit::client(key(session), AppendId::from_u128(8), vec![stamp.draft(&changed)]);
        commit.blobs = content.map(|_| Blob { sha256: hash, bytes }).into_iter().collect();
        store.commit(commit).await.expect("written");
        let before = store.head(key(session)).await.expect("read").expect("a head").last_seq;
        let refused = runtime.call(session, "echo", INPUT).await;
        match content {
            None => assert!(matches!(refused, Err(RuntimeError::Store(StoreError::Corrupt(_)))), "{refused:?}"),
            Some(_) => assert!(matches!(refused, Err(RuntimeError::Setup(_))), "{refused:?}"),
        }
        let after = store.head(key(session)).await.expect("read").expect("a head");
        assert_eq!(after.last_seq, before);
        assert!(after.lease_owner.is_none(), "it was given back");
    }
}

#[tokio::test]
async fn commands_get_no_more_than_the_machine_and_the_setup_both_allow() {
    use portcullis::{HandSettings, NetworkAccess};
    let store = memory();
    let machine =
        HandSettings { network: NetworkAccess::Enabled, minimum: IsolationLevel::NoPivot, ..HandSettings::default() };
    let free = over(&store).sandbox(machine.clone()).build().expect("builds");
    assert_eq!(free.environment().network, NetworkAccess::Enabled);
    let mut setup = free.setup().clone();
    setup.environment.network = NetworkAccess::Disabled;
    setup.environment.minimum = IsolationLevel::Full;
    setup.environment.limits.processes = Some(10);
    let strict = over(&store).sandbox(machine).setup(setup.clone()).build().expect("builds");
    let got = strict.environment();
    assert_eq!(
        (got.network, got.minimum, got.limits.processes),
        (NetworkAccess::Disabled, IsolationLevel::Full, Some(10))
    );
    // And the other way round: a setup of a generous machine does not open a strict one.
    setup.environment.network = NetworkAccess::Enabled;
    let closed = over(&store).setup(setup).build().expect("builds");
    assert_eq!(closed.environment().network, NetworkAccess::Disabled);
}
