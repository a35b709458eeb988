//! `grep` and `glob` against the naive way: list everything, read everything, match every line.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use crate::listing::listed;
use crate::searching::found;
use crate::world::World;

const NAMES: [&str; 8] = ["a", "b", "a.b", "a-b", "ä", ".c", "d e", "Z"];
const PIECES: [&str; 11] = ["x", "yy", "X", "\n", "\r\n", "\n\n", "ä", "xy", " ", "\u{feff}", "("];
const PATTERNS: [&str; 10] = ["x", "^x", "y$", "^$", "x.*y", "(?i)X", "ä|y+", "[^x]", r"\(", "^.?x"];

type Files = Vec<(Vec<usize>, Vec<usize>, bool)>;

fn build(world: &World, files: &Files) {
    for (names, pieces, binary) in files {
        let path: Vec<&str> = names.iter().map(|n| NAMES[n % NAMES.len()]).collect();
        let path = world.path(&path.join("/"));
        let mut content: Vec<u8> = pieces.iter().flat_map(|p| PIECES[p % PIECES.len()].bytes()).collect();
        if *binary {
            content.push(0);
        }
        // Where a file stands in the way of a directory, or the other way round, the first one stays.
        if fs::create_dir_all(path.parent().expect("a parent")).is_ok() && !path.exists() {
            fs::write(path, content).expect("a file");
        }
    }
}

/// Every entry beneath, relative, and whether it is a file.
fn entries(root: &Path, at: &Path, all: &mut Vec<(String, bool)>) {
    for entry in fs::read_dir(at).expect("a directory") {
        let path = entry.expect("an entry").path();
        let relative = path.strip_prefix(root).expect("beneath").to_str().expect("text").to_owned();
        all.push((relative, path.is_file()));
        if path.is_dir() {
            entries(root, &path, all);
        }
    }
}

/// The matching lines the slow way. A line ends with `\n` or `\r\n`.
fn naive(root: &Path, pattern: &str) -> Vec<String> {
    let pattern = regex::Regex::new(pattern).expect("a pattern");
    let mut all = Vec::new();
    entries(root, root, &mut all);
    all.sort_by(|(a, _), (b, _)| Path::new(a).cmp(Path::new(b)));
    let mut found = Vec::new();
    for (path, _) in all.iter().filter(|(_, is_file)| *is_file) {
        let content = fs::read(root.join(path)).expect("a file");
        let Some(content) = std::str::from_utf8(&content).ok().filter(|text| !text.contains('\0')) else { continue };
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        for (number, line) in content.split_inclusive('\n').enumerate() {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let line = line.strip_suffix('\r').unwrap_or(line);
            if pattern.is_match(line) {
                found.push(format!("{path}:{}:{line}", number + 1));
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn searches_and_listings_equal_the_naive_ones(
        files in prop::collection::vec(
            (
                prop::collection::vec(0usize..8, 1..4),
                prop::collection::vec(0usize..11, 0..24),
                prop::bool::weighted(0.1),
            ),
            0..24,
        ),
        pattern in 0usize..10,
        limit in 1usize..200,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let world = World::new();
            build(&world, &files);
            let process = world.start();
            let hand = process.open(world.session().await).await;
            let pattern = PATTERNS[pattern];
            let seen = hand.done("grep", json!({"pattern": pattern, "limit": limit})).await;
            let expected = naive(world.dir.path(), pattern);
            let output = seen.structured.as_ref().expect("an output");
            prop_assert_eq!(&output["truncated"], &json!(expected.len() > limit));
            prop_assert_eq!(found(&seen), &expected[..expected.len().min(limit)]);

            let mut all = Vec::new();
            entries(world.dir.path(), world.dir.path(), &mut all);
            let mut all: Vec<String> = all.into_iter().map(|(path, _)| path).collect();
            all.sort_by_key(|path| (path.matches('/').count(), std::path::PathBuf::from(path)));
            let seen = hand.done("glob", json!({"pattern": "**/*", "limit": limit, "sort": "path"})).await;
            prop_assert_eq!(listed(&seen), &all[..all.len().min(limit)]);
            Ok(())
        })?;
    }
}
