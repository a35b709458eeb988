//! Full text over every log. What was recorded since the last search is taken in first.

use portcullis_store::{Hit, Query, StoreError};

use super::{Archive, EventsSeen};

/// Events taken in at once: an append of another process waits for no more than this.
const BATCH: usize = 500;

/// Events that could not be taken in, because the store takes no writes.
pub struct UnsearchedEvents {
    /// How many.
    pub events: u64,
    /// Why.
    pub error: StoreError,
}

impl Archive {
    /// How many events no search has seen yet.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn search_lag(&self) -> Result<u64, StoreError> {
        self.store.search_lag(self.tenant).await
    }

    /// Takes in what is new. A store that cannot be written to is searched as far as it was taken in.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn take_in_for_search(&self, seen: EventsSeen<'_>) -> Result<Option<UnsearchedEvents>, StoreError> {
        loop {
            match self.store.catch_up(self.tenant, BATCH).await {
                Ok(0) => return Ok(None),
                Ok(taken) => seen(taken),
                Err(error @ (StoreError::ReadOnly(_) | StoreError::DiskFull { .. })) => {
                    return Ok(Some(UnsearchedEvents { events: self.search_lag().await?, error }));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Events in which all words occur, newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn search(&self, query: &Query, limit: usize) -> Result<Vec<Hit>, StoreError> {
        self.store.search(self.tenant, query, limit).await
    }
}
