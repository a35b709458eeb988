//! The last lines that a running command wrote, as they are drawn below everything else.

use std::collections::{BTreeMap, VecDeque};

use portcullis_terminal::output_tail::{MARK, line};

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
    /// What follows, and is not told for good.
    provisional: BTreeMap<String, Vec<String>>,
}

impl LiveTail {
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.provisional.is_empty()
    }

    pub fn clear(&mut self) {
        self.lines.clear();
        self.begun.clear();
        self.provisional.clear();
    }

    /// More of a stream.
    pub fn take(&mut self, stream: &str, text: &str, provisional: bool) {
        self.provisional.remove(stream);
        if provisional {
            let begun = self.begun.get(stream).map_or("", String::as_str);
            self.provisional.insert(stream.to_owned(), shown(&format!("{begun}{text}")));
            return;
        }
        let begun = self.begun.entry(stream.to_owned()).or_default();
        begun.push_str(text);
        let mut whole: Vec<String> = begun.split('\n').map(str::to_owned).collect();
        let mut rest = whole.pop().unwrap_or_default();
        if rest.len() > LINE_MAX {
            rest = rest.split_off(rest.ceil_char_boundary(rest.len() - LINE_MAX));
        }
        *begun = rest;
        for text in shown(&whole.join("\n")) {
            self.lines.push_back(text);
            if self.lines.len() > LINES {
                self.lines.pop_front();
            }
        }
    }

    /// The lines, each with its mark.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let all: Vec<&String> = self.lines.iter().chain(self.provisional.values().flatten()).collect();
        let last = all.len().saturating_sub(LINES);
        all.into_iter().skip(last).map(|text| format!("{MARK}{text}"))
    }
}

fn shown(text: &str) -> Vec<String> {
    text.split('\n').map(line).filter(|text| !text.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_and_only_the_last_are_shown() {
        let mut tail = LiveTail::default();
        tail.take("stdout", "one\ntw", false);
        tail.take("stderr", "oops\n", false);
        assert_eq!(tail.lines().collect::<Vec<_>>(), ["  │ one", "  │ oops"]);
        tail.take("stdout", "o 2\n", true);
        assert_eq!(tail.lines().last().as_deref(), Some("  │ two 2"), "what is not told for good is seen");
        tail.take("stdout", "o\n3\n4\n5\n\x1b[2J6\n", false);
        assert_eq!(tail.lines().collect::<Vec<_>>(), ["  │ two", "  │ 3", "  │ 4", "  │ 5", "  │ <U+001B>[2J6"]);
        tail.clear();
        assert!(tail.is_empty());
    }
}
