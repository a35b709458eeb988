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

impl IsolationLevel {
    /// Weakest first.
    pub const ALL: [Self; 5] = [Self::None, Self::SeccompOnly, Self::NoNamespaces, Self::NoPivot, Self::Full];

    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SeccompOnly => "seccomp_only",
            Self::NoNamespaces => "no_namespaces",
            Self::NoPivot => "no_pivot",
            Self::Full => "full",
        }
    }

    /// The level of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

impl std::fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
