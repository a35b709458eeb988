//! What the gate answers, and on whose behalf it was asked.

use portcullis_base::{GrantId, SessionId, Timestamp};
use portcullis_contract::DefaultPolicy;
use serde::{Deserialize, Serialize};

use crate::{Grant, RuleId, RuleRef, SuggestedRule};

/// On whose behalf, when, and what holds where no rule speaks.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    pub agent: Option<&'a str>,
    pub session: Option<SessionId>,
    pub project: Option<&'a str>,
    pub now: Timestamp,
    /// The tool's own default, the weakest layer.
    pub default: DefaultPolicy,
    /// Remembered allows that have not been revoked.
    pub grants: &'a [Grant],
}

/// It may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allow {
    pub reason: String,
    /// Every rule that matched, sorted.
    pub policy_ids: Vec<RuleId>,
    /// The grants that answered an ask.
    pub grant_ids: Vec<GrantId>,
}

/// A person must say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// No grant can answer it.
    pub pinned: bool,
    /// It may hide a command that a rule denies: no flag, grant or mode answers it, only a person does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_a_person: bool,
    pub reason: String,
    /// Every rule that matched, sorted.
    pub policy_ids: Vec<RuleId>,
    /// The rule that asked; none if nothing was named that a rule could speak of.
    pub deciding: Option<RuleRef>,
    pub suggested_rules: Vec<SuggestedRule>,
}

/// It may not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deny {
    pub reason: String,
    /// Every rule that matched, sorted.
    pub policy_ids: Vec<RuleId>,
}

/// The answer of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    Allow(Allow),
    Ask(Ask),
    Deny(Deny),
}

impl Decision {
    /// Every rule that matched, sorted.
    #[must_use]
    pub fn policy_ids(&self) -> &[RuleId] {
        match self {
            Self::Allow(Allow { policy_ids, .. })
            | Self::Ask(Ask { policy_ids, .. })
            | Self::Deny(Deny { policy_ids, .. }) => policy_ids,
        }
    }

    /// Why, for a person.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow(Allow { reason, .. }) | Self::Ask(Ask { reason, .. }) | Self::Deny(Deny { reason, .. }) => {
                reason
            }
        }
    }

    /// The stricter of two decisions: a child's with its parent's (tool-contract 13.6), or one part's with
    /// another's. Equals: the first, with what matched in both. Suggestions for one of two asks would
    /// not settle the other and are dropped, unless one rule asks both times.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        let both_ask = match (&self, &other) {
            (Self::Ask(one), Self::Ask(two)) => {
                (&one.deciding, &one.suggested_rules) != (&two.deciding, &two.suggested_rules)
            }
            _ => false,
        };
        let (mut strict, mild) = if other.strictness() > self.strictness() { (other, self) } else { (self, other) };
        let ids = match &mut strict {
            Self::Allow(Allow { policy_ids, grant_ids, .. }) => {
                if let Self::Allow(Allow { grant_ids: more, .. }) = &mild {
                    grant_ids.extend(more);
                    grant_ids.sort();
                    grant_ids.dedup();
                }
                policy_ids
            }
            Self::Ask(ask) => {
                if both_ask {
                    ask.suggested_rules.clear();
                }
                &mut ask.policy_ids
            }
            Self::Deny(Deny { policy_ids, .. }) => policy_ids,
        };
        ids.extend_from_slice(mild.policy_ids());
        ids.sort();
        ids.dedup();
        strict
    }

    const fn strictness(&self) -> u8 {
        match self {
            Self::Allow(_) => 0,
            Self::Ask(Ask { pinned: false, only_a_person: false, .. }) => 1,
            Self::Ask(Ask { only_a_person: false, .. }) => 2,
            Self::Ask(_) => 3,
            Self::Deny(_) => 4,
        }
    }
}
