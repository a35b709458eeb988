//! Compaction: the oldest messages give way to one summary, built from facts of the log (agent-runtime 6.4).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portcullis_base::{Code, EventId, SideEffectState};
use portcullis_event::Observed;
use portcullis_event::facts::{Block, text_of};
use portcullis_model::{Conversation, Message, ResultPart, ToolResult, UserPart};
use portcullis_pipeline::InContext;
use serde_json::Value;

use super::{Context, TurnMark, cut, fence, quoted};

/// Turns that always stay word for word: what the model is in the middle of.
pub(crate) const PROTECTED_TURNS: usize = 2;
/// Characters of a person's older words in a summary.
const SAID: usize = 400;
/// Characters of a person's newest words that stay whole: what the model is to do, with every condition.
const SAID_WHOLE: usize = 24_000;
/// Calls a summary names one by one; older ones are counted.
const CALLS: usize = 60;
/// Files it names, the newest; others are counted. Whatever it was about, a summary must not fill a window by itself.
const FILES: usize = 100;
/// Older words of a person that it tells in short; those in between are counted.
const SAID_SHORT: usize = 40;
/// Calls without a known end that it names.
const UNKNOWN: usize = 20;

/// The fields of an input that say what a call was about.
const TARGETS: [&str; 5] = ["file_path", "command", "pattern", "path", "query"];

/// The work of the dropped turns, as facts.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkDigest {
    /// What people said, whole, by the event or call that it was said with.
    said: Vec<(String, String)>,
    calls: Vec<String>,
    /// Files by path, and the last hash that is known of each, with the place of the call that told it.
    files: BTreeMap<String, (usize, String)>,
    unknown: Vec<String>,
}

impl WorkDigest {
    pub(crate) fn said(&mut self, event: EventId, content: &[Block]) {
        self.say(event.to_string(), &text_of(content));
    }

    /// What a person said with an interrupt.
    pub(crate) fn interrupted(&mut self, event: EventId, note: Option<&str>) {
        if let Some(note) = note {
            self.say(event.to_string(), &format!("(with an interrupt) {note}"));
        }
    }

    /// Once, however often it is reported again.
    fn say(&mut self, with: String, words: &str) {
        if !self.said.iter().any(|(known, _)| *known == with) {
            self.said.push((with, words.to_owned()));
        }
    }

    /// The newest words whole, as far as there is room; older ones in short.
    fn what_was_said(&self) -> Vec<String> {
        let mut left = SAID_WHOLE;
        let mut lines: Vec<String> = Vec::with_capacity(self.said.len());
        let mut short = 0;
        for (n, (_, words)) in self.said.iter().enumerate().rev() {
            let len = words.chars().count();
            let most = if len <= left { left } else { SAID.max(left) };
            short += usize::from(len > left);
            // The first words say what it is all about: they stay.
            if short <= SAID_SHORT || n == 0 {
                lines.push(quoted::words(words, most));
            } else if short == SAID_SHORT + 1 {
                lines.push(format!("(and {n} messages more between the first and the next)"));
            }
            left = left.saturating_sub(len);
        }
        lines.reverse();
        lines
    }

    /// `input`: what the model called it with.
    pub(crate) fn call(&mut self, input: &Value, observed: &Observed) {
        let mut line = quoted::name(&observed.tool);
        if let Some(target) = TARGETS.iter().find_map(|field| input.get(field)?.as_str()) {
            // Quoted always: a model may have copied what a tool said.
            let _ = write!(line, " {}", quoted::quoted(target));
        }
        let _ = write!(line, " {}", quoted::name(&observed.code.to_string()));
        if let Some(exit) = observed.exit_code {
            let _ = write!(line, " exit={exit}");
        }
        let targets: Vec<String> = observed.side_effects.items.iter().map(|item| quoted::name(&item.target)).collect();
        if !targets.is_empty() {
            let _ = write!(line, " changed={}", targets.join(","));
        } else if observed.side_effects.state == SideEffectState::Unknown {
            line.push_str(" changed=unknown");
        }
        for artifact in &observed.artifacts {
            let _ = write!(line, " artifact={}", artifact.id);
        }
        self.calls.push(line);
        let feedback = observed.permission.as_ref().and_then(|permission| permission.feedback.as_deref());
        if let Some(feedback) = feedback {
            let tool = quoted::name(&observed.tool);
            self.say(observed.observation_id.to_string(), &format!("(of a call of {tool}) {feedback}"));
        }
        for file in &observed.files {
            self.files.insert(file.path().to_owned(), (self.calls.len(), file.sha256().to_string()));
        }
        if observed.code.known() == Some(Code::OutcomeUnknown) {
            self.unknown.push(quoted::name(&observed.tool));
        }
    }

    /// The summary's text.
    pub(crate) fn text(&self, guidance: Option<&str>, range: (u64, u64)) -> String {
        let mut text = String::new();
        if let Some(guidance) = guidance {
            let _ = writeln!(text, "{guidance}");
        }
        let _ = writeln!(
            text,
            "[context-compacted] The conversation grew past its budget. What stands here replaces the messages of events \
             {} to {}; it is built from the record, and nothing else of them is in view. Read a file again before you \
             rely on what it held.",
            range.0, range.1
        );
        for said in self.what_was_said() {
            let _ = writeln!(text, "the person said: {said}");
        }
        let left_out = self.calls.len().saturating_sub(CALLS);
        if left_out > 0 {
            let _ = writeln!(text, "{left_out} earlier calls are not listed");
        }
        for call in &self.calls[left_out..] {
            let _ = writeln!(text, "call: {call}");
        }
        let mut files: Vec<_> = self.files.iter().collect();
        if files.len() > FILES {
            let _ = writeln!(text, "{} earlier files are not listed", files.len() - FILES);
            files.sort_by_key(|(_, (seen, _))| std::cmp::Reverse(*seen));
            files.truncate(FILES);
            files.sort_unstable();
        }
        for (path, (_, hash)) in files {
            let _ = writeln!(text, "file: {} {hash}", quoted::name(path));
        }
        for tool in self.unknown.iter().rev().take(UNKNOWN).rev() {
            let _ = writeln!(text, "outcome unknown: {tool}; look at what it would have changed");
        }
        text
    }
}

impl Context {
    /// Which answer a compaction would keep from: the oldest of the protected ones. `None`: there is nothing to give up.
    pub(crate) fn keep_from(&self) -> Option<TurnMark> {
        let first = self.turns.len().checked_sub(PROTECTED_TURNS)?;
        self.turns.get(first).copied().filter(|mark| mark.message > 1)
    }

    /// Replaces everything before the answer at `kept_from` by the summary. `cut_to`: bytes that each piece of the rest
    /// has at most.
    pub(crate) fn compact(&mut self, summary: String, kept_from: u64, cut_to: Option<usize>) {
        let at = self.begins_at(kept_from);
        let old = std::mem::replace(&mut self.conversation, Conversation::new());
        let kept: Vec<Message> = old.messages().get(at..).unwrap_or_default().to_vec();
        let turns: Vec<TurnMark> = self.turns.iter().copied().filter(|mark| mark.seq >= kept_from).collect();
        self.pages.leave_before(kept_from);
        let notes = std::mem::take(&mut self.notes_at);
        // An earlier summary was no part of the conversation either.
        self.dropped.0 += at.min(notes.len()) - usize::from(self.compacted && at > 0);
        self.dropped.1 += notes.iter().take(at).sum::<usize>();
        self.compacted = true;
        let fresh = Self::empty();
        (self.hash, self.chars, self.turns) = (fresh.hash, 0, Vec::new());
        self.push(Message::User(vec![UserPart::Text(summary)]), 0);
        let mut notes = notes.into_iter().skip(at);
        let mut turns = turns.into_iter();
        for mut message in kept {
            if let Some(most) = cut_to {
                message = cut::message(message, most, &self.pages);
            }
            if let Message::User(parts) = &mut message {
                let results = parts.iter_mut().filter_map(|part| match part {
                    UserPart::Result(result) => Some(result),
                    UserPart::Text(_) | UserPart::Media(_) => None,
                });
                results.for_each(|result| no_longer_in_view(result, &self.pages));
            }
            if matches!(message, Message::Assistant(_))
                && let Some(mark) = turns.next()
            {
                self.turns.push(TurnMark { seq: mark.seq, message: self.conversation.messages().len() });
            }
            self.push(message, notes.next().unwrap_or_default());
        }
        if self.turns.is_empty() {
            // The answer gave way with its calls: their results have no place any more.
            self.newest = None;
        }
        let newest = self.newest.iter_mut().flat_map(|newest| &mut newest.asked);
        let mut results: Vec<&mut ToolResult> = newest.filter_map(|asked| asked.result.as_mut()).collect();
        for result in &mut results {
            if let Some(most) = cut_to {
                cut::result(result, most, &self.pages);
            }
        }
        results.into_iter().for_each(|result| no_longer_in_view(result, &self.pages));
        self.floor = self.chars();
    }
}

/// A result that points to lines which the compaction took out says so (L65).
fn no_longer_in_view(result: &mut ToolResult, pages: &InContext) {
    let points_to = |part: &ResultPart| match part {
        ResultPart::Text(text) => {
            let facts = fence::parse(text)?.facts;
            Some(facts.get("unchangedSince")?.get("callId")?.as_str()?.to_owned())
        }
        ResultPart::Media(_) => None,
    };
    let lost = result.parts.iter().find_map(points_to).is_some_and(|call| !pages.shows(&call));
    if lost && result.parts.len() == 1 {
        result.parts.push(ResultPart::Text(NOT_IN_VIEW.to_owned()));
    }
}

const NOT_IN_VIEW: &str =
    "[context-compacted] The lines that this result points to are not in view any more. Read them again to see them.";
