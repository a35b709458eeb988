//! Input that no wake has taken up yet, in the order it came.

use portcullis_base::{EventId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::facts::{Activation, Block, ThreadMessageKind};
use crate::{Body, Event};

/// Input of a person or a client to the session, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputContent {
    Message {
        content: Vec<Block>,
    },
    System {
        content: Vec<Block>,
    },
    Interrupt {
        note: Option<String>,
    },
    /// The result of a call that a client or the worker of the environment was handed, by the event that asked for it.
    Result {
        of: EventId,
        content: Vec<Block>,
        is_error: bool,
    },
    /// Words of another session of the tree.
    FromThread {
        from: SessionId,
        kind: ThreadMessageKind,
        content: Vec<Block>,
    },
}

/// One pending input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub event_id: EventId,
    pub seq: u64,
    pub at: Timestamp,
    pub said: InputContent,
}

impl Input {
    /// What an event says to the session, if it does.
    #[must_use]
    pub fn of(event: &Event, body: &Body) -> Option<Self> {
        let said = match body {
            Body::UserMessage(said) => InputContent::Message { content: said.content.clone() },
            Body::SystemMessage(said) => InputContent::System { content: said.content.clone() },
            Body::UserInterrupt(said) => InputContent::Interrupt { note: said.note.clone() },
            Body::UserCustomToolResult(result) => InputContent::Result {
                of: result.custom_tool_use_id,
                content: result.content.clone(),
                is_error: result.is_error,
            },
            Body::UserToolResult(result) => InputContent::Result {
                of: result.tool_use_id,
                content: result.content.clone(),
                is_error: result.is_error,
            },
            Body::ThreadMessageReceived(said) => InputContent::FromThread {
                from: said.from_session_thread_id,
                kind: said.kind,
                content: said.content.clone(),
            },
            _ => return None,
        };
        Some(Self { event_id: event.id, seq: event.seq, at: event.at, said })
    }

    /// The type word of its event.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.said {
            InputContent::Message { .. } => "user.message",
            InputContent::System { .. } => "system.message",
            InputContent::Interrupt { .. } => "user.interrupt",
            InputContent::Result { .. } => Activation::ANSWERED,
            InputContent::FromThread { .. } => Activation::TOLD,
        }
    }
}

/// Pending input, oldest first. Calls that were queued are in [`super::Session`]: they wait for a holder, not for a wake.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inbox {
    pending: Vec<Input>,
}

impl Inbox {
    pub(super) fn apply(&mut self, event: &Event, body: &Body) {
        if let Body::InputConsumed(consumed) = body {
            self.pending.retain(|input| !consumed.event_ids.contains(&input.event_id));
        }
        self.pending.extend(Input::of(event, body));
    }

    /// What waits.
    #[must_use]
    pub fn pending(&self) -> &[Input] {
        &self.pending
    }

    /// Whether a person wants the session to stop what it does.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.interrupted_after(0)
    }

    /// The same for what was there at `seq`.
    #[must_use]
    pub fn interrupted_after(&self, seq: u64) -> bool {
        self.pending.iter().any(|input| input.seq > seq && matches!(input.said, InputContent::Interrupt { .. }))
    }
}
