//! What a command wrote, in a few lines for a person: its last lines, and of a failure those that matter.
//!
//! The text is a tool's own and untrusted. Nothing of it steers a terminal, and every line has a mark before it, so that none
//! can be taken for one of ours.

use portcullis_event::Observed;

use crate::render::{DIM, safe, styled};

/// Lines of a command that has ended.
const SHOWN: usize = 10;
/// Of a failure: lines that speak of it; the rest of [`SHOWN`] are its last lines.
const TELLING: usize = 5;
/// Characters of one line.
const COLUMNS: usize = 160;
/// Stands before every line of a command.
pub const MARK: &str = "  │ ";

/// What lines of failures have in them. Which lines are shown hangs on it, and nothing else.
const WORDS: [&str; 8] = ["error", "fail", "panicked", "fatal", "exception", "traceback", "assert", "not found"];

/// The lines of a command that has ended, each with its mark; none for a call that ran no command.
pub fn of(observed: &Observed) -> Vec<String> {
    let (out, err) = (stream(observed, "stdout"), stream(observed, "stderr"));
    let all: Vec<String> = out.iter().chain(&err).cloned().collect();
    // The end of what was said: errors last, where both streams were written to.
    let shown: Vec<usize> = match observed.ok {
        true => last(all.len(), SHOWN).collect(),
        false => {
            let telling = (0..all.len()).filter(|at| speaks_of_failure(&all[*at]));
            let mut shown: Vec<usize> = telling.take(TELLING).collect();
            let end = last(all.len(), SHOWN).rev().filter(|at| !shown.contains(at)).collect::<Vec<_>>();
            let room = SHOWN - shown.len();
            shown.extend(end.into_iter().take(room));
            shown.sort_unstable();
            shown
        }
    };
    let left_out = all.len() - shown.len();
    let mut lines: Vec<String> = Vec::with_capacity(shown.len() + 1);
    if left_out > 0 {
        lines.push(format!("… {left_out} more lines"));
    }
    lines.extend(shown.into_iter().map(|at| all[at].clone()));
    lines.into_iter().map(|line| styled(DIM, &format!("{MARK}{line}"))).collect()
}

fn last(count: usize, most: usize) -> std::ops::Range<usize> {
    count.saturating_sub(most)..count
}

fn speaks_of_failure(line: &str) -> bool {
    let line = line.to_lowercase();
    WORDS.iter().any(|word| line.contains(word))
}

fn stream(observed: &Observed, name: &str) -> Vec<String> {
    let parts = observed.content.iter().filter(|part| part.source == name);
    let text: String = parts.filter_map(|part| part.text.as_deref()).collect();
    text.lines().map(line).filter(|line| !line.trim().is_empty()).collect()
}

/// One line of a command as it can be shown: what a carriage return would have overwritten is left out.
pub fn line(text: &str) -> String {
    let end = text.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let shown = safe(&uncoloured(end)).replace('\t', "    ");
    let mut shown = shown.trim_end().to_owned();
    if let Some((cut, _)) = shown.char_indices().nth(COLUMNS) {
        shown.truncate(cut);
        shown.push('…');
    }
    shown
}

/// Without sequences that only set colours. Every other one is shown as what it is.
fn uncoloured(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        let after = &rest[at + 2..];
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(after.len());
        match after[end..].starts_with('m') {
            true => left.push_str(&rest[..at]),
            false => left.push_str(&rest[..at + 2 + end]),
        }
        rest = &after[end + usize::from(after[end..].starts_with('m'))..];
    }
    left + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_steers_nothing_and_shows_what_was_written_last() {
        assert_eq!(line("10 %\r50 %\rdone"), "done");
        assert_eq!(line("\x1b[1;31merror\x1b[0m: no"), "error: no");
        assert_eq!(line("\x1b[2Jgone\x1b]0;title\x07"), "<U+001B>[2Jgone<U+001B>]0;title<U+0007>");
        assert_eq!(line("a\u{202e}b\u{200b}c"), "a<U+202E>b<U+200B>c");
        assert_eq!(line("\tindented  twice"), "    indented  twice");
        assert_eq!(line(&"x".repeat(500)).chars().count(), COLUMNS + 1);
    }
}
