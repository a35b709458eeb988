//! Claim, renew, release: the head row's lease and fence (store §5), inside the writer's transaction.

use std::time::Duration;

use portcullis_base::{SessionId, TenantId, Timestamp};
use portcullis_store::{Claim, Head, Lease, LeaseOwner, Liveness, SessionKey, StoreError};
use rusqlite::params;

use crate::codec::{id, id_at, json};
use crate::error::Fail;
use crate::op::{Trace, Tx};
use crate::{heads, kept};

fn may_claim(tx: &Tx<'_>, head: &Head, now: Timestamp) -> bool {
    match (&head.lease_owner, head.lease_until) {
        (Some(owner), Some(until)) => until <= now || tx.env.liveness.liveness(owner) == Liveness::Dead,
        _ => true,
    }
}

fn grant(tx: &Tx<'_>, key: SessionKey, mut head: Head, owner: &LeaseOwner, ttl: Duration) -> Result<Claim, Fail> {
    let until = tx.env.clock.now().plus(ttl);
    head.fence += 1;
    head.lease_owner = Some(owner.clone());
    head.lease_until = Some(until);
    heads::write(tx.conn, key, &head)?;
    Ok(Claim::Granted(Lease {
        session: key.session,
        fence: head.fence,
        owner: owner.clone(),
        until,
        last_seq: head.last_seq,
    }))
}

/// Takes one session, due or not.
pub(crate) fn claim_session(tx: &Tx<'_>, key: SessionKey, owner: &LeaseOwner, ttl: Duration) -> Result<Claim, Fail> {
    let head = heads::read(tx.conn, key)?.ok_or(StoreError::NoSession(key.session))?;
    kept::check_not_erased(tx.conn, key, Some(&head))?;
    if !may_claim(tx, &head, tx.env.clock.now())
        && let (Some(owner), Some(until)) = (head.lease_owner.clone(), head.lease_until)
    {
        return Ok(Claim::Held { owner, until });
    }
    grant(tx, key, head, owner, ttl)
}

/// Takes up to `limit` due sessions, the longest due first.
pub(crate) fn claim_due(
    tx: &Tx<'_>,
    tenant: TenantId,
    owner: &LeaseOwner,
    limit: usize,
    ttl: Duration,
) -> Result<Vec<Claim>, Fail> {
    let now = tx.env.clock.now();
    let due: Vec<SessionKey> = tx
        .conn
        .prepare_cached(
            "SELECT session FROM session_heads WHERE tenant = ?1 AND next_due_at <= ?2 \
             AND next_due_at IS NOT NULL AND status <> 'terminated' ORDER BY next_due_at, session",
        )?
        .query_map(params![id(tenant.as_u128()), now.as_micros()], |row| {
            let session = SessionId::from_u128(id_at(row, 0)?);
            Ok(SessionKey { tenant, session })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut granted = Vec::new();
    for key in due {
        if granted.len() == limit {
            break;
        }
        let Some(head) = heads::read(tx.conn, key)? else {
            continue;
        };
        if may_claim(tx, &head, now) {
            granted.push(grant(tx, key, head, owner, ttl)?);
        }
    }
    Ok(granted)
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
    let mut head = held(tx, key, fence)?;
    let until = tx.env.clock.now().plus(ttl);
    head.lease_until = Some(until);
    heads::write(tx.conn, key, &head)?;
    Ok(until)
}

/// Gives back a lease that is still ours.
pub(crate) fn release(tx: &Tx<'_>, key: SessionKey, fence: u64, idle_at: Option<u64>) -> Result<(), Fail> {
    let mut head = held(tx, key, fence)?;
    head.lease_owner = None;
    head.lease_until = None;
    head.next_due_at = head.due_after_release(idle_at, tx.env.clock.now());
    heads::write(tx.conn, key, &head)?;
    Ok(())
}

/// A granted lease is recognised by its fence and owner.
pub(crate) fn claim_trace(claim: &Claim, key: Option<SessionKey>) -> Option<Trace> {
    match claim {
        Claim::Granted(lease) => Some(Trace::Lease { key: key?, fence: lease.fence, owner: json(&lease.owner).ok()? }),
        Claim::Held { .. } => None,
    }
}
