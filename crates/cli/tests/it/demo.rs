//! Transcripts of `demo` through the real binary, and the recording of one in docs/.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::{Ran, World, comes, on_terminal};
use crate::driven;
use crate::run_talk::Terminal;

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

#[test]
fn a_demo_whose_model_is_mistyped_lays_nothing_out() {
    let world = World::new();
    let keep = world.workspace.join("kept");
    let keep = keep.to_str().expect("a path");
    world.run(&["demo", "--keep", keep, "--model", "scripted:no-such-file.toml"]).ends(2);
    world.run(&["demo", "--keep", keep]).ends(0);
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
            } else if plain.strip_prefix("demo-").is_some_and(|tag| tag.len() == 8) {
                words.push(word.replace(plain, "demo-…"));
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

/// Processes whose command line holds this word.
fn alive(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").expect("proc").flatten().map(|process| process.path().join("cmdline"));
    let lines = processes.filter_map(|file| std::fs::read(file).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

/// A demo of its own temporary folder, so that what it leaves there is seen.
fn demo_in(world: &World, words: &[&str]) -> (std::path::PathBuf, driven::Process) {
    let folder = world.workspace.join("tmp");
    std::fs::create_dir_all(&folder).expect("made");
    let child = world.command_by("--default-signal=HUP", words).env("TMPDIR", &folder).spawn().expect("it starts");
    (folder, driven::Process::of(child))
}

/// The command of the crash demo runs: its session's word is in `/proc`.
fn began(folder: &std::path::Path) -> Option<String> {
    let project = std::fs::read_dir(folder).ok()?.flatten().next()?.path();
    let text = std::fs::read_to_string(project.join("began.txt")).ok()?;
    Some(text.lines().next()?.strip_prefix("began ")?.to_owned())
}

#[test]
fn a_demo_that_is_ended_early_leaves_no_process_and_no_folder() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let world = World::new();
        let (folder, child) = demo_in(&world, &["demo", "--crash"]);
        // As soon as its folder is there: the process that is to be killed has hardly begun.
        comes("its folder", || std::fs::read_dir(&folder).is_ok_and(|mut all| all.next().is_some()));
        driven::signal(&child, signal);
        child.output().ends(code).warns("the demo was ended early");
        assert_eq!(std::fs::read_dir(&folder).expect("there").count(), 0, "{signal:?}: its folder is gone");
        assert!(stage_of(&world).is_none(), "{signal:?}: nothing of it runs");

        let (folder, child) = demo_in(&world, &["demo"]);
        comes("its folder", || std::fs::read_dir(&folder).is_ok_and(|mut all| all.next().is_some()));
        driven::signal(&child, signal);
        child.output().ends(code);
        assert_eq!(std::fs::read_dir(&folder).expect("there").count(), 0, "{signal:?}: its folder is gone");
    }
}

/// The process that a demo with this data folder starts, and whether it listens for signals already.
fn stage_of(world: &World) -> Option<bool> {
    let home = world.home.display().to_string();
    let processes = std::fs::read_dir("/proc").expect("proc").flatten().map(|process| process.path());
    processes.into_iter().find_map(|process| {
        let read = |name| String::from_utf8_lossy(&std::fs::read(process.join(name)).unwrap_or_default()).into_owned();
        let is_it = read("cmdline").contains("--stage") && read("environ").contains(&home);
        is_it.then(|| {
            read("status").lines().any(|line| line.starts_with("SigCgt:") && line.ends_with(['2', '3', '6', '7']))
        })
    })
}

#[test]
fn what_the_demo_started_dies_with_it_even_if_it_is_killed() {
    let world = World::new();
    let (folder, mut child) = demo_in(&world, &["demo", "--crash"]);
    // By then it is bound to the demo; before that it looks whether that is still there.
    comes("the process that is to be killed listens", || stage_of(&world) == Some(true));
    driven::signal(&child, Signal::KILL);
    child.wait().expect("dead");
    comes_soon("its process is dead", || stage_of(&world).is_none());
    if let Some(tag) = began(&folder) {
        comes_soon("its command is dead", || alive(&tag) == 0);
    }
}

/// The same, long before the command would end by itself.
#[track_caller]
fn comes_soon(what: &str, so: impl FnMut() -> bool) {
    let since = Instant::now();
    comes(what, so);
    assert!(since.elapsed() < Duration::from_secs(10), "{what}: {:?}", since.elapsed());
}

#[test]
fn a_quiet_demo_says_what_it_came_to_and_nothing_else() {
    let world = World::new();
    let ran = world.run(&["demo", "--quiet"]).ends(0).says("fact-check: supported").says("session sesn_");
    assert!(!ran.out.contains("I will look") && !ran.out.contains("✓ read") && ran.err.is_empty(), "{}", ran.out);
    let ran = world.run(&["demo", "--crash", "--quiet"]).ends(0).says("unknown calls: 1");
    assert!(!ran.out.contains("killed") && !ran.out.contains("I start something"), "{}", ran.out);
}

#[test]
fn a_demo_refuses_what_it_cannot_do() {
    let world = World::new();
    for words in [["--approvals", "deny"], ["--approvals", "ask"], ["--profile", "managed"]] {
        let ran = world.run(&["demo", words[0], words[1]]).ends(2).one_error_line().warns(words[0]);
        assert!(ran.out.is_empty(), "{}", ran.out);
    }
    assert!(!world.home.exists(), "nothing was made on disk");
    world.run(&["demo", "--approvals", "allow", "--profile", "code"]).ends(0);
}

#[test]
fn output_that_cannot_be_written_is_not_a_success() {
    let world = World::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("opens");
    for words in [&["demo"][..], &["demo", "--json"], &["demo", "--crash"]] {
        let ran: Ran = world.command(words).stdout(full()).output().expect("runs").into();
        ran.ends(5).warns("standard output cannot be written");
    }
    let model = driven::script(&world, "says.toml", "[[turn]]\ntext = \"Hello.\"\n");
    let mut run = world.command(&["run", "hello", "--model", &model]);
    let ran: Ran = run.stdout(full()).output().expect("runs").into();
    ran.ends(5).warns("standard output cannot be written");
}

#[test]
fn the_repair_of_a_kept_demo_is_taken_back_by_the_command_that_it_prints() {
    let world = World::new();
    let ran = world.run(&["demo", "--keep", "kept"]).ends(0);
    assert!(passes(&world, "kept"));
    let line =
        ran.out.lines().find_map(|line| line.strip_prefix("to take the repair back, type /undo in: portcullis "));
    let (mut child, keys, out) = on_terminal(&world, line.expect("a command"));
    let mut terminal = Terminal::new(keys, out);
    terminal.says("/undo");
    terminal.until("is as it was before the last change");
    terminal.says("/quit");
    assert!(child.wait().expect("ends").success());
    assert!(!passes(&world, "kept"), "it fails as before");
}

#[test]
fn documents_of_a_demo_name_each_call_once_and_end_with_what_was_used() {
    let world = World::new();
    let lines = world.run(&["demo", "--json"]).ends(0).lines();
    let ids = |kind: &str| -> Vec<&str> {
        let all = lines.iter().filter(|line| line["type"] == kind);
        all.map(|line| line["call_id"].as_str().expect("an id")).collect()
    };
    let (mut calls, mut ends) = (ids("call"), ids("observation"));
    assert_eq!((calls.len(), ends.len()), (6, 6), "one that waits behind another is told once");
    calls.sort_unstable();
    ends.sort_unstable();
    assert_eq!(calls, ends);
    calls.dedup();
    assert_eq!(calls.len(), 6, "each has its own");
    let end = lines.last().expect("an end");
    assert_eq!((&end["usage"]["tool_calls"], end["usage"]["output_tokens"].as_u64() > Some(0)), (&6.into(), true));
    let end = world.run(&["demo", "--crash", "--json"]).ends(0).lines().pop().expect("an end");
    assert_eq!((&end["unknown"], end["usage"]["turns"].as_u64() > Some(1)), (&1.into(), true), "{end}");
}
