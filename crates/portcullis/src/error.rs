//! What can go wrong around a call. What goes wrong *in* a call is an observation, not an error.

use portcullis_agent::SessionSetupError;
use portcullis_base::{AskId, EventId, SessionId};
use portcullis_contract::{BuildError, InvalidName, ToolName};
use portcullis_pipeline::{CustomToolError, GrantError, Halt, RegistrationError};
use portcullis_store::{LeaseOwner, StoreError};

/// A runtime that could not be made, or a call that could not be carried through.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A tool name outside the grammar.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// Two tools whose names conflict.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// A built-in tool that contradicts itself.
    #[error(transparent)]
    Tool(#[from] BuildError),
    /// A tool of a client that cannot be offered.
    #[error(transparent)]
    CustomTool(#[from] CustomToolError),
    /// A tool of a client with the name of another.
    #[error("the custom tool `{0}` has the name of a tool that the session has anyway; rename it")]
    NameTaken(ToolName),
    /// A workspace that cannot be opened.
    #[error("the workspace cannot be used: {0}")]
    Workspace(String),
    /// Secrets that cannot be redacted.
    #[error("{0}")]
    Secrets(String),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An answer that cannot be remembered, or a grant that cannot be revoked.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The log refused a fact in the middle of a call: nothing may be shown until that is settled.
    #[error("the call halted: {0}")]
    Halted(Halt),
    /// A live process holds the session.
    #[error("the session is in use by {0}; wait for it, or use another session")]
    Held(LeaseOwner),
    /// Cancelled while it waited for the session: nothing was recorded and nothing ran.
    #[error("interrupted while the session was in use by {0}; nothing was recorded and nothing ran")]
    Withdrawn(LeaseOwner),
    /// The ask was settled, but its call left no observation that can be found.
    #[error("ask {0} is settled, and its call has no observation yet")]
    NoObservation(AskId),
    /// A flag that would allow what only a person may.
    #[error("ask {0} may hide a command that a rule denies, so no flag allows it; a person has to answer it")]
    OnlyAPerson(AskId),
    /// An operator's word that fits nothing the session waits for.
    #[error(transparent)]
    Refused(#[from] crate::Refused),
    /// What a session runs as cannot be known.
    #[error(transparent)]
    Setup(SessionSetupError),
    /// Two processes changed what a session runs as; the other one was first.
    #[error("another process changed the setup of session {0} meanwhile; look at it again, then decide")]
    SetupChanged(SessionId),
    /// No ask was shown by that event.
    #[error("event {0} asks nothing; name the `agent.tool_use` of an ask, or the ask itself")]
    NothingAsked(EventId),
}

impl From<SessionSetupError> for RuntimeError {
    fn from(error: SessionSetupError) -> Self {
        match error {
            SessionSetupError::Store(error) => Self::Store(error),
            other => Self::Setup(other),
        }
    }
}

impl From<Halt> for RuntimeError {
    fn from(halt: Halt) -> Self {
        Self::Halted(halt)
    }
}
