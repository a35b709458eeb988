//! How much of the kernel stands between a process and the machine.

use serde::{Deserialize, Serialize};

/// Isolation levels, strongest last so that `>=` reads as "at least".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationLevel {
    None,
    SeccompOnly,
    NoNamespaces,
    NoPivot,
    Full,
}
