//! An erased payload keeps the chain, so the chain alone does not show that one was taken out in silence: a
//! `session.erased` must say so, and it is under the chain and the ledger like every event.

use portcullis_base::EventId;
use portcullis_event::{Body, Event};

/// Events without a payload, as a log is walked.
#[derive(Debug, Default)]
pub struct ErasedEvents {
    /// The first of those that no fact covers yet, and the last seq of them.
    open: Option<((u64, EventId), u64)>,
}

impl ErasedEvents {
    /// The next event of the log.
    pub fn take_in(&mut self, event: &Event) {
        if event.payload.is_none() {
            let first = self.open.map_or((event.seq, event.id), |(first, _)| first);
            self.open = Some((first, event.seq));
        } else if let Some(((first, _), last)) = self.open
            && let Body::SessionErased(fact) = &*event.body_ref()
            && fact.from_seq <= first
            && last <= fact.to_seq
        {
            self.open = None;
        }
    }

    /// The first event whose content is gone without a word.
    #[must_use]
    pub fn unsaid(&self) -> Option<(u64, EventId)> {
        self.open.map(|(first, _)| first)
    }
}
