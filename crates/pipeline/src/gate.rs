//! The gate and its doors. [`pass`] is the path of an intent, top to bottom: every phase takes the
//! type the one before it made, so a phase that is skipped does not compile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use portcullis_base::{
    AskId, Clock, Digest, Entropy, EventId, IdGen, IntentId, Reason, Recorded, SessionId, TenantId, limits,
};
use portcullis_contract::{BuildError, ToolOrigin};
use portcullis_event::Observed;
use portcullis_event::facts::Verdict;
use portcullis_policy::{Policy, RuleId};
use portcullis_secret::Sealer;
use portcullis_store::{Artifacts, Claim, Lease, LeaseOwner, SessionKey, Store, StoreError};
use serde_json::Value;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug_span};

use crate::admission::{Admission, start};
use crate::asks::grants::GrantBook;
use crate::asks::path_rules::PathRules;
use crate::calls::Order;
use crate::isolation::Isolation;
use crate::output::evidence::ArtifactShelf;
use crate::phases::bound::bound;
use crate::phases::execute::{ExecutionEnd, execute};
use crate::phases::intent::{Intent, Origin, Proposal};
use crate::phases::lookup::lookup;
use crate::phases::normalize::normalize;
use crate::phases::permission::{allows, permission};
use crate::phases::refuse::refuse;
use crate::phases::schedule::{cancelled_before_start, schedule};
use crate::phases::step::{Halt, Step};
use crate::phases::stored_input::input_hash;
use crate::phases::validate::validate;
use crate::registry::loop_guard::LoopGuards;
use crate::registry::menu::{Offer, Turn};
use crate::registry::offers::{self, Offers};
use crate::registry::registrations::{Placement, Registered, Registrar, Registry, ToolsetId};
use crate::registry::tool_choice::ChosenTools;
use crate::scope::{Scope, ScopeParts};
use crate::sessions::append::Append;
use crate::sessions::fold_cache::FoldCache;
use crate::sessions::grace::Grace;
use crate::sessions::held_sessions::HeldSessions;
use crate::sessions::key_queue::KeyLine;
use crate::sessions::session::{Observation, Session, SessionShared, keep_lease};
use crate::tasks::background::go_on;
use crate::tasks::handed_over::{fulfilled_by, hand_over};
use crate::tasks::progress::Progress;
use crate::tasks::task_book::TaskBook;
use crate::tenants::Tenants;

/// What a gate is made of.
pub struct GateParts {
    pub store: Arc<dyn Store>,
    pub artifacts: Arc<dyn Artifacts>,
    pub registry: Registry,
    pub sealer: Sealer,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdGen>,
    pub entropy: Arc<dyn Entropy>,
    pub held_sessions: HeldSessions,
    /// The most bytes that the artifacts of one tenant may use.
    pub artifact_quota: u64,
}

/// What all scopes of a process share: its bounds, queues and caches exist once.
pub(crate) struct GateInner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) registry: Registry,
    pub(crate) sealer: Sealer,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGen>,
    pub(crate) entropy: Arc<dyn Entropy>,
    tenants: Tenants,
    /// The number of the newest choice of tools.
    choices: AtomicU64,
    /// Those of this process who wait for a key.
    pub(crate) keys: KeyLine,
    /// Keys that a lost holder may still be using.
    pub(crate) grace: Grace,
    /// Room for safe calls of all sessions together.
    pub(crate) safe_call_permits: Semaphore,
    /// What running calls say of themselves, for a watcher.
    pub(crate) progress: broadcast::Sender<Progress>,
    held_sessions: HeldSessions,
    offers: Offers,
    pub(crate) loops: LoopGuards,
    /// Folds of sessions that were held before.
    pub(crate) fold_cache: FoldCache,
}

impl GateInner {
    /// A session that this process holds.
    pub(crate) fn held(&self, session: SessionId) -> Option<Arc<SessionShared>> {
        self.held_sessions.held(session)
    }

    /// Whether a person let this very call run.
    pub(crate) fn was_answered(&self, session: SessionId, intent: IntentId) -> bool {
        let Some(shared) = self.held(session) else { return false };
        if shared.answered.has(intent) {
            return true;
        }
        let state = shared.state();
        let ask = state.intents.get(intent).and_then(|intent| intent.ask_id).and_then(|ask| state.asks.get(ask));
        ask.is_some_and(allows)
    }

    /// The right to register in one place.
    pub(crate) fn registrar(&self, placement: Placement, origin: ToolOrigin) -> Registrar {
        self.registry.registrar(placement, origin)
    }

    pub(crate) fn fresh_choice(&self) -> u64 {
        self.choices.fetch_add(1, Ordering::Relaxed)
    }

    /// What would be offered to a session of a scope now, by this choice.
    pub(crate) fn offer(&self, scope: &Scope, tools: &ChosenTools, session: SessionId) -> Arc<Offer> {
        let state = offers::State {
            generation: self.registry.generation(),
            revision: scope.policy().revision(),
            choice: tools.number,
        };
        let winners = || self.registry.all(scope.places(session));
        let now = self.clock.now();
        self.offers.of(session, state, winners, |name, tool| {
            let denied = || scope.wholly_denied(name.as_str(), session, now).map(|_| Reason::WhollyDenied);
            tools.choice.hides(name.as_str(), tool, scope).or_else(denied)
        })
    }
}

/// What claiming a session gave.
pub enum Opened {
    Ready(Session),
    /// A live process holds it.
    Held(LeaseOwner),
}

/// How an intent stands after its door.
#[derive(Debug, Clone)]
pub enum Disposition {
    Settled(Box<Observation>),
    /// Durable and waiting for a person.
    Parked(AskId),
    /// Durable and handed to the one who fulfils it, by this event.
    Elsewhere(EventId),
}

/// The gate between intents and the world, as the sessions of one scope meet it.
#[derive(Clone)]
pub struct Gate {
    pub(crate) inner: Arc<GateInner>,
    pub(crate) scope: Arc<Scope>,
}

impl Gate {
    /// A gate over a store and a registry, for the sessions of one scope.
    #[must_use]
    pub fn new(parts: GateParts, scope: ScopeParts) -> Self {
        let inner = GateInner {
            tenants: Tenants::new(parts.artifact_quota),
            store: parts.store,
            artifacts: parts.artifacts,
            registry: parts.registry,
            sealer: parts.sealer,
            clock: parts.clock,
            ids: parts.ids,
            entropy: parts.entropy,
            choices: AtomicU64::new(0),
            keys: KeyLine::default(),
            grace: Grace::default(),
            safe_call_permits: Semaphore::new(limits::MAX_PARALLEL_SAFE_PROCESS),
            progress: broadcast::Sender::new(limits::PROGRESS_QUEUE),
            held_sessions: parts.held_sessions,
            offers: Offers::default(),
            loops: LoopGuards::default(),
            fold_cache: FoldCache::default(),
        };
        Self::scoped(Arc::new(inner), scope)
    }

    /// The same gate for the sessions of another scope: bounds, queues, caches and the registry are shared.
    #[must_use]
    pub fn beside(&self, scope: ScopeParts) -> Self {
        Self::scoped(Arc::clone(&self.inner), scope)
    }

    fn scoped(inner: Arc<GateInner>, scope: ScopeParts) -> Self {
        let books = inner.tenants.books(&inner.store, scope.tenant);
        let number = inner.fresh_choice();
        Self { inner, scope: Arc::new(Scope::new(number, scope, books)) }
    }

    /// Where the built-in tools of its scope are registered.
    #[must_use]
    pub fn toolset(&self) -> ToolsetId {
        self.scope.toolset
    }

    /// The tools of the process.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// Replaces the rules. Asks that are pending were raised under the old ones: their approvals are void.
    pub fn set_policy(&self, policy: Policy) {
        self.scope.set_policy(policy);
    }

    /// Says who runs commands for tools, so that the log and the person who is asked can be told what stands between them
    /// and the machine. The first one stays.
    pub fn isolate(&self, isolation: Arc<dyn Isolation>) {
        self.scope.isolate(isolation);
    }

    /// The rules in force.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.scope.policy()
    }

    /// What an approval is bound to of what decides.
    #[must_use]
    pub fn revision(&self) -> Digest {
        self.scope.tools.choice.revision(&self.scope.policy())
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// Whose sessions these are.
    #[must_use]
    pub fn tenant(&self) -> TenantId {
        self.scope.tenant
    }

    /// Remembered allows.
    #[must_use]
    pub fn grants(&self) -> &GrantBook {
        &self.scope.books.grants
    }

    /// `text` with every known secret masked, as it may be written (L69).
    #[must_use]
    pub fn masked(&self, text: &str) -> String {
        self.scope.redactor.redact_text(text).into_owned()
    }

    /// Masks every known secret in a value, as it may be written (L69).
    pub fn mask(&self, value: &mut Value) {
        self.scope.redactor.redact_value(value);
    }

    /// The rules that stood in the way of a call, each with its file and line: for a person. The observation itself
    /// names no file, since a model reads it (R10).
    #[must_use]
    pub fn rules_against(&self, session: SessionId, seen: &Observed) -> Vec<String> {
        let policy = self.scope.policy();
        let refused = seen.permission.as_ref().filter(|permission| permission.decision != Verdict::Allow);
        let mut rules: Vec<String> = refused.map(|permission| permission.policy_ids.clone()).unwrap_or_default();
        if seen.reason.as_ref().and_then(Recorded::known) == Some(Reason::WhollyDenied) {
            rules.extend(self.wholly_denied(&seen.tool, session).map(|rule| rule.to_string()));
        }
        let placed = rules.iter().filter_map(|rule| Some(format!("rule `{rule}` is at {}", policy.place_of(rule)?)));
        placed.collect()
    }

    /// Artifacts by id.
    #[must_use]
    pub fn shelf(&self) -> ArtifactShelf {
        ArtifactShelf::new(Arc::clone(&self.inner.store), Arc::clone(&self.inner.artifacts), self.scope.tenant)
    }

    /// The rules as they bear on paths that a tool comes upon.
    #[must_use]
    pub fn path_rules(&self) -> PathRules {
        PathRules::new(self)
    }

    /// The background tasks of sessions that this process holds.
    #[must_use]
    pub fn tasks(&self) -> TaskBook {
        TaskBook::new(Arc::downgrade(&self.inner))
    }

    /// What running calls of every session say of themselves, from now on. A watcher that falls behind by more than
    /// [`limits::PROGRESS_QUEUE`] misses the oldest.
    #[must_use]
    pub fn progress(&self) -> broadcast::Receiver<Progress> {
        self.inner.progress.subscribe()
    }

    /// What would be offered to a session now.
    #[must_use]
    pub fn offer(&self, session: SessionId) -> Arc<Offer> {
        let held = self.inner.held(session);
        let tools = held.map_or_else(|| self.scope.tools.clone(), |held| held.tools());
        self.inner.offer(&self.scope, &tools, session)
    }

    pub(crate) fn effective(&self, name: &str, session: SessionId) -> Option<Registered> {
        self.inner.registry.effective(name, self.scope.places(session))
    }

    /// The rule that denies a tool whatever it would touch.
    pub(crate) fn wholly_denied(&self, name: &str, session: SessionId) -> Option<RuleId> {
        self.scope.wholly_denied(name, session, self.inner.clock.now())
    }

    /// Compiles the schemas of every tool that is offered, which otherwise the first call of each tool does.
    ///
    /// # Errors
    /// The name of the first tool whose schema is not valid, and why.
    pub fn check_tool_schemas(&self, session: SessionId) -> Result<usize, (String, BuildError)> {
        let offer = self.offer(session);
        let mut tools = 0;
        for (name, _) in offer.entries() {
            if let Some(registered) = self.effective(name.as_str(), session) {
                registered.tool.check_schemas().map_err(|why| (name.to_string(), why))?;
                tools += 1;
            }
        }
        Ok(tools)
    }

    /// Claims a session and folds its log.
    ///
    /// # Errors
    /// If there is no such session or the store fails.
    pub async fn open(&self, session: SessionId, owner: LeaseOwner) -> Result<Opened, StoreError> {
        let key = SessionKey { tenant: self.scope.tenant, session };
        let asked = self.inner.clock.monotonic();
        match self.inner.store.claim_session(key, owner, limits::LEASE_TTL).await? {
            Claim::Held { owner, .. } => Ok(Opened::Held(owner)),
            Claim::Granted(lease) => Ok(Opened::Ready(self.hold(lease, asked).await?)),
            Claim::Refused(error) => Err(error),
        }
    }

    /// The same for a lease that [`portcullis_store::Queue::claim`] gave: how a worker takes up what is due. `asked` is
    /// the monotonic time from before the claim was sent: the lease may have begun to run right then (store §5).
    ///
    /// # Errors
    /// If the store fails. The lease then runs out by itself, and the session is due again.
    pub async fn hold(&self, lease: Lease, asked: Duration) -> Result<Session, StoreError> {
        let key = SessionKey { tenant: self.scope.tenant, session: lease.session };
        let shared = SessionShared::load(self, key, lease).await?;
        shared.offer_tools();
        let shared = Arc::new(shared);
        self.inner.held_sessions.enter(&shared);
        let renewing = keep_lease(&shared, asked);
        Ok(Session { shared, _renewing: renewing })
    }

    /// Stops the background tasks of its scope and waits for every call in flight there, at most as long as a shutdown may
    /// take.
    pub async fn shutdown(&self) {
        for session in self.inner.held_sessions.all_held() {
            if Arc::ptr_eq(&session.scope, &self.scope) {
                session.tasks.cancel_all();
            }
        }
        self.scope.tracker.close();
        let _ = tokio::time::timeout(limits::SHUTDOWN, self.scope.tracker.wait()).await;
    }
}

impl Session {
    /// The first door: a new intent, from the top.
    pub fn admit(&self, facts: Append, turn: &Arc<Turn>, proposal: Proposal) -> Admission {
        self.admit_beside(facts, turn, proposal, Order::default())
    }

    /// The same for a call that runs beside others of its turn.
    pub(crate) fn admit_beside(
        &self,
        facts: Append,
        turn: &Arc<Turn>,
        mut proposal: Proposal,
        order: Order,
    ) -> Admission {
        let gate = &self.shared.gate;
        // One form from here on: what is compared with the log is what the log holds (L7, L69).
        proposal.call_id = self.shared.scope.redactor.redact_text(&proposal.call_id).into_owned();
        let intent = Intent {
            id: IntentId::make(&*gate.ids, gate.clock.now()),
            input_hash: input_hash(&proposal.input),
            proposal,
            turn_id: turn.turn_id,
            menu_id: turn.menu_id,
            turn: Some(Arc::clone(turn)),
            origin: Origin::Fresh { answered: None },
        };
        start(&self.shared, facts, intent, order)
    }
}

/// The path of an intent.
pub(crate) async fn pass(
    session: &Arc<SessionShared>,
    intent: Intent,
    cancel: CancellationToken,
    mut facts: Append,
    mut order: Order,
) -> Result<(Append, Disposition), Halt> {
    if facts.must_go_first() {
        session.flush(std::mem::take(&mut facts)).await?;
    }
    let visible = match debug_span!("lookup").in_scope(|| lookup(session, intent, &mut facts)) {
        Step::Next(visible) => visible,
        ended => return settle(session, ended, facts).await,
    };
    let validated = match validate(session, visible, &mut facts).instrument(debug_span!("validate")).await {
        Step::Next(validated) => validated,
        ended => return settle(session, ended, facts).await,
    };
    if cancel.is_cancelled() {
        // Nobody is asked about what is not wanted any more.
        let refused = refuse(session, &validated.visible.intent, cancelled_before_start());
        return settle(session, Step::<()>::Refused(refused), facts).await;
    }
    let authorized = match permission(session, validated, &mut facts).instrument(debug_span!("permission")).await {
        Step::Next(authorized) => authorized,
        ended => return settle(session, ended, facts).await,
    };
    if let Some(by) = fulfilled_by(&authorized) {
        return hand_over(session, authorized, by, facts).await;
    }
    let arrived = authorized.validated.visible.intent.arrived().cloned();
    let (mut facts, invocation) =
        match schedule(session, authorized, cancel, facts).instrument(debug_span!("schedule")).await? {
            (facts, Step::Next(invocation)) => (facts, invocation),
            (facts, ended) => return settle(session, ended, facts).await,
        };
    let ran = match &arrived {
        Some(result) => ExecutionEnd::Ended(Box::new(result.raw(invocation))),
        None => {
            let desk = session.effect_desk.open(&invocation, &mut facts);
            let ran = execute(session, invocation).instrument(debug_span!("execute")).await;
            desk.close(&mut facts)?;
            ran?
        }
    };
    order.my_turn().await;
    let raw = match ran {
        ExecutionEnd::Ended(raw) => *raw,
        ExecutionEnd::Away(away) => return Ok(go_on(session, *away, facts)),
    };
    let mut settled = debug_span!("normalize").in_scope(|| normalize(session, raw, &mut facts));
    if let Some(result) = &arrived {
        result.explain(&mut settled);
    }
    let observed = bound(session, settled, &mut facts).instrument(debug_span!("bound")).await;
    Ok(write_back(session, observed, facts))
}

/// The end of a path that stopped early: an ask becomes durable before a person is asked; a refusal
/// is an observation like any other.
async fn settle<T>(session: &SessionShared, ended: Step<T>, facts: Append) -> Result<(Append, Disposition), Halt> {
    match ended {
        Step::Refused(observed) => Ok(write_back(session, *observed, facts)),
        Step::Parked(ask) => {
            let mut facts = facts;
            facts.idle();
            session.flush(facts).await?;
            Ok((Append::new(), Disposition::Parked(ask)))
        }
        Step::Next(_) => unreachable!("a path that goes on is not settled"),
    }
}

/// The observation is the last fact of its intent.
pub(crate) fn write_back(session: &SessionShared, mut observed: Observed, mut facts: Append) -> (Append, Disposition) {
    session.loops.leave(&mut observed);
    session.surface_result(&observed, &mut facts);
    session.note(&mut facts, observed.turn_id, &observed);
    (facts, Disposition::Settled(Box::new(Observation(observed))))
}

/// A gate for its own tools: they are registered with it, so they may not keep it alive.
#[derive(Clone, Default)]
pub(crate) struct ScopedGate(Weak<GateInner>, Weak<Scope>);

impl ScopedGate {
    pub(crate) fn of(gate: &Gate) -> Self {
        Self(Arc::downgrade(&gate.inner), Arc::downgrade(&gate.scope))
    }

    pub(crate) fn upgrade(&self) -> Option<Gate> {
        Some(Gate { inner: self.0.upgrade()?, scope: self.1.upgrade()? })
    }
}
