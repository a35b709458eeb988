//! Transcripts of `demo` through the real binary, and the recording of one in docs/.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Ran, World};

const RECORDING: &str = include_str!("../../../../docs/demo.txt");
const SCRIPT: &str = include_str!("../../src/demo/mend.toml");

/// Runs the project's own test by hand, without any of our doing.
fn passes(world: &World, folder: &str) -> bool {
    let ran = Command::new("/bin/sh").arg("test.sh").current_dir(world.workspace.join(folder)).output();
    ran.expect("a POSIX shell").status.success()
}

#[test]
fn the_demo_mends_a_real_project_in_less_than_ten_seconds_and_tells_the_same_story_everywhere() {
    let world = World::new();
    std::fs::create_dir(world.workspace.join("before")).expect("made");
    world.write("before/sum.sh", include_str!("../../src/demo/sum.sh"));
    world.write("before/test.sh", include_str!("../../src/demo/test.sh"));
    assert!(!passes(&world, "before"), "the test fails before");
    let since = Instant::now();
    let ran = world.run(&["demo", "--keep", "kept"]).ends(0).says("fact-check: supported");
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert!(passes(&world, "kept"), "and passes after");
    let ran = ran.says("✗ bash sh test.sh (exit 1, ").says("✓ edit sum.sh").says("✓ bash sh test.sh (");
    let ran = ran.says("✗ read ../../../../etc/shadow (runtime_precondition_failed");
    let session = ran.id("sesn_");
    for words in ["sessions trace", "audit verify", "replay"] {
        assert!(ran.out.contains(&format!("  portcullis {words} {session}")), "{words}: {}", ran.out);
    }
    world.run(&["audit", "verify", &session]).ends(0);
    world.run(&["replay", &session]).ends(0).says("sum.sh");
    world.run(&["replay", &session, "--mode", "rebuild"]).ends(0);
    world.run(&["demo", "--keep", "kept"]).ends(2).warns("it is not empty");
}

#[test]
fn a_scratch_project_is_gone_afterwards() {
    let world = World::new();
    let ran = world.run(&["demo"]).ends(0);
    let folder =
        ran.out.split_once("A project in ").and_then(|(_, rest)| rest.split_once(": sum.sh")).expect("named").0;
    assert!(!std::path::Path::new(folder).exists(), "{folder}");
}

#[test]
fn the_same_script_without_the_edit_is_contradicted() {
    let world = World::new();
    let edit = SCRIPT.lines().find(|line| line.contains("name = \"edit\"")).expect("an edit");
    let path = world.home.with_file_name("lie.toml");
    std::fs::write(&path, SCRIPT.replace(edit, "")).expect("written");
    let model = format!("scripted:{}", path.display());
    let ran = world.run(&["demo", "--keep", "kept", "--model", &model]).ends(1).says("fact-check: contradicted");
    assert!(!passes(&world, "kept") && !ran.out.contains("✓ edit"), "{}", ran.out);
}

#[test]
fn a_killed_demo_leaves_one_unknown_call_and_nothing_runs_twice() {
    let world = World::new();
    let ran = world.run(&["demo", "--crash", "--keep", "kept"]).ends(0).says("(SIGKILL)");
    let ran = ran.says("unknown calls: 1; the command began 1 time; it is dead");
    assert_eq!(world.read("kept/began.txt").lines().count(), 1);
    let session = ran.id("sesn_");
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0).out;
    assert_eq!(events.matches(r#"\"code\":\"outcome_unknown\""#).count(), 1);
    world.run(&["audit", "verify", &session]).ends(0);
}

#[test]
fn a_program_reads_the_demo_as_documents() {
    let lines = World::new().run(&["demo", "--json"]).ends(0).lines();
    let end = lines.last().expect("an end");
    assert_eq!((&end["verdict"], &end["test_passes"]), (&"supported".into(), &true.into()));
}

/// The same for every run: ids, times and the folder are masked.
fn masked(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let mut words: Vec<String> = Vec::new();
        for word in line.split(' ') {
            let plain = word.trim_start_matches('(').trim_end_matches([')', ':', ';']);
            let number = plain.parse::<f64>().is_ok();
            if let Some((kind, id)) = plain.split_once('_').filter(|(kind, _)| matches!(*kind, "sesn" | "ask")) {
                words.push(word.replace(id, "…").replace(&format!("{kind}_{id}"), &format!("{kind}_…")));
            } else if plain.starts_with('/') && plain.contains("portcullis-demo-") {
                words.push(word.replace(plain, "/tmp/portcullis-demo-…"));
            } else if number {
                words.push(word.replace(plain, "N"));
            } else if matches!(plain, "µs" | "ms" | "s") {
                words.push(word.replace(plain, "ms"));
            } else {
                words.push(word.to_owned());
            }
        }
        shown.push_str(words.join(" ").trim_end());
        shown.push('\n');
    }
    shown
}

#[test]
fn the_recording_in_docs_is_what_the_binary_says() {
    let world = World::new();
    let said: Ran = world.run(&["demo"]).ends(0);
    let recorded = RECORDING.split_once("$ portcullis demo\n").expect("the first command").1;
    let recorded = recorded.split_once("\n$ portcullis demo --crash\n").expect("the second command");
    assert_eq!(masked(&said.out), masked(recorded.0), "record it anew in docs/demo.txt");
    let crashed = world.run(&["demo", "--crash"]).ends(0);
    assert_eq!(masked(&crashed.out), masked(recorded.1), "record it anew in docs/demo.txt");
}
