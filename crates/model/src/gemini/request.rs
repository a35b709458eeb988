//! What is sent to Gemini.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::protocol::Style;
use crate::wire::{
    Body, Fields, MediaForm, MediaLimits, NO_MESSAGE, NO_OUTPUT, Origin, arguments_object, begins_with_letter, is_word,
    json as text_of, wire_id, wire_name,
};
use crate::{AnswerPart, Media, Message, Request, ResultPart, ToolResult, UserPart};

/// What may be sent within a request; the whole of it may have 20 MB.
const TAKES: MediaLimits = MediaLimits {
    images: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
    image_bytes: 7 << 20,
    pdf_bytes: 14 << 20,
    refused: false,
};

/// Stands for the signature of a call that another model made: newer models refuse a call without any. It is the word
/// that Google's documentation gives for this.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The field of a part that must come back as it was.
pub(super) const SIGNATURE: &str = "thoughtSignature";

/// All but the messages.
pub(super) fn head(extra: &Map<String, Value>, request: &Request<'_>, generation: Generation) -> Body {
    let mut body = Body::new();
    if !request.system.is_empty() {
        body.field("systemInstruction", &json!({ "parts": [{ "text": request.system }] }));
    }
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.input_schema,
                })
            })
            .collect();
        body.field("tools", &json!([{ "functionDeclarations": declarations }]));
    }
    let mut config = json!({ "maxOutputTokens": request.max_output_tokens });
    if generation != Generation::Early {
        config["thinkingConfig"] = json!({ "includeThoughts": true });
    }
    for (name, value) in extra {
        match (name.as_str(), value) {
            ("generationConfig", Value::Object(set)) => {
                for (name, value) in set {
                    config[name] = value.clone();
                }
            }
            _ => {
                body.field(name, value);
            }
        }
    }
    body.field("generationConfig", &config);
    body
}

/// What depends on how new a model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Before 2.5: it does not think.
    Early,
    /// 2.5: it thinks.
    Middle,
    /// 3 and later, and whatever is not known: every step's first call bears a signature.
    Signed,
}

impl Generation {
    pub(super) fn of(id: &str) -> Self {
        let id = id.rsplit('/').next().unwrap_or(id);
        match id {
            id if id.starts_with("gemini-1") || id.starts_with("gemini-2.0") => Self::Early,
            id if id.starts_with("gemini-2") => Self::Middle,
            // Open models behind the same address do not think aloud.
            id if !id.starts_with("gemini-") => Self::Early,
            _ => Self::Signed,
        }
    }
}

/// One message as one content, or nothing.
pub(super) fn render(message: &Message, style: &Style, generation: Generation, out: &mut Vec<u8>) {
    let (role, parts) = match message {
        Message::User(parts) => ("user", user_parts(parts, &style.media.takes(TAKES))),
        Message::Assistant(parts) => ("model", model_parts(parts, generation, &style.origin)),
    };
    // A content without parts is refused.
    if !parts.is_empty() {
        let content = format!("{{\"role\":\"{role}\",\"parts\":[{}]}}", parts.join(","));
        out.extend_from_slice(content.as_bytes());
    }
}

fn user_parts(parts: &[UserPart], takes: &MediaLimits) -> Vec<String> {
    let mut out = Vec::new();
    // Media of results come after all of the results: as many of these as there were calls must stand together.
    let mut media = Vec::new();
    let mut rest = Vec::new();
    for part in parts {
        match part {
            UserPart::Result(result) => out.push(function_response(result, takes, &mut media)),
            UserPart::Text(text) if text.is_empty() => {}
            UserPart::Text(text) => rest.push(json!({ "text": text }).to_string()),
            UserPart::Media(shown) => rest.push(inline(shown, takes)),
        }
    }
    out.append(&mut media);
    out.append(&mut rest);
    if out.is_empty() {
        out.push(json!({ "text": NO_MESSAGE }).to_string());
    }
    out
}

fn function_response(result: &ToolResult, takes: &MediaLimits, media: &mut Vec<String>) -> String {
    let mut texts = Vec::new();
    for part in &result.parts {
        match part {
            ResultPart::Text(text) => texts.push(text.as_str()),
            ResultPart::Media(shown) => {
                let label = format!("[from the result of {} ({})]", result.name, wire_id(&result.call_id));
                media.push(json!({ "text": label }).to_string());
                media.push(inline(shown, takes));
            }
        }
    }
    let text = if texts.is_empty() { NO_OUTPUT.to_owned() } else { texts.join("\n") };
    // The two names that the API knows for what came of a call.
    let key = if result.is_error { "error" } else { "output" };
    json!({
        "functionResponse": {
            "id": wire_id(&result.call_id),
            "name": function_name(&result.name),
            "response": { key: text },
        }
    })
    .to_string()
}

fn inline(media: &Media, takes: &MediaLimits) -> String {
    let part = match takes.show(media) {
        MediaForm::Image { mime, base64 } => json!({ "inlineData": { "mimeType": mime, "data": base64 } }),
        MediaForm::Pdf { base64 } => json!({ "inlineData": { "mimeType": "application/pdf", "data": base64 } }),
        MediaForm::LeftOut(words) => json!({ "text": words }),
    };
    part.to_string()
}

/// The name of a call as it was declared, or one that is taken.
fn function_name(name: &str) -> Cow<'_, str> {
    let dialect = &super::DIALECT;
    if is_word(name, dialect.longest_name, dialect.also_in_names) && begins_with_letter(name) {
        return Cow::Borrowed(name);
    }
    let name = wire_name(name, dialect.longest_name);
    if begins_with_letter(&name) {
        name
    } else {
        wire_name(&format!("_{name}"), dialect.longest_name).into_owned().into()
    }
}

/// The parts of an answer; none if it holds nothing that was said or called: thoughts alone are no content.
fn model_parts(parts: &[AnswerPart], generation: Generation, origin: &Origin) -> Vec<String> {
    let said = |part: &AnswerPart| match part {
        AnswerPart::Text(text) => !text.trim().is_empty(),
        AnswerPart::Call(_) => true,
        AnswerPart::Opaque(opaque) => origin.own(opaque).is_some_and(|raw| !is_thought(raw.get())),
    };
    // What it thought after the last of that was cut off before it led to anything. A signature belongs to what it signs.
    let end = parts.iter().rposition(|part| said(part) || is_signature(part, origin)).map_or(0, |at| at + 1);
    if !parts.iter().any(said) {
        return Vec::new();
    }
    let parts = &parts[..end];
    let mut out = Vec::new();
    // A signature stands before the part that it belongs to.
    let mut signature: Option<String> = None;
    let foreign = !parts.iter().any(|part| matches!(part, AnswerPart::Opaque(opaque) if origin.own(opaque).is_some()));
    let mut unsigned = foreign && generation == Generation::Signed;
    for part in parts {
        match part {
            AnswerPart::Opaque(opaque) => {
                let Some(raw) = origin.own(opaque) else { continue };
                out.extend(signature.take().map(|signature| alone(&signature)));
                match only_signature(raw.get()) {
                    Some(of_next) => signature = Some(of_next),
                    None => out.push(raw.get().to_owned()),
                }
            }
            AnswerPart::Text(text) if text.is_empty() && signature.is_none() => {}
            AnswerPart::Text(text) => {
                let signed = signature.take().map(|signature| format!(",\"{SIGNATURE}\":{signature}"));
                out.push(format!("{{\"text\":{}{}}}", text_of(text), signed.unwrap_or_default()));
            }
            AnswerPart::Call(call) => {
                let stand_in = || std::mem::take(&mut unsigned).then(|| text_of(NO_SIGNATURE));
                let signed = signature.take().or_else(stand_in).map(|raw| format!(",\"{SIGNATURE}\":{raw}"));
                out.push(format!(
                    "{{\"functionCall\":{{\"id\":{},\"name\":{},\"args\":{}}}{}}}",
                    text_of(&wire_id(&call.id)),
                    text_of(&function_name(&call.name)),
                    arguments_object(&call.arguments),
                    signed.unwrap_or_default(),
                ));
            }
        }
    }
    out.extend(signature.map(|signature| alone(&signature)));
    out
}

/// Whether a part is a thought, or nothing but a signature.
fn is_thought(raw: &str) -> bool {
    let fields = Fields::of(raw).unwrap_or_default();
    fields.raw("thought") == Some("true")
        || fields.iter().all(|(name, value)| name == SIGNATURE || (name == "text" && value == "\"\""))
}

fn is_signature(part: &AnswerPart, origin: &Origin) -> bool {
    let AnswerPart::Opaque(opaque) = part else { return false };
    origin.own(opaque).is_some_and(|raw| Fields::of(raw.get()).is_ok_and(|fields| fields.raw(SIGNATURE).is_some()))
}

/// The signature as it was written, if a part is nothing else.
fn only_signature(raw: &str) -> Option<String> {
    let fields: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_str(raw).ok()?;
    if fields.len() != 1 {
        return None;
    }
    fields.get(SIGNATURE).map(|signature| signature.get().to_owned())
}

fn alone(signature: &str) -> String {
    format!("{{\"text\":\"\",\"{SIGNATURE}\":{signature}}}")
}

#[cfg(test)]
mod tests {
    use crate::gemini::{ENDPOINT, GenerateContent};
    use crate::protocol::Quirks;
    use crate::wire::prefix;

    #[test]
    fn check_6_3_a_longer_request_begins_with_the_bytes_of_the_shorter() {
        for id in ["gemini-2.0-flash", "gemini-2.5-pro", "gemini-3.6-flash"] {
            let name = format!("gemini/{id}").parse().expect("a name");
            let protocol = GenerateContent::new(&name).expect("a model");
            prefix::holds(&ENDPOINT, &protocol, id, Quirks::default());
        }
    }
}
