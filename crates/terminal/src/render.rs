//! Where text goes, and what may reach a terminal.
//!
//! Invariant: text that a file, a tool or a model wrote passes [`safe`] or [`safe_line`] before a
//! person sees it. JSON is for programs and carries it as it is.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::path::Path;

use anstream::AutoStream;
pub use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use portcullis_base::Timestamp;
pub use portcullis_base::shown::{count, exact, quoted, safe, safe_line, size, span, word};
use portcullis_base::shown::{is_hidden, plainly_visible, visible};
use serde::Serialize;

use crate::rows;

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const RED: Style = AnsiColor::Red.on_default();
pub const GREEN: Style = AnsiColor::Green.on_default();
pub const CYAN: Style = AnsiColor::Cyan.on_default();
pub const YELLOW: Style = AnsiColor::Yellow.on_default();

/// `text` in `style`; the terminal's stream drops the style where it is not wanted.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Where output goes and in what form.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    pub json: bool,
    pub quiet: bool,
    color: ColorChoice,
}

impl Term {
    #[must_use]
    pub const fn new(json: bool, quiet: bool, color: ColorChoice) -> Self {
        Self { json, quiet, color }
    }

    /// Whether a person sits at both ends.
    pub fn interactive(self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Whether what was shown can be drawn over: a terminal that says that it knows how.
    pub fn draws(self) -> bool {
        self.interactive() && std::env::var("TERM").is_ok_and(|name| !name.is_empty() && name != "dumb")
    }

    /// Whether colours are wanted on standard output.
    pub fn coloured(self) -> bool {
        AutoStream::new(io::stdout(), self.color).current_choice() != ColorChoice::Never
    }

    /// Whether someone sees a line that moves on standard error.
    pub fn waits_visibly(self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// How wide the terminal is that the result goes to; `None` if it goes elsewhere.
    pub fn columns(self) -> Option<usize> {
        columns_of(io::stdout())
    }

    /// Whether it goes to a terminal that has no room for every column of a list.
    pub fn narrow(self) -> bool {
        self.columns().is_some_and(|columns| columns < WIDE)
    }

    /// A result for a person; a line end is added if it has none. That nobody reads it changes
    /// nothing about the result: a closed pipe is passed over.
    pub fn print(self, text: &str) -> io::Result<()> {
        unread_is_fine(self.write(text))
    }

    /// The same of a text that a tool, a model or a file wrote: on a terminal it stands behind a bar. `text` is fit for one.
    pub fn print_of_others(self, text: &str) -> io::Result<()> {
        if io::stdout().is_terminal() { self.print(&rows::barred(text)) } else { self.print(text) }
    }

    /// A part of a stream for a person: the stream ends where nobody reads it any more.
    ///
    /// # Errors
    /// If nobody reads it any more, or it cannot be written.
    pub fn stream(self, text: &str) -> Result<(), StreamError> {
        Ok(self.write(text)?)
    }

    fn write(self, text: &str) -> io::Result<()> {
        let mut out = AutoStream::new(io::stdout().lock(), self.color);
        out.write_all(fitted(&coloured_text(text), self.columns()).as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// A piece of a line, as it comes.
    pub fn piece(self, text: &str) -> io::Result<()> {
        let mut out = AutoStream::new(io::stdout().lock(), self.color);
        out.write_all(text.as_bytes())?;
        unread_is_fine(out.flush())
    }

    /// Bytes as they are, as a part of a stream.
    ///
    /// # Errors
    /// As of [`Term::stream`].
    pub fn bytes(self, bytes: &[u8]) -> Result<(), StreamError> {
        Ok(self.write_bytes(bytes)?)
    }

    fn write_bytes(self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// One JSON document on one line: a result, so a closed pipe is passed over.
    ///
    /// # Errors
    /// If it is no JSON, or cannot be written.
    pub fn document<T: Serialize>(self, value: &T) -> io::Result<()> {
        let mut line = serde_json::to_string(value)?;
        line.push('\n');
        unread_is_fine(self.write_bytes(line.as_bytes()))
    }

    /// Something besides the result. Quiet runs do without it.
    pub fn note(self, text: &str) {
        if !self.quiet {
            self.error_text(text);
        }
    }

    /// The same of something that goes on only if somebody knows it: `--quiet` does not hold it back.
    pub fn insist(self, text: &str) {
        self.error_text(text);
    }

    /// An error, on one line.
    pub fn error(self, text: &str) {
        self.error_text(&format!("{}: {}", styled(RED.bold(), "error"), safe(text)));
    }

    fn error_text(self, text: &str) {
        let mut err = AutoStream::new(io::stderr().lock(), self.color);
        let text = coloured_text(text.trim_end_matches('\n'));
        // Nobody is left to be told that nobody can be told.
        let _ = writeln!(err, "{}", fitted(&text, columns_of(io::stderr())));
    }
}

/// From this width on a list has room for every column.
const WIDE: usize = 120;

/// Columns of a terminal that does not tell.
const UNTOLD_COLUMNS: usize = 80;

/// How wide the terminal behind a stream is; `None` if there is none.
fn columns_of(stream: impl AsFd) -> Option<usize> {
    let told = usize::from(rustix::termios::tcgetwinsize(stream).ok()?.ws_col);
    Some(if told > 0 { told } else { UNTOLD_COLUMNS })
}

/// A text in the rows of the terminal behind standard error.
pub fn for_stderr(text: &str) -> Cow<'_, str> {
    fitted(text, columns_of(io::stderr()))
}

/// A text in the rows of its terminal. Elsewhere a line is a line.
fn fitted(text: &str, columns: Option<usize>) -> Cow<'_, str> {
    columns.map_or(Cow::Borrowed(text), |columns| rows::laid_out(text, columns))
}

/// A stream of ours that ended early.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// Whoever read it has had enough: `portcullis … | head` is no error.
    #[error("nobody reads the output any more")]
    ReaderLeft,
    #[error(transparent)]
    Output(io::Error),
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::ReaderLeft } else { Self::Output(error) }
    }
}

fn unread_is_fine(printed: io::Result<()>) -> io::Result<()> {
    printed.or_else(unread)
}

/// That nobody reads any more is no error.
pub fn unread(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// A place on this machine, on one line: a folder may have any name.
pub fn place(path: &Path) -> String {
    exact(&path.display().to_string(), 4_096)
}

/// What is written to a terminal whoever made it up: of control sequences only the colours of ours are let through, should
/// somebody have forgotten to make a name fit for it.
fn coloured_text(text: &str) -> Cow<'_, str> {
    let plain = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_hidden(c));
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c| !plain(c)) {
        let (before, after) = rest.split_at(at);
        shown.push_str(before);
        let parameters =
            after.strip_prefix("\x1b[").map(|after| after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        rest = match parameters.and_then(|end| end.strip_prefix('m')) {
            Some(next) => {
                shown.push_str(&after[..after.len() - next.len()]);
                next
            }
            None => {
                let length = after.chars().next().map_or(0, char::len_utf8);
                shown.push_str(&visible(&after[..length], ""));
                &after[length..]
            }
        };
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// `11-16 13:48` of `2026-11-16T13:48:29.155Z`.
pub fn short_time(at: Timestamp) -> String {
    let at = at.to_millis_text();
    at.get(5..16).unwrap_or(&at).replace('T', " ")
}

/// A diff with its lines coloured. A carriage return is shown even before a line end: it may be all
/// that changes.
pub fn diff(text: &str) -> String {
    let mut shown = String::new();
    for line in plainly_visible(text, "\n\t").lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            Some(b'@') => CYAN,
            _ => Style::new(),
        };
        shown.push_str(&styled(style, line));
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use portcullis_base::shown::safe_in_ask;

    use super::*;

    #[test]
    fn of_control_sequences_only_colours_reach_a_terminal() {
        let coloured = styled(RED, "red");
        assert_eq!(coloured_text(&coloured), coloured);
        assert_eq!(coloured_text("a\tb\n"), "a\tb\n");
        assert_eq!(coloured_text("\x1b[2J\x1b]0;x\x07\x1b[1mé"), "<U+001B>[2J<U+001B>]0;x<U+0007>\x1b[1mé");
        assert_eq!(coloured_text("x\x1b["), "x<U+001B>[");
    }

    #[test]
    fn what_a_terminal_would_obey_is_made_visible_and_nothing_is_taken_out() {
        assert_eq!(safe("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(safe("a\x1b[31mred\x1b[0m\r\nb"), "a<U+001B>[31mred<U+001B>[0m\nb");
        for opener in ["\x1bX", "\x1b]0;", "\x1bP", "\x1b_", "\x1b^", "\u{9d}", "\u{90}"] {
            let shown = diff(&format!("+a{opener}\n+rm -rf /\n+b\x1b\\\n"));
            assert!(shown.contains("+rm -rf /") && shown.contains("<U+00"), "{shown:?}");
        }
        assert_eq!(safe("good\rbad"), "good<U+000D>bad");
        assert_eq!(safe("x\u{202e}y\u{200b}"), "x<U+202E>y<U+200B>");
        assert!(matches!(safe("größer 日本"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_blank_that_is_no_space_and_marks_that_pile_up_are_visible_where_a_person_decides() {
        for blank in ['\u{a0}', '\u{2003}', '\u{2800}', '\u{202f}', '\u{3000}', '\u{1680}'] {
            let text = format!("rm{blank}-rf");
            let wanted = format!("rm<U+{:04X}>-rf", u32::from(blank));
            assert_eq!(exact(&text, 99), wanted);
            assert_eq!(safe_in_ask(&text), wanted);
            assert!(diff(&format!("+{text}\n")).contains(&wanted));
            assert_eq!(safe(&text), text, "prose has them");
        }
        assert_eq!(safe("a\u{323}\u{302}b"), "a\u{323}\u{302}b", "a letter of Vietnamese");
        assert_eq!(safe("a\u{301}\u{301}\u{301}\u{301}b"), "a\u{301}\u{301}<U+0301><U+0301>b");
    }

    #[test]
    fn a_diff_of_line_ends_alone_is_seen() {
        let shown = diff("-a\r\n+a\n");
        assert!(shown.contains("-a<U+000D>") && !shown.contains("+a<U+000D>"), "{shown:?}");
    }
}
