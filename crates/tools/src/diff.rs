//! The change a call makes, as a unified diff.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Past this the rest of a change is shown as one replaced block: correct, only less fine.
const PATIENCE: Duration = Duration::from_millis(300);
/// Lines shown round a change.
const CONTEXT: usize = 3;
/// What a person who is asked is shown of a change, in bytes.
const SHOWN_MAX: usize = 1 << 20;

/// A change in lines.
pub(crate) struct Change {
    /// `--- a/path`, `+++ b/path` and hunks; empty if nothing differs.
    pub(crate) text: String,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

/// The change from `old` (absent: there is no file yet) to `new`.
pub(crate) fn unified(path: &str, old: Option<&str>, new: &str) -> Change {
    let path = path.trim_start_matches('/');
    let from = old.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{path}"));
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old.unwrap_or_default(), new);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let text = diff.unified_diff().context_radius(CONTEXT).header(&from, &format!("b/{path}")).to_string();
    Change { text, added, removed }
}

impl Change {
    /// The diff for a person's decision: bounded, and it says so.
    pub(crate) fn shown(&self) -> String {
        if self.text.len() <= SHOWN_MAX {
            return self.text.clone();
        }
        let cut = self.text.floor_char_boundary(SHOWN_MAX);
        let (shown, left) = self.text.split_at(self.text[..cut].rfind('\n').map_or(0, |at| at + 1));
        format!("{shown}[{} bytes of the diff are left out here]\n", left.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_diff_is_whole_up_to_a_mebibyte_and_then_says_what_it_left_out() {
        let of = |bytes: usize| unified("/a", None, &"line of text\n".repeat(bytes / 14));
        let whole = of(SHOWN_MAX - 1_000);
        assert!(whole.text.len() > SHOWN_MAX - 2_000, "each line has 13 bytes and its sign");
        assert_eq!(whole.shown(), whole.text);
        let long = of(2 * SHOWN_MAX);
        let shown = long.shown();
        let (kept, said) = shown.trim_end().rsplit_once('\n').expect("lines");
        assert!(long.text.starts_with(kept) && shown.len() < SHOWN_MAX + 100);
        assert_eq!(said, format!("[{} bytes of the diff are left out here]", long.text.len() - kept.len() - 1));
    }
}
