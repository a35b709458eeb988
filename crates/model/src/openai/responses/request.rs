//! Requests of the Responses API.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::answer::PHASE;
use crate::openai::{LONGEST_NAME, TAKES, data_url};
use crate::protocol::Style;
use crate::wire::{self, Body, FAILED, Fields, MediaForm, MediaLimits, NO_MESSAGE, NO_OUTPUT, Origin, push_element};
use crate::{AnswerPart, Media, Message, Opaque, Request, ResultPart, ToolResult, UserPart};

/// All but the messages.
pub(super) fn head(model: &str, extra: &Map<String, Value>, request: &Request<'_>, reasoning: bool) -> Body {
    let mut body = Body::new();
    body.field("model", model).field("store", &false).field("stream", &true);
    if reasoning {
        body.field("include", &["reasoning.encrypted_content"]);
    }
    body.field("max_output_tokens", &request.max_output_tokens).extra(extra);
    if !request.tools.is_empty() {
        // Strict schemas are a dialect that few schemas are written in; it is the default here, so it is switched off.
        let tools = request.tools.iter().map(|tool| {
            let (name, about, schema) = (&tool.name, &tool.description, &tool.input_schema);
            json!({"type": "function", "name": name, "description": about, "parameters": schema, "strict": false})
        });
        body.field("tools", &tools.collect::<Vec<_>>());
    }
    if !request.system.trim().is_empty() {
        body.field("instructions", request.system);
    }
    body
}

/// One message as the items it consists of.
pub(super) fn render(message: &Message, style: &Style, out: &mut Vec<u8>) {
    let takes = &style.media.takes(TAKES);
    match message {
        Message::User(parts) => {
            let mut content = Vec::new();
            for part in parts {
                match part {
                    UserPart::Result(result) => push_element(&output(result, takes).to_string(), out),
                    UserPart::Text(text) if text.trim().is_empty() => {}
                    UserPart::Text(text) => content.push(input_text(text)),
                    UserPart::Media(media) => content.push(media_part(media, takes)),
                }
            }
            if content.is_empty() && out.is_empty() {
                content.push(input_text(NO_MESSAGE));
            }
            if !content.is_empty() {
                push_element(&json!({"type": "message", "role": "user", "content": content}).to_string(), out);
            }
        }
        Message::Assistant(parts) => {
            let mut phase = None;
            // Reasoning is sent with the item that it led to: one that was cut off before there was any is refused.
            let mut led_here = Vec::new();
            for part in parts {
                let part = match part {
                    AnswerPart::Opaque(opaque) => match own(opaque, &style.origin) {
                        Some(ResponsesItem::Phase(of_next)) => {
                            phase = Some(of_next);
                            continue;
                        }
                        Some(ResponsesItem::Reasoning(raw)) => {
                            led_here.push(raw);
                            continue;
                        }
                        Some(ResponsesItem::Item(raw)) => raw.to_owned(),
                        None => continue,
                    },
                    AnswerPart::Text(text) if text.is_empty() => continue,
                    AnswerPart::Text(text) => said(text, phase.take()).to_string(),
                    AnswerPart::Call(call) => json!({
                        "type": "function_call",
                        "call_id": wire::wire_id(&call.id),
                        "name": wire::wire_name(&call.name, LONGEST_NAME),
                        "arguments": wire::arguments_object(&call.arguments),
                    })
                    .to_string(),
                };
                led_here.drain(..).for_each(|reasoning| push_element(reasoning, out));
                push_element(&part, out);
            }
        }
    }
}

/// Something the model said, as a message whose content is plain text. The other form, a list of `output_text`, is an item
/// of the server's own: its type demands an id, a status and annotations, which no stored conversation has.
pub(super) fn said(text: &str, phase: Option<String>) -> Value {
    let mut item = json!({"type": "message", "role": "assistant", "content": text});
    if let Some(phase) = phase {
        item["phase"] = Value::String(phase);
    }
    item
}

/// An opaque part of an earlier answer, as this API reads it.
enum ResponsesItem<'a> {
    /// The phase of the text that follows.
    Phase(String),
    Reasoning(&'a str),
    Item(&'a str),
}

fn own<'a>(opaque: &'a Opaque, origin: &Origin) -> Option<ResponsesItem<'a>> {
    let raw = origin.own(opaque)?.get();
    let fields = Fields::of(raw).ok()?;
    if let Some(phase) = fields.text(PHASE) {
        return Some(ResponsesItem::Phase(phase));
    }
    if fields.text("type").as_deref() != Some("reasoning") {
        return Some(ResponsesItem::Item(raw));
    }
    // Without its content a reasoning item is only a name, and nothing is stored under it.
    fields.text("encrypted_content").filter(|content| !content.is_empty()).map(|_| ResponsesItem::Reasoning(raw))
}

fn output(result: &ToolResult, takes: &MediaLimits) -> Value {
    let call_id = wire::wire_id(&result.call_id);
    let texts: Option<Vec<&str>> = result.parts.iter().map(as_text).collect();
    let output = match texts {
        Some(texts) => {
            let text = texts.join("\n");
            let text = if text.is_empty() { Cow::Borrowed(NO_OUTPUT) } else { Cow::Owned(text) };
            Value::String(if result.is_error { format!("{FAILED}{text}") } else { text.into_owned() })
        }
        None => {
            let failed = result.is_error.then(|| input_text(FAILED.trim_end()));
            let parts = result.parts.iter().filter_map(|part| match part {
                ResultPart::Text(text) => (!text.is_empty()).then(|| input_text(text)),
                ResultPart::Media(media) => Some(media_part(media, takes)),
            });
            Value::Array(failed.into_iter().chain(parts).collect())
        }
    };
    json!({"type": "function_call_output", "call_id": call_id, "output": output})
}

fn as_text(part: &ResultPart) -> Option<&str> {
    match part {
        ResultPart::Text(text) => Some(text),
        ResultPart::Media(_) => None,
    }
}

fn input_text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn media_part(media: &Media, takes: &MediaLimits) -> Value {
    match takes.show(media) {
        MediaForm::Image { mime, base64 } => {
            json!({"type": "input_image", "detail": "auto", "image_url": data_url(mime, &base64)})
        }
        MediaForm::Pdf { base64 } => {
            let data = data_url("application/pdf", &base64);
            json!({"type": "input_file", "filename": "document.pdf", "file_data": data})
        }
        MediaForm::LeftOut(text) => input_text(&text),
    }
}

#[cfg(test)]
mod tests {
    use crate::openai::responses::{ENDPOINT, Responses};
    use crate::protocol::Quirks;
    use crate::wire::prefix;

    #[test]
    fn check_6_3_whatever_is_said_the_next_request_begins_with_the_bytes_of_this_one() {
        prefix::holds(&ENDPOINT, &Responses { openai: true }, "m", Quirks::default());
    }
}
