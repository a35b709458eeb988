//! One word as it stands in a line, read only if nothing in it has to be expanded.

use super::screen;

/// A word that needs no shell to be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Exactly these characters.
    Literal(String),
    /// A pattern over the names of files.
    Glob(GlobPattern),
}

impl Word {
    /// The characters, if it is not a pattern.
    #[must_use]
    pub fn as_literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Glob(_) => None,
        }
    }

    /// What a person is shown.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self {
            Self::Literal(text) => text,
            Self::Glob(pattern) => pattern.as_str(),
        }
    }
}

/// A pattern over file names: `*`, `?` and `[…]` as a shell has them, none of which matches `/` or a
/// leading dot of a name; a backslash makes the next character literal. Characters that were quoted in
/// the line are escaped here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobPattern(String);

impl GlobPattern {
    /// The pattern's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a word is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordFault {
    /// `$name`, `${…}`, `$(…)`, `` `…` ``, `$'…'`, `<(…)`.
    Expansion,
    Braces,
    Tilde,
    Parentheses,
    LookAlike(char),
    /// A quote or an escape that does not end.
    Unfinished,
}

impl std::fmt::Display for WordFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Expansion => "a variable or substitution",
            Self::Braces => "braces outside quotes",
            Self::Tilde => "a tilde outside quotes",
            Self::Parentheses => "parentheses outside quotes",
            Self::LookAlike(c) => {
                return write!(f, "U+{:04X}, which looks like a character that a shell knows", u32::from(*c));
            }
            Self::Unfinished => "a quote that does not end",
        })
    }
}

/// Reads a word with its quotes, as a tokenizer cut it out of a line.
///
/// # Errors
/// If a shell would put anything in its place but file names.
pub(crate) fn read(raw: &str) -> Result<Word, WordFault> {
    let mut reading = Reading::default();
    let mut chars = raw.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next() {
                    Some('\'') => break,
                    Some(c) => reading.quoted(c),
                    None => return Err(WordFault::Unfinished),
                }
            },
            '"' => loop {
                match chars.next() {
                    Some('"') => break,
                    Some('\\') => match chars.next() {
                        Some(c @ ('$' | '`' | '"' | '\\')) => reading.quoted(c),
                        // A line goes on: nothing stands for it.
                        Some('\n') => {}
                        Some(c) => {
                            reading.quoted('\\');
                            reading.quoted(c);
                        }
                        None => return Err(WordFault::Unfinished),
                    },
                    Some('$' | '`') => return Err(WordFault::Expansion),
                    Some(c) => reading.quoted(c),
                    None => return Err(WordFault::Unfinished),
                }
            },
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(c) => reading.quoted(c),
                None => return Err(WordFault::Unfinished),
            },
            '$' | '`' => return Err(WordFault::Expansion),
            '{' | '}' => return Err(WordFault::Braces),
            '(' | ')' => return Err(WordFault::Parentheses),
            // A shell expands it at the start, and in what looks like an assignment.
            '~' if matches!(before, None | Some('=' | ':')) => return Err(WordFault::Tilde),
            c if screen::is_look_alike(c) => return Err(WordFault::LookAlike(c)),
            c => reading.bare(c),
        }
        before = Some(c);
    }
    Ok(reading.word())
}

#[derive(Default)]
struct Reading {
    literal: String,
    pattern: String,
    /// Where in the pattern an unquoted `[` stands.
    open: Option<usize>,
    wild: bool,
}

impl Reading {
    fn quoted(&mut self, c: char) {
        self.literal.push(c);
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '!' | '^' | '-') {
            self.pattern.push('\\');
        }
        self.pattern.push(c);
    }

    fn bare(&mut self, c: char) {
        match c {
            '*' | '?' => self.wild = true,
            '[' if self.open.is_none() => self.open = Some(self.pattern.len()),
            // `[]…` and `[!]…` do not end there.
            ']' => {
                let inside = self.open.map(|at| &self.pattern[at + 1..]);
                self.wild |= inside.is_some_and(|inside| !matches!(inside, "" | "!" | "^"));
            }
            _ => {}
        }
        self.literal.push(c);
        self.pattern.push(c);
    }

    fn word(self) -> Word {
        if self.wild { Word::Glob(GlobPattern(self.pattern)) } else { Word::Literal(self.literal) }
    }
}

/// The command lines inside a word that is not literal: `$(…)`, `` `…` ``, `<(…)` and `>(…)`.
///
/// Wherever one may begin, also inside single quotes when these do not end: too many can only add to
/// what rules look at. In a here-document (`quotes` is false) quotes are text.
pub(crate) fn substitutions(raw: &str, quotes: bool) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = raw;
    let mut single = false;
    let mut double = false;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '\\' if !single => {
                rest = after.chars().next().map_or("", |next| &after[next.len_utf8()..]);
                continue;
            }
            '\'' if quotes && !double => single = !single && after.contains('\''),
            '"' if quotes && !single => double = !double,
            '`' if !single => {
                let end = closing_tick(after);
                out.push(after[..end].replace("\\`", "`").replace("\\\\", "\\").replace("\\$", "$"));
                rest = after.get(end + 1..).unwrap_or("");
                continue;
            }
            '$' | '<' | '>' if !single && after.starts_with('(') => {
                // Only the start is taken: what is nested in it is found when it is analysed itself.
                let body = &after[1..];
                let mut end = closing_parenthesis(body);
                // A pattern of `case` ends in a parenthesis that nothing opened.
                if body[..end].contains("case") {
                    end = body.rfind(')').unwrap_or(end);
                }
                out.push(body[..end].to_owned());
                rest = body.get(end + 1..).unwrap_or("");
                continue;
            }
            _ => {}
        }
        rest = after;
    }
    out
}

/// Where the backtick is that ends `text`, or its end.
fn closing_tick(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '`' if !escaped => return at,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Where the parenthesis is that ends `text`, or its end. Quotes are taken into account.
fn closing_parenthesis(text: &str) -> usize {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match (c, quote) {
            ('\\', None | Some('"')) => escaped = true,
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('(', None | Some('"')) => depth += 1,
            (')', None | Some('"')) if depth == 0 => return at,
            (')', None | Some('"')) => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(raw: &str) -> String {
        match read(raw) {
            Ok(Word::Literal(text)) => text,
            other => panic!("{raw}: {other:?}"),
        }
    }

    fn glob(raw: &str) -> String {
        match read(raw) {
            Ok(Word::Glob(pattern)) => pattern.0,
            other => panic!("{raw}: {other:?}"),
        }
    }

    #[test]
    fn check34_words_are_read_as_bash_reads_them_or_not_at_all() {
        assert_eq!(literal("'a b'\"c d\"e\\ f"), "a bc de f");
        assert_eq!(literal(r#""a\$b\`c\"d\\e\f""#), r#"a$b`c"d\e\f"#);
        assert_eq!(literal("a~"), "a~");
        assert_eq!(literal("["), "[");
        assert_eq!(literal("[]"), "[]");
        assert_eq!(literal("a#b"), "a#b");
        assert_eq!(literal("'*'\\?"), "*?");
        assert_eq!(glob("*.rs"), "*.rs");
        assert_eq!(glob("'a*'*"), "a\\**");
        assert_eq!(glob("[a-z]?"), "[a-z]?");
        for (raw, why) in [
            ("$a", WordFault::Expansion),
            ("\"$a\"", WordFault::Expansion),
            ("$'a'", WordFault::Expansion),
            ("`a`", WordFault::Expansion),
            ("{a,b}", WordFault::Braces),
            ("~/x", WordFault::Tilde),
            ("a=~/x", WordFault::Tilde),
            ("@(a)", WordFault::Parentheses),
            ("'a", WordFault::Unfinished),
            ("\u{2011}delete", WordFault::LookAlike('\u{2011}')),
        ] {
            assert_eq!(read(raw), Err(why), "{raw}");
        }
    }

    #[test]
    fn l32_substitutions_are_found_in_any_quotes() {
        for (raw, inside) in [
            ("$(rm x)", vec!["rm x"]),
            ("a\"$(rm x)\"b", vec!["rm x"]),
            ("`rm x`", vec!["rm x"]),
            ("${a:-$(rm x)}", vec!["rm x"]),
            ("$((a[$(rm x)]))", vec!["(a[$(rm x)])"]),
            ("<(rm x)", vec!["rm x"]),
            ("$(a ')' $(b))$(c)", vec!["a ')' $(b)", "c"]),
            ("$(case x in x) rm x;; esac)", vec!["case x in x) rm x;; esac"]),
            ("'$(no)'", vec![]),
            ("\"'$(yes)'\"", vec!["yes"]),
        ] {
            assert_eq!(substitutions(raw, true), inside, "{raw}");
        }
        assert_eq!(substitutions("it's '$(yes)'", false), ["yes"]);
    }
}
