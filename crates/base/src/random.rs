//! Randomness behind two traits, so that a run can be repeated from a seed.

use std::sync::{Mutex, PoisonError};

use crate::Timestamp;

/// Makes the 128-bit numbers behind ids: UUIDv7, so that they sort by time.
pub trait IdGen: Send + Sync {
    /// The next number, never given before by this generator. Two calls with equal `at` return
    /// increasing numbers.
    fn next(&self, at: Timestamp) -> u128;
}

/// Unpredictable bytes for keys and nonces. Ids do not need it: they are names, not rights.
pub trait Entropy: Send + Sync {
    /// Fills `buf` whole.
    fn fill(&self, buf: &mut [u8]);
}

/// A small deterministic generator (SplitMix64): equal seeds give equal sequences.
#[derive(Debug)]
pub struct SeededIds {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    seed: [u64; 2],
    last: u128,
}

impl SeededIds {
    /// A generator whose whole sequence follows from `seed` and the times it is asked at.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::from_words([seed, seed ^ 0xa5a5_5a5a_c3c3_3c3c])
    }

    fn from_words(seed: [u64; 2]) -> Self {
        Self { state: Mutex::new(State { seed, last: 0 }) }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl IdGen for SeededIds {
    fn next(&self, at: Timestamp) -> u128 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut random = [0u8; 10];
        random[..8].copy_from_slice(&split_mix(&mut state.seed[0]).to_be_bytes());
        random[8..].copy_from_slice(&split_mix(&mut state.seed[1]).to_be_bytes()[..2]);
        let millis = u64::try_from(at.as_micros().max(0) / 1_000).unwrap_or(0);
        let fresh = uuid::Builder::from_unix_timestamp_millis(millis, &random).as_uuid().as_u128();
        // Inside one millisecond (and across a clock that steps back) the order is kept by counting on.
        let next = if fresh <= state.last { state.last + 1 } else { fresh };
        state.last = next;
        next
    }
}

impl Entropy for SeededIds {
    fn fill(&self, buf: &mut [u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in buf.chunks_mut(8) {
            let word = split_mix(&mut state.seed[1]).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// The generator of a running program: ids seeded once by the operating system, entropy always from it.
#[derive(Debug)]
pub struct SystemIds {
    ids: SeededIds,
}

impl SystemIds {
    /// Seeds itself from the operating system.
    ///
    /// # Panics
    /// If the operating system has no randomness to give; nothing safe can be done then.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "seeding is an effect; a Default would hide it")]
    pub fn new() -> Self {
        let mut seed = [0u8; 16];
        os_fill(&mut seed);
        let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|k| seed[i * 8 + k]));
        Self { ids: SeededIds::from_words([word(0), word(1)]) }
    }
}

fn os_fill(buf: &mut [u8]) {
    // Invariant: a kernel that runs us answers getrandom; without it no key can be trusted.
    getrandom::fill(buf).expect("the operating system gives random bytes");
}

impl IdGen for SystemIds {
    fn next(&self, at: Timestamp) -> u128 {
        self.ids.next(at)
    }
}

impl Entropy for SystemIds {
    fn fill(&self, buf: &mut [u8]) {
        os_fill(buf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_ids_and_order_holds_inside_a_millisecond() {
        let (a, b) = (SeededIds::new(7), SeededIds::new(7));
        let at = Timestamp::from_micros(1_700_000_000_000_000);
        let left: Vec<u128> = (0..1_000).map(|_| a.next(at)).collect();
        let right: Vec<u128> = (0..1_000).map(|_| b.next(at)).collect();
        assert_eq!(left, right);
        assert!(left.windows(2).all(|w| w[0] < w[1]));
        assert_ne!(SeededIds::new(8).next(at), left[0]);
    }
}
