//! Anthropic Messages.

mod answer;
mod request;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::adapter::{Adapter, Provider};
use crate::http::{HttpClient, Place};
use crate::wire::{Body, Dialect, Ids, Sending};
use crate::{Answer, Failure, Heard, HttpSettings, ModelError, ModelName, Request, ToolSpec};

/// The wire format's name.
pub(crate) const WIRE: &str = "anthropic_messages";

const PLACE: Place = Place {
    base_url: "https://api.anthropic.com",
    version: None,
    key_header: ("x-api-key", ""),
    key_variable: "ANTHROPIC_API_KEY",
};

const DIALECT: Dialect = Dialect {
    longest_name: request::LONGEST_NAME,
    also_in_names: "",
    most_tools: None,
    not_at_top: &["anyOf", "oneOf", "allOf"],
    longest_property: Some(64),
    arrays_need_items: false,
};

/// A model behind the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    provider: Provider,
    /// The server does not know the mark at the top: it is not sent any more.
    unmarked: AtomicBool,
}

impl Anthropic {
    /// A model of the Messages API. Nothing is sent.
    ///
    /// # Errors
    /// [`Failure::Config`]: no key for Anthropic's own address, or settings that cannot work.
    pub fn new(name: ModelName, settings: HttpSettings) -> Result<Self, ModelError> {
        Body::check_extra(&name, &settings.extra, request::OWN_FIELDS)?;
        if settings.key.is_none() && settings.base_url.is_none() {
            let message = format!("{name}: no key; set {}", PLACE.key_variable);
            return Err(ModelError::new(Failure::Config, message));
        }
        // Paths here begin with /v1; who wrote it into the address means the same.
        let base_url = settings.base_url.as_deref().map(|url| {
            let url = url.trim().trim_end_matches('/');
            url.strip_suffix("/v1").unwrap_or(url).to_owned()
        });
        let settings = HttpSettings { base_url, ..settings };
        let http = HttpClient::new(&name, PLACE, &settings)?;
        Ok(Self { provider: Provider::new(WIRE, name, settings, http), unmarked: AtomicBool::new(false) })
    }
}

#[async_trait]
impl Adapter for Anthropic {
    const WIRE: &'static str = WIRE;
    type Style = request::Style;

    fn provider(&self) -> &Provider {
        &self.provider
    }

    fn takes(&self, tools: &[ToolSpec]) -> Result<(), ModelError> {
        DIALECT.check(&self.provider.name, tools)
    }

    fn style(&self, request: &Request<'_>) -> request::Style {
        let Provider { settings, origin, .. } = &self.provider;
        let media = Sending::of(settings.media.unwrap_or(true));
        let media = media.standing(origin, request.conversation, |media| media.word().to_owned());
        let origin = origin.standing(request.conversation, media.word());
        request::Style { origin, media, marked: !self.unmarked.load(Ordering::Relaxed) }
    }

    fn adapt(&self, style: &mut request::Style, error: &ModelError) -> bool {
        let refused = style.marked && error.failure == Failure::BadRequest && refuses_mark(&error.message);
        if refused {
            self.unmarked.store(true, Ordering::Relaxed);
            style.marked = false;
        }
        refused
    }

    /// Not about the setting of that name.
    fn refuses_parts(message: &str) -> bool {
        ["`thinking` block", "`redacted_thinking`", "cannot be `thinking`", "`signature`"]
            .iter()
            .any(|w| message.contains(w))
    }

    async fn send(
        &self,
        request: &Request<'_>,
        heard: Heard<'_>,
        style: &request::Style,
    ) -> Result<Answer, ModelError> {
        let Provider { name, settings, http, origin, .. } = &self.provider;
        let body = Bytes::from(request::body(&name.id, &settings.extra, request, style));
        let ids = Ids::new(request.conversation, body.clone());
        let reader = answer::AnthropicReader::new(origin.clone(), ids);
        let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        http.ask("/v1/messages", HeaderMap::from_iter([version]), body, reader, heard).await
    }
}

/// Whether a compatible server does not know the mark at the top of a request; Anthropic's own does.
fn refuses_mark(message: &str) -> bool {
    message.contains("cache_control") && !message.contains("cache_control.")
}
