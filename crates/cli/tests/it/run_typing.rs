//! What is typed at a run is what a person writes. At an ask one lone key on an empty line selects, and Enter confirms.

use std::process::Child;

use crate::common::{World, comes, on_terminal};
use crate::run_talk::{READY, Terminal, model};

/// The choices are on the screen.
const CHOICES: &str = "b no, because";

const EDIT: &str = "[[turn]]\ncalls = [{ name = \"read\", input = { file_path = \"a.txt\" } }]\n\
                    [[turn]]\ncalls = [{ name = \"edit\", input = { file_path = \"a.txt\", old_string = \"one\", new_string = \"two\" } }]\n";

/// A conversation in which somebody said `go`.
pub fn talking(world: &World, script: &str, flags: &str) -> (Child, Terminal) {
    let model = model(world, script);
    let (child, keys, out) = on_terminal(world, &format!("run --model {model} {flags}"));
    let mut terminal = Terminal::new(keys, out);
    terminal.says("go");
    (child, terminal)
}

fn leave(mut child: Child, mut terminal: Terminal) {
    terminal.says("/quit");
    terminal.until("go on with: portcullis run --session");
    // The shell around it was interrupted as well where Ctrl-C was pressed: its code says nothing.
    child.wait().expect("ends");
}

fn waits(world: &World) -> usize {
    world.run(&["approvals", "list", "--json"]).ends(0).json()["asks"].as_array().expect("asks").len()
}

fn remembers(world: &World) -> bool {
    world.run(&["grants", "list", "--all"]).ends(0).out.contains("/workspace/a.txt")
}

fn said(world: &World, words: &str) -> bool {
    world.run(&["sessions", "search", words]).out.contains("user.message")
}

#[test]
fn words_typed_across_the_moment_an_ask_appears_are_no_answer_and_reach_the_session() {
    let world = World::with_file("a.txt", "one\n");
    let script = format!(
        "[[turn]]\ntext = \"I will look at it first.\"\n{}[[turn]]\nwhen = {{ contains = \"stop and tap apart\" }}\ntext = \"I heard you.\"\n[[turn]]\ntext = \"Nobody spoke.\"\n[defaults]\nstream_delay_ms = 100\n",
        EDIT.strip_prefix("[[turn]]\n").expect("a turn")
    );
    let (child, mut terminal) = talking(&world, &script, "--approvals ask");
    terminal.until("I will");
    terminal.types("stop and t");
    terminal.until("> stop and t");
    // The question is on the screen, and the person goes on: every letter of it would be an answer.
    terminal.until("asked because");
    for letter in "ap apart".chars() {
        terminal.types(&letter.to_string());
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    terminal.types("\r");
    comes("the words are the session's", || said(&world, "stop and tap apart"));
    assert_eq!((waits(&world), remembers(&world)), (1, false));
    terminal.until(CHOICES);
    terminal.answers("d");
    terminal.until("user_denied");
    terminal.until("I heard you.");
    leave(child, terminal);
    assert_eq!(world.read("a.txt"), "one\n");
    // What was typed is nobody else's to read.
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&world.home.join("history").metadata().expect("kept").permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn with_text_on_the_line_a_key_is_text_and_a_line_that_is_not_ended_stays() {
    let world = World::with_file("a.txt", "one\n");
    let (mut child, mut terminal) = talking(&world, &format!("{EDIT}[[turn]]\ntext = \"Done.\"\n"), "--approvals ask");
    terminal.until(CHOICES);
    terminal.types("half ");
    terminal.until("you are writing: words with Enter go to the session");
    terminal.until("> half ");
    // However long nothing was typed.
    std::thread::sleep(std::time::Duration::from_millis(1_300));
    terminal.types("a");
    terminal.until("> half a");
    assert_eq!((waits(&world), world.read("a.txt").as_str()), (1, "one\n"));
    // The line is emptied, and then a key selects.
    terminal.types("\x15");
    terminal.answers("a");
    terminal.until("Done.");
    assert_eq!(world.read("a.txt"), "two\n");
    terminal.until(READY);
    terminal.types("/quit\r");
    assert!(child.wait().expect("ends").success());
}

#[test]
fn a_paste_is_no_answer() {
    let world = World::with_file("a.txt", "one\n");
    let (child, mut terminal) = talking(&world, &format!("{EDIT}[[turn]]\ntext = \"Done.\"\n"), "--approvals ask");
    let shown = terminal.until(CHOICES);
    assert!(shown.contains("\x1b[?2004h"), "what is pasted is marked: {shown:?}");
    terminal.types("\x1b[200~a\x1b[201~");
    terminal.until("you are writing");
    terminal.types("\x1b[200~bout the other\nthing\x1b[201~\r");
    comes("it is the session's", || said(&world, "about the other"));
    assert_eq!((waits(&world), remembers(&world), world.read("a.txt").as_str()), (1, false, "one\n"));
    terminal.until(CHOICES);
    terminal.answers("a");
    terminal.until("Done.");
    assert_eq!(world.read("a.txt"), "two\n");
    leave(child, terminal);
}

#[test]
fn an_answer_for_more_than_one_call_shows_its_rule_and_is_confirmed() {
    let world = World::with_file("a.txt", "one\n");
    let (child, mut terminal) = talking(&world, &format!("{EDIT}[[turn]]\ntext = \"Done.\"\n"), "--approvals ask");
    terminal.until(CHOICES);
    let shown = terminal.selects("p");
    assert!(
        shown.contains("allow `edit` on exactly: /workspace/a.txt") && shown.contains("for every session in"),
        "{shown}"
    );
    assert_eq!((waits(&world), remembers(&world)), (1, false), "a key remembers nothing");
    terminal.types("\x1b");
    // With what follows at once it would be another key.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let shown = terminal.selects("t");
    assert!(shown.contains("for this session") && !shown.contains("for good"), "{shown}");
    // A word makes text of the key; the Enter that ends it confirms nothing.
    terminal.types("ap");
    terminal.until("> tap");
    terminal.types("\r");
    comes("the word is the session's", || said(&world, "tap"));
    terminal.until(CHOICES);
    assert_eq!((waits(&world), remembers(&world)), (1, false));
    terminal.answers("p");
    terminal.until("remembered as");
    terminal.until("Done.");
    assert!(remembers(&world));
    leave(child, terminal);
}

#[test]
fn a_lone_letter_of_a_choice_is_not_sent_and_the_choices_stand_last() {
    let world = World::with_file("a.txt", "one\n");
    let (child, mut terminal) = talking(&world, &format!("{EDIT}[[turn]]\ntext = \"Done.\"\n"), "--approvals ask");
    terminal.until(CHOICES);
    // Too soon to have been seen, and pasted.
    for typed in ["a", "\x1b[200~p\x1b[201~"] {
        terminal.types(typed);
        terminal.until("> ");
        terminal.types("\r");
        terminal.until("is no answer: ");
        terminal.until("nothing was sent");
        terminal.until(CHOICES);
    }
    assert!(!said(&world, "a") && !said(&world, "p"));
    assert_eq!((waits(&world), remembers(&world), world.read("a.txt").as_str()), (1, false, "one\n"));
    terminal.answers("a");
    terminal.until("Done.");
    leave(child, terminal);
    assert!(!said(&world, "a") && !said(&world, "p"));
}

#[test]
fn words_that_other_programs_take_for_an_answer_are_not_sent_and_it_is_said_what_answers() {
    let world = World::with_file("a.txt", "one\n");
    let (child, mut terminal) = talking(&world, &format!("{EDIT}[[turn]]\ntext = \"Done.\"\n"), "--approvals ask");
    terminal.until(CHOICES);
    for word in ["y", "yes", "1"] {
        terminal.types(&format!("{word}\r"));
        terminal.until(&format!("{word} is no answer: press a alone to allow it once"));
        terminal.until(CHOICES);
    }
    // A change of mind is none either.
    terminal.selects("a");
    terminal.types("d");
    terminal.until("> ad");
    terminal.types("\r");
    terminal.until("ad is no answer");
    terminal.until(CHOICES);
    // What is no answer by any reading is said to the session, and the ask stays.
    terminal.types("why this one?\r");
    terminal.until("said to the session; the ask still waits");
    terminal.until(CHOICES);
    assert_eq!((waits(&world), world.read("a.txt").as_str()), (1, "one\n"));
    assert!(["y", "yes", "ad"].iter().all(|word| !said(&world, word)) && said(&world, "why this one"));
    terminal.answers("d");
    terminal.until("user_denied");
    leave(child, terminal);
}

#[test]
fn escape_takes_a_selection_or_a_text_back_and_the_choices_stand_last() {
    let world = World::with_file("a.txt", "one\n");
    let (child, mut terminal) = talking(&world, &format!("{EDIT}[[turn]]\ntext = \"Done.\"\n"), "--approvals ask");
    terminal.until(CHOICES);
    let shown = terminal.selects("p");
    assert!(shown.contains("would be remembered"), "{shown}");
    terminal.types("\x1b");
    let shown = terminal.until(CHOICES);
    assert!(!shown.contains("would be remembered"), "{shown}");
    terminal.selects("p");
    terminal.types("d");
    terminal.until("> pd");
    terminal.types("\x1b");
    terminal.until(CHOICES);
    std::thread::sleep(std::time::Duration::from_millis(300));
    terminal.answers("d");
    terminal.until("user_denied");
    leave(child, terminal);
    assert!(!said(&world, "pd") && !remembers(&world));
}

#[test]
fn escape_leads_out_of_a_reason() {
    let world = World::with_file("a.txt", "one\n");
    let (child, mut terminal) = talking(&world, &format!("{EDIT}[[turn]]\ntext = \"Done.\"\n"), "--approvals ask");
    terminal.until(CHOICES);
    terminal.answers("b");
    terminal.until("Enter ends it");
    terminal.types("never");
    terminal.until("no, because > never");
    terminal.types("\x1b");
    terminal.until(CHOICES);
    assert_eq!(waits(&world), 1);
    terminal.answers("a");
    terminal.until("Done.");
    leave(child, terminal);
    assert!(!world.run(&["sessions", "search", "never"]).out.contains("tool.permission.replied"));
}

#[test]
fn ctrl_c_at_an_ask_withdraws_it_and_the_next_words_reach_the_model() {
    let world = World::with_file("a.txt", "one\n");
    let script = format!(
        "{EDIT}[[turn]]\nwhen = {{ contains = \"something else\" }}\ntext = \"I heard you.\"\n[[turn]]\ntext = \"Done.\"\n"
    );
    let (child, mut terminal) = talking(&world, &script, "--approvals ask");
    terminal.until(CHOICES);
    let ask = world.run(&["approvals", "list"]).ends(0).id("ask_");
    terminal.types("\x03");
    let shown = terminal.until("interrupted");
    assert!(!shown.contains("running edit"), "{shown}");
    terminal.until(READY);
    world.run(&["approvals", "show", &ask]).ends(0).says("withdrawn");
    assert_ne!(world.run(&["approvals", "allow", &ask]).code, 0);
    terminal.types("something else\r");
    let shown = terminal.until("I heard you.");
    assert!(!shown.contains(CHOICES), "it is not asked again: {shown}");
    leave(child, terminal);
    assert_eq!(world.read("a.txt"), "one\n");
}

const BUSY: &str = "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"touch began; until [ -e go ]; do sleep 0.05; done\" } }]\n[[turn]]\ntext = \"Done.\"\n";

#[test]
fn commands_typed_while_it_works_are_no_words_and_what_is_typed_is_seen() {
    let world = World::new();
    let (mut child, mut terminal) = talking(&world, BUSY, "--approvals allow");
    comes("it works", || world.workspace.join("began").exists());
    terminal.types("\x04");
    terminal.until("Ctrl-D ends nothing while it works");
    terminal.types("/co");
    terminal.until("> /co");
    terminal.types("st\r");
    terminal.until("/cost comes when the turn is over");
    terminal.types("/what\r");
    terminal.until("there is no /what");
    terminal.types("/compact the rest\r");
    terminal.until("there is no /compact, and nothing was said to the model");
    terminal.types("/cost now\r");
    terminal.until("/cost stands alone on its line");
    world.write("go", "");
    terminal.until("Done.");
    terminal.until("2 requests");
    terminal.until(READY);
    std::fs::remove_file(world.workspace.join("go")).expect("there");
    std::fs::remove_file(world.workspace.join("began")).expect("there");
    terminal.types("/quit\r");
    assert!(child.wait().expect("ends").success());
    assert!(!said(&world, "/cost") && !said(&world, "/what"));
}

#[test]
fn quit_while_it_works_interrupts_and_leaves() {
    let world = World::new();
    let (mut child, mut terminal) = talking(&world, BUSY, "--approvals allow");
    comes("it works", || world.workspace.join("began").exists());
    terminal.types("/quit\r");
    terminal.until("go on with: portcullis run --session");
    assert!(child.wait().expect("ends").success());
    assert!(
        world.run(&["sessions", "search", "user interrupted"]).out.contains("user.interrupt") || !said(&world, "/quit")
    );
}

const NO_ROOM: &str = "[[turn]]\nwhen = { contains = \"at once\" }\ntext = \"I tried.\"\n[[turn]]\ntext = \"Done.\"\n\
                       [defaults]\nfail = [{ turn = 1, status = 529, retry_after_ms = 600000 }]\n";

#[test]
fn a_wait_for_the_next_try_hears_words_and_ctrl_c_leads_back_to_the_prompt() {
    let world = World::new();
    let (child, mut terminal) = talking(&world, NO_ROOM, "");
    terminal.until("a line you type tries at once, Ctrl-C interrupts");
    terminal.types("at once\r");
    terminal.until("I tried.");
    leave(child, terminal);
    let world = World::new();
    let (child, mut terminal) = talking(&world, NO_ROOM, "");
    terminal.until("next try in");
    terminal.types("\x03");
    terminal.until("interrupted");
    leave(child, terminal);
    let world = World::new();
    let (mut child, mut terminal) = talking(&world, NO_ROOM, "");
    terminal.until("next try in");
    terminal.types("/quit\r");
    terminal.until("go on with: portcullis run --session");
    assert!(child.wait().expect("ends").success());
    assert!(!said(&world, "/quit"));
}
