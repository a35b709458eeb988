//! What stands between a tool's commands and the machine, for the log and for whoever is asked.

use portcullis_base::IsolationLevel;
use portcullis_event::facts::SandboxUsed;

/// Whoever runs commands for tools.
pub trait Isolation: Send + Sync {
    /// What a tool with this sandbox profile gets; `None` if its commands are not run here.
    fn of(&self, profile: &str) -> Option<Isolated>;
}

/// The isolation that commands get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolated {
    pub level: IsolationLevel,
    /// Each missing layer in one line.
    pub missing: Vec<String>,
    /// Below this nothing runs.
    pub minimum: IsolationLevel,
    /// In a word or two, such as `disabled`.
    pub network: String,
}

impl Isolated {
    /// As the start of a call tells it.
    pub(crate) fn used(self, profile: &str) -> SandboxUsed {
        SandboxUsed { profile: profile.to_owned(), level: self.level, missing: self.missing }
    }
}
