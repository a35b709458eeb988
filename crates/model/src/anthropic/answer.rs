//! Answers of the Messages API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::{Fault, Flow, ProviderMessage, Reader};
use crate::wire::{self, Fields, Ids, Origin};
use crate::{Answer, AnswerPart, Call, Delta, DeltaSink, Failure, Stop, Usage};

/// The end of an answer for which there was not room enough.
const WINDOW_EXCEEDED: &str = "model_context_window_exceeded";

const WINDOW_FULL: &str = "the answer filled what was left of the model's window: it is the conversation that is too long, not \
`max_output_tokens` that is too small";

/// Puts one answer together.
#[derive(Debug)]
pub(super) struct AnthropicReader {
    origin: Origin,
    ids: Ids,
    blocks: BTreeMap<u64, Block>,
    stop: Option<String>,
    usage: Option<MessageUsage>,
    ended: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    index: Option<u64>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "wire::lenient")]
    usage: Option<MessageUsage>,
}

/// A message, whole or at the start of a stream.
#[derive(Deserialize)]
struct WholeMessage<'a> {
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "wire::lenient")]
    usage: Option<MessageUsage>,
}

/// The tokens of a message as Anthropic counts them.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct MessageUsage {
    #[serde(default, deserialize_with = "wire::lenient_count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_count")]
    cache_creation_input_tokens: Option<u64>,
}

impl MessageUsage {
    /// Later counts are sums so far; what they leave out stands.
    fn with(self, later: Self) -> Self {
        Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation_input_tokens: later.cache_creation_input_tokens.or(self.cache_creation_input_tokens),
        }
    }
}

/// A content block that is still growing.
#[derive(Debug)]
struct Block {
    kind: String,
    start: Box<RawValue>,
    fields: Fields,
    /// Strings that deltas add to, by the name of the field.
    grown: Vec<(String, String)>,
    input: String,
    citations: Vec<String>,
    other: bool,
}

impl AnthropicReader {
    pub fn new(origin: Origin, ids: Ids) -> Self {
        Self { origin, ids, blocks: BTreeMap::new(), stop: None, usage: None, ended: false }
    }

    fn begin(&mut self, index: u64, raw: &RawValue, heard: DeltaSink<'_>) -> Result<(), Fault> {
        let fields = Fields::of(raw.get()).map_err(bad)?;
        let kind = fields.text("type").ok_or_else(|| Fault::invalid("a content block has no type"))?;
        match kind.as_str() {
            "text" => tell(&fields.text("text").unwrap_or_default(), Delta::Text, heard),
            "thinking" => tell(&fields.text("thinking").unwrap_or_default(), Delta::Thinking, heard),
            "tool_use" => heard(Delta::Call { name: &fields.text("name").unwrap_or_default() }),
            _ => {}
        }
        let block = Block {
            kind,
            start: raw.to_owned(),
            fields,
            grown: Vec::new(),
            input: String::new(),
            citations: Vec::new(),
            other: false,
        };
        if self.blocks.insert(index, block).is_some() {
            return Err(Fault::invalid(format!("content block {index} began twice")));
        }
        Ok(())
    }

    fn grow(&mut self, index: u64, delta: &RawValue, heard: DeltaSink<'_>) -> Result<(), Fault> {
        let unknown = || Fault::invalid(format!("content block {index} grows and never began"));
        let block = self.blocks.get_mut(&index).ok_or_else(unknown)?;
        for (name, value) in Fields::of(delta.get()).map_err(bad)?.iter() {
            match (name, serde_json::from_str::<Value>(value).map_err(bad)?) {
                ("type", _) => {}
                ("partial_json", Value::String(text)) => block.input.push_str(&text),
                ("citation", _) => block.citations.push(value.to_owned()),
                (_, Value::String(text)) => {
                    match (block.kind.as_str(), name) {
                        ("text", "text") => tell(&text, Delta::Text, heard),
                        ("thinking", "thinking") => tell(&text, Delta::Thinking, heard),
                        _ => {}
                    }
                    match block.grown.iter_mut().find(|(known, _)| known == name) {
                        Some((_, so_far)) => so_far.push_str(&text),
                        None => block.grown.push((name.to_owned(), text)),
                    }
                }
                _ => {
                    block.fields.set(name, value.to_owned());
                    block.other = true;
                }
            }
        }
        Ok(())
    }
}

impl Block {
    /// A string field: what it began with and what came.
    fn string(&self, name: &str) -> String {
        let grown = self.grown.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text);
        self.fields.text(name).unwrap_or_default() + grown
    }

    fn finish(self, origin: &Origin) -> AnswerPart {
        match self.kind.as_str() {
            "text" => AnswerPart::Text(self.string("text")),
            "tool_use" => AnswerPart::Call(Call {
                id: self.string("id"),
                name: self.string("name"),
                arguments: if self.input.is_empty() {
                    self.fields.raw("input").unwrap_or_default().to_owned()
                } else {
                    self.input
                },
            }),
            _ => origin.opaque(self.whole()),
        }
    }

    /// The block as the provider would have sent it in one piece: to the byte as it came, if it did.
    fn whole(self) -> String {
        if self.grown.is_empty() && self.input.is_empty() && self.citations.is_empty() && !self.other {
            return self.start.get().to_owned();
        }
        let strings: Vec<_> = self.grown.iter().map(|(name, _)| (name.clone(), self.string(name))).collect();
        let mut fields = self.fields;
        for (name, text) in strings {
            fields.set(&name, wire::json(&text));
        }
        if !self.input.is_empty() {
            fields.set("input", wire::arguments_object(&self.input).into_owned());
        }
        if !self.citations.is_empty() {
            fields.set("citations", format!("[{}]", self.citations.join(",")));
        }
        fields.to_json()
    }
}

impl Reader for AnthropicReader {
    fn event(&mut self, _name: Option<&str>, data: &str, heard: DeltaSink<'_>) -> Result<Flow, Fault> {
        let event: Event<'_> = serde_json::from_str(data).map_err(bad)?;
        let index = || event.index.ok_or_else(|| Fault::invalid(format!("the event {} has no index", event.kind)));
        match event.kind.as_str() {
            "message_start" => {
                let message = event.message.ok_or_else(|| Fault::invalid("message_start has no message"))?;
                let message: WholeMessage<'_> = serde_json::from_str(message.get()).map_err(bad)?;
                self.usage = message.usage;
            }
            "content_block_start" => {
                let block = event.content_block.ok_or_else(|| Fault::invalid("content_block_start has no block"))?;
                self.begin(index()?, block, heard)?;
            }
            "content_block_delta" => {
                let delta = event.delta.ok_or_else(|| Fault::invalid("content_block_delta has no delta"))?;
                self.grow(index()?, delta, heard)?;
            }
            "message_delta" => {
                if let Some(delta) = event.delta {
                    let delta: WholeMessage<'_> = serde_json::from_str(delta.get()).map_err(bad)?;
                    self.stop = delta.stop_reason.or(self.stop.take());
                }
                if let Some(later) = event.usage {
                    self.usage = Some(self.usage.unwrap_or_default().with(later));
                }
            }
            "message_stop" => {
                self.ended = true;
                return Ok(Flow::Done);
            }
            "error" => return Err(said(data)),
            // `ping`, `content_block_stop`, and whatever is added to the protocol.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, heard: DeltaSink<'_>) -> Result<(), Fault> {
        let value: Value = serde_json::from_str(body).map_err(bad)?;
        if value.get("error").is_some() {
            return Err(ProviderMessage::of_value(value).fault(None));
        }
        let message: WholeMessage<'_> = serde_json::from_str(body).map_err(bad)?;
        for (index, block) in (0..).zip(message.content.unwrap_or_default()) {
            self.begin(index, block, heard)?;
        }
        self.stop = message.stop_reason;
        self.usage = message.usage;
        self.ended = true;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Answer, Fault> {
        if !self.ended {
            return Err(Fault::cut_off());
        }
        let mut warnings = Vec::new();
        let mut parts: Vec<AnswerPart> = self.blocks.into_values().map(|block| block.finish(&self.origin)).collect();
        // A call that was cut off before its first argument begins with `{}`, too. Nobody shall take that for a call
        // without arguments.
        if matches!(self.stop.as_deref(), Some("max_tokens" | WINDOW_EXCEEDED))
            && let Some(AnswerPart::Call(call)) = parts.last_mut()
            && call.arguments == "{}"
        {
            call.arguments.clear();
        }
        parts.retain(|part| !matches!(part, AnswerPart::Text(text) if text.is_empty()));
        self.ids.settle(&mut parts, &mut warnings);
        let stop = match self.stop.as_deref() {
            Some("end_turn" | "stop_sequence") => Stop::EndTurn,
            Some("tool_use") => Stop::ToolUse,
            Some("max_tokens") => Stop::MaxTokens,
            Some(full @ WINDOW_EXCEEDED) => {
                let said = |part: &AnswerPart| !matches!(part, AnswerPart::Opaque(_));
                if !parts.iter().any(said) {
                    // Nothing was said yet: a shorter conversation leaves room for it.
                    return Err(Fault::new(Failure::ContextOverflow, WINDOW_FULL));
                }
                warnings.push(WINDOW_FULL.to_owned());
                Stop::Other(full.to_owned())
            }
            Some("refusal") => Stop::Refusal,
            Some(other) => Stop::Other(other.to_owned()),
            None => return Err(Fault::invalid("the answer does not say why it stopped")),
        };
        let usage = self.usage.map(|counted| Usage {
            input: counted.input_tokens.unwrap_or(0),
            output: counted.output_tokens.unwrap_or(0),
            cache_read: counted.cache_read_input_tokens.unwrap_or(0),
            cache_write: counted.cache_creation_input_tokens.unwrap_or(0),
        });
        Ok(Answer { parts, stop, usage, warnings })
    }
}

fn tell<'a>(text: &'a str, delta: impl FnOnce(&'a str) -> Delta<'a>, heard: DeltaSink<'_>) {
    if !text.is_empty() {
        heard(delta(text));
    }
}

fn bad(error: serde_json::Error) -> Fault {
    Fault::invalid(format!("an event is not what the protocol says ({error})"))
}

fn said(data: &str) -> Fault {
    ProviderMessage::of_body(data).fault(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::cuts::same_however_cut;

    #[test]
    fn the_answer_is_the_same_however_its_bytes_are_cut() {
        let stream = concat!(
            "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5}}}\r\n\r\n",
            ": a comment\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"größer 🦀\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}}\r\r",
            "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"日\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\n",
            "data:  \"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"本語\"}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"read\",\"input\":{}}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"p\\\":\\\"é\\\"}\"}}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
        );
        same_however_cut(stream, || AnthropicReader::new(Origin::nobody("w"), Ids::default()));
    }
}
