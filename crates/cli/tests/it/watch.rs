//! Transcripts of `approvals watch`, as lines and on a terminal.

use crate::common;

use common::{Ran, World, interrupt, on_terminal, until};

fn asking() -> (World, String) {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let ask = world.ask_to_edit("a.txt", "beta", "gamma");
    (world, ask)
}

#[test]
fn without_a_terminal_watch_prints_each_ask_as_a_line_and_goes_on() {
    let (world, ask) = asking();
    let mut child = world.command(&["approvals", "watch"]).spawn().expect("starts");
    let mut out = child.stdout.take().expect("piped");
    let shown = until(&mut out, "portcullis approvals show");
    assert!(shown.contains(&ask) && shown.contains(&format!("in {} (sesn_", world.workspace.display())), "{shown}");
    // Its input was at its end all the while.
    let next = world.ask_to_edit("a.txt", "alpha", "omega");
    assert!(until(&mut out, "portcullis approvals show").contains(&next));
    interrupt(&child);
    let ran: Ran = child.wait_with_output().expect("ends").into();
    ran.ends(0).warns("nothing is answered here");
}

#[test]
fn a_program_that_watches_reads_one_document_a_line() {
    let (world, ask) = asking();
    let mut child = world.command(&["approvals", "watch", "--json", "--quiet"]).spawn().expect("starts");
    let line = until(&mut child.stdout.take().expect("piped"), "\n");
    let line: serde_json::Value = serde_json::from_str(&line).expect("a document");
    assert_eq!((&line["ask_id"], &line["cwd"]), (&ask.into(), &world.workspace.display().to_string().into()));
    interrupt(&child);
    assert!(child.wait().expect("ends").success());
}

#[test]
fn on_a_terminal_one_key_answers_each_ask() {
    let (world, ask) = asking();
    let (mut child, mut keys, mut out) = on_terminal(&world, "approvals watch");
    let shown = until(&mut out, "s skip");
    assert!(shown.contains(&ask) && shown.contains("+gamma"), "{shown}");
    std::io::Write::write_all(&mut keys, b"xa").expect("typed");
    until(&mut out, "recorded: session");
    assert_eq!(world.read("a.txt"), "alpha\ngamma\n");
    // What comes while it watches is shown as well.
    let next = world.ask_to_edit("a.txt", "gamma", "delta");
    assert!(until(&mut out, "s skip").contains(&next));
    std::io::Write::write_all(&mut keys, b"d").expect("typed");
    until(&mut out, "refused: edit");
    std::io::Write::write_all(&mut keys, b"q").expect("typed");
    assert!(child.wait().expect("ends").success());
    assert_eq!(world.read("a.txt"), "alpha\ngamma\n");
    world.run(&["approvals"]).ends(0).warns("nothing waits");
}

#[test]
fn a_key_typed_before_an_ask_is_shown_does_not_answer_it() {
    let (world, _) = asking();
    world.ask_to_edit("a.txt", "alpha", "omega");
    let (mut child, mut keys, mut out) = on_terminal(&world, "approvals watch");
    until(&mut out, "s skip");
    // A key that bounces, and more than the watch keeps: all of it was typed at the first ask.
    std::io::Write::write_all(&mut keys, &[b'a'; 40]).expect("typed");
    until(&mut out, "s skip");
    std::io::Write::write_all(&mut keys, b"q").expect("typed");
    assert!(child.wait().expect("ends").success());
    let listed = world.run(&["approvals", "list", "--json"]).ends(0).json();
    assert_eq!(listed["asks"].as_array().map(Vec::len), Some(1), "one key answers one ask: {listed}");
}

#[test]
fn a_key_remembers_an_answer_for_the_project() {
    let (world, _) = asking();
    let (mut child, mut keys, mut out) = on_terminal(&world, "approvals watch");
    until(&mut out, "p this project");
    std::io::Write::write_all(&mut keys, b"p").expect("typed");
    until(&mut out, "recorded: session");
    std::io::Write::write_all(&mut keys, b"q").expect("typed");
    assert!(child.wait().expect("ends").success());
    let listed = world.run(&["grants"]).ends(0).says("edit on path /workspace/a.txt").says("you revoke it");
    assert!(!listed.out.contains("is revoked"), "nobody took it back: {}", listed.out);
    world.run(&["call", "edit", &common::edit("a.txt", "gamma", "delta")]).ends(0);
}

#[test]
fn a_key_that_means_nothing_is_answered_with_those_that_work_once() {
    let (world, _) = asking();
    let (mut child, mut keys, mut out) = on_terminal(&world, "approvals watch");
    until(&mut out, "s skip");
    // An arrow is three bytes, and one press. Skipped then; what follows is typed where nothing is asked.
    std::io::Write::write_all(&mut keys, b"\x1b[Cszq").expect("typed");
    let mut shown = String::new();
    std::io::Read::read_to_string(&mut out, &mut shown).expect("readable");
    assert!(child.wait().expect("ends").success());
    let said = |words: &str| shown.matches(words).count();
    assert_eq!(said("that key does nothing here; these do: a allow once"), 1, "{shown}");
    assert_eq!(said("nothing new waits for an answer; q leaves"), 1, "{shown}");
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
}
