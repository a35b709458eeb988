//! What went wrong with an exchange: from status, body and event to a class and to words for a person.

use std::borrow::Cow;
use std::time::Duration;

use portcullis_secret::Redactor;
use serde_json::Value;

use crate::{Failure, ModelError, ModelName};

/// How much of a provider's own words is repeated. They are for a person, and the provider wrote them.
const WORDS: usize = 600;

/// A failure without the name of the model and without advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub failure: Failure,
    /// A clause without a full stop, such as `the answer broke off`.
    pub what: String,
    pub status: Option<u16>,
    pub retry_after: Option<Duration>,
}

impl Fault {
    pub fn new(failure: Failure, what: impl Into<String>) -> Self {
        Self { failure, what: what.into(), status: None, retry_after: None }
    }

    /// The answer is not what the protocol says.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::new(Failure::InvalidResponse, what)
    }

    /// The answer ended before its end.
    pub fn cut_off() -> Self {
        Self::new(Failure::CutOff, "the answer broke off before its end; nothing of it is used")
    }

    /// Puts it into words. The key cannot be in them, also where the provider wrote them.
    pub fn into_error(self, model: &ModelName, key_variable: &str, redactor: &Redactor) -> ModelError {
        let advice = match self.failure {
            Failure::Config | Failure::Unfit | Failure::ScriptExhausted | Failure::Diverged => String::new(),
            Failure::Auth if self.what.starts_with(NO_QUOTA) => {
                format!(". Check the plan and the balance of the account that the key in {key_variable} belongs to")
            }
            Failure::Auth => format!(". Check the key of this provider ({key_variable}) and what its account may use"),
            Failure::BadRequest if self.status == Some(404) => {
                ". Check the name of the model and the address of the provider (base_url)".to_owned()
            }
            Failure::BadRequest if self.status.is_some_and(|status| (300..400).contains(&status)) => {
                ". Check the address of the provider (base_url): http:// where it wants https://, or a page".to_owned()
            }
            Failure::BadRequest => ". It would be refused again: change the model or the request".to_owned(),
            Failure::ContextOverflow => ". Shorten the conversation, or take a model that can read more".to_owned(),
            Failure::RateLimited | Failure::Overloaded => match self.retry_after {
                Some(wait) => format!(". Try again in {} s", wait.as_secs_f64().ceil()),
                None => ". Try again later".to_owned(),
            },
            Failure::Server | Failure::CutOff => ". Try again".to_owned(),
            Failure::Timeout => ". Try again, or allow more time".to_owned(),
            Failure::Connection => ". Check the network and the address of the provider (base_url)".to_owned(),
            Failure::InvalidResponse => {
                ". Check that the address (base_url) speaks this provider's protocol".to_owned()
            }
        };
        // Masked before it is cut: half a key is a key that nobody finds again.
        let what = plain(&redactor.redact_text(&self.what));
        let message = redactor.redact_text(&format!("{model}: {what}{advice}")).into_owned();
        ModelError { failure: self.failure, message, status: self.status, retry_after: self.retry_after, setting: None }
    }
}

/// What a provider says about an error, in any of the shapes that are about.
#[derive(Debug, Default)]
pub(crate) struct ProviderMessage {
    /// `type`, `code` and `status`, as far as they are there.
    pub words: Vec<String>,
    pub message: String,
    /// The object they were read from.
    pub raw: Value,
}

impl ProviderMessage {
    /// Reads a body: `{"error": {…}}`, `[{"error": {…}}]`, `{"errors": […]}`, `{"error": "text"}`, `{"message": …}`,
    /// `{"detail": …}`, `"text"`, or text.
    pub fn of_body(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::of_value(value),
            Err(_) => Self { message: body.to_owned(), ..Self::default() },
        }
    }

    /// The same for an object that was read already, such as an `error` event.
    pub fn of_value(value: Value) -> Self {
        let inner = match innermost(value) {
            Value::String(message) => return Self { message, ..Self::default() },
            inner => inner,
        };
        let word = |key: &str| match inner.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let mut words: Vec<String> = ["type", "code", "status"].into_iter().filter_map(word).collect();
        let message = word("message").or_else(|| word("detail")).or_else(|| Some(inner.get("detail")?.to_string()));
        let mut message = message.unwrap_or_default();
        // A router says only that its provider failed; what that one said stands beside it.
        if let Some(raw) = inner.get("metadata").and_then(|metadata| metadata.get("raw")) {
            let upstream = match raw {
                Value::String(text) => Self::of_body(text),
                other => Self::of_value(other.clone()),
            };
            if !upstream.message.trim().is_empty() {
                message = format!("{message}: {}", upstream.message.trim());
            }
            words.extend(upstream.words);
        }
        Self { words, message, raw: inner }
    }

    /// The class, by the provider's words first and by the status where they say nothing.
    pub fn failure(&self, status: Option<u16>) -> Failure {
        // In a stream some servers give the status as the code.
        let coded = || self.words.iter().find_map(|word| word.parse().ok().filter(|code| (400..600).contains(code)));
        let status = status.or_else(coded);
        let settled = match status {
            Some(401 | 403) => Some(Failure::Auth),
            _ => None,
        };
        let worded = || self.words.iter().find_map(|word| of_word(word));
        let limited = status == Some(429);
        let overflow = || (!limited && overflows(&self.message)).then_some(Failure::ContextOverflow);
        // A chat template that raises does so every time, whatever the status says.
        let unrendered = || self.message.to_lowercase().contains("jinja").then_some(Failure::BadRequest);
        let by_status = || status.map(Failure::of_status);
        // In the middle of a stream there is no status, and these words leave only one reading.
        let refused = || {
            let known = ["invalid_request_error", "not_found_error", "model_not_found", "invalid_prompt"];
            self.words.iter().any(|word| known.contains(&word.as_str())).then_some(Failure::BadRequest)
        };
        settled
            .or_else(overflow)
            .or_else(unrendered)
            .or_else(worded)
            .or_else(by_status)
            .or_else(refused)
            .unwrap_or(Failure::Server)
    }

    /// The pause that is asked for in the body (`RetryInfo`), such as `"13s"`.
    pub fn retry_delay(&self) -> Option<Duration> {
        let delays = self.raw.get("details")?.as_array()?.iter().filter_map(|detail| {
            let seconds = detail.get("retryDelay")?.as_str()?.strip_suffix('s')?.parse().ok()?;
            Duration::try_from_secs_f64(seconds).ok()
        });
        delays.max()
    }

    /// The fault of an answer with this status, or of an error in the middle of a stream.
    pub fn fault(&self, status: Option<u16>) -> Fault {
        let failure = self.failure(status);
        let about = match failure {
            Failure::Auth if self.words.iter().any(|word| is_about_money(word)) => NO_QUOTA,
            Failure::Auth => "the key was refused",
            Failure::ContextOverflow => "the conversation is longer than the model can read",
            Failure::RateLimited => "too many requests",
            Failure::Overloaded => "the provider has no room",
            Failure::Timeout => "the provider ran out of time",
            Failure::Server => "the provider failed",
            _ if status == Some(404) => "the provider does not know the model or the address",
            _ => "the provider refused the request",
        };
        let said = self.message.trim().to_owned();
        let status_text = status.map(|status| format!("HTTP {status}"));
        let kind = self.words.first().cloned();
        let parts: Vec<String> =
            status_text.into_iter().chain(kind).chain((!said.is_empty()).then_some(said)).collect();
        let what = if parts.is_empty() { about.to_owned() } else { format!("{about} ({})", parts.join(": ")) };
        Fault { failure, what, status, retry_after: None }
    }
}

/// The object or text that an error is in, out of the lists and objects around it.
fn innermost(mut value: Value) -> Value {
    // As deep as gateways behind gateways go.
    for _ in 0..4 {
        value = match value {
            Value::Array(mut items) if !items.is_empty() => items.remove(0),
            Value::Object(mut fields) => match fields.get_mut("error").map(Value::take) {
                Some(inner @ (Value::Object(_) | Value::String(_) | Value::Array(_))) => inner,
                Some(other) => {
                    fields.insert("error".to_owned(), other);
                    return listed(fields);
                }
                None => return listed(fields),
            },
            other => return other,
        };
    }
    value
}

/// The first of `errors`, where that is all there is.
fn listed(mut fields: serde_json::Map<String, Value>) -> Value {
    match fields.get_mut("errors").map(Value::take) {
        Some(Value::Array(mut items)) if !items.is_empty() => innermost(items.remove(0)),
        Some(other) => {
            fields.insert("errors".to_owned(), other);
            Value::Object(fields)
        }
        None => Value::Object(fields),
    }
}

/// What is said where the key is fine and the account behind it may use nothing more.
const NO_QUOTA: &str = "the account has no quota left";

fn is_about_money(word: &str) -> bool {
    matches!(word, "billing_error" | "insufficient_quota")
}

/// The class of a provider's word for an error.
fn of_word(word: &str) -> Option<Failure> {
    Some(match word {
        "authentication_error" | "permission_error" | "invalid_api_key" | "PERMISSION_DENIED" | "UNAUTHENTICATED"
        // No money is no key: asking again does not help, and a person must act.
        | "billing_error" | "insufficient_quota" => Failure::Auth,
        "context_length_exceeded" | "exceed_context_size_error" | "request_too_large" => Failure::ContextOverflow,
        "rate_limit_error" | "rate_limit_exceeded" | "rate_limited" | "RESOURCE_EXHAUSTED" => Failure::RateLimited,
        "overloaded_error" | "server_overloaded" | "UNAVAILABLE" => Failure::Overloaded,
        "timeout_error" | "DEADLINE_EXCEEDED" => Failure::Timeout,
        "api_error" | "server_error" | "INTERNAL" => Failure::Server,
        _ => return None,
    })
}

/// Whether a provider's words say that the prompt is too long. Each line is one that some server really writes.
fn overflows(message: &str) -> bool {
    /// All parts of one line must occur, in any case.
    const WAYS: &[&[&str]] = &[
        // Anthropic
        &["prompt is too long"],
        &["exceed context limit"],
        // OpenAI, vLLM
        &["maximum context length"],
        &["exceeds the context window"],
        &["longer than the maximum model length"],
        // llama.cpp
        &["exceeds the available context size"],
        &["exceed_context_size"],
        // Ollama
        &["exceeds", "context length"],
        &["context length exceeded"],
        // LM Studio
        &["context", "overflow"],
        &["greater than the context length"],
        // Gemini
        &["token count", "exceeds the maximum number of tokens"],
        // Mistral, TGI
        &["too large for model with", "maximum context"],
        &["must have less than", "tokens"],
        &["`inputs` tokens", "must be <="],
        // SGLang, xAI, Kimi, z.ai, MiniMax, Bedrock, Copilot
        &["longer than the model's context length"],
        &["maximum prompt length is"],
        &["exceeded model token limit"],
        &["prompt exceeds max length"],
        &["context window exceeds limit"],
        &["input is too long"],
        &["prompt token count", "exceeds the limit"],
    ];
    let message = message.to_lowercase();
    WAYS.iter().any(|way| way.iter().all(|part| message.contains(part)))
}

/// Text of a provider, safe to show: one line, no control characters, not long, and no key that the provider has
/// itself masked in part.
pub(super) fn plain(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        let word = masked(word);
        line.extend(word.chars().filter(|c| !c.is_control()));
        if line.len() > WORDS {
            let end = (0..=WORDS).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

/// A word without what a provider has left of a key in it. Brackets, quotes and stops around it stay.
fn masked(word: &str) -> Cow<'_, str> {
    if !word.contains("**") {
        return Cow::Borrowed(word);
    }
    let begun = word.trim_start_matches(|c| "([{<\"'`".contains(c));
    let ended = begun.trim_end_matches(|c| ")]}>\"'`.,;:!?".contains(c));
    let (before, after) = (&word[..word.len() - begun.len()], &begun[ended.len()..]);
    Cow::Owned(format!("{before}{}{after}", portcullis_secret::MASK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(fault: Fault, key: &str) -> ModelError {
        let model = ModelName { provider: "p".to_owned(), id: "m".to_owned() };
        fault.into_error(&model, "P_API_KEY", &Redactor::new([key]).expect("a short key"))
    }

    #[test]
    fn check_5_7_each_providers_way_to_say_too_long_is_known() {
        let bodies = [
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            r#"{"error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
            r#"{"error":{"message":"…","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error"}}"#,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
            r#"{"error":"the input length exceeds the context length"}"#,
            r#"{"error":{"error":"context length exceeded"}}"#,
            r#"{"error":{"message":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40000"}}"#,
            r#"{"errors":[{"message":"Input is too long for requested model."}]}"#,
            r#"["Prompt exceeds max length"]"#,
            r#""Invalid request: Your request exceeded model token limit: 131072""#,
            r#"{"message":"The input (9999 tokens) is longer than the model's context length (4096 tokens)."}"#,
            r#"{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            r#"{"error":{"message":"invalid params, context window exceeds limit (2013)"}}"#,
            r#"{"error":{"message":"prompt token count of 129000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 2 tokens > 1 maximum\"}}"}}}"#,
            r#"{"error":"Trying to keep the first 5000 tokens when context the overflows. However, …"}"#,
            r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
        ];
        for body in bodies {
            assert_eq!(ProviderMessage::of_body(body).failure(Some(400)), Failure::ContextOverflow, "{body}");
        }
        assert_eq!(ProviderMessage::of_body("{}").failure(Some(413)), Failure::ContextOverflow);
        let limited = r#"{"error":{"message":"Limit 30000: maximum context length","code":"rate_limit_exceeded"}}"#;
        assert_eq!(ProviderMessage::of_body(limited).failure(Some(429)), Failure::RateLimited);
    }

    #[test]
    fn check_5_7_words_and_status_give_the_class() {
        let cases = [
            (Some(401), "{}", Failure::Auth),
            (Some(403), r#"{"error":{"type":"permission_error"}}"#, Failure::Auth),
            (Some(429), "slow down", Failure::RateLimited),
            (Some(429), r#"{"error":{"code":"insufficient_quota"}}"#, Failure::Auth),
            (Some(500), "", Failure::Server),
            (Some(500), r#"{"error":{"message":"Jinja Exception: no","type":"server_error"}}"#, Failure::BadRequest),
            (Some(503), "", Failure::Overloaded),
            (Some(529), r#"{"error":{"type":"overloaded_error"}}"#, Failure::Overloaded),
            (Some(400), r#"{"detail":[{"msg":"no"}]}"#, Failure::BadRequest),
            (Some(404), r#"{"error":{"type":"not_found_error"}}"#, Failure::BadRequest),
            (None, r#"{"error":{"type":"overloaded_error"}}"#, Failure::Overloaded),
            (None, r#"{"error":{"type":"rate_limit_error"}}"#, Failure::RateLimited),
            (None, r#"{"error":{"type":"invalid_request_error"}}"#, Failure::BadRequest),
            (None, r#"{"error":{"type":"who_knows"}}"#, Failure::Server),
            (None, r#"{"error":{"code":429,"message":"slow"}}"#, Failure::RateLimited),
        ];
        for (status, body, failure) in cases {
            assert_eq!(ProviderMessage::of_body(body).failure(status), failure, "{status:?} {body}");
        }
    }

    #[test]
    fn l69_no_key_is_in_an_error_whole_or_cut_or_masked_in_part() {
        let key = "sk-secret-1234567890";
        for lead in [0, WORDS - 40, WORDS - 10, WORDS - 1] {
            let body = format!("{} {key} sk-se*******890 \u{1b}[2J", "a".repeat(lead));
            let message = error(ProviderMessage::of_body(&body).fault(Some(400)), key).message;
            assert!(!message.contains("sk-se") && !message.contains("890"), "{message}");
            assert!(!message.contains('\u{1b}'));
        }
    }

    #[test]
    fn what_stands_around_a_masked_key_stays() {
        let cases = [
            ("Incorrect API key provided (sk-se***890). Find", "Incorrect API key provided (***). Find"),
            ("key: \"sk-***\", and", "key: \"***\", and"),
            ("sk-se****.", "***."),
            ("key=sk-se****", "***"),
            ("(**)", "(***)"),
            ("a * b", "a * b"),
        ];
        for (said, shown) in cases {
            assert_eq!(plain(said), shown);
        }
    }

    #[test]
    fn an_error_says_what_which_model_and_what_to_do() {
        let told = error(
            ProviderMessage::of_body(r#"{"error":{"type":"authentication_error","message":"no"}}"#).fault(Some(401)),
            "k",
        );
        assert_eq!(
            told.message,
            "p/m: the key was refused (HTTP 401: authentication_error: no). Check the key of this provider (P_API_KEY) and what its account may use"
        );
        assert_eq!((told.failure, told.status), (Failure::Auth, Some(401)));
    }

    #[test]
    fn an_account_without_quota_is_not_called_a_refused_key() {
        let body = r#"{"error":{"message":"You exceeded it","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        let told = error(ProviderMessage::of_body(body).fault(Some(429)), "k");
        assert!(told.message.starts_with("p/m: the account has no quota left (HTTP 429"), "{}", told.message);
        assert!(
            told.message.contains("balance of the account") && !told.message.contains("refused"),
            "{}",
            told.message
        );
    }
}
