//! A store that takes nothing for a while: whoever can wait waits, and everybody says what it is.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command};

use crate::common::{self, Ran, World, comes};
use crate::store_gone::{effects, script};

/// A small disk for the data folder.
fn disk(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=96m", "tmpfs"]).arg(folder).status();
    assert!(mounted.expect("`mount` runs").success(), "a small disk is mounted");
}

/// Takes all of its room; the file that holds it.
fn fill(folder: &Path) -> PathBuf {
    let path = folder.join("filler");
    let mut file = fs::File::create(&path).expect("a filler");
    for size in [1 << 20, 4096] {
        let chunk = vec![1u8; size];
        while file.write_all(&chunk).is_ok() {}
    }
    path
}

#[test]
fn a_worker_that_watches_waits_for_a_full_disk_says_so_once_and_goes_on() {
    if !common::inside("store_waits::a_worker_that_watches_waits_for_a_full_disk_says_so_once_and_goes_on") {
        return;
    }
    let world = World::new();
    disk(&world.home);
    let turn = "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"echo n >> effects.txt\" } }]\n";
    let model = script(&world, &format!("{turn}[[turn]]\ntext = \"done\"\n"));
    world.run(&["sessions", "new", "go", "--model", &model]).ends(0);
    let filler = fill(&world.home);
    let worker = ["worker", "--watch", "--model", &model, "--approvals", "allow"];
    let mut child = world.command(&worker).spawn().expect("starts");
    let mut err = child.stderr.take().expect("piped");
    let said = common::until(&mut err, "waiting until the store can be used again");
    assert!(said.contains("is full"), "{said}");
    assert!(child.try_wait().expect("asked").is_none(), "it waits");
    assert_eq!(effects(&world), 0);
    fs::remove_file(filler).expect("room");
    goes_on(&world, child, err);
}

/// A worker that waited does its work, says once that it goes on, and ends at an interrupt.
fn goes_on(world: &World, mut child: Child, mut err: ChildStderr) {
    comes("it goes on by itself", || effects(world) == 1);
    common::interrupt(&child);
    let mut rest = String::new();
    err.read_to_string(&mut rest).expect("read");
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{rest}");
    assert!(rest.contains("can be used again") && !rest.contains("waiting until"), "it is told once: {rest}");
}

/// It takes half a minute, in which nothing is done: so long an open waits by itself.
#[test]
fn a_worker_that_watches_waits_for_a_store_that_is_locked_when_it_starts() {
    let world = World::new();
    let turn = "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"echo n >> effects.txt\" } }]\n";
    let model = script(&world, &format!("{turn}[[turn]]\ntext = \"done\"\n"));
    world.run(&["sessions", "new", "go", "--model", &model]).ends(0);
    let lock = rusqlite::Connection::open(world.database()).expect("it opens");
    lock.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;").expect("locked");
    let worker =
        |more: &[&str]| world.command(&[&["worker", "--model", &model, "--approvals", "allow"], more].concat());
    // The control: one that does not watch says so and ends.
    let once = worker(&[]).spawn().expect("starts");
    let mut child = worker(&["--watch"]).spawn().expect("starts");
    let mut err = child.stderr.take().expect("piped");
    let said = common::until(&mut err, "waiting until the store can be used again");
    assert!(said.contains("another process keeps the store locked"), "{said}");
    let ran: Ran = once.wait_with_output().expect("ends").into();
    ran.ends(5).warns("another process keeps the store locked");
    assert!(child.try_wait().expect("asked").is_none(), "it waits");
    assert_eq!(effects(&world), 0);
    drop(lock);
    goes_on(&world, child, err);
}

#[test]
fn a_disk_that_is_full_when_an_answer_comes_is_not_the_models_failure() {
    if !common::inside("store_waits::a_disk_that_is_full_when_an_answer_comes_is_not_the_models_failure") {
        return;
    }
    let world = World::new();
    disk(&world.home);
    world.run(&["call", "bash", r#"{"command":"true"}"#]).ends(0);
    let text = "one two three four five six seven eight nine ten ".repeat(40);
    let text = format!("[[turn]]\ntext = \"{text}\"\n[defaults]\nstream_delay_ms = 40\n");
    let model = script(&world, &text);
    let mut child = world.command(&["run", "go", "--model", &model]).spawn().expect("starts");
    let mut out = child.stdout.take().expect("piped");
    comes("the model is asked", || {
        let all = world.run(&["sessions", "--json"]).out;
        let sessions = all.split('"').filter(|word| word.starts_with("sesn_"));
        sessions.map(|session| world.run(&["sessions", "events", session]).out).any(|log| log.contains("is asked"))
    });
    fill(&world.home);
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("read");
    let ran: Ran = child.wait_with_output().expect("ends").into();
    let ran = ran.ends(5).warns("is full").warns("MB free").warns("MB needed");
    assert!(!ran.err.contains("the model failed"), "{}", ran.err);
}
