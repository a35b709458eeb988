//! Transcripts of a session's shell state, each step a process of its own: folder and names carry over, and a value of
//! the environment is nowhere to be found.

use crate::common;

use std::fs;
use std::path::Path;

use common::{Ran, World};
use portcullis_store::{Records as _, VARIABLE};

const CANARY: &str = "canary-4711-of-the-environment";

fn set(key: &str, value: &str) -> String {
    serde_json::json!({"key": key, "value": value}).to_string()
}

/// Nothing of the canary in what was printed.
#[track_caller]
fn clean(ran: &Ran) {
    assert!(!ran.out.contains(CANARY) && !ran.err.contains(CANARY), "{}\n{}", ran.out, ran.err);
}

/// The files beneath a folder that hold these bytes.
fn holding(folder: &Path, bytes: &[u8], found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            holding(&path, bytes, found);
        } else if fs::read(&path).expect("readable").windows(bytes.len()).any(|window| window == bytes) {
            found.push(path.display().to_string());
        }
    }
}

#[track_caller]
fn nowhere_on_disk(world: &World) {
    let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    for bytes in [CANARY.as_bytes(), hex.as_bytes(), &CANARY.as_bytes()[..16]] {
        let mut found = Vec::new();
        holding(&world.home, bytes, &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn check20_folder_and_names_carry_over_from_process_to_process() {
    let world = World::with_file("sub/deep/a.txt", "x");
    let seen = world.document("shell_describe");
    assert_eq!((&seen["cwd"], &seen["env"]["count"]), (&"/workspace".into(), &0.into()));
    world.run(&["call", "shell_set_cwd", r#"{"path":"sub/deep"}"#]).ends(0).says("/workspace/sub/deep");
    world.run(&["call", "shell_set_env", &set("A", "1")]).ends(0).warns("A is set");
    world.run(&["call", "shell_set_env", &set("B", "")]).ends(0);
    world.run(&["call", "shell_unset_env", r#"{"key":"A"}"#]).ends(0).warns("A is not set");
    let seen = world.document("shell_describe");
    assert_eq!((&seen["cwd"], &seen["env"]["keys"]), (&"/workspace/sub/deep".into(), &serde_json::json!(["B"])));
    let session = seen["sessionId"].as_str().expect("an id").to_owned();
    let events = world.run(&["sessions", "events", &session]).ends(0);
    for kind in ["session.updated", "variable.set", "variable.deleted"] {
        assert!(events.out.contains(kind), "no {kind} in {}", events.out);
    }
    // The state is the log's: rebuilt from it, it is the same, and another session has its own.
    let rebuilt = world.run(&["replay", &session, "--mode", "rebuild"]).ends(0).says("equal to the fold");
    assert_eq!(rebuilt.out, world.run(&["replay", &session, "--mode", "rebuild"]).ends(0).out);
    world.run(&["audit", "verify"]).ends(0);
    assert_eq!(world.document("shell_history")["count"], 0);
    world.run(&["tools", "show", "shell_set_env"]).ends(0).says("x-portcullis-sensitive");
    let code = world.run(&["tools", "--profile", "code"]).ends(0);
    assert!(!code.out.contains("shell_"), "they are of the profile `managed`: {}", code.out);
}

#[test]
fn check17_h12_l69_a_value_is_in_no_event_export_file_ask_or_error() {
    let world = World::new();
    let ran = world.run(&["call", "shell_set_env", &set("TOKEN", CANARY)]).ends(0);
    clean(&ran);
    let session = ran.id("sesn_");
    // Refused calls, whatever is wrong with them.
    let misspelt = serde_json::json!({"key": "A", "valeu": CANARY}).to_string();
    let nested = serde_json::json!({"key": "A", "value": [CANARY]}).to_string();
    let long = CANARY.repeat(400);
    let cut = set("A", CANARY).trim_end_matches('}').to_owned();
    for input in [set("PATH", CANARY), set("A", &long), misspelt, nested, cut] {
        clean(&world.run(&["call", "shell_set_env", &input]).ends(1));
    }
    clean(&world.run(&["policy", "explain", "shell_set_env", &set("A", CANARY)]).ends(0));
    // One that a person is asked about, and that runs with the value in another process.
    world.configure("[[rules]]\naction = \"shell_set_env\"\neffect = \"ask\"\n");
    let asked = world.run(&["call", "shell_set_env", &set("ASKED", CANARY)]).ends(3);
    clean(&asked);
    let ask = asked.id("ask_");
    for args in [vec!["approvals"], vec!["approvals", "show", &ask], vec!["approvals", "list", "--json"]] {
        clean(&world.run(&args).ends(0));
    }
    nowhere_on_disk(&world);
    clean(&world.run(&["approvals", "allow", &ask]).ends(0));
    assert_eq!(world.document("shell_describe")["env"]["keys"], serde_json::json!(["ASKED", "TOKEN"]));

    for args in [
        vec!["sessions", "show", &session],
        vec!["sessions", "events", &session],
        vec!["sessions", "events", &session, "--json"],
        vec!["sessions", "export", &session, "--with-artifacts"],
        vec!["replay", &session],
        vec!["call", "shell_describe", "--json"],
    ] {
        let ran = world.run(&args).ends(0);
        assert!(!ran.out.is_empty());
        clean(&ran);
    }
    nowhere_on_disk(&world);
}

#[test]
fn h12_an_erased_session_leaves_no_sealed_value_and_an_imported_one_brings_none() {
    let world = World::new();
    let session = world.run(&["call", "shell_set_env", &set("TOKEN", CANARY)]).ends(0).id("sesn_");
    let rows = |world: &World| {
        let store = common::store(world);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(store.records(portcullis_event::LOCAL_TENANT, VARIABLE)).expect("rows").len()
    };
    assert_eq!(rows(&world), 1);
    let file = world.workspace.join("log.ndjson");
    let path = file.to_str().expect("text");
    world.run(&["sessions", "export", &session, "--with-artifacts", "--out", path]).ends(0);
    let other = World::new();
    other.run(&["sessions", "import", path]).ends(0);
    assert_eq!(rows(&other), 0, "values stay where their key is");
    world.run(&["sessions", "rm", &session, "--yes"]).ends(0);
    assert_eq!(rows(&world), 0);
}

/// What a person reads of the shell tools is words and columns; the documents are for programs.
#[test]
fn a_person_is_shown_shells_in_words_and_a_program_the_document() {
    let world = World::with_file("sub/a.txt", "x");
    let plain = |tool: &str, input: &str| {
        let ran = world.run(&["--approvals", "allow", "call", tool, input]).ends(0);
        assert!(!ran.out.contains("sessionId") && !ran.out.contains("shellState"), "{tool}: {}", ran.out);
        ran
    };
    assert_eq!(plain("shell_history", "{}").out, "no command ran in this session yet\n");
    plain("shell_describe", "{}").says("shell        none was opened yet");
    let exec = plain("shell_exec", r#"{"command":"echo out; echo err >&2; cd sub; export A=1"}"#);
    assert_eq!(exec.out, "out\nerr\n");
    exec.warns("exit code 0");
    let open = plain("shell_open", "{}");
    let shell = open.id("shell_0");
    assert_eq!(open.out, format!("{shell} in /workspace/sub\n"));
    let seen = plain("shell_describe", "{}").says("folder       /workspace/sub").says("environment  A\n");
    seen.says("shell        none runs; the next shell_exec begins one").says("last command echo out");
    let history = plain("shell_history", "{}").says("EXIT").says("echo out; echo err >&2; cd sub; export A=1");
    let command = history.id("cmd_");
    let one = plain("shell_read_command", &format!(r#"{{"commandId":"{command}"}}"#)).out;
    assert!(one.contains("exit 0 after") && one.contains("\nout\nerr\n"), "{one}");
    assert_eq!(plain("shell_read_last_output", "{}").out, "out\nerr\n");
    assert_eq!(plain("shell_set_cwd", r#"{"path":"/workspace"}"#).out, "/workspace\n");
    assert_eq!(plain("shell_set_env", r#"{"key":"B","value":"2"}"#).out, "environment: A, B\n");
    assert_eq!(plain("shell_unset_env", r#"{"key":"A"}"#).out, "environment: B\n");
    assert_eq!(plain("shell_wait", "{}").out, "no command runs\n");
    assert_eq!(plain("shell_close", "{}").out, "there was none to close\n");
    assert_eq!(world.document("shell_describe")["shellState"]["version"], 5);
}

#[test]
fn a_shell_opened_by_a_call_is_said_to_end_with_it_and_what_carries_over() {
    let world = World::with_file("sub/a.txt", "x");
    for tool in ["shell_open", "shell_restart"] {
        let ran = world.run(&["call", tool, r#"{"cwd":"sub"}"#]).ends(0);
        assert!(!ran.out.contains("active") && !ran.err.contains("runs in"), "{} {}", ran.out, ran.err);
        ran.warns("the shell ends with this call").warns("folder and exported variables carry over");
        // It is so.
        assert_eq!(world.document("shell_describe")["persistentShell"]["status"], "closed");
    }
    let exec = |command: &str| {
        let input = serde_json::json!({ "command": command }).to_string();
        world.run(&["--approvals", "allow", "call", "shell_exec", &input]).ends(0).out
    };
    exec("export A=1; f() { echo f; }");
    assert_eq!(exec("pwd; echo $A; type f >/dev/null 2>&1 || echo gone"), "/workspace/sub\n1\ngone\n");
}
