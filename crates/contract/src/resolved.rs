//! What a call is about, by canonical names; and why it cannot run as it stands.

use portcullis_base::{Code, Reason};

use crate::{Diff, InputFault, Resource, Surroundings};

/// Canonical resources of one input. Made with metadata I/O only: no content is opened (L37).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// What the call names, canonically.
    pub resources: Vec<Resource>,
    /// Scheduler keys, for tools with concurrency `keyed`.
    pub keys: Vec<String>,
    /// The folder a process would run in.
    pub cwd: Option<String>,
}

/// What runtime validation found out that a person should see when asked.
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// The change the call would make.
    pub diff: Option<Diff>,
    /// Other facts, by name.
    pub facts: Vec<(String, String)>,
    /// What else decides what the call does. An approval is bound to it.
    pub around: Option<Surroundings>,
}

/// Why an input that fits its schema cannot run now. Nothing has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precondition {
    pub(crate) code: Code,
    pub(crate) reason: Option<Reason>,
    pub(crate) message: String,
    pub(crate) faults: Vec<InputFault>,
}

impl Precondition {
    /// `runtime_precondition_failed` with its reason; the message says what to do.
    pub fn failed(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            code: Code::RuntimePreconditionFailed,
            reason: Some(reason),
            message: message.into(),
            faults: Vec::new(),
        }
    }

    /// Several matches where one is needed.
    pub fn ambiguous(message: impl Into<String>) -> Self {
        Self { code: Code::AmbiguousTarget, reason: None, message: message.into(), faults: Vec::new() }
    }

    /// The content differs from what was read.
    pub fn stale(message: impl Into<String>) -> Self {
        Self { code: Code::StaleFileBaseline, reason: None, message: message.into(), faults: Vec::new() }
    }

    /// A rule between fields that a schema cannot say.
    pub fn schema(path: impl Into<String>, message: impl Into<String>) -> Self {
        let message = message.into();
        let fault = InputFault { path: path.into(), rule: "refinement".to_owned(), message: message.clone() };
        Self { code: Code::SchemaInvalid, reason: None, message, faults: vec![fault] }
    }
}
