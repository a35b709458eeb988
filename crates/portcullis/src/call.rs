//! One call from outside a model loop: a turn of its own.

use std::collections::BTreeSet;
use std::convert::Infallible;

use portcullis_base::{Actor, AskId, EventId, MessageId, SessionId, limits};
use portcullis_event::facts::Reply;
use portcullis_pipeline::{Append, Disposition, GrantError, Observation, Proposal, Session};
use portcullis_store::{StoreError, Topic};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::queue::{ClaimOutcome, news};
use crate::replies::Approver;
use crate::runtime::{Runtime, give_back, give_back_until};
use crate::{AskAnswer, PendingAsk, RuntimeError};

/// How a call stands.
#[derive(Debug, Clone)]
pub enum CallOutcome {
    /// It is settled; this is its observation, whether it went well or not.
    Observed(Box<Observation>),
    /// It waits for an answer to this ask. It is durable: any process may answer.
    Waiting(AskId),
    /// The client that declared its tool runs it: [`Runtime::answer`] gives the result of this event. It is durable.
    Elsewhere(EventId),
    /// It was cancelled while the live process that holds the session had yet to run it: it stays queued
    /// as this `tool.queued` event and runs when that process, or the next, attends to the session.
    Queued(EventId),
}

/// A call in flight. Dropping it lets it go on.
pub struct RunningCall {
    task: JoinHandle<Result<CallOutcome, RuntimeError>>,
    cancel: CancellationToken,
}

impl RunningCall {
    /// Moves a call in a task of its own, which it can be stopped in.
    pub(crate) fn spawn<F>(call: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = Result<CallOutcome, RuntimeError>> + Send + 'static,
    {
        let cancel = CancellationToken::new();
        Self { task: tokio::spawn(call(cancel.clone())), cancel }
    }

    /// Interrupts it, as its tool's semantics allow. A background task that it became ends. One that waits for an answer is withdrawn.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// What interrupts it, for signal handlers.
    #[must_use]
    pub fn canceller(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If the session is held, or the store failed on the way.
    pub async fn outcome(self) -> Result<CallOutcome, RuntimeError> {
        match self.task.await {
            Ok(outcome) => outcome,
            Err(lost) => Err(RuntimeError::Halted(portcullis_pipeline::Halt::TaskLost(lost.to_string()))),
        }
    }
}

impl Runtime {
    /// One intent through the whole gate, awaited. If it goes on as a background task, that is awaited too, because
    /// otherwise nobody would hold the session: the outcome is the `background_started` of the call, and
    /// [`Runtime::task_end`] tells how the task ended. [`Runtime::serve`] holds a session for tasks that go on.
    ///
    /// # Errors
    /// If the session is held by a live process, or the store failed on the way.
    pub async fn call(&self, session: SessionId, tool: &str, input: &str) -> Result<CallOutcome, RuntimeError> {
        self.begin(session, tool, input).outcome().await
    }

    /// One intent through the whole gate, to be awaited or cancelled.
    #[must_use]
    pub fn begin(&self, session: SessionId, tool: &str, input: &str) -> RunningCall {
        let runtime = self.clone();
        let (tool, input) = (tool.to_owned(), input.to_owned());
        RunningCall::spawn(move |cancel| async move { runtime.run_call(session, tool, input, cancel).await })
    }

    async fn run_call(
        &self,
        session: SessionId,
        tool: String,
        input: String,
        cancel: CancellationToken,
    ) -> Result<CallOutcome, RuntimeError> {
        let outcome = match self.claim_for(session, &tool, &input, &cancel).await? {
            ClaimOutcome::Queue(input) => self.queue(session, tool, input, &cancel).await?,
            ClaimOutcome::Ours(held) => {
                let moved = async {
                    let outcome = self.call_held(&held, tool, input, &cancel).await;
                    // An ask that was answered while this process held the session waits for nobody else (tool-contract
                    // 13.7). It is their matter: this call is settled, whatever becomes of theirs.
                    if outcome.is_ok()
                        && let Err(halt) = held.attend_until(&cancel).await
                    {
                        tracing::warn!(%session, "what else waits in the session could not be attended to: {halt}");
                    }
                    outcome
                };
                let outcome = self.with_approver(&held, moved).await;
                give_back_until(held, &cancel).await;
                outcome?
            }
        };
        match (outcome, &self.approver) {
            (CallOutcome::Waiting(ask), Some(approver)) => self.ask_approver(ask, approver, &cancel).await,
            (outcome, _) => Ok(outcome),
        }
    }

    async fn call_held(
        &self,
        session: &Session,
        tool: String,
        input: String,
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, RuntimeError> {
        session.attend_until(cancel).await?;
        self.admit_one(session, self.gate.actor().clone(), (tool, input), cancel).await
    }

    /// One call in a session that is held, as a turn of its own.
    pub(crate) async fn admit_one(
        &self,
        session: &Session,
        actor: Actor,
        (tool, input): (String, String),
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, RuntimeError> {
        let mut facts = Append::new();
        let turn = session.begin_turn(&mut facts);
        let message_id = MessageId::make(&*self.process.ids, self.process.clock.now());
        let proposal = Proposal { actor, message_id, call_id: "call".to_owned(), tool, input, stated_reason: None };
        let admission = session.admit(facts, &turn, proposal);
        let settled = |stop: CancellationToken| async move { admission.settled_until(&stop).await };
        let (mut facts, disposition) = session.unless_interrupted(cancel, settled).await?;
        facts.idle();
        session.commit(facts).await?;
        Ok(disposition.into())
    }

    /// Asks the embedder's own approver. Nobody holds the session meanwhile: a person may think for hours,
    /// and other calls go on.
    async fn ask_approver(
        &self,
        ask: AskId,
        approver: &Approver,
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, RuntimeError> {
        let row = self.gate.store().ask(self.gate.tenant(), ask).await?.ok_or(StoreError::NoAsk(ask))?;
        let session = row.session_id;
        let reply = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            reply = approver(PendingAsk::of(row)) => Some(reply),
        };
        let Some(reply) = reply else {
            // A holder that does not let go in time leaves the ask where it is, for anyone to answer.
            let held = match self.claim(session, limits::CALL_LEASE_WAIT).await {
                Err(RuntimeError::Held(_)) => return Ok(CallOutcome::Waiting(ask)),
                claimed => claimed?,
            };
            let withdrawn = held.withdraw(ask, cancel).await;
            give_back(held).await;
            return Ok(withdrawn?.map_or(CallOutcome::Waiting(ask), CallOutcome::from));
        };
        self.approver_said(ask, reply).await?;
        let (observation, _) = self.carry_out(ask, None, cancel).await?;
        Ok(CallOutcome::Observed(observation))
    }

    pub(crate) async fn approver_said(&self, ask: AskId, reply: Reply) -> Result<(), RuntimeError> {
        let mut said = self.reply(ask, AskAnswer::by("approver", reply)).await;
        if let Err(RuntimeError::Grant(error @ GrantError::NotRemembered { .. })) = said {
            // The yes stands, for this once.
            tracing::warn!(%ask, "{error}");
            said = self.reply(ask, AskAnswer::by("approver", Reply::AllowOnce)).await;
        }
        match said {
            // Someone else was quicker: their answer counts, and the call goes on by it.
            Ok(_) | Err(RuntimeError::Store(StoreError::AskSettled { .. } | StoreError::AskExpired(_))) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Does `work` in a session. What its running calls ask meanwhile, the embedder's own approver is asked: such a call
    /// is held live and nobody else would come for it.
    pub(crate) async fn with_approver<T>(&self, held: &Session, work: impl Future<Output = T>) -> T {
        let Some(approver) = &self.approver else { return work.await };
        tokio::select! {
            biased;
            done = work => done,
            never = self.answer_held(held, approver) => match never {},
        }
    }

    async fn answer_held(&self, held: &Session, approver: &Approver) -> Infallible {
        let mut changes = self.gate.store().changes_of(Topic::Session(held.key()));
        let (mut seen, never) = (BTreeSet::new(), CancellationToken::new());
        loop {
            changes.mark_unchanged();
            for ask in held.held() {
                if seen.insert(ask)
                    && let Err(error) = self.answer_one(ask, approver).await
                {
                    // It waits on, for anyone to answer.
                    tracing::warn!(%ask, "the approver could not be asked or heard: {error}");
                }
            }
            news(&mut changes, &never).await;
        }
    }

    async fn answer_one(&self, ask: AskId, approver: &Approver) -> Result<(), RuntimeError> {
        let row = self.gate.store().ask(self.gate.tenant(), ask).await?.ok_or(StoreError::NoAsk(ask))?;
        self.approver_said(ask, approver(PendingAsk::of(row)).await).await
    }
}

impl From<Disposition> for CallOutcome {
    fn from(disposition: Disposition) -> Self {
        match disposition {
            Disposition::Settled(observation) => Self::Observed(observation),
            Disposition::Parked(ask) => Self::Waiting(ask),
            Disposition::Elsewhere(event) => Self::Elsewhere(event),
        }
    }
}
