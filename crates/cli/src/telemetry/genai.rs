//! The names of the OpenTelemetry conventions for generative AI (v1.41, in development): the one place that knows them.
//!
//! Our crates name spans and fields in our own words; what goes out is renamed here. When the conventions change, this file
//! changes. A field that the conventions do not know goes out as `portcullis.FIELD`.

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{Array, Key, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::SpanData;

const OPERATION_NAME: &str = "gen_ai.operation.name";
const PROVIDER_NAME: &str = "gen_ai.provider.name";
const CONVERSATION_ID: &str = "gen_ai.conversation.id";
const REQUEST_MODEL: &str = "gen_ai.request.model";
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
const TOOL_NAME: &str = "gen_ai.tool.name";
const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
const TOOL_TYPE: &str = "gen_ai.tool.type";
const ERROR_TYPE: &str = "error.type";

const INVOKE_AGENT: &str = "invoke_agent";
const CHAT: &str = "chat";
const EXECUTE_TOOL: &str = "execute_tool";
/// Tools run here, not at the provider.
const FUNCTION: &str = "function";

/// Ends of a wake that are failures.
const FAILED_WAKES: [&str; 3] = ["gave_up", "retries_exhausted", "halted"];
/// Codes of a call that is none: it did what it was asked to, or goes on, or waits for a person.
const FINE_CALLS: [&str; 3] = ["ok", "background_started", "waits"];

/// One span of ours in the words of the conventions.
pub fn rename(span: &mut SpanData) {
    let fields = std::mem::take(&mut span.attributes);
    let text = |name: &str| {
        fields.iter().find(|field| field.key.as_str() == name).map(|field| field.value.as_str().into_owned())
    };
    let (operation, of, error) = match &*span.name {
        "wake" => (INVOKE_AGENT, None, text("end").filter(|end| FAILED_WAKES.contains(&end.as_str()))),
        "model_request" => (CHAT, text("model"), text("error")),
        "call" => (EXECUTE_TOOL, text("tool"), text("code").filter(|code| !FINE_CALLS.contains(&code.as_str()))),
        // Phases, commits and tasks are ours alone.
        _ => {
            span.attributes = fields.into_iter().map(|field| attribute(field, false)).collect();
            return;
        }
    };
    if operation == CHAT {
        span.span_kind = SpanKind::Client;
    }
    span.name = of.map_or_else(|| operation.to_owned(), |of| format!("{operation} {of}")).into();
    span.attributes.push(KeyValue::new(OPERATION_NAME, operation));
    if operation == EXECUTE_TOOL {
        span.attributes.push(KeyValue::new(TOOL_TYPE, FUNCTION));
    }
    if let Some(error) = error {
        span.status = Status::error(error.clone());
        span.attributes.push(KeyValue::new(ERROR_TYPE, error));
    }
    span.attributes.extend(fields.into_iter().map(|field| attribute(field, true)));
}

/// A field of ours as an attribute.
fn attribute(field: KeyValue, known: bool) -> KeyValue {
    let KeyValue { key, value, .. } = field;
    let renamed = match key.as_str() {
        "session" => KeyValue::new(CONVERSATION_ID, value),
        "tool" => KeyValue::new(TOOL_NAME, value),
        "call" => KeyValue::new(TOOL_CALL_ID, value),
        "model" if known => KeyValue::new(REQUEST_MODEL, value),
        "provider" if known => KeyValue::new(PROVIDER_NAME, provider(&value.as_str())),
        "stop" if known => {
            let reasons = vec![StringValue::from(value.as_str().into_owned())];
            KeyValue::new(FINISH_REASONS, Value::Array(Array::String(reasons)))
        }
        "input_tokens" => KeyValue::new(INPUT_TOKENS, count(value)),
        "output_tokens" => KeyValue::new(OUTPUT_TOKENS, count(value)),
        "cache_read_tokens" => KeyValue::new(CACHE_READ_TOKENS, count(value)),
        "cache_write_tokens" => KeyValue::new(CACHE_WRITE_TOKENS, count(value)),
        "requests" | "events" => KeyValue::new(ours(&key), count(value)),
        // What the layer adds itself, with names of its own.
        other if other.contains('.') => KeyValue::new(key, value),
        _ => KeyValue::new(ours(&key), value),
    };
    renamed
}

fn ours(key: &Key) -> String {
    format!("portcullis.{}", key.as_str())
}

/// Numbers without a sign reach the layer as text.
fn count(value: Value) -> Value {
    match value.as_str().parse::<i64>() {
        Ok(number) => Value::I64(number),
        Err(_) => value,
    }
}

/// A provider by the name that the conventions give it. A server that only speaks the dialect is told as the dialect.
fn provider(ours: &str) -> String {
    match ours {
        "openai-chat" => "openai",
        "gemini" => "gcp.gemini",
        other => other,
    }
    .to_owned()
}
