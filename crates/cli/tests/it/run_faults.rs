//! Models that misbehave, and runs that are killed: each leaves a transcript that makes sense.

use crate::common;
use crate::driven::{self, codes, events};
use crate::processes;

use common::{Ran, World, interrupt};

fn script(world: &World, text: &str) -> String {
    let path = world.home.with_file_name("script.toml");
    std::fs::write(&path, text).expect("written");
    format!("scripted:{}", path.display())
}

fn run(world: &World, text: &str, more: &[&str]) -> Ran {
    let model = script(world, text);
    world.run(&[&["run", "go", "--model", &model], more].concat())
}

/// The log is whole, folds to what is stored, and every intent has its observation.
#[track_caller]
fn is_sane(world: &World, ran: &Ran) {
    let session = ran.id("sesn_");
    world.run(&["audit", "verify", &session]).ends(0);
    world.run(&["replay", &session, "--mode", "rebuild"]).ends(0);
    world.run(&["sessions", "show", &session]).ends(0);
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0);
    let count = |kind: &str| events.lines().iter().filter(|event| event["type"] == kind).count();
    assert_eq!(count("tool.intent"), count("tool.observation"));
    assert_eq!(count("span.started"), count("span.completed"), "no wake is left open");
}

#[test]
fn calls_that_are_none_are_told_and_the_model_goes_on() {
    let world = World::with_file("a.txt", "hello\n");
    let ran = run(
        &world,
        r#"
[[turn]]
calls = [{ name = "no_such_tool", input = {} }, { name = "read", arguments = "not json" }]
[[turn]]
calls = [{ name = "read", input = { file_path = "a.txt" }, id = "same" }, { name = "read", input = { file_path = "a.txt" }, id = "same" }]
[[turn]]
text = "I give up."
"#,
        &[],
    )
    .ends(0);
    let ran = ran.warns("(unknown_tool").warns("(input_unparseable").warns("(duplicate_call").says("I give up.");
    is_sane(&world, &ran);
}

#[test]
fn half_an_answer_is_not_used_and_is_asked_for_again() {
    let world = World::with_file("a.txt", "hello\n");
    let text = "[[turn]]\ntext = \"A long answer that will break off in the middle of it.\"\n\
                [defaults]\nfail = [{ turn = 1, cut_after_bytes = 20 }]\n";
    let ran = run(&world, text, &[]).ends(0).warns("the model failed").warns("next try in 5 s");
    assert!(ran.out.ends_with("A long answer that will break off in the middle of it.\n"), "{}", ran.out);
    is_sane(&world, &ran);
}

#[test]
fn a_provider_that_has_no_room_is_waited_for_and_ctrl_c_leaves() {
    for status in ["429", "500", "529"] {
        let world = World::with_file("a.txt", "hello\n");
        let text = format!(
            "[[turn]]\ntext = \"done\"\n[defaults]\nfail = [{{ turn = 1, status = {status}, retry_after_ms = 60000 }}]\n"
        );
        let model = script(&world, &text);
        let mut child = world.command(&["run", "go", "--model", &model]).spawn().expect("starts");
        let mut err = child.stderr.take().expect("piped");
        common::until(&mut err, "next try in");
        interrupt(&child);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut err, &mut rest).expect("read");
        assert_eq!(child.wait().expect("ends").code(), Some(130), "{status}: {rest}");
        assert!(rest.contains("go on with: portcullis run --session"), "{rest}");
        is_sane(&world, &Ran { code: 0, out: rest, err: String::new() });
    }
}

#[test]
fn a_request_that_will_not_go_well_later_ends_the_run_at_once() {
    let world = World::with_file("a.txt", "hello\n");
    let text = "[[turn]]\ntext = \"done\"\n[defaults]\nfail = [{ turn = 1, status = 401 }]\n";
    let ran = run(&world, text, &[]).ends(1).warns("error: the model failed (auth)").warns("go on with:");
    is_sane(&world, &ran);
    let session = ran.id("sesn_");
    // A script that fails again at each start is another's matter: with a good one the session goes on.
    let model = script(&world, "[[turn]]\ntext = \"done\"\n");
    world.run(&["run", "go on", "--session", &session, "--model", &model]).ends(0).says("done");
}

#[test]
fn an_answer_of_ten_megabytes_is_taken_or_refused_in_whole() {
    let world = World::with_file("a.txt", "hello\n");
    let big = "x".repeat(10 << 20);
    let text = format!(
        "[[turn]]\ncalls = [{{ name = \"write\", input = {{ file_path = \"b.txt\", content = \"{big}\" }} }}]\n[[turn]]\ntext = \"done\"\n"
    );
    let ran = run(&world, &text, &["--approvals", "allow"]).ends(0).says("done").warns("✗ write");
    assert!(!world.workspace.join("b.txt").exists());
    is_sane(&world, &ran);
}

#[test]
fn a_model_that_repeats_one_call_for_ever_is_stopped() {
    let world = World::with_file("a.txt", "hello\n");
    let text = "[[turn]]\ncalls = [{ name = \"read\", input = { file_path = \"a.txt\" } }]\nrepeat = 200\n";
    // It is told that it goes in circles long before it is stopped.
    let ran = run(&world, text, &[]).ends(0).warns("(loop_detected").warns("50 requests");
    is_sane(&world, &ran);
    let codes = codes(&events(&world, &ran.id("sesn_")));
    let told = codes.iter().position(|code| code == "loop_detected").expect("it is told");
    assert!(told <= 5 && codes[told..].iter().all(|code| code == "loop_detected"), "{codes:?}");
}

#[test]
fn ten_megabytes_of_text_are_one_answer_and_the_session_goes_on() {
    let world = World::with_file("a.txt", "hello\n");
    let big = "words and more ".repeat((10 << 20) / 15);
    let text = format!("[[turn]]\ntext = \"{big}\"\n[[turn]]\ntext = \"That was long.\"\n");
    let ran = run(&world, &text, &[]).ends(0).warns("fact-check: no_claims");
    assert!(ran.out.len() >= big.len(), "all of it is shown: {} bytes", ran.out.len());
    is_sane(&world, &ran);
    let model = script(&world, &text);
    world.run(&["run", "and now?", "--continue", "--model", &model]).ends(0).says("That was long.");
    is_sane(&world, &ran);
}

#[test]
fn a_second_ctrl_c_leaves_at_once_and_the_session_goes_on_later() {
    let world = World::with_file("a.txt", "hello\n");
    // A command that heeds no polite word, so that there is something to wait for.
    let text = r#"
[[turn]]
calls = [{ name = "bash", input = { command = "sh -c 'trap \"\" TERM INT HUP; touch began; while :; do sleep 0.1; done' heeds-nothing" } }]
[[turn]]
text = "I go on."
"#;
    let model = script(&world, text);
    let mut child = world.command(&["run", "go", "--model", &model, "--approvals", "allow"]).spawn().expect("starts");
    driven::until("its command runs", || world.workspace.join("began").exists());
    let started = processes::descendants(child.id());
    assert!(!started.is_empty());
    let mut err = child.stderr.take().expect("piped");
    interrupt(&child);
    common::until(&mut err, "Ctrl-C again leaves at once");
    let since = std::time::Instant::now();
    interrupt(&child);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut err, &mut rest).expect("read");
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{rest}");
    assert!(since.elapsed() < std::time::Duration::from_secs(2), "{:?}", since.elapsed());
    assert!(rest.contains("left before the session settled"), "{rest}");
    driven::until("nothing that it started runs", || !started.iter().any(processes::runs_still));
    let ran = world.run(&["run", "go on", "--continue", "--model", &model]).ends(0).says("I go on.");
    is_sane(&world, &ran);
    let codes = codes(&events(&world, &ran.id("sesn_")));
    assert!(codes == ["outcome_unknown"] || codes == ["cancelled"], "{codes:?}");
}

#[test]
fn a_killed_run_goes_on_with_continue_and_its_command_is_dead_and_unknown() {
    let world = World::with_file("a.txt", "hello\n");
    let text = r#"
[[turn]]
calls = [{ name = "read", input = { file_path = "a.txt" } }]
[[turn]]
calls = [{ name = "bash", input = { command = "echo began >> began.txt; sleep 5; echo ended >> ended.txt" } }]
[[turn]]
when = { contains = "outcome_unknown" }
text = "I do not know how that ended."
[[turn]]
text = "It ended."
"#;
    let model = script(&world, text);
    let mut child = world.command(&["run", "go", "--model", &model, "--approvals", "allow"]).spawn().expect("starts");
    while !world.workspace.join("began.txt").exists() {
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    let since = std::time::Instant::now();
    let ran = world.run(&["run", "--continue", "--model", &model]).ends(0).says("I do not know how that ended.");
    is_sane(&world, &ran);
    let session = ran.id("sesn_");
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0).out;
    assert_eq!(events.matches(r#"\"code\":\"outcome_unknown\""#).count(), 1);
    assert_eq!(world.read("began.txt").lines().count(), 1, "nothing ran twice");
    // Had it lived, it would have ended by then.
    while since.elapsed() < std::time::Duration::from_secs(6) {
        assert!(!world.workspace.join("ended.txt").exists(), "the command outlived its run");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
