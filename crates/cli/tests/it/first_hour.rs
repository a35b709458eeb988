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
    world.run(&["approvals", "show", "ask_"]).ends(0).says(&ask);
    world.run(&["approvals", "allow", "ask_"]).ends(0);
    // What is settled does not stand in the way of what waits.
    world.run(&["call", "write", &WRITE.replace("hello", "again")]).ends(3);
    world.run(&["approvals", "show", "ask_"]).ends(0).says("+again");
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
    // The end of an intent is enough for `sessions output`, and leaves room for what it is about.
    let intent = intent[intent.len() - 8..].to_owned();
    for (words, id) in [("sessions list", &session), ("approvals list", &ask), ("sessions show", &intent)] {
        let shown = printed(&world, 80, words);
        let at = shown.lines().position(|line| line.starts_with(id.as_str())).unwrap_or_else(|| panic!("{shown}"));
        // The row is whole: nothing of it goes on in the next one.
        assert!(!shown.lines().nth(at + 1).is_some_and(|line| line.starts_with("    ")), "{words}: {shown}");
    }
    let wide = printed(&world, 400, "approvals list");
    assert!(wide.contains(&session) && wide.contains("EXPIRES"), "{wide}");
    // The time is never cut.
    let listed = printed(&world, 120, "sessions list");
    assert!(listed.contains("WAITING") && !listed.contains("2026-") && !listed.contains("T1"), "{listed}");
}

#[test]
fn what_a_call_did_a_tool_does_and_a_grant_allows_can_be_read_at_80_columns() {
    let world = World::new();
    let ask = world.run(&["call", "write", WRITE]).ends(3).id("ask_");
    world.run(&["approvals", "allow", &ask, "--save"]).ends(0);
    let shown = printed(&world, 80, "sessions show");
    let row = shown.lines().find(|line| line.contains("write  a.txt  ok  ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(!row.contains("intent_") && !shown.contains("STATE"), "{shown}");
    // Where a call is not settled, its state is told.
    world.run(&["call", "write", &WRITE.replace("a.txt", "b.txt")]).ends(3);
    let shown = printed(&world, 80, "sessions show");
    assert!(shown.contains("STATE") && shown.contains("  parked  "), "{shown}");
    let shown = printed(&world, 80, "grants list");
    assert!(shown.lines().any(|line| line.starts_with("  allows  write on path /workspace/a.txt")), "{shown}");
    let shown = printed(&world, 80, "tools list");
    let rows: Vec<&str> = shown.lines().take_while(|line| !line.contains("over")).collect();
    assert!(rows.len() > 10 && rows.iter().all(|row| !row.starts_with(' ')), "no row goes on in the next: {shown}");
    assert!(!shown.contains("VERSION"), "{shown}");
    // Elsewhere nothing is left out.
    world.run(&["tools", "list"]).ends(0).says("VERSION");
    world.run(&["sessions", "show"]).ends(0).says("intent_").says("STATE");
}

#[test]
fn commands_to_copy_hold_no_choice_for_a_shell_to_trip_over() {
    let world = World::new();
    let ask = world.run(&["call", "write", WRITE]).ends(3).id("ask_");
    let shown = world.run(&["approvals", "show", &ask]).ends(0).says("~/.config/portcullis/config.toml");
    let commands: Vec<&str> =
        shown.out.lines().filter_map(|line| line.split_once(": portcullis ")).map(|l| l.1).collect();
    assert_eq!(commands.len(), 4, "{}", shown.out);
    assert!(commands.iter().all(|line| !line.contains(['|', '['])), "{commands:?}");
    let session = commands.iter().find(|line| line.ends_with("--session")).expect("one for the session");
    world.run(&session.split_whitespace().collect::<Vec<_>>()).ends(0).warns("grants revoke");
}

#[test]
fn a_file_that_a_line_writes_is_not_called_code() {
    let world = World::new();
    let line = "cat > gen.txt <<'EOF'\nhello\nEOF\npython3 -c 'print(1)'";
    let input = serde_json::json!({ "command": line }).to_string();
    let ran = world.run(&["--profile", "code", "call", "bash", &input]).ends(3);
    let ran = ran.says("a file to write, whose place is known only when it runs: gen.txt");
    assert!(!ran.out.contains("do not show: gen.txt"), "{}", ran.out);
}

#[test]
fn the_rules_of_the_guide_end_the_asks_that_it_says_they_end() {
    let guide = include_str!("../../../../docs/guide.md");
    let section = guide.split_once("### Fewer asks").expect("the section").1;
    let rules = section.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).expect("the rules").0;
    let world = World::with_file("a.js", "one\n");
    world.write("pkg/b.js", "two\n");
    world.write(".env", "A=1\n");
    let says = |tool: &str, input: serde_json::Value| {
        let ran = world.run(&["policy", "explain", "--profile", "code", tool, &input.to_string()]);
        ran.out.split(':').next().unwrap_or_default().to_owned()
    };
    let line = |line: &str| says("bash", serde_json::json!({ "command": line }));
    let edit = |path: &str| says("edit", serde_json::json!({"file_path": path, "old_string": "a", "new_string": "b"}));
    // The control: what the guide says of lines without a rule.
    for reads in ["ls", "cat a.js", "grep -rn one . '--include=*.js'", "sed -n 1,5p a.js", "find . -name '*.js'"] {
        assert_eq!(line(reads), "allow", "{reads}");
    }
    let asked = ["git status", "git diff HEAD", "git log -5", "cd pkg && ls", "cd /workspace && cat a.js"];
    let asked = [&asked[..], &["npm test 2>&1 | tail -5"]].concat();
    let still = ["grep -rn one . --include=*.js", "which node", "node --version", "cat /etc/os-release", "git push"];
    for asks in asked.iter().chain(&still) {
        assert_eq!(line(asks), "ask", "{asks}");
    }
    assert_eq!(edit("a.js"), "ask");
    world.configure(rules);
    world.run(&["policy", "check"]).ends(0);
    for runs in asked {
        assert_eq!(line(runs), "allow", "{runs}");
    }
    for asks in still {
        assert_eq!(line(asks), "ask", "{asks}");
    }
    assert_eq!((edit("a.js").as_str(), edit(".git/config").as_str()), ("allow", "ask"));
    assert_eq!(says("read", serde_json::json!({"file_path": ".env"})), "ask");
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
    let ask = ran.says("goes to the model and its provider").id("ask_");
    // Nothing is there to undo, and what was read cannot be called back.
    let shown = world.run(&["approvals", "show", &ask]).ends(0).says("risk            read");
    assert!(!shown.out.contains("reversible"), "{}", shown.out);
}

#[test]
fn a_missing_model_names_the_variables_once_and_no_file_of_the_repository() {
    let world = World::new();
    let ran = world.run(&["run", "go"]).ends(2).warns("no model is configured").warns("--model PROVIDER/MODEL");
    assert_eq!(ran.err.matches("ANTHROPIC_API_KEY").count(), 1, "{}", ran.err);
    assert_eq!(ran.err.matches("PROVIDER/MODEL").count(), 1, "{}", ran.err);
    assert!(!ran.err.contains("docs/"), "{}", ran.err);
}
