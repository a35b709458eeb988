//! Which lines of a file a shown page covers: only those that were sent whole (tool-contract §19).

use std::io;

use portcullis_base::{FileFact, LineRange, Window, limits};

use crate::output::preview::Segment;

/// A cut page covers only the lines that were sent whole (tool-contract §19).
pub(crate) fn clip_delivered(files: &mut [FileFact], window: &dyn Window, segments: &[Segment]) -> io::Result<()> {
    let delivered = files.iter_mut().filter_map(|fact| match fact {
        FileFact::Delivered { lines, .. } => Some(lines),
        _ => None,
    });
    for lines in delivered {
        // The text of a read is its lines and nothing else, so the n-th line of the text is the n-th delivered.
        let Some(first) = lines.first().map(|range| range.first) else { continue };
        let end = lines.last().map_or(first, |range| range.last);
        let mut sent = Vec::new();
        for range in whole_lines(window, segments)? {
            let clipped = LineRange { first: first + range.first, last: (first + range.last).min(end) };
            if !clipped.is_empty() {
                sent.push(clipped);
            }
        }
        *lines = sent;
    }
    Ok(())
}

/// Zero-based numbers of the lines that lie whole inside a segment, as ranges.
fn whole_lines(window: &dyn Window, segments: &[Segment]) -> io::Result<Vec<LineRange>> {
    let mut ranges: Vec<LineRange> = Vec::new();
    let (mut number, mut line_start, mut at) = (0u64, 0u64, 0u64);
    let mut chunk = vec![0u8; limits::ARTIFACT_INLINE_MAX];
    let mut close = |number: u64, start: u64, end: u64| {
        if segments.iter().any(|s| s.start <= start && end <= s.end) {
            match ranges.last_mut() {
                Some(last) if last.last + 1 == number => last.last = number,
                _ => ranges.push(LineRange { first: number, last: number }),
            }
        }
    };
    loop {
        let n = window.read_at(at, &mut chunk)?;
        if n == 0 {
            break;
        }
        for (i, byte) in chunk[..n].iter().enumerate() {
            if *byte == b'\n' {
                let end = at + i as u64 + 1;
                close(number, line_start, end);
                number += 1;
                line_start = end;
            }
        }
        at += n as u64;
    }
    if line_start < at {
        close(number, line_start, at);
    }
    Ok(ranges)
}
