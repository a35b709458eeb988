//! What a decision was about: enough to ask other rules the same, and to remember an answer.

use portcullis_base::{CommandFacts, Digest, RiskSet};
use serde::{Deserialize, Serialize};

use crate::facts::is_false;

/// One thing that a call would touch, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchedResource {
    pub action: String,
    pub kind: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub inside: bool,
    /// A command that took input which its words do not tell.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fed: bool,
    /// Of a command: what its words alone do not say. Older logs have none.
    #[serde(default, skip_serializing_if = "CommandFacts::is_empty")]
    pub command: CommandFacts,
    /// What its tool found out about it, as it was weighed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<serde_json::Value>,
    /// Of a command that did nothing but look: what it looked at, as it was weighed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks_at: Option<serde_json::Value>,
    pub risk: RiskSet,
}

/// The rule that asked, by name and meaning, and on whose behalf.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grantable {
    pub rule_id: String,
    pub rule_hash: Digest,
    pub project: String,
    pub agent: String,
}
