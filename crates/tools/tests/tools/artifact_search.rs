//! `artifact_grep`: the matching lines of kept evidence.

use std::collections::BTreeMap;

use portcullis_base::{ArtifactKind, Code, Phase, Reason, Recorded};
use portcullis_contract::{DefaultPolicy, Semantics, Tool, ToolContext, ToolName};
use schemars::JsonSchema;
use serde::Deserialize;
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

/// A tool that leaves its text of one long line, with a needle at each of these places, as evidence, and says its id.
fn keeper(length: usize, needles: &'static [usize]) -> BTreeMap<ToolName, Tool> {
    let keep = move |_: Nothing, context: ToolContext| async move {
        let mut line = vec![b'x'; length];
        for at in needles {
            line[*at..*at + NEEDLE.len()].copy_from_slice(NEEDLE.as_bytes());
        }
        let text = [b"before\n".as_slice(), &line, b"\nafter\n"].concat();
        Ok(context.keep(ArtifactKind::File, "text/plain", text)?.to_string())
    };
    let tool = Tool::builder::<Nothing, String>("Keeps a long line.")
        .semantics(Semantics { default_policy: DefaultPolicy::Allow, ..Semantics::read_only() })
        .execute(keep)
        .build()
        .expect("a sound tool");
    BTreeMap::from([("keep".parse().expect("a name"), tool)])
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

const NEEDLE: &str = "needle-in-a-haystack";
const MIB: usize = 1 << 20;

/// Minified files, JSON documents and output without line breaks are one line.
#[tokio::test]
async fn lines_of_any_length_are_searched() {
    // Near the ends, and across the border of two of the pieces that a line is searched in. More than the searcher holds.
    const LENGTH: usize = 20 * MIB;
    const NEEDLES: &[usize] = &[0, 256 * 1024 - 5, LENGTH - NEEDLE.len()];
    for at in NEEDLES {
        let world = World::new();
        let process = world.start_with(keeper(LENGTH, std::slice::from_ref(at)));
        let hand = process.open(world.session().await).await;
        let id = text(&hand.done("keep", json!({})).await);
        let seen = hand.done("artifact_grep", json!({"id": id, "pattern": "need[l]e-in", "context": 20})).await;
        let said = text(&seen);
        let found: Vec<&str> = said.lines().filter(|line| line.starts_with("2:")).collect();
        assert_eq!(found.len(), 1, "{at}: {said}");
        assert!(found[0].contains(NEEDLE) && found[0].len() < 300, "{at}: {said}");
        // Lines round it, where they are near enough; never the line itself again.
        let round = said.lines().filter(|line| !line.starts_with("2:"));
        assert!(round.clone().all(|line| ["1-before", "3-after", "1 matching line"].contains(&line)), "{at}: {said}");
        assert!(said.ends_with("1 matching line\n"), "{at}: {said}");
        assert!(seen.warnings.iter().any(|warning| warning.starts_with("line 2 is longer than 256 KiB")), "{seen:?}");
        let seen = hand.done("artifact_grep", json!({"id": id, "pattern": "haystack2"})).await;
        assert_eq!(seen.code, Recorded::Known(Code::NoMatches));
    }
}

#[tokio::test]
async fn a_long_line_with_several_matches_is_one_matching_line() {
    let world = World::new();
    let process = world.start_with(keeper(3 * MIB, &[5, MIB, 2 * MIB, 3 * MIB - 100]));
    let hand = process.open(world.session().await).await;
    let id = text(&hand.done("keep", json!({})).await);
    let seen = hand.done("artifact_grep", json!({"id": id, "pattern": "needle|after", "limit": 1})).await;
    assert!(text(&seen).contains("the first 1 of 2 matching lines"), "{}", text(&seen));
}
