//! Answering asks: the reply is a durable append of its own; whoever can then runs the call, once.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use portcullis_base::{AppendId, AskId, IntentId, SessionId};
use portcullis_event::facts::{Replied, Reply};
use portcullis_event::{Actor, Body, Observed};
use portcullis_pipeline::Disposition;
use portcullis_store::{AskRow, Commit, StoreError};
use serde_json::Value;

use crate::RuntimeError;
use crate::runtime::{LEASE_POLL, Runtime};

pub(crate) type Approver = Arc<dyn Fn(PendingAsk) -> BoxFuture<'static, Reply> + Send + Sync>;

/// Events looked at at once while an observation is searched.
const PAGE: usize = 500;

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
    /// process that holds it.
    ///
    /// # Errors
    /// If the store fails, or the holder does not settle it while this waits.
    pub async fn see_through(&self, ask: AskId, wait: std::time::Duration) -> Result<SettledAsk, RuntimeError> {
        let row = self.gate.store().ask(self.gate.tenant(), ask).await?.ok_or(StoreError::NoAsk(ask))?;
        let give_up = self.clock.monotonic() + wait;
        loop {
            if let Some(observed) = self.observation(row.session_id, row.intent_id, row.asked_seq).await? {
                return Ok(SettledAsk { observed, ran_here: false });
            }
            match self.attend(row.session_id).await {
                Ok(attended) => {
                    let ours = attended.into_iter().find(|moved| moved.intent_id == row.intent_id);
                    if let Some(Disposition::Settled(observation)) = ours.map(|moved| moved.disposition) {
                        return Ok(SettledAsk { observed: observation.session_view().clone(), ran_here: true });
                    }
                }
                Err(RuntimeError::Held(_)) => {}
                Err(other) => return Err(other),
            }
            if self.clock.monotonic() >= give_up {
                return Err(RuntimeError::NoObservation(ask));
            }
            tokio::time::sleep(LEASE_POLL).await;
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
        let mut after = seq;
        loop {
            let events = self.gate.store().read(self.key(session), after, PAGE).await?;
            let found = events.iter().filter(|e| e.kind.as_str() == "tool.observation").find_map(|e| match e.body() {
                Body::Observed(observed) if observed.intent_id == intent => Some(observed),
                _ => None,
            });
            let Some(last) = events.last() else { return Ok(found) };
            if found.is_some() {
                return Ok(found);
            }
            after = last.seq;
        }
    }
}
