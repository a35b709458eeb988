//! The mount table: longest path wins, read-only is read-only, the configuration always is.

use std::fs;
use std::path::PathBuf;

use portcullis_base::{Digest, Reason};
use portcullis_sandbox::{Access, FileError, Mount, MountTable, TreeOwner, VirtualPath, read_file};

use crate::world::{World, create_at, overwrite_at, world};

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

#[test]
fn the_configuration_file_is_read_only_by_a_second_name_too() {
    let w = world();
    let config = w.file(".portcullis/config.toml", b"deny");
    let early = w.resolve("hard");
    fs::hard_link(&config, w.ws.join("hard")).expect("a link");
    assert!(w.resolve("hard").check_writable().is_err(), "known before anything is asked");
    assert_eq!(w.overwrite("hard", b"allow").expect_err("hard").reason(), Some(Reason::ReadOnlyMount));
    // Resolved before there was a file: the write itself looks at what it opened.
    let error = overwrite_at(&early, Digest::of(b"deny"), b"x").expect_err("hard");
    assert_eq!(error.reason(), Some(Reason::ReadOnlyMount));
    fs::remove_file(&config).expect("removed");
    w.overwrite("hard", b"mine").expect("no longer the configuration");

    w.file("shared/config.toml", b"deny");
    w.link(".portcullis/config.toml", "../shared/config.toml");
    let error = w.overwrite("shared/config.toml", b"allow").expect_err("what the link leads to");
    assert_eq!(error.reason(), Some(Reason::ReadOnlyMount));
    assert_eq!(fs::read(w.ws.join("shared/config.toml")).expect("file"), b"deny");
    fs::remove_file(w.ws.join("shared/config.toml")).expect("removed");
    let error = w.create("shared/config.toml", b"allow").expect_err("where the link leads");
    assert_eq!(error.reason(), Some(Reason::ReadOnlyMount));
    assert_eq!(w.listing(), [".portcullis", ".portcullis/config.toml", "hard", "shared"]);
}

#[test]
fn a_hidden_folder_is_outside_under_every_name() {
    let mut w = world();
    w.file("home/data/keys/k", b"key");
    w.file("home/note", b"note");
    w.link("alias", "home/data/keys");
    w.link("key", "home/data/keys/k");
    let data = w.ws.join("home/data");
    w.table = w.table.clone().hiding([data.as_path()]);
    let host = data.join("keys/k");
    let names = ["home/data", "home/data/keys/k", "home/data/new", "alias/k", "key", "home/data/../note"];
    for raw in names.into_iter().chain([host.to_str().expect("utf-8")]) {
        assert_eq!(w.refused(raw).reason(), Some(Reason::PathEscape), "{raw}");
    }
    assert_eq!(read_file(&w.resolve("home/note"), 10).expect("beside it").bytes, b"note");

    // Moved into the way after the path was resolved: the actions notice it themselves.
    let found = w.resolve("later/keys/k");
    fs::rename(&data, w.ws.join("later")).expect("rename");
    assert_eq!(read_file(&found, 10).expect_err("hidden").reason(), Some(Reason::PathEscape));
    assert_eq!(create_at(&found, b"x").expect_err("hidden").reason(), Some(Reason::PathEscape));
    assert_eq!(w.refused("later/keys/k").reason(), Some(Reason::PathEscape));

    let whole = w.table.clone().hiding([w.ws.as_path()]);
    assert_eq!(whole.resolve("home/note").expect_err("the mount itself").reason(), Some(Reason::PathEscape));
}

#[test]
fn a_hidden_file_is_outside_under_every_name() {
    let mut w = world();
    w.file("store.db", b"secret");
    w.file("note", b"note");
    w.link("alias", "store.db");
    fs::hard_link(w.ws.join("store.db"), w.ws.join("hard")).expect("hard link");
    let db = w.ws.join("store.db");
    w.table = w.table.clone().hiding([db.as_path()]);
    for raw in ["store.db", "alias", "hard", db.to_str().expect("utf-8")] {
        assert_eq!(w.refused(raw).reason(), Some(Reason::PathEscape), "{raw}");
    }
    assert_eq!(read_file(&w.resolve("note"), 10).expect("beside it").bytes, b"note");

    // Moved into the way after the path was resolved: the actions notice it themselves.
    let later = w.resolve("later");
    fs::rename(&db, w.ws.join("later")).expect("rename");
    assert_eq!(read_file(&later, 10).expect_err("hidden").reason(), Some(Reason::PathEscape));
    let overwritten = overwrite_at(&later, Digest::of(b"secret"), b"x");
    assert_eq!(overwritten.expect_err("hidden").reason(), Some(Reason::PathEscape));
}

#[test]
fn h08_what_is_hidden_before_it_is_there_is_never_made() {
    let mut w = world();
    w.file("there/note", b"note");
    w.link("linked", "leads-here/rules");
    let places = [".config/rules", "there/rules", "mine.toml", "linked"].map(|place| w.ws.join(place));
    let early = w.resolve("there/rules/new");
    w.table = w.table.clone().hiding(places.iter().map(PathBuf::as_path));
    let names = [
        ".config/rules",
        ".config/rules/deep/config.toml",
        ".CONFIG/Rules/x",
        "there/rules",
        "there/rules/x",
        "mine.toml",
        "there/../mine.toml",
    ];
    for raw in names {
        assert_eq!(w.refused(raw).reason(), Some(Reason::PathEscape), "{raw}");
    }
    // Where a link of the hidden place leads: known only once something stands there, and taken away again.
    for raw in ["leads-here/rules", "leads-here/rules/x"] {
        assert_eq!(w.create(raw, b"allow").expect_err("made").reason(), Some(Reason::PathEscape), "{raw}");
    }
    assert_eq!(w.listing(), ["linked", "there", "there/note"], "nothing is left behind");
    // Beside them everything can be made, and what was resolved under another table is not looked at by this one.
    w.create(".config/other/x", b"").expect("beside");
    w.create("mine.toml.bak", b"").expect("beside");
    assert_eq!(w.refused(".config/rules/x").reason(), Some(Reason::PathEscape), "its folder is there now");
    create_at(&early, b"x").expect("a table that hides nothing");

    // Whoever made it: from then on it cannot be seen, and a file that was saved anew neither.
    w.file("mine.toml", b"rules");
    for raw in ["mine.toml", "there/rules/new"] {
        assert_eq!(w.refused(raw).reason(), Some(Reason::PathEscape), "{raw}");
    }
    fs::rename(w.ws.join("mine.toml.bak"), w.ws.join("mine.toml")).expect("saved anew");
    assert_eq!(w.refused("mine.toml").reason(), Some(Reason::PathEscape));
    assert!(!format!("{:?}", w.table).contains(w.ws.to_str().expect("utf-8")), "H6");
}

#[test]
fn a_mount_beneath_a_hidden_folder_is_hidden() {
    let w = world();
    w.file("data/keys/k", b"key");
    w.link("alias", "data");
    let data = w.ws.join("data");
    for host in ["data", "data/keys", "alias/keys"] {
        let table = MountTable::workspace(&w.ws.join(host), TreeOwner::PersonsTree).expect("mount");
        assert!(table.hidden_mount().is_none());
        let table = table.hiding([data.as_path()]);
        assert_eq!(table.hidden_mount().map(VirtualPath::as_str), Some("/workspace"), "{host}");
        assert_eq!(table.resolve("k").expect_err("hidden").reason(), Some(Reason::PathEscape), "{host}");
    }
}

#[test]
fn a_place_reached_by_links_tells_every_name_it_went_by() {
    let w = world();
    w.file("shared/env", b"x");
    w.link(".env", "shared/env");
    w.link("more", "shared");
    w.link("first", ".env");
    let names = |raw: &str| w.resolve(raw).also_named().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(names("shared/../shared/env").is_empty());
    assert_eq!(names(".env"), ["/workspace/.env"]);
    assert_eq!(names("first"), ["/workspace/first", "/workspace/.env"]);
    assert_eq!(names("more/new/x"), ["/workspace/more/new/x"]);
    assert_eq!(names("more/../first"), ["/workspace/first", "/workspace/.env"]);
    assert_eq!(names(w.ws.join(".env").to_str().expect("utf-8")), ["/workspace/.env"]);
}
