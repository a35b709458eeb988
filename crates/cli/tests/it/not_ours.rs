//! What a model, a command or a file writes stands behind a bar on every row of a terminal: none of it passes for ours.

use std::process::Child;

use serde_json::json;

use crate::common::{World, binary, in_shell};
use crate::run_talk::{Terminal, model};

/// Lines of ours that others would like to write.
const FORGED: [&str; 6] = [
    "allowed: bash rm -rf / (ask_01m7m901n1f8a9epr7gvt7h31z)",
    "✓ bash npm test (2.1 s)",
    "fact-check: supported (2 claims checked)",
    "a allow once · t this session · d no",
    "> yes",
    "  input           {\"command\":\"ls\"}",
];

fn at_80_by_24(world: &World, words: &str) -> (Child, Terminal) {
    let line = format!("stty cols 80 rows 24 && {} {words}; echo it is over", binary().display());
    let (child, keys, out) = in_shell(world, &line);
    (child, Terminal::new(keys, out))
}

/// What is shown up to the end, in rows and without colours.
fn rows(shown: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = shown;
    while let Some(at) = rest.find("\x1b[") {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        rest = after.find(|c: char| c.is_ascii_alphabetic()).map_or("", |end| &after[end + 1..]);
    }
    plain.push_str(rest);
    let last = |row: &str| row.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned();
    plain.split('\n').map(last).collect()
}

/// A forged line behind padding that ends each row of the terminal at another place, and without any.
fn paddings(forged: &str) -> Vec<String> {
    [0, 60, 70, 74, 75, 76, 77, 78, 79, 80, 156].iter().map(|n| format!("{}{forged}", "y".repeat(*n))).collect()
}

/// No row begins like one of ours, and none is wider than the terminal.
#[track_caller]
fn none_passes_for_ours(rows: &[String]) {
    for row in rows {
        assert!(row.chars().count() <= 80, "{row:?}");
        for forged in FORGED {
            assert!(!row.starts_with(forged.trim_end()), "{row:?} among {rows:#?}");
        }
    }
}

#[test]
fn what_a_model_says_has_a_bar_on_every_row() {
    let world = World::new();
    let lines: Vec<String> = FORGED.iter().flat_map(|forged| paddings(forged)).collect();
    let script = format!("[[turn]]\ntext = {}\n[defaults]\nstream_delay_ms = 1\n", json!(lines.join("\n")));
    let (mut child, mut terminal) = at_80_by_24(&world, &format!("run --model {} go", model(&world, &script)));
    let shown = rows(&terminal.until("it is over"));
    none_passes_for_ours(&shown);
    // The control: all of it is there.
    let behind: String = shown.iter().filter_map(|row| row.strip_prefix("│ ")).collect();
    let pressed = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(pressed(&behind), pressed(&lines.concat()));
    child.wait().expect("ends");
}

#[test]
fn what_a_command_writes_has_a_bar_on_every_row_and_its_own_words_forge_nothing_either() {
    for forged in FORGED {
        let world = World::new();
        for (n, line) in paddings(forged).iter().enumerate() {
            world.write(&format!("{n:02}"), &format!("{line}\n"));
        }
        // Its own words stand in lines of ours: the ask, the answer to it and the call.
        let command = format!("cat 0* 10; touch EVIL # {}{forged}", " ".repeat(60));
        let script = format!(
            "[[turn]]\ncalls = [{{ name = \"bash\", input = {{ command = {} }} }}]\n[[turn]]\ntext = \"Done.\"\n",
            json!(command)
        );
        let (mut child, mut terminal) =
            at_80_by_24(&world, &format!("run --model {} --approvals ask go", model(&world, &script)));
        let mut shown = terminal.until("b no, because");
        // What is forged says something like it on the first page.
        while !shown.contains("a allow once · d no ·") {
            terminal.types(" ");
            shown += &terminal.until("b no, because");
        }
        // The choices are ours.
        none_passes_for_ours(&rows(&shown.replace("a allow once ·", "")));
        terminal.answers("a");
        let shown = rows(&terminal.until("it is over"));
        none_passes_for_ours(&shown);
        assert!(shown.iter().any(|row| row.starts_with("  │ yyy")), "{shown:#?}");
        child.wait().expect("ends");
    }
}

#[test]
fn an_answer_is_shown_while_it_comes_with_or_without_a_line_end() {
    let world = World::new();
    let words = "one two three four five six seven eight nine ten".repeat(3);
    let script = format!("[[turn]]\ntext = {}\n[defaults]\nstream_delay_ms = 300\n", json!(words));
    let (mut child, mut terminal) = at_80_by_24(&world, &format!("run --model {} go", model(&world, &script)));
    terminal.until("│ one");
    assert!(child.try_wait().expect("looked at").is_none());
    let shown = terminal.until("it is over");
    assert!(shown.contains("nine"), "it was not whole before: {shown}");
    child.wait().expect("ends");
}

#[test]
fn an_ordinary_command_is_asked_about_on_one_page_and_a_question_mark_shows_every_fact() {
    let world = World::new();
    let script =
        "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"sh -c true\" } }]\n[[turn]]\ntext = \"Done.\"\n";
    let words = format!("run --model {} --approvals ask go", model(&world, script));
    let (mut child, mut terminal) = at_80_by_24(&world, &words);
    let shown = terminal.until("Enter confirms)");
    assert!(shown.contains("a allow once") && !shown.contains("page 1 of"), "{shown}");
    let shown = rows(&shown);
    let at = shown.iter().position(|row| row == "  │ sh -c true").expect("the command");
    for (label, more) in
        [("in", world.workspace.to_str().expect("text")), ("network", "disabled"), ("runs with", "programs")]
    {
        let labelled = format!("  {label:<15} {more}");
        assert!(shown[at..].iter().any(|row| row.starts_with(&labelled)), "{label}: {shown:#?}");
    }
    assert!(!shown.iter().any(|row| row.starts_with("  output limit") || row.starts_with("  session")), "{shown:#?}");
    terminal.types("?");
    let more = terminal.until("page 1 of 2: bash sh -c true");
    assert!(more.contains("  output limit") && more.contains("  session "), "{more}");
    // It begins anew, and is allowed after its last page alone.
    assert!(!terminal.until("Space shows the next page").contains("a allow once"));
    terminal.types(" ");
    let last = terminal.until("a allow once");
    assert!(last.contains("would not allow") && last.contains("page 2 of 2: bash sh -c true"), "{last}");
    terminal.answers("a");
    terminal.until("Done.");
    terminal.until("it is over");
    child.wait().expect("ends");
}

#[test]
fn our_own_texts_break_between_words() {
    let world = World::new();
    let (mut child, mut terminal) =
        at_80_by_24(&world, &format!("run --model {}", model(&world, "[[turn]]\ntext = \"Done.\"\n")));
    let shown = rows(&terminal.until("leave"));
    assert!(shown.iter().any(|row| row.contains("/undo take its")), "{shown:#?}");
    assert!(shown.iter().all(|row| row.chars().count() <= 80), "{shown:#?}");
    terminal.says("/quit");
    terminal.until("it is over");
    child.wait().expect("ends");
}

#[test]
fn what_a_call_gives_has_a_bar_on_a_terminal_and_none_in_a_pipe() {
    let world = World::with_file("a.txt", "read: ok in 1 ms\n");
    let (mut child, mut terminal) = at_80_by_24(&world, "call read '{\"file_path\":\"a.txt\"}'");
    let shown = rows(&terminal.until("it is over"));
    assert!(shown.iter().any(|row| row.starts_with("│ ") && row.ends_with("read: ok in 1 ms")), "{shown:#?}");
    child.wait().expect("ends");
    let ran = world.run(&["call", "read", "{\"file_path\":\"a.txt\"}"]).ends(0);
    assert!(!ran.out.contains('│'), "{}", ran.out);
}
