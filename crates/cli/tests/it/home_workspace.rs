//! Transcripts of workspaces that are, or hold, a home folder or a folder of Portcullis' own.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::common::{Ran, World, binary, in_shell, shell_word, until};
use crate::driven;

const READ: &str = r#"{"file_path":"a.txt"}"#;

/// A world whose home is a person's, with data and configuration where they usually are.
fn at_home() -> World {
    let mut world = World::new();
    world.workspace = world.home.clone();
    world.write("a.txt", "alpha\n");
    world
}

fn usual(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    command.env_remove("PORTCULLIS_HOME").env_remove("XDG_CONFIG_HOME");
    command
}

fn run(world: &World, args: &[&str]) -> Ran {
    usual(world, args).output().expect("it runs").into()
}

/// The same on a terminal, with an answer; the exit code and what was shown.
fn answered(world: &World, words: &str, question: &str, answer: &str) -> (i32, String) {
    let line = format!("unset PORTCULLIS_HOME XDG_CONFIG_HOME; {} {words}", binary().display());
    let (mut child, mut keys, mut out) = in_shell(world, &line);
    let mut shown = until(&mut out, question);
    writeln!(keys, "{answer}").expect("typed");
    std::io::Read::read_to_string(&mut out, &mut shown).expect("shown");
    (child.wait().expect("it ends").code().unwrap_or(-1), shown)
}

#[test]
fn a_home_is_no_workspace_unless_somebody_says_so() {
    let world = at_home();
    let home = world.home.display().to_string();
    let refused = run(&world, &["call", "read", READ]).ends(2).one_error_line();
    let refused = refused.warns("is your home folder").warns("change to the folder of a project");
    refused.warns(&format!("--workspace {home}")).warns("--workspace-is-home");
    for words in [&["run", "hello", "--model", "scripted:none"][..], &["sessions", "new", "hello"]] {
        run(&world, words).ends(2).one_error_line().warns("is your home folder");
    }
    assert_eq!(fs::read_dir(&world.home).expect("read").count(), 1, "nothing was made");
    // Named, but nobody can be asked.
    let named = run(&world, &["--workspace", &home, "call", "read", READ]).ends(2).one_error_line();
    named.warns("nobody can be asked").warns("--workspace-is-home");
    // From above it is the same, and from below it is a project.
    let above = world.home.parent().expect("beneath").display().to_string();
    run(&world, &["--workspace", &above, "call", "read", READ])
        .ends(2)
        .warns(&format!("holds your home folder, {home}"));
    world.write("project/a.txt", "beta\n");
    run(&world, &["--workspace", &format!("{home}/project"), "call", "read", READ]).ends(0).says("beta");

    run(&world, &["--workspace-is-home", "call", "read", READ]).ends(0).says("alpha");
    run(&world, &["call", "read", READ]).ends(2);
    for folder in [".config/portcullis", ".local/share/portcullis"] {
        let made = world.home.join(folder).metadata().expect("made");
        assert_eq!(made.permissions().mode() & 0o7777, 0o700, "{folder}");
    }
}

#[test]
fn a_person_confirms_a_home_as_workspace_once_on_a_terminal() {
    let world = at_home();
    let home = world.home.display().to_string();
    let words = format!("--workspace {} call read {}", shell_word(&world.home), "'{\"file_path\":\"a.txt\"}'");
    let (code, shown) = answered(&world, &words, "Type yes: ", "y");
    assert!(code == 1 && shown.contains("nothing was started") && !shown.contains("alpha"), "{code}: {shown}");
    assert!(!world.home.join(".local").exists(), "nothing was made");
    let (code, shown) = answered(&world, &words, "Type yes: ", "yes");
    assert!(code == 0 && shown.contains("is your home folder") && shown.contains("alpha"), "{code}: {shown}");
    // It is remembered, also where nobody can be asked, and for this folder alone.
    run(&world, &["--workspace", &home, "call", "read", READ]).ends(0).says("alpha");
    let above = world.home.parent().expect("beneath").display().to_string();
    run(&world, &["--workspace", &above, "call", "read", READ]).ends(2);
    // It is never taken for the folder that somebody happens to be in.
    run(&world, &["call", "read", READ]).ends(2).warns("change to the folder of a project");
}

#[test]
fn whoever_only_looks_is_not_asked_about_the_workspace() {
    let world = at_home();
    for words in [
        &["doctor"][..],
        &["tools"],
        &["sessions", "list"],
        &["approvals", "list"],
        &["policy", "check"],
        &["policy", "explain", "read", READ],
        &["grants", "list"],
    ] {
        run(&world, words).ends(0);
    }
    let session = run(&world, &["--workspace-is-home", "call", "read", READ]).ends(0).id("sesn_");
    for words in
        [&["audit", "verify"][..], &["sessions", "show", &session], &["replay", &session], &["gc", "--dry-run"]]
    {
        run(&world, words).ends(0);
    }
}

/// A session goes on where it was made: whoever takes it up says that a home is meant, or a person did before.
#[test]
fn a_session_in_a_home_is_taken_up_only_by_whoever_says_so() {
    let world = at_home();
    let model = driven::script(&world, "script.toml", "[[turn]]\ntext = \"done\"\n");
    let session = run(&world, &["--workspace-is-home", "sessions", "new", "hello"]).ends(0).id("sesn_");
    run(&world, &["sessions", "wake", &session, "--model", &model]).ends(2).warns("--workspace-is-home");
    run(&world, &["worker", "--model", &model]).says("--workspace-is-home");
    let events = run(&world, &["sessions", "events", &session]).ends(0);
    assert!(!events.out.contains("model.response"), "no model worked: {}", events.out);
    run(&world, &["worker", "--model", &model, "--workspace-is-home"]).ends(0);
    // An ask there, and its answer, with the flag in the command that is printed.
    let write = r#"{"file_path":"b.txt","content":"b"}"#;
    let asked = run(&world, &["--workspace-is-home", "call", "write", write]).ends(3);
    let ask = asked.id("ask_");
    assert!(
        format!("{}{}", asked.out, asked.err).contains("--workspace-is-home approvals"),
        "{}{}",
        asked.out,
        asked.err
    );
    run(&world, &["approvals", "show", &ask]).ends(0);
    run(&world, &["approvals", "allow", &ask]).ends(2).warns("--workspace-is-home");
    assert!(!world.home.join("b.txt").exists());
    run(&world, &["--workspace-is-home", "approvals", "allow", &ask]).ends(0);
    assert!(world.home.join("b.txt").exists());
}

#[test]
fn the_organisation_can_forbid_a_home_as_workspace() {
    if !crate::common::inside("home_workspace::the_organisation_can_forbid_a_home_as_workspace") {
        return;
    }
    let sh =
        |line: &str| assert!(Command::new("/bin/sh").args(["-c", line]).status().expect("runs").success(), "{line}");
    sh(
        "mount -t tmpfs tmpfs /etc && mkdir /etc/portcullis && echo workspace_is_home = false > /etc/portcullis/policy.toml",
    );
    let world = at_home();
    let refused = run(&world, &["--workspace-is-home", "call", "read", READ]).ends(2).one_error_line();
    refused.warns("/etc/portcullis/policy.toml forbids that (workspace_is_home = false)");
    let project = World::with_file("a.txt", "alpha\n");
    project.run(&["call", "read", READ]).ends(0);
    sh("echo workspace_is_home = true > /etc/portcullis/policy.toml");
    run(&world, &["--workspace-is-home", "call", "read", READ]).ends(0);
}

#[test]
fn a_home_under_another_name_is_refused_whatever_a_flag_says() {
    if !crate::common::inside("home_workspace::a_home_under_another_name_is_refused_whatever_a_flag_says") {
        return;
    }
    let world = World::with_file("a.txt", "alpha\n");
    world.run(&["call", "read", READ]).ends(0);
    let point = world.workspace.join("a name");
    fs::create_dir(&point).expect("made");
    let bound = Command::new("mount").arg("--bind").arg(&world.home).arg(&point).status().expect("`mount` runs");
    assert!(bound.success());
    let point = point.display().to_string();
    for folder in [world.workspace.display().to_string(), point.clone()] {
        let refused = world.run(&["--workspace", &folder, "--workspace-is-home", "call", "read", READ]).ends(2);
        refused.one_error_line().warns(&format!("{point} is another name of {}", world.home.display()));
    }
    assert!(Command::new("umount").arg(&point).status().expect("`umount` runs").success());
    world.run(&["call", "read", READ]).ends(0);
}

#[test]
fn a_relative_home_is_called_one() {
    let world = World::with_file("a.txt", "alpha\n");
    let ran: Ran = usual(&world, &["call", "read", READ]).env("HOME", "rel").output().expect("it runs").into();
    ran.ends(2).one_error_line().warns("HOME is `rel`, which is not a whole path");
    assert!(!world.workspace.join("rel").exists());
}
