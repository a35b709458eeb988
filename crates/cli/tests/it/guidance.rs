//! What a project tells its model, and the other files of a project that are read without a call: a repository may hold
//! links, pipes and anything else.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::{Ran, World};
use crate::driven::{script, told, wake};

/// A model that tells whether it was shown the secret, or a word of the guidance.
const TELLS: &str = "[[turn]]\nwhen = { contains = \"TOPSECRET\" }\ntext = \"leaked\"\n\
                     [[turn]]\nwhen = { contains = \"Speak of apples\" }\ntext = \"guided\"\n\
                     [[turn]]\ntext = \"unguided\"\n";

/// Every way in which a model is shown the guidance: what it answers, and what a person is told.
fn each(world: &World) -> Vec<Ran> {
    let model = script(world, "tells.toml", TELLS);
    let run = world.run(&["run", "hello", "--model", &model]).ends(0);
    let woken = wake(world, &told(world, "hello"), &model).ends(0);
    told(world, "hello");
    vec![run, woken, world.run(&["worker", "--model", &model]).ends(0)]
}

#[test]
fn guidance_that_is_a_link_out_of_the_workspace_is_left_out_and_told() {
    let world = World::new();
    let secret = world.home.with_file_name("id_ed25519");
    fs::write(&secret, "TOPSECRET\n").expect("written");
    symlink(&secret, world.workspace.join("AGENTS.md")).expect("linked");
    for ran in each(&world) {
        ran.says("unguided").warns("the guidance AGENTS.md is left out: the path leads outside the workspace");
    }
    // Nor through a folder, nor by a name of the host.
    fs::remove_file(world.workspace.join("AGENTS.md")).expect("removed");
    symlink("..", world.workspace.join("up")).expect("linked");
    symlink("up/id_ed25519", world.workspace.join("CLAUDE.md")).expect("linked");
    for ran in each(&world) {
        ran.says("unguided").warns("the guidance CLAUDE.md is left out");
    }
}

#[test]
fn guidance_may_be_a_link_within_the_workspace() {
    let world = World::with_file("docs/GUIDE.md", "Speak of apples.\n");
    symlink("docs/GUIDE.md", world.workspace.join("AGENTS.md")).expect("linked");
    for ran in each(&world) {
        let ran = ran.says("guided");
        assert!(!ran.out.contains("unguided") && !ran.err.contains("warning"), "{} {}", ran.out, ran.err);
    }
}

#[test]
fn a_rule_against_reading_the_guidance_keeps_it_out_and_is_named() {
    let world = World::with_file("docs/GUIDE.md", "Speak of apples.\n");
    symlink("docs/GUIDE.md", world.workspace.join("AGENTS.md")).expect("linked");
    for (path, effect) in [("AGENTS.md", "deny"), ("docs/**", "deny"), ("AGENTS.md", "ask")] {
        world.configure(&format!(
            "[[rules]]\nid = \"no-guide\"\naction = \"read\"\npath = \"/workspace/{path}\"\neffect = \"{effect}\"\n"
        ));
        for ran in each(&world) {
            ran.says("unguided").warns("the guidance AGENTS.md is left out").warns("no-guide");
        }
    }
}

#[test]
fn guidance_that_is_no_text_file_is_left_out() {
    let world = World::new();
    let place = world.workspace.join("AGENTS.md");
    fs::create_dir(&place).expect("made");
    for ran in each(&world) {
        ran.says("unguided").warns("the guidance AGENTS.md is left out");
    }
    fs::remove_dir(&place).expect("removed");
    fs::write(&place, b"Speak of apples.\0\xff").expect("written");
    for ran in each(&world) {
        ran.says("unguided").warns("it is not UTF-8 text");
    }
    fs::remove_file(&place).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(&place).status().expect("`mkfifo` runs");
    assert!(made.success());
    for ran in each(&world) {
        ran.says("unguided").warns("the guidance AGENTS.md is left out");
    }
}

#[test]
fn guidance_that_is_too_long_is_cut_and_whoever_works_is_told_how_to_read_on() {
    let world = World::with_file("AGENTS.md", &format!("{}Speak of apples.\n", "Be kind, é.\n".repeat(200_000)));
    let told_so = "[[turn]]\nwhen = { contains = \"Speak of apples\" }\ntext = \"whole\"\n\
                   [[turn]]\nwhen = { contains = \"read the rest with `read`, from line 2521 on\" }\ntext = \"cut\"\n";
    let model = script(&world, "cut.toml", told_so);
    let ran = world.run(&["run", "hello", "--model", &model]).ends(0).says("cut");
    ran.warns("warning: the guidance AGENTS.md has 2600017 bytes; the model is given the first 32760 and told");
    // One line without an end is cut between two characters.
    world.write("AGENTS.md", &"é".repeat(40_000));
    let model =
        script(&world, "line.toml", "[[turn]]\nwhen = { contains = \"the first 32768 of 80000\" }\ntext = \"cut\"\n");
    world.run(&["run", "hello", "--model", &model]).ends(0).says("cut");
}

#[test]
fn rules_that_are_a_link_out_of_the_workspace_are_refused_and_bring_no_trust_with_them() {
    let world = World::new();
    let other = world.home.with_file_name("other");
    fs::create_dir_all(other.join(".portcullis")).expect("made");
    let rules = other.join(".portcullis/config.toml");
    fs::write(&rules, "[[rules]]\naction = \"*\"\nargv = [\"touch\"]\neffect = \"allow\"\n").expect("written");
    world.run(&["policy", "trust", rules.to_str().expect("a path")]).ends(0);
    fs::create_dir(world.workspace.join(".portcullis")).expect("made");
    symlink(&rules, world.workspace.join(".portcullis/config.toml")).expect("linked");
    let call = ["call", "shell_run", r#"{"command":"touch made"}"#];
    let ran = world.run(&call).ends(2).warns(".portcullis/config.toml").warns("it leads out of the workspace");
    ran.one_error_line();
    fs::remove_dir_all(world.workspace.join(".portcullis")).expect("removed");
    symlink(other.join(".portcullis"), world.workspace.join(".portcullis")).expect("linked");
    world.run(&call).ends(2).warns("it leads out of the workspace");
    assert!(!world.workspace.join("made").exists());
}
