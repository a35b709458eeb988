//! Delivering the outbox: at least once, taking effect once (each entry names its dedupe key).

use portcullis_base::{Digest, OutboxId};
use portcullis_event::{Actor, Draft, EventType, Typed};

use crate::{Commit, OutboxEntry, OutboxKind, SessionKey, Store, StoreError};

/// How many entries one round takes; a bound on memory, not on work.
const ROUND: usize = 256;

/// Delivers everything that waits and returns how many entries took effect now.
///
/// # Errors
/// If the store fails; what was not delivered stays in the outbox.
pub async fn deliver_outbox(store: &dyn Store) -> Result<usize, StoreError> {
    let mut delivered = 0;
    loop {
        let entries = store.outbox(ROUND).await?;
        if entries.is_empty() {
            return Ok(delivered);
        }
        let mut done: Vec<OutboxId> = Vec::with_capacity(entries.len());
        for entry in &entries {
            match store.commit(delivery(entry)).await {
                Ok(committed) => delivered += usize::from(!committed.repeat),
                // A copy for a root that is not there any more is for nobody, and must not hold up what comes after it.
                Err(StoreError::NoSession(_) | StoreError::Erased(_)) if is_copy(entry) => {}
                Err(error) => return Err(error),
            }
            done.push(entry.id);
        }
        store.outbox_done(done).await?;
    }
}

fn is_copy(entry: &OutboxEntry) -> bool {
    let OutboxKind::Session { copied_from, .. } = &entry.work;
    copied_from.is_some()
}

fn delivery(entry: &OutboxEntry) -> Commit {
    let OutboxKind::Session { session_id, dedupe, event_id, append_id, event_type, payload, copied_from } = &entry.work;
    let draft = Draft {
        id: *event_id,
        kind: EventType::recorded(event_type.clone()),
        at: entry.at,
        actor: Actor::system(),
        wake_id: None,
        turn_id: None,
        session_thread_id: *copied_from,
        v: 1,
        payload_hash: Digest::of(payload.as_bytes()),
        payload: payload.as_str().into(),
        typed: Typed::default(),
    };
    let key = SessionKey { tenant: entry.tenant, session: *session_id };
    let mut commit = Commit::outbox(key, dedupe.clone(), *append_id, vec![draft]);
    // A reserved log is idle after every delivery: its tail is always under a checkpoint.
    commit.idle = copied_from.is_none();
    commit
}
