//! The name of a piece of large evidence. The bytes live in the store; no host path is ever in here.

use serde::{Deserialize, Serialize};

use crate::{ArtifactId, Digest, Timestamp, Trust};

/// What an artifact holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    CommandOutput,
    File,
    Diff,
    Structured,
    Media,
    Menu,
    ModelInput,
}

/// An artifact by opaque id and content hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRef {
    pub id: ArtifactId,
    pub kind: ArtifactKind,
    pub mime: String,
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    pub sha256: Digest,
    /// False when the producer had to discard bytes: nobody may then call this the whole output.
    pub complete: bool,
    pub trust: Trust,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}
