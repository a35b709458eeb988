//! L64: replacement is literal, BOM and line ends survive, and hunks say which lines differ.

use portcullis_base::{Code, Hunk, LineRange, Reason, limits};
use portcullis_sandbox::{EditError, Replacement, TextFile, read_file, replace_literal};
use proptest::prelude::*;

use crate::world::world;

fn text(content: &str) -> TextFile {
    TextFile::parse(content.as_bytes().to_vec()).expect("text")
}

fn edit(content: &str, old: &str, new: &str) -> Replacement {
    replace_literal(&text(content), old, new, false).expect("one match")
}

fn all(content: &str, old: &str, new: &str) -> Replacement {
    replace_literal(&text(content), old, new, true).expect("a match")
}

fn refused(content: &str, old: &str, new: &str) -> EditError {
    replace_literal(&text(content), old, new, false).expect_err("no edit")
}

#[test]
fn an_edit_without_one_clear_place_is_refused() {
    let many = "x\n".repeat(12);
    assert_eq!(refused("a", "b", "c"), EditError::NotFound);
    assert_eq!(refused("a", "a", "a"), EditError::NoChange);
    assert_eq!(refused("a", "", "b"), EditError::EmptyOld);
    assert_eq!(refused(&many, "x", "y"), EditError::Ambiguous { count: 12, lines: (1..=10).collect() });
    assert_eq!(refused("aaa", "aa", "b"), EditError::Ambiguous { count: 2, lines: vec![1, 1] });
    assert_eq!(EditError::NotFound.reason(), Some(Reason::TargetNotFound));
    assert_eq!(EditError::NoChange.reason(), Some(Reason::NoChange));
    assert_eq!(refused(&many, "x", "y").code(), Code::AmbiguousTarget);
    assert_eq!(refused("a", "", "b").code(), Code::SchemaInvalid);
}

#[test]
fn replace_all_goes_from_left_to_right() {
    let done = all("aaa\nb\naa\n", "aa", "c");
    assert_eq!((done.after.text(), done.count), ("ca\nb\nc\n", 2));
    assert_eq!(done.match_lines, [LineRange { first: 1, last: 1 }, LineRange { first: 3, last: 3 }]);
    assert_eq!(done.hunks, [Hunk { first: 1, removed: 1, added: 1 }, Hunk { first: 3, removed: 1, added: 1 }]);
}

#[test]
fn a_replacement_that_would_outgrow_the_limit_is_refused_before_it_is_built() {
    let new = "y".repeat(1 << 20);
    let error = replace_literal(&text(&"x".repeat(1 << 10)), "x", &new, true).expect_err("too large");
    assert_eq!(error, EditError::TooLarge { size: 1 << 30, max: limits::FILE_MAX });
}

#[test]
fn hunks_cover_whole_lines_and_joined_ones() {
    let cases = [
        ("a\nb\nc\n", "b\n", "", Hunk { first: 2, removed: 1, added: 0 }),
        ("a\nxb\nc\n", "b\n", "", Hunk { first: 2, removed: 2, added: 1 }),
        ("a\nb\nc", "\nb", "", Hunk { first: 1, removed: 2, added: 1 }),
        ("a\nb", "b", "", Hunk { first: 2, removed: 1, added: 0 }),
        ("a\nb\nc\n", "b", "x\ny\nz", Hunk { first: 2, removed: 1, added: 3 }),
        ("a", "a", "", Hunk { first: 1, removed: 1, added: 0 }),
    ];
    for (content, old, new, hunk) in cases {
        assert_eq!(edit(content, old, new).hunks, [hunk], "{content:?} {old:?} {new:?}");
    }
    let one_line = all("ab ab ab\nab\n", "ab", "longer\n");
    assert_eq!(one_line.hunks, [Hunk { first: 1, removed: 1, added: 4 }, Hunk { first: 2, removed: 1, added: 2 }]);
}

#[test]
fn line_ends_of_a_crlf_file_survive_a_caller_who_writes_lf() {
    let done = edit("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz");
    assert_eq!(done.after.text(), "x\r\ny\r\nz\r\nc\r\n");
    assert_eq!(edit("a\r\nb\r\n", "b", "x\ny").after.text(), "a\r\nx\r\ny\r\n");
    assert_eq!(refused("a\r\nb\r\n", "a\nx", "y"), EditError::NotFound);
}

#[test]
fn a_caller_who_writes_cr_is_taken_at_their_word() {
    assert_eq!(edit("a\r\nb\r\n", "a\r\nb", "a\nb").after.text(), "a\nb\r\n");
    assert_eq!(edit("a\r\nb\r\n", "b", "x\r\ny").after.text(), "a\r\nx\r\ny\r\n");
    assert_eq!(refused("a\r\nb\r\n", "a\nb", "a\r\nc"), EditError::NotFound);
}

#[test]
fn mixed_and_lf_files_are_edited_byte_by_byte() {
    assert_eq!(edit("a\r\nb\nc\n", "b\nc", "x\ny").after.text(), "a\r\nx\ny\n");
    assert_eq!(refused("a\r\nb\nc\n", "a\nb", "x"), EditError::NotFound);
    assert_eq!(edit("a\nb\n", "a", "x\r\ny").after.text(), "x\r\ny\nb\n");
}

#[test]
fn bom_crlf_and_mode_survive_an_edit_on_disk() {
    let w = world();
    let host = w.file("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n");
    crate::world::set_mode(&host, 0o755);
    let content = read_file(&w.resolve("a.txt"), 100).expect("read").bytes;
    let file = TextFile::parse(content).expect("text");
    let done = replace_literal(&file, "one\ntwo", "eins\nzwei", false).expect("edit");
    w.overwrite("a.txt", &done.after.to_bytes()).expect("written");
    assert_eq!(std::fs::read(&host).expect("file"), b"\xef\xbb\xbfeins\r\nzwei\r\n");
    assert_eq!(crate::world::mode(&host), 0o755);
}

/// Puts the hunks' new lines into the old ones; equal to `after` only if every line number is right.
fn apply(before: &str, after: &str, hunks: &[Hunk]) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let (mut out, mut at, mut new_at) = (String::new(), 0, 0);
    for hunk in hunks {
        let first = hunk.first as usize - 1;
        assert!(first >= at, "hunks ascend and do not overlap: {hunks:?}");
        new_at += first - at;
        out.extend(old[at..first].iter().copied());
        out.extend(new[new_at..new_at + hunk.added as usize].iter().copied());
        new_at += hunk.added as usize;
        at = first + hunk.removed as usize;
    }
    out.extend(old[at..].iter().copied());
    out
}

/// The lines a naive diff calls changed: all but the common ones at both ends.
fn naive(before: &str, after: &str) -> (usize, usize) {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    (head, old.len() - tail)
}

/// Characters that mean something to some replacer.
fn odd(least: usize, most: usize) -> impl Strategy<Value = String> {
    prop::string::string_regex(&format!(r"[a-b$\\.*+?^(){{}}|\[\]&%0-1é\n]{{{least},{most}}}")).expect("a pattern")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn l64_replacement_is_literal(
        head in odd(0, 12), old in odd(1, 4), tail in odd(0, 12), new in odd(0, 8), bom: bool,
    ) {
        let content = format!("{}{head}{old}{tail}", if bom { "\u{feff}" } else { "" });
        let before = text(&content);
        match replace_literal(&before, &old, &new, false) {
            Ok(done) => {
                let i = before.text().find(&old).expect("planted");
                let wanted = format!("{}{new}{}", &before.text()[..i], &before.text()[i + old.len()..]);
                prop_assert_eq!(done.after.text(), &wanted);
                let mut bytes = if bom { "\u{feff}".as_bytes().to_vec() } else { Vec::new() };
                bytes.extend_from_slice(wanted.as_bytes());
                prop_assert_eq!(done.after.to_bytes(), bytes);
            }
            Err(EditError::NoChange) => prop_assert_eq!(&old, &new),
            Err(EditError::Ambiguous { count, .. }) => {
                prop_assert!(count > 1);
                let places = (0..before.text().len()).filter(|i| before.text().as_bytes()[*i..].starts_with(old.as_bytes()));
                prop_assert!(places.count() > 1);
            }
            Err(other) => prop_assert!(false, "{other:?}"),
        }
        if old != new {
            let done = replace_literal(&before, &old, &new, true).expect("planted");
            prop_assert_eq!(done.after.text(), before.text().replace(&old, &new));
            prop_assert_eq!(done.count as usize, before.text().matches(&old).count());
        }
    }

    #[test]
    fn l64_line_ends_of_a_crlf_file_survive(
        lines in prop::collection::vec("[a-c$\\\\]{0,3}", 1..8), old in "[a-c$\n]{1,3}", new in "[a-d$\n]{0,4}",
    ) {
        let content = lines.iter().map(|line| format!("{line}\r\n")).collect::<String>();
        let lf = content.replace("\r\n", "\n");
        match replace_literal(&text(&content), &old, &new, true) {
            // Same as editing the file with LF and turning it back: no lone `\n` anywhere.
            Ok(done) => prop_assert_eq!(done.after.text(), lf.replace(&old, &new).replace('\n', "\r\n")),
            Err(EditError::NotFound) => prop_assert!(!lf.contains(&old)),
            Err(other) => prop_assert_eq!(other, EditError::NoChange),
        }
    }

    #[test]
    fn hunks_name_the_lines_that_differ(
        content in "([a-b]|\n|\r\n){0,24}", old in "[a-b\n]{1,3}", new in "[a-c\n]{0,4}", crlf: bool,
    ) {
        let content = if crlf { content.replace('\r', "").replace('\n', "\r\n") } else { content };
        let before = text(&content);
        let Ok(done) = replace_literal(&before, &old, &new, true) else { return Ok(()) };
        let after = done.after.text();
        prop_assert_eq!(apply(&content, after, &done.hunks), after);
        // Every hunk holds a match, and takes in at most one line more than its matches: the joined one.
        for hunk in &done.hunks {
            let last = hunk.first + hunk.removed - 1;
            let inside: Vec<_> = done.match_lines.iter().filter(|m| m.first >= hunk.first && m.last <= last).collect();
            prop_assert_eq!(inside.first().expect("a match").first, hunk.first);
            prop_assert!(inside.last().expect("a match").last + 1 >= last);
        }
        prop_assert_eq!(done.match_lines.len() as u64, done.count);
    }

    #[test]
    fn hunks_hold_what_a_naive_diff_calls_changed(
        lines in prop::collection::vec("[a-b]{0,3}", 1..8), end: bool,
        from in any::<prop::sample::Index>(), len in 1usize..12, new in "[x\n]{0,4}",
    ) {
        // Numbered lines are all different, so that a diff has one answer.
        let mut content: String = lines.iter().enumerate().map(|(i, line)| format!("{i}{line}\n")).collect();
        if end {
            content.pop();
        }
        let start = from.index(content.len());
        let old = &content[start..(start + len).min(content.len())];
        let Ok(done) = replace_literal(&text(&content), old, &new, false) else { return Ok(()) };
        let (from, to) = naive(&content, done.after.text());
        let [hunk] = done.hunks[..] else { panic!("one match, one hunk: {:?}", done.hunks) };
        prop_assert!(hunk.first as usize <= from + 1, "{hunk:?} {from}");
        prop_assert!((hunk.first + hunk.removed) as usize > to, "{hunk:?} {to}");
    }
}
