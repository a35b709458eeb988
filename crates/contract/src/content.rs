//! What projections make: text, media and captured streams for a model, a line for a person.

use portcullis_base::ArtifactId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A captured stream, by name. The bytes are the runtime's; an output holds only this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpoolRef {
    /// Which spool of the invocation.
    pub index: u32,
    /// Such as `stdout+stderr`.
    pub name: String,
    /// Everything the producer wrote.
    pub total_bytes: u64,
    /// What of it is kept.
    pub kept_bytes: u64,
}

/// One part of what a model is shown. Tools return complete output; cutting is not theirs (tool-contract §17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Plain text.
    Text {
        /// The whole text.
        text: String,
    },
    /// An image or document, kept with [`crate::ToolContext::keep`].
    Media {
        /// Its type, such as `image/png`.
        mime: String,
        /// The kept bytes.
        artifact: ArtifactId,
        /// What a person calls it.
        name: String,
    },
    /// A captured stream.
    Spool(SpoolRef),
}

impl Content {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// What a person is shown: facts, never a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserText {
    /// A few words, such as `Read src/main.rs`.
    pub title: String,
    /// One line, such as `120 lines`.
    pub summary: String,
}

/// A byte range worth keeping when an output is cut, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}
