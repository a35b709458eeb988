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
    let mut terminal = Terminal { keys, out, shown: String::new() };
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
    terminal.types("b");
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
fn a_run_waits_for_the_process_that_answered_its_ask_and_runs_the_call() {
    let world = World::new();
    let (child, mut terminal, ask) = asked(&world, "touch began; until [ -e go ]; do sleep 0.05; done");
    // Whoever types a reason is not interrupted, so it is certain that the other one runs the call.
    terminal.types("b");
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
