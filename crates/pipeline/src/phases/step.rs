//! What a phase returns: the next phase's type, or the end of the path.

use portcullis_base::AskId;
use portcullis_event::Observed;
use portcullis_store::StoreError;

/// The outcome of one phase.
pub(crate) enum Step<Next> {
    /// On to the next phase.
    Next(Next),
    /// An ask was raised; the intent waits for a person.
    Parked(AskId),
    /// The intent is settled here.
    Refused(Box<Observed>),
}

/// The log refused a write. Nothing reaches a model until this is settled; the turn halts.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Halt {
    /// Another process took the session over, or may have. This one writes nothing more.
    #[error("{0}")]
    FenceLost(StoreError),
    /// The store could not keep a fact.
    #[error("{0}")]
    PersistFailed(StoreError),
    /// This process's own task died before it could settle.
    #[error("the task of this call ended without an answer: {0}")]
    TaskLost(String),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::FenceLost { .. } | StoreError::LeaseRanOut(_) => Self::FenceLost(error),
            other => Self::PersistFailed(other),
        }
    }
}
