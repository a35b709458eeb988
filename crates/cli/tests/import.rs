//! A session moves from one home to another and is the same there.

mod common;

use common::World;

#[test]
fn an_exported_session_is_taken_in_with_its_artifacts_and_equal_digests() {
    let world = World::with_file("big.txt", &format!("first line\n{}", "0123456789 a line of text\n".repeat(9_000)));
    world.run(&["call", "read", r#"{"file_path":"big.txt"}"#]).ends(0);
    let edit = common::edit("big.txt", "first line", "another line");
    world.run(&["call", "edit", &edit, "--approvals", "allow"]).ends(0);
    let session = world.run(&["sessions"]).ends(0).id("sesn_");
    let file = world.home.with_file_name("log.ndjson");
    let path = file.to_str().expect("UTF-8");
    world.run(&["sessions", "export", &session, "--with-artifacts", "--out", path]).ends(0);
    world.run(&["audit", "verify", "--export", path]).ends(0).says("consistent");

    let other = World::new();
    other.run(&["sessions", "import", path]).ends(0).says("taken in with the same digests").says(&session);
    let head = |world: &World| world.run(&["sessions", "show", &session, "--json"]).ends(0).json()["head_hash"].clone();
    assert_eq!(head(&world), head(&other));
    other.run(&["sessions", "import", path]).ends(0).says("is here already");
    other.run(&["audit", "verify"]).ends(0);
    other.run(&["replay", &session, "--mode", "rebuild"]).ends(0);
    // What the other home exports is the same file, but for where its ledger stood.
    let again = world.run(&["sessions", "export", &session, "--with-artifacts"]).ends(0).out;
    let there = other.run(&["sessions", "export", &session, "--with-artifacts"]).ends(0).out;
    let body =
        |text: &str| text.lines().filter(|line| !line.contains("ledger_head")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&again), body(&there));
    let longest = again.lines().filter(|line| line.starts_with("{\"content\":")).map(str::len).max();
    assert!(longest.is_some_and(|longest| longest > 200_000), "small and large contents are in it: {longest:?}");
}

#[test]
fn an_altered_or_incomplete_export_writes_nothing() {
    let world = World::with_file("a.txt", "x\n");
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0);
    let session = world.run(&["sessions"]).ends(0).id("sesn_");
    let file = world.home.with_file_name("log.ndjson");
    let path = file.to_str().expect("UTF-8");
    let whole = world.run(&["sessions", "export", &session, "--with-artifacts"]).ends(0).out;
    let bare = world.run(&["sessions", "export", &session]).ends(0).out;
    let other = World::new();
    let altered = whole.replacen("a.txt", "b.txt", 1);
    let forms = [
        (altered, "nothing was written"),
        (bare, "--with-artifacts"),
        (whole[..whole.len() / 2].to_owned(), "cut short"),
    ];
    for (text, why) in forms {
        std::fs::write(&file, text).expect("a file");
        let ran = other.run(&["sessions", "import", path]).warns(why).one_error_line();
        assert_ne!(ran.code, 0);
        assert_eq!(other.run(&["sessions", "--json"]).ends(0).json()["sessions"], serde_json::json!([]));
    }
}
