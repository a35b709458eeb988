//! Transcripts of asking and answering, each step a process of its own.

use std::fs;

use crate::common::{Ran, World, edit, embedded};
use portcullis::{AskAnswer, Reply};

const READ: &str = r#"{"file_path":"a.txt"}"#;

fn asking() -> (World, String) {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let ask = world.ask_to_edit("a.txt", "beta", "gamma");
    (world, ask)
}

#[test]
fn an_edit_of_a_read_file_asks_and_prints_the_exact_commands_that_go_on() {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    world.run(&["call", "read", READ]).ends(0);
    let ran = world.run(&["call", "edit", &edit("a.txt", "beta", "gamma")]).ends(3);
    let ask = ran.id("ask_");
    ran.says(&format!("portcullis approvals show {ask}")).says(&format!("portcullis approvals allow {ask}"));
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
    world.run(&["approvals"]).ends(0).says(&ask).says("/workspace/a.txt");
    let listed = world.run(&["approvals", "list", "--json"]).ends(0).json();
    assert_eq!(listed["asks"][0]["ask_id"], ask.as_str());
}

/// Whoever sees only what a call printed sees what it would do.
#[test]
fn an_ask_shows_the_first_lines_of_what_would_change_and_how_many_there_are() {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let write = |name: &str, content: &str| {
        let input = serde_json::json!({ "file_path": name, "content": content }).to_string();
        world.run(&["call", "write", &input]).ends(3)
    };
    let ran = write("b.txt", "one").says("would change:").says("│ +one").says("touches: path /workspace/b.txt");
    assert!(!ran.out.contains("in all") && !ran.out.contains("the first"), "{}", ran.out);
    let long: String = (1..=90).map(|n| format!("line {n}\n")).collect();
    let ran = write("c.txt", &long).says("│ +line 9\n").says("the first 20 of ");
    assert!(!ran.out.contains("line 60"), "{}", ran.out);
    let wide = write("d.txt", &"w".repeat(9_000)).says("… (9001 characters)");
    assert!(wide.out.len() < 2_000, "{}", wide.out);
    world.run(&["call", "read", READ]).ends(0);
    let ran = world.run(&["call", "edit", &edit("a.txt", "beta", "gam\u{a0}ma")]).ends(3);
    ran.says("│ -beta").says("│ +gam<U+00A0>ma");
    world.run(&["sessions", "list"]).ends(0).says("requires_action");
    let session = world.run(&["sessions", "list"]).id("sesn_");
    world.run(&["sessions", "status", &session]).ends(0).says("requires_action");
}

#[test]
fn an_ask_that_offers_no_rule_says_why() {
    let world = World::new();
    let ask = world.run(&["call", "shell_run", r#"{"command":"x=1; echo $x | sh"}"#]).ends(3).id("ask_");
    world.run(&["approvals", "show", &ask]).ends(0).says("  only once       no rule can be offered");
}

#[test]
fn show_prints_every_fact_and_the_diff() {
    let (world, ask) = asking();
    let mut ran = world.run(&["approvals", "show", &ask]).ends(0);
    for fact in [
        "what            edit",
        "in the sandbox  /workspace",
        "touches         path /workspace/a.txt",
        "\"old_string\":\"beta\"",
        "scripts         none can run",
        "sandbox ",
        "network         not used",
        "output limit    2000 lines",
        "risk            write",
        "reversible      yes",
        "rule            tool_default:edit",
        "expires         in 24 h",
        "@@ -1,2 +1,2 @@",
        "-beta",
        "+gamma",
        "would allow: /workspace/a.txt",
        "would not allow: ",
    ] {
        ran = ran.says(fact);
    }
    let whole = world.run(&["approvals", "show", &ask, "--json"]).ends(0).json();
    assert!(whole["diff_text"].as_str().is_some_and(|diff| diff.contains("+gamma")));
    assert_eq!(whole["suggested_rules"][0]["effect"], "allow");
    let coloured = world.run(&["approvals", "show", &ask, "--color", "always"]).ends(0);
    assert!(coloured.out.contains("\u{1b}[32m+gamma"), "{:?}", coloured.out);
}

#[test]
fn an_ask_begins_with_what_would_run_and_loses_nothing_of_what_it_touches() {
    let world = World::new();
    let lines: Vec<String> = (0..95).map(|n| format!("echo line-{n} >> out-{}.log", n % 9)).collect();
    let input = serde_json::json!({"command": lines.join("\n")}).to_string();
    let ask = world.run(&["--profile", "code", "call", "bash", &input]).ends(3).id("ask_");
    let shown = world.run(&["approvals", "show", &ask]).ends(0).out;
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("no `{text}` in {shown}"));
    let rows_before = |text: &str| shown[..at(text)].lines().count();
    assert!(rows_before("  │ echo line-0 ") <= 2, "{shown}");
    assert!(at("  │ echo line-94 ") < at("  what ") && at("  what ") < at("  in ") && at("  in ") < at("  touches "));
    assert!(!shown.contains("  state ") && !shown.contains("written as echo"), "{shown}");
    assert!(at("listed below the other facts") < at("  touches in all "), "{shown}");
    let all = &shown[at("  touches in all ")..];
    // No command is shown twice.
    assert!(shown.contains("95 commands that the line above shows") && !all.contains("argv echo"), "{shown}");
    for n in 0..95 {
        assert_eq!(shown.matches(&format!("echo line-{n} ")).count(), 1, "{n}: {shown}");
    }
    assert!((0..9).all(|n| all.contains(&format!("/workspace/out-{n}.log"))), "{all}");
    // It is said how it stands once it stands otherwise.
    world.run(&["approvals", "deny", &ask]).ends(0);
    world.run(&["approvals", "show", &ask]).ends(0).says("state           denied");
}

#[test]
fn what_the_tool_says_stands_apart() {
    let (world, ask) = asking();
    world.run(&["approvals", "show", &ask]).ends(0).says("  the tool says   replacements: 1\n");
}

#[test]
fn a_diff_hides_nothing() {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let ask = world.ask_to_edit("a.txt", "beta", "b\u{1b}X\nrm -rf /\n\u{1b}\\c\r");
    let ran = world.run(&["approvals", "show", &ask]).ends(0);
    ran.says("  │ +b<U+001B>X\n  │ +rm -rf /\n  │ +<U+001B>\\c<U+000D>\n");
}

#[test]
fn a_long_diff_is_shown_to_its_end_and_once() {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let text = format!("{}the last line", "a line of no importance\n".repeat(4_000));
    let ask = world.ask_to_edit("a.txt", "beta", &text);
    let ran = world.run(&["approvals", "show", &ask]).ends(0);
    let ran = ran.says("+the last line").says("4001 lines, all of them added in the diff above");
    assert_eq!(ran.out.matches("a line of no importance").count(), 4_000);
}

#[test]
fn a_diff_that_cannot_be_opened_cannot_be_allowed_and_the_ask_waits_on() {
    let (world, ask) = asking();
    let db = rusqlite::Connection::open(world.database()).expect("opens");
    db.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM blobs WHERE sha256 IN (SELECT sha256 FROM artifacts)")
        .expect("lost");
    drop(db);
    world.run(&["approvals", "show", &ask]).ends(5).says("touches ").says("cannot be opened");
    world.run(&["approvals", "allow", &ask]).ends(5).warns("cannot be opened").one_error_line();
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
    world.run(&["approvals"]).ends(0).says(&ask);
    world.run(&["approvals", "deny", &ask]).ends(0);
}

#[test]
fn the_rule_that_asked_is_shown_with_file_and_line() {
    let world = World::with_file("a.txt", "alpha\n");
    let path = world.configure("\n\n[[rules]]\nid = \"look-first\"\naction = \"edit\"\neffect = \"ask_pinned\"\n");
    let ask = world.ask_to_edit("a.txt", "alpha", "x");
    let place = format!("rule            look-first ({}:3)", path.display());
    world.run(&["approvals", "show", &ask]).ends(0).says(&place).says("pinned");
}

#[test]
fn allow_runs_the_stored_call_once_and_a_second_allow_is_already_settled() {
    let (world, ask) = asking();
    let ran = world.run(&["approvals", "allow", &ask]).ends(0).says("gamma").warns("edit: ok");
    assert_eq!(world.read("a.txt"), "alpha\ngamma\n");
    let session = ran.id("sesn_");
    // Put the old text back: a second run would find it and change it again.
    world.write("a.txt", "alpha\nbeta\n");
    world.run(&["approvals", "allow", &ask]).ends(1).warns("already_settled").warns("allowed by ").one_error_line();
    world.run(&["approvals", "deny", &ask]).ends(1).warns("already_settled");
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0).lines();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("tool.permission.replied"), of("tool.observation")), (1, 2));
    let replied = events.iter().find(|event| event["type"] == "tool.permission.replied").expect("one");
    let fact: serde_json::Value = serde_json::from_str(replied["payload"].as_str().expect("text")).expect("JSON");
    assert_eq!((&fact["channel"], &fact["reply"]), (&"cli".into(), &"allow_once".into()));
    assert!(fact["approver"].is_string() && fact["parent_process"].is_string() && fact["terminal"].is_null());
}

#[test]
fn allow_works_from_another_folder_in_the_session_s_own_workspace() {
    let (world, ask) = asking();
    let output = world.command(&["approvals", "allow", &ask]).current_dir("/").output().expect("runs");
    Ran::from(output).ends(0);
    assert_eq!(world.read("a.txt"), "alpha\ngamma\n");
}

#[test]
fn a_file_changed_outside_meanwhile_is_left_untouched() {
    let (world, ask) = asking();
    world.write("a.txt", "alpha\nbeta\nand mine\n");
    world.run(&["approvals", "allow", &ask]).ends(1).warns("stale_file_baseline").warns("recovery: reread");
    assert_eq!(world.read("a.txt"), "alpha\nbeta\nand mine\n");
}

#[test]
fn a_kill_between_ask_and_allow_changes_nothing() {
    let (world, ask) = asking();
    let mut watching =
        world.command(&["approvals", "watch"]).stdin(std::process::Stdio::piped()).spawn().expect("starts");
    // It has shown the ask, so it is in the middle of its watch.
    let mut line = String::new();
    let mut out = std::io::BufReader::new(watching.stdout.take().expect("piped"));
    std::io::BufRead::read_line(&mut out, &mut line).expect("a line");
    assert!(line.contains(&ask), "{line}");
    watching.kill().expect("killed");
    watching.wait().expect("ended");
    world.run(&["approvals", "allow", &ask]).ends(0);
    assert_eq!(world.read("a.txt"), "alpha\ngamma\n");
    world.run(&["audit", "verify"]).ends(0);
}

#[test]
fn deny_settles_the_call_with_the_feedback_and_is_no_failure() {
    let (world, ask) = asking();
    let ran = world.run(&["approvals", "deny", &ask, "--feedback", "not in this file"]).ends(0);
    let session = ran.says("refused: edit").id("sesn_");
    let shown = world.run(&["sessions", "show", &session, "--json"]).ends(0).json();
    assert_eq!(shown["calls"][1]["code"], "user_denied");
    assert!(shown["calls"][1]["summary"].as_str().is_some_and(|s| s.contains("not in this file")));
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
    let ask = world.ask_to_edit("a.txt", "beta", "x");
    let seen = world.run(&["approvals", "deny", &ask, "--stop", "--json"]).ends(0).json();
    assert_eq!(seen["code"], "user_denied");
}

#[test]
fn the_flag_answers_this_run_s_own_ask_and_no_other() {
    let (world, other) = asking();
    world.run(&["call", "edit", &edit("a.txt", "alpha", "omega"), "--approvals", "deny"]).ends(4).warns("user_denied");
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
    world.run(&["call", "edit", &edit("a.txt", "alpha", "omega"), "--approvals", "allow"]).ends(0);
    assert_eq!(world.read("a.txt"), "omega\nbeta\n");
    world.run(&["approvals"]).ends(0).says(&other);
}

/// Records an allow as a process would that died before it ran the call.
fn allowed_and_left(world: &World, ask: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("runs");
    runtime.block_on(async {
        let answered = embedded(world);
        answered.reply(ask.parse().expect("an id"), AskAnswer::by("ada", Reply::AllowOnce)).await.expect("recorded");
    });
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n", "answered, and not run");
}

#[test]
fn an_answer_whose_giver_died_is_carried_out_by_the_next() {
    let (world, ask) = asking();
    allowed_and_left(&world, &ask);
    world.run(&["approvals", "allow", &ask]).ends(0).warns("already_settled").warns("seen through");
    assert_eq!(world.read("a.txt"), "alpha\ngamma\n");
}

#[test]
fn a_deny_that_comes_after_an_allow_runs_nothing() {
    let (world, ask) = asking();
    allowed_and_left(&world, &ask);
    let late = world.run(&["approvals", "deny", &ask]).ends(1).one_error_line();
    late.warns("already_settled").warns("allowed by ada").warns("ran nothing");
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
}

#[test]
fn unknown_and_malformed_asks_say_where_to_look() {
    let (world, _) = asking();
    world
        .run(&["approvals", "show", "ask_00000000000000000000000000"])
        .ends(1)
        .warns("approvals list")
        .one_error_line();
    let unknown = world.run(&["approvals", "allow", "nonsense"]).ends(2).one_error_line();
    unknown.warns("no id begins or ends with nonsense").warns("approvals list");
    let gone = World::new();
    gone.run(&["approvals", "allow", "ask_00000000000000000000000000"]).ends(1).warns("no store");
    gone.run(&["approvals"]).ends(0).warns("nothing waits");
}

#[test]
fn a_workspace_that_is_gone_is_named_and_the_allow_is_not_spent() {
    let (world, ask) = asking();
    let away = world.workspace.with_file_name("away");
    fs::rename(&world.workspace, &away).expect("moved");
    let allow = |world: &World| -> Ran {
        world.command(&["approvals", "allow", &ask]).current_dir("/").output().expect("runs").into()
    };
    allow(&world).ends(1).warns("is gone").one_error_line();
    fs::rename(&away, &world.workspace).expect("moved back");
    allow(&world).ends(0);
}

#[test]
fn l36_a_workspace_that_leads_elsewhere_now_is_named_and_the_allow_is_not_spent() {
    let world = World::new();
    let ask = world.run(&["call", "write", r#"{"file_path":"new.txt","content":"x"}"#]).ends(3).id("ask_");
    let (away, elsewhere) = (world.workspace.with_file_name("away"), world.workspace.with_file_name("elsewhere"));
    fs::rename(&world.workspace, &away).expect("moved");
    fs::create_dir(&elsewhere).expect("another folder");
    std::os::unix::fs::symlink(&elsewhere, &world.workspace).expect("a link in its place");
    let allow = |world: &World| -> Ran {
        world.command(&["approvals", "allow", &ask]).current_dir("/").output().expect("runs").into()
    };
    allow(&world).ends(1).warns("which is another folder").one_error_line();
    assert!(!elsewhere.join("new.txt").exists());
    fs::remove_file(&world.workspace).expect("the link goes");
    fs::rename(&away, &world.workspace).expect("moved back");
    allow(&world).ends(0);
    assert_eq!(world.read("new.txt"), "x");
}
