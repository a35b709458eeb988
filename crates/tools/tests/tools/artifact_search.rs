//! `artifact_grep`: the matching lines of kept evidence.

use portcullis_base::{Code, Phase, Reason, Recorded};
use serde_json::json;

use crate::world::{Hand, World, numbered, text};

/// Leaves an artifact whose text is `content`: what a write keeps of a file.
async fn kept(hand: &Hand<'_>, world: &World, content: &str) -> String {
    let _ = std::fs::remove_file(world.path("kept"));
    let seen = hand.done("write", json!({"file_path": "kept", "content": content})).await;
    seen.side_effects.items[0].after.clone().expect("the content after")
}

#[tokio::test]
async fn matches_come_with_the_lines_round_them() {
    let world = World::new();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let id = kept(&hand, &world, &numbered("line ", 30)).await;
    let seen = hand.done("artifact_grep", json!({"id": id, "pattern": "line (5|6|20)$"})).await;
    let expected = "3-line 3\n4-line 4\n5:line 5\n6:line 6\n7-line 7\n8-line 8\n--\n18-line 18\n19-line 19\n20:line 20\n\
                    21-line 21\n22-line 22\n3 matching lines\n";
    assert_eq!(text(&seen), expected);
    let seen = hand.done("artifact_grep", json!({"id": id, "pattern": "line 5", "context": 1, "literal": true})).await;
    assert_eq!(text(&seen), "4-line 4\n5:line 5\n6-line 6\n1 matching line\n");
    let seen = hand.done("artifact_grep", json!({"id": id, "pattern": "line .$", "limit": 2})).await;
    assert_eq!(
        text(&seen),
        "1:line 1\n2:line 2\nthe first 2 of 9 matching lines; narrow the pattern, or raise limit\n"
    );
    let seen = hand.done("artifact_grep", json!({"id": id, "pattern": "line [15]$", "limit": 1})).await;
    assert!(text(&seen).starts_with("1:line 1\n2-line 2\n3-line 3\nthe first 1 of 2"), "{}", text(&seen));
}

#[tokio::test]
async fn nothing_found_bad_patterns_and_strangers_are_told() {
    let world = World::new();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let id = kept(&hand, &world, "text\n").await;
    let seen = hand.done("artifact_grep", json!({"id": id, "pattern": "needle"})).await;
    assert_eq!(seen.code, Recorded::Known(Code::NoMatches));
    let bad = json!({"id": id, "pattern": "a("});
    hand.refused("artifact_grep", bad, Code::SchemaInvalid, None, Phase::Validate).await;
    let other = process.open(world.session().await).await;
    let (code, reason) = (Code::RuntimePreconditionFailed, Some(Reason::NotFound));
    other.refused("artifact_grep", json!({"id": id, "pattern": "text"}), code, reason, Phase::Execute).await;
}
