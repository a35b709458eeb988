//! Words of a line as they are written, before a shell makes anything of them.

use super::marks::{self, OpenExtent};
use super::word::WordFault;

/// Whether a substitution stands in brackets somewhere, however it is quoted.
pub(super) fn holds_index(line: &str) -> bool {
    let bare: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '\\' | ' ')).collect();
    ["[$(", "[`", "[${", "[$["].iter().any(|start| bare.contains(start))
}

/// Whether a word that is not literal becomes known only when the line runs. A home is a folder whose name does not
/// matter; braces without a list stand for themselves.
pub(super) fn openness(why: WordFault, raw: &str) -> Option<OpenExtent> {
    let expands = raw.contains(['$', '`', '*', '?']);
    match why {
        WordFault::Tilde if !expands && raw.contains('/') => None,
        WordFault::Tilde if !expands => Some(OpenExtent::One),
        WordFault::Braces if !expands && !raw.contains(',') && !raw.contains("..") => None,
        WordFault::LookAlike(_) if !expands => None,
        WordFault::Unfinished => Some(OpenExtent::Many),
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
