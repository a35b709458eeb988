//! `read`: pages, ranges, what is recorded of them.

use portcullis_base::{Code, FileFact, LineRange, Phase, Reason};
use portcullis_event::ContentFormat;
use portcullis_pipeline::Append;
use serde_json::{Value, json};

use crate::world::{World, numbered, text};

fn delivered(files: &[FileFact]) -> Vec<LineRange> {
    match files {
        [FileFact::Delivered { lines, .. }] => lines.clone(),
        other => panic!("one delivery expected: {other:?}"),
    }
}

fn lines(first: u64, last: u64) -> Vec<LineRange> {
    vec![LineRange { first, last }]
}

#[tokio::test]
async fn a_small_file_comes_whole_and_exactly() {
    let world = World::new();
    world.put("src/a.rs", "fn main() {}\n\n  // grüße\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let read = hand.done("read", json!({"file_path": "src/a.rs"})).await;
    assert_eq!(text(&read), "fn main() {}\n\n  // grüße\n");
    assert_eq!((read.title.as_str(), read.summary.as_str()), ("Read src/a.rs", "3 lines"));
    assert_eq!(delivered(&read.files), lines(1, 3));
    let page = &read.structured.expect("structured")["page"];
    assert_eq!(page["total_lines"], 3);
    assert_eq!(page.get("text"), None, "the text is kept once");
    assert!(hand.baseline("src/a.rs").expect("a baseline").is_full());
}

#[tokio::test]
async fn ranges_tail_and_counts_deliver_what_they_say() {
    let world = World::new();
    world.put("a", numbered("l", 100));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let cases: [(Value, (u64, u64), &str); 11] = [
        (json!({"view_range": [3, 5]}), (3, 5), "lines 3–5 of 100"),
        (json!({"view_range": [99, 0]}), (99, 100), "lines 99–100 of 100"),
        (json!({"view_range": [-4, 2.9]}), (1, 2), "lines 1–2 of 100"),
        (json!({"view_range": [90, 1000]}), (90, 100), "lines 90–100 of 100"),
        (json!({"start_line": 10, "line_count": 2}), (10, 11), "lines 10–11 of 100"),
        (json!({"start_line": 99, "line_count": 0}), (99, 100), "lines 99–100 of 100"),
        (json!({"line_count": 1}), (1, 1), "line 1 of 100"),
        (json!({"tail_lines": 3}), (98, 100), "lines 98–100 of 100"),
        (json!({"tail_lines": 0, "start_line": null, "view_range": null}), (1, 100), "100 lines"),
        (json!({"max_chars": 7}), (1, 2), "lines 1–2 of 100; read on with start_line 3, line_count 98"),
        (
            json!({"view_range": [1, 5], "max_chars": 7}),
            (1, 2),
            "lines 1–2 of 100; read on with start_line 3, line_count 3",
        ),
    ];
    for (mut input, (first, last), summary) in cases {
        input["file_path"] = json!("a");
        let read = hand.done("read", input.clone()).await;
        assert_eq!(delivered(&read.files), lines(first, last), "{input}");
        assert_eq!(read.summary, summary, "{input}");
        let expected: String = (first..=last).map(|n| format!("l{n}\n")).collect();
        assert_eq!(text(&read), expected, "{input}");
        assert!(read.warnings.is_empty(), "{input}: {:?}", read.warnings);
    }
}

#[tokio::test]
async fn a_count_above_its_cap_is_lowered_and_says_so() {
    let world = World::new();
    world.put("a", numbered("", 3_000));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let read = hand.done("read", json!({"file_path": "a", "line_count": 2500, "max_chars": 1e9})).await;
    assert_eq!(read.warnings, ["line_count 2500 was lowered to 2000", "max_chars 1000000000 was lowered to 51200"]);
    assert_eq!(delivered(&read.files), lines(1, 2_000));
    let read = hand.done("read", json!({"file_path": "a", "tail_lines": 5000})).await;
    assert_eq!(read.warnings, ["tail_lines 5000 was lowered to 2000"]);
    assert_eq!(delivered(&read.files), lines(1_001, 3_000));
}

#[tokio::test]
async fn a_long_file_is_paged_and_every_page_says_how_to_read_on() {
    let world = World::new();
    let content = numbered("line number ", 5_000);
    world.put("a", &content);
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let mut seen = String::new();
    let mut input = json!({"file_path": "a"});
    loop {
        let read = hand.done("read", input).await;
        assert!(text(&read).len() <= 51_200 && text(&read).lines().count() <= 2_000);
        assert!(!read.truncated, "a page fits: nothing is left for bounding to cut");
        seen.push_str(&text(&read));
        let next = &read.structured.expect("structured")["page"]["next"];
        if next.is_null() {
            break;
        }
        assert!(
            read.summary.contains(&format!("start_line {}, line_count {}", next["start_line"], next["line_count"]))
        );
        input = json!({"file_path": "a", "start_line": next["start_line"], "line_count": next["line_count"]});
    }
    assert!(seen == content, "the pages are the file");
    assert!(hand.baseline("a").expect("a baseline").is_full());
}

#[tokio::test]
async fn l62_a_cut_page_covers_only_what_it_delivered() {
    let world = World::new();
    world.put("a", numbered("line ", 2_500));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a"})).await;
    let edit = |old: &str| json!({"file_path": "a", "old_string": old, "new_string": "x"});
    let far = hand
        .refused(
            "edit",
            edit("line 2400"),
            Code::RuntimePreconditionFailed,
            Some(Reason::RegionNotRead),
            Phase::Validate,
        )
        .await;
    assert!(far.summary.contains("start_line 2400, line_count 1"), "{}", far.summary);
    hand.done("edit", edit("line 1999")).await;
    hand.refused(
        "write",
        json!({"file_path": "a", "content": ""}),
        Code::RuntimePreconditionFailed,
        Some(Reason::RegionNotRead),
        Phase::Validate,
    )
    .await;
}

/// Needs the bounding phase: a late read of a full turn gets a small share, and only that counts as read.
#[tokio::test]
async fn l62_lines_that_bounding_cut_away_are_not_covered() {
    let world = World::new();
    world.put("a", numbered(&"x".repeat(90), 500));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let mut facts = Append::new();
    let turn = hand.session.begin_turn(&mut facts);
    hand.session.commit(facts).await.expect("a commit");
    let mut last = None;
    for _ in 0..6 {
        let read = hand.propose_in(&turn, Append::new(), "read", &json!({"file_path": "a"}));
        last = Some(hand.settle(read).await);
        // Each time a new content, so that the baseline is that of the last read alone.
        world.put("a", format!("{}changed\n", world.get("a")));
    }
    let last = last.expect("reads");
    assert!(last.ok && last.truncated && text(&last).len() <= 4_096, "{} bytes", text(&last).len());
    let shown: u64 = delivered(&last.files).iter().map(|range| range.len()).sum();
    assert!(shown > 10 && shown <= text(&last).lines().count() as u64, "{shown} lines");
    assert_eq!(hand.baseline("a").expect("a baseline").coverage.ranges(), delivered(&last.files));
}

#[tokio::test]
async fn a_line_longer_than_a_page_is_shown_in_part_and_not_counted_as_read() {
    let world = World::new();
    let long = "ä".repeat(40_000);
    world.put("a", format!("short\n{long}\nend\n"));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let read = hand.done("read", json!({"file_path": "a"})).await;
    assert_eq!(text(&read), "short\n");
    assert!(read.summary.ends_with("read on with start_line 2, line_count 2"), "{}", read.summary);
    let read = hand.done("read", json!({"file_path": "a", "start_line": 2, "line_count": 2})).await;
    assert_eq!(text(&read), "ä".repeat(25_600));
    assert!(delivered(&read.files).is_empty());
    assert!(read.summary.contains("start_line 3, line_count 1"), "{}", read.summary);
    let read = hand.done("read", json!({"file_path": "a", "start_line": 3, "line_count": 1})).await;
    assert_eq!(text(&read), "end\n");
    let baseline = hand.baseline("a").expect("a baseline");
    assert_eq!(baseline.coverage.ranges(), [LineRange { first: 1, last: 1 }, LineRange { first: 3, last: 3 }]);
}

#[tokio::test]
async fn a_tail_too_large_for_a_page_keeps_the_end() {
    let world = World::new();
    world.put("a", numbered(&"x".repeat(100), 1_000));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let read = hand.done("read", json!({"file_path": "a", "tail_lines": 1000})).await;
    assert!(text(&read).ends_with("x1000\n") && text(&read).len() <= 51_200);
    let first = delivered(&read.files)[0].first;
    assert!(read.summary.contains(&format!("read on with start_line 1, line_count {}", first - 1)), "{}", read.summary);
}

#[tokio::test]
async fn an_empty_page_is_no_error_and_an_empty_file_is_read_in_full() {
    let world = World::new();
    world.put("empty", "");
    world.put("short", "one\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let read = hand.done("read", json!({"file_path": "empty"})).await;
    assert_eq!(read.summary, "the file is empty");
    assert!(hand.baseline("empty").expect("a baseline").is_full());
    hand.done("write", json!({"file_path": "empty", "content": "now not\n"})).await;

    let read = hand.done("read", json!({"file_path": "short", "view_range": [5, 9]})).await;
    assert_eq!((text(&read), read.summary.as_str()), (String::new(), "no lines; the file has 1 line"));
    assert_eq!(hand.baseline("short"), None, "nothing was delivered");
}

#[tokio::test]
async fn only_one_selector_is_taken_and_only_what_the_schema_says() {
    let world = World::new();
    world.put("a", "x\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let wrong = [
        json!({"view_range": [1, 2], "tail_lines": 1}),
        json!({"view_range": [1, 2], "line_count": 1}),
        json!({"line_count": 1, "tail_lines": 1}),
        json!({"start_line": 1}),
        json!({"view_range": [5, 2]}),
        json!({"view_range": [1]}),
        json!({"view_range": "1-2"}),
        json!({"line_count": "3"}),
        json!({"offset": 3}),
        json!({"file_path": "  "}),
        json!({"file_path": "a\u{0}b"}),
    ];
    for mut input in wrong {
        if input.get("file_path").is_none() {
            input["file_path"] = json!("a");
        }
        hand.refused("read", input, Code::SchemaInvalid, None, Phase::Validate).await;
    }
}

#[tokio::test]
async fn images_and_documents_come_as_media_and_other_binaries_do_not_come() {
    let world = World::new();
    let png = |width: u32| {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 8, 6, 0, 0, 0]);
        bytes
    };
    world.put("a.png", png(10));
    world.put("wide.png", png(3_000));
    world.put("a.pdf", b"%PDF-1.7\n%\xe2\xe3");
    world.put("huge.pdf", [b"%PDF-1.7\n".as_slice(), &vec![0; 21 << 20]].concat());
    world.put("a.bin", b"\x7fELF\0\0\0");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for (name, format, mime) in
        [("a.png", ContentFormat::Image, "image/png"), ("a.pdf", ContentFormat::ArtifactRef, "application/pdf")]
    {
        let read = hand.done("read", json!({"file_path": name})).await;
        assert_eq!(read.content.len(), 1);
        assert_eq!((read.content[0].format, read.content[0].source.as_str()), (format, name));
        assert_eq!(read.content[0].artifact.as_ref().expect("kept").mime, mime);
        assert_eq!(hand.baseline(name), None, "a medium has no lines to cover");
    }
    for name in ["wide.png", "huge.pdf"] {
        let read = hand.refused("read", json!({"file_path": name}), Code::MediaRejected, None, Phase::Bound).await;
        assert!(read.summary.contains(name), "{}", read.summary);
    }
    let (code, reason) = (Code::RuntimePreconditionFailed, Some(Reason::BinaryFile));
    let read = hand.refused("read", json!({"file_path": "a.bin"}), code, reason, Phase::Execute).await;
    assert!(read.summary.contains("7 bytes"), "{}", read.summary);
}

#[tokio::test]
async fn a_host_path_beneath_the_workspace_is_the_same_file_and_is_shown_relative() {
    let world = World::new();
    world.put("src/a.rs", "x\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let host = world.path("src/a.rs").display().to_string();
    let read = hand.done("read", json!({"file_path": host})).await;
    assert_eq!(read.title, "Read src/a.rs");
    hand.done("edit", json!({"file_path": "src/a.rs", "old_string": "x", "new_string": "y"})).await;
}

#[tokio::test]
async fn a_large_file_is_read_off_the_main_thread_with_the_same_result() {
    let world = World::new();
    let content = numbered("a line of some length ", 40_000);
    world.put("a", &content);
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let read = hand.done("read", json!({"file_path": "a", "view_range": [39_999, 0]})).await;
    assert_eq!(text(&read), "a line of some length 39999\na line of some length 40000\n");
    hand.done("edit", json!({"file_path": "a", "old_string": "h 40000\n", "new_string": "h x"})).await;
    assert!(world.get("a").ends_with("39999\na line of some length x"));
}
