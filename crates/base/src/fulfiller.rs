//! Who fulfils a call, where the process of the session does not.

use serde::{Deserialize, Serialize};

/// Who fulfils a call that is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fulfiller {
    /// The client that made the session (R11).
    Client,
    /// The worker of the session's environment.
    Environment,
    /// A child session, which the call makes (ruling 54).
    Child,
}
