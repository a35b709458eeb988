//! Answers of Chat Completions.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::{Calls, Entry, Function};
use super::details::ReasoningDetails;
use super::text_calls;
use super::think::Splitter;
use crate::http::{Fault, Flow, ProviderMessage, Reader, StreamEnd};
use crate::openai::{InputDetails, usage};
use crate::wire::{self, Ids, Origin};
use crate::{Answer, AnswerPart, Delta, DeltaSink, Failure, Stop};

/// The field of an opaque part with thinking that stood in the text. It is kept and not sent again: the makers of such
/// models ask for histories without it.
const INLINE: &str = "inline_thinking";

/// Fields that hold reasoning as text, depending on the server. Some send the same text in two of them.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];
/// Reasoning as a list of objects, some of them signed.
const DETAILS: &str = "reasoning_details";

/// The field of an opaque part with what belongs to the call after it.
pub(super) const EXTRA: &str = "extra_content_of_next_call";

/// What an answer had besides text and calls and is sent back with it.
pub(super) const SENT_BACK: [&str; 3] = [REASONING[0], REASONING[1], DETAILS];

/// Puts one answer together.
#[derive(Debug)]
pub(super) struct ChatReader {
    origin: Origin,
    ids: Ids,
    tools: Vec<String>,
    content: Splitter,
    reasoning: [String; 2],
    details: ReasoningDetails,
    refused: bool,
    calls: Calls,
    finish: Option<String>,
    /// What was said since the end was told, or together with it.
    said_at_end: bool,
    usage: Option<CompletionUsage>,
    /// The server was asked to count, and has not shown that it does not.
    counts_expected: bool,
    /// `[DONE]`, or the whole document.
    done: bool,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default, deserialize_with = "wire::lenient")]
    usage: Option<CompletionUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Turn<'a>>,
    #[serde(borrow)]
    message: Option<Turn<'a>>,
    #[serde(default, deserialize_with = "wire::lenient_text")]
    finish_reason: Option<String>,
}

/// What a chunk adds.
#[derive(Deserialize)]
struct Turn<'a> {
    content: Option<Value>,
    #[serde(default, deserialize_with = "wire::lenient_text")]
    refusal: Option<String>,
    #[serde(default, deserialize_with = "wire::lenient_text")]
    reasoning_content: Option<String>,
    reasoning: Option<Value>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Entry<'a>>>,
    #[serde(borrow)]
    function_call: Option<Function<'a>>,
}

impl Turn<'_> {
    fn says_something(&self) -> bool {
        let words = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let content = self.content.as_ref().is_some_and(|content| match content {
            Value::String(text) => !text.is_empty(),
            other => other.is_array(),
        });
        let calls = self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty());
        content || calls || words(&self.refusal) || words(&self.reasoning_content)
    }
}

/// The tokens of a completion as the server counts them.
#[derive(Debug, Clone, Copy, Deserialize)]
struct CompletionUsage {
    #[serde(default, deserialize_with = "wire::lenient_count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient")]
    prompt_tokens_details: Option<InputDetails>,
    /// DeepSeek's word for it.
    #[serde(default, deserialize_with = "wire::lenient_count")]
    prompt_cache_hit_tokens: Option<u64>,
}

impl ChatReader {
    pub fn new(origin: Origin, ids: Ids, tools: Vec<String>) -> Self {
        Self {
            origin,
            ids,
            tools,
            content: Splitter::default(),
            reasoning: Default::default(),
            details: ReasoningDetails::default(),
            refused: false,
            calls: Calls::default(),
            finish: None,
            said_at_end: false,
            usage: None,
            counts_expected: false,
            done: false,
        }
    }

    /// The same of a server that was asked to count.
    pub fn expecting_counts(self, counts_expected: bool) -> Self {
        Self { counts_expected, ..self }
    }

    fn take(&mut self, chunk: Chunk<'_>, heard: DeltaSink<'_>) -> Result<(), Fault> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(ProviderMessage::of_value(serde_json::json!({ "error": error })).fault(None));
        }
        self.usage = chunk.usage.or(self.usage);
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            let streamed = choice.delta.is_some();
            let said = choice.delta.or(choice.message);
            let more = said.as_ref().is_some_and(Turn::says_something);
            if let Some(said) = said {
                self.hear(said, streamed, heard);
            }
            let finish = choice.finish_reason.filter(|word| !word.is_empty());
            self.said_at_end = if finish.is_some() { more } else { self.said_at_end || more };
            self.finish = finish.or(self.finish.take());
        }
        Ok(())
    }

    fn hear(&mut self, said: Turn<'_>, streamed: bool, heard: DeltaSink<'_>) {
        self.think(0, said.reasoning_content.as_deref().unwrap_or_default(), heard);
        self.think(1, said.reasoning.as_ref().and_then(Value::as_str).unwrap_or_default(), heard);
        if let Some(details) = said.reasoning_details {
            self.details.take(details, streamed);
        }
        match said.content {
            Some(Value::String(text)) => self.content.take(&text, heard),
            Some(Value::Array(pieces)) => pieces.iter().for_each(|piece| self.piece(piece, heard)),
            _ => {}
        }
        if let Some(text) = said.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.content.take(&text, heard);
        }
        for entry in said.tool_calls.into_iter().flatten().chain(said.function_call.map(Entry::from)) {
            self.calls.take(entry, &self.tools, heard);
        }
    }

    fn think(&mut self, field: usize, text: &str, heard: DeltaSink<'_>) {
        if !text.is_empty() {
            if self.reasoning[1 - field].is_empty() {
                heard(Delta::Thinking(text));
            }
            self.reasoning[field].push_str(text);
        }
    }

    /// Content as a list of parts.
    fn piece(&mut self, piece: &Value, heard: DeltaSink<'_>) {
        if let Some(text) = piece.get("text").and_then(Value::as_str) {
            self.content.take(text, heard);
        }
        for thought in piece.get("thinking").and_then(Value::as_array).into_iter().flatten() {
            self.think(0, thought.get("text").and_then(Value::as_str).unwrap_or_default(), heard);
        }
    }
}

impl Reader for ChatReader {
    fn event(&mut self, _name: Option<&str>, data: &str, heard: DeltaSink<'_>) -> Result<Flow, Fault> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(Flow::Done);
        }
        let chunk: Chunk<'_> = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            // The answer is whole: what a server adds to it is not worth losing it.
            Err(_) if self.finish.is_some() => return Ok(Flow::More),
            Err(error) => return Err(bad(error)),
        };
        self.take(chunk, heard)?;
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, heard: DeltaSink<'_>) -> Result<(), Fault> {
        let chunk: Chunk<'_> = serde_json::from_str(body).map_err(bad)?;
        if chunk.error.is_none() && chunk.choices.as_ref().is_none_or(Vec::is_empty) {
            return Err(Fault::invalid("the answer has no choices"));
        }
        self.take(chunk, heard)?;
        self.done = true;
        Ok(())
    }

    fn enough(&self) -> StreamEnd {
        match (&self.finish, self.said_at_end) {
            (None, _) => StreamEnd::No,
            (Some(_), true) => StreamEnd::Perhaps,
            (Some(_), false) if self.counts_expected && self.usage.is_none() => StreamEnd::ButCounts,
            (Some(_), false) => StreamEnd::Yes,
        }
    }

    fn finish(self: Box<Self>) -> Result<Answer, Fault> {
        if !self.done && self.finish.is_none() {
            return Err(Fault::cut_off());
        }
        if let Some(fault) = self.finish.as_deref().and_then(failed) {
            return Err(fault);
        }
        let mut warnings = Vec::new();
        let (inline, text) = self.content.finish(&|_| {});
        let mut parts = Vec::new();
        let mut opaque = |name: &str, value: String| {
            let raw = format!("{{{}:{value}}}", wire::json(name));
            parts.push(self.origin.opaque(raw));
        };
        for (name, reasoning) in REASONING.iter().zip(&self.reasoning) {
            if !reasoning.is_empty() {
                opaque(name, wire::json(reasoning));
            }
        }
        if let Some(details) = self.details.finish() {
            opaque(DETAILS, details);
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
        // A call that was cut off before its first argument is not one without arguments.
        let cut = self.finish.as_deref() == Some("length");
        for (extra, mut call) in self.calls.finish() {
            if call.arguments.trim().is_empty() && !cut {
                call.arguments = "{}".to_owned();
            }
            parts.extend(extra.map(|extra| self.origin.opaque(format!("{{{}:{extra}}}", wire::json(EXTRA)))));
            parts.push(AnswerPart::Call(call));
        }
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
        let usage = self.usage.map(|counted| {
            let cached = counted.prompt_tokens_details.and_then(|details| details.cached_tokens);
            let cached = cached.or(counted.prompt_cache_hit_tokens);
            usage(counted.prompt_tokens, cached, counted.completion_tokens)
        });
        Ok(Answer { parts, stop, usage, warnings })
    }
}

/// Ends that are none: the server gave up in the middle, and the same request may go well.
fn failed(finish: &str) -> Option<Fault> {
    let failure = match finish {
        "error" | "network_error" => Failure::Server,
        "insufficient_system_resource" => Failure::Overloaded,
        _ => return None,
    };
    Some(Fault::new(failure, format!("the provider broke the answer off ({finish}); nothing of it is used")))
}

fn bad(error: serde_json::Error) -> Fault {
    Fault::invalid(format!("a chunk is not what the protocol says ({error})"))
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;
    use crate::http::cuts::{read, same_however_cut, slowly};

    #[test]
    fn the_answer_is_the_same_however_its_bytes_are_cut() {
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
        same_however_cut(stream, || ChatReader::new(Origin::nobody("w"), Ids::default(), vec!["read".to_owned()]));
    }

    /// Some gateways write the end into every piece: a pause after one cuts nothing off.
    #[tokio::test(start_paused = true)]
    async fn an_end_in_every_piece_is_not_the_end() {
        let pieces = ["first ", "second"].map(|text| {
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\n")
        });
        let reader = ChatReader::new(Origin::nobody("w"), Ids::default(), Vec::new());
        let answer = read(slowly(pieces.map(|piece| (5, piece))), reader).await;
        assert_eq!(answer.text(), "first second");
    }

    /// Counts of a server that was asked for them are waited for; nobody waits long for counts that nobody promised.
    #[tokio::test(start_paused = true)]
    async fn counts_that_come_late_are_counted_where_they_were_asked_for() {
        for (expected, counted) in [(true, Some(7)), (false, None)] {
            let end = r#"data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n"#;
            let end = end.replace("\\n", "\n");
            let counts =
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":7}}\n\n".to_owned();
            let source = slowly([(0, end), (20, counts)]).chain(futures_util::stream::pending()).boxed();
            let reader = ChatReader::new(Origin::nobody("w"), Ids::default(), Vec::new()).expecting_counts(expected);
            let before = tokio::time::Instant::now();
            let answer = read(source, reader).await;
            assert_eq!(answer.text(), "hi");
            assert_eq!(answer.usage.map(|usage| usage.output), counted, "expected: {expected}");
            assert!(before.elapsed().as_secs() <= 22, "{:?}", before.elapsed());
        }
    }
}
