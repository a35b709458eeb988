//! What the model is shown: a conversation that only grows, built from the log and nothing else.
//!
//! The same log gives the same bytes, live, after a crash and in a replay (L71): what the runtime adds in the user's
//! position is stored with the request that sent it, and everything else is a fact already.

mod budget;
mod cut;
pub mod fence;
mod history;
#[cfg(test)]
mod laundering;
mod media;
mod notes;
mod prompt;
pub mod quoted;
mod recent;
mod summary;
mod verifies;
mod wake_message;

use std::collections::HashSet;
use std::sync::Arc;

use portcullis_base::{Digest, EventId, MessageId, SessionId};
use portcullis_event::Observed;
use portcullis_event::facts::{Verification, VerificationKind, WakeQueued};
use portcullis_event::fold::Input;
use portcullis_factcheck::{CallFact, Facts, verifications_of};
use portcullis_model::{AnswerPart, Call, Conversation, Media, MediaKind, Message, ResultPart, ToolResult, UserPart};
use portcullis_pipeline::InContext;
use serde::{Deserialize, Serialize};

use crate::directive;

pub(crate) use budget::{BudgetInput, FALLBACK, budget, room_of, tokens};
pub use budget::{
    ContextBudget, HistoryCounts, HistoryWeight, Level, NamedWeight, Pressure, SystemWeight, ToolsWeight, Weight,
};
pub(crate) use cut::kept_middle;
pub(crate) use history::{FoldedConversation, calls_of, open, said};
pub(crate) use media::{has_media, media_of};
pub use notes::TAGS;
pub(crate) use notes::{NoteFacts, notes};
pub use prompt::{BASE_PROMPT, PromptSource, system_prompt};
pub(crate) use recent::Recent;
pub(crate) use summary::WorkDigest;
pub(crate) use verifies::verifies;
pub(crate) use wake_message::{guided, interrupted, wake_message, woken_by};

/// Something that a request adds in the user's position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AddedPart {
    /// The words of this input event.
    Said(EventId),
    /// What the runtime says.
    Text(String),
}

impl AddedPart {
    /// Whether it is a note: a line of the runtime that begins with its tag.
    fn is_note(&self) -> bool {
        matches!(self, Self::Text(text) if text.starts_with('['))
    }

    /// What the last request of a wake says, in which no tool can be called.
    pub(crate) fn last_request() -> Self {
        Self::Text(LAST_REQUEST.to_owned())
    }

    /// What the request before that says.
    pub(crate) fn last_but_one(limit: u32) -> Self {
        Self::Text(format!(
            "[session-event] the limit of {limit} model requests for one message is near: tools can be called in this \
             request, and in the next one no more. Bring the work to a state in which it can be left."
        ))
    }

    /// Whether it is that of the last request.
    pub(crate) fn is_last_request(&self) -> bool {
        matches!(self, Self::Text(text) if text == LAST_REQUEST)
    }

    /// How many of these are notes.
    pub(crate) fn notes(added: &[Self]) -> usize {
        added.iter().filter(|added| added.is_note()).count()
    }
}

const LAST_REQUEST: &str = "[session-event] this is the last request of this wake: no tool can be called any more. Sum up \
what was done and what is left.";

/// A call of the newest answer, and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct AnsweredCall {
    /// As the model made it. In the conversation it may stand masked.
    pub(crate) call: Call,
    pub(crate) result: Option<ToolResult>,
}

/// The newest answer, while its calls are being answered.
#[derive(Debug, Clone)]
pub(crate) struct NewestAnswer {
    pub(crate) message_id: MessageId,
    pub(crate) asked: Vec<AnsweredCall>,
    pub(crate) text: String,
    /// What it claims was compared with what happened, and is in the log.
    pub(crate) checked: bool,
}

impl NewestAnswer {
    /// The call with which the model ended its wake, if it ran.
    pub(crate) fn last_call(&self) -> Option<&Call> {
        let ran = |asked: &&AnsweredCall| asked.result.as_ref().is_some_and(|result| !result.is_error);
        let last = self.asked.iter().rfind(|asked| asked.call.name == directive::TOOL)?;
        Some(last).filter(ran).map(|asked| &asked.call)
    }
}

/// The conversation of one session.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) conversation: Conversation,
    /// Chained over the messages: what a request's `context_hash` says.
    hash: Digest,
    /// Characters so far, for the estimate of tokens.
    chars: usize,
    /// Notes in each message.
    notes_at: Vec<usize>,
    /// Messages and notes that gave way to a summary, and whether the first message is one.
    dropped: (usize, usize),
    compacted: bool,
    /// Characters that were left after the last compaction.
    floor: usize,
    pub(crate) newest: Option<NewestAnswer>,
    pub(crate) unshown: UnshownInput,
    /// Events that handed a call of the model to a client: what answers them is the result of that call, not a message.
    pub(crate) handed_over: HashSet<EventId>,
    /// Children that calls waited for: what they said stands where the results of these calls stand.
    pub(crate) awaited_children: HashSet<SessionId>,
    /// The system prompt that the last request had.
    pub(crate) system: Option<Arc<str>>,
    /// Where each answer that could stay after a compaction begins.
    pub(crate) turns: Vec<TurnMark>,
    /// Pages of files that stand in it.
    pub(crate) pages: InContext,
    pub(crate) facts: Facts,
    /// What has been done so far, for a summary.
    pub(crate) digested: WorkDigest,
}

/// What was taken up and no request has shown: a process ended, a person interrupted, or the request was never made.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnshownInput {
    pub(crate) inputs: Vec<Input>,
    pub(crate) wakes: Vec<WakeQueued>,
}

/// An answer by its place in the log and in the conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnMark {
    pub(crate) seq: u64,
    pub(crate) message: usize,
}

impl Context {
    pub(crate) fn empty() -> Self {
        Self {
            conversation: Conversation::new(),
            hash: Digest::of(b"portcullis-context-1"),
            chars: 0,
            notes_at: Vec::new(),
            dropped: (0, 0),
            compacted: false,
            floor: 0,
            newest: None,
            unshown: UnshownInput::default(),
            handed_over: HashSet::new(),
            awaited_children: HashSet::new(),
            system: None,
            turns: Vec::new(),
            pages: InContext::default(),
            facts: Facts::default(),
            digested: WorkDigest::default(),
        }
    }

    /// The same conversation for a caller that goes on with it alone. What was rendered goes with it, until it is given
    /// [back](Self::give_back).
    pub(crate) fn copied(&self) -> Self {
        let copy = Self { pages: self.pages.copied(), ..self.clone() };
        self.conversation.hand_over(&copy.conversation);
        copy
    }

    /// Gives what was rendered to the fold that it was copied from: the next wake renders only what is new, and knows
    /// what the provider has refused.
    pub(crate) fn give_back(&self, to: &Self) {
        self.conversation.hand_over(&to.conversation);
    }

    pub(crate) fn hash(&self) -> Digest {
        self.hash
    }

    /// Characters of the conversation, and of the results that the next request adds to it.
    pub(crate) fn chars(&self) -> usize {
        let results = self.newest.iter().flat_map(|newest| &newest.asked).filter_map(|asked| asked.result.as_ref());
        let weights = results.flat_map(|result| &result.parts).map(|part| match part {
            ResultPart::Text(text) => text.len(),
            ResultPart::Media(media) => weight(media),
        });
        self.chars + weights.sum::<usize>()
    }

    /// Characters that came since the last compaction.
    pub(crate) fn grown(&self) -> usize {
        self.chars().saturating_sub(self.floor)
    }

    /// How much of it is there, and how much gave way. A summary is neither.
    pub(crate) fn counts(&self) -> HistoryCounts {
        let here = self.conversation.messages().len() - usize::from(self.compacted);
        let notes = self.notes_at.iter().sum::<usize>();
        HistoryCounts {
            total_conversation_count: here + self.dropped.0,
            conversation_count: here,
            total_runtime_note_count: notes + self.dropped.1,
            runtime_note_count: notes,
            dropped_conversation_count: self.dropped.0,
            dropped_runtime_note_count: self.dropped.1,
            protected_conversation_continuity_count: summary::PROTECTED_TURNS.min(self.turns.len()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conversation.messages().is_empty()
    }

    fn push(&mut self, message: Message, notes: usize) {
        let text = serde_json::to_string(&message).unwrap_or_default();
        self.chars += text.len() + media_in(&message).map(weight).sum::<usize>();
        let mut chained = Vec::with_capacity(32 + text.len());
        chained.extend_from_slice(self.hash.as_bytes());
        chained.extend_from_slice(text.as_bytes());
        self.hash = Digest::of(&chained);
        self.conversation.push(message);
        self.notes_at.push(notes);
    }

    /// Closes the newest answer with the results of its calls and puts what is added behind them, with so many notes.
    pub(crate) fn ask(&mut self, added: Vec<UserPart>, notes: usize) {
        let results = self.newest.take().map(|newest| newest.asked).unwrap_or_default();
        let mut parts: Vec<UserPart> = results
            .into_iter()
            .map(|asked| UserPart::Result(asked.result.unwrap_or_else(|| lost(&asked.call))))
            .collect();
        parts.extend(added);
        if !parts.is_empty() {
            self.push(Message::User(parts), notes);
        }
    }

    /// The model answered with `parts`, as they are kept. `calls` are its calls as they are to be run.
    pub(crate) fn answered(&mut self, message_id: MessageId, parts: Vec<AnswerPart>, calls: Vec<Call>, seq: u64) {
        let calls = calls.into_iter().map(|call| AnsweredCall { call, result: None });
        let text = parts.iter().filter_map(|part| match part {
            AnswerPart::Text(text) => Some(text.as_str()),
            _ => None,
        });
        self.newest = Some(NewestAnswer { message_id, asked: calls.collect(), text: text.collect(), checked: false });
        self.turns.push(TurnMark { seq, message: self.conversation.messages().len() });
        if !parts.is_empty() {
            self.push(Message::Assistant(parts), 0);
        }
    }

    /// A call of the newest answer has its observation, which stands in the log at `seq`. Gives what it verifies.
    pub(crate) fn observed(
        &mut self,
        observed: &Observed,
        mut media: Vec<ResultPart>,
        seq: u64,
        verifies: Option<VerificationKind>,
    ) -> Vec<Verification> {
        let Some(newest) = &mut self.newest else { return Vec::new() };
        let waiting = newest.asked.iter_mut().find(|asked| asked.call.id == observed.call_id && asked.result.is_none());
        let Some(asked) = waiting else { return Vec::new() };
        let mut parts = vec![ResultPart::Text(fence::shown(observed))];
        parts.append(&mut media);
        asked.result = Some(ToolResult {
            call_id: observed.call_id.clone(),
            name: observed.tool.clone(),
            is_error: !observed.ok,
            parts,
        });
        if let Some(answer) = self.turns.last() {
            self.pages.enter(observed, answer.seq);
        }
        let input = serde_json::from_str(&asked.call.arguments).unwrap_or(serde_json::Value::Null);
        let call = CallFact { input: &input, observed, seq, verifies };
        self.facts.take(&call);
        self.digested.call(&input, observed);
        verifications_of(&call)
    }

    /// Calls of the newest answer that have no result, in their order.
    pub(crate) fn open_calls(&self) -> Vec<Call> {
        let open = |asked: &&AnsweredCall| asked.result.is_none();
        self.newest.iter().flat_map(|newest| newest.asked.iter().filter(open).map(|asked| asked.call.clone())).collect()
    }
}

/// The images and documents of a message.
fn media_in(message: &Message) -> impl Iterator<Item = &Media> {
    let parts = match message {
        Message::User(parts) => parts.as_slice(),
        Message::Assistant(_) => &[],
    };
    parts
        .iter()
        .flat_map(|part| match part {
            UserPart::Result(result) => result.parts.as_slice(),
            UserPart::Text(_) | UserPart::Media(_) => &[],
        })
        .filter_map(|part| match part {
            ResultPart::Media(media) => Some(media),
            ResultPart::Text(_) => None,
        })
}

/// What an image or document weighs beside text, in characters. Providers count an image by its size in points, at most
/// some 1,600 tokens, and a document by its pages; of a document only its bytes are known here.
fn weight(media: &Media) -> usize {
    match media.kind {
        MediaKind::Image => IMAGE_CHARS,
        MediaKind::Pdf => IMAGE_CHARS.max(media.bytes.len() / PDF_BYTES_PER_CHAR),
    }
}

const IMAGE_CHARS: usize = 6_400;
/// A page of text is some 30 to 60 KB of a document, and 2,000 tokens and more.
const PDF_BYTES_PER_CHAR: usize = 5;

/// Every call has its observation before the model is asked again (R6); this is for a log that broke that.
fn lost(call: &Call) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        is_error: true,
        parts: vec![ResultPart::Text("the record of this call is not in the log".to_owned())],
    }
}
