//! Who caused something.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::WorkerId;

/// Who caused an event: `user:<id>`, `key:<id>`, `agent:<id>`, `worker:<id>`, `mcp:<principal>`, `system`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct Actor(Arc<str>);

impl From<String> for Actor {
    fn from(text: String) -> Self {
        Self::recorded(text)
    }
}

impl From<Actor> for String {
    fn from(actor: Actor) -> Self {
        actor.as_str().to_owned()
    }
}

impl Actor {
    /// A person, by id or login name.
    #[must_use]
    pub fn user(name: &str) -> Self {
        Self(format!("user:{name}").into())
    }

    /// An agent, by name.
    #[must_use]
    pub fn agent(name: &str) -> Self {
        Self(format!("agent:{name}").into())
    }

    /// A caller with an API key, by the key's id.
    #[must_use]
    pub fn key(id: &str) -> Self {
        Self(format!("key:{id}").into())
    }

    /// A caller over MCP, by its principal.
    #[must_use]
    pub fn mcp(principal: &str) -> Self {
        Self(format!("mcp:{principal}").into())
    }

    /// A process that holds a lease.
    #[must_use]
    pub fn worker(id: WorkerId) -> Self {
        Self(format!("worker:{id}").into())
    }

    /// The runtime itself.
    #[must_use]
    pub fn system() -> Self {
        Self("system".into())
    }

    /// An actor as it stands in a log.
    #[must_use]
    pub fn recorded(text: String) -> Self {
        Self(text.into())
    }

    /// The stored text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
