//! The last lines that a running command wrote, as they are drawn below everything else.

use std::collections::{BTreeMap, VecDeque};

use crate::output_tail::{MARK, line};

/// Lines that are shown while a command runs.
const LINES: usize = 5;
/// Bytes of a line that has not ended.
const LINE_MAX: usize = 4_096;

/// What a command wrote last.
#[derive(Default)]
pub struct LiveTail {
    lines: VecDeque<String>,
    /// The line that each stream is in.
    begun: BTreeMap<String, String>,
}

impl LiveTail {
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub fn clear(&mut self) {
        self.lines.clear();
        self.begun.clear();
    }

    /// More of a stream.
    pub fn take(&mut self, stream: &str, text: &str) {
        let begun = self.begun.entry(stream.to_owned()).or_default();
        begun.push_str(text);
        let mut whole: Vec<String> = begun.split('\n').map(str::to_owned).collect();
        let mut rest = whole.pop().unwrap_or_default();
        if rest.len() > LINE_MAX {
            rest = rest.split_off(rest.ceil_char_boundary(rest.len() - LINE_MAX));
        }
        *begun = rest;
        for text in whole.iter().map(|text| line(text)).filter(|text| !text.trim().is_empty()) {
            self.lines.push_back(text);
            if self.lines.len() > LINES {
                self.lines.pop_front();
            }
        }
    }

    /// The lines, each with its mark.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.lines.iter().map(|text| format!("{MARK}{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_and_only_the_last_are_shown() {
        let mut tail = LiveTail::default();
        tail.take("stdout", "one\ntw");
        tail.take("stderr", "oops\n");
        assert_eq!(tail.lines().collect::<Vec<_>>(), ["  │ one", "  │ oops"]);
        tail.take("stdout", "o\n3\n4\n5\n\x1b[2J6\n");
        assert_eq!(tail.lines().collect::<Vec<_>>(), ["  │ two", "  │ 3", "  │ 4", "  │ 5", "  │ <U+001B>[2J6"]);
        tail.clear();
        assert!(tail.is_empty());
    }
}
