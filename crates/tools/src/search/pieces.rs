//! Lines of any length for a searcher that holds whole lines: a line that is too long reaches it in pieces.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

/// The longest line that is searched as one. The searcher holds up to twenty lines of context as well, and all of that
/// stays far below its own limit.
pub(crate) const PIECE: usize = 256 << 10;
/// So much of a piece is repeated in the next one, so that what stands across their border is found.
pub(crate) const OVERLAP: usize = 16 << 10;

/// Which lines of the stream are pieces of one and the same line.
#[derive(Debug, Clone, Default)]
pub(crate) struct PieceBorders(Rc<RefCell<Vec<u64>>>);

impl PieceBorders {
    /// The number of a line as it is in the text, from its number in the stream. Both count from 1.
    pub(crate) fn line(&self, in_stream: u64) -> u64 {
        let before = self.0.borrow().partition_point(|border| *border <= in_stream);
        in_stream - u64::try_from(before).unwrap_or(0)
    }

    /// The first line that was too long to be searched as one.
    pub(crate) fn first_long(&self) -> Option<u64> {
        let first = self.0.borrow().first().copied();
        first.map(|border| self.line(border))
    }
}

/// Reads on, with a line break after each [`PIECE`] of a line, and [`OVERLAP`] of it again.
pub(crate) struct Pieces<R> {
    from: R,
    borders: PieceBorders,
    /// Line breaks that were given out.
    given: u64,
    /// Bytes of the current line, or piece, that were given out.
    length: usize,
    /// The end of what was given out of a long line.
    tail: Vec<u8>,
    /// What comes before the next byte that is read.
    pending: Vec<u8>,
}

impl<R: Read> Pieces<R> {
    pub(crate) fn new(from: R) -> (Self, PieceBorders) {
        let borders = PieceBorders::default();
        let pieces =
            Self { from, borders: borders.clone(), given: 0, length: 0, tail: Vec::new(), pending: Vec::new() };
        (pieces, borders)
    }

    /// Takes note of bytes that are given out, and says how many of them may be: up to the end of a piece.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let room = PIECE - self.length;
            let line = &bytes[at..bytes.len().min(at + room)];
            match line.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    self.given += 1;
                    self.length = 0;
                    self.tail.clear();
                    at += end + 1;
                }
                None => {
                    self.length += line.len();
                    self.remember(line);
                    at += line.len();
                    if self.length == PIECE {
                        self.cut();
                        return at;
                    }
                }
            }
        }
        at
    }

    /// Only the end of a piece comes again.
    fn remember(&mut self, line: &[u8]) {
        if self.length <= PIECE - OVERLAP {
            return;
        }
        self.tail.extend_from_slice(&line[line.len().saturating_sub(OVERLAP)..]);
        let over = self.tail.len().saturating_sub(OVERLAP);
        self.tail.drain(..over);
    }

    fn cut(&mut self) {
        self.given += 1;
        // The line of the stream that begins here.
        self.borders.0.borrow_mut().push(self.given + 1);
        self.pending = vec![b'\n'];
        self.pending.append(&mut self.tail);
        self.length = self.pending.len() - 1;
    }
}

impl<R: Read> Read for Pieces<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.pending.is_empty() {
            let count = self.pending.len().min(buffer.len());
            buffer[..count].copy_from_slice(&self.pending[..count]);
            self.pending.drain(..count);
            return Ok(count);
        }
        // Never past the end of a piece: what was read must be given out.
        let most = buffer.len().min(PIECE - self.length);
        let count = self.from.read(&mut buffer[..most])?;
        // A piece ends with the last byte of a read, if at all: no more than was left of it was read.
        let passed = self.pass(&buffer[..count]);
        debug_assert_eq!(passed, count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a text, and the borders in it.
    fn pieces(text: &[u8], buffer: usize) -> (Vec<u8>, PieceBorders) {
        let (mut pieces, borders) = Pieces::new(text);
        let (mut all, mut part) = (Vec::new(), vec![0; buffer]);
        loop {
            match pieces.read(&mut part).expect("from memory") {
                0 => return (all, borders),
                count => all.extend_from_slice(&part[..count]),
            }
        }
    }

    #[test]
    fn short_lines_pass_as_they_are() {
        let text = "one\ntwo\r\n\n".repeat(100_000) + "last";
        for buffer in [1, 7, 4096, 1 << 20] {
            let (all, borders) = pieces(text.as_bytes(), buffer);
            assert!(all == text.as_bytes() && borders.first_long().is_none(), "{buffer}");
        }
    }

    #[test]
    fn a_long_line_comes_in_pieces_that_overlap_and_keeps_its_number() {
        let long: Vec<u8> = (0..3 * PIECE).map(|at| b'a' + u8::try_from(at % 23).expect("small")).collect();
        let text = [b"first\n".as_slice(), &long, b"\nlast\n"].concat();
        for buffer in [1 << 10, 4097, 1 << 20] {
            let (all, borders) = pieces(&text, buffer);
            let lines: Vec<&[u8]> = all.split(|byte| *byte == b'\n').collect();
            assert_eq!(borders.first_long(), Some(2));
            let mut joined = lines[1].to_vec();
            for (at, piece) in lines[2..lines.len() - 2].iter().enumerate() {
                assert!(piece.len() <= PIECE);
                assert!(joined.ends_with(&piece[..OVERLAP]), "piece {at}");
                joined.extend_from_slice(&piece[OVERLAP..]);
                assert_eq!(borders.line(at as u64 + 3), 2);
            }
            assert!(joined == long, "{buffer}: nothing is lost");
            let last = lines.len() as u64 - 1;
            assert_eq!((borders.line(1), borders.line(2), borders.line(last)), (1, 2, 3));
        }
    }
}
