//! H8: nothing outside a mount is reached, and H6: no error says where the mount lies.

use std::fs;
use std::os::unix::fs::symlink;

use portcullis_base::Reason;
use portcullis_sandbox::{
    Access, FileError, Kind, Mount, MountTable, PathFault, TreeOwner, VirtualPath, read_file, stat,
};

use crate::world::world;

fn assert_escape(error: &FileError, raw: &str) {
    assert_eq!(error.reason(), Some(Reason::PathEscape), "{raw}: {error}");
}

#[test]
fn one_place_has_one_canonical_path() {
    let w = world();
    w.file("src/a.rs", b"");
    w.link("alias", "src");
    w.link("src/b.rs", "../alias/a.rs");
    for raw in [
        "src/a.rs",
        "./src//a.rs",
        "/workspace/src/a.rs",
        "src/../src/a.rs",
        "alias/a.rs",
        "src/b.rs",
        "src/../src/b.rs",
    ] {
        assert_eq!(w.path_of(raw), "/workspace/src/a.rs", "{raw}");
        assert_eq!(w.resolve(raw).kind(), Some(Kind::File));
    }
    assert_eq!(w.path_of("."), "/workspace");
    assert_eq!(w.path_of("/workspace/"), "/workspace");
}

#[test]
fn dot_dot_after_a_link_goes_where_the_link_led() {
    let w = world();
    w.file("deep/down/here/x", b"");
    w.link("short", "deep/down/here");
    // Lexically this would be `/workspace/y`.
    assert_eq!(w.path_of("short/../y"), "/workspace/deep/down/y");
}

#[test]
fn dot_dot_out_of_the_workspace_escapes() {
    let w = world();
    w.file("src/a.rs", b"");
    for raw in [
        "..",
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "/workspace/../etc/passwd",
        "/workspace/..",
        "../ws/src/a.rs",
    ] {
        assert_escape(&w.refused(raw), raw);
    }
}

#[test]
fn absolute_paths_outside_escape_whether_they_exist_or_not() {
    let w = world();
    let secret = w.outside.join("secret.txt");
    let missing = w.outside.join("missing/x");
    for raw in [
        "/",
        "/etc/passwd",
        "/nonexistent/x",
        "/proc/self/root",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "/dev/null",
    ] {
        assert_eq!(w.refused(raw), FileError::PathEscape { at: None }, "{raw}");
    }
    for host in [secret, missing] {
        assert_eq!(w.refused(host.to_str().expect("utf-8")), FileError::PathEscape { at: None });
    }
}

#[test]
fn links_that_lead_outside_escape() {
    let w = world();
    fs::create_dir(w.ws.join("sub")).expect("dir");
    w.link("abs-file", w.outside.join("secret.txt"));
    w.link("abs-dir", &w.outside);
    w.link("rel-file", "../outside/secret.txt");
    w.link("rel-dir", "../outside");
    w.link("sub/up", "../..");
    w.link("chain", "rel-dir");
    w.link("proc", "/proc/self/root");
    w.link("dangling", "../outside/new.txt");
    w.link("dangling-abs", w.outside.join("new.txt"));
    for raw in [
        "abs-file",
        "abs-dir/secret.txt",
        "rel-file",
        "rel-dir",
        "rel-dir/secret.txt",
        "sub/up/outside/secret.txt",
        "chain/secret.txt",
        "proc/etc/passwd",
        "dangling",
        "dangling-abs",
        "rel-dir/new/deep.txt",
    ] {
        let error = w.refused(raw);
        assert_escape(&error, raw);
        assert_escape(&w.create(raw, b"x").expect_err("refused"), raw);
    }
    w.assert_outside_untouched();
}

#[test]
fn an_absolute_link_escapes_even_if_its_target_lies_inside() {
    let w = world();
    let inside = w.file("a", b"");
    w.link("abs", inside);
    w.link("virtual", "/workspace/a");
    assert_escape(&w.refused("abs"), "abs");
    assert_escape(&w.refused("virtual"), "virtual");
}

#[test]
fn magic_links_of_proc_lead_nowhere() {
    let root = VirtualPath::workspace();
    let proc = Mount::open(root, "/proc/self".as_ref(), Access::ReadWrite, TreeOwner::PersonsTree).expect("mount");
    let table = MountTable::new([proc]);
    for raw in ["root", "root/etc/passwd", "cwd", "cwd/Cargo.toml", "exe"] {
        assert_escape(&table.resolve(raw).expect_err(raw), raw);
    }
}

#[test]
fn links_in_a_circle_end() {
    let w = world();
    w.link("a", "b");
    w.link("b", "a");
    w.link("self", "self/x");
    for raw in ["a", "a/x", "self"] {
        let error = w.refused(raw);
        assert!(matches!(error, FileError::LinkLoop { .. }), "{error}");
        assert_eq!(error.reason(), Some(Reason::NotFound));
    }
}

#[test]
fn texts_that_are_no_path_are_schema_errors() {
    let w = world();
    let long = "a/".repeat(3_000);
    for (raw, fault) in [
        ("", PathFault::Empty),
        ("a\0b", PathFault::Nul),
        ("/etc\0/workspace", PathFault::Nul),
        (&long, PathFault::TooLong),
    ] {
        let error = w.refused(raw);
        assert_eq!(error, FileError::InvalidPath { fault });
        assert_eq!(error.code(), portcullis_base::Code::SchemaInvalid);
    }
}

#[test]
fn a_tree_too_deep_is_refused_before_it_uses_up_the_handles() {
    let w = world();
    fs::create_dir_all(w.ws.join("d/".repeat(300))).expect("dirs");
    assert_eq!(w.refused(&"d/".repeat(300)), FileError::InvalidPath { fault: PathFault::TooDeep });
    assert_eq!(w.refused(&"new/".repeat(300)), FileError::InvalidPath { fault: PathFault::TooDeep });
    assert_eq!(w.resolve(&"d/".repeat(256)).kind(), Some(Kind::Directory));
}

#[test]
fn a_link_to_a_name_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let w = world();
    w.link("odd", std::ffi::OsStr::from_bytes(b"caf\xe9"));
    assert_eq!(w.refused("odd"), FileError::InvalidPath { fault: PathFault::NotUtf8 });
}

#[test]
fn what_does_not_exist_yet_resolves_to_its_canonical_parent_and_the_rest() {
    let w = world();
    fs::create_dir_all(w.ws.join("real/dir")).expect("dirs");
    w.link("alias", "real/dir");
    w.link("later", "real/not-yet");
    let found = w.resolve("alias/new/deep/file.txt");
    assert_eq!(found.path().as_str(), "/workspace/real/dir/new/deep/file.txt");
    assert_eq!(found.kind(), None);
    assert_eq!(w.path_of("later"), "/workspace/real/not-yet");
    assert_eq!(w.path_of("later/x"), "/workspace/real/not-yet/x");
    // A place beyond something missing cannot be told from outside: the missing part may become a link.
    assert!(matches!(w.refused("missing/../x"), FileError::NotFound { .. }));
    assert!(matches!(w.refused("missing/../../outside/secret.txt"), FileError::NotFound { .. }));
}

#[test]
fn a_file_on_the_way_is_the_wrong_kind() {
    let w = world();
    w.file("a.txt", b"");
    let error = w.refused("a.txt/b");
    assert_eq!(error.reason(), Some(Reason::WrongKind));
    assert!(error.to_string().contains("`a.txt`"), "{error}");
}

#[test]
fn host_paths_beneath_the_workspace_are_the_same_place() {
    let w = world();
    let file = w.file("src/a.rs", b"");
    let ways = w.outside.parent().expect("parent").join("ways");
    symlink(&w.ws, &ways).expect("link");
    for host in [
        file.clone(),
        w.ws.join("src/./../src/a.rs"),
        ways.join("src/a.rs"),
        w.outside.join("../ws/src/a.rs"),
        std::path::Path::new("/proc/self/root").join(file.strip_prefix("/").expect("absolute")),
    ] {
        assert_eq!(w.path_of(host.to_str().expect("utf-8")), "/workspace/src/a.rs", "{host:?}");
    }
    assert_eq!(w.path_of(w.ws.to_str().expect("utf-8")), "/workspace");
    assert_eq!(w.path_of(ways.join("new/x").to_str().expect("utf-8")), "/workspace/new/x");
    // A workspace opened through a link is the directory behind it.
    let table = MountTable::workspace(&ways, TreeOwner::PersonsTree).expect("a mount");
    for host in [&file, &ways.join("src/a.rs")] {
        let found = table.resolve(host.to_str().expect("utf-8")).expect("inside");
        assert_eq!(found.path().display_relative(), "src/a.rs");
    }
}

#[test]
fn a_host_path_that_only_looks_beneath_the_workspace_escapes() {
    let w = world();
    let evil = w.outside.parent().expect("parent").join("ws-evil");
    fs::create_dir(&evil).expect("dir");
    fs::write(evil.join("a"), b"").expect("file");
    let ws = w.ws.to_str().expect("utf-8");
    for raw in [format!("{ws}-evil/a"), format!("{ws}/../outside/secret.txt"), format!("{ws}/..")] {
        assert_escape(&w.refused(&raw), &raw);
    }
}

#[test]
fn the_handle_is_the_workspace_even_after_its_host_path_became_another() {
    let w = world();
    w.file("a", b"mine");
    let moved = w.outside.parent().expect("parent").join("moved");
    fs::rename(&w.ws, &moved).expect("rename");
    symlink(&w.outside, &w.ws).expect("link");
    assert_eq!(read_file(&w.resolve("a"), 10).expect("read").bytes, b"mine");
    assert!(matches!(stat(&w.resolve("secret.txt")), Err(FileError::NotFound { .. })));
    let raw = w.ws.join("secret.txt");
    assert_escape(&w.refused(raw.to_str().expect("utf-8")), "swapped host path");
}

#[test]
fn h6_no_error_tells_a_host_path() {
    let w = world();
    w.file("f", b"x");
    w.link("out", &w.outside);
    w.link("loop", "loop");
    let root = w.outside.parent().expect("parent").to_str().expect("utf-8").to_owned();
    let absolute = w.outside.join("secret.txt").to_str().expect("utf-8").to_owned();
    let within = w.ws.join("f/g").to_str().expect("utf-8").to_owned();
    for raw in ["out/x", "loop", "../x", "f/g", "missing/../x", "", &absolute, &within] {
        let error = w.refused(raw);
        assert!(!format!("{error} {error:?}").contains(&root), "{error:?}");
    }
    let error = MountTable::workspace(&w.outside.join("missing"), TreeOwner::PersonsTree).expect_err("missing");
    assert!(!format!("{error} {error:?}").contains(&root), "{error:?}");
    for debug in [format!("{:?}", w.resolve("f")), format!("{:?}", w.table)] {
        assert!(!debug.contains(&root), "{debug}");
    }
}

#[test]
fn l37_resolving_opens_no_content() {
    let w = world();
    // A pipe blocks whoever opens it, and a file's access time tells of whoever reads it.
    let fifo = w.ws.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).expect("fifo");
    assert_eq!(w.resolve("pipe").kind(), Some(Kind::Other));
    // A file nobody may open resolves, though for root this proves less.
    let file = w.file("locked", b"x");
    crate::world::set_mode(&file, 0);
    assert_eq!(w.resolve("locked").kind(), Some(Kind::File));
    assert_eq!(stat(&w.resolve("locked")).expect("stat").size, 1);
}
