//! Transcripts of messages that must lead somewhere: what is wrong, and what would be right.

use std::fs;

use crate::common::{Ran, World, edit};

#[test]
fn a_wrong_input_says_what_is_taken_and_where_to_look() {
    let world = World::with_file("notes.txt", "alpha\n");
    let bare = world.run(&["call", "read", "notes.txt"]).ends(1).warns("input_unparseable");
    bare.warns(r#"such as '{"file_path":"FILE_PATH"}'"#).warns("portcullis tools show read");
    let unknown = world.run(&["call", "read", r#"{"file_path":"notes.txt","path":"x"}"#]).ends(1);
    unknown.warns("'path' was unexpected").warns("it takes: file_path, ");
    world.run(&["call", "read", r#"{"file_path":""}"#]).ends(1).warns("it must not be empty or blank");
    world.run(&["call", "read", r#"{"file_path":"none"}"#]).ends(1).warns("does not exist");
}

#[test]
fn every_tool_shows_an_input_that_it_takes_when_it_is_given_a_wrong_one() {
    let world = World::new();
    let tools = world.run(&["tools", "--json"]).ends(0).json();
    let tools: Vec<&str> =
        tools["tools"].as_array().expect("a list").iter().filter_map(|t| t["name"].as_str()).collect();
    assert!(tools.len() > 20, "{tools:?}");
    for tool in tools {
        let wrong = world.run(&["call", tool, "{"]).ends(1).warns("input_unparseable");
        let (_, rest) = wrong.err.split_once("such as '").unwrap_or_else(|| panic!("{tool}: {}", wrong.err));
        let example = rest.split('\'').next().expect("quoted");
        serde_json::from_str::<serde_json::Value>(example).unwrap_or_else(|e| panic!("{tool}: {e}: {example}"));
        let judged = world.run(&["policy", "explain", tool, example, "--json"]).json();
        // An id cannot be made up: the example shows how it begins.
        let fits = judged["code"] != "schema_invalid" && judged["code"] != "input_unparseable";
        assert!(fits || example.contains("_…"), "{tool} does not take {example}: {judged}");
    }
}

#[test]
fn text_in_another_encoding_is_not_called_something_else() {
    let world = World::new();
    fs::write(world.workspace.join("latin.txt"), b"caf\xe9\n").expect("written");
    world.run(&["call", "read", r#"{"file_path":"latin.txt"}"#]).ends(1).warns("not UTF-8");
}

#[test]
fn what_is_kept_of_a_change_says_which_side_it_is() {
    let world = World::with_file("a.txt", "alpha\n");
    let ask = world.ask_to_edit("a.txt", "alpha", "beta");
    world.run(&["approvals", "allow", &ask]).ends(0).warns("file before kept as art_").warns("file after kept as art_");
}

#[test]
fn a_no_says_whose_it_is_and_what_goes_with_it() {
    let world = World::with_file("a.txt", "alpha\n");
    let ask = world.ask_to_edit("a.txt", "alpha", "beta");
    world.run(&["approvals", "deny", &ask, "--stop"]).ends(0).says("that it should stop is recorded");
    let flag = world.run(&["call", "edit", &edit("a.txt", "alpha", "beta"), "--approvals", "deny"]).ends(4);
    flag.warns("--approvals deny");
}

#[test]
fn the_ends_of_a_call_are_in_its_own_help() {
    let world = World::new();
    for command in [&["call", "--help"] as &[&str], &["approvals", "allow", "--help"]] {
        world.run(command).ends(0).says("Exit codes: 0 done").says("3 waits for an answer");
    }
}

#[test]
fn a_session_used_from_elsewhere_says_where_it_works() {
    let world = World::with_file("a.txt", "alpha\n");
    let read = r#"{"file_path":"a.txt"}"#;
    let session = world.run(&["call", "read", read]).ends(0).id("sesn_");
    let output = world.command(&["call", "read", read, "--session", &session]).current_dir("/").output();
    let elsewhere = Ran::from(output.expect("runs")).ends(0).says("alpha");
    elsewhere.warns(&format!("session {session} works in {}, not here: it goes on there", world.workspace.display()));
    let here = world.run(&["call", "read", read, "--session", &session]).ends(0);
    assert!(!here.err.contains("not here"), "{}", here.err);
}

/// In an empty `/etc`: the folders that are made below such a workspace are not for the machine of whoever tests.
#[test]
fn a_session_of_the_root_has_a_name() {
    if !crate::common::inside("wording::a_session_of_the_root_has_a_name") {
        return;
    }
    let mounted = std::process::Command::new("mount").args(["-t", "tmpfs", "tmpfs", "/etc"]).status();
    assert!(mounted.expect("`mount` runs").success());
    let world = World::with_file("a.txt", "alpha\n");
    let call = ["call", "read", r#"{"file_path":"a.txt"}"#];
    let root = |args: &[&str]| Ran::from(world.command(args).current_dir("/").output().expect("runs"));
    root(&call).ends(2).warns("the workspace / holds ");
    root(&[&call[..], &["--workspace-is-home"]].concat()).ends(1);
    world.run(&["sessions"]).ends(0).says("calls in /");
}
