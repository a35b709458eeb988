//! Redaction of a stream, equal to redaction of the whole however it is cut into chunks.

use std::sync::Arc;

use crate::redactor::Search;

/// Masks what is pushed through it. Holds back fewer bytes than the longest shape of a known secret, and the
/// beginning of what may become a key, so that one split over chunks is caught; [`Self::finish`] gives out the rest.
#[derive(Clone)]
pub struct RedactingStream {
    search: Option<Arc<Search>>,
    /// Bytes in which a match may still start.
    held: Vec<u8>,
    /// The byte ahead of them.
    before: Option<u8>,
    /// How many of the held bytes a mask already given out covers. A match that begins at or before
    /// its end widens it instead of adding a second mask.
    covered: Option<usize>,
}

impl RedactingStream {
    pub(crate) fn new(search: Option<Arc<Search>>) -> Self {
        Self { search, held: Vec::new(), before: None, covered: None }
    }

    /// Takes in `bytes` and gives out what is decided.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(search) = self.search.clone() else {
            return bytes.to_vec();
        };
        self.held.extend_from_slice(bytes);
        self.advance(&search, false)
    }

    /// Gives out what was held back; the stream has ended.
    pub fn finish(mut self) -> Vec<u8> {
        match self.search.take() {
            None => Vec::new(),
            Some(search) => self.advance(&search, true),
        }
    }

    /// What would be given out if the stream ended here; it goes on as before.
    #[must_use]
    pub fn peek(&self) -> Vec<u8> {
        self.clone().finish()
    }

    /// Held bytes that tell nothing, whatever comes: they may begin the public prefix of a key, and no value has begun.
    #[must_use]
    pub fn harmless(&self) -> &[u8] {
        let only_a_prefix = self.search.as_ref().is_some_and(|search| search.is_only_a_prefix(&self.held));
        if only_a_prefix && self.covered.is_none() { &self.held } else { &[] }
    }

    /// How many bytes are held back at present.
    #[must_use]
    pub fn held_back(&self) -> usize {
        self.held.len()
    }

    /// Decides as many of the held bytes as can be.
    fn advance(&mut self, search: &Search, ended: bool) -> Vec<u8> {
        let (matches, decided) = search.decide(&self.held, self.before, ended);
        let mut out = Vec::with_capacity(decided);
        // Everything before `done` has been given out or masked.
        let mut done = self.covered.unwrap_or(0);
        let mut masking = self.covered.is_some();
        for found in matches {
            if !(masking && found.start <= done) {
                out.extend_from_slice(&self.held[done..found.start]);
                out.extend_from_slice(found.mask().as_bytes());
                masking = true;
                done = found.end;
            }
            done = done.max(found.end);
        }
        self.covered = if masking && done >= decided {
            Some(done - decided)
        } else {
            out.extend_from_slice(&self.held[done.min(decided)..decided]);
            None
        };
        self.before = decided.checked_sub(1).map(|last| self.held[last]).or(self.before);
        self.held.drain(..decided);
        out
    }
}

impl std::fmt::Debug for RedactingStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedactingStream({} bytes held back)", self.held.len())
    }
}
