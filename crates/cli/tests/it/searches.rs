//! Transcripts of the tools that look for something: files by name, lines by content, evidence, tasks.

use crate::common::World;

const DENY: &str = "[[rules]]\nid = \"no-secrets\"\naction = \"*\"\npath = \"secret/**\"\neffect = \"deny\"\n";

fn world() -> World {
    let world = World::with_file("src/a.rs", "fn main() {}\n// needle\n");
    world.write("notes.txt", "nothing\n");
    world.write("secret/key.txt", "the needle\n");
    world.configure(DENY);
    world
}

#[test]
fn glob_lists_names_and_counts_what_rules_close_without_naming_it() {
    let ran = world().run(&["call", "glob", r#"{"pattern":"**/*"}"#]).ends(0);
    assert_eq!(ran.out, "notes.txt\nsrc/\nsrc/a.rs\n3 entries; left out: 2 closed by rules\n");
    assert!(!ran.err.contains("key.txt"), "{}", ran.err);
}

#[test]
fn grep_shows_path_line_and_text_and_opens_nothing_that_rules_deny() {
    let world = world();
    let ran = world.run(&["call", "grep", r#"{"pattern":"needle"}"#]).ends(0);
    assert_eq!(ran.out, "src/a.rs:2:// needle\n1 matching line in 1 of 2 files; left out: 1 closed by rules\n");
    ran.warns("grep: ok");
    let seen = world.run(&["call", "grep", r#"{"pattern":"needle"}"#, "--json"]).ends(0).json();
    assert_eq!(seen["structured"]["matches"][0]["path"], "src/a.rs");
    assert_eq!(seen["structured"]["left_out"]["closed"], 1);
}

#[test]
fn to_find_nothing_is_a_success_that_says_so() {
    let world = world();
    world.run(&["call", "grep", r#"{"pattern":"absent"}"#]).ends(0).says("no matches in 2 files").warns("no_matches");
    world.run(&["call", "glob", r#"{"pattern":"*.zip"}"#]).ends(0).warns("no_matches");
    world.run(&["call", "grep", r#"{"pattern":"("}"#]).ends(1).warns("not a regular expression");
}

#[test]
fn artifact_grep_finds_lines_in_the_evidence_of_a_call() {
    let world = world();
    let input = r#"{"file_path":"fresh.txt","content":"one\nneedle two\nthree\n"}"#;
    let made = world.run(&["call", "write", input, "--approvals", "allow", "--json"]).ends(0).json();
    let artifact = made["artifacts"][0]["id"].as_str().expect("evidence").to_owned();
    let input = format!(r#"{{"id":"{artifact}","pattern":"needle","context":0}}"#);
    world.run(&["call", "artifact_grep", &input]).ends(0).says("needle two");
    let input = format!(r#"{{"id":"{artifact}","pattern":"absent"}}"#);
    world.run(&["call", "artifact_grep", &input]).ends(0).warns("no_matches");
}

#[test]
fn what_is_not_there_is_said_with_its_name() {
    let world = world();
    let none = "00000000000000000000000000";
    for (tool, id) in
        [("task_output", "task"), ("task_wait", "task"), ("task_cancel", "task"), ("artifact_grep", "art")]
    {
        let field = if id == "art" { r#""pattern":"x","id""# } else { r#""task_id""# };
        let ran = world.run(&["call", tool, &format!(r#"{{{field}:"{id}_{none}"}}"#)]).ends(1);
        ran.warns(&format!("{id}_{none}")).warns("there is no");
    }
    world.run(&["call", "task_wait", r#"{"task_id":"nonsense"}"#]).ends(1).warns("schema_invalid").warns("/task_id");
}
