//! `demo` on machines that lack something: it says so and goes on, and without any isolation it runs nothing.

use super::setup::{How, Setup};

fn demo(how: How, level: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let ran = Setup::at(how, level).run(&[&["demo"], more].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
}

#[test]
fn the_demo_works_for_root_for_a_user_and_without_user_namespaces_and_says_what_is_missing() {
    let places = [
        (How::Root, "full"),
        (How::Root, "no_pivot"),
        (How::Somebody, "full"),
        (How::Somebody, "no_namespaces"),
        (How::NoUserNamespaces, "no_namespaces"),
        (How::NoUserNamespaces, "seccomp_only"),
    ];
    for (how, level) in places {
        let (code, out, err) = demo(how, level, &[]);
        assert_eq!(code, Some(0), "{how:?} {level}: {out} {err}");
        assert!(out.contains("fact-check: supported"), "{how:?} {level}: {out}");
        let said = out.contains(&format!("commands run at isolation level `{level}` here, not `full`"));
        assert_eq!(said, level != "full", "{how:?} {level}: {out}");
    }
}

#[test]
fn a_killed_demo_leaves_nothing_running_without_user_namespaces() {
    let (code, out, err) = demo(How::NoUserNamespaces, "no_namespaces", &["--crash"]);
    assert_eq!(code, Some(0), "{out} {err}");
    assert!(out.contains("unknown calls: 1; the command began 1 time; it is dead"), "{out}");
}

#[test]
fn the_demo_runs_nothing_where_nothing_isolates_or_where_a_person_wants_more() {
    let (code, out, err) = demo(How::Somebody, "none", &[]);
    assert!(code == Some(1) && err.contains("nothing here isolates") && !out.contains("✓"), "{out} {err}");
    let (code, out, err) = demo(How::Root, "no_pivot", &["--sandbox", "full"]);
    assert!(code == Some(1) && !out.contains("✓ bash"), "{out} {err}");
}
