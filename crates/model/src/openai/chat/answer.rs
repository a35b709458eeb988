//! Answers of Chat Completions.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::WIRE;
use super::calls::{Calls, Entry};
use super::text_calls;
use super::think::Splitter;
use crate::http::{Fault, Flow, Reader, Said};
use crate::wire::{self, Ids};
use crate::{Answer, AnswerPart, Delta, Heard, Opaque, Stop, Usage};

/// The field of an opaque part with thinking that stood in the text. It is kept and not sent again: the makers of such
/// models ask for histories without it.
const INLINE: &str = "inline_thinking";

/// Fields that hold reasoning as text, depending on the server. Some send the same text in two of them.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];
/// Reasoning as a list of objects, some of them signed.
const DETAILS: &str = "reasoning_details";

/// What an answer had besides text and calls and is sent back with it.
pub(super) const SENT_BACK: [&str; 3] = [REASONING[0], REASONING[1], DETAILS];

/// Puts one answer together.
#[derive(Debug, Default)]
pub(super) struct ChatReader {
    ids: Ids,
    tools: Vec<String>,
    content: Splitter,
    reasoning: [String; 2],
    details: Vec<String>,
    refused: bool,
    calls: Calls,
    finish: Option<String>,
    usage: Option<Counted>,
    /// `[DONE]`, or the whole document.
    done: bool,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Counted>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Turn<'a>>,
    #[serde(borrow)]
    message: Option<Turn<'a>>,
    finish_reason: Option<String>,
}

/// What a chunk adds.
#[derive(Deserialize)]
struct Turn<'a> {
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<Value>,
    #[serde(borrow)]
    reasoning_details: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Entry<'a>>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Counted {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<Details>,
    /// DeepSeek's word for it.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl ChatReader {
    pub fn new(ids: Ids, tools: Vec<String>) -> Self {
        Self { ids, tools, ..Self::default() }
    }

    fn take(&mut self, chunk: Chunk<'_>, heard: Heard<'_>) -> Result<(), Fault> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Said::of_value(serde_json::json!({ "error": error })).fault(None));
        }
        self.usage = chunk.usage.or(self.usage);
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index != 0 {
                continue;
            }
            if let Some(said) = choice.delta.or(choice.message) {
                self.hear(said, heard);
            }
            self.finish = choice.finish_reason.filter(|word| !word.is_empty()).or(self.finish.take());
        }
        Ok(())
    }

    fn hear(&mut self, said: Turn<'_>, heard: Heard<'_>) {
        self.think(0, said.reasoning_content.as_deref().unwrap_or_default(), heard);
        self.think(1, said.reasoning.as_ref().and_then(Value::as_str).unwrap_or_default(), heard);
        self.details.extend(said.reasoning_details.into_iter().flatten().map(|detail| detail.get().to_owned()));
        match said.content {
            Some(Value::String(text)) => self.content.take(&text, heard),
            Some(Value::Array(pieces)) => pieces.iter().for_each(|piece| self.piece(piece, heard)),
            _ => {}
        }
        if let Some(text) = said.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.content.take(&text, heard);
        }
        for entry in said.tool_calls.into_iter().flatten() {
            self.calls.take(entry, heard);
        }
    }

    fn think(&mut self, field: usize, text: &str, heard: Heard<'_>) {
        if !text.is_empty() {
            if self.reasoning[1 - field].is_empty() {
                heard(Delta::Thinking(text));
            }
            self.reasoning[field].push_str(text);
        }
    }

    /// Content as a list of parts.
    fn piece(&mut self, piece: &Value, heard: Heard<'_>) {
        if let Some(text) = piece.get("text").and_then(Value::as_str) {
            self.content.take(text, heard);
        }
        for thought in piece.get("thinking").and_then(Value::as_array).into_iter().flatten() {
            self.think(0, thought.get("text").and_then(Value::as_str).unwrap_or_default(), heard);
        }
    }
}

impl Reader for ChatReader {
    fn event(&mut self, _name: Option<&str>, data: &str, heard: Heard<'_>) -> Result<Flow, Fault> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(Flow::Done);
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(bad)?;
        self.take(chunk, heard)?;
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, heard: Heard<'_>) -> Result<(), Fault> {
        let chunk: Chunk<'_> = serde_json::from_str(body).map_err(bad)?;
        if chunk.error.is_none() && chunk.choices.as_ref().is_none_or(Vec::is_empty) {
            return Err(Fault::invalid("the answer has no choices"));
        }
        self.take(chunk, heard)?;
        self.done = true;
        Ok(())
    }

    fn enough(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self) -> Result<Answer, Fault> {
        if !self.done && self.finish.is_none() {
            return Err(Fault::cut_off());
        }
        let mut warnings = Vec::new();
        let (inline, text) = self.content.finish(&|_| {});
        let mut parts = Vec::new();
        let mut opaque = |name: &str, value: String| {
            let raw = format!("{{{}:{value}}}", wire::json(name));
            parts.push(AnswerPart::Opaque(Opaque { wire: WIRE.to_owned(), raw }));
        };
        for (name, reasoning) in REASONING.iter().zip(&self.reasoning) {
            if !reasoning.is_empty() {
                opaque(name, wire::json(reasoning));
            }
        }
        if !self.details.is_empty() {
            opaque(DETAILS, format!("[{}]", self.details.join(",")));
        }
        if !inline.is_empty() {
            opaque(INLINE, wire::json(&inline));
        }
        if let Some(way) = text_calls::found(&text, &self.tools) {
            warnings.push(format!(
                "the answer holds a call written as text ({way}); it was not run. The server does not know the model's format of calls: switch its tool calling on (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice and --tool-call-parser), or take another model"
            ));
        }
        if !text.is_empty() {
            parts.push(AnswerPart::Text(text));
        }
        let called = !self.calls.is_empty();
        parts.extend(self.calls.finish().map(AnswerPart::Call));
        self.ids.settle(&mut parts, &mut warnings);

        let stop = match self.finish.as_deref() {
            _ if self.refused => Stop::Refusal,
            Some("length") => Stop::MaxTokens,
            Some("content_filter") => Stop::Refusal,
            Some("tool_calls" | "function_call") if called => Stop::ToolUse,
            Some("tool_calls" | "function_call") => {
                warnings.push("the answer was to end with calls and has none".to_owned());
                Stop::EndTurn
            }
            Some("stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn") | None => {
                if called && self.finish.is_some() {
                    warnings.push("the answer said that it had ended, and holds calls: they are taken".to_owned());
                }
                if self.finish.is_none() {
                    warnings.push("the answer does not say why it stopped".to_owned());
                }
                if called { Stop::ToolUse } else { Stop::EndTurn }
            }
            Some(other) => Stop::Other(other.to_owned()),
        };
        if self.usage.is_none() {
            warnings.push("the server did not count the tokens".to_owned());
        }
        let usage = self.usage.map(|counted| {
            let cached = counted.prompt_tokens_details.and_then(|details| details.cached_tokens);
            let cached = cached.or(counted.prompt_cache_hit_tokens).unwrap_or(0).min(counted.prompt_tokens);
            Usage {
                input: counted.prompt_tokens - cached,
                output: counted.completion_tokens,
                cache_read: cached,
                cache_write: 0,
            }
        });
        Ok(Answer { parts, stop, usage, warnings })
    }
}

fn bad(error: serde_json::Error) -> Fault {
    Fault::invalid(format!("a chunk is not what the protocol says ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::cuts::same_however_cut;

    #[test]
    fn issue5_the_answer_is_the_same_however_its_bytes_are_cut() {
        let stream = concat!(
            ": ping\r\n\r\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":null}}]}\r\n\r\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"größer\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<thi\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"nk>🦀</think>日本\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"read\",\"arguments\":\"\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"p\\\":\\\"é\\\"}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\n",
            "data: [DONE]",
        );
        same_however_cut(stream, || ChatReader::new(Ids::default(), vec!["read".to_owned()]));
    }
}
