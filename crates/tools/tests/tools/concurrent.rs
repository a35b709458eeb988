//! L43: several sessions edit one file at the same time.

use futures_util::future::join_all;
use portcullis_base::Code;
use serde_json::json;

use crate::world::World;

/// Sessions, and the lines they want: two for each line.
const SESSIONS: usize = 8;
const LINES: usize = SESSIONS / 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn l43_of_n_concurrent_edits_each_is_applied_in_full_or_reported_not_applied() {
    let world = World::new();
    let free: Vec<String> = (0..LINES).map(|line| format!("line {line}: free")).collect();
    let process = world.start();
    let mut seen_conflict = false;
    for _ in 0..8 {
        world.put("a", format!("{}\n", free.join("\n")));
        let mut hands = Vec::new();
        for _ in 0..SESSIONS {
            hands.push(process.open(world.session().await).await);
        }
        let mut expected = free.clone();
        let mut waiting: Vec<usize> = (0..SESSIONS).collect();
        // Whoever was too late reads again, as a model would; every round somebody is in time.
        while !waiting.is_empty() {
            for n in &waiting {
                hands[*n].done("read", json!({"file_path": "a"})).await;
            }
            let edits = waiting.iter().map(|n| {
                let old = format!("line {}: free", n % LINES);
                let new = format!("line {}: taken by {n}", n % LINES);
                hands[*n].call("edit", json!({"file_path": "a", "old_string": old, "new_string": new}))
            });
            let answers = join_all(edits).await;
            let applied: Vec<usize> =
                waiting.iter().zip(&answers).filter(|(_, seen)| seen.ok).map(|(n, _)| *n).collect();
            for n in &applied {
                let line = &mut expected[n % LINES];
                assert!(line.ends_with("free"), "two were told that they took `{line}`");
                *line = format!("line {}: taken by {n}", n % LINES);
            }
            assert_eq!(world.get("a"), format!("{}\n", expected.join("\n")), "applied: {applied:?}");
            let mut late = Vec::new();
            for (n, seen) in waiting.iter().zip(&answers).filter(|(_, seen)| !seen.ok) {
                match seen.code.known() {
                    Some(Code::StaleFileBaseline) => late.push(*n),
                    // The line is somebody else's by now.
                    Some(Code::RuntimePreconditionFailed) => {}
                    _ => panic!("{}: {}", seen.code, seen.summary),
                }
            }
            seen_conflict |= !late.is_empty();
            assert!(!applied.is_empty() || late.is_empty(), "somebody is in time");
            waiting = late;
        }
        assert!(expected.iter().all(|line| line.contains("taken")), "{expected:?}");
    }
    assert!(seen_conflict, "the sessions met");
    assert_eq!(world.tree(), ["a"], "and nothing is left behind");
}
