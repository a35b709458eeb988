//! Claim, renew, release: the head row's lease and fence (store §5), inside the writer's transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use portcullis_base::{TenantId, Timestamp};
use portcullis_store::{
    Claim, Due, Fairness, Head, Lease, LeaseOwner, Liveness, SessionKey, StoreError, by_urgency, fair_share, given_back,
};

use crate::codec::json;
use crate::error::Fail;
use crate::op::{Trace, Tx};
use crate::{due, heads, removal, tail};

fn may_claim(tx: &Tx<'_>, head: &Head, now: Timestamp) -> bool {
    match (&head.lease_owner, head.lease_until) {
        (Some(owner), Some(until)) => until <= now || tx.env.liveness.liveness(owner) == Liveness::Dead,
        _ => true,
    }
}

fn grant(tx: &Tx<'_>, key: SessionKey, head: &Head, owner: &LeaseOwner, ttl: Duration) -> Result<Lease, Fail> {
    let (lease, update) = head.granted(key.session, owner.clone(), (tx.env.clock.now(), ttl), &*tx.env.liveness);
    heads::update(tx.conn, key, &update)?;
    Ok(lease)
}

/// Takes one session, due or not.
pub(crate) fn claim_session(tx: &Tx<'_>, key: SessionKey, owner: &LeaseOwner, ttl: Duration) -> Result<Claim, Fail> {
    let head = heads::read(tx.conn, key)?.ok_or(StoreError::NoSession(key.session))?;
    tail::check(tx, key, Some(&head))?;
    removal::check_not_erased(tx.conn, key, Some(&head))?;
    if !may_claim(tx, &head, tx.env.clock.now())
        && let (Some(owner), Some(until)) = (head.lease_owner.clone(), head.lease_until)
    {
        return Ok(Claim::Held { owner, until });
    }
    grant(tx, key, &head, owner, ttl).map(Claim::Granted)
}

/// Takes up to `limit` due sessions of a tenant; with them those that are due and damaged.
pub(crate) fn claim_due(
    tx: &Tx<'_>,
    tenant: TenantId,
    owner: &LeaseOwner,
    limit: usize,
    ttl: Duration,
) -> Result<Vec<Claim>, Fail> {
    let now = tx.env.clock.now();
    let (granted, damaged) = grant_all(tx, (owner, ttl), |damaged| {
        let (candidates, _) = due::of_tenant(tx.conn, &*tx.env.liveness, (tenant, limit + damaged.len(), now))?;
        Ok(by_urgency(without(candidates, damaged), limit, now))
    })?;
    let granted = granted.into_iter().map(|(_, lease)| Claim::Granted(lease));
    Ok(granted.chain(damaged.into_values().map(Claim::Refused)).collect())
}

/// Takes up to `limit` due sessions of any tenant, each in its share.
pub(crate) fn claim_any(
    tx: &Tx<'_>,
    owner: &LeaseOwner,
    limit: usize,
    ttl: Duration,
    fairness: Fairness,
) -> Result<Vec<(SessionKey, Lease)>, Fail> {
    let now = tx.env.clock.now();
    let (granted, _) = grant_all(tx, (owner, ttl), |damaged| {
        let (mut all, mut held) = (BTreeMap::new(), BTreeMap::new());
        for tenant in due::tenants(tx.conn)? {
            let limit = limit + damaged.len();
            let (candidates, live) = due::of_tenant(tx.conn, &*tx.env.liveness, (tenant, limit, now))?;
            all.insert(tenant, without(candidates, damaged));
            held.insert(tenant, live);
        }
        Ok(fair_share(all, held, limit, fairness, now))
    })?;
    Ok(granted)
}

/// Sessions that no process may take, each with the reason.
type DamagedSessions = BTreeMap<SessionKey, StoreError>;

fn without(mut candidates: Vec<Due>, damaged: &DamagedSessions) -> Vec<Due> {
    candidates.retain(|due| !damaged.contains_key(&due.key));
    candidates
}

/// Grants what `choose` chooses. Where a damaged session is among it, it chooses anew without that one: those that hold
/// must not wait behind those that do not. It ends, because each round knows one damaged session more.
fn grant_all(
    tx: &Tx<'_>,
    (owner, ttl): (&LeaseOwner, Duration),
    choose: impl Fn(&DamagedSessions) -> rusqlite::Result<Vec<Due>>,
) -> Result<(Vec<(SessionKey, Lease)>, DamagedSessions), Fail> {
    let mut damaged = DamagedSessions::new();
    loop {
        let mut sound = Vec::new();
        let before = damaged.len();
        for Due { key, .. } in choose(&damaged)? {
            let Some(head) = heads::read(tx.conn, key)? else { continue };
            match tail::check(tx, key, Some(&head)) {
                Ok(()) => sound.push((key, head)),
                Err(Fail::Refused(why)) => drop(damaged.insert(key, why)),
                Err(fail) => return Err(fail),
            }
        }
        if damaged.len() == before {
            let granted = sound.into_iter().map(|(key, head)| Ok((key, grant(tx, key, &head, owner, ttl)?)));
            return Ok((granted.collect::<Result<_, Fail>>()?, damaged));
        }
    }
}

/// The head of a session whose lease is still ours.
fn held(tx: &Tx<'_>, key: SessionKey, fence: u64) -> Result<Head, Fail> {
    let head = heads::read(tx.conn, key)?.ok_or(StoreError::NoSession(key.session))?;
    if head.fence != fence || head.lease_owner.is_none() {
        return Err(Fail::Refused(StoreError::FenceLost { session: key.session, ours: fence, found: head.fence }));
    }
    Ok(head)
}

/// Extends a lease that is still ours.
pub(crate) fn renew(tx: &Tx<'_>, key: SessionKey, fence: u64, ttl: Duration) -> Result<Timestamp, Fail> {
    let until = tx.env.clock.now().plus(ttl);
    heads::update(tx.conn, key, &held(tx, key, fence)?.renewed(until))?;
    Ok(until)
}

/// Gives back a lease that is still ours.
pub(crate) fn release(tx: &Tx<'_>, key: SessionKey, fence: u64, idle_at: Option<u64>) -> Result<(), Fail> {
    let update = held(tx, key, fence)?.released(idle_at, tx.env.clock.now());
    heads::update(tx.conn, key, &update)?;
    tx.topics.borrow_mut().extend(given_back(key, &update));
    Ok(())
}

/// Gives back a lease that is still ours, with its work for later.
pub(crate) fn defer(tx: &Tx<'_>, key: SessionKey, fence: u64, until: Timestamp) -> Result<(), Fail> {
    let update = held(tx, key, fence)?.deferred(until);
    heads::update(tx.conn, key, &update)?;
    tx.topics.borrow_mut().extend(given_back(key, &update));
    Ok(())
}

/// A granted lease is recognised by its fence and owner.
pub(crate) fn claim_trace(claim: &Claim, key: Option<SessionKey>) -> Option<Trace> {
    match claim {
        Claim::Granted(lease) => Some(Trace::Lease { key: key?, fence: lease.fence, owner: json(&lease.owner).ok()? }),
        Claim::Held { .. } | Claim::Refused(_) => None,
    }
}
