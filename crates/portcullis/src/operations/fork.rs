//! A new session that goes on alone from a place in another.

use portcullis_base::SessionId;
use portcullis_store::{Fork, ForkError, Pages, StoreError, created, deliver_outbox, fork};

use super::Operator;

/// A session that cannot be forked there.
#[derive(Debug, thiserror::Error)]
pub enum SessionForkError {
    /// There is no such place in it.
    #[error("{0}")]
    Place(#[from] ForkError),
    /// The store refused or failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// A session that was forked from another.
pub struct ForkedSession {
    /// The new one.
    pub session: SessionId,
    /// The last event that both share.
    pub at: u64,
    /// What was open at the place that was asked for, so that it begins earlier.
    pub left_out: Option<String>,
    /// How many events it has.
    pub events: u64,
}

/// Forks a session after its event `at`.
///
/// # Errors
/// If there is no such session or event, or what stood before it was erased.
pub async fn fork_session(
    operator: &Operator,
    session: SessionId,
    at: u64,
    name: Option<String>,
) -> Result<ForkedSession, SessionForkError> {
    let store = &*operator.store;
    created(store, operator.key(session)).await?;
    let mut events = Vec::new();
    let mut pages = Pages::of(store, operator.key(session));
    while let Some(page) = pages.next().await? {
        events.extend(page);
    }
    let (ids, clock) = (&*operator.ids, &*operator.clock);
    let to = SessionId::make(ids, clock.now());
    let forked = fork(&events, &Fork { from: session, to: operator.key(to), at, name, ids, clock })?;
    let imported = store.import(forked.import).await?;
    deliver_outbox(store).await?;
    Ok(ForkedSession { session: to, at: forked.at, left_out: forked.open, events: imported.last_seq })
}
