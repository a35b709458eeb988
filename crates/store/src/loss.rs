//! Events that a store recorded and no longer has.

use crate::{SessionKey, StoreError, Witness};

/// A log that is shorter than it was, by the mark that a store keeps beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostEnd {
    /// Whose log.
    pub key: SessionKey,
    /// The newest event that was recorded.
    pub recorded: u64,
    /// The last one that is left before it; 0: the log is gone.
    pub found: u64,
}

impl LostEnd {
    /// The error for a write to that log.
    #[must_use]
    pub fn error(&self) -> StoreError {
        let Self { key, recorded, found } = *self;
        StoreError::Damaged { session: key.session, witness: Witness::Mark, recorded, found }
    }
}

/// A store that can tell what it lost.
pub trait LossBook: Send + Sync {
    /// Logs whose end was missing when this store was opened. Nothing is written to them until that is mended or accepted.
    fn lost(&self) -> &[LostEnd];

    /// Lets this process write to logs that lost their end, so that it can settle what is open in them.
    fn set_lost_aside(&self);

    /// Lets every process write to them from now on, because a person gave up what is lost.
    ///
    /// # Errors
    /// If that cannot be written down.
    fn accept_lost(&self) -> Result<(), StoreError>;
}
