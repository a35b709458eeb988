//! What `grep` and `glob` do at their limits, and when they are stopped.

use std::time::{Duration, Instant};

use portcullis_base::Code;
use serde_json::json;

use crate::searching::found;
use crate::world::{World, numbered, text};

#[tokio::test]
async fn the_first_lines_in_the_order_of_paths_are_shown_whoever_finds_them_first() {
    let world = World::new();
    for file in 0..400 {
        world.put(&format!("d{:02}/f{file:03}", file % 20), numbered("needle ", 3));
    }
    world.put("d00/blob", b"needle\0");
    world.put("d19/blob", b"needle\0");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let all = hand.done("grep", json!({"pattern": "needle", "limit": 200})).await;
    let all = found(&all);
    assert_eq!(all.len(), 200);
    for _ in 0..20 {
        let seen = hand.done("grep", json!({"pattern": "needle"})).await;
        assert_eq!(found(&seen), all[..20]);
        let output = seen.structured.clone().expect("an output");
        assert_eq!(output["truncated"], true);
        assert_eq!(output["files"].as_array().expect("files").len(), 7);
        assert_eq!(output["files"][6]["match_count"], 3);
        // What lies before the end of what is shown is counted, and nothing else, in every run.
        assert_eq!(output["left_out"], json!({"binary": 1}));
        assert!(output.get("searched").is_none());
        let said = text(&seen);
        assert!(said.contains("the first 20 matching lines; there are more"), "{said}");
    }
}

#[tokio::test]
async fn exactly_as_many_as_the_limit_is_not_called_more() {
    let world = World::new();
    world.put("a", numbered("needle ", 20));
    world.put("b", "nothing\n");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    assert_eq!(seen.structured.expect("an output")["truncated"], false);
    world.put("a", numbered("needle ", 21));
    let seen = hand.done("grep", json!({"pattern": "needle"})).await;
    let output = seen.structured.expect("an output");
    assert_eq!((&output["truncated"], &output["count"]), (&json!(true), &json!(20)));
    assert_eq!(output["files"][0]["match_count"], 21);
}

#[tokio::test]
async fn a_limit_above_the_cap_is_lowered_and_told() {
    let world = World::new();
    world.put("a", numbered("needle ", 300));
    let process = world.start();
    let hand = process.open(world.session().await).await;
    for (limit, lines) in [(json!(0), 20), (json!(-3), 20), (json!(7.9), 7), (json!(1e9), 200)] {
        let seen = hand.done("grep", json!({"pattern": "needle", "limit": limit})).await;
        assert_eq!(found(&seen).len(), lines, "{limit}");
        assert_eq!(!seen.warnings.is_empty(), lines == 200, "{limit}");
    }
}

#[tokio::test]
async fn l52_a_search_too_long_for_the_model_keeps_a_line_of_every_file() {
    let world = World::new();
    let wide = format!("needle {}\n", "ü".repeat(230));
    for file in 0..4 {
        world.put(&format!("f{file}"), wide.repeat(50));
    }
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let seen = hand.done("grep", json!({"pattern": "needle", "limit": 200})).await;
    assert!(seen.truncated);
    let said = text(&seen);
    assert!(said.len() <= 51_200);
    for file in 0..4 {
        assert!(said.contains(&format!("f{file}:1:")), "f{file}");
    }
    assert!(said.contains("artifact_read"));
}

/// Whether this process has a file of the workspace open: a search is under way.
fn reading(world: &World) -> bool {
    let open = std::fs::read_dir("/proc/self/fd").expect("the open files");
    let prefix = world.path("big");
    open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok()).any(|file| file.starts_with(&prefix))
}

#[test]
fn l24_a_cancelled_search_stops_at_once() {
    let world = World::new();
    let big = "some text without it\n".repeat(200_000);
    for file in 0..100 {
        world.put(&format!("big/f{file}"), &big);
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let cancelled = runtime.block_on(async {
        let process = world.start();
        let hand = process.open(world.session().await).await;
        let running = hand.propose("grep", &json!({"pattern": "(e.*x.*t.*q|q.*q.*q)$"}));
        while !reading(&world) {
            tokio::task::yield_now().await;
        }
        running.canceller().cancel();
        let begun = Instant::now();
        let seen = hand.settle(running).await;
        assert_eq!(seen.code.known(), Some(Code::Cancelled));
        begun
    });
    // Waits for the threads of the search, which would go on for minutes.
    drop(runtime);
    assert!(cancelled.elapsed() < Duration::from_secs(20), "{:?}", cancelled.elapsed());
}
