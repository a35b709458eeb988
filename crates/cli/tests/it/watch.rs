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

/// The choices of an ask are on the screen, and could be seen.
fn seen(out: &mut std::process::ChildStdout) -> String {
    let shown = until(out, "q leave");
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    shown
}

fn types(keys: &mut std::process::ChildStdin, text: &[u8]) {
    std::io::Write::write_all(keys, text).expect("typed");
}

/// Selects and confirms.
fn answers(keys: &mut std::process::ChildStdin, out: &mut std::process::ChildStdout, key: &str) {
    types(keys, key.as_bytes());
    until(out, &format!("Enter confirms: {key}"));
    types(keys, b"\r");
}

#[test]
fn on_a_terminal_a_key_selects_and_enter_answers_each_ask() {
    let (world, ask) = asking();
    let (mut child, mut keys, mut out) = on_terminal(&world, "approvals watch");
    let shown = seen(&mut out);
    assert!(shown.contains(&ask) && shown.contains("+gamma"), "{shown}");
    answers(&mut keys, &mut out, "a");
    until(&mut out, "recorded: session");
    assert_eq!(world.read("a.txt"), "alpha\ngamma\n");
    // What comes while it watches is shown as well.
    let next = world.ask_to_edit("a.txt", "gamma", "delta");
    assert!(seen(&mut out).contains(&next));
    answers(&mut keys, &mut out, "d");
    until(&mut out, "refused: edit");
    types(&mut keys, b"q");
    assert!(child.wait().expect("ends").success());
    assert_eq!(world.read("a.txt"), "alpha\ngamma\n");
    world.run(&["approvals"]).ends(0).warns("nothing waits");
}

#[test]
fn nothing_typed_before_an_ask_is_shown_and_no_word_answers_it() {
    let (world, _) = asking();
    let (mut child, mut keys, mut out) = on_terminal(&world, "approvals watch");
    until(&mut out, "q leave");
    // Too soon: text, and what ends the line drops it.
    types(&mut keys, b"a");
    until(&mut out, "words go nowhere here");
    types(&mut keys, b"\r");
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    for word in ["also", "aa", "please", "try", "don't"] {
        for letter in word.chars() {
            types(&mut keys, letter.to_string().as_bytes());
            std::thread::sleep(std::time::Duration::from_millis(120));
        }
        types(&mut keys, b"\r");
    }
    // A key and Enter that come together: nobody can have seen what would be confirmed. Escape takes it back.
    types(&mut keys, b"a\r");
    until(&mut out, "Enter confirms: a");
    types(&mut keys, b"\x1b");
    until(&mut out, "nothing is selected");
    types(&mut keys, b"\r");
    answers(&mut keys, &mut out, "q");
    assert!(child.wait().expect("ends").success());
    let listed = world.run(&["approvals", "list", "--json"]).ends(0).json();
    assert_eq!(listed["asks"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
}

#[test]
fn an_answer_for_the_project_is_remembered() {
    let (world, _) = asking();
    let (mut child, mut keys, mut out) = on_terminal(&world, "approvals watch");
    seen(&mut out);
    answers(&mut keys, &mut out, "p");
    until(&mut out, "recorded: session");
    types(&mut keys, b"q");
    assert!(child.wait().expect("ends").success());
    let listed = world.run(&["grants"]).ends(0).says("edit on path /workspace/a.txt").says("you revoke it");
    assert!(!listed.out.contains("is revoked"), "nobody took it back: {}", listed.out);
    world.run(&["call", "edit", &common::edit("a.txt", "gamma", "delta")]).ends(0);
}

#[test]
fn a_skipped_ask_waits_on_and_keys_where_nothing_waits_say_so_once() {
    let (world, _) = asking();
    let (mut child, mut keys, mut out) = on_terminal(&world, "approvals watch");
    seen(&mut out);
    // An arrow is three bytes, and no answer.
    types(&mut keys, b"\x1b[C");
    answers(&mut keys, &mut out, "s");
    types(&mut keys, b"zxq");
    let mut shown = String::new();
    std::io::Read::read_to_string(&mut out, &mut shown).expect("readable");
    assert!(child.wait().expect("ends").success());
    assert_eq!(shown.matches("nothing new waits for an answer; q leaves").count(), 1, "{shown}");
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
}
