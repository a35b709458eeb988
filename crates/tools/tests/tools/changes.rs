//! `write` and `edit`: what they change, what they leave, what they report.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use portcullis_base::{ArtifactKind, Digest, SideEffectState};
use portcullis_event::Observed;
use serde_json::json;

use crate::world::{World, text};

fn kinds(observed: &Observed) -> Vec<(&str, &str)> {
    observed.side_effects.items.iter().map(|item| (item.kind.as_str(), item.target.as_str())).collect()
}

#[tokio::test]
async fn a_new_file_is_created_with_its_directories_and_counts_as_read() {
    let world = World::new();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let written = hand.done("write", json!({"file_path": "src/deep/a.rs", "content": "one\ntwo\n"})).await;
    assert_eq!(world.get("src/deep/a.rs"), "one\ntwo\n");
    assert_eq!(world.tree(), ["src", "src/deep", "src/deep/a.rs"]);
    assert_eq!(fs::metadata(world.path("src/deep/a.rs")).expect("it").permissions().mode() & 0o777, 0o600);
    assert_eq!(
        kinds(&written),
        [("directory_created", "src"), ("directory_created", "src/deep"), ("file_created", "src/deep/a.rs")]
    );
    assert_eq!(text(&written), "created src/deep/a.rs: 2 lines, 8 bytes");
    assert_eq!((written.title.as_str(), written.summary.as_str()), ("Write src/deep/a.rs", "created, 2 lines"));
    let item = written.side_effects.items.last().expect("an item");
    assert!(item.before.is_none() && item.after.is_some() && item.reversible);
    hand.done("edit", json!({"file_path": "src/deep/a.rs", "old_string": "two", "new_string": "2"})).await;
    hand.done("write", json!({"file_path": "src/deep/a.rs", "content": ""})).await;
    assert_eq!(world.get("src/deep/a.rs"), "");
}

#[tokio::test]
async fn a_write_is_exact_and_line_ends_are_the_writers() {
    let world = World::new();
    world.put("a", "one\r\ntwo\r\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a"})).await;
    let written = hand.done("write", json!({"file_path": "a", "content": "one\ntwo\r\nthree"})).await;
    assert_eq!(world.get("a"), "one\ntwo\r\nthree");
    assert_eq!(kinds(&written), [("file_modified", "a")]);
    assert_eq!(hand.baseline("a").expect("a baseline").sha256, Digest::of(b"one\ntwo\r\nthree"));
}

#[tokio::test]
async fn a_replaced_file_keeps_byte_order_mark_and_line_ends_and_all_reports_are_of_that() {
    let world = World::new();
    world.put("a", "\u{feff}one\r\ntwo\r\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a"})).await;
    let written = hand.done("write", json!({"file_path": "a", "content": "one\n2\nthree\n"})).await;
    let expected = "\u{feff}one\r\n2\r\nthree\r\n";
    assert_eq!(world.get("a"), expected);
    let baseline = hand.baseline("a").expect("a baseline");
    assert_eq!((baseline.sha256, baseline.total_lines), (Digest::of(expected.as_bytes()), 3));
    assert_eq!(written.artifacts[1].sha256, Digest::of(expected.as_bytes()));
    assert_eq!(written.summary, "replaced, +2 −1 lines", "the first line is the same");
    assert_eq!(written.structured.expect("structured")["size"], expected.len());
    hand.done("edit", json!({"file_path": "a", "old_string": "2", "new_string": "two"})).await;
    // A mark of the writer's own is not doubled, and line ends they wrote are theirs.
    hand.done("write", json!({"file_path": "a", "content": "\u{feff}x\r\ny\n"})).await;
    assert_eq!(world.get("a"), "\u{feff}x\r\ny\n");
}

#[tokio::test]
async fn an_edit_says_what_it_changed_and_keeps_before_after_and_diff() {
    let world = World::new();
    world.put("src/a.rs", "one\ntwo\nthree\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "src/a.rs"})).await;
    let edited = hand.done("edit", json!({"file_path": "src/a.rs", "old_string": "two", "new_string": "2\n2b"})).await;
    let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n";
    assert_eq!(text(&edited), format!("edited src/a.rs: 1 replacement at line 2\n{diff}"));
    assert_eq!(edited.summary, "1 replacement at line 2, +2 −1 lines");
    assert_eq!(edited.side_effects.state, SideEffectState::Occurred);
    assert_eq!(kinds(&edited), [("file_modified", "src/a.rs")]);
    let kept: Vec<(ArtifactKind, Digest)> = edited.artifacts.iter().map(|a| (a.kind, a.sha256)).collect();
    assert_eq!(
        kept,
        [
            (ArtifactKind::File, Digest::of(b"one\ntwo\nthree\n")),
            (ArtifactKind::File, Digest::of(b"one\n2\n2b\nthree\n")),
            (ArtifactKind::Diff, Digest::of(diff.as_bytes())),
        ]
    );
    let item = &edited.side_effects.items[0];
    assert_eq!(item.before.as_deref(), Some(edited.artifacts[0].id.to_string().as_str()));
    assert_eq!(item.after.as_deref(), Some(edited.artifacts[1].id.to_string().as_str()));
    let structured = edited.structured.expect("structured");
    assert_eq!(structured["diff_artifact"], edited.artifacts[2].id.to_string());
    assert_eq!(structured.get("diff"), None, "the diff is kept once");
}

#[tokio::test]
async fn replace_all_replaces_every_place() {
    let world = World::new();
    world.put("a", "x y x\nz\nx");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a"})).await;
    let input = json!({"file_path": "a", "old_string": "x", "new_string": "long", "replace_all": true});
    let edited = hand.done("edit", input).await;
    assert_eq!(world.get("a"), "long y long\nz\nlong");
    assert!(text(&edited).starts_with("edited a: 3 replacements from line 1\n"), "{}", text(&edited));
}

#[tokio::test]
async fn line_ends_byte_order_mark_and_mode_survive_an_edit() {
    let world = World::new();
    world.put("a", "\u{feff}one\r\ntwo\r\nthree\r\n");
    fs::set_permissions(world.path("a"), fs::Permissions::from_mode(0o754)).expect("a mode");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let read = hand.done("read", json!({"file_path": "a"})).await;
    let page = &read.structured.as_ref().expect("structured")["page"];
    assert_eq!((page["eol"].as_str(), page["bom"].as_bool()), (Some("crlf"), Some(true)));
    assert!(text(&read).starts_with("one\r\n"), "the mark is not part of the text");
    hand.done("edit", json!({"file_path": "a", "old_string": "two\nthree", "new_string": "2\n\n3"})).await;
    assert_eq!(world.get("a"), "\u{feff}one\r\n2\r\n\r\n3\r\n");
    assert_eq!(fs::metadata(world.path("a")).expect("it").permissions().mode() & 0o7777, 0o754);
}

#[tokio::test]
async fn symbolic_and_hard_links_survive_an_edit() {
    let world = World::new();
    world.put("real/a", "x\n");
    symlink("real/a", world.path("soft")).expect("a link");
    fs::hard_link(world.path("real/a"), world.path("hard")).expect("a link");
    let inode = fs::metadata(world.path("hard")).expect("it").ino();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "soft"})).await;
    let edited = hand.done("edit", json!({"file_path": "soft", "old_string": "x", "new_string": "y"})).await;
    assert_eq!(kinds(&edited), [("file_modified", "real/a")], "the place is named, not the way to it");
    assert!(fs::symlink_metadata(world.path("soft")).expect("it").is_symlink());
    assert_eq!(world.get("hard"), "y\n");
    assert_eq!(fs::metadata(world.path("hard")).expect("it").ino(), inode);
    // Read by one name, known by the other.
    hand.done("edit", json!({"file_path": "real/a", "old_string": "y", "new_string": "z"})).await;
}

#[tokio::test]
async fn nothing_else_is_written_into_the_tree() {
    let world = World::new();
    world.put("dir/a", "x\n");
    world.put("b", "x\n");
    let before = world.tree();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for path in ["dir/a", "b"] {
        hand.done("read", json!({"file_path": path})).await;
        hand.done("edit", json!({"file_path": path, "old_string": "x", "new_string": "y"})).await;
        hand.done("write", json!({"file_path": path, "content": "z\n"})).await;
        assert!(!hand.call("edit", json!({"file_path": path, "old_string": "q", "new_string": "y"})).await.ok);
        assert!(!hand.call("write", json!({"file_path": "b/new/x", "content": ""})).await.ok);
    }
    assert_eq!(world.tree(), before);
}
