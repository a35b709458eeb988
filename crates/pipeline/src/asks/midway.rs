//! Accesses that a call comes upon while it runs (R3): `ctx.gate()` asks here. The decision is that of phase 3. An ask is
//! held live: the call keeps its keys and stands still, its clock too, until a person answers, the ask closes, or
//! the call is interrupted.
//!
//! The call's own code only sends its question and waits. What is written is written here, on the runtime's side, where
//! no tool can drop it halfway.

use std::time::Duration;

use portcullis_base::{AskId, limits};
use portcullis_contract::{AccessRequest, GateStop, seam};
use portcullis_event::facts::Closing;
use portcullis_event::{AskState, IntentState, fold};
use portcullis_policy::Decision;
use portcullis_store::{StoreError, Topic};
use tokio::sync::{mpsc, oneshot, watch};

use crate::asks::ask::{PermissionQuestion, RaisedAsk};
use crate::phases::permission::{RuleDenial, allowed, allows, close, difference, raise, unanswered_or_denied, weigh};
use crate::phases::refuse::Refusal;
use crate::phases::schedule::Invocation;
use crate::phases::step::Halt;
use crate::sessions::append::Append;
use crate::sessions::session::{Session, SessionShared};

/// Questions of one call that nobody has looked at yet; past it the next one waits.
const INQUIRIES: usize = 8;
/// Notices are hints and may be lost; a held call looks for its answer this often (store §7).
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A question of a running call, and where its answer goes.
pub(crate) struct Inquiry {
    request: AccessRequest,
    answer: oneshot::Sender<Result<(), GateStop>>,
}

/// The end of the channel on which a running call asks the gate.
pub(crate) struct InquirySender {
    /// None if its tool does not say that it finds accesses midway.
    questions: Option<mpsc::Sender<Inquiry>>,
}

impl InquirySender {
    pub(crate) async fn ask(&self, request: AccessRequest) -> Result<(), GateStop> {
        let Some(questions) = &self.questions else { return Err(GateStop::NotDeclared) };
        let (answer, told) = oneshot::channel();
        questions.send(Inquiry { request, answer }).await.map_err(|_| GateStop::Ended)?;
        told.await.unwrap_or(Err(GateStop::Ended))
    }
}

/// The gate's end of it.
pub(crate) struct Midway {
    /// None if nothing can be asked: a channel costs more than many a call.
    questions: Option<mpsc::Receiver<Inquiry>>,
    asked: usize,
    /// Once it has said no, it says nothing else.
    stop: Option<MidwayStop>,
}

/// Why a call was stopped midway.
pub(crate) enum MidwayStop {
    /// By the gate: this settles it, whatever it returns (L25).
    Refused(Box<Refusal>),
    /// The log would not take the decision, so nothing more of the call may happen.
    Unrecorded(Halt),
}

/// Both ends of the channel. Only a tool that declares dynamic access gets one that carries anything.
pub(crate) fn inquiry_channel(declared: bool) -> (InquirySender, Midway) {
    let (sender, receiver) = declared.then(|| mpsc::channel(INQUIRIES)).unzip();
    (InquirySender { questions: sender }, Midway { questions: receiver, asked: 0, stop: None })
}

impl Midway {
    /// Waits for the next question. Cancel safe.
    pub(crate) async fn next(&mut self) -> Inquiry {
        let asked = match &mut self.questions {
            Some(questions) => questions.recv().await,
            None => None,
        };
        match asked {
            Some(inquiry) => inquiry,
            // Never asked: its tool is not declared so, or it has ended.
            None => std::future::pending().await,
        }
    }

    /// Answers a question. The call stands still until this returns.
    pub(crate) async fn answer(&mut self, session: &SessionShared, invocation: &Invocation, inquiry: Inquiry) {
        let Inquiry { request, answer } = inquiry;
        // The call does not wait for the answer any more, so nothing will happen by it.
        if answer.is_closed() {
            return;
        }
        let said = self.decide(session, invocation, request).await;
        // The call may have given up meanwhile; what was written stands.
        let _ = answer.send(said);
    }

    async fn decide(
        &mut self,
        session: &SessionShared,
        invocation: &Invocation,
        request: AccessRequest,
    ) -> Result<(), GateStop> {
        if self.stop.is_some() {
            return Err(GateStop::ByGate);
        }
        if self.asked == limits::GATE_REQUESTS {
            return Err(GateStop::TooOften);
        }
        self.asked += 1;
        let access = [seam::aliased(&invocation.tool, request)];
        let validated = &invocation.authorized.validated;
        let question = PermissionQuestion { validated, access: &access, held_by: Some(invocation.id) };
        self.stop = match decide(session, invocation, &question).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refusal)) => Some(MidwayStop::Refused(Box::new(refusal))),
            Err(halt) => Some(MidwayStop::Unrecorded(halt)),
        };
        Err(GateStop::ByGate)
    }

    /// False once the log would not take a decision.
    pub(crate) fn is_recorded(&self) -> bool {
        !matches!(self.stop, Some(MidwayStop::Unrecorded(_)))
    }

    /// Why it was stopped, if it was.
    pub(crate) fn into_stop(self) -> Option<MidwayStop> {
        self.stop
    }
}

/// Durable before it is said: what the call does next needs a right that is in the log (L21).
async fn decide(
    session: &SessionShared,
    invocation: &Invocation,
    question: &PermissionQuestion<'_>,
) -> Result<Result<(), Refusal>, Halt> {
    let visible = &question.validated.visible;
    let (policy, decision) = weigh(session, visible, question.access, true).await;
    let mut facts = Append::new();
    let ask = match decision {
        Decision::Allow(allow) => {
            allowed(session, question, allow, &mut facts);
            session.flush(facts).await?;
            return Ok(Ok(()));
        }
        Decision::Deny(deny) => {
            let denied = RuleDenial::late(deny, session, question);
            denied.note(session, &visible.intent, &mut facts);
            session.flush(facts).await?;
            return Ok(Err(denied.refusal(&session.scope.policy(), None)));
        }
        Decision::Ask(ask) => ask,
    };
    let raised = raise(session, question, ask, &policy, &mut facts).await;
    session.flush(facts).await?;
    let (ask, at_once) = match raised {
        Ok(RaisedAsk::Waits(ask)) => (held(session, invocation, ask).await?, false),
        Ok(RaisedAsk::Answered(ask)) => (*ask, true),
        Err(refusal) => return Ok(Err(refusal)),
    };
    if !allows(&ask) {
        return Ok(Err(unanswered_or_denied(&ask)));
    }
    if at_once {
        return Ok(Ok(()));
    }
    // The yes counts for what was asked, under the rules it was asked under (tool-contract 13.7).
    let (policy, decision) = weigh(session, visible, question.access, false).await;
    let void = match decision {
        Decision::Deny(deny) => Some(RuleDenial::late(deny, session, question).refusal(&policy, Some(ask.ask_id))),
        _ => difference(session, question, &ask, &policy),
    };
    let Some(refusal) = void else { return Ok(Ok(())) };
    let mut facts = Append::new();
    close(session, &visible.intent, ask.ask_id, Closing::Voided, &mut facts);
    session.flush(facts).await?;
    Ok(Err(refusal))
}

/// Waits until an ask is not pending any more, and closes it where nobody may answer it any longer.
async fn held(session: &SessionShared, invocation: &Invocation, ask_id: AskId) -> Result<fold::Ask, Halt> {
    let intent = &invocation.authorized.validated.visible.intent;
    let mut changes = session.gate.store.changes_of(Topic::Session(session.key));
    loop {
        changes.mark_unchanged();
        let looked = session.catch_up().await;
        let ask = session.state().asks.get(ask_id).cloned();
        // It leaves the state only with the observation of its call, which is not written while it is held.
        let Some(ask) = ask else { return Err(Halt::TaskLost(format!("{ask_id} is not in the log"))) };
        if ask.state != AskState::Pending {
            return Ok(ask);
        }
        let left = ask.expires_at.since(session.gate.clock.now());
        let closing = if invocation.cancel.is_cancelled() {
            Some(Closing::Superseded)
        } else {
            left.is_zero().then_some(Closing::Expired)
        };
        let Some(closing) = closing else {
            if let Err(error) = looked {
                // A store that cannot be read now may be read later; its lease ends a call for which it cannot.
                tracing::warn!(session = %session.key.session, "an answer could not be looked for: {error}");
            }
            news(&mut changes, invocation, left.min(LOOK_AGAIN)).await;
            continue;
        };
        let mut facts = Append::new();
        close(session, intent, ask_id, closing, &mut facts);
        match session.flush(facts).await {
            // The answer of a person came first, and counts.
            Ok(()) | Err(Halt::PersistFailed(StoreError::AskSettled { .. })) => {}
            Err(halt) => return Err(halt),
        }
    }
}

async fn news(changes: &mut watch::Receiver<u64>, invocation: &Invocation, most: Duration) {
    let changed = async {
        // A store that is closing tells nobody; the next read says so.
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        // Whatever its tool says of interrupts: waiting is no work that must be let finish.
        () = invocation.cancel.cancelled() => {}
        () = changed => {}
        () = tokio::time::sleep(most) => {}
    }
}

impl Session {
    /// Asks that running calls of this session hold live: they go on by themselves when a person answers.
    #[must_use]
    pub fn held(&self) -> Vec<AskId> {
        let state = self.shared.state();
        let started = |ask: &&fold::Ask| {
            state.intents.get(ask.intent_id).is_some_and(|intent| intent.state == IntentState::Started)
        };
        state.asks.pending().filter(started).map(|ask| ask.ask_id).collect()
    }
}

impl SessionShared {
    /// Closes what a call that is about to end still asks: nobody waits for the answer.
    pub(crate) fn void_held(&self, intent: &crate::phases::intent::Intent, facts: &mut Append) {
        let pending = |ask: &&fold::Ask| ask.intent_id == intent.id;
        let asks: Vec<AskId> = self.state().asks.pending().filter(pending).map(|ask| ask.ask_id).collect();
        for ask in asks {
            close(self, intent, ask, Closing::Voided, facts);
        }
    }
}
