//! Ctrl-C and `sessions interrupt` end the command that runs, whichever tool runs it (tool-contract §14).

use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Ran, World, comes, interrupt};
use crate::run_talk::model;

/// The command says that it began, and would go on for ten minutes.
const SLOW: &str = "echo so far; touch began; sleep 600; touch ended";

/// A run in which `tool` runs `command`.
fn running(world: &World, tool: &str, command: &str) -> Child {
    let command = command.replace('\\', "\\\\").replace('"', "\\\"");
    let script = format!(
        "[[turn]]\ncalls = [{{ name = \"{tool}\", input = {{ command = \"{command}\" }} }}]\n[[turn]]\ntext = \"Done.\"\n"
    );
    let model = model(world, &script);
    let profile = if tool == "bash" { "code" } else { "managed" };
    let args = ["run", "go", "--model", &model, "--approvals", "allow", "--profile", profile];
    let child = world.command(&args).spawn().expect("starts");
    comes("the command runs", || world.workspace.join("began").exists());
    child
}

fn session(world: &World) -> String {
    world.run(&["sessions", "list"]).ends(0).id("sesn_")
}

/// The observation of the only call.
fn observation(world: &World) -> Value {
    let events = world.run(&["sessions", "events", &session(world), "--json"]).ends(0).lines();
    let found = events.iter().find(|event| event["type"] == "tool.observation").expect("an observation");
    serde_json::from_str(found["payload"].as_str().expect("a payload")).expect("JSON")
}

fn is_cancelled(world: &World, since: Instant, tool: &str) {
    assert!(since.elapsed() < Duration::from_secs(8), "{tool}: {:?}", since.elapsed());
    let seen = observation(world);
    assert_eq!((&seen["code"], &seen["synthetic"]), (&json!("cancelled"), &json!(true)), "{tool}: {seen}");
    assert_eq!(seen["side_effects"]["state"], "unknown", "{tool}: {seen}");
    assert!(seen["content"].to_string().contains("so far"), "{tool}: what was written is kept: {seen}");
    assert!(!world.workspace.join("ended").exists(), "{tool}");
}

#[test]
fn l24_ctrl_c_in_a_run_ends_the_command_of_every_shell_tool() {
    for tool in ["shell_run", "shell_exec", "bash"] {
        let world = World::new();
        let child = running(&world, tool, SLOW);
        let since = Instant::now();
        interrupt(&child);
        let ran: Ran = child.wait_with_output().expect("ends").into();
        let ran = ran.ends(130).warns("interrupted; go on with: portcullis run --session sesn_");
        let ran = ran.warns("(cancelled, ");
        assert!(!ran.err.contains("exit 130"), "{tool}: it did not end by itself: {}", ran.err);
        is_cancelled(&world, since, tool);
    }
}

#[test]
fn l24_sessions_interrupt_from_another_process_ends_the_command() {
    for tool in ["shell_run", "shell_exec"] {
        let world = World::new();
        let child = running(&world, tool, SLOW);
        let since = Instant::now();
        let told = world.run(&["sessions", "interrupt", &session(&world)]).ends(0);
        let told = told.warns("the session is running, and the process that runs it stops it: ");
        assert!(!told.err.contains("a worker takes it up"), "{}", told.err);
        let ran: Ran = child.wait_with_output().expect("ends").into();
        ran.ends(130);
        is_cancelled(&world, since, tool);
    }
}

/// A call of its own process, which asks first: `approvals allow` runs it.
fn calling(world: &World, tool: &str) -> Child {
    let input = json!({"command": SLOW}).to_string();
    let child = world.command(&["call", tool, &input, "--approvals", "allow"]).spawn().expect("starts");
    comes("the command runs", || world.workspace.join("began").exists());
    child
}

#[test]
fn l24_a_call_is_ended_by_ctrl_c_and_from_another_process() {
    for (tool, by_signal) in [("shell_run", true), ("shell_exec", true), ("shell_run", false), ("shell_exec", false)] {
        let world = World::new();
        let child = calling(&world, tool);
        let since = Instant::now();
        match by_signal {
            true => interrupt(&child),
            false => drop(world.run(&["sessions", "interrupt", &session(&world)]).ends(0)),
        }
        let ran: Ran = child.wait_with_output().expect("ends").into();
        assert_eq!(ran.code, if by_signal { 130 } else { 1 }, "{}{}", ran.out, ran.err);
        is_cancelled(&world, since, tool);
    }
}

#[test]
fn a_command_gets_an_interrupt_first_and_may_tidy_up() {
    let world = World::new();
    let tidy = "trap 'touch tidied; exit 3' INT; echo so far; touch began; while :; do sleep 0.1; done";
    let child = running(&world, "shell_run", tidy);
    let since = Instant::now();
    interrupt(&child);
    let ran: Ran = child.wait_with_output().expect("ends").into();
    ran.ends(130);
    assert!(world.workspace.join("tidied").exists());
    is_cancelled(&world, since, "shell_run");
}

#[test]
fn a_command_that_heeds_no_signal_is_killed() {
    for tool in ["shell_run", "shell_exec"] {
        let world = World::new();
        let deaf = "echo so far; touch began; sh -c 'trap \"\" INT TERM; while :; do sleep 0.1; done'; touch ended";
        let child = running(&world, tool, deaf);
        let since = Instant::now();
        interrupt(&child);
        let ran: Ran = child.wait_with_output().expect("ends").into();
        ran.ends(130);
        is_cancelled(&world, since, tool);
        if tool == "shell_exec" {
            let warnings = observation(&world)["warnings"].to_string();
            assert!(warnings.contains("its shell was ended with it"), "{warnings}");
        }
    }
}

/// An interrupt of a session that nobody works on withdraws its asks at once, and every command tells it so.
#[test]
fn an_interrupt_says_that_a_message_from_before_it_still_waits() {
    let world = World::new();
    let session = world.run(&["sessions", "new", "say hi"]).ends(0).id("sesn_");
    let told = world.run(&["sessions", "interrupt", &session]).ends(0);
    told.warns("not yet heard: 1 message; the next wake takes up what was said, and asks the model");
    let other = world.run(&["sessions", "new"]).ends(0).id("sesn_");
    let told = world.run(&["sessions", "interrupt", &other]).ends(0);
    assert!(!told.err.contains("not yet heard"), "{}", told.err);
}

#[test]
fn an_ask_is_withdrawn_wherever_it_is_shown_once_its_session_is_interrupted() {
    let world = World::new();
    let script = "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"touch made\" } }]\n";
    let model = crate::run_talk::model(&world, script);
    let asked = || {
        let session = world.run(&["sessions", "new", "make it"]).ends(0).id("sesn_");
        let ran = world.run(&["sessions", "wake", &session, "--model", &model]).ends(3);
        let ask = ran.id("ask_");
        (session, ask)
    };
    // The control: without an interrupt the ask waits, and an allow runs it.
    let (session, ask) = asked();
    world.run(&["sessions", "status", &session]).ends(0).says("requires_action").says("waits for an answer");
    world.run(&["approvals", "allow", &ask]).ends(0);
    std::fs::remove_file(world.workspace.join("made")).expect("it was made");

    let (session, ask) = asked();
    world.run(&["sessions", "interrupt", &session]).ends(0).warns(&format!("withdrawn: {ask}"));
    let status = world.run(&["sessions", "status", &session]).ends(0).says("rescheduling").says("interrupt").out;
    assert!(!status.contains("waits for an answer") && !status.contains("requires_action"), "{status}");
    let pending = world.run(&["approvals", "list"]).ends(0);
    assert!(!pending.out.contains(&ask), "{}", pending.out);
    world.run(&["approvals", "show", &ask]).ends(0).says("withdrawn");
    for reply in ["allow", "deny"] {
        let said = world.run(&["approvals", reply, &ask]).ends(1).warns("was withdrawn").err;
        assert!(!said.contains("pending") && !said.contains("seen through"), "{said}");
    }
    assert!(!world.workspace.join("made").exists());
    // To record it no model is needed.
    world.run(&["sessions", "wake", &session]).ends(0);
    world.run(&["sessions", "status", &session]).ends(0).says("idle").says("interrupted");
    world.run(&["audit", "verify"]).ends(0);
}
