//! Anthropic Messages.

mod answer;
mod request;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::http::{HttpClient, Place};
use crate::wire::{self, Body, Dialect, Ids, Origin, Sending};
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
    origin: Origin,
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
        let origin = Origin::new(WIRE, &name, http.base());
        Ok(Self { name, settings, http, origin, unmarked: AtomicBool::new(false) })
    }

    /// How this server has shown that it is spoken to.
    fn style(&self, request: &Request<'_>) -> request::Style {
        let media = Sending::of(self.settings.media.unwrap_or(true));
        let media = media.standing(&self.origin, request.conversation, |media| media.word().to_owned());
        let origin = self.origin.standing(request.conversation, media.word());
        request::Style { origin, media, marked: !self.unmarked.load(Ordering::Relaxed) }
    }

    /// Changes what the server has refused, before a word was said; false if that is nothing that can be changed.
    fn adapt(&self, style: &mut request::Style, request: &Request<'_>, error: &ModelError) -> bool {
        let refused = error.failure == Failure::BadRequest;
        // What it once thought stays in the log: a conversation must not end because it is not taken back.
        if refused && refuses_thinking(&error.message) && style.origin.owns_some(request.conversation) {
            style.origin = Origin::nobody(WIRE);
        } else if style.marked && refused && refuses_mark(&error.message) {
            self.unmarked.store(true, Ordering::Relaxed);
            style.marked = false;
        } else if style.media.is_refused(error, request.conversation) {
            style.media = Sending::Refused;
        } else {
            return false;
        }
        true
    }

    async fn ask_once(
        &self,
        request: &Request<'_>,
        heard: Heard<'_>,
        style: &request::Style,
    ) -> Result<Answer, ModelError> {
        let body = Bytes::from(request::body(&self.name.id, &self.settings.extra, request, style));
        let ids = Ids::new(request.conversation, body.clone());
        let reader = answer::AnthropicReader::new(self.origin.clone(), ids);
        let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        self.http.ask("/v1/messages", HeaderMap::from_iter([version]), body, reader, heard).await
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
        let mut style = self.style(request);
        let before = style.media;
        loop {
            match self.ask_once(request, heard, &style).await {
                Err(error) if self.adapt(&mut style, request, &error) => {}
                asked => return asked.map(|answer| wire::told_of(before, style.media, answer)),
            }
        }
    }
}

/// Whether a compatible server does not know the mark at the top of a request; Anthropic's own does.
fn refuses_mark(message: &str) -> bool {
    message.contains("cache_control") && !message.contains("cache_control.")
}

/// Whether a refusal is about thinking that was sent back, and not about the setting of that name.
fn refuses_thinking(message: &str) -> bool {
    ["`thinking` block", "`redacted_thinking`", "cannot be `thinking`", "`signature`"]
        .iter()
        .any(|w| message.contains(w))
}
