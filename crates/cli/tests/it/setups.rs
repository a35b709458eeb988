//! Sessions that differ in what they run as, in one store: every process acts by the setup of each (ruling 51).

use crate::common::World;
use crate::driven::{events, payload, script};

fn says(text: &str) -> String {
    format!(
        "[[turn]]\ncalls = [{{ name = \"read\", input = {{ file_path = \"a.txt\" }} }}]\n[[turn]]\ntext = \"{text}\"\n"
    )
}

/// How many requests a session made.
fn asked(world: &World, session: &str) -> usize {
    events(world, session).iter().filter(|event| event["type"] == "span.model_request_start").count()
}

#[test]
fn a_worker_drives_each_session_by_its_own_setup() {
    let world = World::with_file("a.txt", "alpha\n");
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::write(elsewhere.path().join("a.txt"), "beta\n").expect("written");
    let other = elsewhere.path().to_str().expect("text");
    let (one, two) = (script(&world, "one.toml", &says("One.")), script(&world, "two.toml", &says("Two.")));
    let new = |words: &[&str]| world.run(&[&["sessions", "new", "look"], words].concat()).ends(0).id("sesn_");
    let first = new(&["--model", &one]);
    let second = new(&["--model", &two, "--profile", "managed", "--workspace", other]);
    // Nothing but the sessions says which model works.
    let ran = world.run(&["worker"]).ends(0);
    ran.warns("sessions that name no model wait");
    let texts = |session: &str| {
        let said = events(&world, session).into_iter().filter(|event| event["type"] == "tool.observation");
        said.map(|event| payload(&event)["content"].to_string()).collect::<String>()
    };
    assert!(texts(&first).contains("alpha") && !texts(&first).contains("beta"), "{}", texts(&first));
    assert!(texts(&second).contains("beta") && !texts(&second).contains("alpha"), "{}", texts(&second));
    assert_eq!((asked(&world, &first), asked(&world, &second)), (2, 2));
    let menus = |session: &str| {
        let menus = events(&world, session).into_iter().filter(|event| event["type"] == "tool.menu");
        menus.map(|event| payload(&event)["count"].as_u64().unwrap_or_default()).max()
    };
    assert!(menus(&first) < menus(&second), "the managed profile offers more");
    for session in [&first, &second] {
        let changed = events(&world, session).into_iter().filter(|event| event["type"] == "session.updated").count();
        assert_eq!(changed, 0, "each ran as it was made");
    }
    world.run(&["audit", "verify"]).ends(0);
}

#[test]
fn a_run_goes_on_with_the_model_of_its_session() {
    let world = World::with_file("a.txt", "alpha\n");
    let one = script(&world, "one.toml", "[[turn]]\ntext = \"One.\"\n[[turn]]\ntext = \"Two.\"\n");
    let ran = world.run(&["run", "look", "--model", &one, "--json"]).ends(0);
    let session = ran.id("sesn_");
    // No flag, no variable, no configuration and no key.
    world.run(&["run", "--continue", "again"]).ends(0);
    world.run(&["run", "--session", &session, "again"]).ends(0);
    world.run(&["run", "anew"]).ends(2).warns("no model is configured");
    // Another model is a change that the log tells.
    let three = script(&world, "three.toml", &"[[turn]]\ntext = \"Three.\"\n".repeat(5));
    world.run(&["run", "--session", &session, "once more", "--model", &three]).ends(0).says("Three.");
    let changed = events(&world, &session).into_iter().filter(|event| event["type"] == "session.updated").count();
    assert_eq!(changed, 1);
    // A script that is gone refuses, and nothing is written.
    let length = events(&world, &session).len();
    std::fs::remove_file(world.workspace.join("three.toml")).ok();
    std::fs::remove_file(three.strip_prefix("scripted:").expect("a script")).ok();
    world.run(&["run", "--session", &session, "and now"]).ends(2).warns("three.toml");
    assert_eq!(events(&world, &session).len(), length);
}

#[test]
fn a_setup_that_was_altered_in_the_store_is_found_and_not_acted_by() {
    let world = World::with_file("a.txt", "alpha\n");
    let session = world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0).id("sesn_");
    world.run(&["audit", "verify"]).ends(0);
    let db = rusqlite::Connection::open(world.database()).expect("opens");
    let setup = "sha256 IN (SELECT config_hash FROM sessions)";
    let altered = db.execute(&format!("UPDATE blobs SET bytes = x'7b7d' WHERE {setup}"), []).expect("altered");
    assert_eq!(altered, 1);
    drop(db);
    world.run(&["audit", "verify"]).ends(1).says("menu or setup");
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#, "--session", &session]).ends(5);
}
