//! The gate and its doors. [`pass`] is the path of an intent, top to bottom: every phase takes the
//! type the one before it made, so a phase that is skipped does not compile.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use portcullis_base::{
    AskId, Clock, Entropy, EventId, IdGen, IntentId, LocationId, Reason, Recorded, SessionId, TenantId, limits,
};
use portcullis_contract::{Action, BuildError, DefaultPolicy};
use portcullis_event::Observed;
use portcullis_event::facts::Verdict;
use portcullis_policy::{Asker, Policy, RuleId};
use portcullis_secret::{Redactor, Sealer, SecretText};
use portcullis_store::{Artifacts, Claim, Lease, LeaseOwner, SessionKey, Store, StoreError};
use serde_json::Value;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, debug_span};

use crate::admission::{Admission, start};
use crate::asks::grants::GrantBook;
use crate::asks::path_rules::PathRules;
use crate::calls::Order;
use crate::isolation::{Isolated, Isolation};
use crate::output::evidence::ArtifactShelf;
use crate::output::quota::Usage;
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
use crate::registry::registrations::{Placement, Registered, Registrar, Registry};
use crate::sessions::append::Append;
use crate::sessions::fold_cache::FoldCache;
use crate::sessions::grace::Grace;
use crate::sessions::held_sessions::HeldSessions;
use crate::sessions::key_queue::KeyLine;
use crate::sessions::session::{Observation, Session, SessionShared, keep_lease};
use crate::tasks::background::go_on;
use crate::tasks::external::{hand_over, is_elsewhere};
use crate::tasks::progress::Progress;
use crate::tasks::task_book::TaskBook;

/// Whether a person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approvals {
    /// An ask waits for a person.
    Wait,
    /// Headless: an ask is refused at once. Nothing ever waits for nobody (tool-contract 13.6).
    Unavailable,
}

/// What a gate is made of.
pub struct GateParts {
    pub store: Arc<dyn Store>,
    pub artifacts: Arc<dyn Artifacts>,
    pub registry: Registry,
    pub policy: Policy,
    pub sealer: Sealer,
    pub redactor: Redactor,
    pub variables: BTreeMap<String, SecretText>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdGen>,
    pub entropy: Arc<dyn Entropy>,
    pub tenant: TenantId,
    pub location: LocationId,
    /// The project rules and grants are scoped to.
    pub project: String,
    /// On whose behalf calls are made; an approval is bound to it.
    pub principal: String,
    pub approvals: Approvals,
    pub held_sessions: HeldSessions,
    pub artifact_quota: u64,
    pub ask_expiry: Duration,
}

pub(crate) struct GateInner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    registry: Registry,
    policy: RwLock<Arc<Policy>>,
    pub(crate) sealer: Sealer,
    /// Masks known secrets, in whatever is written.
    pub(crate) redactor: Arc<Redactor>,
    /// Masks values that look like keys as well, in what tools bring back. Inputs stay as they are: a call must run with
    /// what was proposed.
    pub(crate) output_redactor: Arc<Redactor>,
    pub(crate) variables: BTreeMap<String, SecretText>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGen>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) tenant: TenantId,
    pub(crate) location: LocationId,
    pub(crate) project: String,
    pub(crate) principal: String,
    pub(crate) approvals: Approvals,
    pub(crate) usage: Arc<Usage>,
    pub(crate) ask_expiry: Duration,
    pub(crate) tracker: TaskTracker,
    /// Those of this process who wait for a key.
    pub(crate) keys: KeyLine,
    /// Keys that a lost holder may still be using.
    pub(crate) grace: Grace,
    /// Room for safe calls of all sessions together.
    pub(crate) safe_call_permits: Semaphore,
    pub(crate) grants: GrantBook,
    /// What running calls say of themselves, for a watcher.
    pub(crate) progress: broadcast::Sender<Progress>,
    held_sessions: HeldSessions,
    /// The hand that runs commands for tools. It is none before it is known, and where no tool runs any.
    isolation: OnceLock<Arc<dyn Isolation>>,
    offers: Offers,
    pub(crate) loops: LoopGuards,
    /// Folds of sessions that were held before.
    pub(crate) fold_cache: FoldCache,
}

impl GateInner {
    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The rule that denies a tool whatever it would touch.
    pub(crate) fn wholly_denied(&self, name: &str, session: SessionId) -> Option<RuleId> {
        let asker = Asker {
            agent: None,
            session: Some(session),
            project: Some(&self.project),
            now: self.clock.now(),
            default: DefaultPolicy::Ask,
            grants: &[],
        };
        self.policy().wholly_denied(&Action::new(name), &asker)
    }

    /// A rule, and for a person its file and line.
    pub(crate) fn placed(&self, rule: &RuleId) -> String {
        let place = self.policy().place_of(rule.as_str()).map(|place| format!(" ({place})"));
        format!("`{rule}`{}", place.unwrap_or_default())
    }

    /// What the commands of a tool with this sandbox profile get.
    pub(crate) fn isolated(&self, profile: Option<&str>) -> Option<Isolated> {
        self.isolation.get()?.of(profile?)
    }

    /// A session that this process holds.
    pub(crate) fn held(&self, session: SessionId) -> Option<Arc<SessionShared>> {
        self.held_sessions.held(session)
    }

    /// Whether a person let this very call run.
    pub(crate) fn was_answered(&self, session: SessionId, intent: IntentId) -> bool {
        let Some(shared) = self.held(session) else { return false };
        let state = shared.state();
        let ask = state.intents.get(intent).and_then(|intent| intent.ask_id).and_then(|ask| state.asks.get(ask));
        ask.is_some_and(allows)
    }

    /// The right to register in one place.
    pub(crate) fn registrar(&self, placement: Placement) -> Registrar {
        self.registry.registrar(placement)
    }

    pub(crate) fn effective(&self, name: &str, session: SessionId) -> Option<Registered> {
        self.registry.effective(name, self.location, session)
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
    /// Durable and handed to the client that runs it, by this event.
    Elsewhere(EventId),
}

/// The gate between intents and the world.
#[derive(Clone)]
pub struct Gate {
    pub(crate) inner: Arc<GateInner>,
}

impl Gate {
    /// A gate over a store, a registry and rules.
    #[must_use]
    pub fn new(parts: GateParts) -> Self {
        let inner = GateInner {
            grants: GrantBook::new(Arc::clone(&parts.store), parts.tenant),
            store: parts.store,
            artifacts: parts.artifacts,
            registry: parts.registry,
            policy: RwLock::new(Arc::new(parts.policy)),
            sealer: parts.sealer,
            output_redactor: Arc::new(parts.redactor.and_keys()),
            redactor: Arc::new(parts.redactor),
            variables: parts.variables,
            clock: parts.clock,
            ids: parts.ids,
            entropy: parts.entropy,
            tenant: parts.tenant,
            location: parts.location,
            project: parts.project,
            principal: parts.principal,
            approvals: parts.approvals,
            usage: Usage::new(parts.artifact_quota),
            ask_expiry: parts.ask_expiry,
            tracker: TaskTracker::new(),
            keys: KeyLine::default(),
            grace: Grace::default(),
            safe_call_permits: Semaphore::new(limits::MAX_PARALLEL_SAFE_PROCESS),
            progress: broadcast::Sender::new(limits::PROGRESS_QUEUE),
            held_sessions: parts.held_sessions,
            isolation: OnceLock::new(),
            offers: Offers::default(),
            loops: LoopGuards::default(),
            fold_cache: FoldCache::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Replaces the rules. Asks that are pending were raised under the old ones: their approvals are void.
    pub fn set_policy(&self, policy: Policy) {
        *self.inner.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Says who runs commands for tools, so that the log and the person who is asked can be told what stands between them
    /// and the machine. The first one stays.
    pub fn isolate(&self, isolation: Arc<dyn Isolation>) {
        let _ = self.inner.isolation.set(isolation);
    }

    /// The rules in force.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.inner.policy()
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// Whose sessions these are.
    #[must_use]
    pub fn tenant(&self) -> TenantId {
        self.inner.tenant
    }

    /// Remembered allows.
    #[must_use]
    pub fn grants(&self) -> &GrantBook {
        &self.inner.grants
    }

    /// `text` with every known secret masked, as it may be written (L69).
    #[must_use]
    pub fn masked(&self, text: &str) -> String {
        self.inner.redactor.redact_text(text).into_owned()
    }

    /// Masks every known secret in a value, as it may be written (L69).
    pub fn mask(&self, value: &mut Value) {
        self.inner.redactor.redact_value(value);
    }

    /// The rules that stood in the way of a call, each with its file and line: for a person. The observation itself
    /// names no file, since a model reads it (R10).
    #[must_use]
    pub fn rules_against(&self, session: SessionId, seen: &Observed) -> Vec<String> {
        let policy = self.inner.policy();
        let refused = seen.permission.as_ref().filter(|permission| permission.decision != Verdict::Allow);
        let mut rules: Vec<String> = refused.map(|permission| permission.policy_ids.clone()).unwrap_or_default();
        if seen.reason.as_ref().and_then(Recorded::known) == Some(Reason::WhollyDenied) {
            rules.extend(self.inner.wholly_denied(&seen.tool, session).map(|rule| rule.to_string()));
        }
        let placed = rules.iter().filter_map(|rule| Some(format!("rule `{rule}` is at {}", policy.place_of(rule)?)));
        placed.collect()
    }

    /// Artifacts by id.
    #[must_use]
    pub fn shelf(&self) -> ArtifactShelf {
        ArtifactShelf::new(Arc::clone(&self.inner.store), Arc::clone(&self.inner.artifacts), self.inner.tenant)
    }

    /// The rules as they bear on paths that a tool comes upon.
    #[must_use]
    pub fn path_rules(&self) -> PathRules {
        PathRules::new(Arc::downgrade(&self.inner))
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
        let gate = &self.inner;
        let state = offers::State { generation: gate.registry.generation(), revision: gate.policy().revision() };
        let winners = || gate.registry.all(gate.location, session);
        gate.offers.of(session, state, winners, |name| {
            gate.wholly_denied(name.as_str(), session).map(|_| Reason::WhollyDenied)
        })
    }

    /// Compiles the schemas of every tool that is offered, which otherwise the first call of each tool does.
    ///
    /// # Errors
    /// The name of the first tool whose schema is not valid, and why.
    pub fn check_tool_schemas(&self, session: SessionId) -> Result<usize, (String, BuildError)> {
        let offer = self.offer(session);
        let mut tools = 0;
        for (name, _) in offer.entries() {
            if let Some(registered) = self.inner.effective(name.as_str(), session) {
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
    pub async fn open(&self, session: SessionId, owner: LeaseOwner, agent: &str) -> Result<Opened, StoreError> {
        let key = SessionKey { tenant: self.inner.tenant, session };
        let asked = self.inner.clock.monotonic();
        match self.inner.store.claim_session(key, owner, limits::LEASE_TTL).await? {
            Claim::Held { owner, .. } => Ok(Opened::Held(owner)),
            Claim::Granted(lease) => Ok(Opened::Ready(self.hold(lease, asked, agent).await?)),
            Claim::Refused(error) => Err(error),
        }
    }

    /// The same for a lease that [`portcullis_store::Queue::claim`] gave: how a worker takes up what is due. `asked` is
    /// the monotonic time from before the claim was sent: the lease may have begun to run right then (store §5).
    ///
    /// # Errors
    /// If the store fails. The lease then runs out by itself, and the session is due again.
    pub async fn hold(&self, lease: Lease, asked: Duration, agent: &str) -> Result<Session, StoreError> {
        let key = SessionKey { tenant: self.inner.tenant, session: lease.session };
        let shared = SessionShared::load(Arc::clone(&self.inner), key, lease, agent.to_owned()).await?;
        shared.offer_tools();
        let shared = Arc::new(shared);
        self.inner.held_sessions.enter(&shared);
        let renewing = keep_lease(&shared, asked);
        Ok(Session { shared, _renewing: renewing })
    }

    /// Stops background tasks and waits for every call in flight, at most as long as a shutdown may take.
    pub async fn shutdown(&self) {
        for session in self.inner.held_sessions.all_held() {
            session.tasks.cancel_all();
        }
        self.inner.tracker.close();
        let _ = tokio::time::timeout(limits::SHUTDOWN, self.inner.tracker.wait()).await;
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
        proposal.call_id = gate.redactor.redact_text(&proposal.call_id).into_owned();
        let intent = Intent {
            id: IntentId::make(&*gate.ids, gate.clock.now()),
            input_hash: input_hash(&proposal.input),
            proposal,
            turn_id: turn.turn_id,
            menu_id: turn.menu_id,
            turn: Some(Arc::clone(turn)),
            origin: Origin::Fresh,
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
    if is_elsewhere(&authorized) {
        return hand_over(session, authorized, facts).await;
    }
    let arrived = authorized.validated.visible.intent.arrived().cloned();
    let (mut facts, invocation) =
        match schedule(session, authorized, cancel, facts).instrument(debug_span!("schedule")).await? {
            (facts, Step::Next(invocation)) => (facts, invocation),
            (facts, ended) => return settle(session, ended, facts).await,
        };
    let ran = match &arrived {
        Some(result) => ExecutionEnd::Ended(Box::new(result.raw(invocation))),
        None => execute(session, invocation).instrument(debug_span!("execute")).await?,
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
