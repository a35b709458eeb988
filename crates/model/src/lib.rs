//! Models: who proposes. One trait, [`Model`], for every provider, for scripts and for recordings.
//!
//! Owns: what is sent to a provider and what comes back, byte by byte. Knows nothing of: what tools mean, sessions,
//! storage. A conversation is sent as the provider's own blocks, and what was sent once is sent again in the same bytes.

mod answer;
mod anthropic;
mod catalog;
mod conversation;
mod error;
mod gemini;
mod http;
mod openai;
mod recorded;
mod request;
mod scripted;
mod wire;

pub use answer::{Answer, AnswerPart, Call, Delta, Opaque, Stop, Usage};
pub use anthropic::Anthropic;
pub use catalog::{Catalog, Chosen, ModelSettings};
pub use conversation::{Conversation, Media, MediaKind, Message, ResultPart, ToolResult, UserPart};
pub use error::{Failure, ModelError};
pub use gemini::Gemini;
pub use http::{HttpLimits, HttpSettings};
pub use openai::{OpenAiChat, OpenAiResponses};
pub use recorded::{Recorded, Recording};
pub use request::{Heard, Model, ModelName, Request, ToolSpec};
pub use scripted::Scripted;
