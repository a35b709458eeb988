//! Changed rules, asked again about every recorded call. The log holds what the rules were asked, so nothing is resolved,
//! opened or run; every intent is counted, also those that never came before the rules.

use std::collections::HashMap;
use std::sync::Arc;

use portcullis_base::{IntentId, SessionId, TenantId, Timestamp};
use portcullis_event::facts::{PermissionDecided, Verdict};
use portcullis_event::{Body, Event};
use portcullis_pipeline::{GrantBook, RememberedGrant};
use portcullis_policy::{Asker, Decision, Grant, Policy, RecordedQuestion};
use portcullis_store::{SessionKey, SessionSummary, Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::task::{JoinError, JoinHandle};

/// Events read at once: a page is read while the one before it is weighed.
const PAGE: usize = 4_000;

/// A decision that would be another one.
#[derive(Debug, Serialize)]
pub struct ChangedDecision {
    /// Where it was made.
    pub session_id: SessionId,
    /// About what.
    pub intent_id: IntentId,
    /// What was decided.
    pub old: Verdict,
    /// What the rules on trial say.
    pub new: Verdict,
    /// The rules that matched.
    pub policy_ids: Vec<String>,
    /// Why.
    pub reason: String,
}

/// What became of every recorded intent; the parts add up to `intents`.
#[derive(Debug, Default, Serialize)]
pub struct BacktestTally {
    /// All of them.
    pub intents: u64,
    /// Decided in the same way.
    pub same: u64,
    /// Decided in another way.
    pub changed: u64,
    /// Refused before the rules were asked: an unknown tool, an input that is none, a loop.
    pub refused_before_the_gate: u64,
    /// Not decided yet.
    pub undecided: u64,
    /// What the rules were asked is not in the log whole: masked, cut, or written by an older version.
    pub not_comparable: u64,
}

/// A backtest that stopped.
#[derive(Debug, thiserror::Error)]
pub enum BacktestError {
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The task that reads ahead ended.
    #[error("{0}")]
    Reader(#[from] JoinError),
}

/// Rules on trial over the sessions of a store.
pub struct Backtest {
    store: Arc<dyn Store>,
    tenant: TenantId,
    since: Option<Timestamp>,
    grants: Vec<RememberedGrant>,
    tally: BacktestTally,
}

impl Backtest {
    /// Of intents since a time, or of all.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn new(store: Arc<dyn Store>, tenant: TenantId, since: Option<Timestamp>) -> Result<Self, StoreError> {
        let grants = GrantBook::new(Arc::clone(&store), tenant).all().await?;
        Ok(Self { store, tenant, since, grants, tally: BacktestTally::default() })
    }

    /// Weighs one session with the rules that would hold in it.
    pub fn session<'a>(&'a mut self, session: &'a SessionSummary, policy: &'a Policy) -> SessionBacktest<'a> {
        let mut weighing = SessionBacktest { backtest: self, session, policy, open: HashMap::new(), next: None };
        weighing.read_after(0);
        weighing
    }

    /// What was found so far.
    #[must_use]
    pub fn tally(&self) -> &BacktestTally {
        &self.tally
    }
}

/// One session, page by page.
pub struct SessionBacktest<'a> {
    backtest: &'a mut Backtest,
    session: &'a SessionSummary,
    policy: &'a Policy,
    /// Intents that were not decided yet, with their time.
    open: HashMap<IntentId, Timestamp>,
    next: Option<JoinHandle<Result<Vec<Event>, StoreError>>>,
}

impl SessionBacktest<'_> {
    fn read_after(&mut self, after: u64) {
        let store = Arc::clone(&self.backtest.store);
        let key = SessionKey { tenant: self.backtest.tenant, session: self.session.session_id };
        self.next = Some(tokio::spawn(async move { store.read(key, after, PAGE).await }));
    }

    /// Weighs the next page: how many events it had, and the decisions that change; `None` at the end.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<(u64, Vec<ChangedDecision>)>, BacktestError> {
        let Some(reading) = self.next.take() else { return Ok(None) };
        let page = reading.await??;
        let Some(last) = page.last() else { return Ok(None) };
        self.read_after(last.seq);
        let changed = page.iter().filter_map(|event| self.weigh(event)).collect();
        Ok(Some((page.len() as u64, changed)))
    }

    fn weigh(&mut self, event: &Event) -> Option<ChangedDecision> {
        let tally = &mut self.backtest.tally;
        match event.kind.as_str() {
            "tool.intent" if self.backtest.since.is_none_or(|since| event.at >= since) => {
                tally.intents += 1;
                tally.undecided += 1;
                self.open.extend(intent_of(event).map(|intent| (intent, event.at)));
                None
            }
            "tool.permission" => {
                let Body::PermissionDecided(decided) = event.body() else { return None };
                let at = self.open.remove(&decided.intent_id)?;
                self.compare(&decided, at)
            }
            // What is observed and was never decided did not come before the rules.
            "tool.observation" => {
                self.open.remove(&intent_of(event)?)?;
                tally.undecided -= 1;
                tally.refused_before_the_gate += 1;
                None
            }
            _ => None,
        }
    }

    fn compare(&mut self, decided: &PermissionDecided, at: Timestamp) -> Option<ChangedDecision> {
        let again = self.again(decided, at);
        let tally = &mut self.backtest.tally;
        tally.undecided -= 1;
        let Some(decision) = again else {
            tally.not_comparable += 1;
            return None;
        };
        let (old, new) = (decided.decision, decision.verdict());
        if new == old {
            tally.same += 1;
            return None;
        }
        tally.changed += 1;
        Some(ChangedDecision {
            session_id: self.session.session_id,
            intent_id: decided.intent_id,
            old,
            new,
            policy_ids: decision.policy_ids().iter().map(ToString::to_string).collect(),
            reason: decision.reason().to_owned(),
        })
    }

    /// The same question, asked of the new rules at the time it was asked; `None` if it is not known whole.
    fn again(&self, asked: &PermissionDecided, at: Timestamp) -> Option<Decision> {
        let question = RecordedQuestion::of(asked)?;
        let asker = Asker {
            agent: Some("local"),
            session: Some(self.session.session_id),
            project: self.session.row.workspace.as_deref(),
            now: at,
            default: question.default,
            grants: &[],
        };
        let stood = |found: &&RememberedGrant| {
            found.grant.created_at <= at && found.revoked.as_ref().is_none_or(|taken| at < taken.at)
        };
        let grants =
            || -> Vec<Grant> { self.backtest.grants.iter().filter(stood).map(|found| found.grant.clone()).collect() };
        Some(question.ask(self.policy, &asker, grants))
    }
}

/// Only the id: an input may be long.
fn intent_of(event: &Event) -> Option<IntentId> {
    #[derive(Deserialize)]
    struct IntentOnly {
        intent_id: IntentId,
    }
    serde_json::from_str::<IntentOnly>(event.payload.as_deref()?).ok().map(|named| named.intent_id)
}
