//! The providers, as one table: a new one is one row.

use std::sync::Arc;

use super::listing::Listing;
use crate::{
    Anthropic, Gemini, HttpSettings, Model, ModelError, ModelName, OpenAiChat, OpenAiResponses, gemini, openai,
};

/// What is known of a provider before it is asked anything.
pub(super) struct Provider {
    pub(super) name: &'static str,
    /// The variable with its key.
    pub(super) key: &'static str,
    /// The variable with another address.
    pub(super) base_url: Option<&'static str>,
    /// Whether an address of one's own does without a key.
    pub(super) keyless: bool,
    /// The model when none is named; `None`: the first one that the server lists.
    pub(super) default_model: Option<&'static str>,
    /// Where it tells which models it has.
    pub(super) listing: Option<Listing>,
    pub(super) open: fn(ModelName, HttpSettings) -> Result<Arc<dyn Model>, ModelError>,
}

const OPENAI_LISTING: Listing =
    Listing { place: openai::PLACE, path: "/models", list: "data", id: "id", before_id: "" };

/// The variables that hold keys of providers.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| provider.key)
}

/// In the order in which one is looked for when no model is named.
pub(super) const PROVIDERS: &[Provider] = &[
    Provider {
        name: "anthropic",
        key: "ANTHROPIC_API_KEY",
        base_url: Some("ANTHROPIC_BASE_URL"),
        keyless: false,
        default_model: Some("claude-sonnet-5"),
        listing: None,
        open: |name, settings| shared(Anthropic::new(name, settings)),
    },
    // Before `openai`: whoever names an address of their own has a compatible server there, and few of those speak more
    // than Chat.
    Provider {
        name: "openai-chat",
        key: "OPENAI_API_KEY",
        base_url: Some("OPENAI_BASE_URL"),
        keyless: true,
        default_model: None,
        listing: Some(OPENAI_LISTING),
        open: |name, settings| shared(OpenAiChat::new(name, settings)),
    },
    Provider {
        name: "openai",
        key: "OPENAI_API_KEY",
        base_url: Some("OPENAI_BASE_URL"),
        keyless: false,
        default_model: Some("gpt-5.5"),
        listing: Some(OPENAI_LISTING),
        open: |name, settings| shared(OpenAiResponses::new(name, settings)),
    },
    Provider {
        name: "gemini",
        key: "GEMINI_API_KEY",
        base_url: None,
        keyless: false,
        default_model: Some("gemini-3.6-flash"),
        listing: Some(gemini::LISTING),
        open: |name, settings| shared(Gemini::new(name, settings)),
    },
];

fn shared<M: Model + 'static>(made: Result<M, ModelError>) -> Result<Arc<dyn Model>, ModelError> {
    made.map(|model| Arc::new(model) as Arc<dyn Model>)
}
