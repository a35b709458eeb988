//! Rust sources without their comments and literals, so that a search finds code and nothing else; and the comments alone.

/// The source with every comment, string and character literal blanked out. Length and line breaks stay as they were,
/// so an offset means the same in both.
pub fn code_only(source: &str) -> String {
    let mut code = source.as_bytes().to_vec();
    for (from, to) in literals(source) {
        blank(&mut code[from..to], b' ');
    }
    // Only whole characters were blanked: a literal begins and ends at ASCII bytes.
    String::from_utf8_lossy(&code).into_owned()
}

/// The comments of the source and nothing else: their slashes are spaces, and what is code is [`NO_TEXT`]. Length and line
/// breaks stay as they were, so comments of several lines read as one text.
pub fn comments_only(source: &str) -> String {
    let mut text = source.as_bytes().to_vec();
    let mut end = 0;
    for (from, to) in literals(source) {
        if source[from..to].starts_with("//") {
            blank(&mut text[end..from], NO_TEXT);
            let slashes = source[from..to].bytes().take_while(|byte| matches!(byte, b'/' | b'!')).count();
            blank(&mut text[from..from + slashes], b' ');
            end = to;
        }
    }
    blank(&mut text[end..], NO_TEXT);
    String::from_utf8_lossy(&text).into_owned()
}

/// Stands for each byte that is not text: no pattern that reads text goes across it.
pub const NO_TEXT: u8 = 0;

/// Overwrites all but white space, which separates code from code and words from words as before.
fn blank(bytes: &mut [u8], with: u8) {
    for byte in bytes {
        if with == b' ' && *byte != b'\n' || with == NO_TEXT && !byte.is_ascii_whitespace() {
            *byte = with;
        }
    }
}

/// Where each comment, string and character literal begins and ends.
fn literals(source: &str) -> Vec<(usize, usize)> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end > at {
            found.push((at, end));
            at = end;
        } else if is_word(bytes[at]) {
            // A whole word at once: the `r` of `for` must not be taken for the start of a raw string.
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
        } else {
            at += 1;
        }
    }
    found
}

/// Offsets at which `word` stands alone, not as a part of a longer name.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).map(|index| bytes[index]);
        let after = bytes.get(at + word.len());
        !before.is_some_and(is_word) && !after.copied().is_some_and(is_word)
    })
}

/// The line of an offset, counted from 1.
pub fn line_of(source: &str, at: usize) -> usize {
    source.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The offset after the bracket that closes the one at `open`, or the end of the text.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The end of the comment or literal that begins at `at`; `at` itself where none begins.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|byte| *byte == b'\n');
        return at + length.unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + block_comment(rest);
    }
    if rest.first() == Some(&b'\'') {
        return at + character(rest);
    }
    let prefix = rest.iter().take_while(|byte| matches!(byte, b'b' | b'c' | b'r')).count();
    let raw = prefix > 0 && rest[prefix - 1] == b'r';
    let body = &rest[prefix.min(2)..];
    if prefix > 2 {
        return at;
    }
    if raw {
        let hashes = body.iter().take_while(|byte| **byte == b'#').count();
        if body.get(hashes) == Some(&b'"') {
            return at + prefix + raw_string(body, hashes);
        }
        return at;
    }
    match body.first() {
        Some(b'"') => at + prefix + string(body),
        Some(b'\'') if prefix == 1 => at + prefix + character(body),
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string(body: &[u8]) -> usize {
    let mut at = 1;
    while at < body.len() {
        match body[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    body.len()
}

fn raw_string(body: &[u8], hashes: usize) -> usize {
    let mut at = hashes + 1;
    while at < body.len() {
        let closes = body[at] == b'"'
            && body.len() >= at + 1 + hashes
            && body[at + 1..at + 1 + hashes].iter().all(|byte| *byte == b'#');
        if closes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    body.len()
}

/// The length of a character literal, or 0 where the quote begins a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|byte| *byte == b'\'');
        return close.map_or(rest.len(), |length| length + 4);
    }
    let Some(first) = rest.get(1) else { return 0 };
    let width = match first {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        let cases = [
            ("a // unsafe\nb", "a          \nb"),
            ("a /* x /* y */ z */ b", "a                   b"),
            (r#"f("a\"b") c"#, r"f(      ) c"),
            (r##"f(r#"a"b"#) c"##, "f(        ) c"),
            (r#"b"x" c"y" br"z""#, "               "),
            ("'a' 'static '\\'' x", "    'static      x"),
            ("for r in 0..1 {}", "for r in 0..1 {}"),
            ("r#type = 1", "r#type = 1"),
            ("let s = \"two\nlines\";", "let s =     \n      ;"),
            ("'é' x", "     x"),
            ("\"never closed", "             "),
        ];
        for (source, expected) in cases {
            let code = code_only(source);
            assert_eq!(code, expected, "{source}");
            assert_eq!(code.len(), source.len(), "{source}");
        }
    }

    #[test]
    fn only_comments_are_left() {
        let cases = [
            ("f(); // a `b`\n", "\0\0\0\0    a `b`\n"),
            ("/// a\n//! b\nx", "    a\n    b\n\0"),
            ("\"// no\" // é", "\0\0\0 \0\0\0    é"),
        ];
        for (source, expected) in cases {
            let text = comments_only(source);
            assert_eq!(text, expected, "{source}");
            assert_eq!(text.len(), source.len(), "{source}");
        }
    }

    #[test]
    fn a_word_is_found_only_where_it_stands_alone() {
        let found: Vec<usize> = words("unsafe_code unsafe { not_unsafe } unsafe", "unsafe").collect();
        assert_eq!(found, [12, 34]);
    }
}
