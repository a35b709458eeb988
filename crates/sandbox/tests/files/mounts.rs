//! The mount table: longest path wins, read-only is read-only, the configuration always is.

use std::fs;

use portcullis_base::Reason;
use portcullis_sandbox::{Access, FileError, Mount, TreeOwner, VirtualPath, read_file};

use crate::world::{World, world};

fn with_runtime() -> (World, tempfile::TempDir) {
    let mut w = world();
    let runtime = tempfile::tempdir().expect("dir");
    fs::write(runtime.path().join("note.md"), b"runtime").expect("file");
    for at in ["/workspace/.portcullis-runtime", "/runtime", "/workspace/agent/memory"] {
        let root = VirtualPath::new(at).expect("path");
        w.table.add(Mount::open(root, runtime.path(), Access::ReadOnly, TreeOwner::SessionOwn).expect("mount"));
    }
    (w, runtime)
}

#[test]
fn the_longest_mount_path_wins_without_a_mountpoint_on_the_host() {
    let (w, _runtime) = with_runtime();
    w.link("notes", ".portcullis-runtime/note.md");
    for raw in [
        ".portcullis-runtime/note.md",
        "/runtime/note.md",
        "agent/memory/note.md",
        "notes",
        "/workspace/../runtime/note.md",
    ] {
        assert_eq!(read_file(&w.resolve(raw), 100).expect(raw).bytes, b"runtime", "{raw}");
    }
    assert_eq!(w.path_of("notes"), "/workspace/.portcullis-runtime/note.md");
    assert_eq!(w.path_of(".portcullis-runtime/../x"), "/workspace/x");
    assert_eq!(w.path_of("agent/memory/../../x"), "/workspace/x".to_owned());
    assert_eq!(w.listing(), ["notes"]);
}

#[test]
fn a_read_only_mount_is_not_written() {
    let (w, runtime) = with_runtime();
    for raw in ["/runtime/new", ".portcullis-runtime/new", ".portcullis-runtime/sub/new", "/workspace/../runtime/new"] {
        assert_eq!(w.create(raw, b"x").expect_err(raw).reason(), Some(Reason::ReadOnlyMount));
    }
    let error = w.overwrite("/runtime/note.md", b"x").expect_err("read-only");
    assert_eq!(error.reason(), Some(Reason::ReadOnlyMount));
    assert_eq!(fs::read(runtime.path().join("note.md")).expect("file"), b"runtime");
}

#[test]
fn only_mounts_that_say_so_take_host_paths() {
    let (w, runtime) = with_runtime();
    let raw = runtime.path().join("note.md");
    let error = w.refused(raw.to_str().expect("utf-8"));
    assert_eq!(error, FileError::PathEscape { at: None });
}

#[test]
fn the_configuration_of_a_workspace_is_read_only_under_every_name() {
    let w = world();
    w.file(".portcullis/rules.toml", b"deny");
    w.link("alias", ".portcullis");
    w.link("rules", ".portcullis/rules.toml");
    w.link("new-rule", ".portcullis/new.toml");
    let host = w.ws.join(".portcullis/rules.toml");
    for raw in [
        ".portcullis/rules.toml",
        "alias/rules.toml",
        "rules",
        "./x/../.portcullis/rules.toml",
        host.to_str().expect("utf-8"),
    ] {
        fs::create_dir_all(w.ws.join("x")).expect("dir");
        assert_eq!(read_file(&w.resolve(raw), 10).expect("readable").bytes, b"deny");
        assert_eq!(w.overwrite(raw, b"allow").expect_err(raw).reason(), Some(Reason::ReadOnlyMount), "{raw}");
    }
    for raw in [".portcullis/x", ".portcullis/a/b", "alias/x", "new-rule", ".PORTCULLIS/x", ".Portcullis"] {
        assert_eq!(w.create(raw, b"x").expect_err(raw).reason(), Some(Reason::ReadOnlyMount), "{raw}");
    }
    assert_eq!(w.listing(), [".portcullis", ".portcullis/rules.toml", "alias", "new-rule", "rules", "x"]);
    // Names that merely begin alike, and the same name further down, are the agent's own.
    w.create(".portcullis-notes/x", b"").expect("another directory");
    w.create("sub/.portcullis/x", b"").expect("not the workspace's");
}

#[test]
fn a_directory_that_is_the_configuration_by_link_is_read_only_by_its_own_name_too() {
    let w = world();
    w.file("config/rules.toml", b"deny");
    w.link(".portcullis", "config");
    for raw in ["config/rules.toml", ".portcullis/rules.toml"] {
        let error = w.overwrite(raw, b"allow").expect_err(raw);
        assert_eq!(error.reason(), Some(Reason::ReadOnlyMount), "{raw}");
    }
    assert_eq!(w.create("config/new", b"").expect_err("read-only").reason(), Some(Reason::ReadOnlyMount));
}
