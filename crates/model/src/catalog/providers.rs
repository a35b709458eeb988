//! The providers, as one table: a new one is one row.

use crate::WireFormat;

/// What is known of a provider before it is asked anything.
pub(super) struct Provider {
    pub(super) name: &'static str,
    /// The variable with another address.
    pub(super) base_url: Option<&'static str>,
    /// Whether an address of one's own does without a key.
    pub(super) keyless: bool,
    /// The model when none is named; `None`: the first one that the server lists.
    pub(super) default_model: Option<&'static str>,
    pub(super) format: WireFormat,
}

impl Provider {
    /// The variable with its key.
    pub(super) fn key(&self) -> &'static str {
        self.format.endpoint().place.key_variable
    }
}

/// The variables that hold keys of providers.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(Provider::key)
}

/// In the order in which one is looked for when no model is named.
pub(super) const PROVIDERS: &[Provider] = &[
    Provider {
        name: "anthropic",
        base_url: Some("ANTHROPIC_BASE_URL"),
        keyless: false,
        default_model: Some("claude-sonnet-5"),
        format: WireFormat::AnthropicMessages,
    },
    // Before `openai`: whoever names an address of their own has a compatible server there, and few of those speak more
    // than Chat.
    Provider {
        name: "openai-chat",
        base_url: Some("OPENAI_BASE_URL"),
        keyless: true,
        default_model: None,
        format: WireFormat::OpenAiChat,
    },
    Provider {
        name: "openai",
        base_url: Some("OPENAI_BASE_URL"),
        keyless: false,
        default_model: Some("gpt-5.5"),
        format: WireFormat::OpenAiResponses,
    },
    Provider {
        name: "gemini",
        base_url: None,
        keyless: false,
        default_model: Some("gemini-3.6-flash"),
        format: WireFormat::Gemini,
    },
];
