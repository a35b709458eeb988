//! Lines of an event stream that the standard does not know: to be ignored, says the standard, and one of them is an error.
//!
//! llama.cpp wrote `error: {…}` where others write an event of that name. What it says is worth more than that its line is
//! odd, so it goes on as the data that other servers send in its place.

/// The longest name of a field that is known.
const LONGEST: usize = 5;

/// Known to the standard; a comment has no name.
const KNOWN: [&[u8]; 5] = [b"", b"data", b"event", b"id", b"retry"];

/// Filters a stream, in whatever portions it comes.
#[derive(Debug, Default)]
pub(super) struct EventStreamFilter {
    at: LinePosition,
    /// A line that is known has come: what comes now is an event stream.
    begun: bool,
}

/// Where in a line the filter stands.
#[derive(Debug, Default)]
enum LinePosition {
    /// At the beginning of a line, with as much of its name as has come.
    #[default]
    Start,
    Name(Vec<u8>),
    /// In a line that goes on as it is.
    Passing,
    Dropping,
    /// In an error that becomes data.
    Error,
}

impl EventStreamFilter {
    /// What goes on of these bytes.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 16);
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = match &mut self.at {
                LinePosition::Start => {
                    self.at = LinePosition::Name(Vec::new());
                    rest
                }
                LinePosition::Name(name) => {
                    let (first, more) = (rest[0], &rest[1..]);
                    if matches!(first, b':' | b'\n' | b'\r') || name.len() > LONGEST + 3 {
                        let name = std::mem::take(name);
                        self.at = self.known(&name, &mut out);
                        rest
                    } else {
                        name.push(first);
                        more
                    }
                }
                LinePosition::Passing | LinePosition::Dropping | LinePosition::Error => {
                    self.rest_of_line(rest, &mut out)
                }
            };
        }
        out
    }

    /// The name is whole: what becomes of its line.
    fn known(&mut self, name: &[u8], out: &mut Vec<u8>) -> LinePosition {
        let plain = name.strip_prefix(b"\xef\xbb\xbf").unwrap_or(name);
        let known = KNOWN.contains(&plain);
        if known || !self.begun && plain != b"error" {
            // The first line decides whether it is an event stream at all.
            self.begun |= known;
            out.extend_from_slice(name);
            return LinePosition::Passing;
        }
        if plain == b"error" {
            self.begun = true;
            out.extend_from_slice(b"data: {\"error\"");
            return LinePosition::Error;
        }
        LinePosition::Dropping
    }

    fn rest_of_line<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
        let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let (line, more) = bytes.split_at(end.unwrap_or(bytes.len()));
        if !matches!(self.at, LinePosition::Dropping) {
            out.extend_from_slice(line);
        }
        if let Some(break_) = more.first() {
            if matches!(self.at, LinePosition::Error) {
                out.push(b'}');
            }
            if !matches!(self.at, LinePosition::Dropping) {
                out.push(*break_);
            }
            self.at = LinePosition::Start;
            return &more[1..];
        }
        more
    }
}

/// JSON text in which every half of a character (`\ud83d` without its `\ude00`) is one that stands for a broken one: no
/// string can hold a half, and an answer shall not be lost by it.
pub(super) fn whole_characters(json: &str) -> std::borrow::Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return json.into();
    }
    let bytes = json.as_bytes();
    let unit = |at: usize| {
        let hex = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
    };
    let mut out = String::with_capacity(json.len());
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        at += match (bytes[at], unit(at)) {
            (b'\\', Some(0xd800..=0xdbff)) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            (b'\\', Some(0xd800..=0xdfff)) => {
                out.push_str(&json[from..at]);
                out.push_str("\\ufffd");
                from = at + 6;
                6
            }
            (b'\\', _) => 2,
            _ => 1,
        };
    }
    out.push_str(&json[from..]);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &str, portion: usize) -> String {
        let mut lines = EventStreamFilter::default();
        let out: Vec<u8> = text.as_bytes().chunks(portion).flat_map(|bytes| lines.pass(bytes)).collect();
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn an_unknown_line_is_ignored_and_an_error_is_data_however_the_bytes_are_cut() {
        let cases = [
            ("data: a\n\n: c\nevent: x\nid\n\n", "data: a\n\n: c\nevent: x\nid\n\n"),
            ("data: a\nfoo: b\nlonger-than-any: c\r\ndata:d\r\n\r\n", "data: a\n\ndata:d\r\n\r\n"),
            ("error: {\"code\":400}\n\ndata: [DONE]\n\n", "data: {\"error\": {\"code\":400}}\n\ndata: [DONE]\n\n"),
            ("\u{feff}data: a\n\n", "\u{feff}data: a\n\n"),
            ("hello\nworld\n", "hello\nworld\n"),
            ("data: a\n\ndat\n\n", "data: a\n\n\n"),
        ];
        for (text, expected) in cases {
            for portion in 1..text.len() {
                assert_eq!(passed(text, portion), expected, "{text:?} in portions of {portion}");
            }
        }
    }

    #[test]
    fn halves_of_characters_are_broken_ones_and_nothing_else_is_changed() {
        let cases = [
            (r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#),
            (r#"{"a":"x\ud83d"}"#, r#"{"a":"x\ufffd"}"#),
            (r#"{"a":"\uDE00y"}"#, r#"{"a":"\ufffdy"}"#),
            (r#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00é"}"#, r#"{"a":"\ufffd\ud83d\ude00é"}"#),
            (r#"{"a":"\ud8"#, r#"{"a":"\ud8"#),
        ];
        for (given, expected) in cases {
            assert_eq!(whole_characters(given), expected);
        }
    }
}
