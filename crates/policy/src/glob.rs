//! The small glob language of names: `*`, `?`, and `\` before a character that is meant literally.
//!
//! Brackets and braces are refused rather than taken one way or the other: `*.{pem,key}` read
//! literally would deny nothing, and `[id].tsx` read as a class would match other files. Matching is
//! done by `regex`, where `?` is one character; in globset it is one byte, and a deny rule with `?`
//! could be passed by with an accented letter.

use crate::PatternError;

/// Bytes of one pattern.
pub(crate) const MAX_PATTERN_BYTES: usize = 16_384;
/// Wildcards of one name; keeps the compiled form small.
const MAX_WILDCARDS: usize = 64;

/// One element of a name pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Literal(char),
    /// `?`: one character.
    One,
    /// `*`: any number of characters.
    Many,
}

/// The elements of `text`, which holds no separator.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, PatternError> {
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => Token::Literal(chars.next().ok_or(PatternError::DanglingEscape)?),
            '?' => Token::One,
            '*' if out.last() == Some(&Token::Many) => return Err(PatternError::DoubleStar),
            '*' => Token::Many,
            '[' | ']' | '{' | '}' => return Err(PatternError::Bracket(c)),
            other => Token::Literal(other),
        });
    }
    if out.len() - literal_chars(&out) > MAX_WILDCARDS {
        return Err(PatternError::TooManyWildcards { max: MAX_WILDCARDS });
    }
    Ok(out)
}

/// The characters of `text`, none of them special.
pub(crate) fn literal_tokens(text: &str) -> Vec<Token> {
    text.chars().map(Token::Literal).collect()
}

/// The text that is read back as `tokens`.
pub(crate) fn render(tokens: &[Token], out: &mut String) {
    for token in tokens {
        match token {
            Token::Literal(c) => {
                if matches!(c, '\\' | '?' | '*' | '[' | ']' | '{' | '}') {
                    out.push('\\');
                }
                out.push(*c);
            }
            Token::One => out.push('?'),
            Token::Many => out.push('*'),
        }
    }
}

/// The name itself, if nothing in it is special.
pub(crate) fn as_literal(tokens: &[Token]) -> Option<String> {
    tokens
        .iter()
        .map(|token| match token {
            Token::Literal(c) => Some(*c),
            _ => None,
        })
        .collect()
}

/// The literal texts between its wildcards.
pub(crate) fn literal_runs(tokens: &[Token]) -> impl Iterator<Item = String> {
    tokens.split(|token| !matches!(token, Token::Literal(_))).filter_map(as_literal).filter(|run| !run.is_empty())
}

/// Whether `name`, which holds no separator, is one of those meant.
pub(crate) fn fits(tokens: &[Token], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // `reached[n]`: the tokens so far match the first n characters.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for token in tokens {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            match token {
                Token::Many => next[at] = reached[at] || (at > 0 && next[at - 1]),
                Token::One => next[at] = at > 0 && reached[at - 1],
                Token::Literal(c) => next[at] = at > 0 && reached[at - 1] && name[at - 1] == *c,
            }
        }
        reached = next;
    }
    reached[name.len()]
}

pub(crate) fn literal_chars(tokens: &[Token]) -> usize {
    tokens.iter().filter(|token| matches!(token, Token::Literal(_))).count()
}

/// Adds the expression for `tokens`, where a wildcard stands for characters out of `any`.
pub(crate) fn push_regex(tokens: &[Token], any: &str, out: &mut String) {
    for token in tokens {
        match token {
            Token::Literal(c) => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            Token::One => out.push_str(any),
            Token::Many => {
                out.push_str(any);
                out.push('*');
            }
        }
    }
}

/// Compiles an expression built by this crate out of a checked pattern.
pub(crate) fn compile(body: &str) -> regex::Regex {
    // Invariant: the pattern passed its limits and every character in it is escaped, so that it
    // parses and stays far below the size limit.
    regex::RegexBuilder::new(&format!(r"(?s)\A(?:{body})\z"))
        .size_limit(64 << 20)
        .build()
        .expect("a checked pattern compiles")
}

/// The limits every pattern keeps.
pub(crate) fn check_size(text: &str) -> Result<(), PatternError> {
    if text.is_empty() {
        return Err(PatternError::Empty);
    }
    if text.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::TooLong { max: MAX_PATTERN_BYTES });
    }
    Ok(())
}
