//! What is looked at before any parser: size, nesting, and characters that deceive a reader.

/// The longest command line that is analysed.
pub const LINE_MAX: usize = 64 << 10;

/// Expansions (`$(`, `${`, `$[`, `` ` ``, `<(`, `>(`) and here-documents in a line. The tokenizer descends
/// into each one, so that its stack grows with them.
const EXPANSIONS_MAX: usize = 32;

/// What stops a line before it is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenRefusal {
    TooLong,
    TooNested,
    /// It is not shown, or changes how the text around it is shown.
    Deceptive(char),
}

impl std::fmt::Display for ScreenRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong => write!(f, "the line is longer than {LINE_MAX} bytes"),
            Self::TooNested => f.write_str("the line nests too deeply to be analysed"),
            Self::Deceptive(c) => {
                write!(f, "the line holds U+{:04X}, a control or invisible character", u32::from(*c))
            }
        }
    }
}

/// Size and nesting only: what the parsers need to stay within their time and stack.
pub(crate) fn bounded(line: &str) -> Result<(), ScreenRefusal> {
    if line.len() > LINE_MAX {
        return Err(ScreenRefusal::TooLong);
    }
    let mut expansions = 0;
    let mut before = '\0';
    for c in line.chars() {
        expansions += usize::from(match c {
            '(' | '{' | '[' => before == '$' || (c == '(' && matches!(before, '<' | '>' | '@' | '!' | '?' | '*' | '+')),
            '<' => before == '<',
            '`' => true,
            _ => false,
        });
        before = c;
    }
    if expansions > EXPANSIONS_MAX { Err(ScreenRefusal::TooNested) } else { Ok(()) }
}

/// The first character of `text` that is not what it looks like. Line breaks and tabs are shown as
/// what they are.
#[must_use]
pub fn deceptive(text: &str) -> Option<char> {
    text.chars().find(|c| !matches!(c, '\n' | '\t') && is_deceptive(*c))
}

/// Control characters, and those that are invisible or reorder the text.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}')
}

/// Whether a reader may take `c` for a character that means something to a shell: blanks, hyphens,
/// separators, quotes. Only outside quotes: in quoted text they are text.
#[must_use]
pub fn is_look_alike(c: char) -> bool {
    !c.is_ascii()
        && (c.is_whitespace()
            || matches!(c,
                // Full-width forms of ASCII.
                '\u{FF01}'..='\u{FF5E}' | '\u{FE50}'..='\u{FE6B}'
                // Hyphens and dashes.
                | '\u{02D7}' | '\u{06D4}' | '\u{2010}'..='\u{2015}' | '\u{2043}' | '\u{207B}' | '\u{208B}'
                | '\u{2212}' | '\u{2796}' | '\u{2CBA}' | '\u{30FC}' | '\u{FE31}' | '\u{FE32}'
                // Semicolons, bars, ampersands, angles.
                | '\u{037E}' | '\u{01C0}' | '\u{05C0}' | '\u{2223}' | '\u{2502}' | '\u{23D0}' | '\u{2758}'
                | '\u{2039}' | '\u{203A}' | '\u{276E}' | '\u{276F}' | '\u{1F674}' | '\u{A4FA}'
                // Quotes and backticks.
                | '\u{00B4}' | '\u{02B9}'..='\u{02BF}' | '\u{02C8}' | '\u{02CA}' | '\u{02CB}'
                | '\u{2018}'..='\u{201F}' | '\u{2032}'..='\u{2037}' | '\u{1FEF}' | '\u{301D}'..='\u{301F}'
                // Slashes, tildes, stars, dots, blanks that are drawn.
                | '\u{2044}' | '\u{2215}' | '\u{2216}' | '\u{29F5}' | '\u{29F8}' | '\u{02DC}' | '\u{223C}'
                | '\u{204E}' | '\u{2217}' | '\u{2024}' | '\u{2800}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check34_what_cannot_be_seen_is_deceptive_and_what_looks_like_an_operator_is_a_look_alike() {
        for c in ['\u{200B}', '\u{202E}', '\u{E0074}', '\u{1b}', '\u{b}', '\r', '\u{7f}', '\u{85}'] {
            assert_eq!(deceptive(&format!("ls {c}")), Some(c));
        }
        for c in ['\u{a0}', '\u{2011}', '\u{ff0d}', '\u{ff1b}', '\u{37e}', '\u{3000}', '\u{2019}'] {
            assert!(is_look_alike(c) && deceptive(&c.to_string()).is_none(), "{c:?}");
        }
        assert!(!"über straße 日本語 a-b\t\n".chars().any(is_look_alike));
        assert_eq!(deceptive("über straße 日本語\t\n"), None);
    }

    #[test]
    fn a_line_that_nests_without_end_is_not_parsed() {
        for opener in ["$(", "${", "`", "<(", "@(", "<<a "] {
            assert_eq!(bounded(&opener.repeat(200)), Err(ScreenRefusal::TooNested), "{opener}");
        }
        assert_eq!(bounded(&"a".repeat(LINE_MAX + 1)), Err(ScreenRefusal::TooLong));
    }
}
