//! Transcripts of a session's shell state, each step a process of its own: folder and names carry over, and a value of
//! the environment is nowhere to be found.

use crate::common;

use std::fs;
use std::path::Path;

use common::{Ran, World};
use portcullis_store::{Records as _, VARIABLE};
use serde_json::Value;

const CANARY: &str = "canary-4711-of-the-environment";

fn set(key: &str, value: &str) -> String {
    serde_json::json!({"key": key, "value": value}).to_string()
}

fn document(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).expect("the document")
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
    let seen = document(&world.run(&["call", "shell_describe"]).ends(0));
    assert_eq!((&seen["cwd"], &seen["env"]["count"]), (&"/workspace".into(), &0.into()));
    world.run(&["call", "shell_set_cwd", r#"{"path":"sub/deep"}"#]).ends(0).says("/workspace/sub/deep");
    world.run(&["call", "shell_set_env", &set("A", "1")]).ends(0).warns("A is set");
    world.run(&["call", "shell_set_env", &set("B", "")]).ends(0);
    world.run(&["call", "shell_unset_env", r#"{"key":"A"}"#]).ends(0).warns("A is not set");
    let ran = world.run(&["call", "shell_describe"]).ends(0);
    let seen = document(&ran);
    assert_eq!((&seen["cwd"], &seen["env"]["keys"]), (&"/workspace/sub/deep".into(), &serde_json::json!(["B"])));
    let session = ran.id("sesn_");
    let events = world.run(&["sessions", "events", &session]).ends(0);
    for kind in ["session.updated", "variable.set", "variable.deleted"] {
        assert!(events.out.contains(kind), "no {kind} in {}", events.out);
    }
    // The state is the log's: rebuilt from it, it is the same, and another session has its own.
    let rebuilt = world.run(&["replay", &session, "--mode", "rebuild"]).ends(0).says("equal to the fold");
    assert_eq!(rebuilt.out, world.run(&["replay", &session, "--mode", "rebuild"]).ends(0).out);
    world.run(&["audit", "verify"]).ends(0);
    world.run(&["call", "shell_history"]).ends(0).says("\"count\": 0");
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
    let seen = world.run(&["call", "shell_describe"]).ends(0);
    assert_eq!(document(&seen)["env"]["keys"], serde_json::json!(["ASKED", "TOKEN"]));

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
