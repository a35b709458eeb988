//! What can be verified of the work.

use serde::{Deserialize, Serialize};

/// What a call can be evidence of (tool-contract §24).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerificationKind {
    /// Tests passed.
    Tests,
    /// It builds.
    Build,
    /// A linter is content.
    Lint,
    /// Types check.
    Typecheck,
    /// A file is as it should be.
    FileState,
    /// A service answers.
    Service,
    /// Something else.
    Custom,
}
