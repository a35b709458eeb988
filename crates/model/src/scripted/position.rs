//! Where in its script a conversation is.
//!
//! Every answer carries a mark, a part that only this model understands and that comes back with the conversation. So the
//! place outlives a restart, a fork and a compaction. Where answers bear no mark of this script (another model gave them),
//! they are played through from the start: each took the turn that it would have taken.

use serde::{Deserialize, Serialize};

use super::WIRE;
use super::file::Script;
use crate::{AnswerPart, Message};

/// What an answer says of its place.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) script: String,
    /// The number of the request that it answered.
    pub(super) request: u64,
    /// The place after the turn that was taken.
    pub(super) next: usize,
    /// How many ids of calls were made so far.
    pub(super) calls: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) thinking: String,
}

impl Mark {
    pub(super) fn to_json(&self) -> String {
        // Invariant: a struct of texts and numbers always serializes.
        serde_json::to_string(self).expect("a mark is JSON")
    }

    /// The mark of this script in an answer.
    fn read(script: &Script, parts: &[AnswerPart]) -> Option<Self> {
        parts.iter().find_map(|part| match part {
            AnswerPart::Opaque(opaque) if opaque.wire == WIRE => {
                serde_json::from_str::<Self>(&opaque.raw).ok().filter(|mark| mark.script == script.digest)
            }
            _ => None,
        })
    }
}

/// Where in its script one request of a conversation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScriptPosition {
    /// The number of this request, from 1.
    pub(super) request: u64,
    /// The first turn that may be taken.
    pub(super) next: usize,
    pub(super) calls: u64,
}

impl ScriptPosition {
    /// The place of a conversation's next request.
    pub(super) fn of(script: &Script, system: &str, messages: &[Message]) -> Self {
        let marked = messages.iter().enumerate().rev().find_map(|(at, message)| match message {
            Message::Assistant(parts) => Mark::read(script, parts).map(|mark| (at, mark)),
            Message::User(_) => None,
        });
        let (from, mut place) = match marked {
            Some((at, mark)) => (at + 1, Self { request: mark.request + 1, next: mark.next, calls: mark.calls }),
            None => (0, Self { request: 1, next: 0, calls: 0 }),
        };
        for (at, message) in messages.iter().enumerate().skip(from) {
            let Message::Assistant(parts) = message else { continue };
            if let Some(taken) = place.take(script, system, &messages[..at]) {
                place.next = taken + 1;
            }
            place.request += 1;
            let calls = parts.iter().filter(|part| matches!(part, AnswerPart::Call(_))).count();
            place.calls += u64::try_from(calls).unwrap_or(0);
        }
        place
    }

    /// The turn that the request after these messages takes: the next one whose conditions hold. Those before it that do
    /// not hold are passed over for good; if none holds, all of them may still come.
    pub(super) fn take(&self, script: &Script, system: &str, messages: &[Message]) -> Option<usize> {
        (self.next..script.len()).find(|place| script.turn(*place).when.holds(self.request, system, messages))
    }
}
