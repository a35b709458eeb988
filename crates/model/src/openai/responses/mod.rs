//! OpenAI Responses. Nothing is stored at the provider (`store: false`): reasoning comes back encrypted and is sent
//! along, so a session depends on nobody's memory but its own log.

mod answer;
mod request;

use serde_json::{Map, Value, json};

use super::dialect;
use crate::http::Reader;
use crate::protocol::{Endpoint, Protocol, Quirk, Style};
use crate::wire::{Body, Dialect, Ids, NO_ANSWER, Origin};
use crate::{Failure, Message, ModelError, Request};

pub(crate) const ENDPOINT: Endpoint = Endpoint {
    wire: "openai_responses",
    own_fields: &[
        "model",
        "store",
        "stream",
        "include",
        "max_output_tokens",
        "instructions",
        "tools",
        "input",
        "tool_choice",
        "previous_response_id",
    ],
    messages: "input",
    ..super::ENDPOINT
};

/// The model has no encrypted reasoning: it is not asked for any more.
const PLAIN: Quirk = Quirk(0);

/// The Responses API.
#[derive(Debug)]
pub(crate) struct Responses {
    /// Whether the server is OpenAI's own.
    pub openai: bool,
}

impl Protocol for Responses {
    fn path(&self) -> &str {
        "/responses"
    }

    fn dialect(&self) -> Dialect {
        dialect(self.openai)
    }

    fn head(&self, model: &str, extra: &Map<String, Value>, request: &Request<'_>, style: &Style) -> Body {
        request::head(model, extra, request, !style.quirks.has(PLAIN))
    }

    fn render(&self, message: &Message, style: &Style, out: &mut Vec<u8>) {
        request::render(message, style, out);
    }

    fn no_answer(&self) -> Value {
        request::said(NO_ANSWER, None)
    }

    fn tools_off(&self) -> (&'static str, Value) {
        ("tool_choice", json!("none"))
    }

    fn reader(&self, _request: &Request<'_>, _style: &Style, origin: Origin, ids: Ids) -> Box<dyn Reader> {
        Box::new(answer::ResponsesReader::new(origin, ids))
    }

    /// Models without reasoning refuse to encrypt it.
    fn quirks_shown(&self, error: &ModelError) -> Vec<Quirk> {
        let refused = error.failure == Failure::BadRequest && speaks_of_encryption(&error.message);
        refused.then_some(PLAIN).into_iter().collect()
    }

    /// Reasoning of another account, or in an order that is not taken.
    fn refuses_parts(&self, message: &str) -> bool {
        let message = message.to_lowercase();
        let item = message.contains("of type 'reasoning'") || message.contains("item with id 'rs_");
        item || message.contains("invalid_encrypted_content") || message.contains("the encrypted content")
    }
}

fn speaks_of_encryption(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("encrypted content is not supported") || message.contains("reasoning.encrypted_content")
}
