//! The change a call makes, as a unified diff.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Past this the rest of a change is shown as one replaced block: correct, only less fine.
const PATIENCE: Duration = Duration::from_millis(300);
/// Lines shown round a change.
const CONTEXT: usize = 3;
/// What a person who is asked is shown of a change, in bytes.
const SHOWN_MAX: usize = 32 << 10;

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
        let end = self.text[..self.text.floor_char_boundary(SHOWN_MAX)].rfind('\n').map_or(0, |at| at + 1);
        let left = self.text[end..].lines().count();
        format!("{}[{left} more lines of the diff are not shown]\n", &self.text[..end])
    }
}
