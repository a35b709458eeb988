//! Google's Gemini API: `streamGenerateContent`.

mod answer;
mod request;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::HeaderMap;

use self::answer::GeminiReader;
use crate::catalog::Listing;
use crate::http::{HttpClient, HttpSettings, Place};
use crate::wire::{self, Dialect, Ids, Origin, Sending, is_word};
use crate::{Answer, Failure, Heard, Model, ModelError, ModelName, Request, ToolSpec};

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
    name: ModelName,
    /// Where it is asked.
    path: String,
    settings: HttpSettings,
    http: HttpClient,
    origin: Origin,
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
        let origin = Origin::new(WIRE, &name, http.base());
        Ok(Self { name, path, settings, http, origin })
    }

    async fn ask_once(
        &self,
        request: &Request<'_>,
        heard: Heard<'_>,
        style: &request::Style,
    ) -> Result<Answer, ModelError> {
        let body = Bytes::from(request::body(&self.settings, request, style));
        let reader = GeminiReader::new(self.origin.clone(), Ids::new(request.conversation, body.clone()).optional());
        self.http.ask(&self.path, HeaderMap::new(), body, reader, heard).await
    }
}

#[async_trait]
impl Model for Gemini {
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
        DIALECT.check(&self.name, tools)?;
        match tools.iter().find(|tool| !begins_well(&tool.name)) {
            None => Ok(()),
            Some(tool) => {
                let what = format!(
                    "{}: the tool name `{}` is not taken: names begin with a letter or `_`; rename the tool",
                    self.name, tool.name
                );
                Err(ModelError::new(Failure::Unfit, what))
            }
        }
    }

    async fn ask(&self, request: &Request<'_>, heard: Heard<'_>) -> Result<Answer, ModelError> {
        self.fits(&request.tools)?;
        let mut style = request::Style::of(&self.name.id, &self.settings, self.origin.clone());
        style.media = style.media.standing(&self.origin, request.conversation, |media| style.name(media));
        style.origin = self.origin.standing(request.conversation, &style.name(style.media));
        let before = style.media;
        let answer = loop {
            match self.ask_once(request, heard, &style).await {
                // A signature that is not taken back stays in the log: the conversation goes on without it.
                Err(error)
                    if error.failure == Failure::BadRequest
                        && refuses_signature(&error.message)
                        && style.origin.owns_some(request.conversation) =>
                {
                    style.origin = Origin::nobody(WIRE);
                }
                Err(error) if style.media.is_refused(&error, request.conversation) => style.media = Sending::Refused,
                answer => break answer.map(|answer| wire::told_of(before, style.media, answer)),
            }
        };
        answer.map_err(|error| match error {
            // It says 400 where others say 401.
            error if error.failure == Failure::BadRequest && error.message.contains("API key") => {
                let what = format!("{}: the key was refused. Check {}", self.name, PLACE.key_variable);
                ModelError { failure: Failure::Auth, message: what, ..error }
            }
            error => error,
        })
    }
}

/// Names of functions begin with a letter or `_`.
fn begins_well(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn refuses_signature(message: &str) -> bool {
    let message = message.to_lowercase();
    ["thought signature", "thought_signature", "thoughtsignature"].iter().any(|word| message.contains(word))
}
