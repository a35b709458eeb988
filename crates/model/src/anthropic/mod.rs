//! Anthropic Messages.

mod answer;
mod request;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::http::{ProviderAddress, Reader, Version};
use crate::protocol::{Endpoint, Protocol, Quirk, Style};
use crate::wire::{Body, Dialect, Ids, NO_ANSWER, Origin};
use crate::{Failure, Message, ModelError, Request};

pub(crate) const ENDPOINT: Endpoint = Endpoint {
    wire: "anthropic_messages",
    place: ProviderAddress {
        base_url: "https://api.anthropic.com",
        version: Version::InPaths("/v1"),
        key_header: ("x-api-key", ""),
        key_variable: "ANTHROPIC_API_KEY",
    },
    listing: None,
    is_own: |settings| settings.base_url.is_none(),
    without_key: "",
    own_fields: &["model", "max_tokens", "stream", "tools", "system", "messages", "tool_choice"],
    messages: "messages",
};

const DIALECT: Dialect = Dialect {
    longest_name: request::LONGEST_NAME,
    also_in_names: "",
    names_begin_with_letters: false,
    most_tools: None,
    not_at_top: &["anyOf", "oneOf", "allOf"],
    longest_property: Some(64),
    arrays_need_items: false,
};

/// The server does not know the mark for the prompt cache at the top: it is not sent any more.
const UNMARKED: Quirk = Quirk(0);

/// The Messages API.
#[derive(Debug)]
pub(crate) struct Messages;

impl Protocol for Messages {
    fn path(&self) -> &str {
        "/v1/messages"
    }

    fn headers(&self) -> HeaderMap {
        let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        HeaderMap::from_iter([version])
    }

    fn dialect(&self) -> Dialect {
        DIALECT
    }

    fn head(&self, model: &str, extra: &Map<String, Value>, request: &Request<'_>, style: &Style) -> Body {
        request::head(model, extra, request, !style.quirks.has(UNMARKED))
    }

    fn render(&self, message: &Message, style: &Style, out: &mut Vec<u8>) {
        request::render(message, style, out);
    }

    fn no_answer(&self) -> Value {
        json!({"role": "assistant", "content": [{"type": "text", "text": NO_ANSWER}]})
    }

    fn tools_off(&self) -> (&'static str, Value) {
        ("tool_choice", json!({"type": "none"}))
    }

    fn reader(&self, _request: &Request<'_>, _style: &Style, origin: Origin, ids: Ids) -> Box<dyn Reader> {
        Box::new(answer::AnthropicReader::new(origin, ids))
    }

    fn quirks_shown(&self, error: &ModelError) -> Vec<Quirk> {
        let refused = error.failure == Failure::BadRequest && refuses_mark(&error.message);
        refused.then_some(UNMARKED).into_iter().collect()
    }

    /// Not about the setting of that name.
    fn refuses_parts(&self, message: &str) -> bool {
        ["`thinking` block", "`redacted_thinking`", "cannot be `thinking`", "`signature`"]
            .iter()
            .any(|w| message.contains(w))
    }
}

/// Whether a compatible server does not know the mark at the top of a request; Anthropic's own does.
fn refuses_mark(message: &str) -> bool {
    message.contains("cache_control") && !message.contains("cache_control.")
}
