//! Transcripts of what no tool may see: the data folder, its keys, the store, the artifacts and a person's rules (H8),
//! wherever a person puts them.

use crate::common::World;

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

/// A home is a workspace, too: a call that may write everywhere could else take back the deny that stops it.
#[test]
fn h08_no_call_changes_the_rules_of_a_person_that_lie_in_the_workspace() {
    let mut world = World::with_file("secret.txt", "the secret\n");
    world.config = world.workspace.join(".config");
    let rules = "[[rules]]\naction = \"write\"\npath = \"**\"\neffect = \"allow\"\n\
                 [[rules]]\naction = \"*\"\npath = \"secret.txt\"\neffect = \"deny\"\n";
    world.configure(rules);
    world.write("mine.toml", rules);
    let own = serde_json::json!({"file_path": ".config/portcullis/other.toml", "content": ""}).to_string();
    world.run(&["--workspace-is-home", "call", "write", &own]).ends(1).warns("path_escape");
    for (name, flags) in [(".config/portcullis/config.toml", &[][..]), ("mine.toml", &["--config", "mine.toml"])] {
        let call =
            |tool: &str, input: &str| world.run(&[flags, &["--workspace-is-home", "call", tool, input]].concat());
        call("read", &reading(name)).ends(1).warns("path_escape");
        let empty = serde_json::json!({"file_path": name, "content": ""}).to_string();
        call("write", &empty).ends(1).warns("path_escape");
        assert_eq!(world.read(name), rules);
        call("read", &reading("secret.txt")).ends(4).warns("policy_denied");
    }
    world.workspace = world.config.join("portcullis");
    world.run(&["call", "read", READ]).ends(2).warns("your rules").one_error_line();
}

/// Nobody has written any rules yet: then no call writes the first ones either.
#[test]
fn h08_no_call_makes_the_rules_of_a_person_that_are_not_there_yet() {
    let mut world = World::with_file("a.txt", "x\n");
    world.config = world.workspace.join(".config");
    let write = |name: &str| {
        let input =
            serde_json::json!({"file_path": name, "content": "[[rules]]\naction = \"*\"\neffect = \"allow\"\n"});
        world.run(&["call", "write", &input.to_string(), "--approvals", "allow", "--workspace-is-home"])
    };
    for name in [".config/portcullis/config.toml", ".config/portcullis", ".config/portcullis/deeper/x.toml"] {
        write(name).ends(1).warns("path_escape");
    }
    let made = std::fs::read_dir(world.workspace.join(".config/portcullis")).expect("made so that it can be guarded");
    assert_eq!(made.count(), 0, "nothing is in it");
    write(".config/other/config.toml").ends(0);
    write(".config/portcullis/config.toml").ends(1).warns("path_escape");
}
