//! The change a call makes, as a unified diff.

use similar::{ChangeTag, TextDiff};

use crate::edits::{Distance, distance};

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

/// The change from `old` (absent: there is no file yet) to `new`. The same texts always give the same diff: an approval
/// is bound to it.
pub(crate) fn unified(path: &str, old: Option<&str>, new: &str) -> Change {
    let path = path.trim_start_matches('/');
    let from = old.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{path}"));
    let header = (from, format!("b/{path}"));
    let old = old.unwrap_or_default();
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let found = distance(&old_lines, &new_lines);
    if found.near { fine(&header, old, new) } else { replaced(&header, &old_lines, &new_lines, &found) }
}

/// Line by line.
fn fine((from, to): &(String, String), old: &str, new: &str) -> Change {
    let diff = TextDiff::configure().diff_lines(old, new);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let text = diff.unified_diff().context_radius(CONTEXT).header(from, to).to_string();
    Change { text, added, removed }
}

/// Everything between the lines that both texts begin and end with as one block: correct, only less fine.
fn replaced((from, to): &(String, String), old: &[&str], new: &[&str], found: &Distance) -> Change {
    let (old_end, new_end) = (old.len() - found.suffix, new.len() - found.suffix);
    let first = found.prefix.saturating_sub(CONTEXT);
    let after = found.suffix.min(CONTEXT);
    let (removed, added) = (&old[found.prefix..old_end], &new[found.prefix..new_end]);
    let span = |changed: usize| match found.prefix - first + changed + after {
        1 => format!("{}", first + 1),
        lines => format!("{},{lines}", first + 1),
    };
    let mut text = format!("--- {from}\n+++ {to}\n@@ -{} +{} @@\n", span(removed.len()), span(added.len()));
    let blocks =
        [(' ', &old[first..found.prefix]), ('-', removed), ('+', added), (' ', &old[old_end..old_end + after])];
    for (sign, lines) in blocks {
        for line in lines {
            text.push(sign);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    Change { text, added: added.len() as u64, removed: removed.len() as u64 }
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

    /// Two texts of this many lines each with next to nothing in common but their ends.
    fn strangers(lines: usize) -> (String, String) {
        let of = |salt: u64| -> String {
            let mut seed = salt;
            let mut text = "first\n".to_owned();
            for _ in 0..lines {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(salt);
                text.push_str(&format!("{}\n", (seed >> 33) % 500));
            }
            text + "last"
        };
        (of(1_442_695_040_888_963_407), of(7_046_029_254_386_353_131))
    }

    #[test]
    fn the_same_change_has_the_same_diff_however_busy_the_machine_is() {
        // Far beyond what a fine diff could be made of in the time of a call: only a bound on work makes this the same
        // text on a machine with nothing to do and on one that crawls.
        let (old, new) = strangers(30_000);
        let crawling: Vec<_> = (0..8)
            .map(|_| {
                let (old, new) = (old.clone(), new.clone());
                std::thread::spawn(move || unified("/a", Some(&old), &new).text)
            })
            .collect();
        let alone = unified("/a", Some(&old), &new);
        assert_eq!((alone.removed, alone.added), (30_000, 30_000), "one block");
        for text in crawling {
            assert!(text.join().expect("a diff") == alone.text);
        }
        let mut seen = alone.text.lines();
        let head: Vec<&str> = seen.by_ref().take(4).collect();
        assert_eq!(head, ["--- a/a", "+++ b/a", "@@ -1,30002 +1,30002 @@", " first"]);
        assert_eq!(seen.next_back(), Some("\\ No newline at end of file"));
        assert_eq!(seen.next_back(), Some(" last"));
    }

    #[test]
    fn few_edits_far_apart_in_a_long_file_are_shown_line_by_line() {
        let old: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 10\n", "ten\n").replace("line 99000\n", "");
        let change = unified("/a", Some(&old), &new);
        assert_eq!((change.added, change.removed), (1, 2));
        assert!(change.text.len() < 400, "{}", change.text);
    }

    #[test]
    fn a_replaced_block_reads_as_a_fine_diff_of_it_would() {
        let header = ("a/a".to_owned(), "b/a".to_owned());
        for (old, new) in
            [("1\n2\n3\n4\nx\n6", "1\n2\n3\n4\ny\n6"), ("x\nz\n", "y\nz"), ("x", "y\n"), ("a\nx\n", "a\ny\n")]
        {
            let lines = |text: &'static str| -> Vec<&str> { text.split_inclusive('\n').collect() };
            let (a, b) = (lines(old), lines(new));
            let block = replaced(&header, &a, &b, &distance(&a, &b));
            assert_eq!(block.text, fine(&header, old, new).text);
        }
    }
}
