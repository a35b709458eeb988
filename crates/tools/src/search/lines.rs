//! Matching lines, as they are shown.

use std::borrow::Cow;
use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkMatch};
use portcullis_pipeline::PathRules;

/// Characters of a line that are shown; of a longer one the part round its first match.
pub(crate) const PREVIEW_CHARS: usize = 240;

/// A matching line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MatchingLine {
    pub(crate) number: u64,
    pub(crate) preview: String,
}

/// Takes the matching lines of one file: the first `most`, and how many there are.
pub(crate) struct LineCollector<'m> {
    matcher: &'m RegexMatcher,
    rules: &'m PathRules,
    most: usize,
    pub(crate) kept: Vec<MatchingLine>,
    pub(crate) count: u64,
    pub(crate) binary: bool,
}

impl<'m> LineCollector<'m> {
    pub(crate) fn new(matcher: &'m RegexMatcher, rules: &'m PathRules, most: usize) -> Self {
        Self { matcher, rules, most, kept: Vec::new(), count: 0, binary: false }
    }
}

impl Sink for LineCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        if self.kept.len() < self.most {
            // What is shown whole is masked with everything else that is shown; what is cut, before.
            let line = found.bytes();
            let line = if line.len() > PREVIEW_CHARS { self.rules.masked(line) } else { Cow::Borrowed(line) };
            let preview = preview(&line, Some(self.matcher));
            self.kept.push(MatchingLine { number: found.line_number().unwrap_or(0), preview });
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }
}

/// A line without its end, invalid UTF-8 replaced, at most [`PREVIEW_CHARS`] characters of it.
pub(crate) fn preview(line: &[u8], matcher: Option<&RegexMatcher>) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= PREVIEW_CHARS {
        return String::from_utf8_lossy(line).into_owned();
    }
    let found = matcher.and_then(|matcher| matcher.find(line).ok().flatten());
    let at = found.map_or(0, |found| found.start());
    // Four bytes a character at most: enough on both sides, however long the line is.
    let reach = 4 * PREVIEW_CHARS;
    let before = String::from_utf8_lossy(&line[boundary(line, at.saturating_sub(reach))..at]).into_owned();
    let after = String::from_utf8_lossy(&line[at..boundary(line, at.saturating_add(2 * reach))]).into_owned();
    let (ahead, behind) = (before.chars().count(), after.chars().count());
    let whole = line.len() <= at + 2 * reach && at <= reach;
    if whole && ahead + behind <= PREVIEW_CHARS {
        return before + &after;
    }
    // A quarter before the match; what one side does not need, the other takes. Two for the marks.
    let room = PREVIEW_CHARS - 2;
    let lead = ahead.min((room / 4).max(room.saturating_sub(behind)));
    let shown = behind.min(room - lead);
    let mut text = String::new();
    if lead < ahead || at > reach {
        text.push('…');
    }
    text.extend(before.chars().skip(ahead - lead));
    text.extend(after.chars().take(shown));
    if shown < behind || at + 2 * reach < line.len() {
        text.push('…');
    }
    text
}

/// The first place at or after `at` where a character begins.
fn boundary(line: &[u8], at: usize) -> usize {
    let begins = |i: &usize| line.get(*i).is_none_or(|byte| crate::page::begins_char(*byte));
    (at..line.len().min(at + 4)).find(begins).unwrap_or(at.min(line.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::pattern::{Style, compile};

    #[test]
    fn a_long_line_is_shown_round_its_match() {
        let matcher = compile("needle", Style::default()).expect("a pattern");
        for (before, after) in [(0, 0), (10, 500), (500, 10), (100_000, 100_000), (100, 100), (237, 0)] {
            for letter in ["x", "ä", "🦀"] {
                let line = format!("{}needle{}\r\n", letter.repeat(before), letter.repeat(after));
                let shown = preview(line.as_bytes(), Some(&matcher));
                assert!(shown.contains("needle"), "{before} {after} {shown}");
                assert!(shown.chars().count() <= PREVIEW_CHARS);
                assert_eq!(shown.contains('…'), before + 6 + after > PREVIEW_CHARS, "{before} {after} {shown}");
                assert!(!shown.contains('\u{fffd}'));
            }
        }
        assert_eq!(preview(b"a\xffb\n", None), "a\u{fffd}b");
    }
}
