//! A text file as a model sees it, from which the exact bytes can always be had back.

use portcullis_base::LineRange;

use crate::media::{ContentKind, content_kind, is_text};
use crate::{FileError, VirtualPath};

const BOM: char = '\u{feff}';

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    /// No line of it ends.
    None,
    Lf,
    CrLf,
    /// Some with `\r\n`, some with `\n` alone.
    Mixed,
}

/// The content is not UTF-8 text, or holds a NUL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not text: {} of {size} bytes", .mime.unwrap_or("binary, or not UTF-8"))]
pub struct NotText {
    pub mime: Option<&'static str>,
    pub size: u64,
}

impl NotText {
    /// As the error of reading the file at `path` as text.
    #[must_use]
    pub fn at(self, path: &VirtualPath) -> FileError {
        FileError::BinaryFile { path: path.clone(), size: self.size, mime: self.mime }
    }
}

/// UTF-8 text with its lines. A leading byte order mark is kept apart: the model neither sees it nor
/// has to repeat it, and [`TextFile::to_bytes`] puts it back.
///
/// A line ends with `\n`, which belongs to it; `\r` alone ends none. After a final `\n` there is no
/// further line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    bom: bool,
    text: String,
    ending: LineEnding,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl TextFile {
    /// Takes a file's content apart.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, NotText> {
        if !is_text(&bytes) {
            let mime = match content_kind(&bytes) {
                ContentKind::Media(mime) => Some(mime),
                ContentKind::Text | ContentKind::Binary => None,
            };
            return Err(NotText { mime, size: bytes.len() as u64 });
        }
        // Cannot fail after `is_text`; the error arm keeps that out of the contract.
        let text = String::from_utf8(bytes).map_err(|e| NotText { mime: None, size: e.as_bytes().len() as u64 })?;
        Ok(match text.strip_prefix(BOM) {
            Some(rest) => Self::new(true, rest.to_owned()),
            None => Self::new(false, text),
        })
    }

    fn new(bom: bool, text: String) -> Self {
        let mut starts = Vec::new();
        let (mut lf, mut crlf) = (0usize, 0usize);
        let mut next = 0;
        for (at, _) in text.match_indices('\n') {
            starts.push(next);
            next = at + 1;
            if text[..at].ends_with('\r') { crlf += 1 } else { lf += 1 }
        }
        if next < text.len() {
            starts.push(next);
        }
        let ending = match (lf, crlf) {
            (0, 0) => LineEnding::None,
            (_, 0) => LineEnding::Lf,
            (0, _) => LineEnding::CrLf,
            _ => LineEnding::Mixed,
        };
        Self { bom, text, ending, starts }
    }

    /// The same file with other text: the byte order mark stays.
    #[must_use]
    pub fn with_text(&self, text: String) -> Self {
        Self::new(self.bom, text)
    }

    /// The text without byte order mark.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the file begins with a byte order mark.
    #[must_use]
    pub fn has_bom(&self) -> bool {
        self.bom
    }

    /// How its lines end.
    #[must_use]
    pub fn line_ending(&self) -> LineEnding {
        self.ending
    }

    /// How many lines it has.
    #[must_use]
    pub fn line_count(&self) -> u64 {
        self.starts.len() as u64
    }

    /// The file's exact bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.text.len() + BOM.len_utf8());
        if self.bom {
            bytes.extend_from_slice(BOM.encode_utf8(&mut [0; 4]).as_bytes());
        }
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }

    /// The part of `range` that the file has.
    #[must_use]
    pub fn clip(&self, range: LineRange) -> LineRange {
        LineRange { first: range.first.max(1), last: range.last.min(self.line_count()) }
    }

    /// The text of these lines with their ends, byte for byte; what lies beyond the file is nothing.
    #[must_use]
    pub fn lines(&self, range: LineRange) -> &str {
        let range = self.clip(range);
        if range.is_empty() {
            return "";
        }
        &self.text[self.offset(range.first)..self.offset(range.last.saturating_add(1))]
    }

    /// The last `count` lines.
    #[must_use]
    pub fn tail(&self, count: u64) -> LineRange {
        let last = self.line_count();
        LineRange { first: last.saturating_sub(count) + 1, last }
    }

    /// The number of the line that holds the byte at `offset` (at the end: the line after the last).
    #[must_use]
    pub fn line_at(&self, offset: usize) -> u64 {
        if offset >= self.text.len() {
            return self.line_count() + 1;
        }
        self.starts.partition_point(|start| *start <= offset) as u64
    }

    /// Where line `number` begins; the end of the text for a line past the last.
    pub(crate) fn offset(&self, number: u64) -> usize {
        let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        self.starts.get(index).copied().unwrap_or(self.text.len())
    }
}

/// How many lines `text` has by the rule of [`TextFile`].
pub(crate) fn count_lines(text: &str) -> u64 {
    let ends = text.bytes().filter(|byte| *byte == b'\n').count();
    (ends + usize::from(!text.is_empty() && !text.ends_with('\n'))) as u64
}
