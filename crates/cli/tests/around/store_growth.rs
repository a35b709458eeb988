//! What a read in `run` costs on disk, beyond what it read.

use std::fs;

use crate::common::World;
use crate::store_gone::script;

/// A run of few and a run of many reads: what both have in common, such as the prompt, is no part of a read.
const FEW: usize = 8;
const MANY: usize = 48;
/// The bar, in bytes beyond the content.
const MOST: usize = 4_096;

/// Real source, of which no two pages are alike: what is stored is packed, and noise or zeros would tell nothing.
const SOURCE: [&str; 4] = [
    include_str!("../it/common/mod.rs"),
    include_str!("../it/disk_full.rs"),
    include_str!("../it/run_terminal.rs"),
    include_str!("store_gone.rs"),
];

/// Bytes that the database grew by.
fn grown(world: &World, reads: usize, content: usize) -> usize {
    let source: String = SOURCE.concat().chars().filter(char::is_ascii).collect();
    let mut turns = String::new();
    for n in 0..reads {
        let from = n * 977 % (source.len() - content);
        world.write(&format!("{n}.txt"), &source[from..from + content]);
        turns += &format!("[[turn]]\ncalls = [{{ name = \"read\", input = {{ file_path = \"{n}.txt\" }} }}]\n");
    }
    let model = script(world, &(turns + "[[turn]]\ntext = \"done\"\n"));
    let before = size(world);
    world.run(&["run", "go", "--model", &model]).ends(0);
    size(world) - before
}

/// Pages of the database, those in the write-ahead log included, in bytes.
fn size(world: &World) -> usize {
    let conn = rusqlite::Connection::open(world.database()).expect("it opens");
    let number = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, usize>(0)).expect("a number");
    (number("page_count") - number("freelist_count")) * number("page_size")
}

#[test]
fn a_read_costs_at_most_4_kib_beyond_what_it_read() {
    for content in [73, 2_048, 20_480] {
        let world = World::with_file("a.txt", "a\n");
        world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0);
        let (few, many) = (grown(&world, FEW, content), grown(&world, MANY, content));
        let beyond = ((many - few) / (MANY - FEW)).saturating_sub(content);
        eprintln!("content of {content} bytes: {beyond} bytes beyond it");
        assert!(beyond <= MOST, "content of {content} bytes: {beyond} bytes beyond it");
        fs::remove_dir_all(&world.home).expect("tidy");
    }
}
