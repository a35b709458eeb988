//! Reading is whole, bounded, and never waits.

use std::fs;
use std::os::unix::net::UnixListener;
use std::time::{Duration, UNIX_EPOCH};

use portcullis_base::{Digest, Reason, limits};
use portcullis_sandbox::{
    Access, FileError, Kind, Mount, MountTable, TreeOwner, VirtualPath, hash_file, open_dir, read_file, stat,
};

use crate::world::{create_at, overwrite_at, set_mode, world};

#[test]
fn a_file_is_read_whole_with_what_its_handle_says() {
    let w = world();
    let host = w.file("a.txt", b"hello\n");
    set_mode(&host, 0o640);
    let at = UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
    fs::File::options().write(true).open(&host).expect("open").set_modified(at).expect("mtime");
    let found = w.resolve("a.txt");
    let content = read_file(&found, limits::FILE_MAX).expect("read");
    assert_eq!((content.bytes.as_slice(), content.size, content.mode), (&b"hello\n"[..], 6, 0o640));
    assert_eq!(content.sha256, Digest::of(b"hello\n"));
    assert_eq!(content.mtime.as_micros(), 1_700_000_000_123_456);
    let hash = hash_file(&found).expect("hash");
    assert_eq!((hash.sha256, hash.size, hash.mtime), (content.sha256, 6, content.mtime));
    let seen = stat(&found).expect("stat");
    assert_eq!((seen.kind, seen.size, seen.mode, seen.mtime), (Kind::File, 6, 0o640, content.mtime));
}

#[test]
fn a_file_over_the_limit_is_refused_with_its_size() {
    let w = world();
    w.file("big", &[b'x'; 11]);
    let found = w.resolve("big");
    let error = read_file(&found, 10).expect_err("too large");
    assert_eq!(error, FileError::TooLarge { path: found.path().clone(), size: 11, max: 10 });
    assert_eq!(read_file(&found, 11).expect("fits").size, 11);
}

#[test]
fn a_file_that_holds_more_than_its_size_says_is_bounded_too() {
    // What /proc shows has size 0, like a file that grows while it is read.
    let root = VirtualPath::workspace();
    let proc = Mount::open(root, "/proc/self".as_ref(), Access::ReadOnly, TreeOwner::PersonsTree).expect("mount");
    let found = MountTable::new([proc]).resolve("status").expect("inside");
    assert_eq!(stat(&found).expect("stat").size, 0);
    assert!(matches!(read_file(&found, 10), Err(FileError::TooLarge { size: 11, max: 10, .. })));
    assert!(read_file(&found, limits::FILE_MAX).expect("fits").size > 10);
}

#[test]
fn pipes_sockets_devices_and_directories_are_the_wrong_kind_and_never_block() {
    let w = world();
    let fifo = w.ws.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).expect("fifo");
    let _socket = UnixListener::bind(w.ws.join("socket")).expect("socket");
    fs::create_dir(w.ws.join("dir")).expect("dir");
    for (raw, kind) in
        [("pipe", Kind::Other), ("socket", Kind::Other), ("dir", Kind::Directory), (".", Kind::Directory)]
    {
        let found = w.resolve(raw);
        assert_eq!(stat(&found).expect("stat").kind, kind);
        let some = Digest::of(b"");
        for error in [
            read_file(&found, 10).expect_err(raw),
            hash_file(&found).expect_err(raw),
            overwrite_at(&found, some, b"x").expect_err(raw),
        ] {
            assert_eq!(error.reason(), Some(Reason::WrongKind), "{raw}: {error}");
        }
        let reason = create_at(&found, b"x").expect_err(raw).reason();
        let wanted = if raw == "." { Reason::WrongKind } else { Reason::TargetExists };
        assert_eq!(reason, Some(wanted), "{raw}");
    }
    assert_eq!(open_dir(&w.resolve("pipe")).expect_err("pipe").reason(), Some(Reason::WrongKind));
}

#[test]
fn a_pipe_swapped_in_after_resolve_does_not_block_either() {
    let w = world();
    let host = w.file("a", b"x");
    let found = w.resolve("a");
    fs::remove_file(&host).expect("remove");
    rustix::fs::mknodat(rustix::fs::CWD, &host, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).expect("fifo");
    assert_eq!(read_file(&found, 10).expect_err("pipe").reason(), Some(Reason::WrongKind));
}

#[test]
fn what_is_missing_is_not_found() {
    let w = world();
    for raw in ["a", "no/such/dir/a"] {
        let found = w.resolve(raw);
        for error in [stat(&found).expect_err(raw), read_file(&found, 1).expect_err(raw)] {
            assert_eq!(error.reason(), Some(Reason::NotFound), "{raw}");
        }
    }
}

#[test]
fn a_directory_opens_for_listing() {
    let w = world();
    w.file("dir/a", b"");
    w.file("dir/b", b"");
    let mut names: Vec<_> = open_dir(&w.resolve("dir"))
        .expect("opens")
        .entries()
        .expect("lists")
        .map(|entry| entry.expect("entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
    assert!(open_dir(&w.resolve(".")).is_ok());
}
