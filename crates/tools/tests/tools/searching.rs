//! `grep`: which lines are found and how they are shown.

use portcullis_base::{Code, Phase, Recorded};
use portcullis_event::Observed;
use serde_json::{Value, json};

use crate::world::{World, text};

/// `path:line:preview` of every match.
pub fn found(observed: &Observed) -> Vec<String> {
    let output = observed.structured.as_ref().expect("an output");
    let matches = output["matches"].as_array().expect("matches").iter();
    let word = |found: &Value, field: &str| found[field].as_str().unwrap_or_default().to_owned();
    matches.map(|m| format!("{}:{}:{}", word(m, "path"), m["line"], word(m, "preview"))).collect()
}

#[tokio::test]
async fn matching_lines_come_in_the_order_of_paths_with_their_numbers() {
    let world = World::new();
    world.put("b.txt", "one\nneedle here\nthree needle\n");
    world.put("a/deep/z.txt", "needle");
    world.put("a.txt", "x\n\nneedle\n");
    world.put("a/b.txt", "nothing\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    let expected = ["a/deep/z.txt:1:needle", "a.txt:3:needle", "b.txt:2:needle here", "b.txt:3:three needle"];
    assert_eq!(found(&seen), expected);
    assert_eq!(text(&seen), format!("{}\n4 matching lines in 3 of 4 files\n", expected.join("\n")));
    let output = seen.structured.expect("an output");
    assert_eq!((&output["count"], &output["truncated"], &output["searched"]), (&json!(4), &json!(false), &json!(4)));
    assert_eq!(output["files"][2], json!({"path": "b.txt", "match_count": 2}));
    // tool-contract §19: a search delivers no file.
    assert!(hand.baseline("b.txt").is_none());
    assert!(seen.files.is_empty() && seen.side_effects.items.is_empty());
}

#[tokio::test]
async fn a_directory_or_a_file_can_be_searched_alone() {
    let world = World::new();
    for name in ["top", "src/one", "src/two", "src/deep/three"] {
        world.put(name, "needle\n");
    }
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle", "path": "src"})).await;
    assert_eq!(found(&seen), ["src/deep/three:1:needle", "src/one:1:needle", "src/two:1:needle"]);
    let seen = hand.done("grep", json!({"pattern": "needle", "path": " src/two "})).await;
    assert_eq!(found(&seen), ["src/two:1:needle"]);
    let host = world.path("src/deep").display().to_string();
    let seen = hand.done("grep", json!({"pattern": "needle", "path": host})).await;
    assert_eq!(found(&seen), ["src/deep/three:1:needle"]);
    for path in [json!(null), json!(""), json!("."), json!("/workspace")] {
        assert_eq!(found(&hand.done("grep", json!({"pattern": "needle", "path": path})).await).len(), 4, "{path}");
    }
}

#[tokio::test]
async fn nothing_found_is_a_success_of_its_own() {
    let world = World::new();
    world.put("a", "text\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for (tool, pattern, said) in [("grep", "needle", "no matches in 1 file\n"), ("glob", "*.rs", "no matches\n")] {
        let seen = hand.done(tool, json!({"pattern": pattern})).await;
        assert_eq!(seen.code, Recorded::Known(Code::NoMatches), "{tool}");
        assert_eq!(seen.phase, Recorded::Known(Phase::Execute));
        assert_eq!(text(&seen), said);
        assert!(!seen.retryable);
    }
}

#[tokio::test]
async fn case_and_literal_are_as_asked() {
    let world = World::new();
    world.put("a", "A.B\na.b\nAxB\naxb\nÄ\nä\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let cases: [(Value, &[u64]); 6] = [
        (json!({"pattern": "a.b"}), &[2, 4]),
        (json!({"pattern": "a.b", "literal": true}), &[2]),
        (json!({"pattern": "a.b", "ignore_case": true}), &[1, 2, 3, 4]),
        (json!({"pattern": "A.B", "literal": true, "ignore_case": true}), &[1, 2]),
        (json!({"pattern": "ä", "ignore_case": true}), &[5, 6]),
        (json!({"pattern": "^a.b$", "literal": null, "ignore_case": null}), &[2, 4]),
    ];
    for (input, lines) in cases {
        let seen = hand.done("grep", input.clone()).await;
        let output = seen.structured.expect("an output");
        let numbers =
            output["matches"].as_array().expect("matches").iter().map(|m| m["line"].as_u64().expect("a line"));
        assert_eq!(numbers.collect::<Vec<_>>(), lines, "{input}");
    }
}

#[tokio::test]
async fn crlf_marks_and_broken_text_are_taken_as_they_are() {
    let world = World::new();
    world.put("crlf", "needle\r\nneedle end\r\n");
    world.put("bom", "\u{feff}needle\n");
    world.put("latin1", b"caf\xe9 needle \xff\n");
    world.put("last", "x\nneedle");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "^needle$"})).await;
    assert_eq!(found(&seen), ["bom:1:needle", "crlf:1:needle", "last:2:needle"]);
    let seen = hand.done("grep", json!({"pattern": "needle .*", "path": "latin1"})).await;
    assert_eq!(found(&seen), ["latin1:1:caf\u{fffd} needle \u{fffd}"]);
}

#[tokio::test]
async fn a_pattern_that_is_none_is_refused_with_its_place() {
    let world = World::new();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let cases = [
        ("grep", json!({"pattern": ""}), ""),
        ("grep", json!({"pattern": "ab(c"}), "unclosed group at character 3"),
        ("grep", json!({"pattern": "  ü[z-a]"}), "at character 5"),
        ("grep", json!({"pattern": "a{9999}{9999}"}), "regular expression"),
        ("grep", json!({"pattern": "a\nb"}), "line break"),
        ("grep", json!({"pattern": r"a\nb"}), "line break"),
        ("grep", json!({"pattern": "a\nb", "literal": true}), "line break"),
        ("grep", json!({"pattern": "a", "path": "a\0b"}), "NUL"),
        ("grep", json!({"pattern": "a", "limit": "many"}), ""),
        ("grep", json!({"pattern": "a", "context": 2}), ""),
        ("glob", json!({"pattern": " "}), ""),
        ("glob", json!({"pattern": "a[b"}), "not a glob"),
        ("glob", json!({"pattern": "*", "kind": "socket"}), ""),
        ("glob", json!({"pattern": "*", "sort": "size"}), ""),
    ];
    for (tool, input, words) in cases {
        let seen = hand.refused(tool, input.clone(), Code::SchemaInvalid, None, Phase::Validate).await;
        let said = serde_json::to_string(&seen).expect("json");
        assert!(said.contains(words), "{input}: {said}");
    }
    // `\s` and negated classes hold a line break too; they just never match it.
    world.put("a", "x y\nz");
    assert_eq!(found(&hand.done("grep", json!({"pattern": r"y\s*[^q]*"})).await), ["a:1:x y"]);
}

#[tokio::test]
async fn binary_files_are_left_out_and_counted() {
    let world = World::new();
    world.put("image", b"needle\0needle\n");
    world.put("late", [b"needle\n".repeat(100_000), b"\0".to_vec()].concat());
    let long = [b"x\n".repeat(1 << 20), b"\0needle\n".to_vec()].concat();
    world.put("longer", long);
    world.put("text", "needle\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    assert_eq!(found(&seen), ["text:1:needle"]);
    assert_eq!(text(&seen), "text:1:needle\n1 matching line in 1 of 1 file; left out: 3 binary\n");
    assert_eq!(seen.structured.expect("an output")["left_out"], json!({"binary": 3}));
    let seen = hand.done("grep", json!({"pattern": "needle", "path": "image"})).await;
    assert_eq!(seen.code, Recorded::Known(Code::NoMatches));
    assert!(text(&seen).contains("1 binary"));
}

#[tokio::test]
async fn a_long_line_is_shown_round_its_match() {
    let world = World::new();
    let line = format!("{}needle{}", "<".repeat(3 << 20), ">".repeat(100_000));
    world.put("min.js", format!("first\n{line}\nneedle\n"));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    let found = found(&seen);
    assert_eq!(found.len(), 2);
    assert!(found[0].starts_with("min.js:2:…<<<") && found[0].contains("<needle>") && found[0].ends_with(">>>…"));
    assert!(found[0].chars().count() <= 240 + "min.js:2:".len());
    assert_eq!(found[1], "min.js:3:needle");
}

#[tokio::test]
async fn a_line_too_long_to_hold_is_told_and_the_rest_goes_on() {
    let world = World::new();
    world.put("endless", "x".repeat(20 << 20));
    world.put("text", "needle\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    assert_eq!(found(&seen), ["text:1:needle"]);
    assert!(text(&seen).contains("left out: 1 unreadable"), "{}", text(&seen));
}
