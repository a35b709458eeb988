//! What differs from provider to provider. A [`Protocol`] says how its servers are spoken to; [`crate::HttpModel`] does
//! the rest, the same for all of them.

use std::fmt;

use reqwest::header::HeaderMap;
use serde_json::{Map, Value};

use crate::catalog::Listing;
use crate::http::{ProviderAddress, Reader};
use crate::wire::{Body, Dialect, Ids, MediaSending, Origin};
use crate::{HttpSettings, Message, ModelError, ModelName, Request, anthropic, gemini, openai};

/// The formats in which models over HTTP are spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// Anthropic Messages.
    AnthropicMessages,
    /// OpenAI Chat Completions: OpenAI itself, and every server that speaks like it (Ollama, llama.cpp, vLLM, LM Studio).
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Google's Gemini API.
    Gemini,
}

impl WireFormat {
    /// What is always the same for this format.
    pub(crate) fn endpoint(self) -> &'static Endpoint {
        match self {
            Self::AnthropicMessages => &anthropic::ENDPOINT,
            Self::OpenAiChat => &openai::CHAT,
            Self::OpenAiResponses => &openai::RESPONSES,
            Self::Gemini => &gemini::ENDPOINT,
        }
    }

    /// How one model is spoken to.
    pub(crate) fn protocol(self, name: &ModelName, settings: &HttpSettings) -> Result<Box<dyn Protocol>, ModelError> {
        Ok(match self {
            Self::AnthropicMessages => Box::new(anthropic::Messages),
            Self::OpenAiChat => Box::new(openai::Chat { openai: openai::is_openai(settings) }),
            Self::OpenAiResponses => Box::new(openai::Responses { openai: openai::is_openai(settings) }),
            Self::Gemini => Box::new(gemini::GenerateContent::new(name)?),
        })
    }
}

/// What is known of a wire format before any request.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// The format's name.
    pub wire: &'static str,
    pub place: ProviderAddress,
    /// Where servers list their models.
    pub listing: Option<Listing>,
    /// Whether the settings lead to the provider's own server, which answers nobody without a key.
    pub is_own: fn(&HttpSettings) -> bool,
    /// What an error about a missing key advises besides the key.
    pub without_key: &'static str,
    /// Fields of a request that the adapter writes: a person cannot set them.
    pub own_fields: &'static [&'static str],
    /// The field with the messages, the last one that requests have in common.
    pub messages: &'static str,
}

/// One way in which a server differs from its protocol, as a refusal showed. Each protocol numbers its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quirk(pub u8);

/// The quirks of one server, one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Quirks(pub u8);

impl Quirks {
    pub fn has(self, quirk: Quirk) -> bool {
        self.0 & Self::bit(quirk) != 0
    }

    pub fn with(self, quirk: Quirk) -> Self {
        Self(self.0 | Self::bit(quirk))
    }

    pub fn bit(quirk: Quirk) -> u8 {
        1 << quirk.0
    }
}

/// How one request is written.
#[derive(Debug, Clone)]
pub(crate) struct Style {
    /// Whose parts are sent back.
    pub origin: Origin,
    /// Whether images and documents are sent.
    pub media: MediaSending,
    pub quirks: Quirks,
    /// The server has not shown yet that it does not count tokens.
    pub may_count: bool,
}

/// How the servers of one wire format are spoken to.
pub(crate) trait Protocol: fmt::Debug + Send + Sync {
    /// Where requests go, below the base address.
    fn path(&self) -> &str;

    /// Headers besides those that every request has.
    fn headers(&self) -> HeaderMap {
        HeaderMap::new()
    }

    /// Which tools the server takes.
    fn dialect(&self) -> Dialect;

    /// Whether images and documents are sent where nobody has set it.
    fn sends_media(&self) -> bool {
        true
    }

    /// The name of what messages are rendered to: two ways of rendering have two names.
    fn rendering(&self, media: MediaSending, _quirks: Quirks) -> String {
        media.word().to_owned()
    }

    /// All fields of a request that stand before its messages. `extra` is what a person has set.
    fn head(&self, model: &str, extra: &Map<String, Value>, request: &Request<'_>, style: &Style) -> Body;

    /// The first element of the messages, if it is not of the conversation.
    fn opening(&self, _request: &Request<'_>) -> Option<Value> {
        None
    }

    /// Writes one message as elements with commas between them, or nothing. It depends on the message and what
    /// [`Protocol::rendering`] names, on nothing else.
    fn render(&self, message: &Message, style: &Style, out: &mut Vec<u8>);

    /// Stands between two messages of the user.
    fn no_answer(&self) -> Value;

    /// The field that forbids calls of tools.
    fn tools_off(&self) -> (&'static str, Value);

    /// Reads one answer, whose parts are of this origin.
    fn reader(&self, request: &Request<'_>, style: &Style, origin: Origin, ids: Ids) -> Box<dyn Reader>;

    /// The quirks that a refusal shows, the likeliest first. The request is sent again for the first that is news.
    fn quirks_shown(&self, _error: &ModelError) -> Vec<Quirk> {
        Vec::new()
    }

    /// Whether a refusal is about parts of its own that were sent back: reasoning, signatures.
    fn refuses_parts(&self, message: &str) -> bool;

    /// Whether a bad request is about the key, from a server that has no status for that.
    fn refuses_key(&self, _message: &str) -> bool {
        false
    }
}
