//! Requests of the Messages API.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::WIRE;
use crate::wire::{self, Body, NO_OUTPUT, Shown, Takes};
use crate::{AnswerPart, Media, Message, Request, ResultPart, ToolResult, ToolSpec, UserPart};

/// Names of tools, and so of calls.
pub(super) const LONGEST_NAME: usize = 128;

/// Fields of a request that are written here.
pub(super) const OWN_FIELDS: &[&str] = &["model", "max_tokens", "stream", "tools", "system", "messages", "tool_choice"];

const TAKES: Takes = Takes {
    images: &["image/png", "image/jpeg", "image/gif", "image/webp"],
    // 5 MiB encoded.
    image_bytes: (5 << 20) / 4 * 3,
    // A request may have 32 MB; a document shall leave room for the conversation.
    pdf_bytes: 16 << 20,
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
    Opaque(&'a RawValue),
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: String,
}

/// The whole body. The mark for the prompt cache stands at the top: the provider itself puts it on the newest block and
/// moves it on, so that no byte of an earlier message ever changes. Tools and system have marks of their own.
pub(super) fn body(model: &str, extra: &Map<String, Value>, request: &Request<'_>) -> Vec<u8> {
    let mut body = Body::new();
    body.field("model", model).field("max_tokens", &request.max_output_tokens).field("stream", &true);
    if !extra.contains_key("cache_control") {
        body.field("cache_control", &mark());
    }
    body.extra(extra);
    if !request.tools.is_empty() {
        body.field("tools", &tools(&request.tools));
    }
    if !request.system.trim().is_empty() {
        body.field("system", &json!([{"type": "text", "text": request.system, "cache_control": mark()}]));
    }
    let off = (request.tools_off && !request.tools.is_empty()).then(|| ("tool_choice", json!({"type": "none"})));
    request.conversation.with_rendered(WIRE, render, |messages| body.last("messages", messages, off))
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
fn render(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::User(parts) => {
            let blocks = parts.iter().filter_map(|part| match part {
                UserPart::Result(result) => Some(tool_result(result)),
                UserPart::Text(text) => text_block(text),
                UserPart::Media(media) => Some(media_block(media)),
            });
            write("user", blocks.collect(), out);
        }
        Message::Assistant(parts) => {
            let blocks = parts.iter().filter_map(|part| match part {
                AnswerPart::Text(text) => text_block(text),
                AnswerPart::Opaque(opaque) => wire::own(opaque, WIRE).map(Block::Opaque),
                AnswerPart::Call(call) => Some(Block::ToolUse {
                    id: wire::wire_id(&call.id),
                    name: wire::wire_name(&call.name, LONGEST_NAME),
                    input: wire::arguments_raw(&call.arguments),
                }),
            });
            write("assistant", blocks.collect(), out);
        }
    }
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

fn media_block(media: &Media) -> Block<'_> {
    match TAKES.show(media) {
        Shown::Image { mime, base64 } => {
            Block::Image { source: Source { kind: "base64", media_type: mime, data: base64 } }
        }
        Shown::Pdf { base64 } => {
            Block::Document { source: Source { kind: "base64", media_type: "application/pdf", data: base64 } }
        }
        Shown::LeftOut(text) => Block::Text { text: Cow::Owned(text) },
    }
}

fn tool_result(result: &ToolResult) -> Block<'_> {
    let content = result.parts.iter().filter_map(|part| match part {
        ResultPart::Text(text) => text_block(text),
        ResultPart::Media(media) => Some(media_block(media)),
    });
    let mut content: Vec<_> = content.collect();
    if content.is_empty() {
        content.push(Block::Text { text: Cow::Borrowed(NO_OUTPUT) });
    }
    Block::ToolResult { tool_use_id: wire::wire_id(&result.call_id), content, is_error: result.is_error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::prefix;

    #[test]
    fn check_6_3_whatever_is_said_the_next_request_begins_with_the_bytes_of_this_one() {
        prefix::holds("messages", |request| body("m", &Map::new(), request));
    }
}
