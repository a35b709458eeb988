//! The output of a task that still runs: of each stream its beginning and its end, as far as they are held.

use std::fmt::Write as _;

use portcullis_base::limits;
use portcullis_pipeline::SoFar;

use crate::page::{self, PageLimits};

/// Of what a model is shown at once, a little is left for the lines between.
const ROOM: usize = limits::READ_BYTES - 2_048;
const LINES: u64 = limits::READ_LINES as u64 - 64;

/// What is shown: all of it within the limits, or of each stream the bytes of `range`.
pub(super) fn text(streams: &[SoFar], range: Option<(u64, u64)>) -> String {
    let mut text = String::new();
    let share = streams.len().max(1);
    let page = PageLimits { lines: LINES / share as u64, bytes: ROOM / share, ..PageLimits::default() };
    for stream in streams {
        if streams.len() > 1 {
            let _ = writeln!(text, "[{}]", stream.name);
        }
        match range {
            Some((start, end)) => part(&mut text, stream, start, end.min(stream.kept_bytes), page),
            None => both_ends(&mut text, stream, page),
        }
        if streams.len() > 1 && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// The first page of bytes `start..end`, and a line for what of them is not held or not shown.
fn part(text: &mut String, stream: &SoFar, start: u64, end: u64, mut page: PageLimits) {
    let mut at = start;
    for (from, bytes) in [(0, &stream.head), (stream.tail_at, &stream.tail)] {
        let (first, last) = (at.max(from), end.min(from + bytes.len() as u64));
        if first >= last {
            continue;
        }
        if first > at {
            unheld(text, at, first);
        }
        let held = &bytes[index(first - from)..index(last - from)];
        let cut = page::head(held, &page);
        text.push_str(&String::from_utf8_lossy(&held[..cut.len]));
        at = first + cut.len as u64;
        if at < last {
            return not_shown(text, at, end);
        }
        page = PageLimits { lines: page.lines.saturating_sub(cut.lines), bytes: page.bytes - cut.len, ..page };
    }
    if at < end {
        unheld(text, at, end);
    }
}

/// Everything if it fits, else half a page of the beginning and half a page of the end.
fn both_ends(text: &mut String, stream: &SoFar, page: PageLimits) {
    let (head, tail) = (&stream.head, &stream.tail);
    let kept = stream.kept_bytes;
    if tail.is_empty() && page::head(head, &page).len == head.len() {
        return part(text, stream, 0, kept, page);
    }
    let half = PageLimits { lines: page.lines / 2, bytes: page.bytes / 2, ..page };
    let first = page::head(head, &half).len as u64;
    let last = if tail.is_empty() { head } else { tail };
    // Of a last line longer than that, its end.
    let start = page::tail(last, &half).unwrap_or(last.len().saturating_sub(half.bytes));
    let start = (kept - (last.len() - start) as u64).max(first);
    part(text, stream, 0, first, half);
    if first >= head.len() as u64 && start <= stream.tail_at && first < start {
        unheld(text, first, start);
    } else if first < start {
        not_shown(text, first, start);
    }
    part(text, stream, start, kept, half);
}

fn index(place: u64) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

fn not_shown(text: &mut String, from: u64, to: u64) {
    line(text, &format!("[bytes {from}–{to} are not shown; look at them with range]"));
}

fn unheld(text: &mut String, from: u64, to: u64) {
    line(text, &format!("[bytes {from}–{to} can be read when the task has ended]"));
}

fn line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(head: &[u8], tail_at: u64, tail: &[u8]) -> SoFar {
        let kept_bytes = tail_at + tail.len() as u64;
        SoFar {
            name: "out".to_owned(),
            total_bytes: kept_bytes,
            kept_bytes,
            head: head.to_vec(),
            tail_at,
            tail: tail.to_vec(),
        }
    }

    #[test]
    fn a_short_stream_is_shown_whole_and_a_range_of_it_exactly() {
        let short = stream(b"one\ntwo\n", 8, b"");
        assert_eq!(text(std::slice::from_ref(&short), None), "one\ntwo\n");
        assert_eq!(text(std::slice::from_ref(&short), Some((4, u64::MAX))), "two\n");
        assert_eq!(text(std::slice::from_ref(&short), Some((1, 3))), "ne");
        assert_eq!(text(&[short], Some((8, u64::MAX))), "", "nothing new");
        assert_eq!(text(&[], None), "");
    }

    #[test]
    fn what_is_not_held_is_said_and_never_passed_over() {
        let cut = stream(b"head", 10, b"tail");
        let all = text(std::slice::from_ref(&cut), None);
        assert_eq!(all, "head\n[bytes 4–10 can be read when the task has ended]\ntail");
        assert_eq!(text(std::slice::from_ref(&cut), Some((5, 8))), "[bytes 5–8 can be read when the task has ended]\n");
        assert_eq!(text(&[cut], Some((12, 14))), "il");
    }

    #[test]
    fn a_long_stream_shows_both_ends_within_the_limits_and_says_what_is_between() {
        let (head, tail) = (vec![b'h'; 60_000], vec![b't'; 60_000]);
        for many in 1..4 {
            let streams: Vec<SoFar> = (0..many).map(|_| stream(&head, 1_000_000, &tail)).collect();
            let shown = text(&streams, None);
            assert!(shown.len() <= limits::READ_BYTES, "{many}: {}", shown.len());
            assert!(shown.contains('h') && shown.contains('t') && shown.contains("look at them with range"));
            assert!(text(&streams, Some((0, u64::MAX))).len() <= limits::READ_BYTES);
        }
    }
}
