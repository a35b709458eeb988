//! People: they queue calls, and answer asks once, twice, late or never.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{AskId, Digest, TenantId};
use portcullis_event::facts::{AskReplied, Reply, ToolQueued};
use portcullis_store::{AskFilter, AskRow, Commit, Idempotency, Log as _, SessionKey, StoreError};
use portcullis_store_testkit::Wrapped;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::dice::Dice;
use crate::ground::Ground;
use crate::jobs::roll_call;
use crate::link::Link;

/// How often a request whose answer was lost is made again.
const TRIES: u32 = 4;

/// The people and programs that speak to the sessions without holding one.
pub struct People {
    ground: Arc<Ground>,
    store: Wrapped<Connection>,
    dice: Dice,
    seen: BTreeSet<AskId>,
    /// Answers to be given, and when.
    plans: Vec<(Instant, TenantId, AskRow, Reply)>,
}

impl People {
    #[must_use]
    pub fn new(ground: &Arc<Ground>) -> Self {
        let store = Connection::new(ground, &Arc::new(Link::default()), "people");
        let dice = Dice::of(ground.options.seed, "people");
        Self { ground: Arc::clone(ground), store, dice, seen: BTreeSet::new(), plans: Vec::new() }
    }

    /// Speaks until `stop`.
    pub async fn live(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            tokio::time::sleep(Duration::from_millis(self.dice.between(100, 4_000))).await;
            if self.dice.chance(50) && self.ground.take_calls(1) == 1 {
                self.queue().await;
            }
            self.answer().await;
        }
    }

    async fn queue(&self) {
        let sessions = self.ground.known().await;
        let key = sessions[self.dice.index(sessions.len())];
        let (name, input) = roll_call(&self.dice);
        let queued = ToolQueued { name: name.to_owned(), input, by: "person".to_owned() };
        let draft = self.ground.draft(&queued);
        let idempotency = Idempotency {
            route: "queue".to_owned(),
            key: draft.id.to_string(),
            body_hash: Digest::of(draft.payload.as_bytes()),
            response: serde_json::json!({ "queued": draft.id }),
        };
        let mut commit = Commit::client(key, self.ground.append_id(), vec![draft]);
        commit.idempotency = Some(idempotency);
        if self.dice.chance(self.ground.options.posts) {
            let near: Vec<SessionKey> = sessions.iter().copied().filter(|other| other.tenant == key.tenant).collect();
            let to = self.dice.chance(50).then(|| near[self.dice.index(near.len())]);
            commit.outbox.push(self.ground.post.entry(&self.ground, key, to, &commit.events[0]));
        }
        let times = if self.dice.chance(10) { 2 } else { 1 };
        for _ in 0..times {
            let _ = self.send(&commit).await;
        }
    }

    /// The same request until it is answered: it takes effect once all the same (S17).
    async fn send(&self, commit: &Commit) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            match self.store.commit(commit.clone()).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Ambiguous(_) | StoreError::Unavailable(_) | StoreError::Locked(_)) if tries < TRIES => {
                    tries += 1
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn answer(&mut self) {
        let filter = AskFilter { session: None, pending: true };
        for tenant in self.ground.tenants.clone() {
            for row in self.store.asks(tenant, filter).await.unwrap_or_default() {
                if self.seen.insert(row.ask_id) {
                    self.decide(tenant, row);
                }
            }
        }
        let now = Instant::now();
        let plans = std::mem::take(&mut self.plans);
        for (at, tenant, row, reply) in plans {
            if at > now {
                self.plans.push((at, tenant, row, reply));
                continue;
            }
            let key = SessionKey { tenant, session: row.session_id };
            let commit = Commit::client(key, self.ground.append_id(), vec![self.ground.draft(&replied(&row, reply))]);
            let _ = self.send(&commit).await;
        }
    }

    /// Allow, deny, both, too late, or not at all.
    fn decide(&mut self, tenant: TenantId, row: AskRow) {
        let soon = Instant::now() + Duration::from_millis(self.dice.between(0, 20_000));
        let reply = self.dice.pick(&[Reply::AllowOnce, Reply::AllowOnce, Reply::Deny, Reply::DenyWithFeedback]);
        match self.dice.below(10) {
            0 => {}
            1 => self.plans.push((soon + self.ground.options.ask_expiry, tenant, row, reply)),
            2 => {
                self.plans.push((soon, tenant, row.clone(), reply));
                self.plans.push((soon, tenant, row, Reply::Deny));
            }
            _ => self.plans.push((soon, tenant, row, reply)),
        }
    }
}

fn replied(row: &AskRow, reply: Reply) -> AskReplied {
    let feedback = (reply == Reply::DenyWithFeedback).then(|| "not this one".to_owned());
    AskReplied {
        ask_id: row.ask_id,
        reply,
        approver: "person".to_owned(),
        channel: "simulation".to_owned(),
        terminal: None,
        parent_process: None,
        feedback,
        grant_id: None,
    }
}
