//! What a call learned of, or did to, one file's content. Read baselines are folded from these.

use serde::{Deserialize, Serialize};

use crate::{Digest, Timestamp};

/// Lines `first..=last`, counted from 1. Empty when `last < first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LineRange {
    pub first: u64,
    pub last: u64,
}

impl LineRange {
    /// How many lines it holds.
    #[must_use]
    pub fn len(self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.last < self.first
    }
}

/// One replaced region: `removed` lines from line `first` of the old content became `added` lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    pub first: u64,
    pub removed: u64,
    pub added: u64,
}

/// One fact about one file, by the session's name for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum FileFact {
    /// These lines of this content were delivered to the model.
    Delivered {
        path: String,
        sha256: Digest,
        size: u64,
        mtime: Timestamp,
        /// How many lines the whole file has.
        total_lines: u64,
        lines: Vec<LineRange>,
    },
    /// Regions were replaced; hunks are in ascending order of old lines.
    Edited {
        path: String,
        before: Digest,
        sha256: Digest,
        size: u64,
        mtime: Timestamp,
        total_lines: u64,
        hunks: Vec<Hunk>,
    },
    /// The whole content was written.
    Written { path: String, sha256: Digest, size: u64, mtime: Timestamp, total_lines: u64 },
}

impl FileFact {
    /// The file it is about.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Delivered { path, .. } | Self::Edited { path, .. } | Self::Written { path, .. } => path,
        }
    }

    /// Of its content after this.
    #[must_use]
    pub fn sha256(&self) -> Digest {
        match self {
            Self::Delivered { sha256, .. } | Self::Edited { sha256, .. } | Self::Written { sha256, .. } => *sha256,
        }
    }
}
