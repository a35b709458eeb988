//! Read baselines (tool-contract §19): which content of which file was delivered to this thread.

use std::collections::BTreeMap;

use portcullis_base::{Digest, FileFact, Hunk, LineRange, ObservationId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Body, Event};

/// A set of lines, as sorted ranges that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Coverage(Vec<LineRange>);

impl Coverage {
    /// Every line of a file of `total` lines.
    #[must_use]
    pub fn full(total: u64) -> Self {
        let mut coverage = Self::default();
        coverage.add(LineRange { first: 1, last: total });
        coverage
    }

    /// Covers these lines too.
    pub fn add(&mut self, range: LineRange) {
        if range.is_empty() {
            return;
        }
        let mut merged = range;
        self.0.retain(|r| {
            let touches = r.first <= merged.last.saturating_add(1) && merged.first <= r.last.saturating_add(1);
            if touches {
                merged = LineRange { first: merged.first.min(r.first), last: merged.last.max(r.last) };
            }
            !touches
        });
        let at = self.0.partition_point(|r| r.first < merged.first);
        self.0.insert(at, merged);
    }

    /// Whether every line of `range` is covered. An empty range always is.
    #[must_use]
    pub fn contains(&self, range: LineRange) -> bool {
        range.is_empty() || self.0.iter().any(|r| r.first <= range.first && range.last <= r.last)
    }

    /// The ranges, sorted.
    #[must_use]
    pub fn ranges(&self) -> &[LineRange] {
        &self.0
    }

    /// The coverage after an edit: lines keep their coverage, moved; what the edit put in is covered.
    #[must_use]
    pub fn after(&self, hunks: &[Hunk]) -> Self {
        let mut moved = Self::default();
        // Where the next old line stands in the new content, and the old line it is.
        let (mut old, mut new) = (1u64, 1u64);
        for hunk in hunks {
            self.copy(&mut moved, old, hunk.first, new);
            new += hunk.first.saturating_sub(old);
            moved.add(LineRange { first: new, last: (new + hunk.added).saturating_sub(1) });
            new += hunk.added;
            old = hunk.first + hunk.removed;
        }
        self.copy(&mut moved, old, u64::MAX, new);
        moved
    }

    /// Copies what covers old lines `from..to` to `into`, where `from` is new line `at`.
    fn copy(&self, into: &mut Self, from: u64, to: u64, at: u64) {
        for range in &self.0 {
            let first = range.first.max(from);
            let last = range.last.min(to.saturating_sub(1));
            if first <= last {
                into.add(LineRange { first: at + (first - from), last: at + (last - from) });
            }
        }
    }
}

/// What this thread was shown of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    pub sha256: Digest,
    pub size: u64,
    pub mtime: Timestamp,
    pub total_lines: u64,
    pub coverage: Coverage,
    pub observation_id: ObservationId,
    pub seq: u64,
}

impl Baseline {
    /// Whether the whole file was delivered.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.coverage.contains(LineRange { first: 1, last: self.total_lines })
    }
}

/// Baselines by the session's name for a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Baselines {
    files: BTreeMap<String, Baseline>,
}

impl Baselines {
    /// The baseline of a file, if it was ever delivered.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Baseline> {
        self.files.get(path)
    }

    pub(super) fn apply(&mut self, event: &Event, body: &Body) {
        let Body::Observed(observed) = body else {
            return;
        };
        for fact in &observed.files {
            let old = self.files.get(fact.path());
            let baseline = |sha256: &Digest, size: &u64, mtime: &Timestamp, total: &u64, coverage: Coverage| Baseline {
                sha256: *sha256,
                size: *size,
                mtime: *mtime,
                total_lines: *total,
                coverage,
                observation_id: observed.observation_id,
                seq: event.seq,
            };
            let new = match fact {
                FileFact::Delivered { sha256, size, mtime, total_lines, lines, .. } => {
                    // Lines of another content say nothing about this one.
                    let mut coverage =
                        old.filter(|b| b.sha256 == *sha256).map(|b| b.coverage.clone()).unwrap_or_default();
                    for range in lines {
                        coverage.add(*range);
                    }
                    baseline(sha256, size, mtime, total_lines, coverage)
                }
                FileFact::Edited { before, sha256, size, mtime, total_lines, hunks, .. } => {
                    let known = old.filter(|b| b.sha256 == *before).map(|b| b.coverage.after(hunks));
                    baseline(sha256, size, mtime, total_lines, known.unwrap_or_default())
                }
                FileFact::Written { sha256, size, mtime, total_lines, .. } => {
                    baseline(sha256, size, mtime, total_lines, Coverage::full(*total_lines))
                }
            };
            self.files.insert(fact.path().to_owned(), new);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn lines(coverage: &Coverage) -> BTreeSet<u64> {
        coverage.ranges().iter().flat_map(|r| r.first..=r.last).collect()
    }

    proptest! {
        /// The oracle is a plain set of line numbers.
        #[test]
        fn l62_coverage_is_a_set_of_lines(ranges in prop::collection::vec((1u64..40, 0u64..8), 0..12), probe in (1u64..50, 0u64..5)) {
            let mut coverage = Coverage::default();
            let mut oracle = BTreeSet::new();
            for (first, len) in ranges {
                let range = LineRange { first, last: (first + len).saturating_sub(1) };
                coverage.add(range);
                oracle.extend(range.first..=range.last.max(range.first - 1));
            }
            prop_assert_eq!(lines(&coverage), oracle.clone());
            prop_assert!(coverage.ranges().windows(2).all(|w| w[0].last + 1 < w[1].first));
            let range = LineRange { first: probe.0, last: (probe.0 + probe.1).saturating_sub(1) };
            prop_assert_eq!(coverage.contains(range), (range.first..=range.last).all(|l| oracle.contains(&l)));
        }

        /// An edit moves covered lines with their text; the oracle labels every line of the old file.
        #[test]
        fn l62_own_edits_shift_and_extend_coverage(
            total in 1u64..30,
            covered in prop::collection::btree_set(1u64..30, 0..20),
            cuts in prop::collection::vec((0u64..6, 0u64..4, 0u64..4), 0..4),
        ) {
            let mut coverage = Coverage::default();
            for line in covered.iter().filter(|l| **l <= total) {
                coverage.add(LineRange { first: *line, last: *line });
            }
            let mut hunks = Vec::new();
            let mut at = 1;
            for (skip, removed, added) in cuts {
                let first = at + skip;
                if first + removed > total + 1 { break; }
                hunks.push(Hunk { first, removed, added });
                at = first + removed;
            }
            let mut expected = BTreeSet::new();
            let mut new = 0u64;
            let mut old = 1u64;
            let mut rest = hunks.clone();
            loop {
                if let Some(hunk) = rest.first().copied().filter(|h| h.first == old) {
                    rest.remove(0);
                    for _ in 0..hunk.added { new += 1; expected.insert(new); }
                    old += hunk.removed;
                    continue;
                }
                if old > total { break; }
                new += 1;
                if coverage.contains(LineRange { first: old, last: old }) { expected.insert(new); }
                old += 1;
            }
            prop_assert_eq!(lines(&coverage.after(&hunks)), expected);
        }
    }
}
