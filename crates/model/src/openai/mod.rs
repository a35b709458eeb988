//! OpenAI's two protocols: Chat Completions, which half the world speaks, and Responses.

mod chat;
mod responses;

pub use chat::OpenAiChat;
pub use responses::OpenAiResponses;

use crate::http::{Fault, HttpClient, Place};
use crate::wire::{Dialect, Takes};
use crate::{Failure, HttpSettings, ModelError, ModelName};

const HOST: &str = "api.openai.com";

pub(crate) const PLACE: Place = Place {
    base_url: "https://api.openai.com/v1",
    version: Some("/v1"),
    key_header: ("authorization", "Bearer "),
    key_variable: "OPENAI_API_KEY",
};

/// Names of functions, and so of calls.
const LONGEST_NAME: usize = 64;

/// OpenAI's own; other servers have no such limit of tools.
const DIALECT: Dialect = Dialect {
    longest_name: LONGEST_NAME,
    also_in_names: "",
    most_tools: Some(128),
    not_at_top: &["anyOf", "oneOf", "allOf", "enum", "not"],
    longest_property: None,
    arrays_need_items: true,
};

const TAKES: Takes = Takes {
    images: &["image/png", "image/jpeg", "image/gif", "image/webp"],
    // 20 MB a file, and a request may have 50 MB: the conversation shall fit in, too.
    image_bytes: 15 << 20,
    pdf_bytes: 15 << 20,
    refused: false,
};

/// Whether this is OpenAI itself, and not a server that speaks like it.
fn is_openai(settings: &HttpSettings) -> bool {
    let Some(url) = settings.base_url.as_deref() else { return true };
    reqwest::Url::parse(url.trim()).is_ok_and(|url| url.host_str() == Some(HOST))
}

fn client(name: &ModelName, settings: &HttpSettings) -> Result<HttpClient, ModelError> {
    if settings.key.is_none() && is_openai(settings) {
        let variable = PLACE.key_variable;
        return Err(ModelError::new(
            Failure::Config,
            format!("{name}: no key; set {variable}, or base_url for a server that needs none"),
        ));
    }
    HttpClient::new(name, PLACE, settings)
}

/// The models a server offers.
async fn models(http: &HttpClient) -> Result<Vec<String>, ModelError> {
    let list = http.get("/models").await?;
    let models = list.get("data").and_then(serde_json::Value::as_array);
    let models = models.ok_or_else(|| http.error(Fault::invalid("the list of models has no `data`")))?;
    Ok(models.iter().filter_map(|model| model.get("id")?.as_str().map(str::to_owned)).collect())
}
