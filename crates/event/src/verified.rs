//! The payloads of checking: what facts say about the work, what the answer claimed, and what was learnt.

pub use portcullis_base::VerificationKind;
use portcullis_base::{AgentId, EventId, LearningId, MessageId, ObservationId, SessionId};
use serde::{Deserialize, Serialize};

/// How it came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerificationVerdict {
    Passed,
    Failed,
    Inconclusive,
    NotRun,
}

/// A fact about the work, made by the runtime from what a call came to (tool-contract §24). Never from a model's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    pub kind: VerificationKind,
    /// What was run or looked at, such as the command.
    pub target: String,
    pub verdict: VerificationVerdict,
    pub evidence: Vec<ObservationId>,
    /// It says nothing of what happened after this.
    pub after_seq: u64,
}

/// What the facts say to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    Supported,
    /// It was verified, and then something changed.
    Stale,
    /// Nothing says so.
    Unsupported,
    /// The facts say the opposite.
    Contradicted,
}

/// One claim of an answer, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// What is claimed, in the runtime's words: `tests pass`, `edited /workspace/a.rs`.
    pub claim: String,
    pub verdict: ClaimVerdict,
    /// The fact beside it, in the runtime's words.
    pub fact: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ObservationId>,
}

/// What the facts say to a whole answer: the worst of its claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalVerdict {
    NoClaims,
    Supported,
    Stale,
    Unsupported,
    Contradicted,
}

impl FinalVerdict {
    /// Of these claims.
    #[must_use]
    pub fn of(claims: &[Claim]) -> Self {
        match claims.iter().map(|claim| claim.verdict).max() {
            None => Self::NoClaims,
            Some(ClaimVerdict::Supported) => Self::Supported,
            Some(ClaimVerdict::Stale) => Self::Stale,
            Some(ClaimVerdict::Unsupported) => Self::Unsupported,
            Some(ClaimVerdict::Contradicted) => Self::Contradicted,
        }
    }

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoClaims => "no_claims",
            Self::Supported => "supported",
            Self::Stale => "stale",
            Self::Unsupported => "unsupported",
            Self::Contradicted => "contradicted",
        }
    }
}

/// The last answer of a wake, compared with the facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinalChecked {
    pub message_id: MessageId,
    pub verdict: FinalVerdict,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearningKind {
    #[default]
    Lesson,
    Correction,
    Error,
}

/// Something a model learnt and wants kept (agent-runtime 2.9).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearningCaptured {
    pub id: LearningId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    pub session_id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_event_id: Option<EventId>,
    pub source_reason: String,
    pub kind: LearningKind,
    pub title: String,
    pub detail: String,
    pub promote_to_memory: bool,
    pub dedupe_key: String,
}
