//! Walks against a tree that changes under them.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use portcullis_sandbox::{Entry, Kind, PassedOver, Visitor, Walk};

use crate::world::{World, world};

/// Reads what it finds, after doing something to the tree each time.
struct Meddler<'m> {
    meddle: &'m (dyn Fn(&Entry<'_>) + Sync),
    read: Vec<String>,
    passed: Vec<(String, PassedOver)>,
}

impl Visitor for Meddler<'_> {
    fn found(&mut self, entry: &Entry<'_>) {
        (self.meddle)(entry);
        if entry.kind() != Kind::File {
            return;
        }
        if let Ok(Some((mut file, _))) = entry.open() {
            let mut text = String::new();
            file.read_to_string(&mut text).expect("text");
            self.read.push(format!("{}={text}", entry.relative()));
        }
    }

    fn enters(&mut self, _: &Entry<'_>) -> bool {
        true
    }

    fn passed_over(&mut self, path: String, why: PassedOver) {
        self.passed.push((path, why));
    }
}

fn walk<'m>(world: &World, meddle: &'m (dyn Fn(&Entry<'_>) + Sync)) -> (Vec<String>, Vec<(String, PassedOver)>) {
    let start = world.table.resolve(".").expect("the workspace");
    let stop = AtomicBool::new(false);
    let walk = Walk { table: &world.table, start: &start, max_depth: usize::MAX, ignored: false, stop: &stop };
    let visitors = (0..2).map(|_| Meddler { meddle, read: Vec::new(), passed: Vec::new() }).collect();
    let done: Vec<Meddler<'m>> = walk.run(visitors).expect("a walk");
    let mut read: Vec<String> = done.iter().flat_map(|meddler| meddler.read.clone()).collect();
    read.sort();
    (read, done.into_iter().flat_map(|meddler| meddler.passed).collect())
}

fn swap(path: &PathBuf, target: PathBuf) {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
    symlink(target, path).expect("a link");
}

#[test]
fn h08_a_file_swapped_for_a_link_after_it_was_listed_is_not_read() {
    let world = world();
    world.file("a/victim", b"inside");
    world.file("a/plain", b"inside");
    let (read, _) = walk(&world, &|entry| {
        if entry.name() == "victim" {
            swap(&world.ws.join("a/victim"), world.outside.join("secret.txt"));
        }
    });
    assert_eq!(read, ["a/plain=inside"]);
}

#[test]
fn h08_a_directory_swapped_for_a_link_after_it_was_listed_is_not_entered() {
    let world = world();
    world.file("a/secret.txt", b"inside");
    world.file("b/plain", b"inside");
    let (read, passed) = walk(&world, &|entry| {
        if entry.name() == "a" {
            swap(&world.ws.join("a"), world.outside.clone());
        }
    });
    assert_eq!(read, ["b/plain=inside"]);
    assert_eq!(passed, []);
}

#[test]
fn a_file_swapped_for_a_pipe_is_neither_read_nor_waited_for() {
    let world = world();
    world.file("victim", b"inside");
    let (read, _) = walk(&world, &|entry| {
        if entry.name() == "victim" {
            let path = world.ws.join("victim");
            fs::remove_file(&path).expect("removed");
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
            rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).expect("a pipe");
        }
    });
    assert!(read.is_empty());
}

#[test]
fn a_panic_of_a_visitor_ends_the_walk_and_is_the_callers() {
    let world = world();
    for n in 0..200 {
        world.file(&format!("d{n}/f"), b"x");
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        walk(&world, &|entry| assert!(entry.relative() != "d100/f", "a defect"))
    }));
    assert!(panicked.is_err());
}
