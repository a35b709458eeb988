//! Google's Gemini API: `streamGenerateContent`.

mod answer;
mod request;

use serde_json::{Map, Value, json};

use self::answer::GeminiReader;
use self::request::Generation;
use crate::catalog::Listing;
use crate::http::{ProviderAddress, Reader, Version};
use crate::protocol::{Endpoint, Protocol, Quirks, Style};
use crate::wire::{Body, Dialect, Ids, MediaSending, NO_ANSWER, Origin, is_word};
use crate::{Failure, Message, ModelError, ModelName, Request};

pub(crate) const ENDPOINT: Endpoint = Endpoint {
    wire: "gemini",
    place: ProviderAddress {
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        version: Version::InBase("/v1beta"),
        key_header: ("x-goog-api-key", ""),
        key_variable: "GEMINI_API_KEY",
    },
    listing: Some(Listing { path: "/models?pageSize=1000", list: "models", id: "name", before_id: "models/" }),
    is_own: |settings| settings.base_url.is_none(),
    without_key: "",
    // `generationConfig` can be set: its fields are put into ours.
    own_fields: &["contents", "tools", "toolConfig", "systemInstruction"],
    messages: "contents",
};

const DIALECT: Dialect = Dialect {
    longest_name: 64,
    also_in_names: ".",
    names_begin_with_letters: true,
    most_tools: Some(512),
    not_at_top: &[],
    longest_property: None,
    arrays_need_items: true,
};

/// The longest id of a model: it becomes part of an address.
const LONGEST_ID: usize = 200;

/// The Gemini API, of one model.
#[derive(Debug)]
pub(crate) struct GenerateContent {
    path: String,
    generation: Generation,
}

impl GenerateContent {
    /// Of a model such as `gemini-3.6-flash`.
    pub fn new(name: &ModelName) -> Result<Self, ModelError> {
        if !is_word(&name.id, LONGEST_ID, "./") || name.id.contains("..") {
            let what = "ids of models are letters, digits, `.`, `-` and `_`, such as `gemini-3.6-flash`";
            return Err(ModelError::new(Failure::Config, format!("{name}: {what}")));
        }
        // A tuned model is named with its folder, and a name with `models/` means the same as without.
        let folder = if name.id.contains('/') { "" } else { "models/" };
        let path = format!("/{folder}{}:streamGenerateContent?alt=sse", name.id);
        Ok(Self { path, generation: Generation::of(&name.id) })
    }
}

impl Protocol for GenerateContent {
    fn path(&self) -> &str {
        &self.path
    }

    fn dialect(&self) -> Dialect {
        DIALECT
    }

    fn rendering(&self, media: MediaSending, _quirks: Quirks) -> String {
        let signed = if self.generation == Generation::Signed { "signed" } else { "unsigned" };
        format!("{signed}, {}", media.word())
    }

    fn head(&self, _model: &str, extra: &Map<String, Value>, request: &Request<'_>, _style: &Style) -> Body {
        request::head(extra, request, self.generation)
    }

    fn render(&self, message: &Message, style: &Style, out: &mut Vec<u8>) {
        request::render(message, style, self.generation, out);
    }

    fn no_answer(&self) -> Value {
        json!({ "role": "model", "parts": [{ "text": NO_ANSWER }] })
    }

    fn tools_off(&self) -> (&'static str, Value) {
        ("toolConfig", json!({ "functionCallingConfig": { "mode": "NONE" } }))
    }

    fn reader(&self, _request: &Request<'_>, _style: &Style, origin: Origin, ids: Ids) -> Box<dyn Reader> {
        Box::new(GeminiReader::new(origin, ids.optional()))
    }

    fn refuses_parts(&self, message: &str) -> bool {
        let message = message.to_lowercase();
        ["thought signature", "thought_signature", "thoughtsignature"].iter().any(|word| message.contains(word))
    }

    /// It says 400 where others say 401.
    fn refuses_key(&self, message: &str) -> bool {
        message.contains("API key")
    }
}
