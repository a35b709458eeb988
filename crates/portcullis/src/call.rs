//! One call from outside a model loop: a turn of its own.

use portcullis_base::{AskId, MessageId, SessionId, limits};
use portcullis_pipeline::{Append, Disposition, Observation, Proposal, Session};
use portcullis_store::StoreError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::runtime::Runtime;
use crate::{PendingAsk, RuntimeError};

/// How a call stands.
#[derive(Debug, Clone)]
pub enum CallOutcome {
    /// It is settled; this is its observation, whether it went well or not.
    Observed(Box<Observation>),
    /// It waits for an answer to this ask. It is durable: any process may answer.
    Waiting(AskId),
}

/// A call in flight. Dropping it lets it go on.
pub struct RunningCall {
    task: JoinHandle<Result<CallOutcome, RuntimeError>>,
    cancel: CancellationToken,
}

impl RunningCall {
    /// Interrupts it, as its tool's semantics allow.
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
    /// One intent through the whole gate, awaited.
    ///
    /// # Errors
    /// If the session is held by a live process, or the store failed on the way.
    pub async fn call(&self, session: SessionId, tool: &str, input: &str) -> Result<CallOutcome, RuntimeError> {
        self.begin(session, tool, input).outcome().await
    }

    /// One intent through the whole gate, to be awaited or cancelled.
    #[must_use]
    pub fn begin(&self, session: SessionId, tool: &str, input: &str) -> RunningCall {
        let cancel = CancellationToken::new();
        let runtime = self.clone();
        let (tool, input, token) = (tool.to_owned(), input.to_owned(), cancel.clone());
        let task = tokio::spawn(async move { runtime.run_call(session, tool, input, token).await });
        RunningCall { task, cancel }
    }

    async fn run_call(
        &self,
        session: SessionId,
        tool: String,
        input: String,
        cancel: CancellationToken,
    ) -> Result<CallOutcome, RuntimeError> {
        let held = self.claim(session, limits::CALL_LEASE_WAIT).await?;
        let outcome = self.call_held(&held, tool, input, cancel).await;
        let outcome = match outcome {
            // Whoever was answered while this held the session waits for nobody else (13.7).
            Ok(outcome) => held.attend().await.map(|_| outcome).map_err(RuntimeError::from),
            Err(error) => Err(error),
        };
        if let Err(error) = held.release().await {
            tracing::warn!(%session, "the session was not given back properly: {error}");
        }
        outcome
    }

    async fn call_held(
        &self,
        session: &Session,
        tool: String,
        input: String,
        cancel: CancellationToken,
    ) -> Result<CallOutcome, RuntimeError> {
        session.attend().await?;
        let mut facts = Append::new();
        let turn = session.begin_turn(&mut facts);
        let message_id = MessageId::make(&*self.ids, self.clock.now());
        let proposal = Proposal { message_id, call_id: "call".to_owned(), tool, input, stated_reason: None };
        let admission = session.admit(facts, &turn, proposal);
        let stop = admission.canceller();
        let mut settled = std::pin::pin!(admission.settled());
        let (mut facts, mut disposition) = tokio::select! {
            settled = &mut settled => settled?,
            () = cancel.cancelled() => {
                stop.cancel();
                settled.await?
            }
        };
        facts.idle();
        session.commit(facts).await?;
        if let (Disposition::Parked(ask), Some(approver)) = (&disposition, &self.approver) {
            let row = self.gate.store().ask(self.gate.tenant(), *ask).await?;
            if let Some(row) = row {
                let reply = approver(PendingAsk::of(row)).await;
                match self.reply(*ask, crate::Answer::by("approver", reply)).await {
                    // Someone else was quicker: their answer counts, and the call goes on by it.
                    Ok(()) | Err(StoreError::AskSettled { .. } | StoreError::AskExpired(_)) => {}
                    Err(error) => return Err(error.into()),
                }
                disposition = session.resume_until(*ask, &cancel).await?.unwrap_or(disposition);
            }
        }
        Ok(match disposition {
            Disposition::Settled(observation) => CallOutcome::Observed(observation),
            Disposition::Parked(ask) => CallOutcome::Waiting(ask),
        })
    }
}
