//! What a call did to the world, as far as the facts tell.

use serde::{Deserialize, Serialize};

/// Whether anything happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffectState {
    #[default]
    None,
    Occurred,
    Unknown,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideEffect {
    /// A word such as `file_created`, `file_modified`, `command_ran`.
    pub kind: String,
    /// What it happened to, as the session names it (a virtual path, a host, a command).
    pub target: String,
    /// The state before and after, usually as artifact ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    pub reversible: bool,
}

/// State and items together. `items` is empty unless the state is `occurred` (or `unknown`, where
/// they are what is known of it).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SideEffects {
    pub state: SideEffectState,
    #[serde(default)]
    pub items: Vec<SideEffect>,
}

impl SideEffects {
    /// Nothing happened.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// These happened.
    #[must_use]
    pub fn occurred(items: Vec<SideEffect>) -> Self {
        let state = if items.is_empty() { SideEffectState::None } else { SideEffectState::Occurred };
        Self { state, items }
    }

    /// These happened as well.
    #[must_use]
    pub fn and(mut self, more: Vec<SideEffect>) -> Self {
        if self.state == SideEffectState::None && !more.is_empty() {
            self.state = SideEffectState::Occurred;
        }
        self.items.extend(more);
        self
    }

    /// Nobody knows; `items` is what is known of it.
    #[must_use]
    pub fn unknown(items: Vec<SideEffect>) -> Self {
        Self { state: SideEffectState::Unknown, items }
    }
}
