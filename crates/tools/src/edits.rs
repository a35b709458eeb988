//! How far two texts are apart, counted in lines, up to a limit.
//!
//! A fine diff of two texts that have little in common takes time with the square of their size. Whether it is worth
//! making is decided here by the texts alone and never by a clock: an approval is bound to the diff that was shown, so
//! a busy machine must not change it.

use std::collections::HashMap;

/// Lines put in or taken out, up to which a change is shown line by line.
const EDITS_MAX: usize = 4_000;
/// Bound of (lines of both texts) x (edits): what a search may cost at worst.
const WORK_MAX: usize = 1 << 28;

/// The lines both texts begin and end with, and whether what lies between is near enough for a fine diff.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Distance {
    pub(crate) prefix: usize,
    pub(crate) suffix: usize,
    pub(crate) near: bool,
}

/// Compares two texts line by line.
pub(crate) fn distance(old: &[&str], new: &[&str]) -> Distance {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let suffix = old[prefix..].iter().rev().zip(new[prefix..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[prefix..old.len() - suffix], &new[prefix..new.len() - suffix]);
    let limit = EDITS_MAX.min(WORK_MAX / (old.len() + new.len() + 1));
    // Texts of few lines are near whatever they say, and so is one that only grew or only shrank.
    let near = old.len() + new.len() <= limit || old.is_empty() || new.is_empty() || within(old, new, limit);
    Distance { prefix, suffix, near }
}

/// Whether at most `limit` lines must be put in or taken out: Myers' greedy search, without keeping its path.
fn within(old: &[&str], new: &[&str], limit: usize) -> bool {
    if old.len().abs_diff(new.len()) > limit {
        return false;
    }
    let mut numbers = HashMap::new();
    let mut numbered = |lines: &[&str]| -> Vec<usize> {
        lines
            .iter()
            .map(|line| {
                let next = numbers.len();
                *numbers.entry((*line).to_owned()).or_insert(next)
            })
            .collect()
    };
    let (old, new) = (numbered(old), numbered(new));
    // furthest[limit + k + 1]: how far into `old` the diagonal `k` (lines of `old` less lines of `new`) was followed.
    let mut furthest = vec![0usize; 2 * limit + 3];
    for edits in 0..=limit {
        for at in (limit - edits..=limit + edits).step_by(2) {
            let (below, above) = (furthest[at], furthest[at + 2]);
            let down = at == limit - edits || (at != limit + edits && below < above);
            let mut x = if down { above } else { below + 1 };
            // x - k, with k = at - limit.
            let mut y = (x + limit).saturating_sub(at);
            while x < old.len() && y < new.len() && old[x] == new[y] {
                x += 1;
                y += 1;
            }
            furthest[at + 1] = x;
            if x >= old.len() && y >= new.len() {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<&str> {
        text.split_inclusive('\n').collect()
    }

    #[test]
    fn the_number_of_edits_is_counted_up_to_the_limit() {
        for (old, new, edits) in [
            ("a\nb\nc\n", "a\nb\nc\n", 0),
            ("a\nb\nc\n", "a\nx\nc\n", 2),
            ("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", 5),
            ("", "a\nb\n", 2),
            ("a\nb\n", "", 2),
            ("a\nb\n", "c\nd\n", 4),
        ] {
            let (old, new) = (lines(old), lines(new));
            assert!(within(&old, &new, edits), "{old:?} to {new:?} takes {edits}");
            assert!(edits == 0 || !within(&old, &new, edits - 1), "{old:?} to {new:?} takes no fewer than {edits}");
        }
    }

    #[test]
    fn what_both_texts_share_at_their_ends_is_told() {
        let found = distance(&lines("a\nb\nc\nd\n"), &lines("a\nx\nd\n"));
        assert_eq!(found, Distance { prefix: 1, suffix: 1, near: true });
        let grown = distance(&lines("a\n"), &lines("a\na\n"));
        assert_eq!(grown, Distance { prefix: 1, suffix: 0, near: true });
    }
}
