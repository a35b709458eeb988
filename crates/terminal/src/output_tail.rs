//! What a command wrote, in a few lines for a person: its last lines, and of a failure those that matter.
//!
//! The text is a tool's own and untrusted. Nothing of it steers a terminal, and every line has a mark before it, so that none
//! can be taken for one of ours.

use portcullis_base::ArtifactKind;
use portcullis_base::shown::id_ending;
use portcullis_event::Observed;

use crate::render::{self, DIM, safe, styled};

/// Lines of a command that has ended.
const SHOWN: usize = 10;
/// Of a failure: lines that speak of it; the rest of [`SHOWN`] are its last lines.
const TELLING: usize = 5;
/// Characters of one line.
const COLUMNS: usize = 160;
/// Stands before every line of a command.
pub const MARK: &str = "  │ ";

/// Stands between what a command wrote to its two streams. It has no mark, because it is ours.
pub const STDERR: &str = "  stderr:";

/// What lines of failures have in them. Which lines are shown hangs on it, and nothing else.
const WORDS: [&str; 8] = ["error", "fail", "panicked", "fatal", "exception", "traceback", "assert", "not found"];

/// The streams that a command writes to.
const STREAMS: [&str; 2] = ["stdout", "stderr"];

/// The lines of a command that has ended, each with its mark; none for a call that ran no command.
/// `command` shows all of what a call wrote whose intent is named behind it.
pub fn of(observed: &Observed, command: Option<&str>) -> Vec<String> {
    let Some(written) = OutputLines::of(observed) else { return Vec::new() };
    let all = &written.lines;
    let telling = (0..all.len()).filter(|at| !observed.ok && speaks_of_failure(&all[*at]));
    let mut shown: Vec<usize> = telling.take(TELLING).collect();
    let room = SHOWN - shown.len();
    let rest = |lines: std::ops::Range<usize>| lines.filter(|at| !shown.contains(at)).collect::<Vec<usize>>();
    let (out, err) = (rest(0..written.out), rest(written.out..all.len()));
    // Errors last, where both streams were written to. A result is seen however much is said beside it.
    let from_out = out.len().min(room.saturating_sub(err.len()).max(room / 3));
    let from_err = err.len().min(room - from_out);
    shown.extend(&out[out.len() - from_out..]);
    shown.extend(&err[err.len() - from_err..]);
    shown.sort_unstable();
    let whole = |line: String| match command {
        Some(command) => format!("  {line}: {command} {}", id_ending(&observed.intent_id.to_string())),
        None => format!("  {line}"),
    };
    let hidden = written.hidden(shown.len()).map(whole);
    let mut lines: Vec<String> = hidden.into_iter().collect();
    // In which order both streams were written is not known: each stands for itself.
    let labelled = shown.first().is_some_and(|first| *first < written.out);
    for at in shown {
        if labelled && at >= written.out && !lines.iter().any(|line| line == STDERR) {
            lines.push(STDERR.to_owned());
        }
        lines.push(format!("{MARK}{}", all[at]));
    }
    lines.into_iter().map(|line| styled(DIM, &line)).collect()
}

/// What an observation holds of what a command wrote.
struct OutputLines {
    /// Lines with something in them.
    lines: Vec<String>,
    /// So many of them, the first, are known to be of standard output, up to its end.
    out: usize,
    /// Lines in all, as far as they were counted.
    total: u64,
    /// Only a part of them is held.
    cut: bool,
    /// More were written than were counted.
    more: bool,
}

impl OutputLines {
    /// `None` if the call ran no command, or its command wrote nothing.
    fn of(observed: &Observed) -> Option<Self> {
        // Streams that are cut stand in one part, which is named after all of them: `stdout+stderr`.
        let is_stream = |source: &str| source.split('+').any(|name| STREAMS.contains(&name));
        let streams = observed.content.iter().filter(|part| is_stream(&part.source));
        let parts: Vec<(&str, &str)> =
            streams.filter_map(|part| Some((part.source.as_str(), part.text.as_deref()?))).collect();
        let cut = observed.total_bytes > 0;
        let (mut lines, mut held, mut out) = (Vec::new(), 0, 0);
        for (source, text) in &parts {
            // The first line of a part that is cut says so, and is not the command's.
            let text: Vec<&str> = text.split_inclusive('\n').skip(usize::from(cut)).collect();
            let of_out = match *source {
                "stdout" => text.len(),
                "stderr" => 0,
                _ => first_stream(&text, observed),
            };
            for (at, text) in text.iter().enumerate().filter(|(_, text)| !(cut && is_gap(text))) {
                held += 1;
                lines.extend(Some(line(text)).filter(|text| !text.trim().is_empty()));
                out = if at < of_out { lines.len() } else { out };
            }
        }
        let counted = observed.artifacts.iter().rev().filter(|kept| kept.kind == ArtifactKind::CommandOutput);
        let counted = counted.filter_map(|kept| kept.lines).next().filter(|_| cut);
        let capture = observed.capture.iter().filter(|capture| STREAMS.contains(&capture.stream.as_str()));
        // A line that is cut within is held and counted as left out.
        let total = counted.unwrap_or_else(|| observed.omitted_lines.max(held));
        let more = (cut && counted.is_none()) || capture.clone().any(|stream| !stream.complete);
        let any = !lines.is_empty() || ((cut || more) && !parts.is_empty());
        any.then_some(Self { lines, out, total, cut, more })
    }

    /// What is said of the lines that are not shown.
    fn hidden(&self, shown: usize) -> Option<String> {
        let hidden = self.total.saturating_sub(shown as u64);
        match (hidden, self.more) {
            (0, true) => Some("… more than was kept".to_owned()),
            (hidden, true) => Some(format!("… more than {}", render::count(hidden, "line"))),
            // Empty lines at most are left out.
            (_, false) if !self.cut && self.lines.len() <= shown => None,
            (0, false) => None,
            (hidden, false) => Some(format!("… {}", render::count(hidden, "more line"))),
        }
    }
}

/// Whether a line of a text that was cut stands for what was left out there.
fn is_gap(text: &str) -> bool {
    text.starts_with("[… ") && text.trim_end().ends_with(" bytes omitted …]")
}

/// How many lines of a text that holds parts of both streams are of standard output; none where its end was left out.
fn first_stream(lines: &[&str], observed: &Observed) -> usize {
    let size = |name| observed.capture.iter().find(|stream| stream.stream == name).map(|stream| stream.kept_bytes);
    let (Some(out), Some(err)) = (size("stdout"), size("stderr")) else { return 0 };
    // Counted from the beginning up to the first gap, or from the end up to the last one.
    let reached = |lines: &mut dyn Iterator<Item = &&str>, wanted: u64| {
        let mut bytes = 0;
        let whole = lines.take_while(|line| !is_gap(line)).position(|line| {
            bytes += line.len() as u64;
            bytes >= wanted
        });
        whole.map(|at| at + 1)
    };
    let from_end = || reached(&mut lines.iter().rev(), err).map(|count| lines.len() - count);
    reached(&mut lines.iter(), out).or_else(from_end).unwrap_or_default()
}

fn speaks_of_failure(line: &str) -> bool {
    let line = line.to_lowercase();
    WORDS.iter().any(|word| line.contains(word))
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
