//! Leases in memory: the head row's own verbs, under the one lock.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use portcullis_base::limits::{IDEMPOTENCY_KEPT, SWEEP_BATCH};
use portcullis_base::{TenantId, Timestamp};
use portcullis_event::AskState;

use super::{MemoryStore, Tables};
use crate::{
    Claim, Due, Fairness, Head, Lease, LeaseOwner, Liveness, LivenessOracle, Queue, SessionKey, StoreError,
    SweepResult, Topic, by_urgency, fair_share, given_back,
};

/// What was found out about holders; each is asked about once.
struct Holders<'a> {
    oracle: &'a dyn LivenessOracle,
    asked: Vec<(LeaseOwner, bool)>,
    now: Timestamp,
}

impl<'a> Holders<'a> {
    fn new(oracle: &'a dyn LivenessOracle, now: Timestamp) -> Self {
        Self { oracle, asked: Vec::new(), now }
    }

    /// Whether a head's lease still counts.
    fn holds(&mut self, head: &Head) -> bool {
        let (Some(owner), Some(until)) = (&head.lease_owner, head.lease_until) else { return false };
        if until <= self.now {
            return false;
        }
        if let Some((_, dead)) = self.asked.iter().find(|(asked, _)| asked == owner) {
            return !dead;
        }
        let dead = self.oracle.liveness(owner) == Liveness::Dead;
        self.asked.push((owner.clone(), dead));
        !dead
    }
}

impl Tables {
    /// Candidates of a tenant, and how many live leases it has.
    fn due(&self, tenant: TenantId, limit: usize, holders: &mut Holders<'_>) -> (Vec<Due>, usize) {
        let now = holders.now;
        let (mut due, mut live) = (self.heads.ready(tenant, limit, now), 0);
        for (key, head) in self.heads.leased(tenant) {
            if holders.holds(head) {
                live += 1;
            } else {
                due.extend(Due::of(key, head, now));
            }
        }
        (due, live)
    }

    fn grant(
        &mut self,
        key: SessionKey,
        owner: &LeaseOwner,
        term: (Timestamp, Duration),
        oracle: &dyn LivenessOracle,
    ) -> Option<Lease> {
        let (lease, update) = self.heads.get(&key)?.granted(key.session, owner.clone(), term, oracle);
        self.heads.apply(key, update);
        Some(lease)
    }

    /// The head of a session whose lease is still ours.
    fn held(&self, key: SessionKey, fence: u64) -> Result<&Head, StoreError> {
        let head = self.heads.get(&key).ok_or(StoreError::NoSession(key.session))?;
        if head.fence != fence || head.lease_owner.is_none() {
            return Err(StoreError::FenceLost { session: key.session, ours: fence, found: head.fence });
        }
        Ok(head)
    }
}

#[async_trait]
impl Queue for MemoryStore {
    async fn claim_session(&self, key: SessionKey, owner: LeaseOwner, ttl: Duration) -> Result<Claim, StoreError> {
        let mut tables = self.tables();
        tables.check_not_erased(key)?;
        let now = self.clock.now();
        let head = tables.heads.get(&key).ok_or(StoreError::NoSession(key.session))?;
        if Holders::new(&*self.liveness, now).holds(head)
            && let (Some(owner), Some(until)) = (head.lease_owner.clone(), head.lease_until)
        {
            return Ok(Claim::Held { owner, until });
        }
        tables
            .grant(key, &owner, (now, ttl), &*self.liveness)
            .map(Claim::Granted)
            .ok_or(StoreError::NoSession(key.session))
    }

    async fn claim(
        &self,
        tenant: TenantId,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
    ) -> Result<Vec<Claim>, StoreError> {
        let mut tables = self.tables();
        let now = self.clock.now();
        let (due, _) = tables.due(tenant, limit, &mut Holders::new(&*self.liveness, now));
        let due = by_urgency(due, limit, now);
        Ok(due
            .iter()
            .filter_map(|due| tables.grant(due.key, &owner, (now, ttl), &*self.liveness))
            .map(Claim::Granted)
            .collect())
    }

    async fn claim_any(
        &self,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
        fairness: Fairness,
    ) -> Result<Vec<(SessionKey, Lease)>, StoreError> {
        let mut tables = self.tables();
        let now = self.clock.now();
        let mut holders = Holders::new(&*self.liveness, now);
        let (mut all, mut held) = (BTreeMap::new(), BTreeMap::new());
        for tenant in tables.heads.tenants() {
            let (due, live) = tables.due(tenant, limit, &mut holders);
            all.insert(tenant, due);
            held.insert(tenant, live);
        }
        let chosen = fair_share(all, held, limit, fairness, now);
        let granted = chosen
            .iter()
            .filter_map(|due| Some((due.key, tables.grant(due.key, &owner, (now, ttl), &*self.liveness)?)));
        Ok(granted.collect())
    }

    async fn sweep(&self) -> Result<SweepResult, StoreError> {
        let mut tables = self.tables();
        let now = self.clock.now();
        let overdue = tables.asks.iter().filter(|(_, ask)| ask.state == AskState::Pending && ask.expires_at <= now);
        let mut sessions: Vec<SessionKey> =
            overdue.map(|((tenant, _), ask)| SessionKey { tenant: *tenant, session: ask.session_id }).collect();
        sessions.sort();
        sessions.dedup();
        let mut swept = SweepResult::default();
        for key in sessions {
            let Some(update) = tables.heads.get(&key).and_then(|head| head.swept(now)) else { continue };
            tables.heads.apply(key, update);
            swept.expired += 1;
            if swept.expired == SWEEP_BATCH {
                break;
            }
        }
        let old = tables.idempotency.iter().filter(|(_, row)| now.since(row.at) >= IDEMPOTENCY_KEPT);
        let old: Vec<_> = old.map(|(key, _)| key.clone()).take(SWEEP_BATCH).collect();
        swept.forgotten = old.len();
        for key in old {
            tables.idempotency.remove(&key);
        }
        drop(tables);
        if swept != SweepResult::default() {
            self.changes.note(&[Topic::Due]);
        }
        Ok(swept)
    }

    async fn renew(&self, key: SessionKey, fence: u64, ttl: Duration) -> Result<Timestamp, StoreError> {
        let mut tables = self.tables();
        let until = self.clock.now().plus(ttl);
        let update = tables.held(key, fence)?.renewed(until);
        tables.heads.apply(key, update);
        Ok(until)
    }

    async fn release(&self, key: SessionKey, fence: u64, idle_at: Option<u64>) -> Result<(), StoreError> {
        let mut tables = self.tables();
        let update = tables.held(key, fence)?.released(idle_at, self.clock.now());
        let topics = given_back(key, &update);
        tables.heads.apply(key, update);
        drop(tables);
        self.changes.note(&topics);
        Ok(())
    }

    async fn defer(&self, key: SessionKey, fence: u64, until: Timestamp) -> Result<(), StoreError> {
        let mut tables = self.tables();
        let update = tables.held(key, fence)?.deferred(until);
        let topics = given_back(key, &update);
        tables.heads.apply(key, update);
        drop(tables);
        self.changes.note(&topics);
        Ok(())
    }
}
