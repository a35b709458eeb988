//! An intent: what was asked for, and nothing more. It touches nothing and decides nothing.

use std::sync::Arc;

use portcullis_base::{Actor, Digest, IntentId, MenuId, MessageId, TurnId};
use portcullis_event::fold::Ask;

use crate::registry::menu::Turn;
use crate::sessions::running_calls::WorkingCall;
use crate::tasks::handed_over::ArrivedResult;

/// What a model, or a person at a terminal, proposes. The only thing a provider adapter can make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Who proposes: `agent:` for a model, `user:`, `key:` or `mcp:` for a caller.
    pub actor: Actor,
    /// The message that holds the call.
    pub message_id: MessageId,
    /// The provider's id of the call; unique in its message only.
    pub call_id: String,
    /// The tool's name, as proposed.
    pub tool: String,
    /// The arguments, as proposed: text that may or may not be JSON.
    pub input: String,
    /// Why, in the proposer's words.
    pub stated_reason: Option<String>,
}

/// A proposal with an id of its own, on its way through the gate.
pub(crate) struct Intent {
    pub(crate) id: IntentId,
    pub(crate) proposal: Proposal,
    /// Of the input as proposed; an approval is bound to it.
    pub(crate) input_hash: Digest,
    pub(crate) turn_id: TurnId,
    pub(crate) menu_id: MenuId,
    /// The turn it came from; gone for an intent that comes back from the log.
    pub(crate) turn: Option<Arc<Turn>>,
    pub(crate) origin: Origin,
}

/// Where an intent enters from.
pub(crate) enum Origin {
    /// `admit`: never seen before.
    Fresh { answered: Option<Box<AnsweredAtOnce>> },
    /// `resume` and recovery: stored, and now re-admitted through every phase.
    Stored {
        definition_version: Option<String>,
        executor_id: Option<String>,
        ask: Option<Box<Ask>>,
        /// What the client that ran it gave back.
        arrived: Option<Box<ArrivedResult>>,
    },
}

/// An ask that this very pass raised, and whose answer was known. Neither need be durable yet.
pub(crate) struct AnsweredAtOnce {
    pub(crate) ask: Ask,
    /// While it is held, the call counts as one that a person answered.
    pub(crate) _entry: WorkingCall,
}

impl Intent {
    /// The ask this intent comes back with, or that was raised and answered on its way.
    pub(crate) fn ask(&self) -> Option<&Ask> {
        match &self.origin {
            Origin::Stored { ask, .. } => ask.as_deref(),
            Origin::Fresh { answered } => answered.as_deref().map(|answered| &answered.ask),
        }
    }

    /// The result that this intent comes back with: what it did is done, whatever is decided now.
    pub(crate) fn arrived(&self) -> Option<&ArrivedResult> {
        match &self.origin {
            Origin::Stored { arrived, .. } => arrived.as_deref(),
            Origin::Fresh { .. } => None,
        }
    }

    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self.origin, Origin::Fresh { .. })
    }
}
