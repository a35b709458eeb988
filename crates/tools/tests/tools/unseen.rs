//! What a search must never show: what lies behind links, what is hidden, what rules close.

use std::fs;
use std::os::unix::fs::symlink;

use portcullis_base::{Code, Phase, Reason};
use serde_json::json;

use crate::listing::listed;
use crate::searching::found;
use crate::world::{World, text};

#[tokio::test]
async fn h08_a_search_follows_no_link() {
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("secret"), "needle\n").expect("a file");
    let world = World::new();
    world.put("real/file", "needle\n");
    symlink(outside.path(), world.path("out")).expect("a link");
    symlink(outside.path().join("secret"), world.path("out-file")).expect("a link");
    symlink("real", world.path("inside")).expect("a link");
    symlink("real/file", world.path("inside-file")).expect("a link");
    symlink("..", world.path("real/up")).expect("a link");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    assert_eq!(found(&hand.done("grep", json!({"pattern": "needle"})).await), ["real/file:1:needle"]);
    let seen = hand.done("glob", json!({"pattern": "*", "sort": "path"})).await;
    assert_eq!(listed(&seen), ["inside", "inside-file", "out", "out-file", "real", "real/file", "real/up"]);
    assert_eq!(seen.structured.expect("an output")["entries"][2]["kind"], "other");
    // A link that is named is walked by hand, and stays beneath the mount.
    let seen = hand.done("grep", json!({"pattern": "needle", "path": "inside"})).await;
    assert_eq!(found(&seen), ["real/file:1:needle"]);
    for path in ["out", "out-file", "out/secret"] {
        let (code, reason) = (Code::RuntimePreconditionFailed, Some(Reason::PathEscape));
        hand.refused("grep", json!({"pattern": "needle", "path": path}), code, reason, Phase::Validate).await;
    }
}

#[tokio::test]
async fn h08_hidden_folders_and_files_are_in_no_result() {
    let mut world = World::new();
    world.put("data/keys/key", "needle\n");
    world.put("store.db", "needle\n");
    world.put("open", "needle\n");
    fs::hard_link(world.path("store.db"), world.path("other-name")).expect("a link");
    world.hidden = vec!["data", "store.db"];
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    assert_eq!(found(&seen), ["open:1:needle"]);
    assert_eq!(text(&seen), "open:1:needle\n1 matching line in 1 of 1 file\n");
    let seen = hand.done("glob", json!({"pattern": "*", "sort": "path"})).await;
    assert_eq!(listed(&seen), ["open"]);
    for tool in ["grep", "glob"] {
        for path in ["data", "data/keys"] {
            let (code, reason) = (Code::RuntimePreconditionFailed, Some(Reason::PathEscape));
            hand.refused(tool, json!({"pattern": "x", "path": path}), code, reason, Phase::Validate).await;
        }
    }
}

#[tokio::test]
async fn a_mount_inside_another_is_searched_in_its_place() {
    let mut world = World::new();
    world.put("a", "needle\n");
    let shelf = tempfile::tempdir().expect("a directory");
    fs::write(shelf.path().join("book"), "needle\n").expect("a file");
    world.shelf_dir = Some(shelf);
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle", "path": "/books"})).await;
    assert_eq!(found(&seen), ["/books/book:1:needle"]);
    assert_eq!(found(&hand.done("grep", json!({"pattern": "needle"})).await), ["a:1:needle"]);
}

const RULES: &str = r#"
[[rules]]
action = "read"
path = "secret/**"
effect = "deny"
[[rules]]
action = "grep"
path = "**/*.key"
effect = "deny"
[[rules]]
action = "read"
path = "asked/**"
effect = "ask"
"#;

#[tokio::test]
async fn l37_what_rules_deny_or_ask_about_is_left_out_and_counted_without_names() {
    let mut world = World::new();
    for name in ["open", "secret/a", "secret/deep/b", "x/tls.key", "asked/c"] {
        world.put(name, "needle\n");
    }
    symlink("secret", world.path("alias")).expect("a link");
    world.rules = RULES;
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    assert_eq!(text(&seen), "open:1:needle\n1 matching line in 1 of 1 file; left out: 4 closed by rules\n");
    assert!(!serde_json::to_string(&seen).expect("json").contains("secret"));
    let seen = hand.done("glob", json!({"pattern": "*", "sort": "path", "kind": "file"})).await;
    assert_eq!(listed(&seen), ["open", "x/tls.key"]);
    assert_eq!(seen.structured.expect("an output")["left_out"]["closed"], 3);
    for tool in ["grep", "glob"] {
        for path in ["secret", "secret/deep", "alias"] {
            let input = json!({"pattern": "needle", "path": path});
            hand.refused(tool, input, Code::PolicyDenied, None, Phase::Permission).await;
        }
    }
    // What a rule asks about is asked about when it is named; nobody can be asked here.
    let input = json!({"pattern": "needle", "path": "asked"});
    hand.refused("grep", input, Code::ApprovalUnavailable, None, Phase::Permission).await;
}

#[tokio::test]
async fn l38_what_the_rules_of_a_parent_close_is_closed_to_a_childs_search() {
    let world = World::new();
    for name in ["open", "secret/a"] {
        world.put(name, "needle\n");
    }
    let process = world.start();
    process.sent_under(RULES);
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    assert_eq!(text(&seen), "open:1:needle\n1 matching line in 1 of 1 file; left out: 1 closed by rules\n");
    let seen = hand.done("glob", json!({"pattern": "*", "kind": "file"})).await;
    assert_eq!(listed(&seen), ["open"]);
}

/// Else a pattern could be made longer letter by letter, until it is the name.
#[tokio::test]
async fn l37_no_pattern_of_glob_tells_the_name_of_what_is_closed() {
    let mut world = World::new();
    for name in ["open/a", "secret/plan-b/key"] {
        world.put(name, "");
    }
    world.rules = RULES;
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for pair in [
        ["s*", "t*"],
        ["secret", "public"],
        ["plan-*", "plot-*"],
        ["secret/p*", "public/p*"],
        ["/workspace/secret/**", "/no"],
    ] {
        let mut told = Vec::new();
        for pattern in pair {
            told.push(text(&hand.done("glob", json!({"pattern": pattern})).await));
        }
        assert_eq!(told[0], told[1], "{pair:?}");
        assert!(told[0].contains("closed by rules"), "{pair:?}: {}", told[0]);
    }
}
