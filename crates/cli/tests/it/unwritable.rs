//! A store that is there and cannot be written: its file, what to do, and never a backtrace. The data folder is mounted
//! read-only, which root feels as well.

use crate::common;

use std::process::Command;

use common::{Ran, World};

/// Nothing beneath the data folder can be written from now on.
fn lock(world: &World) {
    for words in [&["--bind"][..], &["-o", "remount,ro,bind"]] {
        let mounted =
            Command::new("mount").args(words).args([&world.home, &world.home]).output().expect("`mount` runs");
        assert!(mounted.status.success(), "a read-only mount: {}", String::from_utf8_lossy(&mounted.stderr));
    }
}

/// With backtraces asked for.
fn run(world: &World, words: &[&str]) -> Ran {
    world.command(words).env("RUST_BACKTRACE", "1").output().expect("it runs").into()
}

const READ: &[&str] = &["call", "read", r#"{"file_path":"a.txt"}"#];

#[test]
fn a_store_that_cannot_be_written_is_named_with_what_to_do() {
    if !common::inside("unwritable::a_store_that_cannot_be_written_is_named_with_what_to_do") {
        return;
    }
    let world = World::with_file("a.txt", "alpha\n");
    let session = world.run(READ).ends(0).id("sesn_");
    lock(&world);
    let file = format!("cannot write to {}", world.database().display());
    for words in [READ, &["sessions", "rm", &session, "--yes"]] {
        let ran = run(&world, words).ends(5).one_error_line();
        ran.warns(&file).warns("Read-only file system").warns("writable").warns("portcullis doctor");
    }
    // What is told before the first call of a demo comes first.
    let demo = run(&world, &["demo"]).ends(5);
    assert_eq!(demo.err.matches("error: ").count(), 1, "{}", demo.err);
    assert!(!demo.err.contains("stack backtrace") && !demo.err.contains("  0: "), "{}", demo.err);
    demo.warns(&file);
    // What only looks still does.
    world.run(&["sessions"]).ends(0).says(&session);
    world.run(&["audit", "verify"]).ends(0);
    // No permission helps there.
    let doctor = world.run(&["doctor"]).ends(1).says("broken").says("mounted read-only");
    assert!(!doctor.out.contains("chmod"), "{}", doctor.out);
}

/// What the first version of a store was made by.
const FIRST: &str = include_str!("../../../store-sqlite/migrations/0001_logs.sql");

#[test]
fn f19_an_older_store_that_cannot_be_written_says_that_it_must_be_brought_forward() {
    if !common::inside("unwritable::f19_an_older_store_that_cannot_be_written_says_that_it_must_be_brought_forward") {
        return;
    }
    let world = World::new();
    std::fs::create_dir(&world.home).expect("made");
    let raw = rusqlite::Connection::open(world.database()).expect("the file opens");
    raw.execute_batch(&format!(
        "PRAGMA journal_mode = wal; PRAGMA application_id = {}; {FIRST};
         CREATE TABLE schema_meta (version INTEGER PRIMARY KEY, checksum BLOB NOT NULL, applied_at INTEGER NOT NULL);
         INSERT INTO schema_meta VALUES (1, x'{}', 1);",
        0x7063_6c73,
        portcullis_base::Digest::of(FIRST.as_bytes())
    ))
    .expect("a store of the first version");
    lock(&world);
    for words in [&["sessions"][..], &["audit", "verify"], &["sessions", "search", "alpha"]] {
        let ran = run(&world, words).ends(5).one_error_line();
        ran.warns("an older program wrote this store")
            .warns("brought forward once")
            .warns("needs write access")
            .warns(&format!("cannot write to {}", world.database().display()));
    }
    // Closing it any sooner would take the log away that even a reader needs.
    drop(raw);
}

#[test]
fn a_folder_that_takes_no_files_is_named_where_even_reading_needs_one() {
    if !common::inside("unwritable::a_folder_that_takes_no_files_is_named_where_even_reading_needs_one") {
        return;
    }
    let world = World::with_file("a.txt", "alpha\n");
    world.run(READ).ends(0);
    // Another program closed the file and took its log away.
    rusqlite::Connection::open(world.database())
        .and_then(|raw| raw.execute_batch("BEGIN; SELECT 1 FROM events; COMMIT"))
        .expect("the file opens");
    lock(&world);
    let ran = run(&world, &["sessions"]).ends(5).one_error_line();
    ran.warns(&format!("cannot write to {}", world.home.display())).warns("writable").warns("portcullis doctor");
}
