//! The book in which a running call writes what it changes in the log itself: facts, rows and deliveries to other logs, in
//! one fenced append, with the answer of the call. A race that the call lost is told to its tool; a process that ends after
//! the append leaves a call that is settled by it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::{
    Actor, AppendId, ArtifactId, ArtifactKind, ArtifactRef, Code, IntentId, InvocationId, OutboxId, Phase, SessionId,
    SideEffects, TurnId, limits,
};
use portcullis_contract::{Caller, ToolContext, seam};
use portcullis_event::facts::{Exit, InputConsumed, InvocationCompleted, InvocationEffected};
use portcullis_event::{CallFact, Draft, InputKind, fold};
use portcullis_store::{OutboxEntry, OutboxEvent, OutboxKind, RecordWrite, StoreError};
use serde_json::{Value, json};

use crate::gate::{Disposition, Gate, ScopedGate};
use crate::output::evidence::{Evidence, Label, RetainError};
use crate::output::quota::QuotaReservation;
use crate::phases::bound::retention_failed;
use crate::phases::refuse::blank;
use crate::phases::schedule::Invocation;
use crate::phases::step::Halt;
use crate::sessions::append::Append;
use crate::sessions::attend::stored;
use crate::sessions::session::{Session, SessionShared};

/// Why an effect was not made, or is not known to have been.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EffectError {
    /// Nothing was written.
    #[error("{kind} `{id}` was changed meanwhile (expected version {expected}, found {found}); read it again")]
    VersionConflict { kind: String, id: String, expected: u64, found: u64 },
    /// Calls that cannot touch the world have no durable start, and a call that has ended has no effect any more.
    #[error("this call has no start in the log that an effect could follow")]
    NotStarted,
    #[error("this call has made its effect already; a call has one")]
    Twice,
    #[error(
        "the answer of this call has {bytes} bytes, and an effect keeps at most {}; answer with less",
        limits::STRUCTURED_INLINE_MAX
    )]
    AnswerTooLarge { bytes: usize },
    /// Nothing was written.
    #[error("it could not be kept: {0}")]
    NotKept(String),
    /// The store failed, and the call halts with it. Whether the effect was made shows when the session is opened next.
    #[error("{0}")]
    Store(StoreError),
}

impl From<RetainError> for EffectError {
    fn from(error: RetainError) -> Self {
        Self::NotKept(error.to_string())
    }
}

/// The effects of running calls. Holds no gate alive.
#[derive(Clone, Default)]
pub struct EffectBook {
    gate: ScopedGate,
}

impl Gate {
    /// The effects of its sessions' calls.
    #[must_use]
    pub fn effects(&self) -> EffectBook {
        EffectBook { gate: ScopedGate::of(self) }
    }
}

impl EffectBook {
    /// Begins what a call that a child fulfils hands over. Nothing is written until the gate does, with the right to it.
    ///
    /// # Errors
    /// If the call is not about to be handed over.
    pub fn hand_over(&self, caller: &Caller) -> Result<Effect, EffectError> {
        let session = self.session_of(caller)?;
        session.effect_desk.of_call(caller.intent_id, |call| match call.invocation {
            None => Ok(()),
            Some(_) => Err(EffectError::NotStarted),
        })?;
        Ok(Effect::new(session, caller, None))
    }

    fn session_of(&self, caller: &Caller) -> Result<Arc<SessionShared>, EffectError> {
        let held = self.gate.upgrade().and_then(|gate| gate.inner.held(caller.session_id));
        held.ok_or(EffectError::NotStarted)
    }

    /// Begins the effect of a running call. Nothing is written until [`Effect::commit`].
    ///
    /// # Errors
    /// If the call has no durable start, or has made its effect.
    pub fn begin(&self, context: &ToolContext) -> Result<Effect, EffectError> {
        let (caller, invocation) = (context.caller(), context.invocation_id());
        let session = self.session_of(caller)?;
        session.effect_desk.of_call(caller.intent_id, |call| match call.invocation == Some(invocation) {
            true if call.made => Err(EffectError::Twice),
            true => Ok(()),
            false => Err(EffectError::NotStarted),
        })?;
        Ok(Effect::new(session, caller, Some(invocation)))
    }
}

/// The running calls of a session that may make an effect: all but those that cannot touch the world.
#[derive(Debug, Default)]
pub(crate) struct EffectDesk(Mutex<BTreeMap<IntentId, CallAtDesk>>);

#[derive(Debug)]
struct CallAtDesk {
    /// None while it is handed over.
    invocation: Option<InvocationId>,
    /// What comes before its effect and is not durable yet: of a call that changes nothing but the log, its start.
    start: Append,
    made: bool,
    /// What it hands over.
    prepared: Option<Append>,
    /// The store failed while it was made: nothing more of the call is written here.
    failed: Option<StoreError>,
}

impl CallAtDesk {
    fn new(invocation: Option<InvocationId>, facts: &mut Append) -> Self {
        Self { invocation, start: std::mem::take(facts), made: false, prepared: None, failed: None }
    }
}

impl EffectDesk {
    fn calls(&self) -> MutexGuard<'_, BTreeMap<IntentId, CallAtDesk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_call<T>(
        &self,
        intent: IntentId,
        see: impl FnOnce(&mut CallAtDesk) -> Result<T, EffectError>,
    ) -> Result<T, EffectError> {
        self.calls().get_mut(&intent).ok_or(EffectError::NotStarted).and_then(see)
    }

    /// Lets a call that is about to run make its effect, which takes along the facts that are not durable yet.
    pub(crate) fn open(&self, invocation: &Invocation, facts: &mut Append) -> PlaceAtDesk<'_> {
        let intent = invocation.authorized.validated.visible.intent.id;
        if !seam::semantics(&invocation.tool).inert() {
            self.calls().insert(intent, CallAtDesk::new(Some(invocation.id), facts));
        }
        PlaceAtDesk { desk: self, intent }
    }

    /// Lets a call prepare what it hands over.
    pub(crate) fn open_handing_over(&self, intent: IntentId, facts: &mut Append) -> PlaceAtDesk<'_> {
        self.calls().insert(intent, CallAtDesk::new(None, facts));
        PlaceAtDesk { desk: self, intent }
    }
}

/// A call's place at the desk, for as long as it runs.
pub(crate) struct PlaceAtDesk<'a> {
    desk: &'a EffectDesk,
    intent: IntentId,
}

impl PlaceAtDesk<'_> {
    /// Its code is over. Facts that no effect took along are the caller's again.
    ///
    /// # Errors
    /// If the store failed while the effect was made.
    pub(crate) fn close(self, facts: &mut Append) -> Result<(), Halt> {
        let Some(call) = self.desk.calls().remove(&self.intent) else { return Ok(()) };
        *facts = call.start;
        call.failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

impl PlaceAtDesk<'_> {
    /// What was prepared to be handed over.
    pub(crate) fn close_prepared(self, facts: &mut Append) -> Option<Append> {
        let call = self.desk.calls().remove(&self.intent)?;
        *facts = call.start;
        call.prepared
    }
}

impl Drop for PlaceAtDesk<'_> {
    fn drop(&mut self) {
        self.desk.calls().remove(&self.intent);
    }
}

/// What one call changes, not yet durable.
#[must_use = "an effect that is not committed is not made"]
pub struct Effect {
    session: Arc<SessionShared>,
    turn_id: TurnId,
    intent_id: IntentId,
    /// None of a call that is handed over.
    invocation_id: Option<InvocationId>,
    facts: Append,
}

impl Effect {
    fn new(session: Arc<SessionShared>, caller: &Caller, invocation_id: Option<InvocationId>) -> Self {
        let (turn_id, intent_id) = (caller.turn_id, caller.intent_id);
        Self { session, turn_id, intent_id, invocation_id, facts: Append::new() }
    }

    /// Gives the gate what is handed over, to be written with the right to it.
    ///
    /// # Errors
    /// If the call is not about to be handed over.
    pub fn prepare(self) -> Result<(), EffectError> {
        let Self { session, intent_id, facts, .. } = self;
        session.effect_desk.of_call(intent_id, |call| match call.invocation {
            None => {
                call.prepared = Some(facts);
                Ok(())
            }
            Some(_) => Err(EffectError::NotStarted),
        })
    }

    /// Adds a fact, with known secrets masked (L69). Input that a call writes itself is born consumed: it asks nothing more
    /// of the session.
    pub fn note<F: CallFact>(&mut self, fact: &F) {
        let masked = self.masked(fact);
        self.session.note(&mut self.facts, self.turn_id, masked.as_ref().unwrap_or(fact));
        if F::KIND.input_kind() == InputKind::Input
            && let Some(draft) = self.facts.events.last()
        {
            let event_ids = vec![draft.id];
            self.session.note(&mut self.facts, self.turn_id, &InputConsumed { event_ids });
        }
    }

    /// The fact without secrets; none if there is nothing to mask.
    fn masked<F: CallFact>(&self, fact: &F) -> Option<F> {
        let value = serde_json::to_value(fact).ok()?;
        let mut masked = value.clone();
        self.session.scope.redactor.redact_value(&mut masked);
        if masked == value { None } else { serde_json::from_value(masked).ok() }
    }

    /// Changes a row in the same append. A row that has another version than expected refuses the whole.
    pub fn write(&mut self, mut row: RecordWrite) {
        if let Some(body) = &mut row.body {
            self.session.scope.redactor.redact_value(body);
        }
        self.facts.records.push(row);
    }

    /// Keeps bytes as an artifact of the session, durable with the effect.
    ///
    /// # Errors
    /// If there is no room for them.
    pub async fn keep(&mut self, kind: ArtifactKind, mime: &str, bytes: Vec<u8>) -> Result<ArtifactRef, EffectError> {
        let evidence = Evidence { session: &self.session, turn_id: self.turn_id, intent_id: Some(self.intent_id) };
        let label = |id: ArtifactId| Label { id, kind, mime, lines: None, complete: true };
        Ok(evidence.keep(label(evidence.fresh_id()), bytes, &mut self.facts).await?)
    }

    /// Makes a session with its first events once this is durable (ruling 49).
    pub fn create(&mut self, session_id: SessionId, actor: Actor, events: &[Draft]) {
        let dedupe = format!("create:{session_id}");
        let events = events.iter().map(|draft| OutboxEvent::of(draft, dedupe.clone())).collect();
        let append_id = self.append_id();
        self.hand_out(OutboxKind::Create { session_id, append_id, dedupe, actor, events });
    }

    /// Delivers events to another session of the tenant once this is durable, each once per its key.
    pub fn deliver(&mut self, session_id: SessionId, actor: Actor, events: Vec<OutboxEvent>) {
        let append_id = self.append_id();
        self.hand_out(OutboxKind::Deliver { session_id, append_id, actor, events });
    }

    fn append_id(&self) -> AppendId {
        AppendId::make(&*self.session.gate.ids, self.session.gate.clock.now())
    }

    fn hand_out(&mut self, work: OutboxKind) {
        let at = self.session.gate.clock.now();
        let id = OutboxId::make(&*self.session.gate.ids, at);
        self.facts.outbox.push(OutboxEntry { id, tenant: self.session.key.tenant, at, work });
    }

    /// Makes the effect: all of it, or nothing. `output` is what the call answers with, from here on whatever happens.
    ///
    /// # Errors
    /// If another one was quicker, or the store failed.
    pub async fn commit(mut self, mut output: Value, side_effects: SideEffects) -> Result<(), EffectError> {
        self.session.scope.output_redactor.redact_value(&mut output);
        let bytes = output.to_string().len();
        if bytes > limits::STRUCTURED_INLINE_MAX {
            return Err(EffectError::AnswerTooLarge { bytes });
        }
        let (Some(invocation_id), intent_id) = (self.invocation_id, self.intent_id) else {
            return Err(EffectError::NotStarted);
        };
        let fact = InvocationEffected { invocation_id, intent_id, output, side_effects };
        self.session.note(&mut self.facts, self.turn_id, &fact);
        let desk = &self.session.effect_desk;
        let start = desk.of_call(intent_id, |call| match std::mem::replace(&mut call.made, true) {
            true => Err(EffectError::Twice),
            false => Ok(std::mem::take(&mut call.start)),
        })?;
        let Err((start, error)) = self.session.append_effect(start, self.facts).await else { return Ok(()) };
        if let StoreError::VersionConflict { kind, id, expected, found } = error {
            // Nothing was written, and the call may try again with what it reads now.
            desk.of_call(intent_id, |call| {
                (call.start, call.made) = (start, false);
                Ok(())
            })?;
            return Err(EffectError::VersionConflict { kind, id, expected, found });
        }
        // It may be in the log all the same: then it was made.
        if self.session.catch_up().await.is_ok() && self.session.effect_of(intent_id).is_some() {
            return Ok(());
        }
        desk.of_call(intent_id, |call| {
            call.failed = Some(error.clone());
            Ok(())
        })?;
        Err(EffectError::Store(error))
    }
}

impl SessionShared {
    /// Writes an effect behind what must stand before it. Where that is refused, what stood before it is given back.
    pub(crate) async fn append_effect(&self, start: Append, effect: Append) -> Result<(), (Append, StoreError)> {
        let mut start = start.whole();
        let (extent, calls) = (start.extent(), std::mem::take(&mut start.calls));
        let (commit, reserved) = self.commit_of(start.followed_by(effect));
        match self.try_commit(commit.clone()).await {
            Ok(()) => {
                reserved.into_iter().for_each(QuotaReservation::record);
                self.deliver(!commit.outbox.is_empty()).await;
                Ok(())
            }
            Err(error) => {
                let mut start = Append::of_refused(commit, reserved, calls);
                start.cut_back(&extent);
                Err((start, error))
            }
        }
    }

    /// What an open call changed in the log.
    pub(crate) fn effect_of(&self, intent: IntentId) -> Option<InvocationEffected> {
        self.state().intents.get(intent)?.effected.clone()
    }
}

impl Session {
    /// Settles a call whose process ended after its effect: what it changed and what it answers with are in the log.
    pub(crate) async fn settle_effected(
        &self,
        intent: &fold::Intent,
        effected: &InvocationEffected,
    ) -> Result<Disposition, Halt> {
        let shared = &self.shared;
        let entry = stored(intent, String::new(), None);
        let mut facts = Append::new();
        shared.void_held(&entry, &mut facts);
        let completed = InvocationCompleted {
            invocation_id: effected.invocation_id,
            intent_id: intent.intent_id,
            exit: Exit::Ok,
            exit_code: None,
            signal: None,
            duration_us: 0,
            capture: Vec::new(),
            side_effects: effected.side_effects.clone(),
            raw_ref: None,
            defect: None,
        };
        shared.note(&mut facts, entry.turn_id, &completed);
        let mut observed = blank(shared, &entry, Phase::Execute, Code::Ok);
        observed.invocation_id = intent.invocation_id;
        observed.definition_version.clone_from(&intent.definition_version);
        observed.executor_id.clone_from(&intent.executor_id);
        observed.attempt = intent.attempt;
        observed.side_effects = effected.side_effects.clone();
        observed.warnings = vec!["its process ended after the effect was made; the answer is from the log".to_owned()];
        let text = effected.output.to_string();
        observed.structured_is_channel = true;
        observed.structured = Some(if text.len() <= limits::MAX_MODEL_BYTES {
            effected.output.clone()
        } else {
            let evidence = Evidence { session: shared, turn_id: entry.turn_id, intent_id: Some(intent.intent_id) };
            let (id, kind) = (evidence.fresh_id(), ArtifactKind::Structured);
            let label = Label { id, kind, mime: "application/json", lines: None, complete: true };
            match evidence.keep(label, text.into_bytes(), &mut facts).await {
                Ok(artifact) => {
                    let named = json!({ "$artifact": artifact.id });
                    observed.artifacts.push(artifact);
                    named
                }
                Err(why) => {
                    retention_failed(&mut observed, &why);
                    Value::Null
                }
            }
        });
        self.finish(intent, observed, facts).await
    }
}
