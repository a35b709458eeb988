//! What is kept of the source, what showing it costs, and the text it makes.

use std::io;
use std::ops::Range;

use super::source::{Source, newlines, shown_len};
use super::{Limits, Preview, Segment, Totals};

/// Less than this beside the markers tells a model nothing: then only the marker is sent.
const LEAST: usize = 64;

const OPEN: &str = "[… ";
const ONE_LINE: &str = " line, ";
const LINES: &str = " lines, ";
const OMITTED: &str = " bytes omitted …]";
const OMITTED_INLINE: &str = " bytes of this line omitted …]";

/// A size of shown text, or a limit on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    pub bytes: usize,
    pub lines: usize,
}

/// Whether a slice fits into the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SliceFit {
    /// It is kept.
    Kept,
    /// It is not, for it would cost this many bytes too much.
    OverBytes(usize),
    /// It is not, for it would cost too many lines.
    OverLines,
}

/// A kept slice of the source. Two never touch: they would be one.
#[derive(Debug, Clone)]
struct Span {
    start: u64,
    end: u64,
    /// Where its first line starts and its last line ends, kept or not: says whether a gap beside it
    /// lies within one line.
    line_start: u64,
    line_end: u64,
    /// Its length as text.
    shown: usize,
    newlines: usize,
}

/// What was left out between two spans, or at an end.
struct Gap {
    start: u64,
    end: u64,
    /// It lies within one line, and so does its marker.
    inline: bool,
    /// The line before it was cut: the marker needs a new one.
    breaks: bool,
}

enum Item<'s> {
    Gap(Gap),
    Span(&'s Span),
}

/// The kept slices. Invariant: `cost` of the slices is within the limits, or there are none.
pub(super) struct KeptSlices<'a> {
    pub source: Source<'a>,
    totals: Totals,
    header: String,
    terminated: bool,
    limits: Cost,
    cost: Cost,
    /// The cost of keeping nothing.
    base: Cost,
    spans: Vec<Span>,
}

impl<'a> KeptSlices<'a> {
    pub(super) fn new(source: Source<'a>, totals: Totals, mut header: String, limits: Limits) -> io::Result<Self> {
        if !header.is_empty() && !header.ends_with('\n') {
            header.push('\n');
        }
        let terminated = source.is_terminated()?;
        let limits = Cost { bytes: limits.bytes, lines: limits.lines };
        let none = Cost { bytes: 0, lines: 0 };
        let mut kept = Self { source, totals, header, terminated, limits, cost: none, base: none, spans: Vec::new() };
        kept.base = kept.cost_of(&[]);
        kept.cost = kept.base;
        Ok(kept)
    }

    /// Whether the limits hold anything beside the header and a marker.
    pub(super) fn is_worthwhile(&self) -> bool {
        self.base.bytes.saturating_add(LEAST) <= self.limits.bytes && self.base.lines < self.limits.lines
    }

    /// The whole limit.
    pub(super) fn all(&self) -> Cost {
        self.limits
    }

    /// What is spent by now and one `part`th of what there was to spend.
    pub(super) fn share(&self, part: usize) -> Cost {
        let of = |limit: usize, base: usize, cost: usize| limit.min(cost + limit.saturating_sub(base) / part);
        Cost {
            bytes: of(self.limits.bytes, self.base.bytes, self.cost.bytes),
            lines: of(self.limits.lines, self.base.lines, self.cost.lines),
        }
    }

    /// Bytes left below `cap`.
    pub(super) fn room(&self, cap: Cost) -> usize {
        cap.bytes.saturating_sub(self.cost.bytes)
    }

    /// How far the source is kept without a gap from `pos`.
    pub(super) fn kept_from(&self, pos: u64) -> u64 {
        self.spans.iter().find(|s| s.start <= pos && pos < s.end).map_or(pos, |s| s.end)
    }

    /// How far back the source is kept without a gap from `pos`.
    pub(super) fn kept_until(&self, pos: u64) -> u64 {
        self.spans.iter().find(|s| s.start < pos && pos <= s.end).map_or(pos, |s| s.start)
    }

    /// Where the text of this line ends and its newline starts.
    pub(super) fn text_end(&self, line: &Range<u64>) -> u64 {
        if line.end < self.source.len() || self.terminated { line.end - 1 } else { line.end }
    }

    /// Keeps all these slices, or none of them if that would cost more than `cap`.
    pub(super) fn keep(&mut self, slices: &[Range<u64>], cap: Cost) -> io::Result<SliceFit> {
        let mut fresh = Vec::new();
        for slice in slices {
            for part in self.not_kept(slice) {
                fresh.push(self.measure(part)?);
            }
        }
        if fresh.is_empty() {
            return Ok(SliceFit::Kept);
        }
        let spans = joined(self.spans.iter().cloned().chain(fresh).collect());
        let cost = self.cost_of(&spans);
        if cost.lines > cap.lines {
            return Ok(SliceFit::OverLines);
        }
        if cost.bytes > cap.bytes {
            return Ok(SliceFit::OverBytes(cost.bytes - cap.bytes));
        }
        self.spans = spans;
        self.cost = cost;
        Ok(SliceFit::Kept)
    }

    /// Keeps this slice, if that does not cost more than `cap`.
    pub(super) fn keep_one(&mut self, slice: Range<u64>, cap: Cost) -> io::Result<SliceFit> {
        self.keep(std::slice::from_ref(&slice), cap)
    }

    /// Keeps what is shorter than the marker that stands for it.
    pub(super) fn mend(&mut self) -> io::Result<()> {
        let gaps: Vec<Gap> = layout(&self.spans, self.source.len())
            .filter_map(|item| if let Item::Gap(gap) = item { Some(gap) } else { None })
            .collect();
        for gap in gaps {
            let marker = self.gap_cost(&gap).bytes;
            if gap.end - gap.start <= marker as u64 {
                // Invalid bytes grow when shown: `keep` still refuses if this costs more than it saves.
                let cap = Cost { bytes: self.cost.bytes, lines: self.limits.lines };
                self.keep_one(gap.start..gap.end, cap)?;
            }
        }
        Ok(())
    }

    fn not_kept(&self, slice: &Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut at = slice.start;
        for span in self.spans.iter().filter(|s| s.end > slice.start && s.start < slice.end) {
            parts.push(at..span.start);
            at = span.end;
        }
        parts.push(at..slice.end);
        parts.retain(|part| part.start < part.end);
        parts
    }

    fn measure(&mut self, part: Range<u64>) -> io::Result<Span> {
        let bytes = self.source.read(part.start, part.end)?;
        Ok(Span {
            line_start: self.source.line(part.start)?.start,
            line_end: self.source.line(part.end - 1)?.end,
            start: part.start,
            end: part.end,
            shown: shown_len(&bytes),
            newlines: newlines(&bytes),
        })
    }

    /// What the text of these spans costs, or a little more: the lines of a gap are counted only once,
    /// when it is rendered.
    fn cost_of(&self, spans: &[Span]) -> Cost {
        let mut cost = Cost { bytes: self.header.len(), lines: newlines(self.header.as_bytes()) };
        let mut open = false;
        for item in layout(spans, self.source.len()) {
            let more = match &item {
                Item::Gap(gap) => self.gap_cost(gap),
                Item::Span(span) => Cost { bytes: span.shown, lines: span.newlines },
            };
            cost = Cost { bytes: cost.bytes + more.bytes, lines: cost.lines + more.lines };
            open = match item {
                Item::Gap(gap) => gap.inline,
                // The last item is a span only if it reaches the end of the source.
                Item::Span(_) => !self.terminated,
            };
        }
        Cost { lines: cost.lines + usize::from(open), ..cost }
    }

    fn gap_cost(&self, gap: &Gap) -> Cost {
        if gap.inline {
            return Cost { bytes: inline_marker_len(gap.end - gap.start), lines: 0 };
        }
        let counts = digits(self.totals.lines) + digits(gap.end - gap.start);
        let breaks = usize::from(gap.breaks);
        Cost { bytes: OPEN.len() + LINES.len() + OMITTED.len() + counts + 1 + breaks, lines: 1 + breaks }
    }

    /// The text and its account.
    pub(super) fn render(mut self) -> io::Result<Preview> {
        let spans = std::mem::take(&mut self.spans);
        let (text, omitted_lines) =
            if spans.is_empty() { (self.marker_only(), self.totals.lines) } else { self.text_of(&spans)? };
        debug_assert!(text.len() <= self.limits.bytes, "L48");
        let kept: u64 = spans.iter().map(|s| s.end - s.start).sum();
        Ok(Preview {
            segments: spans.iter().map(|s| Segment { start: s.start, end: s.end }).collect(),
            text,
            truncated: true,
            total_bytes: self.totals.bytes,
            total_lines: self.totals.lines,
            omitted_bytes: self.totals.bytes - kept,
            omitted_lines,
        })
    }

    fn text_of(&mut self, spans: &[Span]) -> io::Result<(String, u64)> {
        let mut text = std::mem::take(&mut self.header);
        let mut omitted = 0;
        for item in layout(spans, self.source.len()) {
            match item {
                Item::Span(span) => {
                    text.push_str(&String::from_utf8_lossy(&self.source.read(span.start, span.end)?));
                }
                Item::Gap(gap) => {
                    let lines = self.source.lines_within(gap.start, gap.end)?;
                    omitted += lines;
                    gap.mark(lines, &mut text);
                }
            }
        }
        Ok((text, omitted))
    }

    /// The header and one marker; of them, whole lines as far as they fit, or a cut first line.
    fn marker_only(&self) -> String {
        let mut text = self.header.clone();
        let gap = Gap { start: 0, end: self.totals.bytes, inline: false, breaks: false };
        gap.mark(self.totals.lines, &mut text);
        let mut fitting = 0;
        for line in text.split_inclusive('\n').take(self.limits.lines) {
            if fitting + line.len() > self.limits.bytes {
                break;
            }
            fitting += line.len();
        }
        if fitting == 0 && self.limits.lines > 0 {
            let first = text.find('\n').unwrap_or(text.len());
            fitting = text.floor_char_boundary(first.min(self.limits.bytes));
        }
        text.truncate(fitting);
        text
    }
}

impl Gap {
    fn mark(&self, lines: u64, text: &mut String) {
        let bytes = self.end - self.start;
        if self.inline {
            text.push_str(&format!("{OPEN}{bytes}{OMITTED_INLINE}"));
            return;
        }
        if self.breaks {
            text.push('\n');
        }
        let unit = if lines == 1 { ONE_LINE } else { LINES };
        text.push_str(&format!("{OPEN}{lines}{unit}{bytes}{OMITTED}\n"));
    }
}

/// How long the marker inside a line is that leaves out this many bytes.
pub(super) fn inline_marker_len(bytes: u64) -> usize {
    OPEN.len() + digits(bytes) + OMITTED_INLINE.len()
}

fn digits(n: u64) -> usize {
    n.checked_ilog10().map_or(1, |d| d as usize + 1)
}

/// The spans in order, those that touch made one. A join never shows longer than its halves did: at
/// worst it makes one character, or one replacement, of what were several replacements.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|s| s.start);
    let mut out: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match out.last_mut() {
            Some(last) if last.end == span.start => {
                last.end = span.end;
                last.line_end = span.line_end;
                last.shown += span.shown;
                last.newlines += span.newlines;
            }
            _ => out.push(span),
        }
    }
    out
}

/// Spans and gaps in the order they are shown.
fn layout(spans: &[Span], len: u64) -> impl Iterator<Item = Item<'_>> {
    let gap = move |i: usize| {
        let before = i.checked_sub(1).and_then(|i| spans.get(i));
        let after = spans.get(i);
        let start = before.map_or(0, |s| s.end);
        let end = after.map_or(len, |s| s.start);
        let cut = before.is_some_and(|s| s.end < s.line_end);
        let inline = match (before, after) {
            (_, Some(after)) => after.line_start <= start,
            (Some(before), None) => cut && before.line_end == len,
            (None, None) => false,
        };
        (start < end).then_some(Item::Gap(Gap { start, end, inline, breaks: cut && !inline }))
    };
    (0..=spans.len()).flat_map(move |i| gap(i).into_iter().chain(spans.get(i).map(Item::Span)))
}
