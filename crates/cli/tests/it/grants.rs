//! Answers that are remembered: how far they reach, how they are shown and taken back.

use crate::common::World;
use serde_json::Value;

const NOTE: &str = r#"{"file_path":"a.txt","content":"hello\n"}"#;

/// The one ask that waits.
fn asked(world: &World, tool: &str, input: &str) -> String {
    world.run(&["call", tool, input]).ends(3).id("ask_")
}

/// The session of the workspace's calls.
fn session(world: &World) -> String {
    world.run(&["sessions"]).ends(0).id("sesn_")
}

#[test]
fn s10_one_answer_for_this_project_lets_nineteen_identical_calls_run_and_a_neighbour_asks() {
    let world = World::new();
    let ask = asked(&world, "write", NOTE);
    let shown = world.run(&["approvals", "show", &ask]).ends(0).says("would allow: /workspace/a.txt").says("--save");
    let not = shown.out.lines().find(|line| line.contains("would not allow")).expect("near misses are shown");
    assert_eq!(not.split(':').nth(1).map(|list| list.split(", ").count()), Some(3), "{not}");
    let grant = world.run(&["approvals", "allow", &ask, "--save"]).ends(0).warns("grants revoke").id("grant_");

    for _ in 0..19 {
        world.run(&["call", "write", NOTE]).ends(0);
    }
    asked(&world, "write", r#"{"file_path":"b.txt","content":"hello\n"}"#);
    asked(&world, "edit", r#"{"file_path":"a.txt","old_string":"hello","new_string":"bye"}"#);

    let listed = world.run(&["grants", "--json"]).ends(0).json();
    assert_eq!(listed["grants"][0]["id"], grant.as_str());
    assert_eq!(listed["grants"][0]["uses"], 19);
    world.run(&["grants"]).ends(0).says("write on path /workspace/a.txt").says("19");
    let log = world.run(&["--json", "sessions", "events", &session(&world)]).ends(0);
    let of = |kind: &str| -> Vec<(Value, Value)> {
        let events = log.lines().into_iter().filter(|event| event["type"] == kind);
        let fact = |e: &Value| serde_json::from_str(e["payload"].as_str().expect("text")).expect("JSON");
        events.map(|event| (fact(&event), event)).collect()
    };
    let by_grant = of("tool.permission").into_iter().filter(|(fact, _)| fact["grant_ids"][0] == grant.as_str());
    assert_eq!(by_grant.count(), 19);
    let ((replied, reply), (created, creation)) =
        (of("tool.permission.replied").remove(0), of("grant.created").remove(0));
    assert_eq!(replied["grant_id"], created["grant_id"]);
    assert_eq!(reply["append_id"], creation["append_id"], "one transaction");

    world.run(&["grants", "revoke", &grant]).ends(0).says("ask again");
    asked(&world, "write", NOTE);
    world.run(&["grants", "revoke", &grant]).ends(1).warns("revoked already").one_error_line();
    world.run(&["grants"]).ends(0).warns("nothing is remembered");
    world.run(&["grants", "list", "--all"]).ends(0).says("revoked by");
    world.run(&["audit", "verify"]).ends(0);
}

#[test]
fn l33_a_rule_suggested_for_a_variable_answers_for_that_variable_as_a_grant_and_in_a_file() {
    let world = World::new();
    let set = |name: &str| format!(r#"{{"key":"{name}","value":"1"}}"#);
    let rule = |id: &str, shell: &str, effect: &str| {
        format!("[[rules]]\nid = \"{id}\"\naction = \"shell_set_env\"\nshell = {shell}\neffect = \"{effect}\"\n")
    };
    world.configure(&rule("variables", "\"env:*\"", "ask"));
    let ask = asked(&world, "shell_set_env", &set("A"));
    world.run(&["approvals", "show", &ask]).ends(0).says("variable A").says("would allow: env:A");
    world.run(&["approvals", "allow", &ask, "--save"]).ends(0);
    world.run(&["call", "shell_set_env", &set("A")]).ends(0);
    asked(&world, "shell_set_env", &set("B"));
    world.run(&["grants"]).ends(0).says("shell_set_env on shell env:A");
    // As the ask writes the rule down.
    world.configure(&[rule("variables", "\"env:*\"", "ask"), rule("b", "[\"env:B\"]", "allow")].concat());
    world.run(&["call", "shell_set_env", &set("B")]).ends(0);
    asked(&world, "shell_set_env", &set("C"));
}

#[test]
fn l34_a_grant_for_a_session_answers_in_no_other_and_runs_out() {
    let world = World::new();
    let ask = asked(&world, "write", NOTE);
    // A time for nothing to be remembered is a slip, and the ask is not spent by it.
    world.run(&["approvals", "allow", &ask, "--expires", "7d"]).ends(2).warns("--save");
    world.run(&["approvals", "allow", &ask, "--session", "--expires", "7d"]).ends(0);
    world.run(&["call", "write", NOTE]).ends(0);
    let listed = world.run(&["grants", "--json"]).ends(0).json();
    assert_eq!(listed["grants"][0]["scope"]["session"], session(&world).as_str());
    assert!(listed["grants"][0]["expires_at"].is_string(), "{listed}");

    let ask = asked(&world, "write", r#"{"file_path":"b.txt","content":"x"}"#);
    world.run(&["approvals", "allow", &ask, "--save", "--expires", "1ms"]).ends(0);
    asked(&world, "write", r#"{"file_path":"b.txt","content":"y"}"#);
}

#[test]
fn l34_a_pinned_ask_is_never_remembered_and_stays_pending() {
    let world = World::new();
    world.configure("[[rules]]\naction = \"write\"\npath = \"**\"\neffect = \"ask_pinned\"\n");
    let ask = asked(&world, "write", NOTE);
    world.run(&["approvals", "allow", &ask, "--save"]).ends(1).warns("asks every time").one_error_line();
    world.run(&["approvals"]).ends(0).says(&ask);
    world.run(&["approvals", "allow", &ask]).ends(0);
    world.run(&["grants"]).ends(0).warns("nothing is remembered");
}

#[test]
fn l34_a_changed_rule_voids_what_was_remembered_for_it() {
    let world = World::new();
    let rule =
        |path: &str| format!("[[rules]]\nid = \"mine\"\naction = \"write\"\npath = \"{path}\"\neffect = \"ask\"\n");
    world.configure(&rule("**"));
    let ask = asked(&world, "write", NOTE);
    world.run(&["approvals", "allow", &ask, "--save"]).ends(0);
    world.run(&["call", "write", NOTE]).ends(0);
    world.configure(&rule("*.txt"));
    asked(&world, "write", NOTE);
}

/// A rule that asks about reading every file, and a search from the top: the answer that is remembered names the folder
/// and says that it reaches nothing beneath it.
#[test]
fn l33_a_grant_for_a_folder_opens_nothing_in_it_to_a_search() {
    let world = World::with_file("private.txt", "the token\n");
    world.configure("[[rules]]\nid = \"ask-reads\"\naction = \"read\"\npath = [\"**\"]\neffect = \"ask\"\n");
    let search = r#"{"pattern":"token"}"#;
    let ask = asked(&world, "grep", search);
    world.run(&["approvals", "show", &ask]).ends(0).says("exactly: /workspace\n").says("/workspace/beneath");
    // The person said yes to this very search.
    world.run(&["approvals", "allow", &ask, "--save"]).ends(0).says("private.txt:1:the token");
    for (tool, input) in [("grep", search), ("grep", r#"{"pattern":"the"}"#), ("glob", r#"{"pattern":"*"}"#)] {
        let again = world.run(&["call", tool, input]).ends(0);
        assert!(!again.out.contains("private.txt"), "{tool}: {}", again.out);
        assert!(again.out.contains("closed by rules"), "{tool}: {}", again.out);
    }
    asked(&world, "read", r#"{"file_path":"private.txt"}"#);
}

/// `sessions rm` says that what was remembered in a session stays and can be revoked.
#[test]
fn l34_a_grant_outlives_its_erased_session_and_can_still_be_taken_back() {
    let world = World::new();
    let ask = asked(&world, "write", NOTE);
    let grant = world.run(&["approvals", "allow", &ask, "--save"]).ends(0).id("grant_");
    world.run(&["sessions", "rm", &session(&world), "--yes"]).ends(0);
    std::fs::remove_file(world.workspace.join("a.txt")).expect("nobody has read it in the new session");
    world.run(&["call", "write", NOTE]).ends(0);
    world.run(&["grants", "revoke", &grant]).ends(0).says("ask again");
    asked(&world, "write", NOTE);
    world.run(&["grants", "revoke", &grant]).ends(1).warns("revoked already").one_error_line();
    world.run(&["audit", "verify"]).ends(0);
}

#[test]
fn l34_a_grant_for_longer_than_a_calendar_reaches_can_be_read_and_revoked() {
    let world = World::new();
    let ask = asked(&world, "write", NOTE);
    let grant = world.run(&["approvals", "allow", &ask, "--save", "--expires", "7300000d"]).ends(0).id("grant_");
    world.run(&["call", "write", NOTE]).ends(0);
    world.run(&["grants"]).ends(0).says("9999-");
    world.run(&["grants", "revoke", &grant]).ends(0);
    world.configure("[approvals]\nask_expiry = \"100000000h\"\n");
    let ask = asked(&world, "write", NOTE);
    world.run(&["approvals", "allow", &ask]).ends(0);
}
