//! A small world for tests of the gate: any store, a clock that stands still, and tools that count.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use portcullis_base::{
    Clock, Entropy, IdGen, IntentId, LocationId, ManualClock, MessageId, SeededIds, SessionId, SideEffect, TenantId,
    Timestamp, WorkerId, limits,
};
use portcullis_contract::{Content, DefaultPolicy, Resource, Semantics, Tool, ToolFailure, ToolName, ToolOrigin};
use portcullis_event::facts::{AskReplied, Reply, SessionCreated};
use portcullis_event::{Actor, Body, CheckpointKey, Event, LOCAL_TENANT, Observed, Stamp};
use portcullis_pipeline::{
    Append, Approvals, AskAnswer, Disposition, Gate, GateParts, Halt, HeldSessions, KnownAnswers, Opened, Placement,
    Proposal, RegistrationGuard, Registry, ScopeParts, Session, ToolChoice,
};
use portcullis_policy::{Layer, Policy, PolicyBuilder, parse_rules};
use portcullis_secret::{Redactor, Sealer, SealingKey, SecretText};
use portcullis_store::{Artifacts, Commit, LeaseOwner, MemoryArtifacts, MemoryStore, SessionKey, Store, StoreError};
use portcullis_store_testkit::FixedLiveness;
use schemars::JsonSchema;
use serde::Deserialize;

pub const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
pub const LOCATION: LocationId = LocationId::from_u128(7);

#[derive(Deserialize, JsonSchema)]
pub struct Note {
    pub text: String,
}

/// What happened to the world: how often each tool's executor ran, and what it did.
#[derive(Clone, Default)]
pub struct Effects {
    pub log: Arc<Mutex<Vec<String>>>,
    pub looks: Arc<AtomicUsize>,
}

impl Effects {
    pub fn add(&self, what: impl Into<String>) {
        self.log.lock().expect("no test panics with it").push(what.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.log.lock().expect("no test panics with it").clone()
    }

    pub fn count(&self) -> usize {
        self.all().len()
    }
}

pub fn name(text: &str) -> ToolName {
    text.parse().expect("a name")
}

/// Only looks: one append.
pub fn look(effects: &Effects) -> Tool {
    let effects = effects.clone();
    Tool::builder::<Note, String>("Looks.")
        .semantics(Semantics::read_only())
        .execute(move |input, _| {
            effects.looks.fetch_add(1, Ordering::SeqCst);
            async move { Ok(format!("seen {}", input.text)) }
        })
        .build()
        .expect("a sound tool")
}

/// Changes the world: `policy` says whether it asks.
pub fn change(effects: &Effects, policy: DefaultPolicy) -> Tool {
    let effects = effects.clone();
    Tool::builder::<Note, String>("Changes something.")
        .semantics(Semantics { default_policy: policy, ..Semantics::mutating() })
        .plan_access(|input, _| {
            let resource = Resource::path(format!("/workspace/{}", input.text), &input.text);
            vec![portcullis_contract::AccessRequest::new(
                portcullis_contract::Action::new("change"),
                resource,
                [portcullis_base::Risk::Write].into(),
            )]
        })
        .execute(move |input, context| {
            let effects = effects.clone();
            async move {
                effects.add(input.text.clone());
                context.did(SideEffect {
                    kind: "changed".to_owned(),
                    target: input.text.clone(),
                    before: None,
                    after: None,
                    reversible: false,
                });
                Ok(format!("changed {}", input.text))
            }
        })
        .to_model(|_, output| vec![Content::text(output.as_str().unwrap_or_default())])
        .build()
        .expect("a sound tool")
}

/// A tool from a closure, read-only or not.
pub fn tool<F, Fut>(semantics: Semantics, f: F) -> Tool
where
    F: Fn(Note, portcullis_contract::ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolFailure>> + Send + 'static,
{
    Tool::builder::<Note, String>("A tool of a test.").semantics(semantics).execute(f).build().expect("a sound tool")
}

pub struct World {
    pub clock: Arc<ManualClock>,
    pub ids: Arc<SeededIds>,
    pub store: Arc<dyn Store>,
    pub artifacts: Arc<dyn Artifacts>,
    pub effects: Effects,
    pub session: SessionId,
    pub liveness: Arc<FixedLiveness>,
    pub rules: String,
    pub secrets: Vec<String>,
    pub approvals: Approvals,
    pub answers: Option<KnownAnswers>,
    pub quota: u64,
}

impl World {
    /// In memory, with one session.
    pub async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let ids = Arc::new(SeededIds::new(1));
        let liveness = Arc::new(FixedLiveness::default());
        let store = Arc::new(MemoryStore::new(
            Arc::clone(&clock) as Arc<dyn Clock>,
            Arc::clone(&ids) as Arc<dyn IdGen>,
            Arc::clone(&liveness) as _,
            Some(CheckpointKey::from_bytes([7; 32])),
        ));
        Self::over(store, Arc::new(MemoryArtifacts::default()), clock, ids, liveness).await
    }

    /// Over any store.
    pub async fn over(
        store: Arc<dyn Store>,
        artifacts: Arc<dyn Artifacts>,
        clock: Arc<ManualClock>,
        ids: Arc<SeededIds>,
        liveness: Arc<FixedLiveness>,
    ) -> Self {
        let session = SessionId::make(&*ids, clock.now());
        let world = Self {
            clock,
            ids,
            store,
            artifacts,
            effects: Effects::default(),
            session,
            liveness,
            rules: String::new(),
            secrets: Vec::new(),
            approvals: Approvals::Wait,
            answers: None,
            quota: limits::ARTIFACT_QUOTA,
        };
        world.create(session).await;
        world
    }

    pub async fn create(&self, session: SessionId) {
        self.client(session, &first_event(session)).await.expect("created");
    }

    /// A session of another tenant.
    pub async fn create_for(&self, tenant: TenantId) -> SessionId {
        let session = SessionId::make(&*self.ids, self.clock.now());
        self.append(SessionKey { tenant, session }, &first_event(session)).await.expect("created");
        session
    }

    pub fn key(&self) -> SessionKey {
        SessionKey { tenant: LOCAL_TENANT, session: self.session }
    }

    /// A client append of one event.
    pub async fn client<B: portcullis_event::EventBody>(&self, session: SessionId, body: &B) -> Result<(), StoreError> {
        self.append(SessionKey { tenant: LOCAL_TENANT, session }, body).await
    }

    async fn append<B: portcullis_event::EventBody>(&self, key: SessionKey, body: &B) -> Result<(), StoreError> {
        let actor = Actor::user("tester");
        let stamp = Stamp { ids: &*self.ids, clock: &*self.clock, actor: &actor, turn_id: None, wake_id: None };
        let append = portcullis_base::AppendId::make(&*self.ids, self.clock.now());
        self.store.commit(Commit::client(key, append, vec![stamp.draft(body)])).await.map(|_| ())
    }

    pub async fn reply(&self, ask: portcullis_base::AskId, reply: Reply) -> Result<(), StoreError> {
        self.reply_with(ask, reply, None).await
    }

    pub async fn reply_with(
        &self,
        ask_id: portcullis_base::AskId,
        reply: Reply,
        feedback: Option<String>,
    ) -> Result<(), StoreError> {
        self.replied("tester", ask_id, reply, feedback).await
    }

    /// The answer of somebody else.
    pub async fn reply_as(
        &self,
        approver: &str,
        ask_id: portcullis_base::AskId,
        reply: Reply,
    ) -> Result<(), StoreError> {
        self.replied(approver, ask_id, reply, None).await
    }

    async fn replied(
        &self,
        approver: &str,
        ask_id: portcullis_base::AskId,
        reply: Reply,
        feedback: Option<String>,
    ) -> Result<(), StoreError> {
        let replied = AskReplied {
            ask_id,
            reply,
            approver: approver.to_owned(),
            channel: "test".to_owned(),
            terminal: None,
            parent_process: None,
            feedback,
            grant_id: None,
        };
        self.client(self.session, &replied).await
    }

    pub fn policy(&self) -> Policy {
        let rules = parse_rules(&self.rules, "test.toml", Layer::User).expect("rules");
        PolicyBuilder::new().rules(rules).build().expect("a policy")
    }

    /// A new process: a gate with its own registry over the same store.
    pub fn process(&self, tools: impl IntoIterator<Item = (&'static str, Tool)>) -> Process {
        self.process_over(Arc::clone(&self.store), tools)
    }

    /// A new process over a store that wraps the world's.
    pub fn process_over(
        &self,
        store: Arc<dyn Store>,
        tools: impl IntoIterator<Item = (&'static str, Tool)>,
    ) -> Process {
        self.process_with(store, [9; 32], tools)
    }

    /// A new process with a sealing key of its own.
    pub fn process_with(
        &self,
        store: Arc<dyn Store>,
        sealing_key: [u8; 32],
        tools: impl IntoIterator<Item = (&'static str, Tool)>,
    ) -> Process {
        let ids = Arc::clone(&self.ids) as Arc<dyn IdGen>;
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let registry = Registry::new(Arc::clone(&ids), Arc::clone(&clock));
        let tools: BTreeMap<ToolName, Tool> = tools.into_iter().map(|(n, tool)| (name(n), tool)).collect();
        let guard =
            registry.registrar(Placement::Location(LOCATION), ToolOrigin::Builtin).register(tools).expect("registered");
        let parts = GateParts {
            store,
            artifacts: Arc::clone(&self.artifacts),
            registry: registry.clone(),
            sealer: Sealer::new(&SealingKey::from_bytes(sealing_key)),
            clock,
            ids,
            entropy: Arc::clone(&self.ids) as Arc<dyn Entropy>,
            held_sessions: HeldSessions::default(),
            artifact_quota: self.quota,
        };
        let gate = Gate::new(parts, self.scope(&registry));
        let owner = LeaseOwner {
            worker: WorkerId::make(&*self.ids, self.clock.now()),
            host: "test".to_owned(),
            pid: 1,
            started: 1,
            what: "a test".to_owned(),
            kind: portcullis_store::HolderKind::Standing,
        };
        Process { gate, registry, guard, owner, session: self.session }
    }

    /// What sessions act by here, with a toolset of its own.
    pub fn scope(&self, registry: &Registry) -> ScopeParts {
        let variables = self.secrets.iter().enumerate().map(|(i, s)| (format!("S{i}"), SecretText::new(s.clone())));
        ScopeParts {
            tenant: LOCAL_TENANT,
            principal: "tester".to_owned(),
            actor: Actor::user("tester"),
            agent: "tester".to_owned(),
            toolset: registry.fresh_toolset(),
            tools: ToolChoice::default(),
            location: LOCATION,
            project: "project".to_owned(),
            policy: self.policy(),
            approvals: self.approvals,
            answers: self.answers.clone(),
            ask_expiry: limits::ASK_EXPIRY,
            redactor: Redactor::new(self.secrets.iter().map(String::as_bytes)).expect("a redactor"),
            variables: variables.collect(),
        }
    }

    /// The whole log.
    pub async fn events(&self) -> Vec<Event> {
        self.store.read(self.key(), 0, 100_000).await.expect("read")
    }

    pub async fn observations(&self) -> Vec<Observed> {
        let bodies = self.events().await.into_iter().map(|event| event.body());
        bodies.filter_map(|body| if let Body::Observed(o) = body { Some(*o) } else { None }).collect()
    }

    /// Event types in order, without the session's own.
    pub async fn types(&self) -> Vec<String> {
        self.events().await.iter().map(|e| e.kind.as_str().to_owned()).filter(|k| !k.starts_with("session.")).collect()
    }
}

fn first_event(session: SessionId) -> SessionCreated {
    SessionCreated {
        agent_id: None,
        agent_version: 0,
        environment_id: None,
        parent_session_id: None,
        root_session_id: session,
        depth: 0,
        name: None,
        tags: Vec::new(),
        config_hash: portcullis_base::Digest::of(b""),
        has_setup: false,
        workspace: None,
        custom_tools: Vec::new(),
    }
}

pub struct Process {
    pub gate: Gate,
    pub registry: Registry,
    pub guard: RegistrationGuard,
    pub owner: LeaseOwner,
    pub session: SessionId,
}

impl Process {
    pub async fn open(&self) -> Session {
        match self.gate.open(self.session, self.owner.clone()).await.expect("open") {
            Opened::Ready(session) => session,
            Opened::Held(owner) => panic!("held by {owner}"),
        }
    }

    /// One call as a turn of its own, committed; the lease is given back.
    pub async fn call(&self, tool: &str, text: &str) -> Disposition {
        self.call_raw(tool, &serde_json::json!({ "text": text }).to_string()).await
    }

    pub async fn call_raw(&self, tool: &str, input: &str) -> Disposition {
        let session = self.open().await;
        let (disposition, _) = call_in(&session, tool, input).await.expect("no halt");
        session.release().await.expect("released");
        disposition
    }
}

pub fn proposal(call_id: &str, message: u128, tool: &str, input: &str) -> Proposal {
    Proposal {
        actor: Actor::agent("tester"),
        message_id: MessageId::from_u128(message),
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        input: input.to_owned(),
        stated_reason: None,
    }
}

/// The same answer to every ask, known as it is raised.
pub fn knows(reply: Reply, channel: &str) -> Option<KnownAnswers> {
    let answer = AskAnswer { channel: channel.to_owned(), ..AskAnswer::by("knower", reply) };
    Some(Arc::new(move |_, _| Some(answer.clone())))
}

static MESSAGES: AtomicUsize = AtomicUsize::new(1);

/// One call in a held session, committed.
pub async fn call_in(session: &Session, tool: &str, input: &str) -> Result<(Disposition, IntentId), Halt> {
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    let message = MESSAGES.fetch_add(1, Ordering::SeqCst) as u128;
    let admission = session.admit(facts, &turn, proposal("c1", message, tool, input));
    let id = admission.intent_id();
    let (mut facts, disposition) = admission.settled().await?;
    facts.idle();
    session.commit(facts).await?;
    Ok((disposition, id))
}

pub fn observed(disposition: &Disposition) -> &Observed {
    match disposition {
        Disposition::Settled(observation) => observation.session_view(),
        Disposition::Parked(ask) => panic!("parked as {ask}"),
        Disposition::Elsewhere(event) => panic!("handed over by {event}"),
    }
}

pub fn parked(disposition: &Disposition) -> portcullis_base::AskId {
    match disposition {
        Disposition::Parked(ask) => *ask,
        Disposition::Settled(observation) => panic!("settled: {:?}", observation.session_view()),
        Disposition::Elsewhere(event) => panic!("handed over by {event}"),
    }
}

// --- helpers of the law tests -----------------------------------------------------------------

/// Changes things and is allowed to.
pub fn acts() -> Semantics {
    Semantics { default_policy: DefaultPolicy::Allow, ..Semantics::mutating() }
}

/// A builder of a tool that touches `/workspace/<text>` and nothing else, so that its default policy decides.
pub fn acting<F, Fut>(semantics: Semantics, f: F) -> portcullis_contract::ToolBuilder<Note, String>
where
    F: Fn(Note, portcullis_contract::ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolFailure>> + Send + 'static,
{
    Tool::builder::<Note, String>("Acts as a test says.")
        .semantics(semantics)
        .plan_access(|input, _| vec![touches(&input.text)])
        .execute(f)
}

/// A write to `/workspace/<name>`, under the action `change`.
pub fn touches(name: &str) -> portcullis_contract::AccessRequest {
    let resource = Resource::path(format!("/workspace/{name}"), name);
    let risk = [portcullis_base::Risk::Write].into();
    portcullis_contract::AccessRequest::new(portcullis_contract::Action::new("change"), resource, risk)
}

/// Something that happened to `target`.
pub fn happened(target: &str) -> SideEffect {
    SideEffect { kind: "changed".to_owned(), target: target.to_owned(), before: None, after: None, reversible: false }
}

/// What the code table promises, as it was observed: phase, code, side effects, retryable, recovery.
pub type Row =
    (portcullis_base::Phase, portcullis_base::Code, portcullis_base::SideEffectState, bool, portcullis_base::Recovery);

pub fn row(seen: &Observed) -> Row {
    let known = "this program wrote it";
    (
        seen.phase.known().expect(known),
        seen.code.known().expect(known),
        seen.side_effects.state,
        seen.retryable,
        seen.recovery.known().expect(known),
    )
}

/// Moves the world's clock with tokio's (paused) time until it is dropped.
pub fn follow_tokio(clock: &Arc<ManualClock>) -> impl Drop + use<> {
    let stop = tokio_util::sync::CancellationToken::new();
    let (clock, stopped) = (Arc::clone(clock), stop.clone());
    tokio::spawn(async move {
        let mut last = tokio::time::Instant::now();
        while !stopped.is_cancelled() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            let now = tokio::time::Instant::now();
            clock.advance(now - last);
            last = now;
        }
    });
    stop.drop_guard()
}

/// A turn whose menu is durable.
pub async fn turn_of(session: &Session) -> Arc<portcullis_pipeline::Turn> {
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    session.commit(facts).await.expect("committed");
    turn
}

/// One call in a given turn, committed.
pub async fn call_on(
    session: &Session,
    turn: &Arc<portcullis_pipeline::Turn>,
    proposal: Proposal,
) -> Result<Disposition, Halt> {
    let (facts, disposition) = session.admit(Append::new(), turn, proposal).settled().await?;
    session.commit(facts).await?;
    Ok(disposition)
}

/// A message id nobody else of this test process uses.
pub fn fresh_message() -> u128 {
    MESSAGES.fetch_add(1, Ordering::SeqCst) as u128
}

/// A runtime with paused time, for properties.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime")
}
