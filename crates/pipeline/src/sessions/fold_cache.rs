//! Sessions whose fold this process knows already, so that opening one again reads only what its log has grown by.
//!
//! Every answered ask opens its session anew. What is kept is a fold of durable events and of nothing else, so it may be
//! forgotten at any time, and the next opener of the session catches up with what others wrote meanwhile.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use portcullis_event::State;
use portcullis_store::SessionKey;

/// Folds that are kept: as many as a process works on at once, twice over, however many sessions wait for an answer.
const KEPT: usize = 16;

/// A fold, and the seq of the snapshot that the store has of it.
#[derive(Debug, Default)]
pub(crate) struct FoldedSession {
    pub(crate) state: State,
    pub(crate) snapshot_seq: u64,
}

/// The folds of the sessions that were held last, the newest last.
#[derive(Debug, Default)]
pub(crate) struct FoldCache {
    kept: Mutex<VecDeque<(SessionKey, FoldedSession)>>,
}

impl FoldCache {
    /// What is known of a session. The caller that takes it gives it back.
    pub(crate) fn take(&self, key: SessionKey) -> Option<FoldedSession> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| *known == key)?;
        kept.remove(at).map(|(_, folded)| folded)
    }

    /// Keeps it for the next opener of the session. A fold that was given back meanwhile and has more events stays.
    pub(crate) fn keep(&self, key: SessionKey, folded: FoldedSession) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().position(|(known, _)| *known == key).and_then(|at| kept.remove(at));
        let newest = known.map(|(_, known)| known).filter(|known| known.state.seq > folded.state.seq).unwrap_or(folded);
        kept.push_back((key, newest));
        while kept.len() > KEPT {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_base::{SessionId, TenantId};

    use super::*;

    fn key(n: u128) -> SessionKey {
        SessionKey { tenant: TenantId::from_u128(1), session: SessionId::from_u128(n) }
    }

    fn at(seq: u64) -> FoldedSession {
        FoldedSession { state: State { seq, ..State::default() }, snapshot_seq: 0 }
    }

    #[test]
    fn few_folds_are_kept_however_many_sessions_there_are() {
        let known = FoldCache::default();
        for n in 0..1_000 {
            known.keep(key(n), at(1));
        }
        assert_eq!(known.kept.lock().expect("whole").len(), KEPT);
        assert!(known.take(key(999)).is_some() && known.take(key(0)).is_none(), "the newest are those that are kept");
        assert!(known.take(key(999)).is_none(), "whoever takes it has it alone");
    }

    #[test]
    fn of_two_that_are_given_back_the_longer_one_stays() {
        let known = FoldCache::default();
        known.keep(key(1), at(9));
        known.keep(key(1), at(5));
        assert_eq!(known.take(key(1)).map(|folded| folded.state.seq), Some(9));
    }
}
