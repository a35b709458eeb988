//! What a model said.

use serde::{Deserialize, Serialize};

/// A call as the model wrote it. Nothing is read into it: the gate decodes the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id of the call; the adapter makes one where the provider gave none, or gave one twice.
    pub id: String,
    pub name: String,
    /// The text of the arguments, whether it is JSON or not.
    pub arguments: String,
}

/// A part that only its provider understands (thinking, signatures, hosted calls): kept and sent back byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// The wire format it belongs to ([`crate::Model::wire`]); to any other it is never sent.
    pub wire: String,
    /// JSON text.
    pub raw: String,
    /// Whose it is within that format: provider, model and a digest of the address. It is sent to nobody else. `None`, as
    /// in logs from before it was kept: nobody knows, so nobody gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl Opaque {
    /// A part of a wire format that has one speaker only.
    #[must_use]
    pub fn new(wire: &str, raw: impl Into<String>) -> Self {
        Self { wire: wire.to_owned(), raw: raw.into(), from: None }
    }
}

/// One piece of an answer, in the order it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPart {
    Text(String),
    Call(Call),
    Opaque(Opaque),
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has said what it wanted.
    EndTurn,
    /// It waits for the results of its calls.
    ToolUse,
    /// The answer reached the most tokens it may have.
    MaxTokens,
    /// The provider or the model declined.
    Refusal,
    /// A word this program does not know.
    Other(String),
}

/// Tokens, where the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read anew, outside any cache.
    pub input: u64,
    pub output: u64,
    #[serde(default)]
    pub cache_read: u64,
    #[serde(default)]
    pub cache_write: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input += more.input;
        self.output += more.output;
        self.cache_read += more.cache_read;
        self.cache_write += more.cache_write;
    }
}

/// A whole answer. Half an answer is an error, never this.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub parts: Vec<AnswerPart>,
    pub stop: Stop,
    /// `None`: the provider did not say, and nobody should guess.
    pub usage: Option<Usage>,
    /// What was odd about it and how it was read, for a person: no usage, ids made here, calls written as text.
    pub warnings: Vec<String>,
}

impl Answer {
    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match part {
            AnswerPart::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The text, pieces put together as they came.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            AnswerPart::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// A piece of an answer that is still coming: for whoever watches. Nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    Text(&'a str),
    Thinking(&'a str),
    /// A call began; its arguments follow.
    Call {
        name: &'a str,
    },
    /// Bytes came, whatever they are: arguments of a call, a ping, a comment. Nobody need be shown it.
    Alive,
}
