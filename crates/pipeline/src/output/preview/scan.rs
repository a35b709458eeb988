//! Anchors for a text whose tool offers none: words that failing programs print.

use std::io;

use portcullis_contract::Anchor;

use super::source::{BLOCK, Source};

/// The fixed set of tool-contract §18. `error` counts in any case, for `TypeError:` and `ERROR` say the same.
const MARKERS: [&[u8]; 5] = [b"error", b"FAIL", b"panicked", b"Traceback", b"Exception"];
/// Anchors per word: one that is everywhere cannot crowd out the one that matters.
const PER_MARKER: usize = 12;
/// The last lines that say anything: where a failing command names its reason.
const LAST_LINES: usize = 4;
/// What a block must see of the next one, so that no word is lost between them.
const OVERLAP: u64 = 16;

/// At most `5 · PER_MARKER + LAST_LINES` anchors: first the first of every word, then the second of
/// each, and so on, and the last lines at the end. One pass, one block in memory.
pub(super) fn anchors(source: &Source<'_>) -> io::Result<Vec<Anchor>> {
    let mut scan = Scan::default();
    let mut at = 0;
    while at < source.len() {
        let block = source.read(at, (at + BLOCK + OVERLAP).min(source.len()))?;
        let own = block.len().min(BLOCK as usize);
        for i in 0..own {
            scan.step(at + i as u64, &block[i..]);
        }
        at += own as u64;
    }
    Ok(scan.finish(source.len()))
}

#[derive(Default)]
struct Scan {
    /// What was found, with its rank among those of its word.
    hits: Vec<(usize, Anchor)>,
    counts: [usize; MARKERS.len()],
    /// Words seen in this line: one anchor each is enough.
    seen: [bool; MARKERS.len()],
    /// The first byte of this line that is not blank.
    said: Option<u64>,
    last_lines: Vec<Anchor>,
}

impl Scan {
    /// Takes the byte at `pos`, the first of `rest`.
    fn step(&mut self, pos: u64, rest: &[u8]) {
        let byte = rest[0];
        if byte == b'\n' {
            self.end_line(pos);
            return;
        }
        if self.said.is_none() && !byte.is_ascii_whitespace() {
            self.said = Some(pos);
        }
        let Some(word) = marker_at(rest) else { return };
        if !self.seen[word] && self.counts[word] < PER_MARKER {
            self.hits.push((self.counts[word], Anchor { start: pos, end: pos + MARKERS[word].len() as u64 }));
            self.counts[word] += 1;
        }
        self.seen[word] = true;
    }

    fn end_line(&mut self, end: u64) {
        self.seen = [false; MARKERS.len()];
        if let Some(start) = self.said.take() {
            if self.last_lines.len() == LAST_LINES {
                self.last_lines.remove(0);
            }
            self.last_lines.push(Anchor { start, end });
        }
    }

    fn finish(mut self, len: u64) -> Vec<Anchor> {
        self.end_line(len);
        self.hits.sort_by_key(|(rank, anchor)| (*rank, anchor.start));
        let hits = self.hits.into_iter().map(|(_, anchor)| anchor);
        hits.chain(self.last_lines.into_iter().rev()).collect()
    }
}

fn marker_at(rest: &[u8]) -> Option<usize> {
    let word = match rest[0] {
        b'e' | b'E' if rest.len() >= 5 && rest[..5].eq_ignore_ascii_case(MARKERS[0]) => 0,
        b'F' => 1,
        b'p' => 2,
        b'T' => 3,
        b'E' => 4,
        _ => return None,
    };
    (word == 0 || rest.starts_with(MARKERS[word])).then_some(word)
}
