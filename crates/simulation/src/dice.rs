//! Chance from a seed. Every actor has dice of its own, so that one who rolls once more changes nothing for the others.

use portcullis_base::{Digest, Entropy as _, SeededIds};

/// A sequence of rolls that follows from a seed and a name.
#[derive(Debug)]
pub struct Dice(SeededIds);

impl Dice {
    /// The dice of the actor `name` in the run `seed`.
    #[must_use]
    pub fn of(seed: u64, name: &str) -> Self {
        let digest = Digest::of(format!("{seed}/{name}").as_bytes());
        let mut word = [0u8; 8];
        word.copy_from_slice(&digest.as_bytes()[..8]);
        Self(SeededIds::new(u64::from_le_bytes(word)))
    }

    /// A number below `end`; 0 if there is none.
    #[must_use]
    pub fn below(&self, end: u64) -> u64 {
        let mut word = [0u8; 8];
        self.0.fill(&mut word);
        // The bias of a remainder is far below what any of these rolls could notice.
        u64::from_le_bytes(word).checked_rem(end).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    #[must_use]
    pub fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in `percent` of a hundred rolls.
    #[must_use]
    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `all`, which has at least one.
    #[must_use]
    pub fn pick<T: Clone>(&self, all: &[T]) -> T {
        all[self.index(all.len())].clone()
    }

    /// An index below `len`.
    #[must_use]
    pub fn index(&self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }
}
