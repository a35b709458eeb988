//! `--log`: what a person sees of a run on standard error; and what a build without a collector says of one.

use crate::common::World;

const CONTENT: &str = "what-the-file-holds";
const SCRIPT: &str = r#"
[[turn]]
calls = [{ name = "read", input = { file_path = "a.txt" } }]
[[turn]]
text = "It was read."
"#;

/// A world with a file, and the name of a model that reads it.
pub fn world() -> (World, String) {
    let world = World::with_file("a.txt", &format!("{CONTENT}\n"));
    let script = world.home.with_file_name("script.toml");
    std::fs::write(&script, SCRIPT).expect("written");
    (world, format!("scripted:{}", script.display()))
}

#[test]
fn log_shows_spans_with_their_times_on_standard_error_alone() {
    let (world, model) = world();
    let quiet = world.run(&["run", "read it", "--model", &model]).ends(0);
    assert!(!quiet.err.contains("time.busy"), "nothing is logged unless somebody wants it: {}", quiet.err);

    let mut command = world.command(&["run", "read it", "--model", &model]);
    let ran: crate::common::Ran = command.env("PORTCULLIS_LOG", "info").output().expect("it runs").into();
    let ran = ran.ends(0);
    assert_eq!(ran.out, quiet.out, "standard output is for results");
    let wakes = ran.err.lines().filter(|line| line.contains("time.busy=") && line.contains("end=\"end_turn\""));
    assert_eq!(wakes.count(), 1, "{}", ran.err);
    assert_eq!(ran.err.matches("stop=\"tool_use\"").count(), 1, "{}", ran.err);
    assert_eq!(ran.err.matches("stop=\"end_turn\"").count(), 1, "{}", ran.err);
    assert_eq!(ran.err.matches("requests=").count(), 1, "told once, at the end: {}", ran.err);
    assert_eq!(ran.err.matches("message_id=msg_").count(), 2, "{}", ran.err);
    let call = ran.err.lines().find(|line| line.contains("tool=\"read\"")).expect("the call");
    assert!(call.contains("wake{session=sesn_") && call.contains("code=ok") && call.contains("time.busy="), "{call}");
    assert!(!ran.err.contains("lookup"), "phases are for debug: {}", ran.err);
    let logged: String = ran.err.lines().filter(|line| line.contains("time.busy=")).collect();
    assert!(!logged.contains(CONTENT) && !logged.contains("a.txt"), "no input and no output: {logged}");
    assert!(logged.contains("model=\"script.toml\"") && !logged.contains("/script.toml"), "no place: {logged}");
}

#[test]
fn log_debug_shows_the_phases_of_a_call_and_the_flag_beats_the_variable() {
    let (world, _) = world();
    let mut command =
        world.command(&["--log", "portcullis_pipeline=debug", "call", "read", r#"{"file_path":"a.txt"}"#]);
    let ran: crate::common::Ran = command.env("PORTCULLIS_LOG", "off").output().expect("it runs").into();
    let ran = ran.ends(0).says(CONTENT);
    for phase in ["lookup", "validate", "permission", "schedule", "execute", "normalize", "bound", "commit"] {
        let line = ran.err.lines().find(|line| line.contains(&format!(":{phase}")) && line.contains("time.busy="));
        assert!(line.is_some() || phase == "commit", "{phase}: {}", ran.err);
    }
    assert!(ran.err.contains("commit{events="), "{}", ran.err);
    assert!(!ran.err.contains(CONTENT), "{}", ran.err);
}

#[test]
fn log_a_filter_that_is_none_is_refused_with_what_is_wanted() {
    let (world, _) = world();
    world.run(&["--log", "inof", "tools"]).ends(2).warns("--log: `inof` is not one of").one_error_line();
    let mut command = world.command(&["tools"]);
    let ran: crate::common::Ran = command.env("PORTCULLIS_LOG", "hyper=trace").output().expect("it runs").into();
    ran.ends(2).warns("PORTCULLIS_LOG: `hyper` is not one of").one_error_line();
}

#[test]
fn a_collector_is_named_by_a_persons_own_file_alone() {
    let (world, _) = world();
    world.write(".portcullis/config.toml", "[telemetry]\notlp_endpoint = \"http://127.0.0.1:1\"\n");
    let read = ["call", "read", r#"{"file_path":"a.txt"}"#];
    world.run(&read).ends(2).warns("`telemetry` is not taken from a project's file");
}

#[cfg(not(feature = "otel"))]
#[test]
fn a_build_that_sends_nothing_says_so_where_a_collector_is_named() {
    let (world, _) = world();
    world.configure("[telemetry]\notlp_endpoint = \"http://127.0.0.1:1\"\n");
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0).warns("this build sends nothing");
    world.run(&["doctor"]).says("this build sends nothing");
    world.configure("[telemetry]\notlp_endpoint = \"collector:4318\"\n");
    world.run(&["tools"]).ends(2).warns("config.toml:2: `telemetry.otlp_endpoint`: `collector:4318` is not an address");
}
