//! `gc`, as a person uses it.

use crate::common;

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use common::World;

fn age(path: &Path) {
    let file = File::options().write(true).open(path).expect("a file");
    file.set_modified(SystemTime::now() - Duration::from_secs(3 * 86_400)).expect("an older time");
}

#[test]
fn f14_what_nothing_names_is_shown_then_freed_and_evidence_stays() {
    let world = World::with_file("big.txt", &format!("first line\n{}", "a line of text\n".repeat(9_000)));
    world.run(&["call", "read", r#"{"file_path":"big.txt"}"#]).ends(0);
    let edit = common::edit("big.txt", "first line", "another line");
    world.run(&["call", "edit", &edit, "--approvals", "allow"]).ends(0);
    let evidence = world.artifact_files();
    assert!(!evidence.is_empty(), "the edit kept a large file");
    evidence.iter().for_each(|file| age(file));
    world.run(&["gc", "--dry-run"]).ends(0).says("0 files, 0 bytes can be freed");

    // As a crash between keeping and recording leaves it.
    let orphan = evidence[0].with_file_name("ab".repeat(32));
    fs::write(&orphan, vec![1; 5_000]).expect("an orphan");
    world.run(&["gc", "--dry-run"]).ends(0).says("0 files");
    age(&orphan);
    let shown = world.run(&["gc", "--dry-run"]).ends(0).says("5000").says("named by nothing").says("can be freed");
    shown.warns("gc --apply");
    assert!(orphan.exists(), "a dry run frees nothing");
    let freed = world.run(&["gc", "--apply", "--json"]).ends(0).json();
    assert_eq!((freed["bytes"].as_u64(), freed["applied"].as_bool()), (Some(5_000), Some(true)));
    assert!(!orphan.exists());
    assert_eq!(world.artifact_files().len(), evidence.len());
    world.run(&["audit", "verify"]).ends(0);
    world.run(&["gc"]).ends(2);
    world.run(&["gc", "--apply", "--dry-run"]).ends(2);
}

#[test]
fn build_caches_of_workspaces_that_are_gone_are_told_in_one_line_and_freed() {
    let mut world = World::new();
    let own = world.workspace.clone();
    let run = |world: &World| {
        world.run(&["call", "shell_run", r#"{"command":"true"}"#, "--approvals", "allow"]).ends(0);
    };
    run(&world);
    for name in ["one", "two"] {
        world.workspace = own.with_file_name(name);
        fs::create_dir(&world.workspace).expect("made");
        run(&world);
        fs::remove_dir_all(&world.workspace).expect("gone");
    }
    world.workspace = own;
    let caches = world.home.join("caches");
    let count = || fs::read_dir(&caches).expect("a folder").count();
    assert_eq!(count(), 3);
    let report = world.run(&["doctor"]).ends(0);
    let lines: Vec<&str> = report.out.lines().filter(|line| line.contains("build caches")).collect();
    assert_eq!(lines.len(), 2, "{}", report.out);
    assert!(lines[0].contains(" KiB of build caches for 2 workspaces that are gone"), "{lines:?}");
    // What takes next to nothing has no line of its own, and no way to be rid of it.
    assert!(lines[1].ends_with(" KiB of build caches for 1 workspace"), "{lines:?}");
    assert!(!report.out.contains("chmod"), "{}", report.out);
    let shown = world.run(&["gc", "--dry-run"]).ends(0).says("for 2 workspaces that are gone can be freed");
    shown.says("one, which is gone").warns("gc --apply");
    assert_eq!(count(), 3);
    let document = world.run(&["gc", "--dry-run", "--json"]).ends(0).json();
    assert_eq!(document["caches"].as_array().expect("a list").len(), 2);
    // What a toolchain made read-only goes as well.
    for folder in fs::read_dir(&caches).expect("a folder") {
        let locked = folder.expect("an entry").path().join("locked");
        fs::create_dir(&locked).expect("made");
        fs::write(locked.join("file"), "x").expect("written");
        fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o500)).expect("locked");
    }
    world.run(&["gc", "--apply"]).ends(0).says("for 2 workspaces that are gone freed");
    assert_eq!(count(), 1, "what is still used stays");
    assert!(!world.run(&["doctor"]).ends(0).out.contains("gone"));
}

#[test]
fn a_demo_leaves_no_caches_of_its_scratch_folder() {
    let world = World::new();
    let caches = || fs::read_dir(world.home.join("caches")).map_or(0, Iterator::count);
    for words in [&["demo"][..], &["demo", "--crash"]] {
        world.run(words).ends(0);
        assert_eq!(caches(), 0, "{words:?}");
    }
    world.run(&["demo", "--keep", "kept"]).ends(0);
    assert_eq!(caches(), 1, "a project that stays keeps its own");
}
