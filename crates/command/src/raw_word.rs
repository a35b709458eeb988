//! Words of a line as they are written, before a shell makes anything of them.

use super::marks::{self, Open};
use super::word::Unread;

/// Whether a substitution stands in brackets somewhere, however it is quoted.
pub(super) fn holds_index(line: &str) -> bool {
    let bare: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '\\' | ' ')).collect();
    ["[$(", "[`", "[${", "[$["].iter().any(|start| bare.contains(start))
}

/// Whether a word that is not literal becomes known only when the line runs. A home is a folder whose name does not
/// matter; braces without a list stand for themselves.
pub(super) fn openness(why: Unread, raw: &str) -> Option<Open> {
    let expands = raw.contains(['$', '`', '*', '?']);
    match why {
        Unread::Tilde if !expands && raw.contains('/') => None,
        Unread::Tilde if !expands => Some(Open::One),
        Unread::Braces if !expands && !raw.contains(',') && !raw.contains("..") => None,
        Unread::LookAlike(_) if !expands => None,
        Unread::Unfinished => Some(Open::Many),
        _ => Some(marks::spread(raw)),
    }
}

/// A word that is not literal, without its quotes, so that `sh -c "rm $x"` is still seen to run `rm`.
pub(super) fn unquoted(raw: &str) -> String {
    raw.replace("\\\"", "\"").chars().filter(|c| !matches!(c, '"' | '\'')).collect()
}

/// Bounded, for a sentence.
pub(super) fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(80).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}
