//! OpenAI Chat Completions: OpenAI itself, and every server that speaks like it (Ollama, llama.cpp, vLLM, LM Studio).

mod answer;
mod calls;
mod details;
mod request;
mod text_calls;
mod think;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::HeaderMap;

use super::{DIALECT, client, is_openai, models};
use crate::adapter::{Adapter, Provider};
use crate::wire::{Body, Dialect, Ids, Sending};
use crate::{Answer, Failure, Heard, HttpSettings, ModelError, ModelName, Request, ToolSpec};

/// The wire format's name.
pub(crate) const WIRE: &str = "openai_chat";

/// A model behind Chat Completions.
#[derive(Debug)]
pub struct OpenAiChat {
    provider: Provider,
    openai: bool,
    /// The server has refused `stream_options`: it is not asked to count any more.
    uncounted: AtomicBool,
    /// The server has refused the name under which the length of an answer was limited: it is called by the other.
    renamed: AtomicBool,
    /// The server has refused a user's message right after results: there is always an answer between them.
    strict: AtomicBool,
    /// The server has refused ids of calls that have not nine letters.
    nine: AtomicBool,
}

impl OpenAiChat {
    /// A model of a server that speaks Chat Completions. Without a base url it is OpenAI. Nothing is sent.
    ///
    /// # Errors
    /// [`Failure::Config`]: no key for OpenAI itself, or settings that cannot work.
    pub fn new(name: ModelName, settings: HttpSettings) -> Result<Self, ModelError> {
        Body::check_extra(&name, &settings.extra, request::OWN_FIELDS)?;
        let http = client(&name, &settings)?;
        let openai = is_openai(&settings);
        let [uncounted, renamed, strict, nine] = [(); 4].map(|()| AtomicBool::new(false));
        Ok(Self { provider: Provider::new(WIRE, name, settings, http), openai, uncounted, renamed, strict, nine })
    }

    /// The models the server offers, by `/v1/models`.
    ///
    /// # Errors
    /// Whatever stood in the way of the list.
    pub async fn models(&self) -> Result<Vec<String>, ModelError> {
        models(&self.provider.http).await
    }
}

#[async_trait]
impl Adapter for OpenAiChat {
    const WIRE: &'static str = WIRE;
    type Style = request::Style;

    fn provider(&self) -> &Provider {
        &self.provider
    }

    fn takes(&self, tools: &[ToolSpec]) -> Result<(), ModelError> {
        let most_tools = DIALECT.most_tools.filter(|_| self.openai);
        Dialect { most_tools, ..DIALECT }.check(&self.provider.name, tools)
    }

    fn style(&self, request: &Request<'_>) -> request::Style {
        let Provider { settings, origin, .. } = &self.provider;
        let mut style = request::Style {
            limit: request::Limit::of(self.openai != self.renamed.load(Ordering::Relaxed)),
            counted: !self.uncounted.load(Ordering::Relaxed),
            media: Sending::of(settings.media.unwrap_or(self.openai)),
            strict: self.strict.load(Ordering::Relaxed),
            nine: self.nine.load(Ordering::Relaxed),
            origin: origin.clone(),
        };
        style.media = style.media.standing(origin, request.conversation, |media| style.rendered(media));
        style.origin = origin.standing(request.conversation, &style.rendered(style.media));
        style
    }

    fn adapt(&self, style: &mut request::Style, error: &ModelError) -> bool {
        let refused = error.failure == Failure::BadRequest;
        if style.counted && refused && error.message.contains("stream_options") {
            self.uncounted.store(true, Ordering::Relaxed);
            style.counted = false;
        } else if refused && style.limit == request::Limit::of(self.openai) && style.limit.is_refused(&error.message) {
            self.renamed.store(true, Ordering::Relaxed);
            style.limit = request::Limit::of(!self.openai);
        } else if !style.strict && demands_turns(&error.message) {
            self.strict.store(true, Ordering::Relaxed);
            style.strict = true;
        } else if !style.nine && demands_nine(&error.message) {
            self.nine.store(true, Ordering::Relaxed);
            style.nine = true;
        } else {
            return false;
        }
        true
    }

    /// In the words of any provider that a server may pass on.
    fn refuses_parts(message: &str) -> bool {
        let message = message.to_lowercase();
        ["reasoning", "thinking", "signature"].iter().any(|word| message.contains(word))
    }

    async fn send(
        &self,
        request: &Request<'_>,
        heard: Heard<'_>,
        style: &request::Style,
    ) -> Result<Answer, ModelError> {
        let Provider { name, settings, http, origin, .. } = &self.provider;
        let body = Bytes::from(request::body(&name.id, &settings.extra, request, style));
        let tools = request.tools.iter().map(|tool| tool.name.clone()).collect();
        let reader = answer::ChatReader::new(origin.clone(), Ids::new(request.conversation, body.clone()), tools)
            .expecting_counts(style.counted && self.provider.may_count());
        http.ask("/chat/completions", HeaderMap::new(), body, reader, heard).await
    }
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
