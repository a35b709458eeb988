//! The change a call makes, as a unified diff.

use std::fmt::Write as _;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};

/// Lines shown round a change.
const CONTEXT: u32 = 3;
/// What a person who is asked is shown of a change, in bytes.
const SHOWN_MAX: usize = 1 << 20;

/// A change in lines.
pub struct LineChange {
    /// `--- a/path`, `+++ b/path` and hunks; empty if nothing differs.
    pub text: String,
    pub added: u64,
    pub removed: u64,
}

/// The change from `old` (absent: there is no file yet) to `new`. The same texts always give the same diff, however busy
/// the machine is: an approval is bound to it.
#[must_use]
pub fn unified_diff(path: &str, old: Option<&str>, new: &str) -> LineChange {
    let input = InternedInput::new(old.unwrap_or_default(), new);
    // Histogram bounds its work by the texts and never by a clock.
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let (added, removed) = (u64::from(diff.count_additions()), u64::from(diff.count_removals()));
    let mut text = String::new();
    let hunks: Vec<Hunk> = diff.hunks().collect();
    if !hunks.is_empty() {
        let path = path.trim_start_matches('/');
        let from = old.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{path}"));
        text = format!("--- {from}\n+++ b/{path}\n");
    }
    // Changes that share lines of context stand in one block.
    for block in hunks.chunk_by(|one, next| next.before.start - one.before.end <= 2 * CONTEXT) {
        write_block(&mut text, &input, block);
    }
    LineChange { text, added, removed }
}

/// One block of a unified diff: `@@ -from +to @@`, then the changes with the lines round them.
fn write_block(text: &mut String, input: &InternedInput<&str>, hunks: &[Hunk]) {
    let ([first, ..], [.., last]) = (hunks, hunks) else { return };
    let lead = first.before.start.min(CONTEXT);
    let tail = (input.before.len() as u32 - last.before.end).min(CONTEXT);
    let old = first.before.start - lead..last.before.end + tail;
    let new = first.after.start - lead..last.after.end + tail;
    // Writing to a string does not fail.
    let _ = writeln!(text, "@@ -{} +{} @@", span(&old), span(&new));
    let mut at = old.start;
    for hunk in hunks {
        write_lines(text, ' ', input, &input.before, at..hunk.before.start);
        write_lines(text, '-', input, &input.before, hunk.before.clone());
        write_lines(text, '+', input, &input.after, hunk.after.clone());
        at = hunk.before.end;
    }
    write_lines(text, ' ', input, &input.before, at..old.end);
}

/// `first line,number of lines`; an empty span names the line before it, and the number 1 is left out.
fn span(lines: &Range<u32>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        many => format!("{},{many}", lines.start + 1),
    }
}

fn write_lines(text: &mut String, sign: char, input: &InternedInput<&str>, side: &[Token], lines: Range<u32>) {
    for token in &side[lines.start as usize..lines.end as usize] {
        let line = input.interner[*token];
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

impl LineChange {
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
        let of = |bytes: usize| unified_diff("/a", None, &"line of text\n".repeat(bytes / 14));
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
        // A minimal diff of these would take far longer than a call may.
        let (old, new) = strangers(30_000);
        let crawling: Vec<_> = (0..8)
            .map(|_| {
                let (old, new) = (old.clone(), new.clone());
                std::thread::spawn(move || unified_diff("/a", Some(&old), &new).text)
            })
            .collect();
        let alone = unified_diff("/a", Some(&old), &new);
        assert!(alone.removed > 10_000 && alone.added > 10_000);
        for text in crawling {
            assert!(text.join().expect("a diff") == alone.text);
        }
        let mut seen = alone.text.lines();
        let head: Vec<&str> = seen.by_ref().take(2).collect();
        assert_eq!(head, ["--- a/a", "+++ b/a"]);
        assert!(seen.next().is_some_and(|block| block.starts_with("@@ -1,")));
        assert_eq!(seen.next(), Some(" first"));
        assert_eq!(seen.next_back(), Some("\\ No newline at end of file"));
        assert_eq!(seen.next_back(), Some(" last"));
    }

    #[test]
    fn few_edits_far_apart_in_a_long_file_are_shown_line_by_line() {
        let old: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 10\n", "ten\n").replace("line 99000\n", "");
        let change = unified_diff("/a", Some(&old), &new);
        assert_eq!((change.added, change.removed), (1, 2));
        assert!(change.text.len() < 400, "{}", change.text);
    }

    #[test]
    fn blocks_and_ends_are_written_as_git_writes_them() {
        for (old, new, expected) in [
            (
                "1\n2\n3\n4\nx\n6",
                "1\n2\n3\n4\ny\n6",
                "@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-x\n+y\n 6\n\\ No newline at end of file\n",
            ),
            ("x\nz\n", "y\nz", "@@ -1,2 +1,2 @@\n-x\n-z\n+y\n+z\n\\ No newline at end of file\n"),
            ("x", "y\n", "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n"),
            ("a\n", "a\nb\n", "@@ -1 +1,2 @@\n a\n+b\n"),
            ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
            ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
            (
                "a\n1\n2\n3\n4\n5\n6\nb\n1\n2\n3\n4\n5\n6\n7\nc\n",
                "A\n1\n2\n3\n4\n5\n6\nB\n1\n2\n3\n4\n5\n6\n7\nC\n",
                "@@ -1,11 +1,11 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n 1\n 2\n 3\n\
                 @@ -13,4 +13,4 @@\n 5\n 6\n 7\n-c\n+C\n",
            ),
        ] {
            assert_eq!(unified_diff("/f", Some(old), new).text, format!("--- a/f\n+++ b/f\n{expected}"));
        }
        assert_eq!(unified_diff("/f", Some("a\n"), "a\n").text, "");
        assert_eq!(unified_diff("/f", None, "a\n").text, "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n");
    }
}
