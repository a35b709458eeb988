//! What is known of a command beyond its words: shared by what decides, what records and what runs it.

use serde::{Deserialize, Serialize};

/// What the words of a command alone do not say. Rules that forbid look at it; it never allows anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommandFacts {
    /// Words, by their place, that become known only when the line runs, such as `$x` or `*.rs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenWord>,
    /// The same command by the names of what its program is a link to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<OtherForm>,
    /// Any program may run, whatever the words are: an interpreter with inline code, a shell that reads a pipe.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides: bool,
    /// Texts that the line gives the command to read, if it may run what it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<String>,
}

impl CommandFacts {
    /// Whether the words say everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.linked.is_empty() && !self.hides && self.input.is_empty()
    }
}

/// A command in other words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OtherForm {
    /// The program first.
    pub words: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenWord>,
}

/// A word that becomes known only when the line runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpenWord {
    /// Its place among the words, the program being 0.
    pub at: usize,
    /// It may become several words, or none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub many: bool,
}
