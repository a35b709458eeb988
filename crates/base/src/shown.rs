//! Untrusted text made fit to be shown to a person, and the words for numbers. Nothing is taken out, since what is taken out
//! is hidden.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

/// Characters that change how other text looks, or what it is, without being seen themselves: Unicode's
/// `Default_Ignorable_Code_Point` (the Hangul fillers are among them), line and paragraph separators,
/// and interlinear annotations.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Text fit for a terminal. Nothing is taken out, since what is taken out is hidden: each control
/// character but line ends and tabs, and each hidden one, is shown as `<U+001B>`. CR LF is a line end.
#[must_use]
pub fn safe(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") {
        return Cow::Owned(visible(&text.replace("\r\n", "\n"), "\n\t").into_owned());
    }
    visible(text, "\n\t")
}

/// Characters that look like an ordinary space, or like nothing, and are another character: a name or a word with one in it
/// looks like another name. They are common in prose, so that only what a person decides by shows them.
fn looks_blank(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}')
}

/// Marks that stand above or below the character before them.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}')
}

/// Marks on one character. Languages use two; more grow over the lines around them.
const MARKS: usize = 2;

/// `text` with every control and hidden character but those of `keep` made visible.
#[must_use]
pub fn visible<'t>(text: &'t str, keep: &str) -> Cow<'t, str> {
    visible_but(text, |c| keep.contains(c) || !(c.is_control() || is_hidden(c)))
}

/// The same for what a person decides by: blanks that are no space are visible, too.
#[must_use]
pub fn plainly_visible<'t>(text: &'t str, keep: &str) -> Cow<'t, str> {
    visible_but(text, |c| keep.contains(c) || !(c.is_control() || is_hidden(c) || looks_blank(c)))
}

/// One line of what a call would do, for an ask.
#[must_use]
pub fn safe_in_ask(line: &str) -> Cow<'_, str> {
    plainly_visible(line.strip_suffix('\r').unwrap_or(line), "\t")
}

fn visible_but(text: &str, harmless: impl Fn(char) -> bool) -> Cow<'_, str> {
    let mut marks = 0;
    let mut harmless = |c: char| {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        marks <= MARKS && harmless(c)
    };
    if text.chars().all(&mut harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if harmless(c) {
            shown.push(c);
        } else {
            let _ = write!(shown, "<U+{:04X}>", u32::from(c));
        }
    }
    Cow::Owned(shown)
}

/// Words on one line, at most `max` characters.
#[must_use]
pub fn safe_line(text: &str, max: usize) -> String {
    let text = safe(text);
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = words.char_indices().nth(max) {
        words.truncate(cut);
        words.push('…');
    }
    words
}

/// A name or a fact on one line, with nothing folded: line ends, tabs and spaces are part of it. What
/// is over `max` characters is cut, and says so.
#[must_use]
pub fn exact(text: &str, max: usize) -> String {
    let mut shown = plainly_visible(text, "").into_owned();
    if let Some((cut, _)) = shown.char_indices().nth(max) {
        let all = shown.chars().count();
        shown.truncate(cut);
        let _ = write!(shown, "… (cut: {all} characters in all)");
    }
    shown
}

/// A count of microseconds as a person says it.
#[must_use]
pub fn span(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// `1 event`, `2 events`.
#[must_use]
pub fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A size as people read it: never more than it is by as much as a unit.
#[must_use]
pub fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    if bytes < MIB { format!("{} KiB", bytes.div_ceil(1 << 10)) } else { format!("{} MiB", (bytes + MIB / 2) / MIB) }
}

/// The word a value is written as.
#[must_use]
pub fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// So many characters at the end of an id tell it from others.
const ID_ENDING: usize = 8;

/// The end of an id, as a short name for it.
#[must_use]
pub fn id_ending(id: &str) -> &str {
    &id[id.len().saturating_sub(ID_ENDING)..]
}

/// A word as a shell takes it.
#[must_use]
pub fn quoted(word: &[u8]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=+@%,".contains(c);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        // Nothing in it is hidden, so it can stand as it is.
        Ok(text) if exact(text, usize::MAX) == text => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let octal = |byte: &u8| match char::from(*byte) {
                c if plain(c) => c.to_string(),
                _ => format!("\\{byte:03o}"),
            };
            format!("$'{}'", word.iter().map(octal).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_is_not_seen_is_made_visible() {
        for hidden in ['\u{e0100}', '\u{3164}', '\u{ffa0}', '\u{115f}', '\u{fe0f}', '\u{34f}', '\u{17b4}', '\u{180b}'] {
            let shown = exact(&format!("a{hidden}b"), 80);
            assert_eq!(shown, format!("a<U+{:04X}>b", u32::from(hidden)));
        }
    }

    #[test]
    fn a_name_is_shown_whole_and_a_cut_one_says_so() {
        assert_eq!(exact("a\n b\r\n\x1bc  d", 80), "a<U+000A> b<U+000D><U+000A><U+001B>c  d");
        assert_eq!(exact("abcdef", 3), "abc… (cut: 6 characters in all)");
    }

    #[test]
    fn a_line_is_one_line_and_bounded() {
        assert_eq!(safe_line("a\n b\t c", 80), "a b c");
        assert_eq!(safe_line("abcdef", 3), "abc…");
    }

    #[test]
    fn a_printed_command_can_be_pasted() {
        assert_eq!(quoted(b"sqlite:/tmp/x.db"), "sqlite:/tmp/x.db");
        assert_eq!(quoted(b"/a b/it's"), r"'/a b/it'\''s'");
        assert_eq!(quoted(b"/a\x1b/\xff"), r"$'/a\033/\377'");
    }
}
