//! What the registry derives from a tool: the only view of its schemas, as data.

use std::fmt;

use portcullis_base::{Digest, fingerprint};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Semantics, ToolName};

/// `dv1:` + the hash of the canonical definition. Equal exactly for equal definitions; the name is
/// not part of it (L6).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DefinitionVersion(String);

impl DefinitionVersion {
    pub(crate) fn of(description: &str, input: &Value, output: &Value, semantics: &Semantics) -> Self {
        #[derive(Serialize)]
        struct Canonical<'a> {
            description: &'a str,
            input: &'a Value,
            output: &'a Value,
            semantics: &'a Semantics,
        }
        // Invariant: schemas and semantics are plain JSON.
        let digest: Digest =
            fingerprint(&Canonical { description, input, output, semantics }).expect("a definition is always JSON");
        Self(format!("dv1:{digest}"))
    }

    /// A version as it stands in a log.
    #[must_use]
    pub fn recorded(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DefinitionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What kind of thing runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum ExecutorKind {
    Builtin,
    Embedded,
    Mcp,
    External,
    Prompt,
    Agent,
}

/// Who really runs a tool; survives restarts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExecutorId {
    /// What kind of thing.
    pub kind: ExecutorKind,
    /// Which one, such as `portcullis.read`.
    pub id: String,
    /// The version of its implementation.
    pub impl_version: String,
}

impl fmt::Display for ExecutorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ExecutorKind::Builtin => "builtin",
            ExecutorKind::Embedded => "embedded",
            ExecutorKind::Mcp => "mcp",
            ExecutorKind::External => "external",
            ExecutorKind::Prompt => "prompt",
            ExecutorKind::Agent => "agent",
        };
        write!(f, "{kind}:{}@{}", self.id, self.impl_version)
    }
}

/// A tool under a name, as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name it is registered under.
    pub name: ToolName,
    /// What it does, for a model.
    pub description: String,
    /// What is enforced on its input.
    pub input_schema: Value,
    /// What is enforced on its output.
    pub output_schema: Value,
    /// Governance metadata.
    pub semantics: Semantics,
    /// The hash of all that but the name.
    pub version: DefinitionVersion,
}
