//! Which tools a scope offers, and what single ones do where no rule speaks (tool-contract 8.2, 13.9).

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_base::{Digest, Reason};
use portcullis_contract::{DefaultPolicy, Mode, Semantics, Tool, Visibility, seam};
use portcullis_policy::Policy;

use crate::phases::validate::guarded;
use crate::scope::Scope;

/// The choice that a setup makes among the tools that are registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolChoice {
    /// How much is asked.
    pub mode: Mode,
    /// The session's phase.
    pub phase: Option<String>,
    /// The toolset's name.
    pub profile: String,
    /// Which network commands have, in a word.
    pub network: String,
    /// Whether only tools that are named here are offered.
    pub named_only: bool,
    /// What is said of single tools.
    pub named: BTreeMap<String, NamedTool>,
}

/// What a setup says of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedTool {
    /// Whether it is offered; `None`: as [`ToolChoice::named_only`] says.
    pub offered: Option<bool>,
    /// What it does where no rule speaks; `None`: what its author says.
    pub default: Option<DefaultPolicy>,
}

/// A choice that is in force.
#[derive(Debug, Clone)]
pub(crate) struct ChosenTools {
    /// Another one whenever a choice is made: an offer that was made by one is not taken for another's.
    pub(crate) number: u64,
    pub(crate) choice: Arc<ToolChoice>,
}

impl ToolChoice {
    /// Why a tool is not to be seen in a scope; `None` if it is.
    pub(crate) fn hides(&self, name: &str, tool: &Tool, scope: &Scope) -> Option<Reason> {
        let session = &Visibility {
            mode: self.mode,
            phase: self.phase.as_deref(),
            agent: &scope.agent,
            actor: &scope.actor,
            profile: &self.profile,
            sandbox: scope.isolated(seam::semantics(tool).sandbox.as_deref()).map(|isolated| isolated.level),
            network: &self.network,
        };
        let offered = self.named.get(name).and_then(|named| named.offered).unwrap_or(!self.named_only);
        if !offered {
            return Some(Reason::Agent);
        }
        if self.mode == Mode::Plan && !seam::semantics(tool).read_only {
            return Some(Reason::Mode);
        }
        guarded(|| seam::hidden(tool, session)).unwrap_or_else(|_| {
            tracing::error!(tool = name, "the tool broke when it was asked whether it is visible, so it is hidden");
            Some(Reason::SourceDown)
        })
    }

    /// What a tool does where no rule speaks. A setup may loosen what its author said, but not a pinned ask; a mode only
    /// tightens.
    pub(crate) fn default_of(&self, name: &str, semantics: &Semantics) -> DefaultPolicy {
        let own = semantics.default_policy;
        let chosen = match self.named.get(name).and_then(|named| named.default) {
            Some(chosen) if own != DefaultPolicy::AskPinned => chosen,
            _ => own,
        };
        let only_reads = semantics.read_only && semantics.sandbox.is_none();
        match chosen {
            DefaultPolicy::Allow | DefaultPolicy::Auto if self.mode == Mode::Strict && !only_reads => {
                DefaultPolicy::Ask
            }
            chosen => chosen,
        }
    }

    /// What an approval is bound to of what decides: the rules, and what this says of tools where no rule speaks.
    pub(crate) fn revision(&self, policy: &Policy) -> Digest {
        let defaults: BTreeMap<&String, &str> =
            self.named.iter().filter_map(|(tool, named)| Some((tool, named.default?.as_str()))).collect();
        if self.mode == Mode::Ask && defaults.is_empty() {
            return policy.revision();
        }
        Digest::of(format!("{} {} {defaults:?}", policy.revision(), self.mode).as_bytes())
    }
}
