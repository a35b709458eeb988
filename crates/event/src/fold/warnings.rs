//! Files that run later outside of the sandbox and that commands made: the next ask shows them until a person has answered
//! an ask that showed them, because they decide how a person answers. Other warnings stand below their own call only.

use std::collections::BTreeMap;

use portcullis_base::AskId;
use serde::{Deserialize, Serialize};

use crate::facts::BY_FLAG;
use crate::{Body, Event};

/// How a warning begins that tells of a file which a program outside of the sandbox runs later.
pub const RUNS_LATER: &str = "runs_later: ";

/// Warnings that are kept. The log has all of them.
const MOST: usize = 16;

/// The newest warnings of this kind that no person has answered an ask under.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnansweredWarnings {
    /// Each with the event that told it, oldest first.
    newest: Vec<(u64, String)>,
    /// Older ones that gave way.
    older: u64,
    /// Asks that wait, and the event that raised each: it shows what was told before.
    shown_by: BTreeMap<AskId, u64>,
}

impl UnansweredWarnings {
    pub(super) fn apply(&mut self, event: &Event, body: &Body) {
        match body {
            Body::PermissionAsked(asked) => self.asked(event.seq, asked.ask_id),
            Body::AskReplied(replied) => self.answered(replied.ask_id, &replied.channel),
            Body::AskClosed(closed) => drop(self.shown_by.remove(&closed.ask_id)),
            Body::Observed(observed) => self.add(event.seq, &observed.warnings),
            Body::TaskCompleted(end) => self.add(event.seq, &end.warnings),
            Body::ShellClosed(closed) => self.add(event.seq, &closed.warnings),
            _ => {}
        }
    }

    fn asked(&mut self, seq: u64, ask: AskId) {
        if !self.newest.is_empty() {
            self.shown_by.insert(ask, seq);
        }
    }

    fn answered(&mut self, ask: AskId, channel: &str) {
        let shown = self.shown_by.remove(&ask);
        // A flag has read nothing.
        if let Some(raised) = shown.filter(|_| channel != BY_FLAG) {
            self.newest.retain(|(told, _)| *told > raised);
            self.older = 0;
        }
    }

    fn add(&mut self, seq: u64, warnings: &[String]) {
        for warning in warnings.iter().filter(|warning| warning.starts_with(RUNS_LATER)) {
            self.newest.retain(|(_, known)| known != warning);
            if self.newest.len() == MOST {
                self.newest.remove(0);
                self.older += 1;
            }
            self.newest.push((seq, warning.clone()));
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty() && self.shown_by.is_empty()
    }

    /// Oldest first, without the word they begin with.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.newest.iter().map(|(_, text)| text.strip_prefix(RUNS_LATER).unwrap_or(text))
    }

    /// How many came before them.
    #[must_use]
    pub const fn older(&self) -> u64 {
        self.older
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: AskId = AskId::from_u128(1);
    const SECOND: AskId = AskId::from_u128(2);

    fn planted(warned: &mut UnansweredWarnings, seq: u64, place: &str) {
        warned.add(seq, &[format!("{RUNS_LATER}{place}"), format!("path_hidden: {place}")]);
    }

    #[test]
    fn a_place_that_runs_later_is_shown_until_a_person_answers_an_ask_that_showed_it() {
        let mut warned = UnansweredWarnings::default();
        warned.asked(1, FIRST);
        planted(&mut warned, 2, "a");
        // This ask stood before the place was told.
        warned.answered(FIRST, "terminal");
        assert_eq!(warned.lines().collect::<Vec<_>>(), ["a"]);
        warned.asked(3, FIRST);
        warned.answered(FIRST, BY_FLAG);
        assert_eq!(warned.lines().collect::<Vec<_>>(), ["a"]);
        warned.asked(4, FIRST);
        planted(&mut warned, 5, "b");
        warned.asked(6, SECOND);
        warned.answered(FIRST, "terminal");
        assert_eq!(warned.lines().collect::<Vec<_>>(), ["b"]);
        warned.answered(SECOND, "terminal");
        assert!(warned.is_empty());
    }

    #[test]
    fn what_gave_way_is_counted_and_what_is_told_again_is_the_newest() {
        let mut warned = UnansweredWarnings::default();
        for at in 0..MOST as u64 {
            planted(&mut warned, at, &at.to_string());
        }
        planted(&mut warned, 90, "0");
        planted(&mut warned, 91, "z");
        assert_eq!((warned.lines().next(), warned.lines().last(), warned.older()), (Some("2"), Some("z"), 1));
    }
}
