//! L61–L64 and L66: nothing is changed that was not read, as it was read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use portcullis_base::{Code, FileFact, LineRange, Phase, Reason};
use portcullis_tools::CoverageRule;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, numbered};

const PRECONDITION: Code = Code::RuntimePreconditionFailed;

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(future)
}

#[derive(Debug, Clone)]
enum Op {
    Read {
        file: usize,
        first: u64,
        count: u64,
    },
    Edit {
        file: usize,
        old: String,
        new: String,
        all: bool,
    },
    Write {
        file: usize,
        content: String,
    },
    /// Someone outside changes the file, or takes it away.
    Outside {
        file: usize,
        content: Option<String>,
    },
    Restart,
}

const FILES: [&str; 2] = ["a", "dir/b"];

fn content() -> impl Strategy<Value = String> {
    // Few words, so that contents come back and matches are common.
    prop::collection::vec(prop::sample::select(vec!["x", "y", "x\n", "y\n", "\n", "\r\n"]), 0..6)
        .prop_map(|w| w.concat())
}

fn op() -> impl Strategy<Value = Op> {
    let file = || 0..FILES.len();
    prop_oneof![
        5 => (file(), prop::sample::select(vec![1u64, 1, 1, 2]), 1..7u64).prop_map(|(file, first, count)| Op::Read { file, first, count }),
        6 => (file(), prop::sample::select(vec!["x", "y", "x\n", "\n"]), content(), prop::bool::weighted(0.8))
            .prop_map(|(file, old, new, all)| Op::Edit { file, old: old.to_owned(), new, all }),
        2 => (file(), content()).prop_map(|(file, content)| Op::Write { file, content }),
        3 => (file(), prop::option::weighted(0.9, content())).prop_map(|(file, content)| Op::Outside { file, content }),
        1 => Just(Op::Restart),
    ]
}

/// What was delivered, by content: the lines of it that this session saw or wrote. Kept apart from the
/// fold: nothing is ever forgotten or shifted here, so it is an upper bound of what may be known.
#[derive(Default)]
struct Seen(BTreeMap<(usize, String), BTreeSet<u64>>);

impl Seen {
    fn add(&mut self, file: usize, content: &str, lines: impl IntoIterator<Item = u64>) {
        self.0.entry((file, content.to_owned())).or_default().extend(lines);
    }

    fn of(&self, file: usize, content: &str) -> Option<&BTreeSet<u64>> {
        self.0.get(&(file, content.to_owned()))
    }
}

fn line_count(content: &str) -> u64 {
    content.split_inclusive('\n').count() as u64
}

async fn l61_case(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let world = World::new();
    world.put("a", "x\ny\n");
    let session = world.session().await;
    let mut process = world.start();
    let mut seen = Seen::default();
    for op in ops {
        if matches!(op, Op::Restart) {
            process.open(session).await.session.release().await.expect("released");
            process = world.start();
            continue;
        }
        let hand = process.open(session).await;
        let on_disk = |file: usize| std::fs::read_to_string(world.path(FILES[file])).ok();
        match op {
            Op::Restart => {}
            Op::Outside { file, content: Some(content) } => world.put(FILES[file], content),
            Op::Outside { file, content: None } => {
                let _ = std::fs::remove_file(world.path(FILES[file]));
            }
            Op::Read { file, first, count } => {
                let input = json!({"file_path": FILES[file], "start_line": first, "line_count": count});
                let read = hand.call("read", input).await;
                prop_assert_eq!(read.ok, on_disk(file).is_some(), "{}", read.summary);
                if let Some(FileFact::Delivered { lines, .. }) = read.files.first() {
                    let lines = lines.iter().flat_map(|range| range.first..=range.last);
                    seen.add(file, &on_disk(file).expect("read"), lines);
                }
            }
            Op::Edit { file, old, new, all } => {
                let before = on_disk(file);
                let input = json!({"file_path": FILES[file], "old_string": old, "new_string": new, "replace_all": all});
                let edited = hand.call("edit", input).await;
                let after = on_disk(file);
                if !edited.ok {
                    prop_assert_eq!(before, after, "a refused edit changes nothing");
                } else {
                    let before = before.expect("an edited file existed");
                    prop_assert!(seen.of(file, &before).is_some(), "edited {:?}, never delivered", before);
                    seen.add(file, &after.expect("still there"), std::iter::empty());
                }
            }
            Op::Write { file, content } => {
                let before = on_disk(file);
                let written = hand.call("write", json!({"file_path": FILES[file], "content": content})).await;
                if written.ok {
                    // A file that ends every line with CRLF goes on doing so.
                    let ends = |text: &str, end: &str| text.matches(end).count();
                    let crlf = before.as_ref().is_some_and(|b| b.contains('\n') && ends(b, "\n") == ends(b, "\r\n"));
                    let content = if crlf && !content.contains('\r') { content.replace('\n', "\r\n") } else { content };
                    prop_assert_eq!(on_disk(file), Some(content.clone()));
                    if let Some(before) = before {
                        prop_assert!(seen.of(file, &before).is_some(), "overwrote {:?}, never delivered", before);
                    }
                    seen.add(file, &content, 1..=line_count(&content));
                } else {
                    prop_assert!(before.is_some(), "a new file needs nothing: {}", written.summary);
                    prop_assert_eq!(on_disk(file), before, "a refused write changes nothing");
                }
            }
        }
        hand.session.release().await.expect("released");
    }
    Ok(())
}

/// Reads of some lines, then one edit: it succeeds only if every line it replaces was read, and if
/// every line was, it succeeds.
async fn l62_case(
    lines: Vec<String>,
    reads: Vec<(u64, u64)>,
    span: (usize, usize),
    new: String,
) -> Result<(), TestCaseError> {
    let world = World::new();
    let content: String = lines.iter().enumerate().map(|(n, line)| format!("{n}{line}\n")).collect();
    world.put("a", &content);
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let mut covered = BTreeSet::new();
    for (first, count) in reads {
        hand.done("read", json!({"file_path": "a", "start_line": first, "line_count": count})).await;
        covered.extend((first..first + count).filter(|n| *n <= lines.len() as u64));
    }
    let (start, len) = (span.0 % content.len(), 1 + span.1 % 12);
    let end = (start + len).min(content.len());
    let old = &content[start..end];
    prop_assume!(places(&content, old) == 1 && old != new);
    let edited = hand.call("edit", json!({"file_path": "a", "old_string": old, "new_string": new})).await;
    let first = content[..start].matches('\n').count() as u64 + 1;
    let last = content[..end - 1].matches('\n').count() as u64 + 1;
    let known = (first..=last).all(|n| covered.contains(&n));
    // Taking a line's end away joins the next line to it, and then that one must be known too.
    let joins = content[..end].ends_with('\n') && !new.ends_with('\n') && end < content.len();
    let emptied = new.is_empty() && content[..start].rfind('\n').map_or(0, |at| at + 1) == start;
    let known = known && (!joins || emptied || covered.contains(&(last + 1)));
    prop_assert_eq!(edited.ok, known, "lines {}–{}, covered {:?}: {}", first, last, covered, edited.summary);
    if !known {
        let reason = edited.reason.and_then(|reason| reason.known());
        let expected = if covered.is_empty() { Reason::FileNotRead } else { Reason::RegionNotRead };
        prop_assert_eq!(reason, Some(expected));
    }
    Ok(())
}

/// Where `old` stands in `text`, also where two places overlap: `aa` stands twice in `aaa`.
fn places(text: &str, old: &str) -> usize {
    text.char_indices().filter(|(at, _)| text[*at..].starts_with(old)).count()
}

async fn l64_case(left: String, old: String, right: String, new: String) -> Result<(), TestCaseError> {
    let before = format!("{left}{old}{right}");
    prop_assume!(old != new && places(&before, &old) == 1);
    let world = World::new();
    world.put("a", &before);
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a"})).await;
    hand.done("edit", json!({"file_path": "a", "old_string": old, "new_string": new})).await;
    prop_assert_eq!(world.get("a"), format!("{left}{new}{right}"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn l61_no_sequence_of_calls_changes_a_file_whose_content_was_not_delivered(ops in prop::collection::vec(op(), 1..24)) {
        run(l61_case(ops))?;
    }

    #[test]
    fn l62_an_edit_needs_exactly_the_lines_it_replaces(
        lines in prop::collection::vec("[a-c]{0,4}", 1..9),
        reads in prop::collection::vec((1..9u64, 1..5u64), 0..4),
        span in (0..200usize, 0..12usize),
        new in "[A-C\n]{0,6}",
    ) {
        // A read past the end delivers nothing.
        let reads = reads.into_iter().filter(|(first, _)| *first <= lines.len() as u64).collect();
        run(l62_case(lines, reads, span, new))?;
    }

    #[test]
    fn check30_l64_a_replacement_is_literal(
        left in r"[a$\\^.*{}%()\n\téß]{0,12}",
        old in r"[b$\\1^.*+?{}%s()\[\]\n&]{1,8}",
        right in r"[a$\\^.*{}%()\n\téß]{0,12}",
        new in r"[b$\\0&{}%d()\n🙂]{0,8}",
    ) {
        run(l64_case(left, old, right, new))?;
    }
}

#[tokio::test]
async fn l61_read_before_edit() {
    let world = World::new();
    world.put("a", "x\n");
    let process = world.start();
    let (hand, other) = (process.open(world.session().await).await, process.open(world.session().await).await);
    let edit = || json!({"file_path": "a", "old_string": "x", "new_string": "y"});
    let unread = hand.refused("edit", edit(), PRECONDITION, Some(Reason::FileNotRead), Phase::Validate).await;
    assert!(unread.summary.contains("`a`") && unread.summary.contains("read it first"), "{}", unread.summary);
    let write = || json!({"file_path": "a", "content": ""});
    hand.refused("write", write(), PRECONDITION, Some(Reason::FileNotRead), Phase::Validate).await;
    // What another session read is not known here.
    other.done("read", json!({"file_path": "a"})).await;
    hand.refused("edit", edit(), PRECONDITION, Some(Reason::FileNotRead), Phase::Validate).await;
    hand.done("read", json!({"file_path": "a"})).await;
    world.put("a", "x changed\n");
    hand.refused("edit", edit(), Code::StaleFileBaseline, None, Phase::Validate).await;
    hand.refused("write", write(), Code::StaleFileBaseline, None, Phase::Validate).await;
    assert_eq!(world.get("a"), "x changed\n");
    hand.done("read", json!({"file_path": "a"})).await;
    hand.done("edit", edit()).await;
    // The other's baseline did not move with our edit.
    other.refused("edit", edit(), Code::StaleFileBaseline, None, Phase::Validate).await;
}

#[tokio::test]
async fn l62_own_edits_shift_and_extend_what_is_known() {
    let world = World::new();
    world.put("a", numbered("line ", 20));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a", "view_range": [5, 6]})).await;
    let edit = |old: &str, new: &str| json!({"file_path": "a", "old_string": old, "new_string": new});
    hand.done("edit", edit("line 5\n", "five\nand\nmore\n")).await;
    let ranges = [LineRange { first: 5, last: 8 }];
    assert_eq!(hand.baseline("a").expect("a baseline").coverage.ranges(), ranges);
    hand.done("edit", edit("and\nmore\nline 6", "")).await;
    let outside = edit("line 7", "x");
    hand.refused("edit", outside, PRECONDITION, Some(Reason::RegionNotRead), Phase::Validate).await;
}

#[tokio::test]
async fn l62_an_edit_in_very_many_places_keeps_the_event_small_and_claims_nothing_unread() {
    let world = World::new();
    world.put("whole", "x\n\n".repeat(1_400));
    world.put("part", format!("{}rest\n", "x\n\n".repeat(1_400)));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for (path, still_known) in [("whole", true), ("part", false)] {
        for page in [[1, 1_000], [1_001, 2_800]] {
            hand.done("read", json!({"file_path": path, "view_range": page})).await;
        }
        let all = json!({"file_path": path, "old_string": "x", "new_string": "y", "replace_all": true});
        let edited = hand.done("edit", all).await;
        assert!(serde_json::to_string(&edited.files).expect("json").len() < 1_000);
        let baseline = hand.baseline(path).expect("a baseline");
        assert_eq!((baseline.is_full(), baseline.coverage.ranges().is_empty()), (still_known, !still_known), "{path}");
    }
}

#[tokio::test]
async fn l62_a_line_that_is_pulled_in_must_have_been_read() {
    let world = World::new();
    world.put("a", "one\ntwo\nthree\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a", "line_count": 1})).await;
    let join = json!({"file_path": "a", "old_string": "one\n", "new_string": "one "});
    let refused = hand.refused("edit", join, PRECONDITION, Some(Reason::RegionNotRead), Phase::Validate).await;
    assert!(refused.summary.contains("start_line 1, line_count 2"), "{}", refused.summary);
    hand.done("edit", json!({"file_path": "a", "old_string": "one\n", "new_string": ""})).await;
    assert_eq!(world.get("a"), "two\nthree\n");
}

#[tokio::test]
async fn the_coverage_setting_decides_how_much_must_be_read() {
    let edit = || json!({"file_path": "a", "old_string": "line 9", "new_string": "x"});
    let write = || json!({"file_path": "a", "content": ""});
    let cases =
        [(CoverageRule::Any, true, true), (CoverageRule::Region, false, false), (CoverageRule::Full, false, false)];
    for (coverage, may_edit, may_write) in cases {
        let mut world = World::new();
        world.coverage = coverage;
        world.put("a", numbered("line ", 9));
        let process = world.start();
        let hand = process.open(world.session().await).await;
        assert!(!hand.call("edit", edit()).await.ok, "never without any read");
        hand.done("read", json!({"file_path": "a", "line_count": 2})).await;
        assert_eq!(hand.call("edit", edit()).await.ok, may_edit, "{coverage:?}");
        assert_eq!(hand.call("write", write()).await.ok, may_write, "{coverage:?}");
    }
    let mut world = World::new();
    world.coverage = CoverageRule::Full;
    world.put("a", numbered("line ", 9));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a", "view_range": [3, 9]})).await;
    let gap = hand.refused("edit", edit(), PRECONDITION, Some(Reason::RegionNotRead), Phase::Validate).await;
    assert!(gap.summary.contains("lines 1–2"), "{}", gap.summary);
    hand.done("read", json!({"file_path": "a", "view_range": [1, 2]})).await;
    hand.done("edit", edit()).await;
}

#[tokio::test]
async fn l63_the_hash_decides_and_not_the_time() {
    let world = World::new();
    world.put("a", "x 1\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let modified = || std::fs::metadata(world.path("a")).expect("it").modified().expect("a time");
    let touch = |to| File::options().write(true).open(world.path("a")).expect("it").set_modified(to).expect("touched");
    let edit = |old: &str, new: &str| json!({"file_path": "a", "old_string": old, "new_string": new});
    hand.done("read", json!({"file_path": "a"})).await;
    touch(modified() + std::time::Duration::from_secs(3_600));
    hand.done("edit", edit("x 1", "x 2")).await;

    let before = modified();
    world.put("a", "x 3\n");
    touch(before);
    hand.refused("edit", edit("x", "y"), Code::StaleFileBaseline, None, Phase::Validate).await;
    let write = json!({"file_path": "a", "content": ""});
    hand.refused("write", write, Code::StaleFileBaseline, None, Phase::Validate).await;
    assert_eq!(world.get("a"), "x 3\n");
}

#[tokio::test]
async fn l66_baselines_survive_a_restart() {
    let world = World::new();
    world.put("a", numbered("line ", 30));
    world.put("b", "x\n");
    let session = world.session().await;
    let known = |hand: &crate::world::Hand<'_>| ["a", "b", "c"].map(|path| hand.baseline(path));
    let first = world.start();
    let hand = first.open(session).await;
    hand.done("read", json!({"file_path": "a", "view_range": [3, 9]})).await;
    hand.done("read", json!({"file_path": "a", "tail_lines": 2})).await;
    hand.done("edit", json!({"file_path": "a", "old_string": "line 5\n", "new_string": "five\nmore\n"})).await;
    hand.done("read", json!({"file_path": "b"})).await;
    hand.done("write", json!({"file_path": "c", "content": "new\n"})).await;
    let before = known(&hand);
    assert!(before.iter().all(Option::is_some));
    hand.session.release().await.expect("released");
    drop(first);

    let second = world.start();
    let hand = second.open(session).await;
    assert_eq!(known(&hand), before);
    let edit = |path: &str, old: &str| -> Value { json!({"file_path": path, "old_string": old, "new_string": "z"}) };
    hand.done("edit", edit("a", "line 6")).await;
    hand.refused("edit", edit("a", "line 20"), PRECONDITION, Some(Reason::RegionNotRead), Phase::Validate).await;
    hand.done("edit", edit("c", "new")).await;
}
