//! Somebody else answers an ask of a run first: the first answer counts, and the run goes on.

use std::io::Write as _;

use crate::common::{World, comes, on_terminal};
use crate::run_talk::{READY, Terminal, model};

const SCRIPT: &str =
    "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"COMMAND\" } }]\n[[turn]]\ntext = \"All done.\"\n";

/// A run that shows its ask, which another process answers.
fn asked(world: &World, command: &str) -> (std::process::Child, Terminal, String) {
    let model = model(world, &SCRIPT.replace("COMMAND", command));
    let (child, keys, out) = on_terminal(world, &format!("run --model {model} --approvals ask"));
    let mut terminal = Terminal::new(keys, out);
    terminal.until(READY);
    terminal.types("go\r");
    terminal.until("b no, because");
    let ask = world.run(&["approvals", "list"]).ends(0).id("ask_");
    (child, terminal, ask)
}

fn leave(mut child: std::process::Child, mut terminal: Terminal) {
    terminal.until(READY);
    terminal.types("/quit\r");
    terminal.until("go on with: portcullis run --session");
    assert!(child.wait().expect("ends").success());
}

#[test]
fn s10_an_answer_that_comes_too_late_is_told_and_the_run_goes_on() {
    let world = World::new();
    let (child, mut terminal, ask) = asked(&world, "touch made");
    // Whoever types a reason is not interrupted, so this answer is certain to be the second.
    terminal.answers("b");
    terminal.until("one line, Enter ends it");
    world.run(&["approvals", "allow", &ask]).ends(0);
    terminal.types("I do not want it\n");
    terminal.until(&format!("{ask} meanwhile: allowed by"));
    terminal.until("All done.");
    assert!(world.workspace.join("made").exists());
    leave(child, terminal);
}

#[test]
fn s10_an_ask_that_somebody_else_answers_while_it_is_shown_is_taken_off_the_screen() {
    let world = World::new();
    let (child, mut terminal, ask) = asked(&world, "touch made");
    world.run(&["approvals", "allow", &ask]).ends(0);
    terminal.until(&format!("{ask} meanwhile: allowed by"));
    terminal.until("All done.");
    leave(child, terminal);
}

#[test]
fn a_call_that_ran_or_was_refused_elsewhere_is_shown_as_if_it_had_run_here() {
    let world = World::new();
    let (child, mut terminal, ask) = asked(&world, "touch made; echo sixty-six; echo oops >&2");
    let ran = world.run(&["approvals", "allow", &ask]).ends(0);
    assert!(!ran.err.contains("yet to hear") && !ran.err.contains("sessions wake"), "the run goes on: {}", ran.err);
    let shown = terminal.until("All done.");
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text} is missing: {shown}"));
    assert!(at("meanwhile: allowed by") < at("✓") && at("✓") < at("│ sixty-six"), "{shown}");
    assert!(at("│ sixty-six") < at("stderr:") && at("stderr:") < at("│ oops"), "{shown}");
    leave(child, terminal);
    // With nobody there the command that goes on is named.
    let model = model(&world, &SCRIPT.replace("COMMAND", "touch two"));
    let session = world.run(&["run", "go", "--model", &model]).ends(3).id("sesn_");
    let ask = world.run(&["approvals", "list"]).ends(0).id("ask_");
    world.run(&["approvals", "allow", &ask]).ends(0).warns(&format!("go on with: portcullis run --session {session}"));

    let world = World::new();
    let (child, mut terminal, ask) = asked(&world, "touch made");
    world.run(&["approvals", "deny", &ask]).ends(0);
    let shown = terminal.until("All done.");
    assert!(shown.contains("✗") && shown.contains("user_denied"), "{shown}");
    leave(child, terminal);
}

#[test]
fn a_run_waits_for_the_process_that_answered_its_ask_and_runs_the_call() {
    let world = World::new();
    let (child, mut terminal, ask) = asked(&world, "touch began; until [ -e go ]; do sleep 0.05; done");
    // Whoever types a reason is not interrupted, so it is certain that the other one runs the call.
    terminal.answers("b");
    terminal.until("one line, Enter ends it");
    let mut other = world.command(&["approvals", "allow", &ask]).spawn().expect("it starts");
    comes("the other one runs it", || world.workspace.join("began").exists());
    terminal.types("I do not want it\n");
    terminal.until(&format!("{ask} meanwhile: allowed by"));
    // It has waited for as long as a call waits for another, and has not given up.
    terminal.until("this goes on when that is done");
    std::fs::File::create(world.workspace.join("go")).and_then(|mut file| file.write_all(b"")).expect("made");
    assert!(other.wait().expect("ends").success());
    terminal.until("All done.");
    leave(child, terminal);
}

/// A run of one prompt that shows its ask.
fn one_asked(world: &World) -> (std::process::Child, Terminal, String) {
    let model = model(world, &SCRIPT.replace("COMMAND", "touch made"));
    let (child, keys, out) = on_terminal(world, &format!("run go --model {model} --approvals ask"));
    let mut terminal = Terminal::new(keys, out);
    terminal.until("b no, because");
    let session = world.run(&["sessions", "list"]).ends(0).id("sesn_");
    (child, terminal, session)
}

#[test]
fn h26_a_run_at_its_ask_hears_that_somebody_interrupted_the_session() {
    let world = World::new();
    let (child, mut terminal, ask) = asked(&world, "touch made");
    let session = world.run(&["sessions", "list"]).ends(0).id("sesn_");
    world.run(&["sessions", "interrupt", &session]).ends(0);
    terminal.until("interrupted elsewhere");
    leave(child, terminal);
    world.run(&["approvals", "allow", &ask]).ends(1).warns("was withdrawn");
    assert!(!world.workspace.join("made").exists());
}

#[test]
fn h26_a_run_whose_ask_a_worker_closes_after_an_interrupt_was_interrupted() {
    let world = World::new();
    let (mut child, mut terminal, session) = one_asked(&world);
    let script = model(&world, &SCRIPT.replace("COMMAND", "touch made"));
    let worker = crate::driven::worker(&world, &script, &[]);
    world.run(&["sessions", "interrupt", &session]).ends(0);
    terminal.until("interrupted; go on with");
    assert_eq!(child.wait().expect("ends").code(), Some(130));
    assert!(!terminal.shown.contains("in place of this run"), "{}", terminal.shown);
    drop(worker);
}

#[test]
fn ctrl_c_at_an_ask_stops_also_where_words_were_typed_before_it() {
    let world = World::new();
    let (mut child, mut terminal, session) = one_asked(&world);
    terminal.types("hm, wait\r");
    terminal.until("> hm, wait");
    let heard = || crate::driven::count(&crate::driven::events(&world, &session), "user.message");
    comes("the words are kept", || heard() == 2);
    terminal.types("\x03");
    terminal.until("withdrawn: ask_");
    terminal.until("what you said is kept");
    terminal.until("interrupted; go on with");
    assert_eq!(child.wait().expect("ends").code(), Some(130));
    let asked = || crate::driven::count(&crate::driven::events(&world, &session), "span.model_request_start");
    assert_eq!(asked(), 1, "the model is not asked again");
    // The ask is withdrawn at once, and says so everywhere.
    world.run(&["approvals", "list"]).ends(0).warns("nothing waits");
    world.run(&["sessions", "list"]).ends(0).says(" due ");
    let status = world.run(&["sessions", "status", &session]).ends(0).says("(user.message)");
    assert!(!status.out.contains("waits for an answer"), "{}", status.out);
    // Whoever goes on goes on with them.
    let script = model(&world, "[[turn]]\ntext = \"First.\"\n[[turn]]\ntext = \"You said wait.\"\n");
    let ran = world.run(&["run", "--continue", "--model", &script, "go on"]).ends(0).says("You said wait.");
    assert!(!ran.err.contains("an ask waits"), "{}", ran.err);
}
