//! What comes from Gemini, put together.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::request::SIGNATURE;
use crate::http::{Fault, Flow, ProviderMessage, Reader, StreamEnd};
use crate::wire::{self, Ids, Origin, json};
use crate::{Answer, AnswerPart, Call, Delta, DeltaSink, Failure, Stop, Usage};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default, deserialize_with = "wire::lenient")]
    prompt_feedback: Option<PromptFeedback>,
    #[serde(default, deserialize_with = "wire::lenient")]
    usage_metadata: Option<UsageMetadata>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(default, deserialize_with = "wire::lenient_text")]
    finish_reason: Option<String>,
    #[serde(default, deserialize_with = "wire::lenient_text")]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    #[serde(default, deserialize_with = "wire::lenient_text")]
    block_reason: Option<String>,
    #[serde(default, deserialize_with = "wire::lenient_text")]
    block_reason_message: Option<String>,
}

/// Every chunk has the count so far.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageMetadata {
    #[serde(default, deserialize_with = "wire::lenient_count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_count")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_count")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_count")]
    thoughts_token_count: Option<u64>,
}

impl UsageMetadata {
    fn all(&self) -> [u64; 5] {
        [
            self.prompt_token_count,
            self.cached_content_token_count,
            self.tool_use_prompt_token_count,
            self.candidates_token_count,
            self.thoughts_token_count,
        ]
        .map(Option::unwrap_or_default)
    }
}

/// One part of an answer as Gemini sends it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    text: Option<String>,
    #[serde(default, deserialize_with = "wire::lenient")]
    thought: Option<bool>,
    #[serde(borrow)]
    thought_signature: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(default, deserialize_with = "wire::lenient_text")]
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

/// Ends that say that the model wrote a call which its own provider could not read. It seldom does so twice.
const MALFORMED: [&str; 3] = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"];

/// Hears one answer.
pub(super) struct GeminiReader {
    origin: Origin,
    ids: Ids,
    parts: Vec<AnswerPart>,
    /// What more of the same can be put to.
    open: OpenPart,
    stop: Option<Stop>,
    /// What was said since the end was told, or together with it.
    said_at_end: bool,
    usage: Option<Usage>,
    warnings: Vec<String>,
}

/// The part of the answer that further pieces are added to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OpenPart {
    Nothing,
    /// The last part is a text without a signature.
    Text,
    /// A thought without a signature comes, so far this text; it is a part when it has ended.
    Thought(String),
}

impl GeminiReader {
    pub(super) fn new(origin: Origin, ids: Ids) -> Self {
        Self {
            origin,
            ids,
            parts: Vec::new(),
            open: OpenPart::Nothing,
            stop: None,
            said_at_end: false,
            usage: None,
            warnings: Vec::new(),
        }
    }

    fn chunk(&mut self, text: &str, heard: DeltaSink<'_>) -> Result<(), Fault> {
        let chunk: Chunk<'_> = serde_json::from_str(text)
            .map_err(|error| Fault::invalid(format!("a piece of the answer is not what the API says ({error})")))?;
        if let Some(error) = chunk.error {
            let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
            let said = ProviderMessage::of_value(error);
            return Err(Fault { retry_after: said.retry_delay(), ..said.fault(status) });
        }
        if let Some(counted) = chunk.usage_metadata {
            let [prompt, cached, tools, candidates, thoughts] = counted.all();
            self.usage = Some(Usage {
                input: prompt.saturating_sub(cached).saturating_add(tools),
                output: candidates.saturating_add(thoughts),
                cache_read: cached,
                cache_write: 0,
            });
        }
        if let Some(PromptFeedback { block_reason: Some(reason), block_reason_message }) = chunk.prompt_feedback {
            self.stop = Some(Stop::Refusal);
            let more = block_reason_message.map(|more| format!(": {more}")).unwrap_or_default();
            self.warnings.push(format!("the provider blocked the request ({reason}{more})"));
        }
        // One is asked for; there is never another.
        let Some(candidate) = chunk.candidates.into_iter().flatten().next() else { return Ok(()) };
        let mut more = false;
        for part in candidate.content.into_iter().filter_map(|content| content.parts).flatten() {
            more |= self.part(part, heard)?;
        }
        self.said_at_end = if candidate.finish_reason.is_some() { more } else { self.said_at_end || more };
        if let Some(reason) = candidate.finish_reason {
            self.finished(reason, candidate.finish_message);
        }
        Ok(())
    }

    /// Whether the part says anything.
    fn part(&mut self, raw: &RawValue, heard: DeltaSink<'_>) -> Result<bool, Fault> {
        let part: GeminiPart<'_> = serde_json::from_str(raw.get())
            .map_err(|error| Fault::invalid(format!("a part of the answer is not what the API says ({error})")))?;
        let says = part.text.as_ref().is_none_or(|text| !text.is_empty());
        match part {
            GeminiPart { function_call: Some(call), thought_signature, .. } => {
                let name = call.name.unwrap_or_default();
                heard(Delta::Call { name: &name });
                self.close();
                self.sign(thought_signature);
                let arguments = call.args.map_or("{}", RawValue::get).to_owned();
                self.parts.push(AnswerPart::Call(Call { id: call.id.unwrap_or_default(), name, arguments }));
                self.open = OpenPart::Nothing;
            }
            GeminiPart { thought: Some(true), text: Some(text), thought_signature, .. } => {
                if !text.is_empty() {
                    heard(Delta::Thinking(&text));
                }
                self.thought(&text, thought_signature, raw);
            }
            GeminiPart { text: Some(text), thought_signature, .. } => {
                if !text.is_empty() {
                    heard(Delta::Text(&text));
                }
                self.text(&text, thought_signature, raw);
            }
            // Code that it ran itself, images it made, whatever comes next year.
            _ => self.opaque(raw.get().to_owned()),
        }
        Ok(says)
    }

    fn text(&mut self, text: &str, signature: Option<&RawValue>, raw: &RawValue) {
        if matches!(self.open, OpenPart::Thought(_)) && (signature.is_some() || !text.is_empty()) {
            self.close();
        }
        match (signature, self.parts.last_mut()) {
            // A part that is only a signature is kept as it is: it has its own place in the order.
            (Some(_), _) if text.is_empty() => self.opaque(raw.get().to_owned()),
            (Some(_), _) => {
                self.sign(signature);
                self.parts.push(AnswerPart::Text(text.to_owned()));
                // A part with a signature is not put together with one without.
                self.open = OpenPart::Nothing;
            }
            (None, Some(AnswerPart::Text(before))) if self.open == OpenPart::Text => before.push_str(text),
            (None, _) if text.is_empty() => {}
            (None, _) => {
                self.parts.push(AnswerPart::Text(text.to_owned()));
                self.open = OpenPart::Text;
            }
        }
    }

    /// Thoughts come in pieces, which are one thought.
    fn thought(&mut self, text: &str, signature: Option<&RawValue>, raw: &RawValue) {
        if signature.is_some() {
            return self.opaque(raw.get().to_owned());
        }
        if let OpenPart::Thought(before) = &mut self.open {
            before.push_str(text);
        } else {
            self.close();
            self.open = OpenPart::Thought(text.to_owned());
        }
    }

    /// The signature of the part that comes next.
    fn sign(&mut self, signature: Option<&RawValue>) {
        if let Some(signature) = signature {
            self.opaque(format!("{{\"{SIGNATURE}\":{}}}", signature.get()));
        }
    }

    fn opaque(&mut self, raw: String) {
        self.close();
        self.parts.push(self.origin.opaque(raw));
    }

    /// Nothing more can be put to what is open.
    fn close(&mut self) {
        if let OpenPart::Thought(whole) = std::mem::replace(&mut self.open, OpenPart::Nothing) {
            self.parts.push(self.origin.opaque(format!("{{\"text\":{},\"thought\":true}}", json(&whole))));
        }
    }

    fn finished(&mut self, reason: String, message: Option<String>) {
        let stop = match reason.as_str() {
            // Gemini says `STOP` of an answer with calls; some servers that speak like it say `FUNCTION_CALL`.
            "STOP" | "FUNCTION_CALL" | "FINISH_REASON_UNSPECIFIED" => Stop::EndTurn,
            "MAX_TOKENS" => Stop::MaxTokens,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
                self.warnings.push(format!("the provider stopped the answer ({reason})"));
                Stop::Refusal
            }
            _ => {
                let more = message.map(|more| format!(": {more}")).unwrap_or_default();
                self.warnings.push(format!("the answer ended with {reason}{more}"));
                Stop::Other(reason)
            }
        };
        self.stop = Some(stop);
    }
}

impl Reader for GeminiReader {
    fn event(&mut self, _name: Option<&str>, data: &str, heard: DeltaSink<'_>) -> Result<Flow, Fault> {
        self.chunk(data, heard)?;
        // The end of the stream is the end: some gateways write `STOP` into every chunk.
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, heard: DeltaSink<'_>) -> Result<(), Fault> {
        // Without `alt=sse`, which some gateways drop, the chunks come as one array.
        match serde_json::from_str::<Vec<&RawValue>>(body) {
            Ok(chunks) => chunks.into_iter().try_for_each(|chunk| self.chunk(chunk.get(), heard)),
            Err(_) => self.chunk(body, heard),
        }
    }

    fn enough(&self) -> StreamEnd {
        match (&self.stop, self.said_at_end) {
            (None, _) => StreamEnd::No,
            (Some(_), true) => StreamEnd::Perhaps,
            (Some(_), false) => StreamEnd::Yes,
        }
    }

    fn finish(mut self: Box<Self>) -> Result<Answer, Fault> {
        if let Some(Stop::Other(word)) = &self.stop
            && MALFORMED.contains(&word.as_str())
        {
            let what = format!("the provider could not read the model's own call ({word}); nothing of it is used");
            return Err(Fault::new(Failure::Server, what));
        }
        self.close();
        let Some(stop) = self.stop else { return Err(Fault::cut_off()) };
        let calls = self.parts.iter().any(|part| matches!(part, AnswerPart::Call(_)));
        let stop = if stop == Stop::EndTurn && calls { Stop::ToolUse } else { stop };
        self.ids.settle(&mut self.parts, &mut self.warnings);
        Ok(Answer { parts: self.parts, stop, usage: self.usage, warnings: self.warnings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::cuts::{read, same_however_cut, slowly};

    #[test]
    fn the_answer_is_the_same_however_its_bytes_are_cut() {
        let stream = concat!(
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"größer 🦀\",\"thought\":true}]}}]}\r\n\r\n",
            ": a comment\n\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"日\"},{\"text\":\"本語\"}]}}],\n",
            "data:  \"usageMetadata\":{\"promptTokenCount\":5}}\n\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"id\":\"a\",\"name\":\"read\",\"args\":{\"p\": \"é\"}},\"thoughtSignature\":\"QQ==\"}]}}]}\n\n",
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":2}}\n\n",
        );
        same_however_cut(stream, || GeminiReader::new(Origin::nobody("w"), Ids::default()));
    }

    /// Some gateways write the end into every piece: a pause after one cuts nothing off.
    #[tokio::test(start_paused = true)]
    async fn an_end_in_every_piece_is_not_the_end() {
        let pieces = ["first ", "second"].map(|text| format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}},\"finishReason\":\"STOP\"}}]}}\n\n"));
        let reader = GeminiReader::new(Origin::nobody("w"), Ids::default());
        let answer = read(slowly(pieces.map(|piece| (5, piece))), reader).await;
        assert_eq!(answer.text(), "first second");
    }
}
