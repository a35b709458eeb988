//! What a watcher hears of an answer while it comes: without a secret, as the log will hold it (L69).
//!
//! A secret may come in pieces. So a word is told when it has ended: no secret that is one word is told in halves, and
//! nobody waits for more than that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_base::{EventId, SessionId};
use portcullis_model::Delta;
use portcullis_pipeline::{Gate, Session};

use crate::live_event::{Live, LiveEvent, Watcher};

/// Bytes without an end of a word that are held back: longer than any key.
const LONGEST_WORD: usize = 1_024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

/// Passes words on.
pub(super) struct Voice {
    watcher: Arc<dyn Watcher>,
    gate: Gate,
    session_id: SessionId,
    /// The request that is answered.
    request: Option<EventId>,
    /// The word that is coming.
    held: Mutex<(Kind, String)>,
    /// Some of this answer was told.
    told: AtomicBool,
}

impl Voice {
    pub(super) fn new(watcher: Arc<dyn Watcher>, session: &Session, request: Option<EventId>) -> Self {
        let (gate, session_id) = (session.gate(), session.key().session);
        let held = Mutex::new((Kind::Text, String::new()));
        Self { watcher, gate, session_id, request, held, told: AtomicBool::new(false) }
    }

    pub(super) fn hear(&self, delta: Delta<'_>) {
        match delta {
            Delta::Text(text) => self.pass(Kind::Text, text),
            Delta::Thinking(text) => self.pass(Kind::Thinking, text),
            Delta::Call { .. } => self.rest(),
            Delta::Alive => {}
        }
    }

    fn pass(&self, kind: Kind, text: &str) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.0 != kind {
            self.tell(held.0, &std::mem::take(&mut held.1));
            held.0 = kind;
        }
        held.1.push_str(text);
        let last_word = held.1.char_indices().rev().find(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8());
        let ended = match last_word {
            Some(at) => at,
            None if held.1.len() > LONGEST_WORD => held.1.len(),
            None => 0,
        };
        let rest = held.1.split_off(ended);
        let words = std::mem::replace(&mut held.1, rest);
        self.tell(kind, &words);
    }

    /// Nothing more comes of this word.
    pub(super) fn rest(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.tell(held.0, &std::mem::take(&mut held.1));
    }

    /// Whether the watcher was told any of this answer.
    pub(super) fn has_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    fn tell(&self, kind: Kind, words: &str) {
        if words.is_empty() {
            return;
        }
        self.told.store(true, Ordering::Relaxed);
        let masked = self.gate.masked(words);
        let event = match kind {
            Kind::Text => LiveEvent::Text(&masked),
            Kind::Thinking => LiveEvent::Thinking(&masked),
        };
        self.watcher.see(Live { session_id: self.session_id, event_id: self.request, event });
    }
}
