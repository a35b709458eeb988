//! `sessions rm`, as a person uses it.

use crate::common;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use common::World;

/// Every file beneath a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// A session with a word in its log, in a small artifact and in a large one; its id.
fn spoken(world: &World, word: &str) -> String {
    let text = format!("{word} once\n{}", format!("{word} again and again\n").repeat(9_000));
    world.write("big.txt", &text);
    world.run(&["call", "read", r#"{"file_path":"big.txt"}"#]).ends(0);
    let edit = common::edit("big.txt", &format!("{word} once"), &format!("{word} twice"));
    world.run(&["call", "edit", &edit, "--approvals", "allow"]).ends(0).id("sesn_")
}

/// Whether the word stands anywhere in the data folder.
fn stands(world: &World, word: &str) -> Vec<std::path::PathBuf> {
    let holds = |bytes: &[u8]| bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
    files(&world.home).into_iter().filter(|file| holds(&fs::read(file).expect("read"))).collect()
}

#[test]
fn an_erased_session_is_gone_but_for_its_hashes_and_everything_still_verifies() {
    let world = World::new();
    let session = spoken(&world, "zanzibar");
    world.run(&["sessions", "search", "zanzibar"]).ends(0).says("zanzibar");
    assert!(!stands(&world, "zanzibar").is_empty());
    let head = world.run(&["audit", "head"]).ends(0).out.trim().to_owned();
    for file in files(&world.home.join("artifacts")) {
        let file = File::options().write(true).open(file).expect("a file");
        file.set_modified(SystemTime::now() - Duration::from_secs(3_600)).expect("an older time");
    }

    // Nobody sits here: a flag must say yes.
    world.run(&["sessions", "rm", &session]).ends(2).one_error_line().warns("--yes");
    assert!(!stands(&world, "zanzibar").is_empty());
    let erased = world.run(&["sessions", "rm", &session, "--yes", "--reason", "asked for"]).ends(0);
    erased.says("erased").says("files deleted");
    assert_eq!(stands(&world, "zanzibar"), [] as [std::path::PathBuf; 0], "no byte of it is left");

    world.run(&["audit", "verify"]).ends(0).says(&session);
    world.run(&["audit", "verify", "--against", &head]).ends(0);
    world.run(&["audit", "verify", &session]).ends(0).says("ok");
    world.run(&["sessions", "search", "zanzibar"]).ends(0).warns("nothing was found");
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0).lines();
    let (last, before) = events.split_last().expect("events");
    assert!(before.iter().all(|event| event["payload"].is_null()), "{before:?}");
    assert!(last.to_string().contains("session.erased") && last.to_string().contains("asked for"), "{last}");
    world.run(&["sessions", "show", &session]).ends(1).one_error_line().warns("was erased");
    world.run(&["replay", &session, "--mode", "rebuild"]).ends(1).one_error_line().warns("was erased");
    world.run(&["sessions", "rm", &session, "--yes"]).ends(1).one_error_line().warns("erased already");
    world.run(&["sessions", "rm", "sesn_00000000000000000000000009", "--yes"]).ends(1);

    // An export of it says so as well, and another store takes it in as it is.
    let file = world.workspace.join("erased.ndjson");
    let out = file.display().to_string();
    world.run(&["sessions", "export", &session, "--with-artifacts", "--out", &out]).ends(0);
    world.run(&["audit", "verify", "--export", &out]).ends(0);
    let other = World::new();
    other.run(&["sessions", "import", &out]).ends(0);
    other.run(&["audit", "verify"]).ends(0);

    // Calls in the workspace go on, in a session of their own.
    let next = world.run(&["call", "read", r#"{"file_path":"big.txt"}"#]).ends(0).id("sesn_");
    assert_ne!(next, session);
    world.run(&["call", "read", r#"{"file_path":"big.txt"}"#, "--session", &session]).ends(1).warns("was erased");
    world.run(&["audit", "verify"]).ends(0);
}

#[test]
fn a_payload_that_is_gone_without_a_word_is_found() {
    let world = World::new();
    let session = spoken(&world, "zanzibar");
    // Whoever takes it out is careful, and keeps what it hashed to.
    let whole = world.workspace.join("whole.ndjson");
    world.run(&["sessions", "export", &session, "--out", &whole.display().to_string()]).ends(0);
    let lines: Vec<serde_json::Value> = std::fs::read_to_string(&whole)
        .expect("the export")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|line: &serde_json::Value| line["seq"].is_u64())
        .collect();
    let raw = rusqlite::Connection::open(world.database()).expect("the file opens");
    let (log, run): (i64, i64) = raw
        .query_row(
            "SELECT log, run FROM events JOIN logs USING (log) JOIN sessions USING (session) WHERE seq = 5",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .expect("event 5");
    for line in lines {
        let hash = line["payload_hash"].as_str().expect("a hash");
        raw.execute(
            &format!("UPDATE events SET payload_hash = x'{hash}' WHERE log = ?1 AND run = ?2 AND seq = ?3"),
            rusqlite::params![log, run, line["seq"].as_u64()],
        )
        .expect("kept");
    }
    raw.execute("UPDATE runs SET payloads = NULL WHERE run = ?1", [run]).expect("taken out");
    world.run(&["audit", "verify", &session]).ends(1).says("nothing says that it was erased");
    let file = world.workspace.join("cut.ndjson").display().to_string();
    world.run(&["sessions", "export", &session, "--out", &file]).ends(0);
    world.run(&["audit", "verify", "--export", &file]).ends(1);
}

#[test]
fn a_session_that_a_live_process_holds_is_not_erased() {
    let world = World::new();
    let session = spoken(&world, "zanzibar");
    let runtime = common::embedded(&world);
    let id = session.parse().expect("an id");
    tokio::runtime::Runtime::new().expect("threads").block_on(async {
        let held = match runtime.gate().open(id, owner()).await.expect("opened") {
            portcullis_pipeline::Opened::Ready(held) => held,
            portcullis_pipeline::Opened::Held(owner) => panic!("held by {owner}"),
        };
        world.run(&["sessions", "rm", &session, "--yes"]).ends(5).one_error_line().warns("in use by a test");
        held.release().await.expect("released");
    });
    assert!(!stands(&world, "zanzibar").is_empty());
    world.run(&["sessions", "rm", &session, "--yes"]).ends(0);
}

fn owner() -> portcullis_store::LeaseOwner {
    let worker = portcullis_base::WorkerId::from_u128(7);
    portcullis_store::HostLiveness::new().this_process(worker, "a test")
}

#[test]
fn on_a_terminal_a_person_is_asked() {
    let world = World::new();
    let session = spoken(&world, "zanzibar");
    for (answer, code) in [("no\n", 1), ("yes\n", 0)] {
        let (mut child, mut keys, mut out) = common::on_terminal(&world, &format!("sessions rm {session}"));
        common::until(&mut out, "Type yes: ");
        keys.write_all(answer.as_bytes()).expect("typed");
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut out, &mut rest).expect("the rest");
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{rest}");
        assert_eq!(rest.contains("nothing was erased"), code == 1, "{rest}");
    }
}

#[test]
fn nothing_of_an_erased_session_lingers_in_pages_that_were_split_while_others_wrote() {
    let world = World::new();
    world.write("a.txt", "zebrafish-needle\n");
    let session = world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0).id("sesn_");
    let other = tempfile::tempdir().expect("a folder");
    let there = other.path().display().to_string();
    for n in 0..14 {
        fs::write(other.path().join(format!("{n}.txt")), format!("{n} ").repeat(2_000)).expect("a file");
        let input = format!(r#"{{"file_path":"{n}.txt"}}"#);
        world.run(&["--workspace", &there, "call", "read", &input]).ends(0);
    }
    assert!(!stands(&world, "zebrafish").is_empty());
    world.run(&["sessions", "rm", &session, "--yes"]).ends(0);
    assert_eq!(stands(&world, "zebrafish"), [] as [std::path::PathBuf; 0], "no byte of it is left");
}

#[test]
fn audit_verify_says_how_many_sessions_are_erased_and_that_their_content_cannot_be_checked() {
    let mut world = World::with_file("a.txt", "alpha\n");
    let read = r#"{"file_path":"a.txt"}"#;
    let gone = world.run(&["call", "read", read]).ends(0).id("sesn_");
    let before = world.run(&["audit", "verify"]).ends(0);
    assert!(!before.out.contains("erased"), "{}", before.out);
    assert_eq!(world.run(&["audit", "verify", "--json"]).ends(0).json()["erased_sessions"], 0);
    world.workspace = world.workspace.with_file_name("second");
    world.write("a.txt", "beta\n");
    let kept = world.run(&["call", "read", read]).ends(0).id("sesn_");
    world.run(&["sessions", "rm", &gone, "--yes"]).ends(0);
    let ran = world.run(&["audit", "verify"]).ends(0).says("1 session erased").says("cannot be checked");
    let of = |session: &str| ran.out.lines().find(|line| line.contains(session)).expect("a line of it").to_owned();
    assert!(of(&gone).contains("erased, so only its hashes were checked"), "{}", ran.out);
    assert!(!of(&kept).contains("erased"), "{}", ran.out);
    world.run(&["audit", "verify", &gone]).ends(0).says("erased");
    let found = world.run(&["audit", "verify", "--json"]).ends(0).json();
    assert_eq!((&found["holds"], &found["erased_sessions"]), (&true.into(), &1.into()));
    let erased = found["logs"].as_array().expect("logs").iter().filter(|log| log["erased"] == true);
    assert_eq!(erased.map(|log| log["session_id"].clone()).collect::<Vec<_>>(), [serde_json::json!(gone)]);
}

#[test]
fn erasing_says_which_copies_and_which_remembered_allows_stay() {
    let world = World::with_file("a.txt", "alpha\n");
    let ask = world.ask_to_edit("a.txt", "alpha", "beta");
    let session = world.run(&["sessions"]).ends(0).id("sesn_");
    let grant = world.run(&["approvals", "allow", &ask, "--save"]).ends(0).id("grant_");
    world.run(&["audit", "export"]).ends(0);
    world.run(&["sessions", "rm", &session]).ends(2).one_error_line().warns("1 exported copy and 1 remembered allow");
    let ran = world.run(&["sessions", "rm", &session, "--yes"]).ends(0);
    let copy = files(&world.home.join("evidence")).into_iter().find(|file| file.ends_with(format!("{session}.ndjson")));
    let copy = copy.expect("the copy is still there");
    ran.warns(&copy.display().to_string()).warns(&format!("grants revoke {grant}"));
    // Where nothing stays, nothing is said.
    let other = World::with_file("a.txt", "alpha\n");
    let session = other.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0).id("sesn_");
    let ran = other.run(&["sessions", "rm", &session, "--yes"]).ends(0);
    assert!(!ran.err.contains("stays"), "{}", ran.err);
    let help = world.run(&["sessions", "rm", "--help"]).ends(0).out;
    assert!(help.contains("audit export") && help.contains("sessions export"), "{help}");
}
