//! Requests of the Messages API.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::protocol::Style;
use crate::wire::{self, Body, Fields, MediaForm, MediaLimits, NO_MESSAGE, NO_OUTPUT, Origin};
use crate::{AnswerPart, Media, Message, Opaque, Request, ResultPart, ToolResult, ToolSpec, UserPart};

/// Names of tools, and so of calls.
pub(super) const LONGEST_NAME: usize = 128;

const TAKES: MediaLimits = MediaLimits {
    images: &["image/png", "image/jpeg", "image/gif", "image/webp"],
    // 5 MiB encoded.
    image_bytes: (5 << 20) / 4 * 3,
    // A request may have 32 MB; a document shall leave room for the conversation.
    pdf_bytes: 16 << 20,
    refused: false,
};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        is_error: bool,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
    },
    #[serde(untagged)]
    Thinking(&'a RawValue),
    #[serde(untagged)]
    Opaque(&'a RawValue),
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: String,
}

/// All but the messages. The mark for the prompt cache stands at the top: the provider itself puts it on the newest block
/// and moves it on, so that no byte of an earlier message ever changes. Tools and system have marks of their own.
pub(super) fn head(model: &str, extra: &Map<String, Value>, request: &Request<'_>, marked: bool) -> Body {
    let mut body = Body::new();
    body.field("model", model).field("max_tokens", &request.max_output_tokens).field("stream", &true);
    if marked && !extra.contains_key("cache_control") {
        body.field("cache_control", &mark());
    }
    body.extra(extra);
    if !request.tools.is_empty() {
        body.field("tools", &tools(&request.tools));
    }
    if !request.system.trim().is_empty() {
        body.field("system", &json!([{"type": "text", "text": request.system, "cache_control": mark()}]));
    }
    body
}

fn mark() -> Value {
    json!({"type": "ephemeral"})
}

fn tools(tools: &[ToolSpec]) -> Vec<Value> {
    let mut shown: Vec<Value> = tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}))
        .collect();
    if let Some(last) = shown.last_mut() {
        last["cache_control"] = mark();
    }
    shown
}

/// One message. Text that is only white space is left out: the API refuses it.
pub(super) fn render(message: &Message, style: &Style, out: &mut Vec<u8>) {
    let takes = &style.media.takes(TAKES);
    match message {
        Message::User(parts) => {
            // Results come first, or they are refused.
            let mut results = Vec::new();
            let mut rest = Vec::new();
            for part in parts {
                match part {
                    UserPart::Result(result) => results.push(tool_result(result, takes, &mut rest)),
                    UserPart::Text(text) => rest.extend(text_block(text)),
                    UserPart::Media(media) => rest.push(media_block(media, takes)),
                }
            }
            results.append(&mut rest);
            if results.is_empty() {
                results.push(Block::Text { text: Cow::Borrowed(NO_MESSAGE) });
            }
            write("user", results, out);
        }
        Message::Assistant(parts) => {
            let blocks = parts.iter().filter_map(|part| match part {
                AnswerPart::Text(text) => text_block(text),
                AnswerPart::Opaque(opaque) => own_block(opaque, &style.origin),
                AnswerPart::Call(call) => Some(Block::ToolUse {
                    id: wire::wire_id(&call.id),
                    name: wire::wire_name(&call.name, LONGEST_NAME),
                    input: wire::arguments_raw(&call.arguments),
                }),
            });
            let mut blocks: Vec<Block<'_>> = blocks.collect();
            // An answer that was cut off while it thought: a message may not end so.
            while matches!(blocks.last(), Some(Block::Thinking(_))) {
                blocks.pop();
            }
            write("assistant", blocks, out);
        }
    }
}

/// A block of its own, byte for byte. Thinking goes back only with the seal that it is known by: without it, as when it
/// was cut off, it is refused.
fn own_block<'a>(opaque: &'a Opaque, origin: &Origin) -> Option<Block<'a>> {
    let raw = origin.own(opaque)?;
    let fields = Fields::of(raw.get()).ok()?;
    let seal = match fields.text("type").as_deref() {
        Some("thinking") => "signature",
        Some("redacted_thinking") => "data",
        _ => return Some(Block::Opaque(raw)),
    };
    fields.text(seal).filter(|seal| !seal.is_empty()).map(|_| Block::Thinking(raw))
}

fn write(role: &str, content: Vec<Block<'_>>, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Turn<'a> {
        role: &'a str,
        content: Vec<Block<'a>>,
    }
    if !content.is_empty() {
        out.extend_from_slice(wire::json(&Turn { role, content }).as_bytes());
    }
}

fn text_block(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text: Cow::Borrowed(text) })
}

fn media_block<'a>(media: &'a Media, takes: &MediaLimits) -> Block<'a> {
    match takes.show(media) {
        MediaForm::Image { mime, base64 } => {
            Block::Image { source: Source { kind: "base64", media_type: mime, data: base64 } }
        }
        MediaForm::Pdf { base64 } => {
            Block::Document { source: Source { kind: "base64", media_type: "application/pdf", data: base64 } }
        }
        MediaForm::LeftOut(text) => Block::Text { text: Cow::Owned(text) },
    }
}

/// A result. What failed may hold nothing but text: its media go `after` all results.
fn tool_result<'a>(result: &'a ToolResult, takes: &MediaLimits, after: &mut Vec<Block<'a>>) -> Block<'a> {
    let mut content = Vec::new();
    for part in &result.parts {
        match part {
            ResultPart::Text(text) => content.extend(text_block(text)),
            ResultPart::Media(media) => match media_block(media, takes) {
                block @ (Block::Image { .. } | Block::Document { .. }) if result.is_error => {
                    content.push(Block::Text { text: Cow::Borrowed("[shown after the results]") });
                    let from = format!("[from the result of {} ({})]", result.name, result.call_id);
                    after.extend([Block::Text { text: Cow::Owned(from) }, block]);
                }
                block => content.push(block),
            },
        }
    }
    if content.is_empty() {
        content.push(Block::Text { text: Cow::Borrowed(NO_OUTPUT) });
    }
    Block::ToolResult { tool_use_id: wire::wire_id(&result.call_id), content, is_error: result.is_error }
}

#[cfg(test)]
mod tests {
    use crate::anthropic::{ENDPOINT, Messages};
    use crate::protocol::Quirks;
    use crate::wire::prefix;

    #[test]
    fn check_6_3_whatever_is_said_the_next_request_begins_with_the_bytes_of_this_one() {
        prefix::holds(&ENDPOINT, &Messages, "m", Quirks::default());
    }
}
