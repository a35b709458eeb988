//! Answering asks: the reply is a durable append of its own; whoever can then runs the call, once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use portcullis_base::{AppendId, AskId, IntentId, SessionId};
use portcullis_event::facts::{Replied, Reply};
use portcullis_event::{Actor, Observed};
use portcullis_pipeline::{Disposition, Observation, Opened, Sought};
use portcullis_store::{AskRow, Commit, StoreError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::RuntimeError;
use crate::queue::news;
use crate::runtime::{Runtime, give_back};

pub(crate) type Approver = Arc<dyn Fn(PendingAsk) -> BoxFuture<'static, Reply> + Send + Sync>;

/// A question as an approver sees it: facts, in the order a person should read them.
#[derive(Debug, Clone)]
pub struct PendingAsk {
    /// Its id.
    pub ask_id: AskId,
    /// The session that asks.
    pub session_id: SessionId,
    /// The intent that waits.
    pub intent_id: IntentId,
    /// What would happen (tool-contract 13.4).
    pub facts: Value,
    /// Whether no grant could ever answer it.
    pub pinned: bool,
}

impl PendingAsk {
    pub(crate) fn of(row: AskRow) -> Self {
        Self {
            ask_id: row.ask_id,
            session_id: row.session_id,
            intent_id: row.intent_id,
            facts: row.facts,
            pinned: row.pinned,
        }
    }
}

/// An answer, and where it came from.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Yes or no.
    pub reply: Reply,
    /// Words for the model, with [`Reply::DenyWithFeedback`].
    pub feedback: Option<String>,
    /// Who.
    pub approver: String,
    /// Through what: `cli`, `callback`, `flag`.
    pub channel: String,
    /// The terminal it was given at, if any.
    pub terminal: Option<String>,
    /// The process that started the one that answered.
    pub parent_process: Option<String>,
}

impl Answer {
    /// An answer through the embedder's own callback.
    #[must_use]
    pub fn by(approver: &str, reply: Reply) -> Self {
        Self {
            reply,
            feedback: None,
            approver: approver.to_owned(),
            channel: "callback".to_owned(),
            terminal: None,
            parent_process: None,
        }
    }
}

/// What became of an answered ask.
#[derive(Debug, Clone)]
pub struct SettledAsk {
    /// The observation of its call.
    pub observed: Observed,
    /// Whether this process ran it; otherwise another did.
    pub ran_here: bool,
}

impl Runtime {
    /// Records an answer. The first one counts (S10); the call has not run yet when this returns.
    ///
    /// # Errors
    /// If the ask is settled or expired, or the store fails.
    pub async fn reply(&self, ask: AskId, answer: Answer) -> Result<(), StoreError> {
        let row = self.gate.store().ask(self.gate.tenant(), ask).await?.ok_or(StoreError::NoAsk(ask))?;
        let actor = Actor::user(&answer.approver);
        let fact = Replied {
            ask_id: ask,
            reply: answer.reply,
            approver: answer.approver.clone(),
            channel: answer.channel,
            terminal: answer.terminal,
            parent_process: answer.parent_process,
            // What a person types may hold what nobody else may read (L69).
            feedback: answer.feedback.map(|words| self.gate.masked(&words)),
            grant_id: None,
        };
        let draft = self.stamp(&actor).draft(&fact);
        let append = AppendId::make(&*self.ids, self.clock.now());
        self.gate.store().commit(Commit::client(self.key(row.session_id), append, vec![draft])).await?;
        Ok(())
    }

    /// Sees an answered ask through: claims its session and attends to it, or waits for the live
    /// process that holds it, for at most `wait`.
    ///
    /// # Errors
    /// If the store fails, or the holder does not settle it while this waits.
    pub async fn see_through(&self, ask: AskId, wait: Duration) -> Result<SettledAsk, RuntimeError> {
        self.settled(self.carry_out(ask, Some(wait), &CancellationToken::new()).await)
    }

    /// The same for as long as it takes. `cancel` interrupts its call if it runs here, as its tool's
    /// semantics allow, and ends the wait for a holder; the answer stands either way.
    ///
    /// # Errors
    /// If the store fails, or `cancel` came before the call was settled.
    pub async fn see_through_until(&self, ask: AskId, cancel: &CancellationToken) -> Result<SettledAsk, RuntimeError> {
        self.settled(self.carry_out(ask, None, cancel).await)
    }

    fn settled(&self, ended: Result<(Box<Observation>, bool), RuntimeError>) -> Result<SettledAsk, RuntimeError> {
        ended.map(|(observation, ran_here)| SettledAsk { observed: observation.session_view().clone(), ran_here })
    }

    /// The observation of an answered ask's call, and whether this process ran it.
    pub(crate) async fn carry_out(
        &self,
        ask: AskId,
        wait: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<(Box<Observation>, bool), RuntimeError> {
        let row = self.gate.store().ask(self.gate.tenant(), ask).await?.ok_or(StoreError::NoAsk(ask))?;
        let give_up = wait.map(|wait| self.clock.monotonic() + wait);
        let mut changes = self.gate.store().changes();
        let mut sought = Sought::intent(row.session_id, row.intent_id, row.asked_seq);
        let (mut attended, mut ran_here) = (false, false);
        loop {
            changes.mark_unchanged();
            if let Some(Disposition::Settled(observation)) = self.gate.look_for(&mut sought).await? {
                return Ok((observation, ran_here));
            }
            // One look at everything that waits is enough: what did not end by it waits for something else.
            if attended || cancel.is_cancelled() || give_up.is_some_and(|at| self.clock.monotonic() >= at) {
                return Err(RuntimeError::NoObservation(ask));
            }
            match self.gate.open(row.session_id, self.owner.clone(), "local").await? {
                Opened::Ready(held) => {
                    let moved = held.attend_until(cancel).await;
                    give_back(held).await;
                    ran_here = moved?.iter().any(|moved| moved.intent_id == row.intent_id);
                    attended = true;
                }
                Opened::Held(_) => news(&mut changes, cancel).await,
            }
        }
    }

    /// The observation of an intent, if it has one after `seq`.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn observation(
        &self,
        session: SessionId,
        intent: IntentId,
        seq: u64,
    ) -> Result<Option<Observed>, StoreError> {
        Ok(match self.gate.look_for(&mut Sought::intent(session, intent, seq)).await? {
            Some(Disposition::Settled(observation)) => Some(observation.session_view().clone()),
            _ => None,
        })
    }
}
