//! What a session runs as: its [`Setup`].
//!
//! A setup is stored once by the hash of its content, as menus are. `session.created` names the first one of a session and
//! `session.updated` each later one, so that any process opens a session from its id alone and acts as the others did. It
//! holds names and choices, never a key or another secret.

use std::collections::BTreeMap;
use std::time::Duration;

use portcullis_base::{Digest, IsolationLevel, TenantId};
pub use portcullis_contract::Mode;
use portcullis_event::facts::CustomTool;
use serde::{Deserialize, Serialize};

/// The form of a stored setup. A setup of a later form is refused, not read in part.
pub const SETUP_VERSION: u32 = 1;

/// The agent of sessions that nobody declared one for.
pub const LOCAL_AGENT: &str = "local";

/// The environment of sessions that nobody declared one for (agent-runtime 2.2).
pub const LOCAL_ENVIRONMENT: &str = "local-default";

/// What a session runs as.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    pub v: u32,
    pub tenant: TenantId,
    /// On whose behalf calls are made; an approval is bound to it.
    pub principal: String,
    pub agent: AgentVersion,
    /// Who proposes. `None`: the session's calls come from outside, or whoever wakes it chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSetup>,
    /// The parts of the base prompt, in order. Empty: the runtime's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<SystemSection>,
    pub profile: Profile,
    #[serde(default, skip_serializing_if = "Toolset::is_whole")]
    pub tools: Toolset,
    /// Tools that the client of the session runs itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_tools: Vec<CustomTool>,
    #[serde(default)]
    pub mode: Mode,
    /// A free label; a tool that names phases is hidden in others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    pub environment: Environment,
    /// The folder that is mounted at `/workspace`, links resolved. `None`: a session without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What else the session sees, by its mount path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, Resource>,
    /// Vaults that are bound to it, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vaults: Vec<String>,
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
}

/// One version of a declared agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentVersion {
    pub id: String,
    /// Zero for one that was never declared.
    pub version: u32,
}

/// The model and how it is spoken to. Its key is not among this: a key comes from the environment of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSetup {
    /// `PROVIDER/MODEL` or `scripted:FILE`.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Whether images and documents are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Requests of one wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns_per_wake: Option<u32>,
    /// Requests for one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests_per_message: Option<u32>,
}

/// A part of the base prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemSection {
    pub name: String,
    pub text: String,
}

/// A toolset with its default policies (tool-contract 13.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Every tool keeps its own default policy.
    #[default]
    Managed,
    /// One policy for all, `auto`: what only reads inside the location runs, everything else asks.
    Code,
}

impl Profile {
    pub const ALL: [Self; 2] = [Self::Managed, Self::Code];

    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Code => "code",
        }
    }
}

/// Which tools of the profile are offered, and what is said of single ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolset {
    /// Whether a tool that is not named here is offered.
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolSetup>,
}

impl Default for Toolset {
    fn default() -> Self {
        Self { enabled: true, tools: BTreeMap::new() }
    }
}

impl Toolset {
    fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a tool is offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.get(tool).and_then(|tool| tool.enabled).unwrap_or(self.enabled)
    }
}

/// What a setup says of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSetup {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ToolPolicy>,
}

/// What a tool does where no rule speaks, in the words of agent-runtime 2.8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolPolicy {
    AlwaysAllow,
    AlwaysAsk,
    Auto,
}

/// Where commands run, and what they may use (agent-runtime 2.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    pub id: String,
    /// Below this isolation nothing runs.
    pub minimum: IsolationLevel,
    #[serde(default)]
    pub network: NetworkAccess,
    #[serde(default, skip_serializing_if = "ResourceLimits::are_default")]
    pub limits: ResourceLimits,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            id: LOCAL_ENVIRONMENT.to_owned(),
            minimum: IsolationLevel::Full,
            network: NetworkAccess::Disabled,
            limits: ResourceLimits::default(),
        }
    }
}

/// Which network commands have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    #[default]
    Disabled,
    /// Certain hosts. Nothing can keep to that yet, so no command runs with it.
    Limited,
    /// The machine's own.
    Enabled,
}

impl NetworkAccess {
    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Limited => "limited",
            Self::Enabled => "enabled",
        }
    }
}

/// What a command may use up; what is `None` is as the machine's configuration says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

impl ResourceLimits {
    fn are_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Something else that a session sees (agent-runtime 2.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    pub kind: ResourceKind,
    /// Where it comes from; never shown to a model.
    pub source: String,
    pub access: Access,
}

/// What an attached resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    SessionWorkspace,
    AgentWorkspaceSubstrate,
    LocalFile,
    LearningsMemoryStore,
    SessionRuntimeMemory,
    Vault,
    RepoMount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// What a session may use up in all; what is `None` has no limit of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<Duration>,
}

impl Budget {
    fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// Why a stored setup cannot be acted by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    #[error("it is of form {found}, and this version of Portcullis reads form {SETUP_VERSION}")]
    LaterForm { found: u64 },
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

impl Setup {
    /// The setup of a session that nobody declared anything for.
    #[must_use]
    pub fn local(tenant: TenantId, principal: &str, profile: Profile) -> Self {
        Self {
            v: SETUP_VERSION,
            tenant,
            principal: principal.to_owned(),
            agent: AgentVersion { id: LOCAL_AGENT.to_owned(), version: 0 },
            model: None,
            system: Vec::new(),
            profile,
            tools: Toolset::default(),
            custom_tools: Vec::new(),
            mode: Mode::default(),
            phase: None,
            environment: Environment::default(),
            workspace: None,
            resources: BTreeMap::new(),
            vaults: Vec::new(),
            budget: Budget::default(),
        }
    }

    /// The bytes that are stored. Equal setups have equal bytes, in every process.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Invariant: a setup is plain data with text for every key.
        serde_json::to_vec(self).expect("a setup is always JSON")
    }

    /// The name that events give it.
    #[must_use]
    pub fn hash(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }

    /// Reads what was stored.
    ///
    /// # Errors
    /// If it is of a later form or no setup at all.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SetupError> {
        let unreadable = |error: serde_json::Error| SetupError::Unreadable(error.to_string());
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(unreadable)?;
        match value.get("v").and_then(serde_json::Value::as_u64) {
            Some(v) if v == u64::from(SETUP_VERSION) => serde_json::from_value(value).map_err(unreadable),
            Some(found) => Err(SetupError::LaterForm { found }),
            None => Err(SetupError::Unreadable("it has no `v`".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup {
        let mut setup = Setup::local(TenantId::from_u128(7), "ann", Profile::Code);
        setup.model = Some(ModelSetup { name: "a/b".to_owned(), window: Some(9), ..ModelSetup::default() });
        setup.tools.tools.insert("edit".to_owned(), ToolSetup { enabled: Some(false), policy: None });
        setup
    }

    #[test]
    fn what_is_stored_is_read_again_to_the_letter() {
        let setup = setup();
        let read = Setup::from_bytes(&setup.to_bytes()).expect("readable");
        assert_eq!(read, setup);
        assert_eq!(read.hash(), setup.hash());
        assert_ne!(Setup { principal: "bob".to_owned(), ..setup.clone() }.hash(), setup.hash());
    }

    #[test]
    fn a_setup_of_a_later_form_is_refused_whole() {
        let later = br#"{"v":2,"principal":"ann"}"#;
        assert_eq!(Setup::from_bytes(later), Err(SetupError::LaterForm { found: 2 }));
        let mut unknown: serde_json::Value = serde_json::from_slice(&setup().to_bytes()).expect("json");
        unknown["sudo"] = true.into();
        assert!(matches!(Setup::from_bytes(unknown.to_string().as_bytes()), Err(SetupError::Unreadable(_))));
    }

    #[test]
    fn a_tool_is_offered_unless_its_flag_or_the_whole_set_says_no() {
        let set = setup().tools;
        assert!(set.offers("read") && !set.offers("edit"));
        let none = Toolset {
            enabled: false,
            tools: [("read".to_owned(), ToolSetup { enabled: Some(true), policy: None })].into(),
        };
        assert!(none.offers("read") && !none.offers("edit"));
    }
}
