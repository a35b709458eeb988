//! The one renderer: where text goes, what may reach a terminal, and how an observation reads.
//!
//! Invariant: text that a file, a tool or a model wrote passes [`safe`] or [`safe_line`] before a
//! person sees it. `--json` is for programs and carries it as it is.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::path::Path;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use portcullis::hand::Launcher;
use portcullis_base::Timestamp;
use portcullis_event::{ContentFormat, Observed};
use serde::Serialize;

use crate::args::{Color, Globals};
use crate::call_text::CallText;
use crate::hints;
use crate::rows;
use crate::shell_view;

pub use portcullis::shown::{count, exact, quoted, safe, safe_line, size, span, word};
use portcullis::shown::{is_hidden, plainly_visible, visible};

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
    pub fn new(globals: &Globals) -> Self {
        let color = match globals.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::AlwaysAnsi,
            Color::Never => ColorChoice::Never,
        };
        Self { json: globals.json, quiet: globals.quiet, color }
    }

    /// For a command line that is not understood.
    pub fn of_words(words: &[OsString]) -> Self {
        Self { json: words.iter().any(|word| word == "--json"), quiet: false, color: ColorChoice::Auto }
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
    pub fn stream(self, text: &str) -> anyhow::Result<()> {
        self.write(text).map_err(ReaderLeft::or)
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
    pub fn bytes(self, bytes: &[u8]) -> anyhow::Result<()> {
        self.write_bytes(bytes).map_err(ReaderLeft::or)
    }

    fn write_bytes(self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// One JSON document on one line: a result, so a closed pipe is passed over.
    pub fn document<T: Serialize>(self, value: &T) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(value)?;
        line.push('\n');
        Ok(unread_is_fine(self.write_bytes(line.as_bytes()))?)
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

/// Whoever read a stream of ours has had enough: `portcullis … | head` is no error.
#[derive(Debug)]
pub struct ReaderLeft;

impl ReaderLeft {
    fn or(error: io::Error) -> anyhow::Error {
        if error.kind() == io::ErrorKind::BrokenPipe { Self.into() } else { error.into() }
    }
}

impl std::fmt::Display for ReaderLeft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads the output any more")
    }
}

impl std::error::Error for ReaderLeft {}

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

/// Columns without lines, for people and for `awk`.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header.to_vec());
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The same cut to the width of the terminal it goes to: the widest cells give way, except in `whole` columns. Elsewhere
/// nothing is cut.
pub fn table_within(columns: Option<usize>, whole: &[usize], header: &[&str], mut rows: Vec<Vec<String>>) -> String {
    const LEAST: usize = 6;
    const BETWEEN: usize = 2;
    let Some(columns) = columns else { return table(header, rows) };
    let wide = |text: &str| text.chars().map(rows::width).sum::<usize>();
    let mut widths: Vec<usize> = header.iter().map(|name| wide(name)).collect();
    for (at, cell) in rows.iter().flat_map(|row| row.iter().enumerate()) {
        widths[at] = widths[at].max(wide(cell));
    }
    let before = widths.clone();
    while widths.iter().sum::<usize>() + BETWEEN * (widths.len() - 1) > columns {
        let least = |at: usize| LEAST.max(wide(header[at]));
        let gives = (0..widths.len()).filter(|at| !whole.contains(at) && widths[*at] > least(*at));
        let Some(at) = gives.max_by_key(|at| widths[*at]) else { break };
        widths[at] -= 1;
    }
    for row in &mut rows {
        for (at, cell) in row.iter_mut().enumerate().filter(|(at, _)| widths[*at] < before[*at]) {
            // The end of a path tells most of it.
            let cut = if cell.starts_with('/') { rows::ending } else { rows::beginning };
            *cell = cut(cell, widths[at]);
        }
    }
    table(header, rows)
}

/// What a call gave: its content for a person on standard output, the rest on standard error. `told` are the warnings of the
/// call before it, which are not told at length again.
pub fn observation(term: &Term, observed: &Observed, told: &[String]) -> io::Result<()> {
    let content = content(observed);
    if !content.is_empty() {
        content.print(*term)?;
    }
    if observed.ok {
        term.note(&styled(DIM, &success(observed)));
        if matches!(observed.tool.as_str(), "shell_open" | "shell_restart") {
            term.note(shell_view::ENDS_WITH_THE_CALL);
        }
    } else {
        term.error(&failure(observed));
        if let Some(hint) = hints::of_failure(observed) {
            term.note(&format!("  {hint}"));
        }
        // The first is in the summary already.
        let said = usize::from(observed.errors.first().is_some_and(|first| observed.summary.contains(&first.message)));
        for error in observed.errors.iter().take(10).skip(said) {
            let path = if error.path.is_empty() { "the input" } else { &error.path };
            term.note(&format!("  {}: {} ({})", safe(path), safe(&error.message), safe(&error.rule)));
        }
    }
    for text in unsaid_warnings(observed) {
        // Of a failure it may be the cause.
        match observed.ok && told.contains(text) {
            true => term.insist(&styled(YELLOW, &format!("warning as before: {}", safe_line(text, TOLD_CHARS)))),
            false => term.insist(&warning(text)),
        }
    }
    if let Some(hint) = hints::of_warnings(observed, || Launcher::this_program().posture().level) {
        term.note(&format!("  {hint}"));
    }
    Ok(())
}

/// What a call warns of, a line each. What its error says is not said again.
pub fn warnings(observed: &Observed) -> impl Iterator<Item = String> {
    unsaid_warnings(observed).map(|text| warning(text))
}

fn unsaid_warnings(observed: &Observed) -> impl Iterator<Item = &String> {
    observed.warnings.iter().filter(|warning| observed.ok || !observed.summary.contains(*warning))
}

/// Characters of a warning: what to do about it stands at its end.
const WARNING_CHARS: usize = 2_000;

/// The same of one that was told before: it fits a row.
const TOLD_CHARS: usize = 56;

/// One warning on a line of its own.
pub fn warning(text: &str) -> String {
    format!("{} {}", styled(YELLOW.bold(), "warning:"), safe_line(text, WARNING_CHARS))
}

fn content(observed: &Observed) -> CallText {
    if let Some(words) = shell_view::in_words(observed) {
        return CallText { out: words, err: String::new() };
    }
    let mut content = CallText::default();
    for part in &observed.content {
        let text = content.part(&part.source);
        match (&part.text, &part.artifact) {
            (Some(words), _) if part.format == ContentFormat::Diff => text.push_str(&diff(words)),
            (Some(words), _) => text.push_str(&safe(words)),
            (None, Some(artifact)) => {
                let _ = write!(text, "[{}, {} bytes: artifact {}]", safe(&artifact.mime), artifact.bytes, artifact.id);
            }
            (None, None) => {}
        }
    }
    // An empty text is a result too, and prints as nothing; what stands beside it is not the result.
    if content.is_empty()
        && observed.structured_is_channel
        && observed.ok
        && let Some(value) = &observed.structured
    {
        content.out = safe(&serde_json::to_string_pretty(value).unwrap_or_default()).into_owned();
    }
    content
}

fn success(observed: &Observed) -> String {
    let mut line = format!("{}: {} in {}", safe(&observed.tool), observed.code, span(observed.duration_us));
    for words in [&observed.title, &observed.summary] {
        if !words.is_empty() {
            let _ = write!(line, "; {}", safe_line(words, 200));
        }
    }
    for artifact in &observed.artifacts {
        let (kind, id) = (word(&artifact.kind), artifact.id);
        let _ = write!(line, "; {kind}{} kept as {id}", side(observed, &id.to_string()));
    }
    line
}

/// Which side of a change an artifact holds.
fn side(observed: &Observed, artifact: &str) -> &'static str {
    let holds = |kept: &Option<String>| kept.as_deref() == Some(artifact);
    match observed.side_effects.items.iter().find(|effect| holds(&effect.before) || holds(&effect.after)) {
        // The same bytes may be both.
        Some(effect) if holds(&effect.before) && holds(&effect.after) => " before and after",
        Some(effect) if holds(&effect.before) => " before",
        Some(_) => " after",
        None => "",
    }
}

/// Phase, code, reason, summary, recovery: on one line.
fn failure(observed: &Observed) -> String {
    let mut line = format!("{}: {}: {}", safe(&observed.tool), observed.phase, observed.code);
    let detail = observed.reason.as_ref().map(ToString::to_string).or_else(|| observed.tool_code.clone());
    if let Some(detail) = detail {
        let _ = write!(line, " ({})", safe(&detail));
    }
    let _ = write!(line, ": {}", safe_line(&observed.summary, 1_000));
    let _ = write!(line, " [recovery: {}; side effects: {}]", observed.recovery, word(&observed.side_effects.state));
    line
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
    use portcullis::shown::safe_in_ask;

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
