//! Transcripts of what no tool may see: the data folder, its keys, the store and the artifacts (H8),
//! wherever a person puts them.

mod common;

use common::World;

const READ: &str = r#"{"file_path":"a.txt"}"#;

fn reading(name: &str) -> String {
    serde_json::json!({"file_path": name}).to_string()
}

#[test]
fn h08_a_workspace_in_the_data_folder_is_refused_and_no_key_is_read() {
    let mut world = World::with_file("a.txt", "x\n");
    world.run(&["call", "read", READ]).ends(0);
    for folder in [world.home.clone(), world.home.join("keys")] {
        world.workspace = folder;
        let ran = world.run(&["call", "read", &reading("sealing.key")]).ends(2).one_error_line();
        assert_eq!(ran.warns("no tool may see").out, "");
        world.run(&["tools"]).ends(2).warns("work in another folder");
    }
}

#[test]
fn h08_a_store_and_artifacts_in_the_workspace_are_hidden() {
    let world = World::with_file("a.txt", "x\n");
    let elsewhere = ["--store", "sqlite:p.db", "--artifacts", "file:kept"];
    let call = |words: &[&str]| world.run(&[elsewhere.as_slice(), &["call"], words].concat());
    call(&["read", READ]).ends(0);
    world.write("kept/ab/cd/large", "an artifact\n");
    for name in ["p.db", "p.db-wal", "p.db-shm", "kept/ab/cd/large"] {
        let refused = call(&["read", &reading(name)]).ends(1).warns("path_escape");
        assert_eq!(refused.out, "", "{name}");
    }
    let over = serde_json::json!({"file_path": "p.db", "content": "mine"}).to_string();
    call(&["write", &over, "--approvals", "allow"]).ends(1).warns("path_escape");
    call(&["read", READ]).ends(0).says("x");
}
