//! What a tool says it will touch. The tool states; the runtime decides (R3).

use std::fmt;

use portcullis_base::{CommandFacts, EffectSet, RiskSet};
use serde::{Deserialize, Serialize};

/// The word a rule's `action` pattern is matched against, such as `read`, `edit`, `shell_run`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Action(String);

impl Action {
    /// Any non-empty word.
    pub fn new(word: impl Into<String>) -> Self {
        Self(word.into())
    }

    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sort of thing that is known by its name alone; a rule speaks of it with a pattern over names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedKind {
    /// A tool by its name, where nothing else is known of what it touches: one of an MCP server, of a client or of an embedder.
    McpTool,
    /// A background task by its id.
    Task,
    /// An artifact by its id.
    Artifact,
    /// The shell of a session: `shell`, or the id of another session whose it is; `env:NAME` is a variable of it.
    Shell,
    /// A session by its id; `sandbox` is the hand of the session that calls.
    Session,
    /// A memory.
    Memory,
    /// A skill.
    Skill,
}

impl NamedKind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::McpTool, Self::Task, Self::Artifact, Self::Shell, Self::Session, Self::Memory, Self::Skill];

    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::McpTool => "mcp_tool",
            Self::Task => "task",
            Self::Artifact => "artifact",
            Self::Shell => "shell",
            Self::Session => "session",
            Self::Memory => "memory",
            Self::Skill => "skill",
        }
    }
}

/// What sort of thing is touched; decides which patterns can match it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// A file or folder by its canonical, symlink-resolved virtual path.
    Path,
    /// A host name.
    Host,
    /// A web address.
    Url,
    /// A command by its words.
    Argv,
    /// A secret by name.
    Secret,
    /// Analysis cannot tell what will be touched; the floor is `ask`.
    Opaque,
    /// Something known by its name alone; written as that kind.
    #[serde(untagged)]
    Named(NamedKind),
}

impl From<NamedKind> for ResourceKind {
    fn from(kind: NamedKind) -> Self {
        Self::Named(kind)
    }
}

impl ResourceKind {
    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Host => "host",
            Self::Url => "url",
            Self::Argv => "argv",
            Self::Secret => "secret",
            Self::Opaque => "opaque",
            Self::Named(kind) => kind.as_str(),
        }
    }
}

/// What makes a file more than a file. A broad allow does not cover such a resource; a rule or a grant must name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceClass {
    /// A program outside of the sandbox runs it later, or reads there what to run. Holds the name of the entry in the
    /// policy's list of such places. It matters for accesses that write.
    RunsLater(String),
    /// It holds secrets. Holds the name of the entry in the policy's list of such names. It matters for accesses that
    /// read.
    Secret(String),
}

/// One thing that a call will touch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resource {
    /// What sort of thing.
    pub kind: ResourceKind,
    /// What rules are matched against. For `argv` the words as a JSON array.
    pub canonical: String,
    /// What the model wrote.
    pub raw: String,
    /// Whether it lies inside the session's location; only then is a pure read allowed by default.
    #[serde(default)]
    pub inside: bool,
    /// Of a command: it takes input that its words do not tell. A written rule may allow it; a remembered
    /// answer reaches only what was shown, and never this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fed: bool,
    /// Of a command: what its words alone do not say.
    #[serde(default, skip_serializing_if = "CommandFacts::is_empty")]
    pub command: CommandFacts,
    /// Set by the tool that looked at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ResourceClass>,
    /// Of a command that certainly does nothing but look: the places that it looks at. `None` of any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks_at: Option<Vec<Resource>>,
}

impl Resource {
    /// A path inside the location, by its canonical virtual form.
    pub fn path(canonical: impl Into<String>, raw: impl Into<String>) -> Self {
        Self { inside: true, ..Self::bare(ResourceKind::Path, canonical.into(), raw.into()) }
    }

    /// The same resource with what the tool found out about it.
    #[must_use]
    pub fn classed(mut self, class: Option<ResourceClass>) -> Self {
        self.class = class;
        self
    }

    /// A command by its words.
    pub fn argv(words: &[String], raw: impl Into<String>) -> Self {
        let canonical = serde_json::to_string(words).unwrap_or_default();
        Self::bare(ResourceKind::Argv, canonical, raw.into())
    }

    /// Something that analysis cannot name.
    pub fn opaque(raw: impl Into<String>) -> Self {
        let raw = raw.into();
        Self::bare(ResourceKind::Opaque, raw.clone(), raw)
    }

    /// Something of the session itself (an artifact, a task): inside by nature.
    pub fn own(kind: impl Into<ResourceKind>, canonical: impl Into<String>) -> Self {
        let canonical = canonical.into();
        Self { inside: true, ..Self::bare(kind.into(), canonical.clone(), canonical) }
    }

    /// Anything by its canonical name, of which nothing else is known yet.
    #[must_use]
    pub const fn bare(kind: ResourceKind, canonical: String, raw: String) -> Self {
        let command = CommandFacts { open: Vec::new(), linked: Vec::new(), hides: false, input: Vec::new() };
        Self { kind, canonical, raw, inside: false, fed: false, command, class: None, looks_at: None }
    }
}

/// One access: an action on at least one resource. An empty set can never mean allow, so it cannot
/// be built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRequest {
    /// What is done.
    pub action: Action,
    first: Resource,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rest: Vec<Resource>,
    /// What the gate weighs.
    pub risk: RiskSet,
    /// What catalogs show.
    #[serde(default)]
    pub effects: EffectSet,
    /// Whether it can be undone.
    pub reversible: bool,
    /// Facts a person is shown when asked, such as `project_scripts: may run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary_facts: Vec<(String, String)>,
}

impl AccessRequest {
    /// An access to one resource; [`Self::also`] adds more.
    pub fn new(action: Action, resource: Resource, risk: RiskSet) -> Self {
        Self {
            action,
            first: resource,
            rest: Vec::new(),
            risk,
            effects: EffectSet::new(),
            reversible: false,
            summary_facts: Vec::new(),
        }
    }

    /// The same access, to one resource more.
    #[must_use]
    pub fn also(mut self, resource: Resource) -> Self {
        self.rest.push(resource);
        self
    }

    /// The same access, with each of its resources, in their order, as `change` gives it back.
    #[must_use]
    pub fn mapped(mut self, mut change: impl FnMut(Resource) -> Resource) -> Self {
        self.first = change(self.first);
        self.rest = self.rest.into_iter().map(change).collect();
        self
    }

    /// The same access, undoable.
    #[must_use]
    pub fn reversible(mut self) -> Self {
        self.reversible = true;
        self
    }

    /// The same access with one fact more for the person who is asked.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.summary_facts.push((name.into(), value.into()));
        self
    }

    /// Every resource, at least one.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}
