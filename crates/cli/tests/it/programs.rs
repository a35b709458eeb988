//! Transcripts for programs: what `--json` carries, errors included, and what can be checked without a store.

use std::fs;

use crate::common::{Ran, World};
use serde_json::Value;

const READ: &str = r#"{"file_path":"a.txt"}"#;

fn recorded() -> (World, String) {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let session = world.run(&["call", "read", READ]).ends(0).id("sesn_");
    (world, session)
}

#[test]
fn a_call_names_its_session_beside_what_it_gave() {
    let (world, session) = recorded();
    assert_eq!(world.run(&["call", "read", READ, "--json"]).ends(0).json()["session_id"], session.as_str());
    let refused = world.run(&["call", "read", r#"{"file_path":"none"}"#, "--json"]).ends(1).json();
    assert_eq!((&refused["session_id"], &refused["ok"]), (&session.into(), &false.into()));
}

#[test]
fn an_error_is_a_document_for_a_program_and_a_line_for_a_person() {
    let (world, session) = recorded();
    let unknown = "sesn_00000000000000000000000000";
    for (args, exit) in [
        (vec!["sessions", "show", unknown, "--json"], 1),
        (vec!["call", "read", "@none", "--json"], 2),
        (vec!["audit", "verify", "nonsense", "--json"], 2),
        (vec!["--json", "sessions", "events"], 2),
    ] {
        let ran = world.run(&args).ends(exit).warns("error: ");
        let document = ran.json();
        assert_eq!(document["error"]["exit"], exit, "{document}");
        assert!(document["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{document}");
    }
    assert_eq!(world.run(&["sessions", "show", unknown]).ends(1).out, "");
    assert_eq!(world.run(&["--help", "--json"]).ends(0).err, "");
    world.run(&["sessions", "show", &session, "--json"]).ends(0).json();
}

#[test]
fn what_a_person_can_mend_shows_no_backtrace() {
    let (world, _) = recorded();
    let unknown = ["sessions", "show", "sesn_00000000000000000000000000"];
    for args in [unknown.as_slice(), &["call", "read", "@none"], &["audit", "verify", "--against", "9:00"]] {
        let output = world.command(args).env("RUST_BACKTRACE", "1").output().expect("runs");
        Ran::from(output).one_error_line();
    }
}

#[test]
fn a_saved_head_is_taken_as_it_was_printed_and_the_ledger_is_marked() {
    let (world, session) = recorded();
    let saved = world.home.join("head.json");
    fs::write(&saved, world.run(&["audit", "head", "--json"]).ends(0).out).expect("written");
    let against = saved.display().to_string();
    world.run(&["audit", "verify", "--against", &against]).ends(0).says("is in the ledger");
    for text in ["garbage", "9:00"] {
        let refused = world.run(&["audit", "verify", "--against", text]).ends(2).one_error_line();
        refused.warns("it is not SEQ:HASH");
    }
    let report = world.run(&["audit", "verify", "--json"]).ends(0).json();
    for log in report["logs"].as_array().expect("logs") {
        assert_eq!(log["ledger"], log["session_id"] != session.as_str(), "{log}");
    }
}

/// An export of a session, and of the ledger.
fn exported() -> (World, String, [String; 2]) {
    let (world, session) = recorded();
    let folder = world.home.join("bundle");
    world.run(&["audit", "export", "--out", &folder.display().to_string()]).ends(0);
    let files = [format!("sessions/{session}.ndjson"), "ledger.ndjson".to_owned()];
    let files = files.map(|name| folder.join(name).display().to_string());
    (world, session, files)
}

#[test]
fn an_export_is_verified_where_there_is_no_store() {
    let (world, session, [file, ledger]) = exported();
    let elsewhere = World::new();
    let verify = |args: &[&str]| elsewhere.run(&[&["audit", "verify", "--export"], args].concat());
    verify(&[&file]).ends(0).says(&session).says("consistent, head ");
    let report = verify(&[&file, "--json"]).ends(0).json();
    assert_eq!((&report["holds"], &report["ledger"]), (&true.into(), &false.into()));
    let head = world.run(&["audit", "head"]).ends(0).out.trim().to_owned();
    verify(&[&ledger, "--against", &head]).ends(0).says("the ledger");
    verify(&[&file, "--against", &head]).ends(2).warns("leave it out");
    let ahead = format!("99{head}");
    verify(&[&ledger, "--against", &ahead]).ends(1).says("before the saved head 99");
    assert!(!elsewhere.home.exists(), "nothing was made");
}

#[test]
fn an_export_that_was_altered_is_found() {
    let (world, _, [file, _]) = exported();
    let whole = fs::read_to_string(&file).expect("written");
    let lines: Vec<&str> = whole.lines().collect();
    let (manifest, events) = lines.split_last().expect("lines");
    let verify = |text: &[&str]| {
        fs::write(&file, text.join("\n") + "\n").expect("written");
        world.run(&["audit", "verify", "--export", &file])
    };
    verify(&lines).ends(0);
    let changed = whole.replacen("a.txt", "b.txt", 1);
    verify(&changed.lines().collect::<Vec<_>>()).ends(1).says("was altered");
    verify(&[&events[..events.len() - 1], &[manifest]].concat()).ends(1).says("the manifest says");
    verify(&[&events[1..], &[manifest]].concat()).ends(1).says("event 1 is missing");
    verify(&[&[*manifest], lines.as_slice()].concat()).ends(1).says("more follows it");
    verify(events).ends(2).warns("not the manifest of an export");
    let mut other: Value = serde_json::from_str(manifest).expect("JSON");
    other["manifest"]["types"]["tool.observation"] = 7.into();
    verify(&[events, &[&other.to_string()]].concat()).ends(1).says("lists other types");
}
