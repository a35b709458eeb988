//! Writing keeps what a person's tree had: modes, owners, links; and leaves nothing else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use portcullis_base::{Digest, Reason, limits};
use portcullis_sandbox::{Expect, FileError, TreeOwner, WritePlan, write_file};

use crate::world::{create_at, in_process, mode, overwrite_at, set_mode, world, world_of};

#[test]
fn a_new_file_is_written_with_its_parents() {
    let w = world();
    let written = w.create("a/b/c.txt", b"new\n").expect("written");
    assert_eq!(fs::read(w.ws.join("a/b/c.txt")).expect("file"), b"new\n");
    assert_eq!(written.before, None);
    assert_eq!((written.sha256, written.size, written.synced), (Digest::of(b"new\n"), 4, true));
    let made: Vec<_> = written.created_dirs.iter().map(|d| d.display_relative()).collect();
    assert_eq!(made, ["a", "a/b"]);
    let seen = portcullis_sandbox::stat(&w.resolve("a/b/c.txt")).expect("stat");
    assert_eq!((seen.mtime, seen.mode), (written.mtime, written.mode));
    assert_eq!(w.listing(), ["a", "a/b", "a/b/c.txt"]);
}

#[test]
fn parents_are_not_made_unasked() {
    let w = world();
    let plan = WritePlan { content: b"x", expect: Expect::Absent, create_parents: false };
    let error = write_file(&w.resolve("a/b"), &plan).expect_err("no parent");
    assert_eq!(error.reason(), Some(Reason::NotFound));
    assert!(w.listing().is_empty());
}

#[test]
fn a_persons_tree_follows_the_umask_and_a_sessions_own_is_private() {
    if !in_process("writing::a_persons_tree_follows_the_umask_and_a_sessions_own_is_private", "umask 026") {
        return;
    }
    let w = world();
    w.create("dir/file", b"").expect("written");
    assert_eq!((mode(&w.ws.join("dir/file")), mode(&w.ws.join("dir"))), (0o640, 0o751));
    let host = w.file("open", b"");
    set_mode(&host, 0o666);
    w.overwrite("open", b"x").expect("written");
    assert_eq!(mode(&host), 0o666, "the umask is for new files");

    let own = world_of(TreeOwner::SessionOwn);
    own.create("dir/file", b"").expect("written");
    assert_eq!((mode(&own.ws.join("dir/file")), mode(&own.ws.join("dir"))), (0o600, 0o700));
}

#[test]
fn a_sessions_own_files_are_private_even_without_a_umask() {
    if !in_process("writing::a_sessions_own_files_are_private_even_without_a_umask", "umask 0") {
        return;
    }
    let (w, own) = (world(), world_of(TreeOwner::SessionOwn));
    w.create("dir/file", b"").expect("written");
    own.create("dir/file", b"").expect("written");
    assert_eq!((mode(&w.ws.join("dir/file")), mode(&w.ws.join("dir"))), (0o666, 0o777));
    assert_eq!((mode(&own.ws.join("dir/file")), mode(&own.ws.join("dir"))), (0o600, 0o700));
}

#[test]
fn a_disk_that_takes_only_half_leaves_the_old_file_and_no_trace() {
    let limit = "trap '' XFSZ; ulimit -f 16";
    if !in_process("writing::a_disk_that_takes_only_half_leaves_the_old_file_and_no_trace", limit) {
        return;
    }
    let w = world();
    let host = w.file("old", b"old");
    w.file("one", b"linked");
    fs::hard_link(w.ws.join("one"), w.ws.join("two")).expect("hard link");
    let big = vec![b'x'; 1 << 20];
    for error in [
        w.create("new/dir/file", &big).expect_err("limit"),
        w.overwrite("old", &big).expect_err("limit"),
        w.overwrite("one", &big).expect_err("limit"),
    ] {
        assert!(matches!(error, FileError::Io { kind: std::io::ErrorKind::FileTooLarge, .. }), "{error:?}");
    }
    assert_eq!(fs::read(&host).expect("file"), b"old");
    assert_eq!(fs::read(w.ws.join("two")).expect("file"), b"linked");
    assert_eq!(w.listing(), ["old", "one", "two"]);
}

#[test]
fn an_overwrite_keeps_the_mode_in_either_tree() {
    for owner in [TreeOwner::PersonsTree, TreeOwner::SessionOwn] {
        let w = world_of(owner);
        let host = w.file("run.sh", b"old");
        set_mode(&host, 0o754);
        let written = w.overwrite("run.sh", b"new").expect("written");
        assert_eq!(mode(&host), 0o754);
        assert_eq!(written.mode, 0o754);
        assert_eq!(written.before.expect("before").bytes, b"old");
        assert_eq!(fs::read(&host).expect("file"), b"new");
    }
}

#[test]
fn an_overwrite_keeps_the_owner_where_permitted() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root may give a file away, so only root can see it kept.
    }
    let w = world();
    let host = w.file("theirs", b"old");
    std::os::unix::fs::chown(&host, Some(1234), Some(4321)).expect("chown");
    set_mode(&host, 0o4711);
    w.overwrite("theirs", b"new").expect("written");
    let now = fs::metadata(&host).expect("metadata");
    assert_eq!((now.uid(), now.gid(), now.permissions().mode() & 0o7777), (1234, 4321, 0o4711));
}

#[test]
fn an_overwrite_keeps_user_attributes() {
    let w = world();
    let host = w.file("tagged", b"old");
    let file = fs::File::open(&host).expect("open");
    if rustix::fs::fsetxattr(&file, "user.origin", b"test", rustix::fs::XattrFlags::empty()).is_err() {
        return; // The file system of this machine's temporary directory has none.
    }
    w.overwrite("tagged", b"new").expect("written");
    let mut value = [0u8; 16];
    let len = rustix::fs::fgetxattr(fs::File::open(&host).expect("open"), "user.origin", &mut value[..]).expect("kept");
    assert_eq!(&value[..len], b"test");
}

#[test]
fn a_write_through_a_link_changes_the_target_and_keeps_the_link() {
    let w = world();
    w.file("real/target.txt", b"old");
    w.link("link.txt", "real/target.txt");
    w.link("future.txt", "real/future.txt");
    w.overwrite("link.txt", b"new").expect("written");
    w.create("future.txt", b"made").expect("written");
    assert_eq!(fs::read_link(w.ws.join("link.txt")).expect("still a link").to_str(), Some("real/target.txt"));
    assert_eq!(fs::read(w.ws.join("real/target.txt")).expect("file"), b"new");
    assert!(fs::symlink_metadata(w.ws.join("future.txt")).expect("link").is_symlink());
    assert_eq!(fs::read(w.ws.join("real/future.txt")).expect("file"), b"made");
}

#[test]
fn hard_links_survive_an_overwrite() {
    let w = world();
    let host = w.file("one", b"a long old content");
    fs::hard_link(&host, w.ws.join("two")).expect("hard link");
    set_mode(&host, 0o640);
    for content in [&b"short"[..], b"a new content that is longer than the old"] {
        w.overwrite("one", content).expect("written");
        assert_eq!(fs::read(w.ws.join("two")).expect("other name"), content);
    }
    let now = fs::metadata(&host).expect("metadata");
    assert_eq!((now.nlink(), now.permissions().mode() & 0o7777), (2, 0o640));
    assert_eq!(w.listing(), ["one", "two"]);
    let stale = overwrite_at(&w.resolve("two"), Digest::of(b"short"), b"x").expect_err("stale");
    assert!(matches!(stale, FileError::StaleBaseline { .. }));
    assert_eq!(w.listing(), ["one", "two"]);
}

#[test]
fn a_changed_file_is_stale_and_stays_as_it_is() {
    let w = world();
    let host = w.file("a", b"read");
    let found = w.resolve("a");
    let modified = fs::metadata(&host).expect("metadata").modified().expect("mtime");
    fs::write(&host, b"else").expect("change");
    // Equal size and mtime are no evidence (tool-contract §19).
    fs::File::options().write(true).open(&host).expect("open").set_modified(modified).expect("mtime");
    let error = overwrite_at(&found, Digest::of(b"read"), b"mine").expect_err("stale");
    let (expected, now) = (Digest::of(b"read"), Some(Digest::of(b"else")));
    assert_eq!(error, FileError::StaleBaseline { path: found.path().clone(), expected, found: now });
    assert_eq!(error.code(), portcullis_base::Code::StaleFileBaseline);
    assert_eq!(fs::read(&host).expect("file"), b"else");
    assert_eq!(w.listing(), ["a"]);
}

#[test]
fn a_removed_file_is_stale_even_with_its_directory() {
    let w = world();
    w.file("d/a", b"read");
    let found = w.resolve("d/a");
    fs::remove_dir_all(w.ws.join("d")).expect("remove");
    let error = overwrite_at(&found, Digest::of(b"read"), b"mine").expect_err("stale");
    assert!(matches!(error, FileError::StaleBaseline { found: None, .. }), "{error:?}");
    assert!(w.listing().is_empty());
}

#[test]
fn another_mtime_with_the_same_content_is_no_change() {
    let w = world();
    let host = w.file("a", b"read");
    let found = w.resolve("a");
    fs::File::options().write(true).open(&host).expect("open").set_modified(std::time::UNIX_EPOCH).expect("mtime");
    overwrite_at(&found, Digest::of(b"read"), b"mine").expect("valid");
}

#[test]
fn creating_over_anything_fails_with_target_exists() {
    let w = world();
    w.file("file", b"old");
    w.link("dangling", "nowhere");
    fs::create_dir(w.ws.join("dir")).expect("dir");
    for raw in ["file", "dir"] {
        assert_eq!(w.create(raw, b"x").expect_err(raw).reason(), Some(Reason::TargetExists));
    }
    // Appearing after resolve is the same, a link included: it is not written through.
    let found = w.resolve("later");
    w.link("later", "file");
    assert_eq!(create_at(&found, b"x").expect_err("exists").reason(), Some(Reason::TargetExists));
    assert_eq!(fs::read(w.ws.join("file")).expect("file"), b"old");
    assert_eq!(w.listing(), ["dangling", "dir", "file", "later"]);
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let w = world();
    let too_long = format!("made/also/{}", "n".repeat(300));
    let error = w.create(&too_long, b"x").expect_err("name too long");
    assert_eq!(error.reason(), None);
    assert!(w.listing().is_empty(), "{:?}", w.listing());

    let content = vec![b'x'; usize::try_from(limits::FILE_MAX).expect("fits") + 1];
    let error = w.create("big/file", &content).expect_err("too large");
    assert!(matches!(error, FileError::TooLarge { .. }));
    assert!(w.listing().is_empty());
}

#[test]
fn a_file_made_read_only_is_not_replaced() {
    if rustix::process::geteuid().is_root() {
        return; // Root may write every file; the kernel says so and we follow it.
    }
    let w = world();
    let host = w.file("kept", b"old");
    set_mode(&host, 0o444);
    let error = w.overwrite("kept", b"new").expect_err("read-only");
    assert!(matches!(error, FileError::Io { kind: std::io::ErrorKind::PermissionDenied, .. }), "{error:?}");
    assert_eq!(fs::read(&host).expect("file"), b"old");
    assert_eq!(w.listing(), ["kept"]);
}
