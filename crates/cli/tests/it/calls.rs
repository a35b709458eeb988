//! Transcripts of `call`, `tools` and everything around them, with the real binary.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::common::{Ran, World, edit};

const READ: &str = r#"{"file_path":"a.txt"}"#;

fn git(world: &World, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(args).current_dir(&world.workspace);
    let output = command.env("HOME", &world.home).env("GIT_CONFIG_NOSYSTEM", "1").output().expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_read_prints_the_file_says_where_the_record_is_and_leaves_the_tree_alone() {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    git(&world, &["init", "-q"]);
    git(&world, &["add", "."]);
    git(&world, &["commit", "-qm", "x"]);
    let first = world.run(&["call", "read", READ]).ends(0);
    assert_eq!(first.out, "alpha\nbeta\n");
    let session = first.id("sesn_");
    let first = first.warns("read: ok in ").warns("recorded: session sesn_");
    let second = world.run(&["call", "read", READ]).ends(0);
    assert_eq!((second.out.as_str(), second.id("sesn_")), ("alpha\nbeta\n", session.clone()));
    assert_ne!(first.id("intent_"), second.id("intent_"));
    assert_eq!(git(&world, &["status", "--porcelain"]), "");
    let mode = |path| fs::metadata(path).expect("made").permissions().mode() & 0o777;
    assert_eq!((mode(world.home.clone()), mode(world.home.join("keys"))), (0o700, 0o700));
    assert_eq!(mode(world.home.join("keys/checkpoint.key")), 0o600);
    assert_eq!(mode(world.home.join("keys/sealing.key")), 0o600);
    world.run(&["sessions", "events", &session]).ends(0).says("tool.observation");
}

#[test]
fn what_is_wrong_with_a_call_is_one_line_with_phase_code_and_recovery() {
    let world = World::with_file("a.txt", "alpha\n");
    let refused = |args: &[&str], words: &[&str]| {
        let ran = world.run(args).ends(1);
        assert_eq!(ran.out, "");
        let line = ran.err.lines().next().expect("a line").to_owned();
        assert!(line.starts_with("error: "), "{line}");
        for word in words {
            assert!(line.contains(word), "no `{word}` in {line}");
        }
        ran.warns("recorded: session");
    };
    refused(&["call", "nope"], &["lookup: unknown_tool", "recovery: choose_other_tool", "side effects: none"]);
    refused(&["call", "read", "{"], &["validate: input_unparseable", "recovery: fix_input"]);
    refused(&["call", "read"], &["validate: schema_invalid", "file_path"]);
    let unread = edit("a.txt", "alpha", "omega");
    let words = ["edit: validate: runtime_precondition_failed (file_not_read)", "recovery: satisfy_precondition"];
    refused(&["call", "edit", &unread], &words);
    refused(&["call", "read", r#"{"file_path":"../../etc/passwd"}"#], &["runtime_precondition_failed (path_escape)"]);
    assert_eq!(world.read("a.txt"), "alpha\n");
}

#[test]
fn a_program_reads_the_session_projection_also_of_a_rejected_call() {
    let world = World::with_file("a.txt", "alpha\n");
    let seen = world.run(&["--json", "call", "read", READ]).ends(0);
    assert_eq!(seen.err, "", "nothing but the document");
    let seen = seen.json();
    assert_eq!(
        (&seen["ok"], &seen["code"], &seen["content"][0]["text"]),
        (&true.into(), &"ok".into(), &"alpha\n".into())
    );
    assert!(seen["intent_id"].as_str().is_some_and(|id| id.starts_with("intent_")));
    let rejected = world.run(&["call", "nope", "--json"]).ends(1).json();
    assert_eq!(
        (&rejected["ok"], &rejected["phase"], &rejected["code"]),
        (&false.into(), &"lookup".into(), &"unknown_tool".into())
    );
    let parked = world.run(&["call", "edit", &edit("a.txt", "alpha", "x"), "--json"]).ends(3).json();
    let action = &parked["requires_action"];
    assert_eq!(action["kind"], "tool_confirmation");
    assert!(action["ask_id"].as_str().is_some_and(|id| id.starts_with("ask_")), "{action}");
    assert_eq!(action["facts"]["resources"][0]["name"], "/workspace/a.txt");
}

#[test]
fn input_comes_from_a_file_or_standard_input_and_is_never_half_read() {
    let world = World::with_file("a.txt", "alpha\n");
    world.write("in.json", READ);
    assert_eq!(world.run(&["call", "read", "@in.json"]).ends(0).out, "alpha\n");
    let mut child = world.command(&["call", "read", "-"]).stdin(Stdio::piped()).spawn().expect("starts");
    child.stdin.take().expect("piped").write_all(READ.as_bytes()).expect("written");
    let ran: Ran = child.wait_with_output().expect("ends").into();
    assert_eq!(ran.ends(0).out, "alpha\n");
    world.run(&["call", "read", "@missing.json"]).ends(2).warns("missing.json").one_error_line();
    fs::write(world.workspace.join("bad.json"), [0xff, 0xfe]).expect("written");
    world.run(&["call", "read", "@bad.json"]).ends(2).warns("not UTF-8");
}

#[test]
fn text_that_would_steer_a_terminal_is_shown_and_not_obeyed() {
    let world = World::with_file("a.txt", "x\u{1b}]0;owned\u{7}\u{1b}[31mred\u{202e}y\n");
    let ran = world.run(&["call", "read", READ, "--color", "always"]).ends(0);
    let shown = "x<U+001B>]0;owned<U+0007><U+001B>[31mred<U+202E>y\n";
    assert_eq!(ran.out, shown, "nothing is taken out");
    let raw = world.run(&["call", "read", READ, "--json"]).ends(0).json();
    assert!(raw["content"][0]["text"].as_str().is_some_and(|t| t.contains('\u{202e}')), "programs get it whole");
}

#[test]
fn a_deny_rule_of_the_user_denies_and_is_named_with_file_and_line() {
    let world = World::with_file("a.txt", "alpha\n");
    let path =
        world.configure("# mine\n[[rules]]\naction = \"read\"\npath = \"/workspace/a.txt\"\neffect = \"deny\"\n");
    let place = format!("{}:2", path.display());
    world.run(&["call", "read", READ]).ends(4).warns("permission: policy_denied").warns(&place);
    let seen = world.run(&["call", "read", READ, "--json"]).ends(4).json();
    assert_eq!(seen["permission"]["policy_ids"][0], "user:config.toml:2");
    // A flag that allows everything does not weaken it.
    world.run(&["call", "read", READ, "--approvals", "allow"]).ends(4);
    world.run(&["doctor"]).ends(0).says("deny user:config.toml:2");
}

#[test]
fn a_tool_that_is_wholly_denied_is_hidden_with_the_reason() {
    let world = World::new();
    world.configure("[[rules]]\naction = \"write\"\neffect = \"deny\"\n");
    world.run(&["tools"]).ends(0).says("hidden: write: wholly_denied").says("read ");
    let shown = world.run(&["tools", "show", "write"]).ends(0).says("not offered here: wholly_denied");
    shown.says("input schema:");
    assert_eq!(world.run(&["tools", "show", "write", "--json"]).ends(0).json()["hidden"], "wholly_denied");
    world.run(&["tools", "show", "nonsense"]).ends(1).warns("there is no tool `nonsense`");
    let listed = world.run(&["tools", "list", "--json"]).ends(0).json();
    assert_eq!(listed["hidden"][0]["name"], "write");
    assert!(
        listed["tools"].as_array().is_some_and(|all| all.iter().any(|t| t["name"] == "read" && t["read_only"] == true))
    );
    world.run(&["tools", "show", "read"]).ends(0).says("input schema:").says("file_path");
    assert!(!world.home.exists(), "looking at tools makes nothing");
}

#[test]
fn a_project_s_allow_is_inert_and_its_deny_holds() {
    let world = World::with_file("a.txt", "alpha\n");
    world.write(".portcullis/config.toml", "[[rules]]\naction = \"edit\"\neffect = \"allow\"\n");
    world.ask_to_edit("a.txt", "alpha", "x");
    assert_eq!(world.read("a.txt"), "alpha\n");
    world.run(&["doctor"]).ends(0).says("inert");
    world.write(".portcullis/config.toml", "[[rules]]\naction = \"read\"\npath = \"a.txt\"\neffect = \"deny\"\n");
    world.run(&["call", "read", READ]).ends(4).warns(".portcullis/config.toml:1");
    world.write(".portcullis/config.toml", "[approvals]\ndefault = \"allow\"\n");
    world.run(&["call", "read", READ]).ends(2).warns("config.toml:1").one_error_line();
}

#[test]
fn rules_or_configuration_that_cannot_be_read_stop_the_start_with_the_line() {
    let world = World::with_file("a.txt", "alpha\n");
    let stops = |text: &str, words: &[&str]| {
        let path = world.configure(text);
        let mut ran = world.run(&["call", "read", READ]).ends(2).one_error_line().warns(&path.display().to_string());
        for word in words {
            ran = ran.warns(word);
        }
        assert!(!world.home.exists(), "nothing is made before the rules are read");
    };
    stops("[[rules]]\naction = \"read\"\neffect = \"dney\"\n", &[":3: ", "dney"]);
    stops("[[rules]]\naction = \"read\"\nefect = \"deny\"\n", &[":3: unknown key `efect`", "`effect`"]);
    stops("[[rules]\n", &[":1: not valid TOML"]);
    stops("\n[storr]\n", &[":2: unknown key `storr`; the nearest known one is `store`"]);
    stops("[store]\ndurability = \"maybe\"\n", &[":2: ", "full, relaxed"]);
    world.run(&["doctor"]).ends(1).says("broken");
}

#[test]
fn flags_stand_before_and_after_and_name_other_places() {
    let world = World::with_file("a.txt", "alpha\n");
    let store = format!("sqlite:{}", world.workspace.join("../other.db").display());
    let ran = world.run(&["--store", &store, "call", "read", READ]).ends(0);
    let ran = ran.warns("look at it with: portcullis --store sqlite:/");
    assert!(!world.database().exists());
    let session = ran.id("sesn_");
    world.run(&["sessions", "show", &session, "--store", &store]).ends(0).says("read");
    world.run(&["--workspace", "/no/such/folder", "call", "read", READ]).ends(2).one_error_line();
    world.run(&["call", "read", READ, "--store", "postgres://x"]).ends(2).warns("sqlite:PATH");
    world.run(&["call", "read", READ, "--config", "/no/such.toml"]).ends(2).warns("/no/such.toml");
    world.run(&["frobnicate"]).ends(2);
    let quiet = world.run(&["call", "read", READ, "--quiet"]).ends(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("alpha\n", ""));
}

#[test]
fn without_a_home_it_says_so() {
    let world = World::with_file("a.txt", "alpha\n");
    let output = world.command(&["call", "read", READ]).env_remove("PORTCULLIS_HOME").env_remove("HOME").output();
    Ran::from(output.expect("runs")).ends(2).warns("HOME is not set").one_error_line();
}

#[test]
fn every_command_has_help_and_nothing_is_listed_that_is_not_there() {
    let world = World::new();
    let top = world.run(&["--help"]).ends(0);
    for later in ["serve", "mcp", "vault", "agents"] {
        let listed = top.out.lines().any(|line| line.trim_start().starts_with(&format!("{later} ")));
        assert!(!listed, "{later} is not in this build");
    }
    let commands: &[&[&str]] = &[
        &["call"],
        &["approvals"],
        &["approvals", "list"],
        &["approvals", "watch"],
        &["approvals", "show"],
        &["approvals", "allow"],
        &["approvals", "deny"],
        &["grants", "list"],
        &["grants", "revoke"],
        &["policy", "explain"],
        &["policy", "check"],
        &["policy", "trust"],
        &["policy", "backtest"],
        &["sessions"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["sessions", "events"],
        &["sessions", "export"],
        &["sessions", "import"],
        &["sessions", "search"],
        &["sessions", "tree"],
        &["sessions", "new"],
        &["sessions", "send"],
        &["sessions", "interrupt"],
        &["sessions", "answer"],
        &["sessions", "wake"],
        &["sessions", "status"],
        &["sessions", "unknown"],
        &["sessions", "resolve"],
        &["sessions", "trace"],
        &["sessions", "fork"],
        &["worker"],
        &["gc"],
        &["tools"],
        &["tools", "list"],
        &["tools", "show"],
        &["audit"],
        &["audit", "verify"],
        &["audit", "head"],
        &["audit", "export"],
        &["replay"],
        &["doctor"],
        &["completions"],
    ];
    for command in commands {
        let args: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        world.run(&args).ends(0).says("Usage: portcullis").says("--workspace");
        // The short one is about the command alone, and says where the rest is.
        let short: Vec<&str> = command.iter().copied().chain(["-h"]).collect();
        let short = world.run(&short).ends(0).says("Usage: portcullis").says("see more with '--help'");
        assert!(!short.out.contains("--sandbox") && !short.out.contains("Everywhere"), "{}", short.out);
    }
    for shell in ["bash", "zsh", "fish"] {
        world.run(&["completions", shell]).ends(0).says("approvals").says("worker").says("resolve");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let world = World::with_file("a.txt", &"line\n".repeat(2_000));
    let session = world.run(&["call", "read", READ]).ends(0).id("sesn_");
    let mut child = world.command(&["sessions", "export", &session]).spawn().expect("starts");
    drop(child.stdout.take());
    let ran: Ran = child.wait_with_output().expect("ends").into();
    assert_eq!(ran.ends(0).err, "");
}

#[test]
fn a_result_that_nobody_reads_keeps_its_exit_code() {
    let world = World::with_file("a.txt", "alpha\n");
    let unread = |args: &[&str], code: i32| {
        // A pipe whose reader is gone before it starts.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ran: Ran = world.command(args).stdout(writer).output().expect("runs").into();
        ran.ends(code);
    };
    unread(&["call", "read", READ, "--json"], 0);
    unread(&["call", "nope", "--json"], 1);
    unread(&["call", "edit", &edit("a.txt", "alpha", "x")], 3);
    world.configure("[[rules]]\naction = \"read\"\npath = \"/workspace/a.txt\"\neffect = \"deny\"\n");
    unread(&["call", "read", READ, "--json"], 4);
}

#[test]
fn a_call_of_a_wholly_denied_tool_ends_like_any_denial() {
    let world = World::with_file("a.txt", "alpha\n");
    world.configure("[[rules]]\naction = \"read\"\neffect = \"deny\"\n");
    world.run(&["call", "read", READ]).ends(4).warns("tool_not_visible (wholly_denied)");
}

#[test]
fn an_empty_text_prints_nothing() {
    let world = World::with_file("a.txt", "");
    assert_eq!(world.run(&["call", "read", READ]).ends(0).warns("empty").out, "");
}

#[test]
fn a_configuration_that_is_a_dangling_link_is_an_error_that_names_it() {
    let world = World::with_file("a.txt", "alpha\n");
    let path = world.configure("");
    fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink("/no/such/file", &path).expect("linked");
    let named = path.display().to_string();
    world.run(&["call", "read", READ]).ends(2).warns(&named).warns("leads nowhere").one_error_line();
    fs::remove_file(&path).expect("removed");
    let folder = world.workspace.join(".portcullis");
    std::os::unix::fs::symlink("/no/such/folder", &folder).expect("linked");
    world.run(&["call", "read", READ]).ends(2).warns(".portcullis/config.toml").warns("leads nowhere");
    fs::remove_file(&folder).expect("removed");
    fs::create_dir(&folder).expect("made");
    std::os::unix::fs::symlink("/no/such/file", folder.join("config.toml")).expect("linked");
    world.run(&["call", "read", READ]).ends(2).warns(".portcullis/config.toml").warns("leads nowhere");
}

#[test]
fn variables_that_are_not_text_are_refused_and_a_path_may_be_any() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::with_file("a.txt", "alpha\n");
    let odd = std::ffi::OsStr::from_bytes(b"sqlite:/x\xff");
    for name in ["PORTCULLIS_STORE", "PORTCULLIS_ARTIFACTS", "PORTCULLIS_APPROVALS"] {
        let output = world.command(&["call", "read", READ]).env(name, odd).output().expect("runs");
        Ran::from(output).ends(2).warns(name).one_error_line();
    }
    let config = world.workspace.join(std::ffi::OsStr::from_bytes(b"c\xff.toml"));
    fs::write(&config, "[[rules]]\naction = \"*\"\npath = \"/workspace/a.txt\"\neffect = \"deny\"\n").expect("written");
    let output = world.command(&["call", "read", READ]).env("PORTCULLIS_CONFIG", &config).output().expect("runs");
    Ran::from(output).ends(4).warns("c\\377.toml'");
}

#[test]
fn a_printed_command_repeats_what_variables_chose() {
    let world = World::with_file("a.txt", "alpha\n");
    let beside = |name: &str| world.workspace.with_file_name(name).display().to_string();
    let (store, kept) = (format!("sqlite:{}", beside("o.db")), format!("file:{}", beside("kept")));
    fs::write(beside("c.toml"), "").expect("written");
    let mut command = world.command(&["call", "read", READ]);
    command.env("PORTCULLIS_STORE", &store).env("PORTCULLIS_ARTIFACTS", &kept);
    let ran: Ran = command.env("PORTCULLIS_CONFIG", beside("c.toml")).output().expect("runs").into();
    let flags = format!("portcullis --store {store} --artifacts {kept} --config {}", beside("c.toml"));
    ran.ends(0).warns(&flags);
}

#[test]
fn a_store_that_cannot_be_used_is_one_clear_line() {
    let world = World::with_file("a.txt", "alpha\n");
    world.run(&["sessions"]).ends(0).warns("no sessions yet");
    fs::create_dir_all(&world.home).expect("made");
    fs::write(world.database(), "this is not a database, it is only text of some length ".repeat(40)).expect("written");
    world.run(&["sessions"]).ends(5).warns("portcullis.db").one_error_line();
    world.run(&["doctor"]).ends(1).says("broken  store");
    fs::remove_file(world.database()).expect("removed");
    world.run(&["call", "read", READ]).ends(0);
    let db = rusqlite::Connection::open(world.database()).expect("opens");
    db.execute("INSERT INTO schema_meta (version, checksum, applied_at) VALUES (99, zeroblob(32), 0)", [])
        .expect("written");
    drop(db);
    world.run(&["call", "read", READ]).ends(5).warns("newer program").one_error_line();
}

#[test]
fn the_example_configuration_is_taken_as_it_stands_and_with_every_key_set() {
    let example = include_str!("../../../../config.example.toml");
    let world = World::new();
    world.configure(example);
    world.run(&["tools"]).ends(0);
    world.configure(&example.replace("#: ", ""));
    world.run(&["tools"]).ends(0).warns("5 rules in force");
}

#[test]
fn h08_the_data_folder_and_its_keys_are_hidden_even_inside_the_workspace() {
    let mut world = World::with_file("a.txt", "x\n");
    world.home = world.workspace.join("data");
    world.run(&["--workspace-is-home", "call", "read", READ]).ends(0);
    assert!(world.home.join("keys/checkpoint.key").exists());
    let key = r#"{"file_path":"data/keys/checkpoint.key"}"#;
    let refused = world.run(&["--workspace-is-home", "call", "read", key]).ends(1).warns("path_escape");
    assert_eq!(refused.out, "");
    let write = ["call", "write", r#"{"file_path":"data/x","content":""}"#];
    world.run(&[&["--workspace-is-home", "--approvals", "allow"], &write[..]].concat()).ends(1);
}

#[test]
fn an_input_that_was_not_read_to_its_end_is_not_said_to_have_a_size() {
    let world = World::new();
    let file = world.home.with_file_name("input.json");
    fs::write(&file, format!(r#"{{"file_path":"a.txt","content":"{}"}}"#, "x".repeat(9_000_000))).expect("written");
    let input = format!("@{}", file.display());
    let ran = world.run(&["call", "write", &input]).ends(1).warns("the arguments have more than 1048576 bytes");
    assert!(!ran.err.contains("1048580"), "{}", ran.err);
    assert!(!world.workspace.join("a.txt").exists());
}
