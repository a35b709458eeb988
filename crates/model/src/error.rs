//! What can go wrong with a model, in the classes that decide what happens next (agent-runtime 5.7).

use std::time::Duration;

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No key, no such model, an address that is none: nothing was sent.
    Config,
    /// The menu or the conversation does not fit the provider's dialect: nothing was sent.
    Unfit,
    /// The key was refused.
    Auth,
    /// The provider does not take the request as it is.
    BadRequest,
    /// The conversation is longer than the model can read.
    ContextOverflow,
    /// Too many requests.
    RateLimited,
    /// The provider has no room (503, 529).
    Overloaded,
    /// The provider failed (other 5xx, 408, 409, 425).
    Server,
    /// No answer within the time.
    Timeout,
    /// No connection, or it broke before an answer began.
    Connection,
    /// The answer broke off in the middle. Nothing of it is used.
    CutOff,
    /// The answer is not what the protocol says, or more than we take in.
    InvalidResponse,
    /// A script has no turn for this, and was told to be strict.
    ScriptExhausted,
    /// A replay has no recorded answer for this.
    Diverged,
}

impl Failure {
    /// Whether the same request may go well later (H34).
    #[must_use]
    pub fn retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::Overloaded | Self::Server | Self::Timeout | Self::Connection | Self::CutOff
        )
    }

    /// The word for it in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Unfit => "unfit",
            Self::Auth => "auth",
            Self::BadRequest => "bad_request",
            Self::ContextOverflow => "context_overflow",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Server => "server_error",
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::CutOff => "cut_off",
            Self::InvalidResponse => "invalid_response",
            Self::ScriptExhausted => "script_exhausted",
            Self::Diverged => "replay_diverged",
        }
    }

    /// The class of an HTTP status that is not a success, where the body says no more.
    #[must_use]
    pub fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Auth,
            413 => Self::ContextOverflow,
            429 => Self::RateLimited,
            503 | 529 => Self::Overloaded,
            408 | 409 | 425 | 500..=599 => Self::Server,
            _ => Self::BadRequest,
        }
    }
}

/// A setting that would mend a failure. How it is given is for the program that has the settings to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelSetting {
    /// Neither a model nor a server is named anywhere.
    ModelOrServer,
    /// The name of a model.
    Model,
    /// The address of a server of one's own.
    Server,
    /// The file of a scripted model.
    Script,
}

/// A failed request. The message is for a person; it never holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub failure: Failure,
    /// What went wrong, with which model, and what to do.
    pub message: String,
    pub status: Option<u16>,
    /// What the provider asked us to wait.
    pub retry_after: Option<Duration>,
    /// The setting to change, where one would mend it.
    pub setting: Option<ModelSetting>,
}

impl ModelError {
    /// An error of a class.
    #[must_use]
    pub fn new(failure: Failure, message: impl Into<String>) -> Self {
        Self { failure, message: message.into(), status: None, retry_after: None, setting: None }
    }

    /// The same, mended by a setting.
    #[must_use]
    pub fn mended_by(self, setting: ModelSetting) -> Self {
        Self { setting: Some(setting), ..self }
    }
}
