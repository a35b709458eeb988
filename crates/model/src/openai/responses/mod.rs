//! OpenAI Responses. Nothing is stored at the provider (`store: false`): reasoning comes back encrypted and is sent
//! along, so a session depends on nobody's memory but its own log.

mod answer;
mod request;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::HeaderMap;

use super::{DIALECT, client, is_openai, models};
use crate::http::HttpClient;
use crate::wire::{self, Body, Dialect, Ids, Origin, Sending};
use crate::{Answer, Failure, Heard, HttpSettings, Model, ModelError, ModelName, Request, ToolSpec};

/// The wire format's name.
pub(crate) const WIRE: &str = "openai_responses";

/// A model behind the Responses API.
#[derive(Debug)]
pub struct OpenAiResponses {
    name: ModelName,
    settings: HttpSettings,
    http: HttpClient,
    origin: Origin,
    /// The model has no encrypted reasoning: it is not asked for any more.
    plain: AtomicBool,
}

impl OpenAiResponses {
    /// A model of the Responses API. Nothing is sent.
    ///
    /// # Errors
    /// [`Failure::Config`]: no key for OpenAI itself, or settings that cannot work.
    pub fn new(name: ModelName, settings: HttpSettings) -> Result<Self, ModelError> {
        Body::check_extra(&name, &settings.extra, request::OWN_FIELDS)?;
        let http = client(&name, &settings)?;
        let origin = Origin::new(WIRE, &name, http.base());
        Ok(Self { name, settings, http, origin, plain: AtomicBool::new(false) })
    }

    /// The models the server offers, by `/v1/models`.
    ///
    /// # Errors
    /// Whatever stood in the way of the list.
    pub async fn models(&self) -> Result<Vec<String>, ModelError> {
        models(&self.http).await
    }

    async fn ask_once(
        &self,
        request: &Request<'_>,
        heard: Heard<'_>,
        style: &request::Style,
    ) -> Result<Answer, ModelError> {
        let body = Bytes::from(request::body(&self.name.id, &self.settings.extra, request, style));
        let reader = answer::ResponsesReader::new(self.origin.clone(), Ids::new(request.conversation, body.clone()));
        self.http.ask("/responses", HeaderMap::new(), body, reader, heard).await
    }
}

#[async_trait]
impl Model for OpenAiResponses {
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
        let most_tools = DIALECT.most_tools.filter(|_| is_openai(&self.settings));
        Dialect { most_tools, ..DIALECT }.check(&self.name, tools)
    }

    async fn ask(&self, request: &Request<'_>, heard: Heard<'_>) -> Result<Answer, ModelError> {
        self.fits(&request.tools)?;
        let media = Sending::of(self.settings.media.unwrap_or(true));
        let before = media.standing(&self.origin, request.conversation, |media| media.word().to_owned());
        let mut style = request::Style {
            reasoning: !self.plain.load(Ordering::Relaxed),
            origin: self.origin.standing(request.conversation, before.word()),
            media: before,
        };
        loop {
            let asked = self.ask_once(request, heard, &style).await;
            // Nothing has been heard yet of what is refused.
            match &asked {
                // Models without reasoning refuse to encrypt it.
                Err(error)
                    if style.reasoning
                        && error.failure == Failure::BadRequest
                        && speaks_of_encryption(&error.message) =>
                {
                    self.plain.store(true, Ordering::Relaxed);
                    style.reasoning = false;
                }
                // Reasoning of another account, or in an order that is not taken: it stays in the log, and the
                // conversation goes on without it.
                Err(error)
                    if error.failure == Failure::BadRequest
                        && refuses_reasoning(&error.message)
                        && style.origin.owns_some(request.conversation) =>
                {
                    style.origin = Origin::nobody(WIRE);
                }
                Err(error) if style.media.is_refused(error, request.conversation) => style.media = Sending::Refused,
                _ => return asked.map(|answer| wire::told_of(before, style.media, answer)),
            }
        }
    }
}

fn refuses_reasoning(message: &str) -> bool {
    let message = message.to_lowercase();
    let item = message.contains("of type 'reasoning'") || message.contains("item with id 'rs_");
    item || message.contains("invalid_encrypted_content") || message.contains("the encrypted content")
}

fn speaks_of_encryption(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("encrypted content is not supported") || message.contains("reasoning.encrypted_content")
}
