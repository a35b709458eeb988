//! Reading a log: page by page, how its session was made, and whether it was erased.

use portcullis_event::facts::SessionCreated;
use portcullis_event::{Body, Event, EventBody as _, SessionStatus};

use crate::{Head, Log, SessionKey, StoreError, was_erased};

/// Events read at once.
const PAGE: usize = 500;

/// The events of a log, a page at a time.
pub struct Pages<'a> {
    log: &'a dyn Log,
    key: SessionKey,
    after: u64,
}

impl<'a> Pages<'a> {
    /// From the first event on.
    #[must_use]
    pub fn of(log: &'a dyn Log, key: SessionKey) -> Self {
        Self { log, key, after: 0 }
    }

    /// The next page, which is never empty; `None` at the end.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, StoreError> {
        let page = self.log.read(self.key, self.after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.after = last.seq;
        Ok(Some(page))
    }
}

/// How a session was made.
///
/// # Errors
/// [`StoreError::NoSession`] if there is none, [`StoreError::Erased`] and [`StoreError::Corrupt`] if its first event cannot
/// say it any more.
pub async fn created(log: &dyn Log, key: SessionKey) -> Result<SessionCreated, StoreError> {
    let first = log.read(key, 0, 1).await?;
    let session = key.session;
    match first.first().map(Event::body) {
        Some(Body::SessionCreated(created)) => Ok(*created),
        Some(_) if first.iter().all(|event| event.payload.is_none()) => Err(StoreError::Erased(session)),
        Some(Body::Unknown { kind, .. }) if kind == SessionCreated::KIND => {
            Err(StoreError::Corrupt(format!("the first event of session {session} is missing or damaged")))
        }
        _ => Err(StoreError::NoSession(session)),
    }
}

/// Whether a log with this head ended by being erased.
///
/// # Errors
/// If the store cannot be read.
pub async fn is_erased(log: &dyn Log, key: SessionKey, head: &Head) -> Result<bool, StoreError> {
    // Only a log that ended is looked at.
    let last = match head.status {
        SessionStatus::Terminated => log.read(key, head.last_seq.saturating_sub(1), 1).await?,
        _ => Vec::new(),
    };
    Ok(was_erased(head, || last.into_iter().next()))
}
