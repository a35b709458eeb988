//! Words of a line as they are written, before a shell makes anything of them.

use super::marks::{self, OpenExtent};
use super::word::WordFault;

/// Whether a substitution stands in brackets somewhere, however it is quoted.
pub(super) fn holds_index(line: &str) -> bool {
    let bare: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '\\' | ' ')).collect();
    ["[$(", "[`", "[${", "[$["].iter().any(|start| bare.contains(start))
}

/// Whether a word that is not literal becomes known only when the line runs. A home is a folder whose name does not
/// matter, as long as the word stays in it; `~+`, `~-` and `~2` are folders of the shell, and `~name` is anybody's. Braces
/// without a list stand for themselves.
pub(super) fn openness(why: WordFault, raw: &str) -> Option<OpenExtent> {
    let expands = raw.contains(['$', '`', '*', '?']);
    let at_home =
        |raw: &str| !raw.starts_with('~') || (raw.starts_with("~/") && !raw.split('/').any(|name| name == ".."));
    match why {
        WordFault::Tilde if !expands && raw.contains('/') && at_home(raw) => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_below_the_home_is_known_and_one_below_a_folder_of_the_shell_is_not() {
        for raw in ["~/x", "~/.cargo/bin/cargo", "a=~/x", "~/a..b/x"] {
            assert_eq!(openness(WordFault::Tilde, raw), None, "{raw}");
        }
        for raw in ["~+/x", "~-/x", "~1/x", "~+1/x", "~-2/x", "~name/x", "~/../x", "~/a/../../x", "~", "~+"] {
            assert_eq!(openness(WordFault::Tilde, raw), Some(OpenExtent::One), "{raw}");
        }
    }
}
