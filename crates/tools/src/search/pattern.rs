//! Patterns of lines: a linear-time regular expression over one line at a time.

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder};
use portcullis_contract::Precondition;

/// What a compiled pattern may take; a larger one is refused.
const COMPILED_MAX: usize = 10 << 20;

/// The longest line that is held to be searched.
const LINE_MAX: usize = 16 << 20;

/// How a pattern is written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Style {
    pub(crate) literal: bool,
    pub(crate) ignore_case: bool,
}

/// Compiles a pattern. `^` and `$` are the ends of a line, with or without `\r`.
///
/// # Errors
/// `schema_invalid`, with the place of the fault.
pub(crate) fn compile(pattern: &str, style: Style) -> Result<RegexMatcher, Precondition> {
    if pattern.contains('\n') {
        return Err(across_lines());
    }
    RegexMatcherBuilder::new()
        .fixed_strings(style.literal)
        .case_insensitive(style.ignore_case)
        .multi_line(true)
        .crlf(true)
        .size_limit(COMPILED_MAX)
        .dfa_size_limit(COMPILED_MAX)
        .build(pattern)
        .map_err(|error| match error.kind() {
            ErrorKind::NotAllowed(_) => across_lines(),
            _ => {
                // The searcher wraps a pattern before it is parsed; the bare one has its faults in their place.
                let bare = regex::Regex::new(pattern).err().map(|bare| bare.to_string());
                let drawn = bare.unwrap_or_else(|| error.to_string());
                Precondition::schema("/pattern", fault(&drawn))
            }
        })
}

fn across_lines() -> Precondition {
    let text =
        "the pattern holds a line break, and lines are searched one by one; search for a part that stands in one line";
    Precondition::schema("/pattern", text)
}

/// A searcher of lines with so many lines of context.
pub(crate) fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .bom_sniffing(false)
        .heap_limit(Some(LINE_MAX))
        .before_context(context)
        .after_context(context)
        .build()
}

/// The parser draws the pattern, four characters in, and a caret under the fault; a sentence counts
/// characters.
fn fault(drawn: &str) -> String {
    const INDENT: usize = 4;
    let what = drawn.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or(drawn).trim();
    let caret = drawn.lines().find(|line| line.trim_start().starts_with('^')).and_then(|line| line.find('^'));
    let place = caret.and_then(|caret| caret.checked_sub(INDENT)).map(|at| format!(" at character {}", at + 1));
    let place = place.unwrap_or_default();
    format!("not a regular expression: {what}{place}; set literal to search for the text itself")
}
