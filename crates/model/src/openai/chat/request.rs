//! Requests of Chat Completions.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer::{EXTRA, SENT_BACK};
use crate::adapter;
use crate::openai::{LONGEST_NAME, TAKES};
use crate::wire::{self, Body, FAILED, Fields, NO_ANSWER, NO_MESSAGE, NO_OUTPUT, Origin, Sending, Shown, Takes};
use crate::{AnswerPart, Media, Message, Request, ResultPart, ToolResult, UserPart};

/// Fields of a request that are written here.
pub(super) const OWN_FIELDS: &[&str] = &["model", "stream", "stream_options", "tools", "messages", "tool_choice", "n"];

/// What differs from server to server.
#[derive(Debug, Clone)]
pub(crate) struct Style {
    pub limit: Limit,
    pub counted: bool,
    pub media: Sending,
    /// Whether there must be an answer between results and a message of the user.
    pub strict: bool,
    /// Whether ids of calls must have nine letters and digits.
    pub nine: bool,
    /// Whose parts are sent back.
    pub origin: Origin,
}

impl adapter::Style for Style {
    fn sent(&mut self) -> (&mut Origin, &mut Sending) {
        (&mut self.origin, &mut self.media)
    }
}

/// What the length of an answer is limited by: OpenAI's newer models take only the one, many other servers only the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Completion,
    Any,
}

impl Limit {
    pub(super) fn of(newer: bool) -> Self {
        if newer { Self::Completion } else { Self::Any }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Completion => "max_completion_tokens",
            Self::Any => "max_tokens",
        }
    }

    /// Whether a server refuses the name, and not the number.
    pub(super) fn is_refused(self, message: &str) -> bool {
        let message = message.to_lowercase();
        let unknown = ["unsupported", "not supported", "unrecognized", "unknown", "extra inputs", "not permitted"];
        message.contains(self.name()) && unknown.iter().any(|word| message.contains(word))
    }
}

impl Style {
    /// What is rendered differs by style, so each has a name of its own.
    pub(super) fn rendered(&self, media: Sending) -> String {
        let (strict, nine) = (if self.strict { ", strict" } else { "" }, if self.nine { ", nine" } else { "" });
        format!("{}{strict}{nine}", media.word())
    }

    fn id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        if self.nine { wire::nine_letters(id) } else { wire::wire_id(id) }
    }
}

/// The whole body. What a person set for the length of an answer goes before what is asked for here.
pub(super) fn body(model: &str, extra: &Map<String, Value>, request: &Request<'_>, style: &Style) -> Vec<u8> {
    let mut body = Body::new();
    body.field("model", model).field("stream", &true);
    if style.counted {
        body.field("stream_options", &json!({"include_usage": true}));
    }
    if !extra.contains_key("max_tokens") && !extra.contains_key("max_completion_tokens") {
        body.field(style.limit.name(), &request.max_output_tokens);
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
    let render = |message: &Message, out: &mut Vec<u8>| render(message, style, out);
    let name = style.origin.rendering(&style.rendered(style.media));
    request.conversation.with_turns(&name, &no_answer().to_string(), render, end)
}

fn no_answer() -> Value {
    json!({"role": "assistant", "content": NO_ANSWER})
}

/// One message as one or more: every result is a message of its own, and what they hold of media follows in the user's,
/// because results are text.
fn render(message: &Message, style: &Style, out: &mut Vec<u8>) {
    match message {
        Message::User(parts) => {
            let takes = &style.media.takes(TAKES);
            let mut content = Vec::new();
            for part in parts {
                match part {
                    UserPart::Result(result) => {
                        let text = result_text(result, takes, &mut content);
                        let id = style.id(&result.call_id);
                        push(&json!({"role": "tool", "tool_call_id": id, "content": text}), out);
                    }
                    UserPart::Text(text) => content.push(Piece::Text { text: Cow::Borrowed(text) }),
                    UserPart::Media(media) => content.push(piece(media, takes)),
                }
            }
            content.retain(|piece| !matches!(piece, Piece::Text { text } if text.trim().is_empty()));
            let results = !out.is_empty();
            if content.is_empty() && !results {
                content.push(Piece::Text { text: Cow::Borrowed(NO_MESSAGE) });
            }
            if style.strict && results && !content.is_empty() {
                push(&no_answer(), out);
            }
            let texts: Option<Vec<&str>> = content.iter().map(Piece::as_text).collect();
            match texts {
                Some(texts) if texts.is_empty() => {}
                // A plain string is what every server takes.
                Some(texts) => push(&json!({"role": "user", "content": texts.join("\n\n")}), out),
                None => push(&json!({"role": "user", "content": content}), out),
            }
        }
        Message::Assistant(parts) => assistant(parts, style, out),
    }
}

fn assistant(parts: &[AnswerPart], style: &Style, out: &mut Vec<u8>) {
    let mut text = String::new();
    let mut calls: Vec<String> = Vec::new();
    // It stands before the call that it belongs to.
    let mut extra: Option<String> = None;
    let mut own: Vec<(String, String)> = Vec::new();
    for part in parts {
        match part {
            AnswerPart::Text(piece) => text.push_str(piece),
            AnswerPart::Call(call) => {
                let function = json!({
                    "name": wire::wire_name(&call.name, LONGEST_NAME),
                    "arguments": wire::arguments_object(&call.arguments),
                });
                let mut fields = Fields::default();
                fields.set("id", wire::json(&*style.id(&call.id)));
                fields.set("type", json!("function").to_string());
                fields.set("function", function.to_string());
                if let Some(extra) = extra.take() {
                    fields.set("extra_content", extra);
                }
                calls.push(fields.to_json());
            }
            AnswerPart::Opaque(opaque) => {
                let Some(raw) = style.origin.own(opaque) else { continue };
                let fields = Fields::of(raw.get()).unwrap_or_default();
                extra = fields.raw(EXTRA).map(str::to_owned).or(extra);
                let kept = fields.iter().filter(|(name, _)| SENT_BACK.contains(name));
                own.extend(kept.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
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
        fields.set("tool_calls", format!("[{}]", calls.join(",")));
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
        for (media, more) in [(Sending::Yes, true), (Sending::No, false), (Sending::Refused, false)] {
            let origin = prefix::origin("openai_chat");
            let style = Style { limit: Limit::of(more), counted: more, media, strict: more, nine: more, origin };
            prefix::holds("messages", |request| body("m", &Map::new(), request, &style));
        }
    }
}
