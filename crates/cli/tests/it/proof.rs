//! Transcripts of `audit`, `sessions export` and `replay`: what is recorded can be proved, and what
//! was tampered with is found.

use crate::common;

use std::fs;

use common::World;
use rusqlite::Connection;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

fn recorded() -> (World, String) {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let ask = world.ask_to_edit("a.txt", "beta", "gamma");
    let session = world.run(&["approvals", "allow", &ask]).ends(0).id("sesn_");
    world.ask_to_edit("a.txt", "gamma", "delta");
    (world, session)
}

fn tamper(world: &World, sql: &str) {
    let db = Connection::open(world.database()).expect("opens");
    let changed = db.execute(sql, []).expect("runs");
    assert!(changed > 0, "it changed something: {sql}");
}

/// Changes the payload of an event of the one session, among those that it is stored with.
fn change_payload(world: &World, seq: u64, from: &str, to: &str) {
    let db = Connection::open(world.database()).expect("opens");
    let sql = "SELECT run, payloads, start, bytes FROM events JOIN runs USING (run) JOIN logs ON logs.log = events.log \
               JOIN sessions USING (session) WHERE seq = ?1";
    let (run, packed, start, bytes): (i64, Vec<u8>, usize, usize) = db
        .query_row(sql, [seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .expect("an event in a packed run");
    // The size stands before it, with a bit that says: packed with these words.
    let words = include_bytes!("../../../store-sqlite/src/words.txt");
    let (size, packed) = packed.split_first_chunk().expect("a size");
    let size = usize::try_from(u32::from_le_bytes(*size) & !(1 << 31)).expect("a length");
    let all = lz4_flex::block::decompress_with_dict(packed, size, words).expect("unpacked");
    let mut all = String::from_utf8(all).expect("text");
    let honest = &all[start..start + bytes];
    let forged = honest.replacen(from, to, 1);
    assert!(forged != honest && forged.len() == bytes, "the text is in it, and as long: {honest}");
    all.replace_range(start..start + bytes, &forged);
    let packed = lz4_flex::block::compress_prepend_size(all.as_bytes());
    db.execute("UPDATE runs SET payloads = ?2 WHERE run = ?1", rusqlite::params![run, packed]).expect("changed");
}

#[test]
fn a_clean_store_is_proved_with_the_key_and_only_consistent_without() {
    let (world, session) = recorded();
    world.run(&["audit", "verify"]).ends(0).says(&format!("{session}: ")).says("proved up to seq ").says("the ledger");
    world.run(&["audit", "verify", &session]).ends(0).says("proved up to seq ");
    let report = world.run(&["audit", "verify", "--json"]).ends(0).json();
    assert_eq!((&report["holds"], &report["faults"]), (&true.into(), &Value::Array(vec![])));
    fs::rename(world.home.join("keys/checkpoint.key"), world.home.join("keys/away")).expect("moved");
    let without = world.run(&["audit", "verify"]).ends(0).says("consistent");
    assert!(!without.out.contains("proved"), "{}", without.out);
    assert!(!world.home.join("keys/checkpoint.key").exists(), "no new key hides that the old one is gone");
    world.run(&["doctor"]).ends(1).says("checkpoint.key is missing");
    world.run(&["audit", "verify", "sesn_00000000000000000000000000"]).ends(1).warns("sessions list").one_error_line();
}

#[test]
fn a_changed_payload_is_found_and_the_event_named() {
    let (world, session) = recorded();
    change_payload(&world, 6, "allow", "asked");
    let ran = world.run(&["audit", "verify"]).ends(1).says("event 6 (sevt_").says("was altered").warns(&session);
    assert!(ran.out.contains("broken"));
    world.run(&["audit", "verify", &session]).ends(1).says("event 6");
    let report = world.run(&["audit", "verify", "--json"]).ends(1).json();
    assert!(report["faults"][0].as_str().is_some_and(|fault| fault.contains("event 6")), "{report}");
    world.run(&["doctor"]).ends(1).says("event 6");
    let folder = world.home.join("bundle").display().to_string();
    world.run(&["audit", "export", "--out", &folder]).ends(1).says("see verify.json");
}

#[test]
fn a_tail_dropped_together_with_its_head_row_is_found() {
    let (world, session) = recorded();
    tamper(&world, "DELETE FROM events WHERE log = (SELECT log FROM logs JOIN sessions USING (session)) AND seq > 30");
    tamper(&world, "DELETE FROM checkpoints WHERE session = (SELECT session FROM sessions) AND seq > 30");
    tamper(
        &world,
        "UPDATE session_heads SET last_seq = 30, last_hash = (SELECT hash FROM events e WHERE e.seq = 30 AND \
         e.log = (SELECT log FROM logs JOIN sessions USING (session))) WHERE session = (SELECT session FROM sessions)",
    );
    world.run(&["audit", "verify"]).ends(1).says(&session).says("its tail is lost");
}

#[test]
fn a_deleted_session_is_found_against_a_saved_head() {
    let (world, session) = recorded();
    let head = world.run(&["audit", "head"]).ends(0).out.trim().to_owned();
    let file = world.home.join("saved-head");
    fs::write(&file, &head).expect("saved");
    world.run(&["audit", "verify", "--against", &head]).ends(0).says("is in the ledger");
    world.run(&["audit", "verify", "--against", &file.display().to_string()]).ends(0);
    world.run(&["audit", "verify", "--against", "7:zz"]).ends(2).warns("SEQ:HASH").one_error_line();
    tamper(&world, "DELETE FROM events WHERE log = (SELECT log FROM logs JOIN sessions USING (session))");
    for table in ["checkpoints", "intents", "asks", "session_heads", "sessions"] {
        tamper(&world, &format!("DELETE FROM {table} WHERE session = (SELECT session FROM sessions)"));
    }
    let ran = world.run(&["audit", "verify", "--against", &head]).ends(1);
    ran.says(&session).says("was deleted").warns("error: ");
}

#[test]
fn an_export_is_verified_by_whoever_can_hash() {
    let (world, session) = recorded();
    let out = world.home.join("export.ndjson");
    world.run(&["sessions", "export", &session, "--out", &out.display().to_string()]).ends(0);
    world.run(&["sessions", "export", &session, "--out", &out.display().to_string()]).ends(1).warns("is there already");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&out).expect("the file").permissions());
    assert_eq!(mode & 0o777, 0o600, "what a session holds is nobody else's to read");
    let text = fs::read_to_string(&out).expect("written");
    assert_eq!(world.run(&["sessions", "export", &session]).ends(0).out, text);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (manifest, events) = lines.split_last().expect("lines");
    let mut prev = hash(&[format!("portcullis-log-1:{session}").as_bytes()]);
    for event in events {
        assert_eq!(event["prev_hash"], hex(&prev).as_str());
        let payload = hash(&[event["payload"].as_str().expect("text").as_bytes()]);
        assert_eq!(event["payload_hash"], hex(&payload).as_str());
        prev = chained(&prev, &payload, event);
        assert_eq!(event["hash"], hex(&prev).as_str(), "event {}", event["seq"]);
    }
    let manifest = &manifest["manifest"];
    assert_eq!((&manifest["head"]["hash"], &manifest["events"]), (&hex(&prev).into(), &events.len().into()));
    assert!(manifest["ledger_head"]["seq"].as_u64() > Some(0));
    assert!(manifest["artifacts"].as_object().is_some_and(|all| !all.is_empty()));
}

/// Store §2, written down a second time.
fn chained(prev: &[u8; 32], payload: &[u8; 32], event: &Value) -> [u8; 32] {
    let mut bytes = [prev.as_slice(), payload].concat();
    let mut put = |value: Option<&[u8]>| match value {
        Some(value) => {
            bytes.extend((value.len() as u32).to_be_bytes());
            bytes.extend(value);
        }
        None => bytes.extend(u32::MAX.to_be_bytes()),
    };
    let text = |name: &str| event[name].as_str().map(|text| text.as_bytes().to_vec());
    let number = |name: &str| event[name].as_u64().map(|n| n.to_be_bytes().to_vec());
    let at: portcullis_base::Timestamp = event["at"].as_str().expect("a time").parse().expect("a time");
    let columns = [
        number("seq"),
        text("id"),
        text("type"),
        Some(at.as_micros().to_be_bytes().to_vec()),
        text("actor"),
        text("worker_id"),
        number("fence"),
        text("wake_id"),
        text("turn_id"),
        text("session_thread_id"),
        text("append_id"),
        number("v"),
    ];
    columns.iter().for_each(|column| put(column.as_deref()));
    hash(&[&bytes])
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn an_evidence_bundle_holds_every_log_the_ledger_and_the_report() {
    let (world, session) = recorded();
    let folder = world.home.join("bundle");
    world
        .run(&["audit", "export", "--out", &folder.display().to_string()])
        .ends(0)
        .says("2 logs")
        .says("everything holds");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("written");
    assert_eq!(read(&format!("sessions/{session}.ndjson")), world.run(&["sessions", "export", &session]).out);
    assert!(read("ledger.ndjson").contains("ledger.session_created"));
    let report: Value = serde_json::from_str(&read("verify.json")).expect("JSON");
    assert_eq!(report["holds"], true);
    let manifest: Value = serde_json::from_str(&read("manifest.json")).expect("JSON");
    assert_eq!(manifest["ledger_head"], world.run(&["audit", "head"]).out.trim());
    world.run(&["audit", "export", "--out", &folder.display().to_string()]).ends(1).warns("exists already");
    world.run(&["audit", "export"]).ends(0).says(&world.home.join("evidence").display().to_string());
}

#[test]
fn l70_replay_tells_what_happened_and_executes_nothing() {
    let (world, session) = recorded();
    world.write("a.txt", "mine\n");
    let told = world.run(&["replay", &session]).ends(0);
    told.says("proposed: edit").says("decided: ask").says("answered: allow_once").says("observed: ok");
    let short = world.run(&["replay", &session, "--until", "10"]).ends(0);
    assert!(!short.out.contains("edit"), "{}", short.out);
    assert_eq!(world.read("a.txt"), "mine\n");
    let before = world.run(&["sessions", "events", &session, "--json"]).ends(0).lines().len();
    let rebuilt = world.run(&["replay", &session, "--mode", "rebuild", "--json"]).ends(0).json();
    assert_eq!(
        (&rebuilt["seq"], &rebuilt["pending_asks"], &rebuilt["open_intents"]),
        (&before.into(), &1.into(), &1.into())
    );
    let again = world.run(&["replay", &session, "--mode", "rebuild"]).ends(0);
    again.says(rebuilt["digest"].as_str().expect("a digest")).says("equal to the fold").says("1 pending ask");
}

#[test]
fn s15_rows_that_do_not_follow_from_the_log_are_a_divergence() {
    let here = "session = (SELECT session FROM sessions)";
    for (sql, told) in [
        ("UPDATE asks SET state = 'pending' WHERE state = 'answered'".to_owned(), "state: the log says \"answered\""),
        ("UPDATE asks SET facts = replace(facts, 'gamma', 'harmless')".to_owned(), "facts: the log says"),
        ("UPDATE intents SET tool = 'read' WHERE tool = 'edit'".to_owned(), "tool: the log says \"edit\""),
        (format!("UPDATE session_heads SET blocked_n = 0 WHERE {here}"), "the head: blocked_n: the log says 1"),
        (format!("UPDATE session_heads SET status = 'terminated' WHERE {here}"), "the head: status: the log says"),
    ] {
        let (world, session) = recorded();
        world.run(&["replay", &session, "--mode", "rebuild"]).ends(0).says("equal to the fold");
        tamper(&world, &sql);
        world.run(&["replay", &session, "--mode", "rebuild"]).ends(1).says(told).says("differ from the fold");
    }
}

#[test]
fn s15_a_person_is_shown_what_the_log_asks_whatever_the_row_says() {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let ask = world.ask_to_edit("a.txt", "beta", "gamma");
    tamper(&world, "UPDATE asks SET facts = replace(replace(facts, 'gamma', 'harmless'), 'a.txt', 'b.txt')");
    let shown = world.run(&["approvals", "show", &ask]).ends(0).says("gamma").says("/workspace/a.txt");
    assert!(!shown.out.contains("harmless"), "{}", shown.out);
    world.run(&["approvals"]).ends(0).says("/workspace/a.txt");
    tamper(&world, "UPDATE asks SET asked_seq = 1");
    world.run(&["approvals", "allow", &ask]).ends(5).warns("audit verify").one_error_line();
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
}

#[test]
fn replay_says_of_a_tool_that_does_not_exist_that_it_was_not_found() {
    let world = World::new();
    let session = world.run(&["call", "nonsense", "{}"]).ends(1).id("sesn_");
    let told = world.run(&["replay", &session]).ends(0).says("not found");
    assert!(!told.out.lines().any(|line| line.trim_end().ends_with(" found") && !line.contains("not found")));
}

#[test]
fn sessions_are_listed_shown_and_paged() {
    let (world, session) = recorded();
    world.run(&["sessions"]).ends(0).says(&session).says("calls in work");
    let listed = world.run(&["sessions", "list", "--json"]).ends(0).json();
    let row = &listed["sessions"][0];
    assert_eq!((&row["session_id"], &row["waiting"]), (&session.as_str().into(), &1.into()));
    world
        .run(&["sessions", "show", &session])
        .ends(0)
        .says("parked")
        .says("waits for an answer: portcullis approvals show ask_");
    let page = world.run(&["sessions", "events", &session, "--after", "2", "--limit", "3", "--json"]).ends(0).lines();
    let seqs: Vec<u64> = page.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, [3, 4, 5]);
    world.run(&["sessions", "show", "sesn_00000000000000000000000000"]).ends(1).one_error_line();
}

#[test]
fn events_are_columns_that_line_up_cut_to_the_width_of_the_terminal() {
    let (world, session) = recorded();
    for columns in [80, 100, 160] {
        let (mut child, _keys, mut out) =
            common::on_terminal_of(&world, columns, &format!("--color never sessions events {session}"));
        let mut shown = String::new();
        std::io::Read::read_to_string(&mut out, &mut shown).expect("readable");
        assert!(child.wait().expect("ends").success(), "{shown}");
        let lines: Vec<&str> = shown.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        assert!(lines.len() > 8, "{shown}");
        let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width <= usize::from(columns)), "{columns}: {widths:?}\n{shown}");
        assert!(widths.iter().any(|width| *width > usize::from(columns) / 2), "the width is used: {shown}");
        let start = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let kind = line.find(words[2]).expect("a type");
            let rest = line[kind + words[2].len()..].find(|c: char| c != ' ').expect("a summary");
            (kind, kind + words[2].len() + rest)
        };
        let first = start(lines[0]);
        assert!(lines.iter().all(|line| start(line) == first), "{shown}");
        let at = lines[0].split_whitespace().nth(1).expect("a time");
        assert_eq!(at.contains('T'), columns >= 120, "the day, where there is room: {at}");
        assert!(shown.contains("proposed: read") && shown.contains("tool.observation"), "{shown}");
    }
    let whole = world.run(&["sessions", "events", &session, "--json"]).ends(0);
    assert!(whole.lines().iter().all(|event| event["payload"].is_string() && event["actor"].is_string()));
}

#[test]
fn followed_events_come_as_they_are_appended() {
    let (world, session) = recorded();
    let last = world.run(&["sessions", "events", &session, "--json"]).ends(0).lines().len().to_string();
    let args = ["sessions", "events", &session, "--after", &last, "--follow"];
    let mut child = world.command(&args).spawn().expect("starts");
    let mut out = std::io::BufReader::new(child.stdout.take().expect("piped"));
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0);
    let mut line = String::new();
    while !line.contains("tool.observation") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut out, &mut line).expect("readable") > 0, "it ended early");
    }
    common::interrupt(&child);
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}
