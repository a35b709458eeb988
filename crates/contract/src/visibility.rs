//! Which tools a session is shown (tool-contract 8.2). Visibility is not authorization: a visible tool still passes the gate.

use std::fmt;

use portcullis_base::{Actor, IsolationLevel, Reason};
use serde::{Deserialize, Serialize};

/// How much is asked (tool-contract 13.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only tools that only read are offered.
    Plan,
    /// What does not only read asks, unless a rule or the tool's own default lets it run.
    #[default]
    Ask,
    /// Nothing but reads runs unasked.
    Strict,
}

impl Mode {
    /// Every mode, the usual one in the middle.
    pub const ALL: [Self; 3] = [Self::Plan, Self::Ask, Self::Strict];

    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Strict => "strict",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a tool may hang its visibility on.
#[derive(Debug, Clone, Copy)]
pub struct Visibility<'a> {
    /// How much is asked.
    pub mode: Mode,
    /// The session's phase, a label that an application gives it.
    pub phase: Option<&'a str>,
    /// The agent's name.
    pub agent: &'a str,
    /// Who makes the calls that no model proposes.
    pub actor: &'a Actor,
    /// The toolset that was chosen.
    pub profile: &'a str,
    /// How far the isolation of commands goes; `None` where no command is run.
    pub sandbox: Option<IsolationLevel>,
    /// Which network commands have, in a word.
    pub network: &'a str,
}

/// Where a tool came from. The registrar stamps it, so that no tool can say it of itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolOrigin {
    /// The runtime's own.
    Builtin,
    /// The embedding application's.
    Application,
    /// A plugin's, by its name.
    Plugin(String),
    /// An MCP server's, by its name.
    Mcp(String),
    /// A skill's, by its name.
    Skill(String),
    /// The client of the session runs it.
    External,
}

impl fmt::Display for ToolOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("builtin"),
            Self::Application => f.write_str("application"),
            Self::Plugin(name) => write!(f, "plugin:{name}"),
            Self::Mcp(name) => write!(f, "mcp:{name}"),
            Self::Skill(name) => write!(f, "skill:{name}"),
            Self::External => f.write_str("external"),
        }
    }
}

impl Serialize for ToolOrigin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ToolOrigin {
    /// Words of a later version are the application's: an origin decides nothing.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.split_once(':') {
            Some(("plugin", name)) => Self::Plugin(name.to_owned()),
            Some(("mcp", name)) => Self::Mcp(name.to_owned()),
            Some(("skill", name)) => Self::Skill(name.to_owned()),
            _ if text == "builtin" => Self::Builtin,
            _ if text == "external" => Self::External,
            _ => Self::Application,
        })
    }
}

/// Why a tool is hidden from this session; `None` if it is not.
pub(crate) type HiddenWhen = dyn Fn(&Visibility<'_>) -> Option<Reason> + Send + Sync;
