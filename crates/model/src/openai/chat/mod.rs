//! OpenAI Chat Completions: OpenAI itself, and every server that speaks like it (Ollama, llama.cpp, vLLM, LM Studio).

mod answer;
mod calls;
mod details;
mod request;
mod text_calls;
mod think;

use serde_json::{Map, Value, json};

use self::request::Limit;
use super::dialect;
use crate::http::Reader;
use crate::protocol::{Endpoint, Protocol, Quirk, Quirks, Style};
use crate::wire::{Body, Dialect, Ids, MediaSending, NO_ANSWER, Origin};
use crate::{Failure, Message, ModelError, Request};

pub(crate) const ENDPOINT: Endpoint = Endpoint {
    wire: "openai_chat",
    own_fields: &["model", "stream", "stream_options", "tools", "messages", "tool_choice", "n"],
    messages: "messages",
    ..super::ENDPOINT
};

/// The server has refused `stream_options`: it is not asked to count any more.
const UNCOUNTED: Quirk = Quirk(0);
/// The server has refused the name under which the length of an answer was limited: the limit has its other name.
const RENAMED: Quirk = Quirk(1);
/// The server has refused a user's message right after results: there is always an answer between them.
const STRICT: Quirk = Quirk(2);
/// The server has refused ids of calls that have not nine letters.
const NINE: Quirk = Quirk(3);

/// Chat Completions.
#[derive(Debug)]
pub(crate) struct Chat {
    /// Whether the server is OpenAI's own.
    pub openai: bool,
}

impl Protocol for Chat {
    fn path(&self) -> &str {
        "/chat/completions"
    }

    fn dialect(&self) -> Dialect {
        dialect(self.openai)
    }

    fn sends_media(&self) -> bool {
        self.openai
    }

    fn rendering(&self, media: MediaSending, quirks: Quirks) -> String {
        let word = |quirk, word| if quirks.has(quirk) { word } else { "" };
        format!("{}{}{}", media.word(), word(STRICT, ", strict"), word(NINE, ", nine"))
    }

    fn head(&self, model: &str, extra: &Map<String, Value>, request: &Request<'_>, style: &Style) -> Body {
        let mut body = Body::new();
        body.field("model", model).field("stream", &true);
        if !style.quirks.has(UNCOUNTED) {
            body.field("stream_options", &json!({"include_usage": true}));
        }
        // What a person set for the length of an answer goes before what is asked for here.
        if !extra.contains_key("max_tokens") && !extra.contains_key("max_completion_tokens") {
            let limit = Limit::of(self.openai != style.quirks.has(RENAMED));
            body.field(limit.name(), &request.max_output_tokens);
        }
        body.extra(extra);
        if !request.tools.is_empty() {
            body.field("tools", &request::tools(&request.tools));
        }
        body
    }

    fn opening(&self, request: &Request<'_>) -> Option<Value> {
        let system = request.system;
        (!system.trim().is_empty()).then(|| json!({"role": "system", "content": system}))
    }

    fn render(&self, message: &Message, style: &Style, out: &mut Vec<u8>) {
        request::render(message, style, out);
    }

    fn no_answer(&self) -> Value {
        no_answer()
    }

    fn tools_off(&self) -> (&'static str, Value) {
        ("tool_choice", json!("none"))
    }

    fn reader(&self, request: &Request<'_>, style: &Style, origin: Origin, ids: Ids) -> Box<dyn Reader> {
        let tools = request.tools.iter().map(|tool| tool.name.clone()).collect();
        let counts_expected = style.may_count && !style.quirks.has(UNCOUNTED);
        Box::new(answer::ChatReader::new(origin, ids, tools).expecting_counts(counts_expected))
    }

    fn quirks_shown(&self, error: &ModelError) -> Vec<Quirk> {
        let (refused, message) = (error.failure == Failure::BadRequest, &error.message);
        let shown = [
            (UNCOUNTED, refused && message.contains("stream_options")),
            (RENAMED, refused && Limit::of(self.openai).is_refused(message)),
            (STRICT, demands_turns(message)),
            (NINE, demands_nine(message)),
        ];
        shown.into_iter().filter_map(|(quirk, shown)| shown.then_some(quirk)).collect()
    }

    /// In the words of any provider that a server may pass on.
    fn refuses_parts(&self, message: &str) -> bool {
        let message = message.to_lowercase();
        ["reasoning", "thinking", "signature"].iter().any(|word| message.contains(word))
    }
}

fn no_answer() -> Value {
    json!({"role": "assistant", "content": NO_ANSWER})
}

/// Whether a server wants ids of calls as Mistral makes them.
fn demands_nine(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("tool call id") && (message.contains("length of 9") || message.contains("length 9"))
}

/// Whether a server wants user and assistant to take turns more strictly than the protocol does: templates of Gemma and
/// Mistral, and Mistral's own service. Some say it with 400 and some with 500.
fn demands_turns(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("roles must alternate") || message.contains("unexpected role 'user' after role 'tool'")
}
