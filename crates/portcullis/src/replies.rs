//! Answering asks: the reply is a durable append of its own. A process that can then runs the call, once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use portcullis_base::{AppendId, AskId, EventId, GrantId, IntentId, SessionId};
use portcullis_event::facts::{PermissionAsked, Reply};
use portcullis_event::{Actor, AskState, Body, Event, Observed};
use portcullis_pipeline::{AskAnswer, Disposition, NewGrant, Observation, Opened, SoughtCall};
use portcullis_store::{AskQuery, AskRow, Commit, PAGE_MOST, StoreError, Topic};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::RuntimeError;
use crate::ingress::{LOOKS, moves_on};
use crate::queue::news;
use crate::runtime::{Runtime, give_back_until};

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
    /// What would happen (tool-contract 13.4). Where that is too long for an event, `whole` names the artifact that holds
    /// all of it: an approver must not allow what it has not read there.
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

/// What became of an answered ask.
#[derive(Debug, Clone)]
pub struct SettledAsk {
    /// The observation of its call.
    pub observed: Observed,
    /// Whether this process ran it; otherwise another did.
    pub ran_here: bool,
}

impl Runtime {
    /// Records an answer, and with it the grant it gives, if it gives one. The first answer counts (S10); the
    /// call has not run yet when this returns. The grant's id is returned.
    ///
    /// # Errors
    /// If the ask is settled or expired, cannot be remembered though the answer says so, or the store fails;
    /// nothing is recorded then.
    pub async fn reply(&self, ask: AskId, answer: AskAnswer) -> Result<Option<GrantId>, RuntimeError> {
        let row = self.gate.store().ask(self.gate.tenant(), ask).await?.ok_or(StoreError::NoAsk(ask))?;
        if answer.is_unread_allow() && self.logged_ask(&row).await?.only_a_person {
            return Err(RuntimeError::OnlyAPerson(ask));
        }
        let grant = match answer.is_remembered() {
            true => Some(self.grant_from_answer(&row, &answer).await?),
            false => None,
        };
        let actor = Actor::user(&answer.approver);
        let grant_id = grant.as_ref().map(|grant| grant.id);
        let fact = answer.replied(ask, grant_id, |words| self.gate.masked(words));
        let mut drafts = vec![self.stamp(&actor).draft(&fact)];
        drafts.extend(grant.as_ref().map(|grant| self.stamp(&actor).draft(&grant.event)));
        let records = grant.map(|grant| grant.records).unwrap_or_default();
        for _ in 0..LOOKS {
            // An interrupt of the session covers what it waits for, also where no wake has closed it yet
            // (agent-runtime 3.3).
            let (interrupted, seen) = self.gate.interrupted_since(row.session_id, row.asked_seq).await?;
            if interrupted {
                return Err(StoreError::AskSettled { ask, state: AskState::Superseded }.into());
            }
            let append = AppendId::make(&*self.process.ids, self.process.clock.now());
            let mut commit = Commit::client(self.key(row.session_id), append, drafts.clone());
            commit.records = records.clone();
            commit.only_at = Some(seen);
            match self.gate.store().commit(commit).await {
                Ok(_) => return Ok(grant_id),
                Err(StoreError::MovedOn { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            tokio::task::yield_now().await;
        }
        Err(moves_on(row.session_id))
    }

    /// The same for someone who knows the ask by the event that showed it: the `agent.tool_use` of its session, or the
    /// copy of it at the root (tool-contract 13.6). Both name one ask, which is returned.
    ///
    /// # Errors
    /// Those of [`Runtime::reply`], and if no ask was shown by that event.
    pub async fn reply_to(
        &self,
        tool_use: EventId,
        answer: AskAnswer,
    ) -> Result<(AskId, Option<GrantId>), RuntimeError> {
        let ask = self.ask_shown_by(tool_use).await?.ok_or(RuntimeError::NothingAsked(tool_use))?;
        Ok((ask, self.reply(ask, answer).await?))
    }

    /// The ask that an `agent.tool_use`, or its copy at the root, showed.
    async fn ask_shown_by(&self, event: EventId) -> Result<Option<AskId>, StoreError> {
        let query = AskQuery { tool_use: Some(event), ..AskQuery::default() };
        let shown = self.gate.store().find_asks(self.gate.tenant(), &query, PAGE_MOST, None).await?.items;
        // A settled one is only named to say that it is.
        let waiting = shown.iter().find(|row| row.state == AskState::Pending);
        Ok(waiting.or(shown.first()).map(|row| row.ask_id))
    }

    /// The ask as it stands in the log: a row is only a copy of it.
    async fn logged_ask(&self, row: &AskRow) -> Result<Box<PermissionAsked>, RuntimeError> {
        let key = self.key(row.session_id);
        let page = self.gate.store().read(key, row.asked_seq.saturating_sub(1), 1).await?;
        match page.first().map(Event::body) {
            Some(Body::PermissionAsked(asked)) if asked.ask_id == row.ask_id => Ok(asked),
            _ => Err(StoreError::NoAsk(row.ask_id).into()),
        }
    }

    /// The grant that an answer gives.
    async fn grant_from_answer(&self, row: &AskRow, answer: &AskAnswer) -> Result<NewGrant, RuntimeError> {
        let asked = self.logged_ask(row).await?;
        let now = self.process.clock.now();
        let id = GrantId::make(&*self.process.ids, now);
        Ok(self.gate.grants().given(&asked, row.session_id, id, &answer.terms(now))?)
    }

    /// Takes a remembered allow back; the next decision in any process asks again.
    ///
    /// # Errors
    /// If there is no such grant, it was revoked before, or the store fails.
    pub async fn revoke(&self, grant: GrantId, by: &str) -> Result<(), RuntimeError> {
        let actor = Actor::user(by);
        self.gate.grants().revoke(grant, by, &self.stamp(&actor)).await?;
        Ok(())
    }

    /// Sees an answered ask through: claims its session and attends to it, or waits for the live
    /// process that holds it, for at most `wait`.
    ///
    /// # Errors
    /// If the store fails, or the holder does not settle it while this waits.
    pub async fn see_through(&self, ask: AskId, wait: Duration) -> Result<SettledAsk, RuntimeError> {
        into_settled_ask(self.carry_out(ask, Some(wait), &CancellationToken::new()).await)
    }

    /// The same for as long as it takes. `cancel` interrupts its call if it runs here, as its tool's
    /// semantics allow, and ends the wait for a holder; the answer stands either way.
    ///
    /// # Errors
    /// If the store fails, or `cancel` came before the call was settled.
    pub async fn see_through_until(&self, ask: AskId, cancel: &CancellationToken) -> Result<SettledAsk, RuntimeError> {
        into_settled_ask(self.carry_out(ask, None, cancel).await)
    }

    /// The observation of an answered ask's call, and whether this process ran it.
    pub(crate) async fn carry_out(
        &self,
        ask: AskId,
        wait: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<(Box<Observation>, bool), RuntimeError> {
        let row = self.gate.store().ask(self.gate.tenant(), ask).await?.ok_or(StoreError::NoAsk(ask))?;
        let give_up = wait.map(|wait| self.process.clock.monotonic() + wait);
        let mut changes = self.gate.store().changes_of(Topic::Session(self.key(row.session_id)));
        let mut sought = SoughtCall::intent(row.session_id, row.intent_id, row.asked_seq);
        let (mut attended, mut ran_here) = (false, false);
        loop {
            changes.mark_unchanged();
            if let Some(Disposition::Settled(observation)) = self.gate.look_for(&mut sought).await? {
                return Ok((observation, ran_here));
            }
            // One look at everything that waits is enough: what did not end by it waits for something else.
            if attended || cancel.is_cancelled() || give_up.is_some_and(|at| self.process.clock.monotonic() >= at) {
                return Err(RuntimeError::NoObservation(ask));
            }
            match self.open(row.session_id).await? {
                Opened::Ready(held) => {
                    let moved = self.with_approver(&held, held.attend_until(cancel)).await;
                    give_back_until(held, cancel).await;
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
        Ok(match self.gate.look_for(&mut SoughtCall::intent(session, intent, seq)).await? {
            Some(Disposition::Settled(observation)) => Some(observation.session_view().clone()),
            _ => None,
        })
    }
}

/// The end of [`Runtime::carry_out`] as an embedder sees it.
fn into_settled_ask(ended: Result<(Box<Observation>, bool), RuntimeError>) -> Result<SettledAsk, RuntimeError> {
    ended.map(|(observation, ran_here)| SettledAsk { observed: observation.session_view().clone(), ran_here })
}
