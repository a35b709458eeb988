//! A session that a process holds open: calls of many callers are admitted side by side, without a claim, a fold and a look
//! at everything that waits for each of them.

use std::sync::Arc;

use portcullis_base::{Actor, AskId, SessionId, limits};
use portcullis_pipeline::Session;
use portcullis_store::StoreError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::call::RunningCall;
use crate::replies::{Approver, PendingAsk};
use crate::runtime::{Runtime, give_back};
use crate::serve::Serving;
use crate::{CallOutcome, RuntimeError};

/// A session under one lease for as long as this lives. Clones are the same session; [`HeldSession::close`] gives it back,
/// and so does the end of the process. What other processes queue for it or answer in it runs here as it comes.
#[derive(Clone)]
pub struct HeldSession {
    shared: Arc<Held>,
}

struct Held {
    runtime: Runtime,
    session: Arc<Session>,
    stop: CancellationToken,
    /// Runs what others queue and answer.
    attendant: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Runtime {
    /// Holds a session open. Calls of this process in it, by [`Runtime::call`], are queued for it meanwhile.
    ///
    /// # Errors
    /// If another live process holds it, or the store fails.
    pub async fn hold_open(&self, session: SessionId) -> Result<HeldSession, RuntimeError> {
        let held = Arc::new(self.claim(session, limits::CALL_LEASE_WAIT).await?);
        if let Err(halt) = held.attend().await {
            give_back_last(held).await;
            return Err(halt.into());
        }
        let stop = CancellationToken::new();
        let serving = Serving::begin(&self.process.serving, session);
        let (runtime, attended, stopped) = (self.clone(), Arc::clone(&held), stop.clone());
        let attendant = tokio::spawn(async move {
            let _serving = serving;
            if let Err(halt) = runtime.attend_to(&attended, &stopped).await {
                tracing::warn!(%session, "what others ask for in the session is not attended to any more: {halt}");
            }
        });
        let attendant = std::sync::Mutex::new(Some(attendant));
        Ok(HeldSession { shared: Arc::new(Held { runtime: self.clone(), session: held, stop, attendant }) })
    }
}

impl HeldSession {
    /// Which session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.shared.session.key().session
    }

    /// One intent through the whole gate, beside any others.
    ///
    /// # Errors
    /// If the lease was lost, or the store failed on the way.
    pub async fn call(&self, tool: &str, input: &str) -> Result<CallOutcome, RuntimeError> {
        self.begin_as(self.shared.runtime.gate.actor().clone(), tool, input).outcome().await
    }

    /// The same for a caller of its own, to be awaited or cancelled.
    #[must_use]
    pub fn begin_as(&self, actor: Actor, tool: &str, input: &str) -> RunningCall {
        let held = Arc::clone(&self.shared);
        let (tool, input) = (tool.to_owned(), input.to_owned());
        RunningCall::spawn(move |cancel| async move {
            let outcome = held.runtime.admit_one(&held.session, actor, (tool, input), &cancel).await?;
            match (outcome, &held.runtime.approver) {
                (CallOutcome::Waiting(ask), Some(approver)) => held.ask(ask, approver, &cancel).await,
                (outcome, _) => Ok(outcome),
            }
        })
    }

    /// Ends background tasks, waits for calls that run, and gives the session back. Clones of it make no calls any more.
    pub async fn close(self) {
        self.shared.stop.cancel();
        let attendant = self.shared.attendant.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(attendant) = attendant {
            // It cannot have panicked without a trace: its calls have their own guard.
            let _ = attendant.await;
        }
        self.shared.session.cancel_tasks().await;
        if let Some(shared) = Arc::into_inner(self.shared) {
            give_back_last(shared.session).await;
        }
    }
}

impl Held {
    /// Asks the embedder's own approver. The session stays held, and other calls go on meanwhile.
    async fn ask(
        &self,
        ask: AskId,
        approver: &Approver,
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, RuntimeError> {
        let store = self.runtime.gate.store();
        let row = store.ask(self.runtime.gate.tenant(), ask).await?.ok_or(StoreError::NoAsk(ask))?;
        let reply = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let withdrawn = self.session.withdraw(ask, cancel).await?;
                return Ok(withdrawn.map_or(CallOutcome::Waiting(ask), CallOutcome::from));
            }
            reply = approver(PendingAsk::of(row)) => reply,
        };
        self.runtime.approver_said(ask, reply).await?;
        if let Some(settled) = self.session.resume_until(ask, cancel).await? {
            return Ok(settled.into());
        }
        // The attendant was quicker.
        let (observation, _) = self.runtime.carry_out(ask, None, cancel).await?;
        Ok(CallOutcome::Observed(observation))
    }
}

/// Gives a session back if nobody else has a handle of it; otherwise its last handle does, by ending its lease.
async fn give_back_last(session: Arc<Session>) {
    if let Some(session) = Arc::into_inner(session) {
        give_back(session).await;
    }
}
