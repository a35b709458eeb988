//! What a session is to reach, and how far it was found to have come (agent-runtime 2.6, 8.1–8.3).

use portcullis_base::{Digest, OutcomeId};
use serde::{Deserialize, Serialize};

/// `user.define_outcome`: the newest one of a log is its active outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutcomeDefined {
    pub outcome_id: OutcomeId,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default)]
    pub success_criteria: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    pub defined_by: OutcomeAuthor,
}

/// Who set an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeAuthor {
    User,
    Agent,
    Parent,
}

/// `span.outcome_evaluation_end`: the verdict about the active outcome after a wake.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutcomeEvaluated {
    pub outcome_id: OutcomeId,
    pub iteration: u32,
    pub result: OutcomeStatus,
    pub trend: OutcomeTrend,
    #[serde(default)]
    pub explanation: String,
    pub outcome_fingerprint: Digest,
}

/// How a session stands to its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    /// It has one, and nobody has judged it yet.
    Open,
    Pass,
    Uncertain,
    NotReady,
    Blocked,
    Fail,
}

/// How a verdict compares with the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeTrend {
    FirstIteration,
    Improving,
    Stable,
    Regressing,
}
