//! OpenAI Chat Completions: OpenAI itself, and every server that speaks like it (Ollama, llama.cpp, vLLM, LM Studio).

mod answer;
mod calls;
mod request;
mod text_calls;
mod think;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::HeaderMap;

use super::{DIALECT, client, is_openai, models};
use crate::http::HttpClient;
use crate::wire::{Body, Dialect, Ids};
use crate::{Answer, Failure, Heard, HttpSettings, Model, ModelError, ModelName, Request, ToolSpec};

/// The wire format's name.
pub(crate) const WIRE: &str = "openai_chat";

/// A model behind Chat Completions.
#[derive(Debug)]
pub struct OpenAiChat {
    name: ModelName,
    settings: HttpSettings,
    http: HttpClient,
    openai: bool,
    /// The server has refused `stream_options`: it is not asked to count any more.
    uncounted: AtomicBool,
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
        Ok(Self { name, settings, http, openai, uncounted: AtomicBool::new(false) })
    }

    /// The models the server offers, by `/v1/models`.
    ///
    /// # Errors
    /// Whatever stood in the way of the list.
    pub async fn models(&self) -> Result<Vec<String>, ModelError> {
        models(&self.http).await
    }

    async fn ask_once(&self, request: &Request<'_>, heard: Heard<'_>, counted: bool) -> Result<Answer, ModelError> {
        let style = request::Style { openai: self.openai, counted, media: self.settings.media.unwrap_or(self.openai) };
        let body = Bytes::from(request::body(&self.name.id, &self.settings.extra, request, style));
        let tools = request.tools.iter().map(|tool| tool.name.clone()).collect();
        let reader = answer::ChatReader::new(Ids::new(request.conversation, body.clone()), tools);
        self.http.ask("/chat/completions", HeaderMap::new(), body, reader, heard).await
    }
}

#[async_trait]
impl Model for OpenAiChat {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn wire(&self) -> &'static str {
        WIRE
    }

    fn window(&self) -> Option<u64> {
        self.settings.window
    }

    fn fits(&self, tools: &[ToolSpec]) -> Result<(), ModelError> {
        let most_tools = DIALECT.most_tools.filter(|_| self.openai);
        Dialect { most_tools, ..DIALECT }.check(&self.name, tools)
    }

    async fn ask(&self, request: &Request<'_>, heard: Heard<'_>) -> Result<Answer, ModelError> {
        self.fits(&request.tools)?;
        let counted = !self.uncounted.load(Ordering::Relaxed);
        match self.ask_once(request, heard, counted).await {
            // Refused before a word was said: nothing has been heard that would be heard twice.
            Err(error)
                if counted && error.failure == Failure::BadRequest && error.message.contains("stream_options") =>
            {
                self.uncounted.store(true, Ordering::Relaxed);
                self.ask_once(request, heard, false).await
            }
            asked => asked,
        }
    }
}
