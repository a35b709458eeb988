//! Requests of Chat Completions.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{EXTRA, SENT_BACK};
use super::{NINE, STRICT, no_answer};
use crate::openai::{LONGEST_NAME, TAKES, data_url};
use crate::protocol::Style;
use crate::wire::{self, FAILED, Fields, MediaForm, MediaLimits, NO_MESSAGE, NO_OUTPUT};
use crate::{AnswerPart, Media, Message, ResultPart, ToolResult, ToolSpec, UserPart};

/// What the length of an answer is limited by: OpenAI's newer models take only the one, many other servers only the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Completion,
    Any,
}

impl Limit {
    pub(super) fn of(newer: bool) -> Self {
        if newer { Self::Completion } else { Self::Any }
    }

    pub(super) fn name(self) -> &'static str {
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

/// Tools as they are shown.
pub(super) fn tools(tools: &[ToolSpec]) -> Vec<Value> {
    let shown = |tool: &ToolSpec| {
        let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema});
        json!({"type": "function", "function": function})
    };
    tools.iter().map(shown).collect()
}

fn call_id<'i>(id: &'i str, style: &Style) -> Cow<'i, str> {
    if style.quirks.has(NINE) { wire::nine_letters(id) } else { wire::wire_id(id) }
}

/// One message as one or more: every result is a message of its own, and what they hold of media follows in the user's,
/// because results are text.
pub(super) fn render(message: &Message, style: &Style, out: &mut Vec<u8>) {
    match message {
        Message::User(parts) => {
            let takes = &style.media.takes(TAKES);
            let mut content = Vec::new();
            for part in parts {
                match part {
                    UserPart::Result(result) => {
                        let text = result_text(result, takes, &mut content);
                        let id = call_id(&result.call_id, style);
                        push(&json!({"role": "tool", "tool_call_id": id, "content": text}), out);
                    }
                    UserPart::Text(text) => content.push(ChatContentPart::Text { text: Cow::Borrowed(text) }),
                    UserPart::Media(media) => content.push(piece(media, takes)),
                }
            }
            content.retain(|piece| !matches!(piece, ChatContentPart::Text { text } if text.trim().is_empty()));
            let results = !out.is_empty();
            if content.is_empty() && !results {
                content.push(ChatContentPart::Text { text: Cow::Borrowed(NO_MESSAGE) });
            }
            if style.quirks.has(STRICT) && results && !content.is_empty() {
                push(&no_answer(), out);
            }
            let texts: Option<Vec<&str>> = content.iter().map(ChatContentPart::as_text).collect();
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
                fields.set("id", wire::json(&*call_id(&call.id, style)));
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
    wire::push_element(&fields.to_json(), out);
}

/// One part of the content of a chat message.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: Value },
    File { file: Value },
}

impl ChatContentPart<'_> {
    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

fn piece<'a>(media: &'a Media, takes: &MediaLimits) -> ChatContentPart<'a> {
    match takes.show(media) {
        MediaForm::Image { mime, base64 } => {
            ChatContentPart::ImageUrl { image_url: json!({"url": data_url(mime, &base64)}) }
        }
        MediaForm::Pdf { base64 } => {
            let data = data_url("application/pdf", &base64);
            ChatContentPart::File { file: json!({"filename": "document.pdf", "file_data": data}) }
        }
        MediaForm::LeftOut(text) => ChatContentPart::Text { text: Cow::Owned(text) },
    }
}

/// The text of a result. Media it holds is put after all results, and the text says so.
fn result_text<'a>(result: &'a ToolResult, takes: &MediaLimits, after: &mut Vec<ChatContentPart<'a>>) -> String {
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    for part in &result.parts {
        match part {
            ResultPart::Text(text) => texts.push(Cow::Borrowed(text)),
            ResultPart::Media(media) => match piece(media, takes) {
                ChatContentPart::Text { text } => texts.push(text),
                shown => {
                    texts.push(Cow::Borrowed("[shown in the next message]"));
                    let from = format!("[from the result of {} ({})]", result.name, result.call_id);
                    after.push(ChatContentPart::Text { text: Cow::Owned(from) });
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
    wire::push_element(&value.to_string(), out);
}

#[cfg(test)]
mod tests {
    use crate::openai::chat::{Chat, ENDPOINT};
    use crate::protocol::Quirks;
    use crate::wire::prefix;

    #[test]
    fn check_6_3_whatever_is_said_the_next_request_begins_with_the_bytes_of_this_one() {
        for (openai, quirks) in [(true, Quirks(u8::MAX)), (false, Quirks::default())] {
            prefix::holds(&ENDPOINT, &Chat { openai }, "m", quirks);
        }
    }
}
