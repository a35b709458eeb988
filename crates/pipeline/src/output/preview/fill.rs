//! What is worth keeping: each strategy as an order of wishes, granted while the limit lasts.

use std::io;
use std::ops::Range;

use portcullis_base::limits::LINE_CHARS;
use portcullis_contract::{Anchor, Strategy};

use super::pieces::{Cost, KeptSlices, SliceFit, inline_marker_len};
use super::scan;
use super::source::{prefix, suffix};

/// A cut moves to a line end if one is this near.
const NEAR: u64 = 512;
/// Lines kept on each side of something that went wrong, and of a match.
const ROUND_ERROR: usize = 5;
const ROUND_MATCH: usize = 2;
/// Bytes shown before an anchor that lies deep in a long line.
const LEAD_IN: u64 = 500;
/// A line of this many bytes has more than `LINE_CHARS` characters, whatever they are.
const LINE_BYTES: u64 = 4 * LINE_CHARS as u64;
/// How often a slice is shortened to fit: once for what it costs, then for the markers it moves.
const SHORTENINGS: usize = 4;

/// Keeps what the strategy asks for, most important first.
pub(super) fn fill(kept: &mut KeptSlices<'_>, strategy: Strategy, anchors: Option<&[Anchor]>) -> io::Result<()> {
    let mut filler = Filler { head_at: 0, tail_at: kept.source.len(), kept };
    match strategy {
        Strategy::Head => filler.head(filler.kept.all()),
        Strategy::Tail => filler.tail(filler.kept.all()),
        Strategy::HeadTail => {
            filler.head(filler.kept.share(2))?;
            filler.tail(filler.kept.all())?;
            filler.head(filler.kept.all())
        }
        Strategy::AroundErrors => match anchors.filter(|anchors| !anchors.is_empty()) {
            Some(anchors) => filler.around_errors(anchors),
            None => {
                let found = scan::anchors(&filler.kept.source)?;
                filler.around_errors(&found)
            }
        },
        Strategy::MatchContext => {
            let anchors = anchors.unwrap_or_default();
            filler.first(anchors)?;
            filler.windows(anchors, ROUND_MATCH)?;
            filler.head(filler.kept.all())
        }
    }?;
    filler.kept.mend()
}

struct Filler<'k, 'a> {
    kept: &'k mut KeptSlices<'a>,
    /// Every line before this is kept, as far as lines are.
    head_at: u64,
    /// Every line from here on is kept, as far as lines are.
    tail_at: u64,
}

impl Filler<'_, '_> {
    fn around_errors(&mut self, anchors: &[Anchor]) -> io::Result<()> {
        self.first(anchors)?;
        self.head(self.kept.share(4))?;
        self.tail(self.kept.share(4))?;
        self.windows(anchors, ROUND_ERROR)?;
        // What few or near anchors leave over is not wasted.
        self.kept.mend()?;
        self.head(self.kept.share(4))?;
        self.tail(self.kept.all())?;
        self.head(self.kept.all())
    }

    /// Keeps lines from the start on.
    fn head(&mut self, cap: Cost) -> io::Result<()> {
        while self.head_at < self.kept.source.len() {
            let line = self.kept.source.line(self.head_at)?;
            if !self.line(&line, cap)? {
                let least = if self.head_at == 0 { 1 } else { NEAR + 1 };
                self.start_of(line, least, cap)?;
                break;
            }
            self.head_at = line.end;
        }
        Ok(())
    }

    /// Keeps lines from the end back.
    fn tail(&mut self, cap: Cost) -> io::Result<()> {
        while self.tail_at > 0 {
            let line = self.kept.source.line(self.tail_at - 1)?;
            if !self.tail_line(&line, cap)? {
                let least = if self.tail_at == self.kept.source.len() { 1 } else { NEAR + 1 };
                self.end_of(line, least, cap)?;
                break;
            }
            self.tail_at = line.start;
        }
        Ok(())
    }

    /// Keeps the first anchor before all else, its first `LINE_CHARS` bytes if it is longer (L52).
    fn first(&mut self, anchors: &[Anchor]) -> io::Result<()> {
        let Some(anchor) = anchors.iter().find_map(|a| self.clamped(a)) else { return Ok(()) };
        let source = &self.kept.source;
        let end = source.boundary_after(anchor.end.min(anchor.start + LINE_CHARS as u64))?;
        let mut at = source.boundary_before(anchor.start)?;
        while at < end {
            let upto = self.kept.source.line(at)?.end.min(end);
            self.start_of(at..upto, 1, self.kept.all())?;
            if self.kept.kept_from(at) < upto {
                break;
            }
            at = upto;
        }
        Ok(())
    }

    /// Keeps the anchors in their order, each with the lines round it, until one does not fit.
    fn windows(&mut self, anchors: &[Anchor], context: usize) -> io::Result<()> {
        for anchor in anchors {
            let Some(anchor) = self.clamped(anchor) else { continue };
            if !self.window(anchor, context)? {
                break;
            }
        }
        Ok(())
    }

    fn window(&mut self, anchor: Range<u64>, context: usize) -> io::Result<bool> {
        let cap = self.kept.all();
        let first = self.kept.source.line(anchor.start)?;
        if !self.line_round(&first, anchor.clone(), cap)? {
            return Ok(false);
        }
        let (mut before, mut after) = (first.start, first.end);
        while after < anchor.end {
            let line = self.kept.source.line(after)?;
            if !self.line(&line, cap)? {
                return Ok(false);
            }
            after = line.end;
        }
        for _ in 0..context {
            if after < self.kept.source.len() {
                let line = self.kept.source.line(after)?;
                if !self.line(&line, cap)? {
                    break;
                }
                after = line.end;
            }
            if before > 0 {
                let line = self.kept.source.line(before - 1)?;
                if !self.line(&line, cap)? {
                    break;
                }
                before = line.start;
            }
        }
        Ok(true)
    }

    /// The anchor as a slice of at least one byte; none if it lies outside.
    fn clamped(&self, anchor: &Anchor) -> Option<Range<u64>> {
        let len = self.kept.source.len();
        (anchor.start < len).then(|| anchor.start..anchor.end.clamp(anchor.start + 1, len))
    }

    /// Keeps a line; of one that is too long its start and its newline.
    fn line(&mut self, line: &Range<u64>, cap: Cost) -> io::Result<bool> {
        let slices = match self.cut_of(line)? {
            None => [line.clone(), line.end..line.end],
            Some(cut) => [line.start..cut, self.kept.text_end(line)..line.end],
        };
        Ok(self.kept.keep(&slices, cap)? == SliceFit::Kept)
    }

    /// As `line`, but of a last line that is too long its end: a progress bar ends with its result.
    fn tail_line(&mut self, line: &Range<u64>, cap: Cost) -> io::Result<bool> {
        if line.end < self.kept.source.len() || self.cut_of(line)?.is_none() {
            return self.line(line, cap);
        }
        let from = self.kept.source.boundary_after(line.end.saturating_sub(LINE_BYTES).max(line.start))?;
        let bytes = self.kept.source.read(from, line.end)?;
        // One more for the newline, which is no character of the line.
        let chars = LINE_CHARS + usize::from(self.kept.text_end(line) < line.end);
        let taken = suffix(&bytes, chars, usize::MAX) as u64;
        Ok(self.kept.keep_one(line.end - taken..line.end, cap)? == SliceFit::Kept)
    }

    /// As `line`, but of a line that is too long the part round the anchor, if its start does not show it.
    fn line_round(&mut self, line: &Range<u64>, anchor: Range<u64>, cap: Cost) -> io::Result<bool> {
        let Some(cut) = self.cut_of(line)? else { return self.line_or_part(line, anchor.start, cap) };
        if anchor.end <= cut {
            return self.line_or_part(line, anchor.start, cap);
        }
        let start = self.lead_in(line, anchor.start)?;
        let text_end = self.kept.text_end(line);
        let end = self.chars_from(start, text_end)?;
        if self.kept.keep(&[start..end, text_end..line.end], cap)? == SliceFit::Kept {
            return Ok(true);
        }
        self.start_of(start..text_end, NEAR + LEAD_IN, cap)
    }

    fn line_or_part(&mut self, line: &Range<u64>, anchor: u64, cap: Cost) -> io::Result<bool> {
        if self.line(line, cap)? {
            return Ok(true);
        }
        let start = self.lead_in(line, anchor)?;
        self.start_of(start..line.end, NEAR + LEAD_IN, cap)
    }

    fn lead_in(&self, line: &Range<u64>, anchor: u64) -> io::Result<u64> {
        self.kept.source.boundary_before(anchor.saturating_sub(LEAD_IN).max(line.start))
    }

    /// Where a line is cut inside; none if it is short enough or the marker would save nothing.
    fn cut_of(&mut self, line: &Range<u64>) -> io::Result<Option<u64>> {
        if line.end - line.start <= LINE_CHARS as u64 {
            return Ok(None);
        }
        let end = self.kept.text_end(line);
        let cut = self.chars_from(line.start, end)?;
        let rest = end - cut;
        Ok((rest > inline_marker_len(rest) as u64).then_some(cut))
    }

    /// The end of the first `LINE_CHARS` characters from `start`, or `end` if it comes first.
    fn chars_from(&self, start: u64, end: u64) -> io::Result<u64> {
        let upto =
            if end - start <= LINE_BYTES { end } else { self.kept.source.boundary_before(start + LINE_BYTES)? };
        let bytes = self.kept.source.read(start, upto)?;
        Ok(start + prefix(&bytes, LINE_CHARS, usize::MAX) as u64)
    }

    /// Keeps as much of the start of a slice as fits, if that is at least `least` bytes.
    fn start_of(&mut self, slice: Range<u64>, least: u64, cap: Cost) -> io::Result<bool> {
        let least = least.min(slice.end - slice.start);
        let already = self.kept.kept_from(slice.start).min(slice.end) - slice.start;
        let mut room = self.kept.room(cap) + usize::try_from(already).unwrap_or(0);
        for _ in 0..SHORTENINGS {
            let read = (room as u64).min(LINE_BYTES).min(slice.end - slice.start);
            let upto = self.kept.source.boundary_before(slice.start + read)?.min(slice.end);
            let bytes = self.kept.source.read(slice.start, upto.max(slice.start))?;
            let taken = prefix(&bytes, LINE_CHARS, room) as u64;
            if taken < least || taken == 0 {
                break;
            }
            match self.kept.keep_one(slice.start..slice.start + taken, cap)? {
                SliceFit::Kept => return Ok(true),
                SliceFit::OverBytes(over) => room = room.saturating_sub(over),
                SliceFit::OverLines => break,
            }
        }
        Ok(false)
    }

    /// Keeps as much of the end of a slice as fits, if that is at least `least` bytes.
    fn end_of(&mut self, slice: Range<u64>, least: u64, cap: Cost) -> io::Result<bool> {
        let already = slice.end - self.kept.kept_until(slice.end).max(slice.start);
        let mut room = self.kept.room(cap) + usize::try_from(already).unwrap_or(0);
        for _ in 0..SHORTENINGS {
            let read = (room as u64).min(LINE_BYTES).min(slice.end - slice.start);
            let from = self.kept.source.boundary_after(slice.end - read)?.min(slice.end);
            let bytes = self.kept.source.read(from, slice.end)?;
            let taken = suffix(&bytes, LINE_CHARS, room) as u64;
            if taken < least || taken == 0 {
                break;
            }
            match self.kept.keep_one(slice.end - taken..slice.end, cap)? {
                SliceFit::Kept => return Ok(true),
                SliceFit::OverBytes(over) => room = room.saturating_sub(over),
                SliceFit::OverLines => break,
            }
        }
        Ok(false)
    }
}
