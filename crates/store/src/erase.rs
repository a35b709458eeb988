//! What an erasure writes, decided once for every backend.

use portcullis_base::{SessionId, TenantId};
use portcullis_event::facts::{LedgerSessionDeleted, SessionErased};
use portcullis_event::{Body, Draft, Event, EventBody as _, SessionStatus, ledger_of, operator_log_of};

use crate::plan::{Plan, PlannedCommit, plan_any, to_ledger};
use crate::{Commit, Head, SessionKey, StoreError, Writer};

/// The fact of an erasure, if this event is one.
pub(crate) fn erasure(draft: &Draft) -> Option<SessionErased> {
    if draft.kind != SessionErased::KIND {
        return None;
    }
    match Body::decode(&draft.kind, draft.v, Some(&draft.payload)) {
        Body::SessionErased(fact) => Some(*fact),
        _ => None,
    }
}

/// Whether a log ended by being erased; `last` is its newest event.
#[must_use]
pub fn was_erased(head: &Head, last: impl FnOnce() -> Option<Event>) -> bool {
    head.status == SessionStatus::Terminated && last().is_some_and(|event| event.kind == SessionErased::KIND)
}

/// Decides an erasure.
///
/// # Errors
/// The refusals of [`crate::Log::erase`]; nothing may be written then.
pub fn plan_erase(commit: &Commit, plan: Plan<'_>) -> Result<PlannedCommit, StoreError> {
    let SessionKey { tenant, session } = commit.key;
    let refused = |kind: &Draft| StoreError::NotTheirs { writer: "an erasure", kind: kind.kind.clone() };
    let head = plan.head.clone().ok_or(StoreError::NoSession(session))?;
    let [draft] = commit.events.as_slice() else {
        return Err(StoreError::TooLarge { events: commit.events.len(), bytes: commit.bytes() });
    };
    let fact = erasure(draft).ok_or_else(|| refused(draft))?;
    let whole = fact.from_seq == 1 && fact.to_seq == head.last_seq;
    let worker = matches!(commit.writer, Writer::Worker { .. });
    if !whole || !worker || is_reserved(tenant, session) {
        return Err(refused(draft));
    }
    let (ids, now) = (plan.ids, plan.now);
    let mut planned = plan_any(commit, plan)?;
    planned.head = planned.head.erased();
    let told = LedgerSessionDeleted {
        session_id: session,
        seq: planned.head.after.last_seq,
        hash: planned.head.after.last_hash,
        by: fact.by,
    };
    planned.outbox.push(to_ledger(commit.key, format!("deleted:{session}"), &told, ids, now));
    Ok(planned)
}

/// The logs that a store keeps of itself.
fn is_reserved(tenant: TenantId, session: SessionId) -> bool {
    session == ledger_of(tenant) || session == operator_log_of(tenant)
}
