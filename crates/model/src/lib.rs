//! Models: who proposes. One trait, [`Model`], for every provider, for scripts and for recordings.
//!
//! Owns: what is sent to a provider and what comes back, byte by byte. Knows nothing of: what tools mean, sessions,
//! storage. A conversation is sent as the provider's own blocks, and what was sent once is sent again in the same bytes.

#[cfg(feature = "http")]
mod adapter;
mod advertised;
mod answer;
#[cfg(feature = "http")]
mod anthropic;
#[cfg(feature = "http")]
mod catalog;
mod conversation;
mod error;
#[cfg(feature = "http")]
mod gemini;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod openai;
#[cfg(feature = "http")]
mod protocol;
mod recorded;
mod request;
mod scripted;
#[cfg(feature = "http")]
mod wire;

#[cfg(feature = "http")]
pub use adapter::HttpModel;
pub use answer::{Answer, AnswerPart, Call, Delta, Opaque, Stop, Usage};
#[cfg(feature = "http")]
pub use catalog::{AtHand, Catalog, ChosenModel, Destination, ModelSettings, key_variables};
pub use conversation::{Conversation, Media, MediaKind, Message, ResultPart, ToolResult, UserPart};
pub use error::{Failure, ModelError, ModelSetting};
#[cfg(feature = "http")]
pub use http::{HttpLimits, HttpSettings};
#[cfg(feature = "http")]
pub use protocol::WireFormat;
pub use recorded::{RecordedModel, Recording};
pub use request::{DeltaSink, Model, ModelName, Request, ToolSpec};
pub use scripted::Scripted;
