//! `artifact_read`.

use portcullis_base::{Code, Phase, Reason};
use serde_json::{Value, json};

use crate::world::{Hand, World, numbered, text};

const PRECONDITION: Code = Code::RuntimePreconditionFailed;

/// Keeps `content` as evidence of a write and gives its artifact id.
async fn kept(hand: &Hand<'_>, name: &str, content: &str) -> String {
    let written = hand.done("write", json!({"file_path": name, "content": content})).await;
    let item = written.side_effects.items.into_iter().next_back().expect("a side effect");
    item.after.expect("kept")
}

#[tokio::test]
async fn before_after_and_diff_of_a_change_can_be_read() {
    let world = World::new();
    world.put("a", "one\ntwo\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    hand.done("read", json!({"file_path": "a"})).await;
    let edited = hand.done("edit", json!({"file_path": "a", "old_string": "two", "new_string": "2"})).await;
    let item = &edited.side_effects.items[0];
    for (id, content) in [(&item.before, "one\ntwo\n"), (&item.after, "one\n2\n")] {
        let read = hand.done("artifact_read", json!({"id": id})).await;
        assert_eq!(text(&read), content);
        assert_eq!(read.summary, format!("lines 1–2 of 2 (bytes 0–{0} of {0})", content.len()));
    }
    let diff = edited.structured.expect("structured")["diff_artifact"].clone();
    assert!(text(&hand.done("artifact_read", json!({"id": diff})).await).starts_with("--- a/a\n+++ b/a\n"));
}

#[tokio::test]
async fn selectors_deliver_what_they_say_and_where_it_is() {
    let world = World::new();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let id = kept(&hand, "a", &numbered("l", 100)).await;
    let cases: [(Value, String, &str); 7] = [
        (
            json!({"lines": [3, 4]}),
            "l3\nl4\n".to_owned(),
            "lines 3–4 of 100 (bytes 6–12 of 392); read on with lines [5, 100]",
        ),
        (json!({"lines": [99, 0]}), "l99\nl100\n".to_owned(), "lines 99–100 of 100 (bytes 383–392 of 392)"),
        (json!({"tail": 1}), "l100\n".to_owned(), "lines 100–100 of 100 (bytes 387–392 of 392)"),
        (
            json!({"range": [1, 5]}),
            "1\nl2".to_owned(),
            "lines 1–2 of 100 (bytes 1–5 of 392); read on with range [5, 392]",
        ),
        (
            json!({"range": [0, 0], "tail": 0, "around": ""}),
            numbered("l", 100),
            "lines 1–100 of 100 (bytes 0–392 of 392)",
        ),
        (json!({"lines": [500, 600]}), String::new(), "nothing there; the artifact has 100 lines, 392 bytes"),
        (
            json!({"around": "l50"}),
            (30..=70).map(|n| format!("l{n}\n")).collect(),
            "lines 30–70 of 100 (bytes 107–271 of 392); read on with lines [71, 100]",
        ),
    ];
    for (mut input, expected, summary) in cases {
        input["id"] = json!(id);
        let read = hand.done("artifact_read", input.clone()).await;
        assert_eq!((text(&read), read.summary.as_str()), (expected, summary), "{input}");
    }
    for mut input in [json!({"lines": [3, 2]}), json!({"range": [3, 2]}), json!({"tail": 1, "around": "x"})] {
        input["id"] = json!(id);
        hand.refused("artifact_read", input, Code::SchemaInvalid, None, Phase::Validate).await;
    }
    let absent = json!({"id": id, "around": "nowhere"});
    hand.refused("artifact_read", absent, PRECONDITION, Some(Reason::TargetNotFound), Phase::Execute).await;
    hand.refused("artifact_read", json!({"id": "a"}), Code::SchemaInvalid, None, Phase::Validate).await;
}

#[tokio::test]
async fn a_large_artifact_is_read_page_by_page_and_searched_across_windows() {
    let world = World::new();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let mut content = numbered("some line number ", 20_000);
    let at = 65_530;
    let line_start = content[..at].rfind('\n').expect("a line") + 1;
    content.replace_range(at..at + 12, "NEEDLE-ACROS");
    let id = kept(&hand, "a", &content).await;
    let mut seen = String::new();
    let mut input = json!({"id": id});
    loop {
        let read = hand.done("artifact_read", input).await;
        assert!(text(&read).len() <= 51_200 && text(&read).lines().count() <= 2_000);
        seen.push_str(&text(&read));
        let next = read.structured.expect("structured")["next_lines"].clone();
        if next.is_null() {
            break;
        }
        input = json!({"id": id, "lines": next});
    }
    assert!(seen == content, "the pages are the artifact");
    let found = hand.done("artifact_read", json!({"id": id, "around": "NEEDLE-ACROS"})).await;
    let structured = found.structured.as_ref().expect("structured");
    assert!(text(&found).contains("NEEDLE-ACROS") && text(&found).lines().count() <= 42);
    assert!(structured["start"].as_u64().expect("a number") < line_start as u64);
    let tail = hand.done("artifact_read", json!({"id": id, "tail": 2000})).await;
    assert!(text(&tail).ends_with("some line number 20000\n") && text(&tail).starts_with("some line"));
}

#[tokio::test]
async fn one_endless_line_is_read_by_range_on_character_boundaries() {
    let world = World::new();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let content = "ä€".repeat(30_000);
    let id = kept(&hand, "a", &content).await;
    let mut seen = String::new();
    let mut input = json!({"id": id});
    loop {
        let read = hand.done("artifact_read", input).await;
        seen.push_str(&text(&read));
        let next = read.structured.expect("structured")["next_range"].clone();
        if next.is_null() {
            break;
        }
        input = json!({"id": id, "range": next});
    }
    assert!(seen == content, "no character is lost or doubled");
    let tail = hand.done("artifact_read", json!({"id": id, "tail": 5})).await;
    assert!(content.ends_with(&text(&tail)) && text(&tail).len() > 51_190);
    let middle = hand.done("artifact_read", json!({"id": id, "range": [1, 9]})).await;
    assert_eq!(text(&middle), "€ä");
}

#[tokio::test]
async fn only_the_sessions_own_artifacts_are_there() {
    let world = World::new();
    let process = world.start();
    let (mine, other) = (process.open(world.session().await).await, process.open(world.session().await).await);
    let id = kept(&mine, "a", "x\n").await;
    let not_found = Some(Reason::NotFound);
    let refused = other.refused("artifact_read", json!({"id": id}), PRECONDITION, not_found, Phase::Execute).await;
    let nothing = format!("art_{}", "0".repeat(26));
    let missing = other.refused("artifact_read", json!({"id": nothing}), PRECONDITION, not_found, Phase::Execute).await;
    assert_eq!(refused.summary.replace(&id, ""), missing.summary.replace(&nothing, ""), "it does not say which");
    mine.done("artifact_read", json!({"id": id})).await;
}

#[tokio::test]
async fn a_medium_is_not_read_as_text() {
    let world = World::new();
    world.put("a.pdf", b"%PDF-1.7\nplain");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let read = hand.done("read", json!({"file_path": "a.pdf"})).await;
    let id = json!({"id": read.artifacts[0].id.to_string()});
    hand.refused("artifact_read", id, PRECONDITION, Some(Reason::BinaryFile), Phase::Execute).await;
}
