//! The source, seen as lines and characters, one block at a time.

use std::io;
use std::ops::Range;

use portcullis_base::Window;

/// Bytes held at once while streaming.
pub(super) const BLOCK: u64 = 32 * 1024;
/// Long lines whose place is remembered, so that many anchors in one huge line cost one search.
const REMEMBERED: usize = 64;
/// What stands for an invalid sequence in text is this long.
const REPLACEMENT: usize = char::REPLACEMENT_CHARACTER.len_utf8();

/// A windowed source. Holds one block, whatever its length.
pub(super) struct Source<'a> {
    reader: &'a dyn Window,
    len: u64,
    block: Vec<u8>,
    block_start: u64,
    long_lines: Vec<Range<u64>>,
}

impl<'a> Source<'a> {
    pub(super) fn new(reader: &'a dyn Window) -> Self {
        Self { reader, len: reader.len(), block: Vec::new(), block_start: 0, long_lines: Vec::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Exactly these bytes. A source that shrank is an error: a preview of it would be a lie.
    pub(super) fn read(&self, start: u64, end: u64) -> io::Result<Vec<u8>> {
        let bytes = self.reader.slice(start, end)?;
        if bytes.len() as u64 == end.saturating_sub(start) {
            Ok(bytes)
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("the text ends before byte {end}")))
        }
    }

    /// The held block round `pos`, and where it starts.
    fn block_at(&mut self, pos: u64) -> io::Result<(u64, &[u8])> {
        let start = pos - pos % BLOCK;
        if self.block.is_empty() || self.block_start != start {
            self.block = self.read(start, (start + BLOCK).min(self.len))?;
            self.block_start = start;
        }
        Ok((start, &self.block))
    }

    /// Whether the last line ends with a newline.
    pub(super) fn is_terminated(&self) -> io::Result<bool> {
        Ok(self.read(self.len.saturating_sub(1), self.len)? == b"\n")
    }

    /// How many lines have their last byte in this range.
    pub(super) fn lines_within(&mut self, start: u64, end: u64) -> io::Result<u64> {
        let mut lines = 0;
        let mut at = start;
        while at < end {
            let (from, block) = self.block_at(at)?;
            let upto = end.min(from + block.len() as u64);
            lines += newlines(&block[index(at - from)..index(upto - from)]) as u64;
            at = upto;
        }
        let open = start < end && end == self.len && !self.is_terminated()?;
        Ok(lines + u64::from(open))
    }

    /// The line that holds the byte at `pos`, its newline included.
    pub(super) fn line(&mut self, pos: u64) -> io::Result<Range<u64>> {
        if let Some(known) = self.long_lines.iter().find(|line| line.contains(&pos)) {
            return Ok(known.clone());
        }
        let line = self.line_start(pos)?..self.line_end(pos)?;
        if line.end - line.start > BLOCK {
            if self.long_lines.len() == REMEMBERED {
                self.long_lines.remove(0);
            }
            self.long_lines.push(line.clone());
        }
        Ok(line)
    }

    fn line_start(&mut self, pos: u64) -> io::Result<u64> {
        let mut at = pos;
        while at > 0 {
            let (from, block) = self.block_at(at - 1)?;
            if let Some(i) = block[..index(at - from)].iter().rposition(|b| *b == b'\n') {
                return Ok(from + i as u64 + 1);
            }
            at = from;
        }
        Ok(0)
    }

    fn line_end(&mut self, pos: u64) -> io::Result<u64> {
        let mut at = pos;
        while at < self.len {
            let (from, block) = self.block_at(at)?;
            if let Some(i) = block[index(at - from)..].iter().position(|b| *b == b'\n') {
                return Ok(at + i as u64 + 1);
            }
            at = from + block.len() as u64;
        }
        Ok(self.len)
    }

    /// The last place not after `pos` that is not inside a character.
    pub(super) fn boundary_before(&self, pos: u64) -> io::Result<u64> {
        if pos >= self.len {
            return Ok(self.len);
        }
        let from = pos.saturating_sub(3);
        let bytes = self.read(from, pos + 1)?;
        for (i, byte) in bytes.iter().enumerate().rev() {
            if *byte & 0xC0 != 0x80 {
                let lead = from + i as u64;
                return Ok(if lead + width(*byte) > pos { lead } else { pos });
            }
        }
        Ok(pos)
    }

    /// The first place not before `pos` that is not inside a character.
    pub(super) fn boundary_after(&self, pos: u64) -> io::Result<u64> {
        let before = self.boundary_before(pos)?;
        if before >= pos {
            return Ok(pos.min(self.len));
        }
        let lead = self.read(before, before + 1)?;
        Ok((before + lead.first().map_or(1, |b| width(*b))).min(self.len))
    }
}

/// How long a character is by its first byte.
fn width(lead: u8) -> u64 {
    match lead {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    }
}

/// A place inside a block or a piece, which are both far smaller than memory.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

pub(super) fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|b| **b == b'\n').count()
}

/// How long these bytes are as text, invalid ones replaced.
pub(super) fn shown_len(bytes: &[u8]) -> usize {
    shown_chars(bytes).map(|(_, shown)| shown).sum()
}

/// The characters of these bytes: length in the source, length in the text.
fn shown_chars(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let invalid = chunk.invalid().len();
        let valid = chunk.valid().chars().map(|c| (c.len_utf8(), c.len_utf8()));
        valid.chain((invalid > 0).then_some((invalid, REPLACEMENT)))
    })
}

/// The length of the longest start of `bytes` with at most this many characters and bytes of text.
pub(super) fn prefix(bytes: &[u8], chars: usize, room: usize) -> usize {
    let mut taken = 0;
    let mut shown = 0;
    for (raw, text) in shown_chars(bytes).take(chars) {
        if shown + text > room {
            break;
        }
        taken += raw;
        shown += text;
    }
    taken
}

/// The length of the longest end of `bytes` with at most this many characters and bytes of text.
pub(super) fn suffix(bytes: &[u8], chars: usize, room: usize) -> usize {
    let (mut left, mut shown) = shown_chars(bytes).fold((0, 0), |(n, sum), (_, text)| (n + 1, sum + text));
    let mut dropped = 0;
    for (raw, text) in shown_chars(bytes) {
        if left <= chars && shown <= room {
            break;
        }
        dropped += raw;
        left -= 1;
        shown -= text;
    }
    bytes.len() - dropped
}
