//! A log that is not the one that was recorded: nothing is written to its session, nothing of it runs a second time, and
//! no command spins.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use rusqlite::Connection;

use crate::common::{self, Ran, World};
use crate::store_gone::{effects, script};

const EFFECTS: usize = 3;

fn turns() -> String {
    let turn = |n| {
        format!("[[turn]]\ncalls = [{{ name = \"bash\", input = {{ command = \"echo n{n} >> effects.txt\" }} }}]\n")
    };
    (1..=EFFECTS).map(turn).collect::<String>() + "[[turn]]\ntext = \"That was all.\"\n"
}

/// A session that has done its work; its id.
fn worked(world: &World) -> String {
    let ran = run(world, &["go"]).ends(0);
    assert_eq!(effects(world), EFFECTS);
    ran.id("sesn_")
}

fn run(world: &World, more: &[&str]) -> Ran {
    let model = script(world, &turns());
    world.run(&[&["run"], more, &["--model", &model, "--approvals", "allow"]].concat())
}

fn sql(world: &World, text: &str) {
    let conn = Connection::open(world.database()).expect("it opens");
    conn.execute_batch(text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// The number of the log of the session, for a statement.
fn log(session: &str) -> String {
    let hex = format!("{:032x}", session.parse::<portcullis_base::SessionId>().expect("an id").as_u128());
    format!("(SELECT log FROM logs WHERE session = x'{hex}')")
}

/// Ways in which a log and what is recorded of it can disagree.
fn attacks(session: &str) -> Vec<(&'static str, String)> {
    let (log, last) =
        (log(session), |n: u32| format!("(SELECT max(seq) - {n} FROM events WHERE log = {})", log(session)));
    let head = session.parse::<portcullis_base::SessionId>().expect("an id").as_u128();
    let head = format!("session = x'{head:032x}'");
    let cut = |n| format!("DELETE FROM events WHERE log = {log} AND seq > {};", last(n));
    let to_end = format!(
        "UPDATE session_heads SET last_seq = (SELECT max(seq) FROM events WHERE log = {log}), \
         last_hash = (SELECT hash FROM events WHERE log = {log} ORDER BY seq DESC LIMIT 1) WHERE {head};"
    );
    vec![
        ("the last event is deleted", cut(1)),
        ("the last ten are deleted", cut(10)),
        ("half of it is deleted", format!("DELETE FROM events WHERE log = {log} AND seq > {} / 2;", last(0))),
        ("all of it is deleted", format!("DELETE FROM events WHERE log = {log};")),
        ("the last ten are deleted, and the head says so", cut(10) + &to_end),
        (
            "half of it is deleted, and the head says so",
            format!("DELETE FROM events WHERE log = {log} AND seq > {} / 2;{to_end}", last(0)),
        ),
        (
            "half of it, its checkpoints and the head",
            format!(
                "DELETE FROM events WHERE log = {log} AND seq > {} / 2;{to_end} DELETE FROM checkpoints WHERE {head} AND \
                 seq > {}; UPDATE session_heads SET checkpoint_seq = 0 WHERE {head};",
                last(0),
                last(0)
            ),
        ),
        ("the head is ahead", format!("UPDATE session_heads SET last_seq = last_seq + 3 WHERE {head};")),
        ("the head is behind", format!("UPDATE session_heads SET last_seq = last_seq - 3 WHERE {head};")),
        ("the head has another hash", format!("UPDATE session_heads SET last_hash = zeroblob(32) WHERE {head};")),
        (
            "the last event has another hash",
            format!("UPDATE events SET hash = zeroblob(32) WHERE log = {log} AND seq = {};", last(0)),
        ),
        ("the head is gone", format!("DELETE FROM session_heads WHERE {head};")),
    ]
}

/// Files of the database, kept to be copied back later.
fn kept(world: &World) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = ["", "-wal"].map(|suffix| Path::new(&format!("{}{suffix}", world.database().display())).to_owned());
    files.into_iter().filter_map(|path| Some((path.clone(), fs::read(path).ok()?))).collect()
}

/// A session that was told what to do, the database as it was then, and the work done since.
fn rolled_back(world: &World) -> String {
    let model = script(world, &turns());
    let session = world.run(&["sessions", "new", "go", "--model", &model]).ends(0).out.trim().to_owned();
    let older = kept(world);
    run(world, &["--session", &session]).ends(0);
    assert_eq!(effects(world), EFFECTS);
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", world.database().display())).expect("removed");
    }
    older.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("written"));
    session
}

#[test]
fn without_the_mark_an_older_copy_of_the_database_runs_effects_a_second_time() {
    let world = World::new();
    let session = rolled_back(&world);
    fs::remove_file(format!("{}-mark", world.database().display())).expect("removed");
    run(&world, &["--session", &session]).ends(0);
    assert_eq!(effects(&world), 2 * EFFECTS, "the control");
}

#[test]
fn a_log_that_disagrees_with_what_is_recorded_is_not_written_to_and_not_run() {
    let world = World::new();
    let session = worked(&world);
    let files = kept(&world);
    let whole = fs::read(format!("{}-mark", world.database().display())).expect("a mark");
    for (what, attack) in attacks(&session) {
        files.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("written"));
        fs::write(format!("{}-mark", world.database().display()), &whole).expect("written");
        sql(&world, &attack);
        for command in [["run", "again", "--session", &session].as_slice(), &["sessions", "send", &session, "again"]] {
            let model = script(&world, &turns());
            let more: &[&str] = if command[0] == "run" { &["--model", &model, "--approvals", "allow"] } else { &[] };
            let ran = world.run(&[command, more].concat());
            // Of those there is no session any more to be named.
            let gone = ["the head is gone", "all of it is deleted"].contains(&what);
            assert!(ran.code == 5 || (gone && ran.code == 1), "{what}: {command:?}: {} {}", ran.code, ran.err);
            assert!(gone || (ran.err.contains(&session) && ran.err.contains("sessions fork")), "{what}: {}", ran.err);
        }
        assert_eq!(effects(&world), EFFECTS, "{what}: nothing ran a second time");
        let audit = world.run(&["audit", "verify"]);
        assert_eq!(audit.code, 1, "{what}: {} {}", audit.out, audit.err);
    }
}

#[test]
fn an_ask_of_a_log_that_lost_its_end_is_not_answered_and_nothing_spins() {
    let world = World::with_file("a.txt", "one\n");
    let ask = world.ask_to_edit("a.txt", "one", "two");
    let hex = |id: u128| format!("x'{id:032x}'");
    let session = world.run(&["approvals", "list", "--json"]).ends(0).id("sesn_");
    let key = hex(session.parse::<portcullis_base::SessionId>().expect("an id").as_u128());
    // The ask itself stays; what came after it goes.
    sql(&world, &format!("UPDATE session_heads SET last_seq = last_seq + 1 WHERE session = {key};"));
    let ran = world.run(&["approvals", "allow", &ask]);
    assert!(ran.code == 5 && ran.err.contains(&session), "{} {}", ran.code, ran.err);
    assert_eq!(world.read("a.txt"), "one\n");
}

#[test]
fn a_fork_goes_on_from_a_session_that_lost_its_end() {
    let world = World::new();
    let session = worked(&world);
    sql(&world, &attacks(&session)[1].1);
    let ran = world.run(&["sessions", "fork", &session, "--at", "5"]).ends(0);
    let fork = ran.out.trim().to_owned();
    run(&world, &["again", "--session", &fork]).ends(0);
}

#[test]
fn an_older_copy_of_the_database_is_told_and_its_sessions_are_not_run_again() {
    let world = World::new();
    let (model, session) = (script(&world, &turns()), rolled_back(&world));
    let ran = run(&world, &["--session", &session]);
    assert!(ran.code == 5 && ran.err.contains("older than it was"), "{} {}", ran.code, ran.err);
    world.run(&["worker", "--model", &model, "--approvals", "allow"]);
    assert_eq!(effects(&world), EFFECTS, "nothing ran a second time");
    world.run(&["sessions", "list"]).ends(0).warns("lost their end");
    world.run(&["audit", "verify"]).ends(1).says(&session);
    world.run(&["audit", "accept-loss", "--yes"]).ends(0).says("none is run again");
    let ran = world.run(&["sessions", "list"]).ends(0);
    assert!(!ran.err.contains("lost"), "it is told until it is accepted: {}", ran.err);
    world.run(&["worker", "--model", &model, "--approvals", "allow"]).ends(0);
    assert_eq!(effects(&world), EFFECTS, "what was accepted is not run by itself either");
    world.run(&["audit", "verify"]).ends(0);
}

#[test]
fn doctor_and_audit_verify_tell_one_truth_about_an_older_copy_of_the_database() {
    let world = World::new();
    let session = rolled_back(&world);
    let ran =
        world.run(&["doctor"]).ends(1).says("broken  store: events that were recorded are missing from this store");
    let ran = ran.says("audit verify").says("restore the store").says("audit accept-loss").says(&session);
    assert!(!ran.out.contains("the chain of"), "no log of it is as it was recorded: {}", ran.out);
    let found = world.run(&["doctor", "--json"]).ends(1).json();
    assert_eq!(found["healthy"], false);
    let ran =
        world.run(&["audit", "verify"]).ends(1).says("broken the ledger: event ").says(&format!("session {session}"));
    let ledger = portcullis_event::ledger_of(portcullis_event::LOCAL_TENANT).to_string();
    assert!(!ran.out.contains("ok the ledger") && !ran.out.contains(&ledger), "{}", ran.out);
    assert!(!ran.out.lines().any(|line| line.starts_with("ok ") && line.contains(&session)), "{}", ran.out);
    let document = world.run(&["audit", "verify", "--json"]).ends(1).json();
    let logs = document["logs"].as_array().expect("logs");
    assert!(logs.iter().filter(|log| log["ledger"] == true).all(|log| log["fault"].is_string()), "{document}");
    world.run(&["audit", "accept-loss", "--yes"]).ends(0);
    world.run(&["doctor"]).ends(0).says("the chain of the ledger holds");
}

#[test]
fn a_database_that_is_gone_is_not_taken_for_one_that_was_never_there() {
    let world = World::new();
    let session = worked(&world);
    let rules = world.configure("").display().to_string();
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", world.database().display())).expect("removed");
    }
    let named = format!("sqlite:{}", world.database().display());
    let looks: &[&[&str]] = &[
        &["sessions", "list"],
        &["sessions", "show", &session],
        &["sessions", "search", "x"],
        &["sessions", "tree"],
        &["sessions", "unknown"],
        &["sessions", "wake", &session],
        &["approvals", "list"],
        &["approvals", "watch"],
        &["grants", "list"],
        &["audit", "verify"],
        &["audit", "head"],
        &["audit", "export"],
        &["replay", &session],
        &["gc", "--dry-run"],
        &["policy", "explain", "read", "{\"file_path\":\"a\"}"],
        &["policy", "backtest", &rules],
        &["sessions", "list", "--store", &named],
    ];
    for look in looks {
        let ran = world.run(look);
        assert_eq!(ran.code, 5, "{look:?}: {} {}", ran.out, ran.err);
        for word in ["and is gone", &session, "restore it", "audit accept-loss"] {
            assert!(ran.err.contains(word), "{look:?}: {word}: {}", ran.err);
        }
        assert!(!ran.err.contains("yet") && !world.database().exists(), "{look:?}: {}", ran.err);
    }
    let ran = world.run(&["doctor"]).ends(1).says("broken  store: a database was at ").says("audit accept-loss");
    assert!(!ran.out.contains("does not exist yet"), "{}", ran.out);
    world.run(&["audit", "accept-loss"]).ends(2).warns(&session).warns("--yes");
    assert!(!world.database().exists(), "nothing was made");
    world.run(&["audit", "accept-loss", "--yes"]).ends(0);
    world.run(&["sessions", "list"]).ends(0).warns("no sessions yet");
    world.run(&["audit", "verify"]).ends(0);
}

#[test]
fn a_loss_is_given_up_only_by_somebody_who_says_so() {
    let world = World::new();
    let session = rolled_back(&world);
    let ran = world.run(&["audit", "accept-loss"]).ends(2);
    let ran = ran.warns(&format!("{session} had event ")).warns(" and ends at ").warns("say so with --yes");
    assert!(ran.out.is_empty(), "{}", ran.out);
    world.run(&["audit", "accept-loss", "--json"]).ends(2);
    world.run(&["audit", "verify"]).ends(1).says(&session);
    // At a terminal the question shows the same, and only `yes` is one.
    for (answer, code) in [("y\n", 1), ("\n", 1), ("yes\n", 0)] {
        let (mut child, mut keys, mut out) = common::on_terminal(&world, "audit accept-loss");
        let asked = common::until(&mut out, "Type yes: ");
        assert!(asked.contains(&format!("{session} had event ")), "{asked}");
        keys.write_all(answer.as_bytes()).expect("typed");
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("the rest");
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{rest}");
        assert_eq!(rest.contains("nothing was given up"), code == 1, "{rest}");
        world.run(&["audit", "verify"]).ends(i32::from(code != 0));
    }
}

/// The number of the newest append; none if the database cannot be read.
fn newest_run(world: &World) -> Option<i64> {
    let conn = Connection::open(world.database()).ok()?;
    conn.query_row("SELECT max(run) FROM runs", [], |row| row.get(0)).ok()
}

/// Numbers that look random and are the same in every run.
fn next(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from(*seed >> 33).expect("31 bits")
}

#[test]
fn a_database_that_a_damaged_write_ahead_log_rolled_back_is_told() {
    let world = World::new();
    worked(&world);
    let mark = format!("{}-mark", world.database().display());
    let (files, marked) = (kept(&world), fs::read(&mark).expect("a mark"));
    let wal = Path::new(&format!("{}-wal", world.database().display())).to_owned();
    let whole = fs::read(&wal).expect("a write-ahead log");
    let all = newest_run(&world).expect("events");
    let (mut unseen_without, mut rolled_back) = (0, 0);
    for n in 1..=40u64 {
        let mut seed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut bytes = whole.clone();
        let at = 32 + next(&mut seed) % (bytes.len() - 32);
        match n % 4 {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << (n % 8),
            2 => bytes[at..].iter_mut().take(512).for_each(|byte| *byte = 0),
            _ => bytes[at..].iter_mut().for_each(|byte| *byte = 0),
        }
        for with_mark in [true, false] {
            files.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("written"));
            fs::write(&wal, &bytes).expect("written");
            let _ = fs::remove_file(wal.with_file_name("portcullis.db-shm"));
            if with_mark { fs::write(&mark, &marked) } else { fs::remove_file(&mark) }.expect("as wanted");
            let audit = world.run(&["audit", "verify"]);
            let lost = newest_run(&world) != Some(all);
            rolled_back += usize::from(with_mark && lost);
            if with_mark {
                assert!(!lost || audit.code != 0, "seed {n}: {} {}", audit.code, audit.err);
                // A store that cannot even be opened is told as well.
                let told = audit.err.contains("lost their end") || audit.err.contains("cannot be opened");
                assert!(!lost || told, "seed {n}: {}", audit.err);
            } else {
                unseen_without += usize::from(lost && audit.code == 0);
            }
        }
    }
    assert!(rolled_back > 25, "{rolled_back} of 40 lose events");
    assert!(unseen_without > 10, "the control: {unseen_without} of 40 verify where there is no mark");
}
