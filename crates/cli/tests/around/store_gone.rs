//! A store that is taken away under a process: nothing runs any more, the process ends with 5, and it says what is lost.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::fs::RenameFlags;
use rustix::process::{Pid, Signal};

use crate::common::{self, Ran, World, comes};

/// Commands of a run; the attack comes while the second one runs.
const COMMANDS: usize = 6;

/// Each command leaves a line; the second one then waits for the attacker.
pub fn turns() -> String {
    let mut text = String::new();
    for n in 1..=COMMANDS {
        let wait = if n == 2 { "touch waiting; while ! test -e go; do sleep 0.01; done" } else { "true" };
        text.push_str(&format!(
            "[[turn]]\ncalls = [{{ name = \"bash\", input = {{ command = \"echo n{n} >> effects.txt; {wait}\" }} }}]\n"
        ));
    }
    text + "[[turn]]\ntext = \"That was all.\"\n"
}

pub fn script(world: &World, text: &str) -> String {
    let path = world.home.with_file_name("script.toml");
    fs::write(&path, text).expect("written");
    format!("scripted:{}", path.display())
}

pub fn begin(world: &World) -> Child {
    let model = script(world, &turns());
    let run = ["run", "go", "--model", &model, "--approvals", "allow"];
    let child = world.command(&run).spawn().expect("starts");
    comes("the second command waits", || world.workspace.join("waiting").exists());
    child
}

pub fn end(world: &World, child: Child) -> Ran {
    world.write("go", "");
    child.wait_with_output().expect("ends").into()
}

pub fn effects(world: &World) -> usize {
    world.read_or_nothing("effects.txt").lines().count()
}

fn side(world: &World, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", world.database().display()))
}

fn remove(world: &World, suffixes: &[&str]) {
    suffixes.iter().for_each(|suffix| fs::remove_file(side(world, suffix)).expect("removed"));
}

/// Puts a copy of a file at its name.
fn replace(path: &Path) {
    let copy = path.with_extension("copy");
    fs::copy(path, &copy).expect("copied");
    fs::rename(copy, path).expect("replaced");
}

/// A way to take a store away, and the file that is missing first then.
type Attack = (&'static str, &'static str, fn(&World));

const ATTACKS: [Attack; 12] = [
    ("the data folder is removed", "portcullis.db was removed", |w| fs::remove_dir_all(&w.home).expect("removed")),
    ("the data folder is renamed", "portcullis.db was removed", |w| {
        fs::rename(&w.home, w.home.with_extension("old")).expect("renamed");
    }),
    ("a new data folder is in its place", "portcullis.db was removed", |w| {
        fs::rename(&w.home, w.home.with_extension("old")).expect("renamed");
        fs::create_dir(&w.home).expect("made");
    }),
    ("another store is in its place", "portcullis.db was replaced", |w| {
        // Made elsewhere and exchanged in one step: what is attacked may look at any moment.
        let other = w.home.with_extension("other");
        let call = ["call", "bash", r#"{"command":"true"}"#, "--approvals", "allow"];
        Ran::from(w.command(&call).env("PORTCULLIS_HOME", &other).output().expect("it runs")).ends(0);
        let here = rustix::fs::CWD;
        rustix::fs::renameat_with(here, &other, here, &w.home, RenameFlags::EXCHANGE).expect("exchanged");
    }),
    ("everything in the folder is removed", "portcullis.db was removed", |w| {
        for entry in fs::read_dir(&w.home).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
        }
    }),
    ("the database alone is removed", "portcullis.db was removed", |w| remove(w, &[""])),
    ("database and write-ahead log are removed", "portcullis.db was removed", |w| remove(w, &["", "-wal", "-shm"])),
    ("the write-ahead log alone is removed", "portcullis.db-wal was removed", |w| remove(w, &["-wal"])),
    ("write-ahead log and shared memory are removed", "portcullis.db-wal was removed", |w| {
        remove(w, &["-wal", "-shm"])
    }),
    ("the shared memory alone is removed", "portcullis.db-shm was removed", |w| remove(w, &["-shm"])),
    ("the database is replaced by its copy", "portcullis.db was replaced", |w| replace(&w.database())),
    ("the write-ahead log is replaced by an empty one", "portcullis.db-wal was replaced", |w| {
        let empty = side(w, "-empty");
        fs::write(&empty, "").expect("written");
        fs::rename(empty, side(w, "-wal")).expect("replaced");
    }),
];

#[test]
fn without_an_attack_every_command_runs() {
    let world = World::new();
    let child = begin(&world);
    end(&world, child).ends(0).says("That was all.");
    assert_eq!(effects(&world), COMMANDS);
}

#[test]
fn a_store_that_is_taken_away_under_a_run_stops_it_before_the_next_effect() {
    for (what, told, attack) in ATTACKS {
        let world = World::new();
        let child = begin(&world);
        attack(&world);
        let ran = end(&world, child);
        assert_eq!((ran.code, effects(&world)), (5, 2), "{what}: {}", ran.err);
        let told = ran.err.contains(told) && ran.err.contains("not on disk any more") && ran.err.contains("restore");
        assert!(told, "{what}: {}", ran.err);
        assert!(!ran.out.contains("That was all."), "{what}: {}", ran.out);
    }
}

#[test]
fn a_call_whose_record_is_gone_ends_with_5() {
    for (what, told, attack) in [ATTACKS[0], ATTACKS[5], ATTACKS[7]] {
        let world = World::new();
        let command = r#"{"command":"touch waiting; while ! test -e go; do sleep 0.01; done"}"#;
        let child = world.command(&["call", "shell_run", command, "--approvals", "allow"]).spawn().expect("starts");
        comes("the command waits", || world.workspace.join("waiting").exists());
        attack(&world);
        let ran = end(&world, child);
        assert!(ran.code == 5 && ran.err.contains(told), "{what}: {} {}", ran.code, ran.err);
    }
}

#[test]
fn a_worker_whose_store_is_taken_away_ends_with_5_and_runs_nothing_more() {
    for (what, told, attack) in [ATTACKS[0], ATTACKS[5], ATTACKS[7]] {
        let world = World::new();
        let model = script(&world, &turns());
        world.run(&["sessions", "new", "go", "--model", &model]).ends(0);
        let worker = ["worker", "--watch", "--model", &model, "--approvals", "allow"];
        let child = world.command(&worker).spawn().expect("starts");
        comes("the second command waits", || world.workspace.join("waiting").exists());
        attack(&world);
        let ran = end(&world, child);
        assert_eq!((ran.code, effects(&world)), (5, 2), "{what}: {}", ran.err);
        assert!(ran.err.contains(told), "{what}: {}", ran.err);
    }
}

#[test]
fn a_run_whose_record_is_lost_while_the_model_answers_ends_with_5() {
    let text = "one two three four five six seven eight nine ten ".repeat(12);
    let text = format!("[[turn]]\ntext = \"{text}\"\n[defaults]\nstream_delay_ms = 40\n");
    let answered = |attack: fn(&World)| {
        let world = World::new();
        let model = script(&world, &text);
        let mut child = world.command(&["run", "go", "--model", &model]).spawn().expect("starts");
        let mut out = child.stdout.take().expect("piped");
        common::until(&mut out, "one two");
        // The answer stands still meanwhile, however long the attack takes.
        let process = Pid::from_child(&child);
        rustix::process::kill_process(process, Signal::STOP).expect("stopped");
        attack(&world);
        rustix::process::kill_process(process, Signal::CONT).expect("goes on");
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("read");
        Ran::from(child.wait_with_output().expect("ends"))
    };
    answered(|_| {}).ends(0);
    for (what, file, attack) in ATTACKS.into_iter().filter(|(what, ..)| !what.contains("shared memory alone")) {
        let ran = answered(attack);
        assert_eq!(ran.code, 5, "{what}: {}", ran.err);
        assert!(ran.err.contains(file) && !ran.err.contains("the model failed"), "{what}: {}", ran.err);
    }
}
