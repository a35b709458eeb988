//! One line of policy: who, what, on what, and what then.

use std::fmt;

use portcullis_base::{Digest, SessionId, Timestamp, fingerprint};
use serde::{Deserialize, Serialize};

use crate::resource::ResourceText;
use crate::{ActionPattern, Asker, ResourcePattern};

/// Where a rule comes from, strongest first, so that the least of several decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    Enterprise,
    User,
    Project,
    Agent,
    Session,
    ToolDefault,
}

impl Layer {
    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enterprise => "enterprise",
            Self::User => "user",
            Self::Project => "project",
            Self::Agent => "agent",
            Self::Session => "session",
            Self::ToolDefault => "tool_default",
        }
    }
}

/// What a matching rule calls for, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    Allow,
    Ask,
    /// Asks every time; no grant answers it.
    AskPinned,
    Deny,
}

impl RuleEffect {
    /// Every effect, for messages and parsing.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Ask, Self::AskPinned, Self::Deny];

    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::AskPinned => "ask_pinned",
            Self::Deny => "deny",
        }
    }
}

/// A rule's name, unique in a policy. Without an `id` it is `<layer>:<file name>:<line>`, which
/// changes when lines move: give an id to a rule whose grants should outlive an edit above it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleId(String);

impl RuleId {
    /// Longest name.
    pub const MAX_BYTES: usize = 200;
    /// What the names of tool defaults begin with; no written rule may take one.
    pub(crate) const RESERVED: &'static str = "tool_default:";
    /// What the names of built-in rules begin with; no written rule may take one.
    pub(crate) const BUILT_IN: &'static str = "built_in:";

    /// A name that a person chose: one word, not that of a tool default or a built-in rule.
    #[must_use]
    pub fn chosen(text: &str) -> Option<Self> {
        let word = !text.contains(|c: char| c.is_whitespace() || c.is_control());
        let good = word && !text.is_empty() && text.len() <= Self::MAX_BYTES;
        let reserved = [Self::RESERVED, Self::BUILT_IN].iter().any(|start| text.starts_with(start));
        (good && !reserved).then(|| Self(text.to_owned()))
    }

    pub(crate) fn by_place(layer: Layer, source: &RuleSource) -> Self {
        let name = source.file.rsplit('/').next().unwrap_or_default();
        Self(format!("{}:{}:{}", layer.as_str(), name, source.line))
    }

    pub(crate) fn tool_default(action: &str) -> Self {
        Self(format!("{}{action}", Self::RESERVED))
    }

    pub(crate) fn built_in(word: &str) -> Self {
        Self(format!("{}{word}", Self::BUILT_IN))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a rule is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RuleSource {
    pub file: String,
    pub line: usize,
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// For whom a rule holds; what is absent does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// One rule of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub id: RuleId,
    pub layer: Layer,
    pub action: ActionPattern,
    pub resource: ResourcePattern,
    pub effect: RuleEffect,
    pub scope: Scope,
    pub expires_at: Option<Timestamp>,
    pub source: RuleSource,
}

/// What a rule means, without its name and place.
#[derive(Serialize)]
struct RuleMeaning<'a> {
    layer: Layer,
    action: &'a str,
    resource: ResourceText,
    effect: RuleEffect,
    scope: &'a Scope,
    expires_at: Option<Timestamp>,
}

impl Rule {
    /// The fingerprint of its meaning. A grant names it, so that any change of the rule voids the grant.
    #[must_use]
    pub fn hash(&self) -> Digest {
        let meaning = RuleMeaning {
            layer: self.layer,
            action: self.action.as_str(),
            resource: ResourceText::from(&self.resource),
            effect: self.effect,
            scope: &self.scope,
            expires_at: self.expires_at,
        };
        // Invariant: texts, enums and an optional text time are always JSON.
        fingerprint(&meaning).expect("a rule is JSON")
    }

    /// Whether the rule is in force for this asker, now.
    pub(crate) fn in_force(&self, asker: &Asker<'_>) -> bool {
        let Scope { project, agent, session } = &self.scope;
        self.expires_at.is_none_or(|end| asker.now < end)
            && project.as_deref().is_none_or(|p| asker.project == Some(without_last_slash(p)))
            && agent.as_deref().is_none_or(|a| asker.agent == Some(a))
            && session.is_none_or(|s| asker.session == Some(s))
    }
}

/// A folder as a workspace is named, however it was written.
fn without_last_slash(folder: &str) -> &str {
    folder.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(folder)
}

/// A rule as an ask, a log entry or a grant names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRef {
    pub id: RuleId,
    /// Where it is written; a tool's default is written nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RuleSource>,
    pub hash: Digest,
}
