//! Compaction: the oldest messages give way to one summary, built from facts of the log (agent-runtime 6.4).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portcullis_base::{Code, SideEffectState};
use portcullis_event::Observed;
use portcullis_event::facts::{Block, text_of};
use portcullis_model::{Conversation, Message, UserPart};

use super::{Context, TurnMark, told};

/// Turns that always stay word for word: what the model is in the middle of.
pub(crate) const PROTECTED_TURNS: usize = 2;
/// Characters of a person's words in a summary.
const SAID: usize = 400;
/// Calls a summary names one by one; older ones are counted.
const CALLS: usize = 60;

/// What has been done so far, as facts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digested {
    said: Vec<String>,
    calls: Vec<String>,
    /// Files by path, and the last hash that is known of each.
    files: BTreeMap<String, String>,
    unknown: Vec<String>,
}

impl Digested {
    pub(crate) fn said(&mut self, content: &[Block]) {
        self.said.push(told::words(&text_of(content), SAID));
    }

    pub(crate) fn call(&mut self, observed: &Observed) {
        let mut line = format!("{} {}", told::name(&observed.tool), told::name(&observed.code.to_string()));
        if let Some(exit) = observed.exit_code {
            let _ = write!(line, " exit={exit}");
        }
        let targets: Vec<String> = observed.side_effects.items.iter().map(|item| told::name(&item.target)).collect();
        if !targets.is_empty() {
            let _ = write!(line, " changed={}", targets.join(","));
        } else if observed.side_effects.state == SideEffectState::Unknown {
            line.push_str(" changed=unknown");
        }
        for artifact in &observed.artifacts {
            let _ = write!(line, " artifact={}", artifact.id);
        }
        self.calls.push(line);
        for file in &observed.files {
            self.files.insert(file.path().to_owned(), file.sha256().to_string());
        }
        if observed.code.known() == Some(Code::OutcomeUnknown) {
            self.unknown.push(told::name(&observed.tool));
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
        for said in &self.said {
            let _ = writeln!(text, "the person said: {said}");
        }
        let left_out = self.calls.len().saturating_sub(CALLS);
        if left_out > 0 {
            let _ = writeln!(text, "{left_out} earlier calls are not listed");
        }
        for call in &self.calls[left_out..] {
            let _ = writeln!(text, "call: {call}");
        }
        for (path, hash) in &self.files {
            let _ = writeln!(text, "file: {} {hash}", told::name(path));
        }
        for tool in &self.unknown {
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

    /// Replaces everything before the answer at `kept_from` by the summary.
    pub(crate) fn compact(&mut self, summary: String, kept_from: u64) {
        let at = self
            .turns
            .iter()
            .find(|mark| mark.seq >= kept_from)
            .map_or(self.conversation.messages().len(), |mark| mark.message);
        let old = std::mem::replace(&mut self.conversation, Conversation::new());
        let kept: Vec<Message> = old.messages().get(at..).unwrap_or_default().to_vec();
        let turns: Vec<TurnMark> = self.turns.iter().copied().filter(|mark| mark.seq >= kept_from).collect();
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
        for message in kept {
            if matches!(message, Message::Assistant(_))
                && let Some(mark) = turns.next()
            {
                self.turns.push(TurnMark { seq: mark.seq, message: self.conversation.messages().len() });
            }
            self.push(message, notes.next().unwrap_or_default());
        }
    }
}
