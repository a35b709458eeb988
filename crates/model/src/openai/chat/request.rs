//! Requests of Chat Completions.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::WIRE;
use super::answer::SENT_BACK;
use crate::openai::{LONGEST_NAME, TAKES};
use crate::wire::{self, Body, FAILED, Fields, NO_OUTPUT, Shown, Takes};
use crate::{AnswerPart, Media, Message, Request, ResultPart, ToolResult, UserPart};

/// Fields of a request that are written here.
pub(super) const OWN_FIELDS: &[&str] = &["model", "stream", "stream_options", "tools", "messages", "tool_choice", "n"];

/// What is rendered without media has a name of its own among what is kept.
const TEXT_ONLY: &str = "openai_chat_text";

/// What differs from server to server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub openai: bool,
    pub counted: bool,
    pub media: bool,
}

/// The whole body. What a person set for the length of an answer goes before what is asked for here.
pub(super) fn body(model: &str, extra: &Map<String, Value>, request: &Request<'_>, style: Style) -> Vec<u8> {
    let mut body = Body::new();
    body.field("model", model).field("stream", &true);
    if style.counted {
        body.field("stream_options", &json!({"include_usage": true}));
    }
    if !extra.contains_key("max_tokens") && !extra.contains_key("max_completion_tokens") {
        // OpenAI's newer models take only the one, many other servers only the other.
        let name = if style.openai { "max_completion_tokens" } else { "max_tokens" };
        body.field(name, &request.max_output_tokens);
    }
    body.extra(extra);
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema});
            json!({"type": "function", "function": function})
        });
        body.field("tools", &tools.collect::<Vec<_>>());
    }
    let off = (request.tools_off && !request.tools.is_empty()).then(|| ("tool_choice", json!("none")));
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.extend_from_slice(json!({"role": "system", "content": request.system}).to_string().as_bytes());
    }
    let end = |rendered: &[u8]| {
        if !messages.is_empty() && !rendered.is_empty() {
            messages.push(b',');
        }
        messages.extend_from_slice(rendered);
        body.last("messages", &messages, off)
    };
    if style.media {
        request.conversation.with_rendered(WIRE, |message, out| render(message, &TAKES, out), end)
    } else {
        let none = Takes { images: &[], image_bytes: 0, pdf_bytes: 0 };
        request.conversation.with_rendered(TEXT_ONLY, |message, out| render(message, &none, out), end)
    }
}

/// One message as one or more: every result is a message of its own, and what they hold of media follows in the user's,
/// because results are text.
fn render(message: &Message, takes: &Takes, out: &mut Vec<u8>) {
    match message {
        Message::User(parts) => {
            let mut content = Vec::new();
            for part in parts {
                match part {
                    UserPart::Result(result) => {
                        let text = result_text(result, takes, &mut content);
                        let id = wire::wire_id(&result.call_id);
                        push(&json!({"role": "tool", "tool_call_id": id, "content": text}), out);
                    }
                    UserPart::Text(text) => content.push(Piece::Text { text: Cow::Borrowed(text) }),
                    UserPart::Media(media) => content.push(piece(media, takes)),
                }
            }
            content.retain(|piece| !matches!(piece, Piece::Text { text } if text.trim().is_empty()));
            let texts: Option<Vec<&str>> = content.iter().map(Piece::as_text).collect();
            match texts {
                Some(texts) if texts.is_empty() => {}
                // A plain string is what every server takes.
                Some(texts) => push(&json!({"role": "user", "content": texts.join("\n\n")}), out),
                None => push(&json!({"role": "user", "content": content}), out),
            }
        }
        Message::Assistant(parts) => assistant(parts, out),
    }
}

fn assistant(parts: &[AnswerPart], out: &mut Vec<u8>) {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut own: Vec<(String, String)> = Vec::new();
    for part in parts {
        match part {
            AnswerPart::Text(piece) => text.push_str(piece),
            AnswerPart::Call(call) => calls.push(json!({
                "id": wire::wire_id(&call.id),
                "type": "function",
                "function": {
                    "name": wire::wire_name(&call.name, LONGEST_NAME),
                    "arguments": wire::arguments_object(&call.arguments),
                },
            })),
            AnswerPart::Opaque(opaque) if opaque.wire == WIRE => {
                let fields = Fields::of(&opaque.raw).unwrap_or_default();
                let kept = fields.iter().filter(|(name, _)| SENT_BACK.contains(name));
                own.extend(kept.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            AnswerPart::Opaque(_) => {}
        }
    }
    if text.trim().is_empty() && calls.is_empty() {
        return;
    }
    let mut fields = Fields::default();
    fields.set("role", json!("assistant").to_string());
    // Never null: templates of local servers put strings together.
    fields.set("content", wire::json(&text));
    // Reasoning goes back with the calls it led to. Servers that want it want it there, and some refuse it elsewhere.
    if !calls.is_empty() {
        for (name, value) in own {
            fields.set(&name, value);
        }
        fields.set("tool_calls", wire::json(&calls));
    }
    push_text(&fields.to_json(), out);
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: Value },
    File { file: Value },
}

impl Piece<'_> {
    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

fn piece<'a>(media: &'a Media, takes: &Takes) -> Piece<'a> {
    match takes.show(media) {
        Shown::Image { mime, base64 } => {
            Piece::ImageUrl { image_url: json!({"url": format!("data:{mime};base64,{base64}")}) }
        }
        Shown::Pdf { base64 } => Piece::File {
            file: json!({"filename": "document.pdf", "file_data": format!("data:application/pdf;base64,{base64}")}),
        },
        Shown::LeftOut(text) => Piece::Text { text: Cow::Owned(text) },
    }
}

/// The text of a result. Media it holds is put after all results, and the text says so.
fn result_text<'a>(result: &'a ToolResult, takes: &Takes, after: &mut Vec<Piece<'a>>) -> String {
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    for part in &result.parts {
        match part {
            ResultPart::Text(text) => texts.push(Cow::Borrowed(text)),
            ResultPart::Media(media) => match piece(media, takes) {
                Piece::Text { text } => texts.push(text),
                shown => {
                    texts.push(Cow::Borrowed("[shown in the next message]"));
                    let from = format!("[from the result of {} ({})]", result.name, result.call_id);
                    after.push(Piece::Text { text: Cow::Owned(from) });
                    after.push(shown);
                }
            },
        }
    }
    let text = texts.join("\n");
    let text = if text.is_empty() { NO_OUTPUT.to_owned() } else { text };
    if result.is_error { format!("{FAILED}{text}") } else { text }
}

fn push(value: &Value, out: &mut Vec<u8>) {
    push_text(&value.to_string(), out);
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::prefix;

    #[test]
    fn check_6_3_whatever_is_said_the_next_request_begins_with_the_bytes_of_this_one() {
        for media in [true, false] {
            let style = Style { openai: media, counted: media, media };
            prefix::holds("messages", |request| body("m", &Map::new(), request, style));
        }
    }
}
