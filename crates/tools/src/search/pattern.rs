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
            _ => Precondition::schema("/pattern", fault(pattern, &error.to_string())),
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

/// The parser draws a caret under the fault; a sentence counts characters.
fn fault(pattern: &str, drawn: &str) -> String {
    let what = drawn.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or(drawn).trim();
    let caret = drawn.lines().find(|line| line.trim_start().starts_with('^')).and_then(|line| line.find('^'));
    let place = drawn
        .lines()
        .find(|line| line.trim_start() == pattern.trim_start())
        .and_then(|line| line.find(pattern.trim_start()))
        .map(|indent| indent - (pattern.len() - pattern.trim_start().len()).min(indent));
    let hint = "set literal to search for the text itself";
    match (caret, place) {
        (Some(caret), Some(indent)) if caret >= indent => {
            format!("not a regular expression: {what} at character {}; {hint}", caret - indent + 1)
        }
        _ => format!("not a usable regular expression: {what}; {hint}"),
    }
}
