//! What comes back of a call that was handed over.

use portcullis_base::SessionId;
use serde_json::Value;

/// A result that came from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The child session that it came from, if it came from one.
    pub child: Option<SessionId>,
    /// Its words.
    pub text: String,
    /// Whether they tell of a failure.
    pub is_error: bool,
    /// What its sender says of it besides.
    pub details: Value,
}
