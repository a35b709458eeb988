//! A remembered allow (tool-contract 13.5): it answers the asks of one rule, for one agent in one project.

use std::fmt;

use portcullis_base::{Digest, GrantId, SessionId, Timestamp};
use portcullis_contract::Action;
use serde::{Deserialize, Serialize};

use crate::subject::Subject;
use crate::{ActionPattern, Asker, ResourcePattern, RuleId, RuleRef};

/// What a grant allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantRule {
    pub action: ActionPattern,
    pub resource: ResourcePattern,
}

impl fmt::Display for GrantRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.action, self.resource)
    }
}

/// The rule, and the meaning it had, whose asks a grant answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Satisfies {
    pub rule_id: RuleId,
    pub rule_hash: Digest,
}

impl From<&RuleRef> for Satisfies {
    fn from(rule: &RuleRef) -> Self {
        Self { rule_id: rule.id.clone(), rule_hash: rule.hash }
    }
}

/// For whom. An absent project or agent is one of its own ("none"), not a wildcard; an absent
/// session means any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantScope {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// A person's answer, kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: GrantId,
    pub rule: GrantRule,
    pub satisfies: Satisfies,
    pub scope: GrantScope,
    pub created_by: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default)]
    pub uses: u64,
}

impl Grant {
    /// Whether it answers an unpinned ask of `deciding` about one resource.
    pub(crate) fn answers(&self, deciding: &RuleRef, action: &Action, subject: &Subject, asker: &Asker<'_>) -> bool {
        self.satisfies.rule_id == deciding.id
            && self.satisfies.rule_hash == deciding.hash
            && self.scope.agent.as_deref() == asker.agent
            && self.scope.project.as_deref() == asker.project
            && self.scope.session.is_none_or(|session| asker.session == Some(session))
            && self.expires_at.is_none_or(|end| asker.now < end)
            && self.rule.action.matches(action)
            && self.rule.resource.may_allow(subject)
            && self.rule.resource.fits(subject)
    }
}
