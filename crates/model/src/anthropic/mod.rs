//! Anthropic Messages.

mod answer;
mod request;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::http::{HttpClient, Place};
use crate::wire::{Body, Dialect, Ids};
use crate::{Answer, Failure, Heard, HttpSettings, Model, ModelError, ModelName, Request, ToolSpec};

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
    name: ModelName,
    settings: HttpSettings,
    http: HttpClient,
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
        Ok(Self { name, settings, http })
    }
}

#[async_trait]
impl Model for Anthropic {
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
        DIALECT.check(&self.name, tools)
    }

    async fn ask(&self, request: &Request<'_>, heard: Heard<'_>) -> Result<Answer, ModelError> {
        self.fits(&request.tools)?;
        let body = Bytes::from(request::body(&self.name.id, &self.settings.extra, request));
        let reader = answer::AnthropicReader::new(Ids::new(request.conversation, body.clone()));
        let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        self.http.ask("/v1/messages", HeaderMap::from_iter([version]), body, reader, heard).await
    }
}
