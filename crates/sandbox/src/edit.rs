//! Literal replacement in a text file (L64), and which lines it touched.

use std::borrow::Cow;

use portcullis_base::{Code, Hunk, LineRange, Reason, limits};

use crate::text::count_lines;
use crate::{LineEnding, TextFile};

/// A replacement that was worked out; nothing is written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    pub after: TextFile,
    /// How many places were replaced.
    pub count: u64,
    /// The lines that differ, in old line numbers, ascending and apart.
    pub hunks: Vec<Hunk>,
    /// The old lines each match lies in: what must have been read (tool-contract §19).
    pub match_lines: Vec<LineRange>,
}

/// Why there is nothing to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the text to replace is empty; give the text that stands in the file")]
    EmptyOld,
    #[error(
        "the text to replace does not occur in the file; read the file and copy the text exactly, with its indentation"
    )]
    NotFound,
    #[error("the text to replace occurs {count} times (lines {}); add surrounding lines until it is unique, or replace all", line_list(.lines))]
    Ambiguous { count: u64, lines: Vec<u64> },
    #[error("the new text is the same as the old; nothing to change")]
    NoChange,
    #[error("the file would grow to {size} bytes, more than the limit of {max}; replace fewer places")]
    TooLarge { size: u64, max: u64 },
}

fn line_list(lines: &[u64]) -> String {
    lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

impl EditError {
    /// The code a settlement with this error carries.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::EmptyOld => Code::SchemaInvalid,
            Self::NotFound | Self::NoChange => Code::RuntimePreconditionFailed,
            Self::Ambiguous { .. } => Code::AmbiguousTarget,
            Self::TooLarge { .. } => Code::ResourceLimit,
        }
    }

    /// The reason of `runtime_precondition_failed`, where that is the code.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::NotFound => Some(Reason::TargetNotFound),
            Self::NoChange => Some(Reason::NoChange),
            Self::EmptyOld | Self::Ambiguous { .. } | Self::TooLarge { .. } => None,
        }
    }
}

/// How many line numbers an ambiguous match names.
const LINES_NAMED: usize = 10;

/// Replaces `old` by `new`: the one place it occurs, or every place from left to right with
/// `replace_all`. No character in either has a meaning of its own.
///
/// Line ends: in a file whose every line ends with `\r\n`, a caller who writes no `\r` at all speaks
/// of lines, not of bytes; `\n` in both texts then stands for `\r\n`, so the file's line ends
/// survive. Nothing is lost by it: such a file holds no lone `\n` to be matched. A caller who writes
/// a `\r` anywhere is taken at their word, as is everyone in other files.
///
/// Two overlapping places (`aa` in `aaa`) are two: the edit could mean either.
pub fn replace_literal(before: &TextFile, old: &str, new: &str, replace_all: bool) -> Result<Replacement, EditError> {
    if old.is_empty() {
        return Err(EditError::EmptyOld);
    }
    if old == new {
        return Err(EditError::NoChange);
    }
    let by_line = before.line_ending() == LineEnding::CrLf && !old.contains('\r') && !new.contains('\r');
    let in_file = |text| if by_line { with_crlf(text) } else { Cow::Borrowed(text) };
    let (old, new) = (&*in_file(old), &*in_file(new));

    let text = before.text();
    let found: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    match found.as_slice() {
        [] => return Err(EditError::NotFound),
        [only] if !replace_all => {
            if let Some(second) = overlapping(text, old, *only) {
                return Err(ambiguous(before, &[*only, second]));
            }
        }
        several if !replace_all => return Err(ambiguous(before, several)),
        _ => {}
    }

    let grown = text.len() as u64 - (found.len() * old.len()) as u64;
    let size = (found.len() as u64).saturating_mul(new.len() as u64).saturating_add(grown);
    if size > limits::FILE_MAX {
        return Err(EditError::TooLarge { size, max: limits::FILE_MAX });
    }
    let after = splice(text, &found, old.len(), new);
    let match_lines = found
        .iter()
        .map(|at| LineRange { first: before.line_at(*at), last: before.line_at(at + old.len() - 1) })
        .collect();
    let hunks = hunks(before, &after, &found, (old.len(), new.len()));
    Ok(Replacement { after: before.with_text(after), count: found.len() as u64, hunks, match_lines })
}

fn with_crlf(text: &str) -> Cow<'_, str> {
    if text.contains('\n') { Cow::Owned(text.replace('\n', "\r\n")) } else { Cow::Borrowed(text) }
}

fn ambiguous(before: &TextFile, found: &[usize]) -> EditError {
    let lines = found.iter().take(LINES_NAMED).map(|at| before.line_at(*at)).collect();
    EditError::Ambiguous { count: found.len() as u64, lines }
}

/// A second place of `old` that begins inside the only one found from the left.
fn overlapping(text: &str, old: &str, only: usize) -> Option<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    text[only + step..].find(old).map(|at| only + step + at)
}

fn splice(text: &str, found: &[usize], old_len: usize, new: &str) -> String {
    let mut after = String::new();
    let mut copied = 0;
    for at in found {
        after.push_str(&text[copied..*at]);
        after.push_str(new);
        copied = at + old_len;
    }
    after.push_str(&text[copied..]);
    after
}

/// The replaced regions in whole lines. A region ends where both texts are at the start of a line
/// again: removing a line's end pulls the next line in, and matches that share a line are one region.
fn hunks(before: &TextFile, after: &str, found: &[usize], (old_len, new_len): (usize, usize)) -> Vec<Hunk> {
    let text = before.text();
    let mut hunks = Vec::new();
    let mut rest = found.iter().enumerate().peekable();
    // Where a match's replacement begins in `after`; the matches before it shifted it.
    let shifted = |index: usize, at: usize| at + index * new_len - index * old_len;
    while let Some((index, at)) = rest.next() {
        let first = before.line_at(*at);
        let start = before.offset(first);
        let new_start = shifted(index, *at) - (at - start);
        let (mut last_index, mut last_at) = (index, *at);
        let (end, new_end) = loop {
            let match_end = last_at + old_len;
            let new_match_end = shifted(last_index, last_at) + new_len;
            let mut end = before.offset(before.line_at(match_end - 1) + 1);
            if rest.peek().is_none_or(|(_, next)| **next >= end) {
                let joined = &after[new_start..new_match_end + (end - match_end)];
                if end < text.len() && !joined.is_empty() && !joined.ends_with('\n') {
                    end = before.offset(before.line_at(end) + 1);
                }
            }
            match rest.next_if(|(_, next)| **next < end) {
                Some((next_index, next_at)) => (last_index, last_at) = (next_index, *next_at),
                None => break (end, new_match_end + (end - match_end)),
            }
        };
        hunks.push(Hunk {
            first,
            removed: count_lines(&text[start..end]),
            added: count_lines(&after[new_start..new_end]),
        });
    }
    hunks
}
