//! Conversations that this process knows already, so that a wake reads only what its log has grown by.
//!
//! Every answered ask is a wake of its own: without this each would read the whole log again. What is kept is a fold of the
//! log and of nothing else (L71), so it may be forgotten at any time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use portcullis_base::SessionId;

use super::FoldedConversation;
use crate::worker::SESSIONS_AT_ONCE;

/// Conversations that are kept: twice as many as a process works on at once, however many wait for an answer.
const KEPT: usize = 2 * SESSIONS_AT_ONCE;
/// Characters of all of them: a handful of long ones.
const CHARS: usize = 16 << 20;

/// The folds of the sessions that were worked on last, the newest last.
#[derive(Default)]
pub(crate) struct Recent {
    kept: Mutex<VecDeque<(SessionId, FoldedConversation)>>,
}

impl Recent {
    /// What is known of a session, or nothing. The caller that takes it gives it back.
    pub(crate) fn take(&self, session: SessionId) -> FoldedConversation {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().position(|(known, _)| *known == session).and_then(|at| kept.remove(at));
        known.map_or_else(FoldedConversation::new, |(_, folded)| folded)
    }

    /// Keeps it for the next wake, and forgets the oldest where that is too much.
    pub(crate) fn keep(&self, session: SessionId, folded: FoldedConversation) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != session);
        kept.push_back((session, folded));
        while kept.len() > KEPT || kept.iter().map(|(_, folded)| folded.context.chars()).sum::<usize>() > CHARS {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_conversations_are_kept_however_many_there_are() {
        let recent = Recent::default();
        for n in 0..1_000 {
            recent.keep(SessionId::from_u128(n), FoldedConversation::new());
        }
        assert_eq!(recent.kept.lock().expect("whole").len(), KEPT);
        recent.take(SessionId::from_u128(999));
        assert_eq!(recent.kept.lock().expect("whole").len(), KEPT - 1, "the newest are those that are kept");
    }
}
