//! `glob`: which entries are listed, and in which order.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime};

use portcullis_base::{Code, Phase, Reason};
use portcullis_event::Observed;
use serde_json::json;

use crate::world::{World, text};

pub fn listed(observed: &Observed) -> Vec<String> {
    let output = observed.structured.as_ref().expect("an output");
    let entries = output["entries"].as_array().expect("entries").iter();
    entries.map(|entry| entry["path"].as_str().expect("a path").to_owned()).collect()
}

#[tokio::test]
async fn patterns_match_names_at_any_depth_or_paths() {
    let world = World::new();
    for name in ["a.rs", "b.txt", "src/c.rs", "src/deep/d.rs", "src/deep/ä.md", ".hidden/e.rs"] {
        world.put(name, "");
    }
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let cases: [(serde_json::Value, &[&str]); 10] = [
        (json!({"pattern": "*.rs"}), &["a.rs", ".hidden/e.rs", "src/c.rs", "src/deep/d.rs"]),
        (json!({"pattern": "src/*.rs"}), &["src/c.rs"]),
        (json!({"pattern": "src/**/*.rs"}), &["src/c.rs", "src/deep/d.rs"]),
        (json!({"pattern": "*.rs", "path": "src"}), &["src/c.rs", "src/deep/d.rs"]),
        (json!({"pattern": "deep/*", "path": "src"}), &["src/deep/d.rs", "src/deep/ä.md"]),
        (json!({"pattern": "/workspace/src/*"}), &["src/c.rs", "src/deep"]),
        (json!({"pattern": "?.md"}), &["src/deep/ä.md"]),
        (json!({"pattern": "*", "max_depth": 1}), &[".hidden", "a.rs", "b.txt", "src"]),
        (json!({"pattern": "**/*", "kind": "directory"}), &[".hidden", "src", "src/deep"]),
        (json!({"pattern": "d*", "kind": "file"}), &["src/deep/d.rs"]),
    ];
    for (mut input, expected) in cases {
        input["sort"] = json!("path");
        assert_eq!(listed(&hand.done("glob", input.clone()).await), expected, "{input}");
    }
    let seen = hand.done("glob", json!({"pattern": "src/*", "sort": "path"})).await;
    assert_eq!(text(&seen), "src/c.rs\nsrc/deep/\n2 entries\n");
}

#[tokio::test]
async fn the_newest_come_first_and_ties_by_path() {
    let world = World::new();
    let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
    for (name, secs) in [("old", 1_000), ("b", 2_000), ("a", 2_000), ("new", 3_000), ("d/newest", 4_000)] {
        world.put(name, "");
        File::options().write(true).open(world.path(name)).expect("a file").set_modified(at(secs)).expect("a time");
    }
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let all = ["d/newest", "new", "a", "b", "old"];
    assert_eq!(listed(&hand.done("glob", json!({"pattern": "*", "kind": "file"})).await), all);
    let seen = hand.done("glob", json!({"pattern": "*", "kind": "file", "limit": 2, "sort": null})).await;
    assert_eq!(listed(&seen), all[..2]);
    assert!(text(&seen).contains("the first 2 of 5 entries"), "{}", text(&seen));
}

#[tokio::test]
async fn a_limited_listing_by_path_is_the_highest_levels_first() {
    let world = World::new();
    for file in 0..300 {
        world.put(&format!("d{:02}/e/f{file:03}", file % 30), "");
        world.put(&format!("g{file:03}"), "");
    }
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for _ in 0..10 {
        let seen = hand.done("glob", json!({"pattern": "*", "sort": "path", "limit": 50})).await;
        let expected: Vec<String> =
            (0..30).map(|n| format!("d{n:02}")).chain((0..20).map(|n| format!("g{n:03}"))).collect();
        assert_eq!(listed(&seen), expected);
        assert_eq!(seen.structured.expect("an output")["truncated"], true);
    }
    let seen = hand.done("glob", json!({"pattern": "*", "sort": "path", "limit": 5000})).await;
    assert_eq!(listed(&seen).len(), 660);
    assert_eq!(seen.warnings.len(), 1);
}

#[tokio::test]
async fn only_a_directory_can_be_listed() {
    let world = World::new();
    world.put("file", "");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for (tool, path, reason) in [
        ("glob", "file", Reason::WrongKind),
        ("glob", "gone", Reason::NotFound),
        ("grep", "gone", Reason::NotFound),
        ("glob", "../x", Reason::PathEscape),
        ("grep", "/etc", Reason::PathEscape),
    ] {
        let input = json!({"pattern": "x", "path": path});
        hand.refused(tool, input, Code::RuntimePreconditionFailed, Some(reason), Phase::Validate).await;
    }
}

#[tokio::test]
async fn names_that_no_text_can_hold_are_counted_and_line_breaks_are_escaped() {
    let world = World::new();
    world.put("ok", "needle\n");
    world.put("two\nlines", "needle\n");
    let raw = std::ffi::OsStr::from_bytes(b"bad\xff");
    fs::write(world.dir.path().join(raw), "needle\n").expect("a file");
    fs::create_dir(world.dir.path().join(std::ffi::OsStr::from_bytes(b"dir\xfe"))).expect("a directory");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    assert_eq!(
        text(&seen),
        "ok:1:needle\ntwo\\nlines:1:needle\n2 matching lines in 2 of 2 files; left out: 2 with names that are not UTF-8\n"
    );
    let seen = hand.done("glob", json!({"pattern": "*", "sort": "path"})).await;
    assert_eq!(listed(&seen), ["ok", "two\nlines"]);
    assert!(text(&seen).starts_with("ok\ntwo\\nlines\n"));
}

#[tokio::test]
async fn what_gitignore_names_is_left_out_unless_it_is_named() {
    let world = World::new();
    world.put(".gitignore", "target/\n*.log\n!keep.log\n/only-top\n# note\n");
    world.put("src/.gitignore", "gen-*\n!*.log\n");
    for name in [
        "a",
        "x.log",
        "keep.log",
        "target/out",
        "target/deep/out",
        "only-top",
        "src/only-top",
        "src/gen-1",
        "src/y.log",
        "sub/z.log",
        ".git/config",
    ] {
        world.put(name, "needle\n");
    }
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let paths = |seen: &Observed| crate::searching::found(seen).iter().map(|f| f.replace(":1:needle", "")).collect();
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    let found: Vec<String> = paths(&seen);
    assert_eq!(found, ["a", "keep.log", "src/only-top", "src/y.log"]);
    assert!(text(&seen).contains("left out: 6 ignored by .gitignore"), "{}", text(&seen));
    let seen = hand.done("glob", json!({"pattern": "*", "sort": "path", "kind": "file"})).await;
    assert_eq!(listed(&seen), [".gitignore", "a", "keep.log", "src/.gitignore", "src/only-top", "src/y.log"]);
    // A place that is named is looked through; the rules above it still hold for what lies in it.
    let found: Vec<String> = paths(&hand.done("grep", json!({"pattern": "needle", "path": "target"})).await);
    assert_eq!(found, ["target/deep/out", "target/out"]);
    let found: Vec<String> = paths(&hand.done("grep", json!({"pattern": "needle", "path": "x.log"})).await);
    assert_eq!(found, ["x.log"]);
    let found: Vec<String> = paths(&hand.done("grep", json!({"pattern": "needle", "path": ".git"})).await);
    assert_eq!(found, [".git/config"]);
    let seen = hand.done("grep", json!({"pattern": "needle", "path": "sub"})).await;
    assert_eq!(seen.structured.expect("an output")["left_out"], json!({"ignored": 1}));
}
