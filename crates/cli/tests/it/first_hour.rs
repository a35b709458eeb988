//! What a new user met in the first hour: names that are typed in part, lists on a narrow terminal, output that is left out.

use crate::common::{World, on_terminal_of, until};

const WRITE: &str = r#"{"file_path":"a.txt","content":"hello\n"}"#;

/// What a command prints on a terminal of so many columns.
fn printed(world: &World, columns: u16, words: &str) -> String {
    let (mut child, _keys, mut out) = on_terminal_of(world, columns, &format!("{words}; echo over"));
    let shown = until(&mut out, "over");
    child.wait().expect("ends");
    shown
}

fn ran(world: &World, command: &str) -> String {
    let input = serde_json::json!({ "command": command }).to_string();
    let asked = world.run(&["call", "shell_run", &input]).ends(3);
    world.run(&["approvals", "allow", &asked.id("ask_")]).ends(0);
    asked.id("sesn_")
}

#[test]
fn the_end_of_an_id_and_nothing_but_its_prefix_are_enough_where_they_fit_no_other() {
    let world = World::new();
    let ask = world.run(&["call", "write", WRITE]).ends(3).id("ask_");
    let end = &ask[ask.len() - 8..];
    world.run(&["approvals", "show", end]).ends(0).says(&ask);
    world.run(&["approvals", "show", &format!("ask_{end}")]).ends(0).says(&ask);
    world.run(&["approvals", "allow", "ask_"]).ends(0);
    // What is settled does not stand in the way of what waits.
    world.run(&["call", "write", &WRITE.replace("hello", "again")]).ends(3);
    world.run(&["approvals", "allow", "ask_"]).ends(0);
    let told = world.run(&["approvals", "allow", "ask_"]).ends(2).one_error_line();
    assert!(told.err.contains("2 ids begin or end with ask_"), "{}", told.err);
    let session = world.run(&["sessions", "show"]).ends(0).says("a.txt").id("sesn_");
    world.run(&["sessions", "show", &session[session.len() - 8..]]).ends(0).says(&session);
    let other = World::new();
    other.run(&["sessions", "show"]).ends(1);
}

#[test]
fn all_of_an_output_can_be_read_and_the_row_that_leaves_out_lines_says_how() {
    let world = World::new();
    let session = ran(&world, "seq 1 40; echo oops >&2");
    let shown = world.run(&["sessions", "show", &session]).ends(0).says("stderr:").out;
    let row = shown.lines().find(|line| line.contains("more lines")).expect("it is said");
    let words: Vec<&str> = row.split_once("portcullis ").expect("the command").1.split_whitespace().collect();
    let whole = world.run(&words).ends(0).out;
    assert!(whole.starts_with("1\n2\n3\n") && whole.ends_with("40\noops\n"), "{whole}");
    // On a terminal it is told which stream a line came from.
    let shown = printed(&world, 80, &format!("sessions output {session}"));
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
    assert!(at("│ 40") < at("stderr:") && at("stderr:") < at("│ oops"), "{shown}");
    // The same without a name, by its number, and where it did not fit the observation.
    assert_eq!(world.run(&["sessions", "output", &session]).ends(0).out, whole);
    assert_eq!(world.run(&["sessions", "output", &session, "1"]).ends(0).out, whole);
    world.run(&["sessions", "output", &session, "9"]).ends(2).one_error_line().warns("no call of this session");
    ran(&world, "seq 1 30000");
    let long = world.run(&["sessions", "output", &session]).ends(0).out;
    assert!(long.starts_with("1\n2\n") && long.contains("\n15000\n") && long.ends_with("30000\n"), "{}", long.len());
}

#[test]
fn output_that_is_not_listed_is_counted() {
    let world = World::new();
    let session =
        [1, 2, 3, 4, 5, 6, 7].map(|n| ran(&world, &format!("echo line-{n}"))).into_iter().next_back().expect("one");
    let shown = world.run(&["sessions", "show", &session]).ends(0).says("the output of 2 earlier calls").out;
    assert!(!shown.contains("│ line-2") && shown.contains("│ line-3"), "{shown}");
}

#[test]
fn lists_fit_a_narrow_terminal_and_keep_ids_whole() {
    let world = World::new();
    let asked = world.run(&["call", "write", WRITE]).ends(3);
    let (ask, session) = (asked.id("ask_"), asked.id("sesn_"));
    let intent = world.run(&["sessions", "show", &session]).ends(0).id("intent_");
    for (words, id) in [("sessions list", &session), ("approvals list", &ask), ("sessions show", &intent)] {
        let shown = printed(&world, 80, words);
        let at = shown.lines().position(|line| line.starts_with(id.as_str())).unwrap_or_else(|| panic!("{shown}"));
        // The row is whole: nothing of it goes on in the next one.
        assert!(!shown.lines().nth(at + 1).is_some_and(|line| line.starts_with("    ")), "{words}: {shown}");
    }
    let wide = printed(&world, 400, "approvals list");
    assert!(wide.contains(&session) && wide.contains("EXPIRES"), "{wide}");
}

#[test]
fn a_program_in_place_of_a_tool_is_explained_as_a_command_line() {
    let world = World::new();
    let ran = world.run(&["policy", "explain", "git", "push"]).ends(1);
    ran.warns(r#"portcullis policy explain --profile code bash '{"command":"git push"}'"#);
}

#[test]
fn an_ask_to_show_a_secret_says_where_it_goes() {
    let world = World::with_file(".env", "A=1\n");
    let ran = world.run(&["call", "read", r#"{"file_path":".env"}"#]).ends(3);
    ran.says("goes to the model and its provider");
}

#[test]
fn a_missing_model_names_the_variables_once_and_no_file_of_the_repository() {
    let world = World::new();
    let ran = world.run(&["run", "go"]).ends(2).warns("no model is configured").warns("--model PROVIDER/MODEL");
    assert_eq!(ran.err.matches("ANTHROPIC_API_KEY").count(), 1, "{}", ran.err);
    assert_eq!(ran.err.matches("PROVIDER/MODEL").count(), 1, "{}", ran.err);
    assert!(!ran.err.contains("docs/"), "{}", ran.err);
}
