//! The shapes in which a secret can turn up in text: as it is, in hex, base64, URL and JSON dress.
//!
//! Each shape is one branch of a regular expression over bytes, with the most bytes it can match.
//! Branches bind to the value alone, never to what surrounds it, so that a search may begin anywhere.

use std::fmt::Write as _;

/// Values shorter than this are not looked for (SA-36 says six).
///
/// A PIN or a `true` occurs everywhere by chance: masking it would shred ordinary output, and the
/// holes would themselves tell the value. What is that short must be protected by not being printed.
pub const MIN_REDACTED_BYTES: usize = 6;

pub(crate) const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Bytes of `%XX`.
const PERCENT_BYTES: usize = 3;

/// One branch: its expression, and the length of its longest match.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Form {
    pub(crate) longest: usize,
    pub(crate) regex: String,
}

/// The families of shapes. Each is searched for by itself: of two branches of one expression that
/// match at one place only the first is reported, and across families it need not be the longer.
pub(crate) const FAMILIES: usize = 4;

/// Every shape of `value` by family; none if it is too short to be looked for.
pub(crate) fn forms(value: &[u8]) -> [Vec<Form>; FAMILIES] {
    // A key read from a file often carries a line end that its user strips.
    let trimmed = value.trim_ascii();
    let mut out = [const { Vec::new() }; FAMILIES];
    for value in [value, trimmed] {
        if value.len() >= MIN_REDACTED_BYTES {
            out[0].push(plain_or_url(value));
            out[1].push(hex(value));
            out[2].extend((0..3).map(|shift| base64(value, shift)));
            out[3].extend(json(value));
        }
    }
    out
}

fn byte(regex: &mut String, byte: u8) {
    // Writing into a String cannot fail.
    let _ = write!(regex, r"\x{byte:02x}");
}

/// Each byte as itself or as `%XX`. One branch covers the exact value and every URL encoder,
/// whichever characters it leaves alone and whichever case its digits have.
fn plain_or_url(value: &[u8]) -> Form {
    let mut regex = String::with_capacity(24 * value.len());
    for &b in value {
        // The longer spelling first: a `%` that is itself encoded is taken whole.
        let _ = write!(regex, "(?:%(?i:{b:02x})|");
        byte(&mut regex, b);
        regex.push_str(if b == b' ' { r"|\+)" } else { ")" });
    }
    Form { longest: PERCENT_BYTES * value.len(), regex }
}

fn hex(value: &[u8]) -> Form {
    let mut regex = String::from("(?i:");
    for b in value {
        let _ = write!(regex, "{b:02x}");
    }
    regex.push(')');
    Form { longest: 2 * value.len(), regex }
}

/// Base64 of anything that holds the value `shift` bytes (mod 3) after its start, such as the
/// `user:password` of HTTP. Both alphabets, padded or not, URL-encoded or not.
///
/// The characters that carry only bits of the value are fixed. The one before and the one after
/// carry some of its bits beside foreign ones: they are taken too, as classes of what is possible.
fn base64(value: &[u8], shift: usize) -> Form {
    let bit = |at: usize| value[at / 8] >> (7 - at % 8) & 1;
    let bits = 8 * value.len();
    let first = (6 - (8 * shift) % 6) % 6;
    let whole = (bits - first) / 6;
    let mut regex = String::new();
    let mut longest = 0;
    if first > 0 {
        let low = (0..first).fold(0, |acc, i| acc << 1 | bit(i));
        let possible = (0..1u8 << (6 - first)).map(|high| high << first | low);
        longest += class(&mut regex, possible);
        regex.push('?');
    }
    for group in 0..whole {
        let sextet = (0..6).fold(0, |acc, i| acc << 1 | bit(first + 6 * group + i));
        longest += class(&mut regex, std::iter::once(sextet));
    }
    let rest = bits - first - 6 * whole;
    if rest > 0 {
        let high = (bits - rest..bits).fold(0, |acc, i| acc << 1 | bit(i));
        let possible = (0..1u8 << (6 - rest)).map(|low| high << (6 - rest) | low);
        longest += class(&mut regex, possible);
        regex.push('?');
    }
    regex.push_str("(?:=|%3[Dd]){0,2}");
    Form { longest: longest + 2 * PERCENT_BYTES, regex }
}

/// One base64 character out of `sextets`; returns its longest spelling in bytes.
fn class(regex: &mut String, sextets: impl Iterator<Item = u8>) -> usize {
    let mut set = String::new();
    let mut encoded = String::new();
    for sextet in sextets {
        match BASE64[usize::from(sextet)] {
            b'+' => {
                set.push_str(r"+\-");
                encoded.push_str("|%2[Bb]");
            }
            b'/' => {
                set.push_str("/_");
                encoded.push_str("|%2[Ff]");
            }
            letter => set.push(char::from(letter)),
        }
    }
    let _ = write!(regex, "(?:[{set}]{encoded})");
    if encoded.is_empty() { 1 } else { PERCENT_BYTES }
}

/// As the inside of a JSON string, where that differs: a key of several lines printed by a program.
fn json(value: &[u8]) -> Option<Form> {
    let text = std::str::from_utf8(value).ok()?;
    let quoted = serde_json::to_string(text).ok()?;
    let inside = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if inside == text {
        return None;
    }
    let mut regex = String::with_capacity(4 * inside.len());
    for b in inside.bytes() {
        byte(&mut regex, b);
    }
    Some(Form { longest: inside.len(), regex })
}
