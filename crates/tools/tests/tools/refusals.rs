//! The rows of tool-contract §12 that the file tools can end in: phase, side effects and recovery are
//! checked by the fixture for each.

use std::os::unix::fs::symlink;

use portcullis_base::{Code, Phase, Reason, Recorded};
use serde_json::json;

use crate::world::World;

const PRECONDITION: Code = Code::RuntimePreconditionFailed;

#[tokio::test]
async fn what_is_not_there_or_not_a_file_is_refused_before_anything_starts() {
    let world = World::new();
    world.put("dir/a", "x\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let edit = |path: &str| json!({"file_path": path, "old_string": "x", "new_string": "y"});
    let write = |path: &str| json!({"file_path": path, "content": "y"});
    let missing = Some(Reason::NotFound);
    let read = hand.refused("read", json!({"file_path": "dir/no"}), PRECONDITION, missing, Phase::Validate).await;
    assert!(read.summary.contains("`dir/no`"), "{}", read.summary);
    hand.refused("edit", edit("dir/no"), PRECONDITION, missing, Phase::Validate).await;
    let wrong = Some(Reason::WrongKind);
    hand.refused("read", json!({"file_path": "dir"}), PRECONDITION, wrong, Phase::Validate).await;
    hand.refused("read", json!({"file_path": "."}), PRECONDITION, wrong, Phase::Validate).await;
    hand.refused("edit", edit("dir"), PRECONDITION, wrong, Phase::Validate).await;
    hand.refused("write", write("dir"), PRECONDITION, wrong, Phase::Validate).await;
    hand.refused("write", write("dir/a/b"), PRECONDITION, wrong, Phase::Validate).await;
    assert_eq!(world.tree(), ["dir", "dir/a"]);
}

#[tokio::test]
async fn a_path_that_leaves_the_workspace_is_refused() {
    let world = World::new();
    symlink("../..", world.path("up")).expect("a link");
    symlink("/etc", world.path("etc")).expect("a link");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for path in ["../x", "up/x", "etc/passwd", "/etc/passwd", "/workspace/../../etc/passwd"] {
        for (tool, input) in [
            ("read", json!({"file_path": path})),
            ("write", json!({"file_path": path, "content": ""})),
            ("edit", json!({"file_path": path, "old_string": "x", "new_string": "y"})),
        ] {
            hand.refused(tool, input, PRECONDITION, Some(Reason::PathEscape), Phase::Validate).await;
        }
    }
}

#[tokio::test]
async fn a_deny_on_a_name_holds_when_that_name_is_a_link() {
    let mut world = World::new();
    world.rules = "[[rules]]\naction = \"*\"\npath = \"**/.env\"\neffect = \"deny\"\n";
    world.put("shared/env", "x\n");
    symlink("shared/env", world.path(".env")).expect("a link");
    symlink(".env", world.path("other")).expect("a link");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "shared/env"})).await;
    for path in [".env", "other", "shared/../.env"] {
        for (tool, input) in [
            ("read", json!({"file_path": path})),
            ("write", json!({"file_path": path, "content": ""})),
            ("edit", json!({"file_path": path, "old_string": "x", "new_string": "y"})),
        ] {
            let observed = hand.call(tool, input).await;
            assert_eq!(observed.code, Recorded::Known(Code::PolicyDenied), "{tool} {path}: {}", observed.summary);
        }
    }
    assert_eq!(world.get("shared/env"), "x\n");
}

#[tokio::test]
async fn a_line_longer_than_a_page_is_named_as_what_cannot_be_edited() {
    let world = World::new();
    world.put("a", format!("one\n{}\nthree\n", "x".repeat(60_000)));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for input in [json!({"file_path": "a"}), json!({"file_path": "a", "start_line": 2, "line_count": 1})] {
        hand.done("read", input).await;
    }
    let edit = json!({"file_path": "a", "old_string": "x\n", "new_string": "y\n"});
    let reason = Some(Reason::RegionNotRead);
    for (tool, input) in [("edit", edit), ("write", json!({"file_path": "a", "content": ""}))] {
        let refused = hand.refused(tool, input, PRECONDITION, reason, Phase::Validate).await;
        assert!(refused.summary.contains("line 2 of `a` is longer than one page (51200 bytes)"), "{}", refused.summary);
        assert!(!refused.summary.contains("start_line"), "{}", refused.summary);
    }
    hand.done("edit", json!({"file_path": "a", "old_string": "one", "new_string": "1"})).await;
}

#[tokio::test]
async fn a_read_only_mount_and_the_configuration_are_read_and_not_changed() {
    let mut world = World::new();
    let books = tempfile::tempdir().expect("a directory");
    std::fs::write(books.path().join("a"), "x\n").expect("a file");
    world.shelf_dir = Some(books);
    world.put(".portcullis/policy.toml", "x\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for path in ["/books/a", ".portcullis/policy.toml"] {
        hand.done("read", json!({"file_path": path})).await;
        let edit = json!({"file_path": path, "old_string": "x", "new_string": "y"});
        let reason = Some(Reason::ReadOnlyMount);
        hand.refused("edit", edit, PRECONDITION, reason, Phase::Validate).await;
        let write = json!({"file_path": path, "content": ""});
        hand.refused("write", write, PRECONDITION, reason, Phase::Validate).await;
        let new = json!({"file_path": format!("{path}.new"), "content": ""});
        hand.refused("write", new, PRECONDITION, reason, Phase::Validate).await;
    }
}

#[tokio::test]
async fn an_edit_that_names_no_place_or_several_is_refused_with_what_it_needs() {
    let world = World::new();
    world.put("a", "one\ntwo\none\n".repeat(7));
    world.put("bin", b"\0\x01");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a"})).await;
    let edit = |old: &str, new: &str| json!({"file_path": "a", "old_string": old, "new_string": new});
    let absent = Some(Reason::TargetNotFound);
    hand.refused("edit", edit("three", "x"), PRECONDITION, absent, Phase::Validate).await;
    hand.refused("edit", edit("one", "one"), PRECONDITION, Some(Reason::NoChange), Phase::Validate).await;
    hand.refused("edit", edit("", "x"), Code::SchemaInvalid, None, Phase::Validate).await;
    let several = hand.refused("edit", edit("one", "x"), Code::AmbiguousTarget, None, Phase::Validate).await;
    assert!(several.summary.contains("14 times (lines 1, 3, 4, 6, 7, 9, 10, 12, 13, 15)"), "{}", several.summary);
    let bin = json!({"file_path": "bin", "old_string": "x", "new_string": "y"});
    hand.refused("edit", bin, PRECONDITION, Some(Reason::BinaryFile), Phase::Validate).await;
    let bin = json!({"file_path": "bin", "content": "text"});
    hand.refused("write", bin, PRECONDITION, Some(Reason::BinaryFile), Phase::Validate).await;
    assert_eq!(world.get("a"), "one\ntwo\none\n".repeat(7));
}

#[tokio::test]
async fn in_a_persons_tree_a_change_asks_and_a_read_does_not() {
    let mut world = World::new();
    world.owner = portcullis_sandbox::TreeOwner::PersonsTree;
    world.put("a", "x\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a"})).await;
    let edit = json!({"file_path": "a", "old_string": "x", "new_string": "y"});
    hand.refused("edit", edit, Code::ApprovalUnavailable, None, Phase::Permission).await;
    let write = json!({"file_path": "b", "content": ""});
    hand.refused("write", write, Code::ApprovalUnavailable, None, Phase::Permission).await;
    assert_eq!(world.tree(), ["a"]);
}

#[tokio::test]
async fn a_denied_path_tells_neither_its_content_nor_whether_it_exists() {
    let mut world = World::new();
    world.rules = "[[rules]]\naction = \"*\"\npath = \"secret/**\"\neffect = \"deny\"\n";
    world.put("secret/there", "x\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for (tool, rest) in [
        ("read", json!({})),
        ("write", json!({"content": ""})),
        ("edit", json!({"old_string": "x", "new_string": "y"})),
    ] {
        let mut seen = Vec::new();
        for path in ["secret/there", "secret/missing"] {
            let mut input = rest.clone();
            input["file_path"] = json!(path);
            let refused = hand.call(tool, input).await;
            seen.push((refused.code, refused.phase, refused.summary.replace(path, "…")));
        }
        assert_eq!(seen[0].0, Recorded::Known(Code::PolicyDenied), "{tool}");
        assert_eq!(seen[0], seen[1], "{tool}");
    }
}
