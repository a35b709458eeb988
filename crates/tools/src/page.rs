//! Pages: how much of a text one call delivers. A page is whole lines; only a line that no page could
//! hold is delivered in part, and then the page says so.

use portcullis_base::limits;

/// What a page may hold; the first limit reached ends it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageLimits {
    pub(crate) lines: u64,
    pub(crate) bytes: usize,
    pub(crate) chars: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { lines: limits::READ_LINES as u64, bytes: limits::READ_BYTES, chars: usize::MAX }
    }
}

/// The leading part of a text that is one page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) len: usize,
    /// Whole lines in it.
    pub(crate) lines: u64,
    /// It is a part of one line and holds no whole one.
    pub(crate) inside_line: bool,
}

/// The first page of `text`.
pub(crate) fn head(text: &[u8], limits: &PageLimits) -> Cut {
    let mut cut = Cut::default();
    let mut room = PageRoom::new(limits);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if cut.lines == limits.lines || !room.take(line) {
            break;
        }
        cut.len += line.len();
        cut.lines += 1;
    }
    if cut.len == 0 && !text.is_empty() && limits.lines > 0 {
        cut = Cut { len: prefix(text, limits), lines: 0, inside_line: true };
    }
    cut
}

/// Where the last page of `text` begins; `None` if its last line fits no page.
pub(crate) fn tail(text: &[u8], limits: &PageLimits) -> Option<usize> {
    let mut start = text.len();
    let mut room = PageRoom::new(limits);
    let most = usize::try_from(limits.lines).unwrap_or(usize::MAX);
    for line in text.split_inclusive(|byte| *byte == b'\n').rev().take(most) {
        if !room.take(line) {
            break;
        }
        start -= line.len();
    }
    (start < text.len() || text.is_empty() || limits.lines == 0).then_some(start)
}

/// How many lines a text has: a line ends with `\n`, after a final one there is no further line.
pub(crate) fn count_lines(text: &[u8]) -> u64 {
    let ends = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    ends + u64::from(text.last().is_some_and(|byte| *byte != b'\n'))
}

/// Whether a character can begin with this byte.
pub(crate) fn begins_char(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

/// The room that is left on a page.
struct PageRoom {
    bytes: usize,
    chars: usize,
}

impl PageRoom {
    fn new(limits: &PageLimits) -> Self {
        Self { bytes: limits.bytes, chars: limits.chars }
    }

    fn take(&mut self, line: &[u8]) -> bool {
        // As many characters as bytes at most: where that fits, nothing needs counting.
        let chars =
            if line.len() <= self.chars { line.len() } else { line.iter().filter(|b| begins_char(**b)).count() };
        let fits = line.len() <= self.bytes && chars <= self.chars;
        if fits {
            self.bytes -= line.len();
            if self.chars != usize::MAX {
                self.chars -= line.iter().filter(|b| begins_char(**b)).count();
            }
        }
        fits
    }
}

/// As much of one long line as fits, ending between two characters.
fn prefix(line: &[u8], limits: &PageLimits) -> usize {
    let mut end = 0;
    let mut chars = 0;
    for (at, byte) in line.iter().enumerate() {
        if begins_char(*byte) {
            end = at;
            chars += 1;
        }
        if at == limits.bytes || chars > limits.chars {
            return end;
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(lines: u64, bytes: usize, chars: usize) -> PageLimits {
        PageLimits { lines, bytes, chars }
    }

    #[test]
    fn a_page_is_whole_lines_up_to_the_first_limit() {
        let text = "a\nbb\nccc\nd".as_bytes();
        let all = usize::MAX;
        assert_eq!(head(text, &limits(9, all, all)), Cut { len: 10, lines: 4, inside_line: false });
        assert_eq!(head(text, &limits(2, all, all)), Cut { len: 5, lines: 2, inside_line: false });
        assert_eq!(head(text, &limits(9, 8, all)), Cut { len: 5, lines: 2, inside_line: false });
        assert_eq!(head("ää\nä\n".as_bytes(), &limits(9, all, 4)), Cut { len: 5, lines: 1, inside_line: false });
        assert_eq!(head(b"", &limits(9, 8, 8)), Cut::default());
        assert_eq!(tail(text, &limits(2, all, all)), Some(5));
        assert_eq!(tail(text, &limits(9, 6, all)), Some(5));
        assert_eq!(tail(b"x\nlong line", &limits(9, 4, all)), None);
        assert_eq!(tail(b"", &limits(9, 4, all)), Some(0));
    }

    #[test]
    fn a_line_that_fits_no_page_is_cut_between_two_characters() {
        let text = "aäää\nb\n".as_bytes();
        assert_eq!(head(text, &limits(9, 4, usize::MAX)), Cut { len: 3, lines: 0, inside_line: true });
        assert_eq!(head(text, &limits(9, 99, 2)), Cut { len: 3, lines: 0, inside_line: true });
        assert_eq!(head(text, &limits(9, 2, usize::MAX)), Cut { len: 1, lines: 0, inside_line: true });
    }

    #[test]
    fn lines_are_counted_like_the_file_tools_count_them() {
        let cases: [(&[u8], u64); 5] = [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\nb", 2)];
        for (text, lines) in cases {
            assert_eq!(count_lines(text), lines, "{text:?}");
        }
    }
}
