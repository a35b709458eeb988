//! The payloads of a conversation: what people say to a session, what the model answered, and what it was asked with.

use portcullis_base::{ArtifactRef, Digest, EventId, IntentId, InvocationId, MenuId, MessageId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::body::Body;
use crate::facts::is_false;

/// A piece of a message, as clients write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
    },
    /// Bytes that are no text, as the client described where they are.
    Image {
        source: Value,
    },
    Document {
        source: Value,
    },
}

impl Block {
    /// A piece of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The text of several pieces, one after the other.
#[must_use]
pub fn text_of(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

// --- input: it is pending until an `input.consumed` names it ---------------------------------------

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    pub content: Vec<Block>,
}

/// What whoever runs the session tells the model, beside what people say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemMessage {
    pub content: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserInterrupt {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What became of a call that a client runs itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserCustomToolResult {
    pub custom_tool_use_id: EventId,
    pub content: Vec<Block>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
}

/// What became of a call that the worker of the environment runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserToolResult {
    pub tool_use_id: EventId,
    pub content: Vec<Block>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
}

// --- what the model was asked and said --------------------------------------------------------------

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentMessage {
    pub message_id: MessageId,
    pub content: Vec<Block>,
    /// The one line that is kept of it; only the last message of a wake has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// A call that a client fulfils; name and input are rendered from `tool.intent`, or stand here where the directive of a
/// reply asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CustomToolUse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<IntentId>,
    pub name: String,
    pub input: Value,
}

/// Something that a fact carries with it while it is small, and names as an artifact when it is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carried {
    Inline(Value),
    Artifact(ArtifactRef),
}

/// The model is asked. What it was sent follows from the log: the messages before, and what `context` adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequestStart {
    pub turn_id: TurnId,
    /// Of the answer that is awaited.
    pub message_id: MessageId,
    pub menu_id: MenuId,
    /// `provider/model`.
    pub model: String,
    /// What stands in the user's position of this request and is not in the log already.
    pub context: Carried,
    /// Of the whole conversation as it was sent, so that a replay can prove that it builds the same (L71).
    pub context_hash: Digest,
    /// The system prompt, where it is not that of the request before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Carried>,
}

/// Tokens, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default)]
    pub cache_read_input_tokens: u64,
    #[serde(default)]
    pub cache_creation_input_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequestEnd {
    pub model_request_start_id: EventId,
    pub turn_id: TurnId,
    pub message_id: MessageId,
    pub is_error: bool,
    /// Why the model stopped, or the class of the failure.
    pub stop: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_usage: Option<ModelUsage>,
    /// The parts of the answer in their order, opaque ones byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Carried>,
    /// How many of them are calls. Older logs do not say.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub calls: usize,
    /// Calls whose arguments stand there masked or cut: nobody may run them from there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked_calls: Vec<String>,
}

fn is_none_of_them(calls: &usize) -> bool {
    *calls == 0
}

/// The oldest messages gave way to a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextCompacted {
    /// First and last seq of what the summary stands for.
    pub dropped_event_range: (u64, u64),
    pub summary: Carried,
    pub kept_from_seq: u64,
    /// Bytes that each piece of what stays has at most, where it would not have fitted whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_to: Option<usize>,
}

/// Totals of a session so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUsage {
    pub wakes: u64,
    pub turns: u64,
    pub tool_calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default)]
    pub cache_read_input_tokens: u64,
    #[serde(default)]
    pub cache_creation_input_tokens: u64,
}

impl SessionUsage {
    /// With what another sum says was used.
    pub fn add(&mut self, more: &Self) {
        let Self { wakes, turns, tool_calls, input_tokens, output_tokens, .. } = more;
        for (sum, more) in [
            (&mut self.wakes, wakes),
            (&mut self.turns, turns),
            (&mut self.tool_calls, tool_calls),
            (&mut self.input_tokens, input_tokens),
            (&mut self.output_tokens, output_tokens),
            (&mut self.cache_read_input_tokens, &more.cache_read_input_tokens),
            (&mut self.cache_creation_input_tokens, &more.cache_creation_input_tokens),
        ] {
            *sum = sum.saturating_add(*more);
        }
    }

    /// With what this fact says was used. Wakes count when their span ends, which whoever folds them knows.
    pub fn count(&mut self, fact: &Body) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        match fact {
            Body::ModelRequestStart(_) => add(&mut self.turns, 1),
            Body::IntentProposed(_) => add(&mut self.tool_calls, 1),
            Body::ModelRequestEnd(end) => {
                let usage = end.model_usage.unwrap_or_default();
                add(&mut self.input_tokens, usage.input_tokens);
                add(&mut self.output_tokens, usage.output_tokens);
                add(&mut self.cache_read_input_tokens, usage.cache_read_input_tokens);
                add(&mut self.cache_creation_input_tokens, usage.cache_creation_input_tokens);
            }
            _ => {}
        }
    }
}

/// Something went wrong outside any call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionError {
    pub error: ErrorFact,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorFact {
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    /// `retrying`, `exhausted` or `terminal`.
    pub retry_status: String,
}

// --- looking back ------------------------------------------------------------------------------------

/// This log goes on from a place in another; what came before is copied into it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionForked {
    pub from_session_id: SessionId,
    pub at_seq: u64,
}

/// What a person found out about a call whose outcome was unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    Happened,
    DidNotHappen,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationResolved {
    pub invocation_id: InvocationId,
    pub resolution: Resolution,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
