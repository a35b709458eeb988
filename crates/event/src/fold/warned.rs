//! What calls warned of since a person last answered: the next ask shows it, because what happened meanwhile decides how
//! that is answered.

use serde::{Deserialize, Serialize};

use crate::{Body, Event};

/// Warnings that are kept. The log has all of them.
const MOST: usize = 16;

/// The newest warnings since the last answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warned {
    newest: Vec<String>,
    /// Older ones that gave way.
    older: u64,
}

impl Warned {
    pub(super) fn apply(&mut self, _: &Event, body: &Body) {
        match body {
            Body::Replied(_) => *self = Self::default(),
            Body::Observed(observed) => observed.warnings.iter().for_each(|warning| self.add(warning)),
            Body::TaskCompleted(end) => end.warnings.iter().for_each(|warning| self.add(warning)),
            _ => {}
        }
    }

    fn add(&mut self, warning: &str) {
        if self.newest.iter().any(|known| known == warning) {
            return;
        }
        if self.newest.len() == MOST {
            self.newest.remove(0);
            self.older += 1;
        }
        self.newest.push(warning.to_owned());
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// Oldest first, and how many came before them.
    #[must_use]
    pub fn lines(&self) -> (&[String], u64) {
        (&self.newest, self.older)
    }
}
