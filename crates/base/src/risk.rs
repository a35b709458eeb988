//! What a tool can do, in two small vocabularies: `risk` for the gate, `effects` for catalogs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the gate weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    Read,
    Write,
    Execute,
    Network,
    Delegate,
}

/// What catalogs show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    SessionRead,
    SessionWrite,
    ResourceRead,
    ResourceWrite,
    MemoryRead,
    MemoryWrite,
    LearningRead,
    SkillRead,
    SandboxExecute,
}

/// A set of risks; ordered, so that equal sets serialize equally.
pub type RiskSet = BTreeSet<Risk>;
/// A set of effects; ordered, so that equal sets serialize equally.
pub type EffectSet = BTreeSet<Effect>;
