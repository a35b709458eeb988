//! What others do between our steps: swapped directories, concurrent writers.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use portcullis_base::{Digest, Reason};
use portcullis_sandbox::{FileError, hash_file, open_dir, read_file, stat};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::world::{World, create_at, overwrite_at, world};

/// Replaces the directory `name` of the workspace by a link to `target`.
fn swap(w: &World, name: &str, target: &std::path::Path) {
    fs::rename(w.ws.join(name), w.ws.join(format!("{name}.was"))).expect("rename");
    symlink(target, w.ws.join(name)).expect("link");
}

#[test]
fn a_parent_swapped_for_a_link_after_resolve_is_not_followed() {
    let w = world();
    w.file("dir/secret.txt", b"inside");
    let (old, new) = (w.resolve("dir/secret.txt"), w.resolve("dir/new.txt"));
    let deep = w.resolve("dir/sub/deep.txt");
    swap(&w, "dir", &w.outside);
    let outside_hash = Digest::of(crate::world::SECRET);
    for error in [
        read_file(&old, 100).expect_err("read"),
        hash_file(&old).expect_err("hash"),
        stat(&old).expect_err("stat"),
        overwrite_at(&old, outside_hash, b"x").expect_err("overwrite"),
        create_at(&new, b"x").expect_err("create"),
        create_at(&deep, b"x").expect_err("create deep"),
    ] {
        assert!(matches!(error, FileError::PathChanged { .. }), "{error:?}");
    }
    w.assert_outside_untouched();
    assert_eq!(w.listing(), ["dir", "dir.was", "dir.was/secret.txt"]);
}

#[test]
fn a_link_swapped_in_is_not_followed_even_to_a_place_inside() {
    // Permission was asked for `dir/a`; `other/a` may be denied.
    let w = world();
    w.file("dir/a", b"same");
    w.file("other/a", b"same");
    let found = w.resolve("dir/a");
    swap(&w, "dir", std::path::Path::new("other"));
    let error = overwrite_at(&found, Digest::of(b"same"), b"x").expect_err("changed");
    assert!(matches!(error, FileError::PathChanged { .. }), "{error:?}");
    assert_eq!(fs::read(w.ws.join("other/a")).expect("file"), b"same");
}

#[test]
fn the_file_itself_swapped_for_a_link_is_not_followed() {
    let w = world();
    let host = w.file("a", crate::world::SECRET);
    let found = w.resolve("a");
    fs::remove_file(&host).expect("remove");
    symlink(w.outside.join("secret.txt"), &host).expect("link");
    for error in [
        read_file(&found, 100).expect_err("read"),
        overwrite_at(&found, Digest::of(crate::world::SECRET), b"x").expect_err("overwrite"),
    ] {
        assert!(matches!(error, FileError::PathChanged { .. }), "{error:?}");
    }
    w.assert_outside_untouched();
}

#[test]
fn a_directory_swapped_for_a_link_does_not_open_for_listing() {
    let w = world();
    fs::create_dir(w.ws.join("dir")).expect("dir");
    let found = w.resolve("dir");
    swap(&w, "dir", &w.outside);
    assert!(matches!(open_dir(&found).expect_err("changed"), FileError::PathChanged { .. }));
}

#[test]
fn the_configuration_moved_under_a_resolved_path_is_still_read_only() {
    let w = world();
    w.file("dir/rules.toml", b"deny");
    let found = w.resolve("dir/rules.toml");
    // Now `dir` *is* the configuration, by object and not by name.
    symlink("dir", w.ws.join(".portcullis")).expect("link");
    let error = overwrite_at(&found, Digest::of(b"deny"), b"allow").expect_err("read-only");
    assert_eq!(error.reason(), Some(Reason::ReadOnlyMount));
}

/// Exchanges two names of the workspace, over and over, while `work` runs.
fn while_exchanging(w: &World, one: &str, other: &str, work: impl FnOnce()) {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        // Also when `work` panics: the scope waits for the thread.
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (w.ws.join(one), w.ws.join(other));
            while !stopped.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).expect("exchange");
            }
        });
        let _stop = Stop(&stopped);
        work();
    });
}

#[test]
fn under_a_storm_of_swapped_directories_nothing_outside_is_touched() {
    let w = world();
    fs::create_dir(w.ws.join("dir")).expect("dir");
    w.link("other", &w.outside);
    while_exchanging(&w, "dir", "other", || {
        for round in 0..300 {
            if let Ok(found) = w.table.resolve(&format!("dir/{round}/file")) {
                let _ = create_at(&found, b"x");
            }
            if let Ok(found) = w.table.resolve("dir/secret.txt") {
                assert!(read_file(&found, 100).is_err(), "only the outside has this file");
            }
        }
    });
    w.assert_outside_untouched();
    assert!(w.listing().iter().all(|name| !name.contains(".tmp")), "{:?}", w.listing());
}

#[test]
fn under_a_storm_of_swapped_files_no_link_is_read_or_written_through() {
    let w = world();
    w.file("a", b"inside");
    w.link("link", "../outside/secret.txt");
    let found = w.resolve("a");
    while_exchanging(&w, "a", "link", || {
        for _ in 0..2_000 {
            if let Ok(content) = read_file(&found, 100) {
                assert_eq!(content.bytes, b"inside");
            }
        }
        for _ in 0..100 {
            let _ = overwrite_at(&found, Digest::of(crate::world::SECRET), b"x");
        }
    });
    w.assert_outside_untouched();
}

const WRITERS: usize = 8;

#[test]
fn of_concurrent_writers_with_one_baseline_exactly_one_wins() {
    for hard_linked in [false, true] {
        let w = world();
        let host = w.file("a", b"start");
        if hard_linked {
            fs::hard_link(&host, w.ws.join("b")).expect("hard link");
        }
        let names = w.listing();
        let barrier = Barrier::new(WRITERS);
        let results: Vec<_> = thread::scope(|scope| {
            let handles: Vec<_> = (0..WRITERS)
                .map(|i| {
                    let (w, barrier) = (&w, &barrier);
                    scope.spawn(move || {
                        let found = w.resolve("a");
                        barrier.wait();
                        overwrite_at(&found, Digest::of(b"start"), format!("writer {i}").as_bytes())
                    })
                })
                .collect();
            handles.into_iter().map(|h| h.join().expect("no panic")).collect()
        });
        let winners: Vec<_> = results.iter().filter_map(|r| r.as_ref().ok()).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        assert_eq!(Digest::of(&fs::read(&host).expect("file")), winners[0].sha256);
        for lost in results.iter().filter_map(|r| r.as_ref().err()) {
            assert!(matches!(lost, FileError::StaleBaseline { .. }), "{lost:?}");
        }
        assert_eq!(w.listing(), names);
    }
}

#[test]
fn no_update_is_lost_between_writers_that_retry() {
    const EACH: usize = 10;
    let w = world();
    w.file("log", b"");
    thread::scope(|scope| {
        for i in 0..4 {
            let w = &w;
            scope.spawn(move || {
                let found = w.resolve("log");
                for n in 0..EACH {
                    loop {
                        let now = read_file(&found, 1 << 20).expect("read");
                        let mut next = now.bytes;
                        next.extend_from_slice(format!("{i}:{n}\n").as_bytes());
                        match overwrite_at(&found, now.sha256, &next) {
                            Ok(_) => break,
                            Err(FileError::StaleBaseline { .. }) => {}
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                }
            });
        }
    });
    let log = fs::read_to_string(w.ws.join("log")).expect("log");
    assert_eq!(log.lines().count(), 4 * EACH, "{log}");
    assert_eq!(w.listing(), ["log"]);
}

#[test]
fn of_concurrent_creators_exactly_one_wins() {
    let w = world();
    let barrier = Barrier::new(WRITERS);
    let won = thread::scope(|scope| {
        let handles: Vec<_> = (0..WRITERS)
            .map(|i| {
                let (w, barrier) = (&w, &barrier);
                scope.spawn(move || {
                    let found = w.resolve("deep/er/a");
                    barrier.wait();
                    create_at(&found, format!("{i}").as_bytes())
                })
            })
            .collect();
        let results: Vec<_> = handles.into_iter().map(|h| h.join().expect("no panic")).collect();
        for lost in results.iter().filter_map(|r| r.as_ref().err()) {
            assert!(matches!(lost, FileError::TargetExists { .. }), "{lost:?}");
        }
        results.iter().filter(|r| r.is_ok()).count()
    });
    assert_eq!(won, 1);
    assert_eq!(w.listing(), ["deep", "deep/er", "deep/er/a"]);
}
