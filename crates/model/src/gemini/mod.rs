//! Google's Gemini API: `streamGenerateContent`.

mod answer;
mod request;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::HeaderMap;

use self::answer::GeminiReader;
use crate::adapter::{Adapter, Provider};
use crate::catalog::Listing;
use crate::http::{HttpClient, HttpSettings, Place};
use crate::wire::{Dialect, Ids, is_word};
use crate::{Answer, Failure, Heard, ModelError, ModelName, Request, ToolSpec};

/// The wire format of its opaque parts.
const WIRE: &str = "gemini";

const PLACE: Place = Place {
    base_url: "https://generativelanguage.googleapis.com/v1beta",
    version: Some("/v1beta"),
    key_header: ("x-goog-api-key", ""),
    key_variable: "GEMINI_API_KEY",
};

/// Where it lists its models.
pub(crate) const LISTING: Listing =
    Listing { place: PLACE, path: "/models?pageSize=1000", list: "models", id: "name", before_id: "models/" };

const DIALECT: Dialect = Dialect {
    longest_name: 64,
    also_in_names: ".",
    most_tools: Some(512),
    not_at_top: &[],
    longest_property: None,
    arrays_need_items: true,
};

/// The longest id of a model: it becomes part of an address.
const LONGEST_ID: usize = 200;

/// A model of the Gemini API.
#[derive(Debug)]
pub struct Gemini {
    provider: Provider,
    /// Where it is asked.
    path: String,
}

impl Gemini {
    /// A model of the Gemini API, such as `gemini-3.6-flash`. Nothing is sent.
    ///
    /// # Errors
    /// [`Failure::Config`]: no key for Google's own address, or settings that cannot work.
    pub fn new(name: ModelName, settings: HttpSettings) -> Result<Self, ModelError> {
        let config = |what: &str| ModelError::new(Failure::Config, format!("{name}: {what}"));
        if settings.key.is_none() && settings.base_url.is_none() {
            return Err(config(&format!("no key; set {}", PLACE.key_variable)));
        }
        if !is_word(&name.id, LONGEST_ID, "./") || name.id.contains("..") {
            return Err(config("ids of models are letters, digits, `.`, `-` and `_`, such as `gemini-3.6-flash`"));
        }
        request::check_extra(&name, &settings.extra)?;
        // A tuned model is named with its folder, and whoever writes `models/` means the same as without.
        let folder = if name.id.contains('/') { "" } else { "models/" };
        let path = format!("/{folder}{}:streamGenerateContent?alt=sse", name.id);
        let http = HttpClient::new(&name, PLACE, &settings)?;
        Ok(Self { provider: Provider::new(WIRE, name, settings, http), path })
    }
}

#[async_trait]
impl Adapter for Gemini {
    const WIRE: &'static str = WIRE;
    type Style = request::Style;

    fn provider(&self) -> &Provider {
        &self.provider
    }

    fn takes(&self, tools: &[ToolSpec]) -> Result<(), ModelError> {
        let name = &self.provider.name;
        DIALECT.check(name, tools)?;
        match tools.iter().find(|tool| !begins_well(&tool.name)) {
            None => Ok(()),
            Some(tool) => {
                let what = format!(
                    "{name}: the tool name `{}` is not taken: names begin with a letter or `_`; rename the tool",
                    tool.name
                );
                Err(ModelError::new(Failure::Unfit, what))
            }
        }
    }

    fn style(&self, request: &Request<'_>) -> request::Style {
        let Provider { name, settings, origin, .. } = &self.provider;
        let mut style = request::Style::of(&name.id, settings, origin.clone());
        style.media = style.media.standing(origin, request.conversation, |media| style.name(media));
        style.origin = origin.standing(request.conversation, &style.name(style.media));
        style
    }

    fn refuses_parts(message: &str) -> bool {
        let message = message.to_lowercase();
        ["thought signature", "thought_signature", "thoughtsignature"].iter().any(|word| message.contains(word))
    }

    async fn send(
        &self,
        request: &Request<'_>,
        heard: Heard<'_>,
        style: &request::Style,
    ) -> Result<Answer, ModelError> {
        let Provider { settings, http, origin, .. } = &self.provider;
        let body = Bytes::from(request::body(settings, request, style));
        let reader = GeminiReader::new(origin.clone(), Ids::new(request.conversation, body.clone()).optional());
        http.ask(&self.path, HeaderMap::new(), body, reader, heard).await
    }

    /// It says 400 where others say 401.
    fn classed(&self, error: ModelError) -> ModelError {
        if error.failure != Failure::BadRequest || !error.message.contains("API key") {
            return error;
        }
        let what = format!("{}: the key was refused. Check {}", self.provider.name, PLACE.key_variable);
        ModelError { failure: Failure::Auth, message: what, ..error }
    }
}

/// Names of functions begin with a letter or `_`.
fn begins_well(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}
