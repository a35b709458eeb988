//! Cutting a long text to what a model is shown (tool-contract §18).
//!
//! Pure, and O(limit) in memory whatever the length of the text (L58): the text is streamed for its
//! size and its markers, and only what is kept is ever held. `fill` decides what is worth keeping,
//! `kept` knows what that costs and never lets the price pass the limit, so nothing is rendered and
//! then found too long.

use std::io;

use portcullis_base::Window;
use portcullis_contract::{Anchor, Strategy};

mod fill;
mod pieces;
mod scan;
mod source;
#[cfg(test)]
mod tests;

use pieces::KeptSlices;
use source::Source;

/// What the text shown may measure, header and markers included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Lines; a last one without a newline counts.
    pub lines: usize,
    /// Bytes.
    pub bytes: usize,
}

/// A slice of the source that is shown as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// How large the source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Bytes, before any replacement of invalid ones.
    pub bytes: u64,
    /// Lines; a last one without a newline counts.
    pub lines: u64,
}

/// What is shown of a text that is too long. A line belongs to the slice that holds its last byte, so kept
/// and omitted add up to the total for bytes and for lines (L51).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preview {
    /// What of the source is shown: ordered, disjoint, verbatim.
    pub segments: Vec<Segment>,
    /// The header, the segments, and a marker in every gap.
    pub text: String,
    /// Always true: a text that fits has no preview.
    pub truncated: bool,
    /// Size of the source.
    pub total_bytes: u64,
    /// Lines of the source.
    pub total_lines: u64,
    /// Bytes of the source that are in no segment.
    pub omitted_bytes: u64,
    /// Lines of the source whose last byte is in no segment.
    pub omitted_lines: u64,
}

/// Measures the source in one pass.
///
/// # Errors
/// If the source cannot be read, or ends before its length.
pub(crate) fn totals(reader: &dyn Window) -> io::Result<Totals> {
    let mut source = Source::new(reader);
    let bytes = source.len();
    let lines = source.lines_within(0, bytes)?;
    Ok(Totals { bytes, lines })
}

/// Cuts the source to the limits. `None` = it fits: the caller sends the text unchanged (L49).
/// `header` makes the first line of a preview; it says the size and how to read the rest.
///
/// # Errors
/// If the source cannot be read, or ends before its length.
pub(crate) fn preview(
    reader: &dyn Window,
    limits: &Limits,
    strategy: Strategy,
    anchors: Option<&[Anchor]>,
    header: &dyn Fn(&Totals) -> String,
) -> io::Result<Option<Preview>> {
    let totals = totals(reader)?;
    let mut source = Source::new(reader);
    if fits(&mut source, &totals, limits)? {
        return Ok(None);
    }
    let mut kept = KeptSlices::new(source, totals, header(&totals), *limits)?;
    if kept.is_worthwhile() {
        fill::fill(&mut kept, strategy, anchors)?;
    }
    kept.render().map(Some)
}

/// Whether the text, with invalid bytes replaced, is within both limits. Replacement never shortens,
/// so a source over the limit is refused without being read.
fn fits(source: &mut Source<'_>, totals: &Totals, limits: &Limits) -> io::Result<bool> {
    if totals.lines > limits.lines as u64 || totals.bytes > limits.bytes as u64 {
        return Ok(false);
    }
    Ok(source::shown_len(&source.read(0, totals.bytes)?) <= limits.bytes)
}
