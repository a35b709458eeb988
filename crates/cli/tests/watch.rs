//! Transcripts of `approvals watch`, as lines and on a terminal.

mod common;

use common::{World, on_terminal, until};

fn asking() -> (World, String) {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let ask = world.ask_to_edit("a.txt", "beta", "gamma");
    (world, ask)
}

#[test]
fn watch_prints_what_waits_as_lines_and_ends_with_its_input() {
    let (world, ask) = asking();
    world.run(&["approvals", "watch"]).ends(0).says(&ask).says("portcullis approvals show");
    let line = world.run(&["approvals", "watch", "--json"]).ends(0).lines();
    assert_eq!(line[0]["ask_id"], ask.as_str());
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
    world.run(&["grants"]).ends(0).says("edit on path /workspace/a.txt");
    world.run(&["call", "edit", &common::edit("a.txt", "gamma", "delta")]).ends(0);
}
