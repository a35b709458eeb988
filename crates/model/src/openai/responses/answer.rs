//! Answers of the Responses API.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::{Fault, Flow, ProviderMessage, Reader};
use crate::openai::{InputDetails, usage};
use crate::wire::{self, Fields, Ids, Origin};
use crate::{Answer, AnswerPart, Call, Delta, DeltaSink, Failure, Stop};

/// The field of an opaque part that says which phase the text after it belongs to: newer models want it back.
pub(super) const PHASE: &str = "phase_of_next_text";

/// Puts one answer together.
#[derive(Debug)]
pub(super) struct ResponsesReader {
    origin: Origin,
    ids: Ids,
    /// Finished items by their place.
    items: BTreeMap<u64, Box<RawValue>>,
    told: StreamedText,
    /// Calls that were heard of and are not whole yet.
    announced: usize,
    /// An item came without its place.
    unplaced: bool,
    end: Option<ResponseEnd>,
}

/// Text as it was heard on the way. It comes in pieces, as a part, in an item and in the response at the end, and some
/// servers leave some of these out: whatever says more than was heard is heard from there on. The order tells what is
/// meant, not the numbers: not all servers give them.
#[derive(Debug, Default)]
struct StreamedText {
    text: String,
    /// Where the text begins that is of no whole part, and of no whole item.
    part: usize,
    item: usize,
}

impl StreamedText {
    fn piece(&mut self, text: &str, heard: DeltaSink<'_>) {
        if !text.is_empty() {
            self.text.push_str(text);
            heard(Delta::Text(text));
        }
    }

    fn part(&mut self, text: &str, heard: DeltaSink<'_>) {
        self.part = self.whole(self.part, text, heard);
    }

    fn item(&mut self, text: &str, heard: DeltaSink<'_>) {
        self.item = self.whole(self.item, text, heard);
        self.part = self.part.max(self.item);
    }

    /// Hears what is left of a text that begins here. Where it ends.
    fn whole(&mut self, begin: usize, text: &str, heard: DeltaSink<'_>) -> usize {
        let so_far = &self.text[begin..];
        if let Some(rest) = so_far.strip_prefix(text) {
            // A blank that the whole leaves out is no beginning of the next.
            return if rest.trim().is_empty() { self.text.len() } else { begin + text.len() };
        }
        // Pieces with other words stand: what was heard cannot be taken back.
        if let Some(rest) = text.strip_prefix(so_far) {
            self.piece(rest, heard);
        }
        self.text.len()
    }
}

/// How a response ended.
#[derive(Debug, Default)]
struct ResponseEnd {
    status: String,
    reason: Option<String>,
    usage: Option<ResponseUsage>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, deserialize_with = "wire::lenient")]
    output_index: Option<u64>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    delta: Option<Value>,
    text: Option<Value>,
    refusal: Option<Value>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

/// The response itself, whole.
#[derive(Deserialize)]
struct Response<'a> {
    status: Option<String>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default, deserialize_with = "wire::lenient")]
    incomplete_details: Option<IncompleteDetails>,
    error: Option<Value>,
    #[serde(default, deserialize_with = "wire::lenient")]
    usage: Option<ResponseUsage>,
}

/// Why a response is incomplete.
#[derive(Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

/// The tokens of a response as OpenAI counts them.
#[derive(Debug, Clone, Copy, Deserialize)]
struct ResponseUsage {
    #[serde(default, deserialize_with = "wire::lenient_count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient")]
    input_tokens_details: Option<InputDetails>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    content: Option<Vec<Value>>,
    phase: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

impl ResponsesReader {
    pub fn new(origin: Origin, ids: Ids) -> Self {
        Self {
            origin,
            ids,
            items: BTreeMap::new(),
            told: StreamedText::default(),
            announced: 0,
            unplaced: false,
            end: None,
        }
    }

    /// The response at its end. Items that no event brought are taken from it; their places.
    fn end(&mut self, response: &str) -> Result<Vec<u64>, Fault> {
        let response: Response<'_> = serde_json::from_str(response).map_err(bad)?;
        if let Some(error) = response.error.filter(|error| !error.is_null()) {
            return Err(ProviderMessage::of_value(serde_json::json!({ "error": error })).fault(None));
        }
        let mut new = Vec::new();
        // Whose items have no places cannot be told which of these came before: a call must not run twice.
        let known = self.unplaced && !self.items.is_empty();
        for (place, item) in (0..).zip(response.output.filter(|_| !known).unwrap_or_default()) {
            if let Entry::Vacant(vacant) = self.items.entry(place) {
                vacant.insert(item.to_owned());
                new.push(place);
            }
        }
        self.end = Some(ResponseEnd {
            status: response.status.unwrap_or_default(),
            reason: response.incomplete_details.and_then(|why| why.reason),
            usage: response.usage,
        });
        Ok(new)
    }

    /// Hears what an item says that was not heard yet.
    fn hear(&mut self, place: u64, heard: DeltaSink<'_>) -> Result<(), Fault> {
        let Some(item) = self.items.get(&place) else { return Ok(()) };
        for part in parts(item, &self.origin).map_err(bad)?.0 {
            match &part {
                AnswerPart::Text(text) => self.told.item(text, heard),
                AnswerPart::Call(_) if self.announced > 0 => self.announced -= 1,
                AnswerPart::Call(call) => heard(Delta::Call { name: &call.name }),
                AnswerPart::Opaque(_) => {}
            }
        }
        Ok(())
    }
}

impl Reader for ResponsesReader {
    fn event(&mut self, _name: Option<&str>, data: &str, heard: DeltaSink<'_>) -> Result<Flow, Fault> {
        if data.trim() == "[DONE]" {
            return Ok(Flow::Done);
        }
        let event: Event<'_> = serde_json::from_str(data).map_err(bad)?;
        let delta = words(event.delta.as_ref());
        match event.kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => self.told.piece(delta, heard),
            // A part of an item that is whole was heard with it.
            "response.output_text.done" | "response.refusal.done"
                if event.output_index.is_none_or(|place| !self.items.contains_key(&place)) =>
            {
                self.told.part(words(event.text.as_ref().or(event.refusal.as_ref())), heard);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" if !delta.is_empty() => {
                heard(Delta::Thinking(delta));
            }
            "response.output_item.added" => {
                if let Some(item) = event.item.and_then(|item| serde_json::from_str::<Item>(item.get()).ok())
                    && item.kind == "function_call"
                {
                    self.announced += 1;
                    heard(Delta::Call { name: &item.name.unwrap_or_default() });
                }
            }
            "response.output_item.done" => {
                let item = event.item.ok_or_else(|| Fault::invalid("output_item.done has no item"))?;
                // Who gives no place sends them in their order.
                self.unplaced |= event.output_index.is_none();
                let next = || self.items.last_key_value().map_or(0, |(last, _)| last + 1);
                let place = event.output_index.unwrap_or_else(next);
                if self.items.insert(place, item.to_owned()).is_none() {
                    self.hear(place, heard)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = event.response.ok_or_else(|| Fault::invalid("the last event has no response"))?;
                let new = self.end(response.get())?;
                if event.kind == "response.failed" {
                    return Err(Fault::new(Failure::Server, "the provider failed and did not say why"));
                }
                new.into_iter().try_for_each(|place| self.hear(place, heard))?;
                return Ok(Flow::Done);
            }
            "error" => return Err(ProviderMessage::of_body(data).fault(None)),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, heard: DeltaSink<'_>) -> Result<(), Fault> {
        let new = self.end(body)?;
        if self.end.as_ref().is_none_or(|end| end.status.is_empty()) {
            return Err(Fault::invalid("the answer is no response"));
        }
        new.into_iter().try_for_each(|place| self.hear(place, heard))
    }

    fn finish(self: Box<Self>) -> Result<Answer, Fault> {
        let end = self.end.ok_or_else(Fault::cut_off)?;
        let mut all = Vec::new();
        let mut refused = false;
        for item in self.items.values() {
            let (parts, refusal) = parts(item, &self.origin).map_err(bad)?;
            all.extend(parts);
            refused |= refusal;
        }
        // The servers' form of "no arguments"; of an answer that was cut off nobody knows.
        if end.status == "completed" {
            for part in &mut all {
                if let AnswerPart::Call(call) = part
                    && call.arguments.trim().is_empty()
                {
                    call.arguments = "{}".to_owned();
                }
            }
        }
        let mut warnings = Vec::new();
        if all.is_empty() && !self.told.text.is_empty() {
            warnings.push("the answer's text came in pieces only, never as an item".to_owned());
            all.push(AnswerPart::Text(self.told.text));
        }
        self.ids.settle(&mut all, &mut warnings);
        let called = all.iter().any(|part| matches!(part, AnswerPart::Call(_)));
        let stop = match (end.status.as_str(), end.reason.as_deref()) {
            ("incomplete", Some("max_output_tokens")) => Stop::MaxTokens,
            ("incomplete", Some("content_filter")) => Stop::Refusal,
            ("incomplete", reason) => Stop::Other(reason.unwrap_or("incomplete").to_owned()),
            ("completed", _) if refused => Stop::Refusal,
            ("completed", _) if called => Stop::ToolUse,
            ("completed", _) => Stop::EndTurn,
            (other, _) => Stop::Other(other.to_owned()),
        };
        let usage = end.usage.map(|counted| {
            let cached = counted.input_tokens_details.and_then(|details| details.cached_tokens);
            usage(counted.input_tokens, cached, counted.output_tokens)
        });
        Ok(Answer { parts: all, stop, usage, warnings })
    }
}

/// The parts of an item, and whether one is a refusal.
fn parts(raw: &RawValue, origin: &Origin) -> Result<(Vec<AnswerPart>, bool), serde_json::Error> {
    let kind = Fields::of(raw.get())?.text("type").unwrap_or_default();
    // Only what is read here has a shape to keep to.
    if kind != "message" && kind != "function_call" {
        return Ok((vec![origin.opaque(raw.get())], false));
    }
    let item: Item = serde_json::from_str(raw.get())?;
    if kind == "function_call" {
        let arguments = item.arguments.as_deref().map(wire::arguments_text).unwrap_or_default();
        let (id, name) = (item.call_id.unwrap_or_default(), item.name.unwrap_or_default());
        return Ok((vec![AnswerPart::Call(Call { id, name, arguments })], false));
    }
    let mut refused = false;
    let mut text = String::new();
    for content in item.content.unwrap_or_default() {
        let word = |key: &str| content.get(key).and_then(Value::as_str);
        if let Some(refusal) = word("refusal") {
            refused = true;
            text.push_str(refusal);
        }
        text.push_str(word("text").unwrap_or_default());
    }
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts
            .extend(item.phase.map(|phase| origin.opaque(format!("{{{}:{}}}", wire::json(PHASE), wire::json(&phase)))));
        parts.push(AnswerPart::Text(text));
    }
    Ok((parts, refused))
}

fn words(field: Option<&Value>) -> &str {
    field.and_then(Value::as_str).unwrap_or_default()
}

fn bad(error: serde_json::Error) -> Fault {
    Fault::invalid(format!("an event is not what the protocol says ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::cuts::same_however_cut;

    #[test]
    fn the_answer_is_the_same_however_its_bytes_are_cut() {
        let stream = concat!(
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n",
            "data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"delta\":\"größer\"}\r\n\r\n",
            "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[],\"encrypted_content\":\"eA==\"}}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"delta\":\"日本🦀\"}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"日本🦀\"}]}}\n\n",
            "data: {\"type\":\"response.output_item.added\",\"output_index\":2,\"item\":{\"type\":\"function_call\",\"name\":\"read\"}}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"output_index\":2,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"read\",\"arguments\":\"{\\\"p\\\": 1}\"}}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}}\n\n",
        );
        same_however_cut(stream, || ResponsesReader::new(Origin::nobody("w"), Ids::default()));
    }
}
