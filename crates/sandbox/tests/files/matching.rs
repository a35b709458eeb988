//! Every name of what must not be seen is found, and nothing is passed over.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use portcullis_sandbox::matching::{PlaceMatcher, find, linked};
use portcullis_sandbox::{MountTable, TreeOwner};

/// Whatever ends in `.env`, or is the folder `closed`, beneath an anchor.
struct Ends(Vec<String>);

impl PlaceMatcher for Ends {
    fn is(&self, path: &str) -> Option<usize> {
        (path.ends_with(".env") || path.ends_with("/closed")).then_some(0)
    }

    fn anchors(&self) -> &[String] {
        &self.0
    }
}

fn places(table: &MountTable, anchor: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        find(table, &Ends(vec![anchor.to_owned()])).expect("found").into_iter().map(|one| one.beneath).collect();
    found.sort();
    found
}

#[test]
fn check38_every_name_of_a_match_is_found_ignored_or_not() {
    let root = tempfile::tempdir().expect("a folder");
    let at = |name: &str| root.path().join(name);
    for (name, text) in [
        (".env", "1"),
        ("ignored/.env", "2"),
        (".git/.env", "3"),
        ("closed/deep/file", "4"),
        ("open/file", "5"),
        (".gitignore", "ignored\n"),
    ] {
        fs::create_dir_all(at(name).parent().expect("a parent")).expect("made");
        fs::write(at(name), text).expect("written");
    }
    let odd = root.path().join(OsStr::from_bytes(b"\xff.env"));
    fs::write(&odd, "6").expect("written");
    symlink(".env", at("link.env")).expect("a link");
    symlink("open", at("way")).expect("a link");
    fs::hard_link(at(".env"), at("open/hard")).expect("a second name");
    fs::hard_link(at("closed/deep/file"), at("open/inside")).expect("a second name");
    let table = MountTable::workspace(root.path(), TreeOwner::PersonsTree).expect("a mount");
    let mut wanted: Vec<PathBuf> =
        [".env", ".git/.env", "closed", "ignored/.env", "open/hard", "open/inside"].map(PathBuf::from).to_vec();
    wanted.push(PathBuf::from(OsStr::from_bytes(b"\xff.env")));
    wanted.sort();
    assert_eq!(places(&table, "/workspace"), wanted);
    // A literal beginning of a pattern limits what is walked, and other names are found all the same.
    assert_eq!(places(&table, "/workspace/ignored"), [PathBuf::from("ignored/.env")]);
    assert_eq!(places(&table, "/workspace/closed"), ["closed", "open/inside"].map(PathBuf::from));
    assert!(places(&table, "/workspace/nowhere").is_empty() && places(&table, "/books").is_empty());
    assert!(places(&table, "/workspace/way").is_empty(), "a link is not walked");

    let mut names: Vec<String> =
        linked(&table, &Ends(vec!["/workspace".to_owned()])).expect("found").into_iter().map(|one| one.path).collect();
    names.sort();
    assert_eq!(names, ["/workspace/.env", "/workspace/closed/deep/file"]);
}

#[test]
fn another_object_at_the_same_place_is_another_find() {
    let root = tempfile::tempdir().expect("a folder");
    fs::write(root.path().join(".env"), "old").expect("written");
    let table = MountTable::workspace(root.path(), TreeOwner::PersonsTree).expect("a mount");
    let wanted = Ends(vec!["/workspace".to_owned()]);
    let before = find(&table, &wanted).expect("found");
    assert_eq!(find(&table, &wanted).expect("found"), before);
    fs::write(root.path().join("next"), "new").expect("written");
    fs::rename(root.path().join("next"), root.path().join(".env")).expect("replaced");
    let after = find(&table, &wanted).expect("found");
    assert_eq!(after[0].beneath, before[0].beneath);
    assert_ne!(after[0].object, before[0].object);
}
