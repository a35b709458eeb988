//! Expected failures. There is no variant for cancellation, defect or permission: a tool cannot
//! manufacture them (tool-contract §11 a).

use portcullis_base::{Code, Reason, SideEffects};

use crate::{GateStop, NotBackgrounded, Precondition, TooMuchEvidence};

/// A deliberately classified failure of an executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFailure {
    pub(crate) code: Code,
    pub(crate) reason: Option<Reason>,
    pub(crate) tool_code: Option<String>,
    pub(crate) message: String,
    pub(crate) retryable: bool,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) side_effects: Option<SideEffects>,
    /// What it did is not known, unless the tool states it.
    pub(crate) under_way: bool,
}

impl ToolFailure {
    /// A failure by the tool's own word, such as `artifact_expired`.
    pub fn new(tool_code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { tool_code: Some(tool_code.into()), ..Self::coded(Code::ToolFailure, message.into()) }
    }

    fn coded(code: Code, message: String) -> Self {
        Self {
            code,
            reason: None,
            tool_code: None,
            message,
            retryable: false,
            exit_code: None,
            signal: None,
            side_effects: None,
            under_way: false,
        }
    }

    /// A precondition that ceased to hold at commit time; nothing was changed.
    #[must_use]
    pub fn precondition(found: Precondition) -> Self {
        // `schema_invalid` and `ambiguous_target` belong to the validate phase; at commit they are the tool's own word.
        let code = match found.code {
            Code::RuntimePreconditionFailed | Code::StaleFileBaseline => found.code,
            _ => Code::ToolFailure,
        };
        let tool_code = (code == Code::ToolFailure).then(|| found.code.as_str().to_owned());
        Self { reason: found.reason, tool_code, retryable: true, ..Self::coded(code, found.message) }
    }

    /// A process that ended non-zero or by a signal.
    pub fn command(exit_code: Option<i32>, signal: Option<i32>, message: impl Into<String>) -> Self {
        Self { exit_code, signal, retryable: true, ..Self::coded(Code::CommandFailed, message.into()) }
    }

    /// Some of several steps were done; `done` lists them.
    pub fn partial(done: SideEffects, message: impl Into<String>) -> Self {
        Self { side_effects: Some(done), retryable: true, ..Self::coded(Code::PartiallyApplied, message.into()) }
    }

    /// A remote side that could not be reached.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::coded(Code::ExternalUnreachable, message.into()) }
    }

    /// A remote side that answered with an error.
    pub fn external(message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::coded(Code::ExternalError, message.into()) }
    }

    /// A remote side that wants credentials.
    pub fn auth_required(message: impl Into<String>) -> Self {
        Self::coded(Code::AuthRequired, message.into())
    }

    /// A sandbox that cannot give what the call needs.
    pub fn sandbox_unavailable(message: impl Into<String>) -> Self {
        Self::coded(Code::SandboxUnavailable, message.into())
    }

    /// Media over its limits or of a type nobody takes.
    pub fn media(message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::coded(Code::MediaRejected, message.into()) }
    }

    /// Something that the call used up: memory, processes, space, or how much it may write. `tool_code` says which, such as
    /// `disk_limit`.
    pub fn resource_limit(tool_code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { tool_code: Some(tool_code.into()), retryable: true, ..Self::coded(Code::ResourceLimit, message.into()) }
    }

    /// The same failure with how the process ended.
    #[must_use]
    pub fn with_exit(mut self, exit_code: Option<i32>, signal: Option<i32>) -> Self {
        self.exit_code = exit_code;
        self.signal = signal;
        self
    }

    /// The same failure of work that had begun: unless the tool only reads, or states what it did, what it did is
    /// `unknown`.
    #[must_use]
    pub fn under_way(mut self) -> Self {
        self.under_way = true;
        self
    }

    /// The same failure, worth another try or not.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// The same failure with what it did to the world, where the tool knows.
    #[must_use]
    pub fn with_side_effects(mut self, side_effects: SideEffects) -> Self {
        self.side_effects = Some(side_effects);
        self
    }
}

impl From<TooMuchEvidence> for ToolFailure {
    fn from(over: TooMuchEvidence) -> Self {
        Self::new("too_much_evidence", over.to_string())
    }
}

/// So that `?` ends a call that was stopped. If the gate stopped it, this is not what is observed (L25).
impl From<GateStop> for ToolFailure {
    fn from(stopped: GateStop) -> Self {
        Self::new("stopped_at_the_gate", stopped.to_string())
    }
}

impl From<NotBackgrounded> for ToolFailure {
    fn from(refused: NotBackgrounded) -> Self {
        Self::new("not_backgrounded", refused.to_string())
    }
}
