//! Delivering the outbox: at least once, taking effect once (each entry names its dedupe key).

use std::collections::HashSet;

use portcullis_base::{Digest, OutboxId};
use portcullis_event::{Actor, DecodedBody, Draft, EventType};

use crate::{Commit, OutboxEntry, OutboxKind, SessionKey, Store, StoreError};

/// How many entries one round takes; a bound on memory, not on work.
const ROUND: usize = 256;

/// Delivers everything that waits and returns how many entries took effect now. An entry that its log refuses holds up
/// what comes after it for the same log, and nothing else.
///
/// # Errors
/// If the store fails, or, when everything else is delivered, if an entry was refused; what was not delivered stays in the
/// outbox.
pub async fn deliver_outbox(store: &dyn Store) -> Result<usize, StoreError> {
    let mut delivered = 0;
    let mut refused = None;
    let (mut stuck, mut held_up): (HashSet<OutboxId>, HashSet<SessionKey>) = Default::default();
    loop {
        // Those that are stuck stand before the rest, and come again.
        let mut entries = store.outbox(ROUND + stuck.len()).await?;
        entries.retain(|entry| !stuck.contains(&entry.id));
        if entries.is_empty() {
            return refused.map_or(Ok(delivered), Err);
        }
        let mut done: Vec<OutboxId> = Vec::with_capacity(entries.len());
        for entry in &entries {
            let delivery = delivery(entry);
            let log = delivery.key;
            if held_up.contains(&log) {
                stuck.insert(entry.id);
                continue;
            }
            match store.commit(delivery).await {
                Ok(committed) => delivered += usize::from(!committed.repeat),
                // A copy for a root that is not there any more is for nobody, and must not hold up what comes after it.
                Err(StoreError::NoSession(_) | StoreError::Erased(_)) if is_copy(entry) => {}
                Err(error) if is_of_the_store(&error) => {
                    // What was delivered stays so: it is no use to deliver it again.
                    let _ = store.outbox_done(done).await;
                    return Err(error);
                }
                Err(error) => {
                    stuck.insert(entry.id);
                    held_up.insert(log);
                    refused.get_or_insert(error);
                    continue;
                }
            }
            done.push(entry.id);
        }
        if !done.is_empty() {
            store.outbox_done(done).await?;
        }
    }
}

/// Whether every entry would meet the same fault.
fn is_of_the_store(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::ReadOnly(_)
            | StoreError::Gone { .. }
            | StoreError::DiskFull { .. }
            | StoreError::Unavailable(_)
            | StoreError::Locked(_)
            | StoreError::Ambiguous(_)
    )
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
        typed: DecodedBody::default(),
    };
    let key = SessionKey { tenant: entry.tenant, session: *session_id };
    let mut commit = Commit::outbox(key, dedupe.clone(), *append_id, vec![draft]);
    // A reserved log is idle after every delivery: its tail is always under a checkpoint.
    commit.idle = copied_from.is_none();
    commit
}
