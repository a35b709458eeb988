//! `attend`: what the holder of the lease does before anything else. Recovery first, then every
//! answered ask of the session, once (tool-contract 13.7, store §9).
//!
//! Recovery only appends, and each step moves the state forward, so running it twice equals running
//! it once. No phase value was stored: a stored intent is re-admitted through every phase.

use std::sync::Arc;

use portcullis_base::{
    AskId, Code, IntentId, Phase, Reason, Recorded, SessionId, SideEffects, TenantId, TurnId, WorkerId,
};
use portcullis_event::facts::{CallRecovered, Closing, InputConsumed, InputError, InputValidated, Stage};
use portcullis_event::{AskState, IntentState, Observed, fold};
use portcullis_secret::{Aad, Sealed};
use portcullis_store::{HostLiveness, LockKey, PreviousLease, StoreError};
use tokio_util::sync::CancellationToken;

use crate::admission::start;
use crate::calls::Order;
use crate::gate::{Disposition, Gate, Opened, write_back};
use crate::phases::intent::{Intent, Origin, Proposal};
use crate::phases::lookup::sealed_name;
use crate::phases::permission;
use crate::phases::refuse::{Refusal, blank, refuse, refuse_and_void};
use crate::phases::step::Halt;
use crate::phases::stored_input::input_hash;
use crate::sessions::append::Append;
use crate::sessions::session::{Session, SessionShared};
use crate::tasks::handed_over::ArrivedResult;

/// An intent that attending moved on.
#[derive(Debug)]
pub struct Attended {
    pub intent_id: IntentId,
    pub ask_id: Option<AskId>,
    pub disposition: Disposition,
}

impl Session {
    /// Recovers what a dead holder left, then runs every approved call and settles every refused one.
    ///
    /// # Errors
    /// If the log refused a write.
    pub async fn attend(&self) -> Result<Vec<Attended>, Halt> {
        self.attend_until(&CancellationToken::new()).await
    }

    /// The same, to be interrupted by `cancel` as each tool's semantics allow. What has not begun by then
    /// is left for the next who attends: an approval is not spent on a call that is cancelled at once.
    /// An interrupt of the session stops it as well.
    ///
    /// # Errors
    /// If the log refused a write.
    pub async fn attend_until(&self, cancel: &CancellationToken) -> Result<Vec<Attended>, Halt> {
        self.unless_interrupted(cancel, |stop| async move { self.attend_to_all(&stop).await }).await
    }

    async fn attend_to_all(&self, cancel: &CancellationToken) -> Result<Vec<Attended>, Halt> {
        // One at a time: two attendants would find the same work.
        let _attending = self.shared.attending.lock().await;
        let shared = &self.shared;
        shared.catch_up().await?;
        self.recover_tasks().await?;
        let mut attended = Vec::new();
        let open: Vec<fold::Intent> = shared.state().intents.open().cloned().collect();
        for intent in open {
            if cancel.is_cancelled() {
                return Ok(attended);
            }
            let ask = intent.ask_id.and_then(|id| shared.state().asks.get(id).cloned());
            if let Some(disposition) = self.move_on(&intent, ask, cancel).await? {
                attended.push(Attended { intent_id: intent.intent_id, ask_id: intent.ask_id, disposition });
            }
        }
        let queued = shared.state().session.queued.clone();
        for call in queued {
            if cancel.is_cancelled() {
                break;
            }
            attended.push(self.take_up(call, cancel).await?);
        }
        Ok(attended)
    }

    /// The second door: re-admits the stored intent of an answered ask; `permission` reads the reply.
    ///
    /// # Errors
    /// If the log refused a write.
    pub async fn resume(&self, ask: AskId) -> Result<Option<Disposition>, Halt> {
        self.resume_until(ask, &CancellationToken::new()).await
    }

    /// The same, to be interrupted by `cancel` as the tool's semantics allow.
    ///
    /// # Errors
    /// If the log refused a write.
    pub async fn resume_until(&self, ask: AskId, cancel: &CancellationToken) -> Result<Option<Disposition>, Halt> {
        self.unless_interrupted(cancel, |stop| async move { self.resume_one(ask, &stop).await }).await
    }

    async fn resume_one(&self, ask: AskId, cancel: &CancellationToken) -> Result<Option<Disposition>, Halt> {
        let _attending = self.shared.attending.lock().await;
        self.shared.catch_up().await?;
        let found = self.shared.state().asks.get(ask).cloned();
        let Some(ask) = found else { return Ok(None) };
        let intent = self.shared.state().intents.get(ask.intent_id).cloned();
        match intent {
            Some(intent) => self.move_on(&intent, Some(ask), cancel).await,
            None => Ok(None),
        }
    }

    /// One row of the recovery table (store §9).
    pub(crate) async fn move_on(
        &self,
        intent: &fold::Intent,
        ask: Option<fold::Ask>,
        cancel: &CancellationToken,
    ) -> Result<Option<Disposition>, Halt> {
        let shared = &self.shared;
        match (intent.state, ask) {
            (IntentState::Started, _) => {
                // A call of this very process may still be at work: its end is durable before the
                // lane is free, and then there is nothing to recover.
                let _lane = shared.lane.lock().await;
                if shared.at_work.has(intent.intent_id) {
                    return Ok(None);
                }
                shared.catch_up().await?;
                if shared.state().intents.get(intent.intent_id).is_none_or(|now| now.state != IntentState::Started) {
                    return Ok(None);
                }
                self.settle_started(intent).await.map(Some)
            }
            (IntentState::Completed, _) => self.arrived(intent.intent_id).await,
            (IntentState::Observed, _) => Ok(None),
            (IntentState::Parked, ask) if intent.handed_over && ask.as_ref().is_none_or(permission::allows) => {
                if shared.state().awaits(intent.intent_id) {
                    return Ok(None);
                }
                match shared.result_of(intent.intent_id).await? {
                    Some(arrived) => self.come_back(intent, ask, arrived).await.map(Some),
                    // An interrupt took back what the client was asked for, and the process that was to settle it died.
                    None => self.settle_given_up(intent).await.map(Some),
                }
            }
            (_, Some(ask))
                if matches!(ask.state, AskState::Pending | AskState::Answered) && shared.was_stopped(&ask) =>
            {
                self.superseded(intent, ask).await
            }
            (_, Some(ask)) if ask.state == AskState::Pending => {
                if ask.expires_at > shared.gate.clock.now() {
                    return Ok(None);
                }
                let now = self.close_unless_answered(intent, ask.ask_id, Closing::Expired).await?;
                self.readmit(intent, now, cancel).await.map(Some)
            }
            (_, ask) => self.readmit(intent, ask, cancel).await.map(Some),
        }
    }

    /// Closes a pending ask and gives it as it is then. Someone may have answered in that very moment, by a clock that
    /// was a little behind this one perhaps: then their answer counts.
    pub(crate) async fn close_unless_answered(
        &self,
        intent: &fold::Intent,
        ask: AskId,
        closing: Closing,
    ) -> Result<Option<fold::Ask>, Halt> {
        let shared = &self.shared;
        let mut facts = Append::new();
        permission::close(shared, &stored(intent, String::new(), None), ask, closing, &mut facts);
        match shared.flush(facts).await {
            Ok(()) => {}
            Err(Halt::PersistFailed(StoreError::AskSettled { .. })) => shared.catch_up().await?,
            Err(halt) => return Err(halt),
        }
        Ok(shared.state().asks.get(ask).cloned())
    }

    /// Through every phase again, with the stored input.
    async fn readmit(
        &self,
        intent: &fold::Intent,
        ask: Option<fold::Ask>,
        cancel: &CancellationToken,
    ) -> Result<Disposition, Halt> {
        if let Some(ask) = ask.as_ref().filter(|ask| !permission::allows(ask)) {
            // A person's no, or nobody's answer, needs no second look at the call (L26).
            let entry = stored(intent, String::new(), None);
            let refusal = permission::unanswered_or_denied(ask);
            return self.finish(intent, *refuse(&self.shared, &entry, refusal), Append::new()).await;
        }
        let Some(input) = self.stored_input(intent).await? else { return self.unopened(intent, ask).await };
        let mut readmitted = stored(intent, input, ask);
        // Of what is about to run, not of what the log says it was: the approval is compared with it
        // (tool-contract 13.7).
        readmitted.input_hash = input_hash(&readmitted.proposal.input);
        let admission = start(&self.shared, Append::new(), readmitted, Order::default());
        let (mut facts, disposition) = admission.settled_until(cancel).await?;
        facts.idle();
        self.shared.flush(facts).await?;
        Ok(disposition)
    }

    /// A client's result, through every phase again. `execute` alone is left out: the result stands in its place.
    async fn come_back(
        &self,
        intent: &fold::Intent,
        ask: Option<fold::Ask>,
        result: ArrivedResult,
    ) -> Result<Disposition, Halt> {
        let Some(input) = self.stored_input(intent).await? else { return self.settle_unopened(intent).await };
        let mut back = stored(intent, input, ask);
        if let Origin::Stored { arrived, .. } = &mut back.origin {
            *arrived = Some(Box::new(result));
        }
        let (mut facts, disposition) = start(&self.shared, Append::new(), back, Order::default()).settled().await?;
        facts.idle();
        self.shared.flush(facts).await?;
        Ok(disposition)
    }

    /// As proposed: from the sealed copy where sensitive values were taken out, else from the event.
    /// `None`: there is a sealed copy that this process cannot open. What stands in the event is not the
    /// input that was approved, so it is never run instead.
    async fn stored_input(&self, intent: &fold::Intent) -> Result<Option<String>, Halt> {
        let shared = &self.shared;
        if let Some(bytes) = shared.stored_input(intent.intent_id).await? {
            let name = sealed_name(intent.intent_id);
            let aad = Aad { tenant: shared.key.tenant, name: &name, version: 1 };
            let opened = shared.gate.sealer.open(aad, &Sealed::from_bytes(bytes)).ok();
            return Ok(opened.and_then(|plain| std::str::from_utf8(plain.expose()).ok().map(str::to_owned)));
        }
        Ok(Some(as_text(&intent.raw_input)))
    }

    /// Settles an intent whose stored input can no longer be opened; an approval of it is void (tool-contract 13.7).
    async fn unopened(&self, intent: &fold::Intent, ask: Option<fold::Ask>) -> Result<Disposition, Halt> {
        let shared = &self.shared;
        let entry = stored(intent, String::new(), ask);
        let text = "its input was sealed with another key and cannot be opened; call again with the input";
        let refusal = Refusal::new(Code::RuntimePreconditionFailed, text).reason(Some(Reason::ContextUnavailable));
        let rule = Reason::ContextUnavailable.as_str().to_owned();
        let errors = vec![InputError { path: String::new(), rule, message: text.to_owned() }];
        let mut facts = Append::new();
        let checked = InputValidated {
            intent_id: intent.intent_id,
            stage: Stage::Recheck,
            ok: false,
            errors,
            resolved: Vec::new(),
        };
        shared.note(&mut facts, entry.turn_id, &checked);
        let observed = refuse_and_void(shared, &entry, refusal, &mut facts);
        self.finish(intent, *observed, facts).await
    }

    /// Started, and no end: what it changed in the log settles it; else nobody knows what it did.
    async fn settle_started(&self, intent: &fold::Intent) -> Result<Disposition, Halt> {
        match &intent.effected {
            Some(effected) => self.settle_effected(intent, effected).await,
            None => self.settle_unknown(intent).await,
        }
    }

    /// Started, and no word of how it ended: it is never run again by itself (L73).
    /// An ask that it held live goes with it: whatever is answered, there is nobody left to go on (R3).
    async fn settle_unknown(&self, intent: &fold::Intent) -> Result<Disposition, Halt> {
        let shared = &self.shared;
        let entry = stored(intent, String::new(), None);
        let mut facts = Append::new();
        shared.void_held(&entry, &mut facts);
        if let Some(invocation_id) = intent.invocation_id {
            let decision = "outcome_unknown".to_owned();
            shared.note(
                &mut facts,
                entry.turn_id,
                &CallRecovered { invocation_id, intent_id: intent.intent_id, decision },
            );
        }
        let mut observed = blank(shared, &entry, Phase::Execute, Code::OutcomeUnknown);
        observed.invocation_id = intent.invocation_id;
        observed.definition_version.clone_from(&intent.definition_version);
        observed.executor_id.clone_from(&intent.executor_id);
        observed.attempt = intent.attempt;
        observed.synthetic = true;
        observed.retryable = intent.read_only;
        observed.side_effects = if intent.read_only { SideEffects::none() } else { SideEffects::unknown(Vec::new()) };
        observed.summary = "the process that ran this call ended before it could say how it went; \
                            look at what it would have changed before trying again"
            .to_owned();
        self.finish(intent, observed, facts).await
    }

    /// Lets go of everything that is open: the end of the log is gone, and with it what became of it. Each open call is
    /// settled as one of which nobody knows whether it ran. What was said and what was queued counts as heard, so that it
    /// is not done a second time. Gives how many calls there were.
    ///
    /// # Errors
    /// If the log refused a write.
    pub async fn give_up_what_is_open(&self) -> Result<usize, Halt> {
        let _attending = self.shared.attending.lock().await;
        let shared = &self.shared;
        shared.catch_up().await?;
        let open: Vec<fold::Intent> = shared.state().intents.open().cloned().collect();
        for intent in &open {
            self.settle_unknown(intent).await?;
        }
        let event_ids: Vec<_> = {
            let state = shared.state();
            let said = state.inbox.pending().iter().map(|input| input.event_id);
            said.chain(state.session.queued.iter().map(|call| call.event_id)).collect()
        };
        if !event_ids.is_empty() {
            let mut facts = Append::new();
            shared.note(&mut facts, TurnId::from_u128(0), &InputConsumed { event_ids });
            facts.idle();
            shared.flush(facts).await?;
        }
        Ok(open.len())
    }

    /// The third door: an execution whose end is in the log and whose observation is not. Its output was in the memory of
    /// the process that died, so no phase runs: the recorded facts become the observation, with the code
    /// `retention_failed`.
    ///
    /// # Errors
    /// If the log refused a write.
    pub async fn arrived(&self, intent: IntentId) -> Result<Option<Disposition>, Halt> {
        let shared = &self.shared;
        let found = shared.state().intents.get(intent).cloned();
        let Some(intent) = found else { return Ok(None) };
        let Some(completed) = intent.completed.clone() else { return Ok(None) };
        // The raw output was never stored apart from its observation; only the facts are left (tool-contract §23).
        let entry = stored(&intent, String::new(), None);
        let mut observed = blank(shared, &entry, Phase::Bound, Code::RetentionFailed);
        observed.invocation_id = intent.invocation_id;
        observed.definition_version.clone_from(&intent.definition_version);
        observed.executor_id.clone_from(&intent.executor_id);
        observed.attempt = intent.attempt;
        observed.exit_code = completed.exit_code;
        observed.signal = completed.signal;
        observed.duration_us = completed.duration_us;
        observed.retryable = completed.side_effects == SideEffects::none();
        observed.side_effects = completed.side_effects;
        observed.capture = completed.capture;
        observed.truncated = true;
        observed.retained = false;
        observed.phase = Recorded::Known(Phase::Bound);
        observed.summary = "the call ended, but its output was lost before it could be kept".to_owned();
        self.finish(&intent, observed, Append::new()).await.map(Some)
    }

    /// Settles a recovered intent and gives back its keys.
    pub(crate) async fn finish(
        &self,
        intent: &fold::Intent,
        observed: Observed,
        facts: Append,
    ) -> Result<Disposition, Halt> {
        let (mut facts, disposition) = write_back(&self.shared, observed, facts);
        self.shared.give_back(&intent.keys, intent.state == IntentState::Started && !intent.read_only, &mut facts);
        facts.idle();
        self.shared.flush(facts).await?;
        Ok(disposition)
    }

    /// A call that someone without the lease asked for.
    async fn take_up(&self, call: fold::QueuedCall, cancel: &CancellationToken) -> Result<Attended, Halt> {
        let shared = &self.shared;
        let mut facts = Append::new();
        let turn = self.begin_turn(&mut facts);
        shared.note(&mut facts, turn.turn_id, &InputConsumed { event_ids: vec![call.event_id] });
        let proposal = Proposal {
            actor: call.actor,
            message_id: portcullis_base::MessageId::make(&*shared.gate.ids, shared.gate.clock.now()),
            call_id: call.event_id.to_string(),
            tool: call.name,
            input: as_text(&call.input),
            stated_reason: None,
        };
        let admission = self.admit(facts, &turn, proposal);
        let intent_id = admission.intent_id();
        let (mut facts, disposition) = admission.settled_until(cancel).await?;
        facts.idle();
        shared.flush(facts).await?;
        Ok(Attended { intent_id, ask_id: None, disposition })
    }
}

/// An input as it was proposed: text that is no JSON is kept as a string.
fn as_text(input: &serde_json::Value) -> String {
    match input {
        serde_json::Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A stored intent on its way back through the phases.
pub(crate) fn stored(intent: &fold::Intent, input: String, ask: Option<fold::Ask>) -> Intent {
    Intent {
        id: intent.intent_id,
        proposal: Proposal {
            actor: intent.actor.clone(),
            message_id: intent.message_id,
            call_id: intent.call_id.clone(),
            tool: intent.tool.clone(),
            input,
            stated_reason: None,
        },
        input_hash: intent.input_hash,
        turn_id: intent.turn_id.unwrap_or(TurnId::from_u128(0)),
        menu_id: intent.menu_id,
        turn: None,
        origin: Origin::Stored {
            definition_version: intent.definition_version.clone(),
            executor_id: intent.executor_id.clone(),
            ask: ask.map(Box::new),
            arrived: None,
        },
    }
}

impl SessionShared {
    /// Gives back the keys of what is recovered. If it had begun to change something under a lease that ran out, its
    /// holder may still be inside it: then they linger, for every process, until that must have stopped (store §5).
    pub(crate) fn give_back(&self, keys: &[String], changing: bool, facts: &mut Append) {
        let location = self.scope.location;
        let locks = keys.iter().map(|key| LockKey { location, key: key.clone() });
        if changing && self.lease.before == PreviousLease::RanOut {
            self.gate.grace.lost(keys, &*self.gate.clock);
            facts.linger.extend(locks);
        } else {
            facts.free.extend(locks);
        }
    }
}

impl SessionShared {
    /// Takes over a session whose holder is gone, so that what it held is free again. A live holder
    /// keeps it; a fault is the holder's to find.
    pub(crate) async fn recover_if_dead(&self, tenant: TenantId, session: SessionId) {
        if tenant != self.scope.tenant {
            return;
        }
        let worker = WorkerId::make(&*self.gate.ids, self.gate.clock.now());
        let owner = HostLiveness::new().this_process(worker, "portcullis recovery").brief();
        let gate = Gate { inner: Arc::clone(&self.gate), scope: Arc::clone(&self.scope) };
        let recovered = async {
            if let Opened::Ready(held) = gate.open(session, owner).await? {
                held.recover_started().await?;
                held.release().await?;
            }
            Ok::<(), Halt>(())
        };
        if let Err(error) = Box::pin(recovered).await {
            tracing::warn!(%session, "a session that holds a key could not be recovered: {error}");
        }
    }
}

impl Session {
    /// Only the part of recovery that frees keys; answered asks are for the next full attend.
    async fn recover_started(&self) -> Result<(), Halt> {
        self.recover_tasks().await?;
        let shared: &SessionShared = &self.shared;
        let started: Vec<fold::Intent> =
            shared.state().intents.open().filter(|i| i.state == IntentState::Started).cloned().collect();
        for intent in started {
            self.settle_started(&intent).await?;
        }
        Ok(())
    }
}
