//! OpenAI Responses. Nothing is stored at the provider (`store: false`): reasoning comes back encrypted and is sent
//! along, so a session depends on nobody's memory but its own log.

mod answer;
mod request;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::HeaderMap;

use super::{DIALECT, client, is_openai, models};
use crate::adapter::{Adapter, Provider};
use crate::wire::{Body, Dialect, Ids, Sending};
use crate::{Answer, Failure, Heard, HttpSettings, ModelError, ModelName, Request, ToolSpec};

/// The wire format's name.
pub(crate) const WIRE: &str = "openai_responses";

/// A model behind the Responses API.
#[derive(Debug)]
pub struct OpenAiResponses {
    provider: Provider,
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
        Ok(Self { provider: Provider::new(WIRE, name, settings, http), plain: AtomicBool::new(false) })
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
impl Adapter for OpenAiResponses {
    const WIRE: &'static str = WIRE;
    type Style = request::Style;

    fn provider(&self) -> &Provider {
        &self.provider
    }

    fn takes(&self, tools: &[ToolSpec]) -> Result<(), ModelError> {
        let most_tools = DIALECT.most_tools.filter(|_| is_openai(&self.provider.settings));
        Dialect { most_tools, ..DIALECT }.check(&self.provider.name, tools)
    }

    fn style(&self, request: &Request<'_>) -> request::Style {
        let Provider { settings, origin, .. } = &self.provider;
        let media = Sending::of(settings.media.unwrap_or(true));
        let media = media.standing(origin, request.conversation, |media| media.word().to_owned());
        let origin = origin.standing(request.conversation, media.word());
        request::Style { reasoning: !self.plain.load(Ordering::Relaxed), origin, media }
    }

    /// Models without reasoning refuse to encrypt it.
    fn adapt(&self, style: &mut request::Style, error: &ModelError) -> bool {
        let refused = style.reasoning && error.failure == Failure::BadRequest && speaks_of_encryption(&error.message);
        if refused {
            self.plain.store(true, Ordering::Relaxed);
            style.reasoning = false;
        }
        refused
    }

    /// Reasoning of another account, or in an order that is not taken.
    fn refuses_parts(message: &str) -> bool {
        let message = message.to_lowercase();
        let item = message.contains("of type 'reasoning'") || message.contains("item with id 'rs_");
        item || message.contains("invalid_encrypted_content") || message.contains("the encrypted content")
    }

    async fn send(
        &self,
        request: &Request<'_>,
        heard: Heard<'_>,
        style: &request::Style,
    ) -> Result<Answer, ModelError> {
        let Provider { name, settings, http, origin, .. } = &self.provider;
        let body = Bytes::from(request::body(&name.id, &settings.extra, request, style));
        let reader = answer::ResponsesReader::new(origin.clone(), Ids::new(request.conversation, body.clone()));
        http.ask("/responses", HeaderMap::new(), body, reader, heard).await
    }
}

fn speaks_of_encryption(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("encrypted content is not supported") || message.contains("reasoning.encrypted_content")
}
