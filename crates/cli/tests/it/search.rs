//! `sessions search`, as a person and as a program use it.

use crate::common::World;

#[test]
fn words_of_a_call_are_found_with_session_seq_type_and_surroundings() {
    let world = World::with_file("notes.txt", "the zanzibar\u{1b}[31m plan\nis secret\n");
    world.run(&["call", "read", r#"{"file_path":"notes.txt"}"#]).ends(0);
    let found = world.run(&["sessions", "search", "Zanzibar"]).ends(0).says("tool.observation").says("sesn_");
    assert!(found.out.contains("zanzibar<U+001B>[31m plan"), "control characters are visible: {}", found.out);
    assert!(!found.out.contains('\u{1b}'));
    let session = found.id("sesn_");

    let hits = world.run(&["sessions", "search", "zanzibar", "plan", "--json"]).ends(0).json();
    let hit = &hits["hits"][0];
    assert_eq!((hit["session_id"].as_str(), hit["type"].as_str()), (Some(session.as_str()), Some("tool.observation")));
    assert_eq!((hit["found"].as_str(), hits["unsearched"].as_u64()), (Some("zanzibar"), Some(0)));
    let seq = hit["seq"].as_u64().expect("a seq");
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0).lines();
    assert!(events[seq as usize - 1].to_string().contains("zanzibar"), "the event is where the search says");

    // What came since is found by the next search.
    world.write("more.txt", "madagascar\n");
    world.run(&["call", "read", r#"{"file_path":"more.txt"}"#]).ends(0);
    world
        .run(&["sessions", "search", "madagascar", "--limit", "1"])
        .ends(0)
        .says("madagascar")
        .warns("--limit shows more");
}

#[test]
fn any_text_is_words_and_no_words_are_wrong_usage() {
    let world = World::with_file("a.txt", "x\n");
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0);
    for words in ["\" OR *", "NEAR(", "col:value", "a'; --", "^", "😀"] {
        let ran = world.run(&["sessions", "search", words]);
        assert!(ran.code == 0 || ran.code == 2, "`{words}`: {}", ran.err);
    }
    world.run(&["sessions", "search", "\"*\""]).ends(2).one_error_line();
    world.run(&["sessions", "search"]).ends(2);
    let none = world.run(&["sessions", "search", "nowhere"]).ends(0).warns("nothing was found");
    assert_eq!(none.out, "");
}

#[test]
fn a_tree_shows_every_session_and_one_alone() {
    let world = World::with_file("a.txt", "x\n");
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0);
    let session = world.run(&["sessions", "tree"]).ends(0).says("events)").id("sesn_");
    let tree = world.run(&["sessions", "tree", &session, "--json"]).ends(0).json();
    assert_eq!(tree["sessions"][0]["tree"][0]["session_id"].as_str(), Some(session.as_str()));
    world.run(&["sessions", "tree", "sesn_00000000000000000000000000"]).ends(1).one_error_line();
}
