//! OpenAI's two protocols: Chat Completions, which half the world speaks, and Responses.

mod chat;
mod responses;

pub(crate) use chat::{Chat, ENDPOINT as CHAT};
pub(crate) use responses::{ENDPOINT as RESPONSES, Responses};

use serde::Deserialize;

use crate::catalog::Listing;
use crate::http::{ProviderAddress, Version};
use crate::protocol::Endpoint;
use crate::wire::{self, Dialect, MediaLimits};
use crate::{HttpSettings, Usage};

const HOST: &str = "api.openai.com";

/// What both protocols have in common; the rest is the protocol's own.
const ENDPOINT: Endpoint = Endpoint {
    wire: "",
    place: ProviderAddress {
        base_url: "https://api.openai.com/v1",
        version: Version::InBase("/v1"),
        key_header: ("authorization", "Bearer "),
        key_variable: "OPENAI_API_KEY",
    },
    listing: Some(Listing { path: "/models", list: "data", id: "id", before_id: "" }),
    is_own: is_openai,
    without_key: ", or base_url for a server that needs none",
    own_fields: &[],
    messages: "",
};

/// Names of functions, and so of calls.
const LONGEST_NAME: usize = 64;

const TAKES: MediaLimits = MediaLimits {
    images: &["image/png", "image/jpeg", "image/gif", "image/webp"],
    // 20 MB a file, and a request may have 50 MB: the conversation shall fit in, too.
    image_bytes: 15 << 20,
    pdf_bytes: 15 << 20,
    refused: false,
};

/// Whether this is OpenAI itself, and not a server that speaks like it.
pub(crate) fn is_openai(settings: &HttpSettings) -> bool {
    let Some(url) = settings.base_url.as_deref() else { return true };
    reqwest::Url::parse(url.trim()).is_ok_and(|url| url.host_str() == Some(HOST))
}

/// Which tools a server takes. The limit of their number is OpenAI's own; other servers have none.
fn dialect(openai: bool) -> Dialect {
    Dialect {
        longest_name: LONGEST_NAME,
        also_in_names: "",
        names_begin_with_letters: false,
        most_tools: openai.then_some(128),
        not_at_top: &["anyOf", "oneOf", "allOf", "enum", "not"],
        longest_property: None,
        arrays_need_items: true,
    }
}

/// Details of the tokens that were read.
#[derive(Debug, Clone, Copy, Deserialize)]
struct InputDetails {
    #[serde(default, deserialize_with = "wire::lenient_count")]
    cached_tokens: Option<u64>,
}

/// Counts of a server that counts cached tokens as input.
fn usage(input: Option<u64>, cached: Option<u64>, output: Option<u64>) -> Usage {
    let input = input.unwrap_or(0);
    let cached = cached.unwrap_or(0).min(input);
    Usage { input: input - cached, output: output.unwrap_or(0), cache_read: cached, cache_write: 0 }
}

/// The address that holds a file's bytes.
fn data_url(mime: &str, base64: &str) -> String {
    format!("data:{mime};base64,{base64}")
}
