//! Transcripts of where data is kept: a place that cannot be used is named before anything depends on it.

use std::fs;
use std::process::Command;

use crate::common::{Ran, World};

const READ: &str = r#"{"file_path":"a.txt"}"#;

fn ran(command: &mut Command) -> Ran {
    command.output().expect("runs").into()
}

#[test]
fn a_data_folder_that_cannot_be_made_is_found_by_doctor_and_named_by_a_call() {
    let world = World::with_file("a.txt", "alpha\n");
    let file = world.workspace.with_file_name("file");
    fs::write(&file, "").expect("written");
    // Nobody makes a folder in either, root included.
    for home in [file.join("data"), "/proc/portcullis".into()] {
        let broken = ran(world.command(&["doctor"]).env("PORTCULLIS_HOME", &home)).ends(1);
        broken.says(&format!("the data folder {} cannot be made", home.display())).says("set PORTCULLIS_HOME");
        let call = ran(world.command(&["call", "read", READ]).env("PORTCULLIS_HOME", &home)).ends(5).one_error_line();
        call.warns(&format!("the data folder {} cannot be made", home.display())).warns("set PORTCULLIS_HOME");
    }
}

#[test]
fn doctor_leaves_nothing_where_there_is_no_data_yet() {
    let world = World::new();
    world.run(&["doctor"]).ends(0).says("does not exist yet");
    assert!(!world.home.exists());
    assert_eq!(fs::read_dir(world.home.parent().expect("beneath")).expect("read").count(), 1, "only the workspace");
}

#[test]
fn a_data_folder_that_is_not_a_whole_path_is_refused() {
    let world = World::with_file("a.txt", "alpha\n");
    let call = ran(world.command(&["call", "read", READ]).env("PORTCULLIS_HOME", "data")).ends(2).one_error_line();
    call.warns("PORTCULLIS_HOME is `data`").warns("begins with /");
    assert!(!world.workspace.join("data").exists());
}

#[test]
fn a_file_that_is_no_store_is_not_sent_in_circles() {
    let world = World::with_file("a.txt", "alpha\n");
    let text = world.home.with_file_name("text");
    fs::write(&text, "this is not a database, it is only text of some length ".repeat(40)).expect("written");
    let verify = world.run(&["--store", &format!("sqlite:{}", text.display()), "audit", "verify"]);
    let verify = verify.ends(5).one_error_line().warns("name another with --store");
    assert!(!verify.err.contains("audit verify"), "{}", verify.err);
}

#[test]
fn doctor_tells_of_the_ledger_by_name_what_it_left_out_and_the_headroom() {
    let mut world = World::with_file("a.txt", "alpha\n");
    let first = world.run(&["call", "read", READ]).ends(0).id("sesn_");
    world.run(&["doctor"]).ends(0).says(&format!("the chain of {first} holds")).says("16 MiB are kept free");
    world.workspace = world.workspace.with_file_name("second");
    world.write("a.txt", "beta\n");
    world.run(&["call", "read", READ]).ends(0);
    let report =
        world.run(&["doctor"]).ends(0).says("the chain of the ledger holds").says("1 other session not checked");
    assert!(!report.out.contains(&first), "{}", report.out);
    fs::remove_file(world.home.join("ballast")).expect("removed");
    world.run(&["doctor"]).ends(0).says("no headroom is kept");
}

#[test]
fn doctor_warns_of_rules_that_can_never_match_with_file_and_line() {
    let world = World::new();
    let rule = |id: &str, what: &str| format!("[[rules]]\nid = \"{id}\"\n{what}\neffect = \"deny\"\n");
    let rules = [
        rule("typo", "action = \"raed\""),
        rule("outside", "action = \"*\"\npath = \"/home/me/project/.env\""),
        rule("blank", "action = \"*\"\npath = \".env \""),
        rule("sound", "action = \"read\"\npath = \"**/.env\""),
        rule("half", "action = \"edit\"\npath = [\"/etc/passwd\", \"/workspace/x\"]"),
        rule("any", "action = \"*\"\npath = \"/**/.env\""),
    ];
    let path = world.configure(&rules.concat());
    let report = world.run(&["doctor"]).ends(0);
    let report = report.says(&format!("{}:1: rule `typo` names the action `raed`, which no tool has", path.display()));
    let report =
        report.says("rule `outside` can never match /home/me/project/.env").says("rule `half` can never match /etc");
    let report = report.says("rule `blank` can never match \".env \": it begins or ends with a blank");
    assert_eq!(report.out.matches("note    rules:").count(), 4, "{}", report.out);
}

#[test]
fn a_store_that_was_named_and_is_not_there_is_an_error_that_names_it_and_makes_none() {
    let world = World::with_file("a.txt", "alpha\n");
    let session = world.run(&["call", "read", READ]).ends(0).id("sesn_");
    let rules = world.configure("");
    let rules = rules.display().to_string();
    let missing = world.home.with_file_name("missing.db");
    let named = format!("sqlite:{}", missing.display());
    let told = format!("there is no store at {}", missing.display());
    let looks: &[&[&str]] = &[
        &["sessions", "list"],
        &["sessions", "show", &session],
        &["sessions", "events", &session],
        &["sessions", "status", &session],
        &["sessions", "search", "alpha"],
        &["approvals", "list"],
        &["approvals", "watch"],
        &["grants", "list"],
        &["audit", "verify"],
        &["audit", "head"],
        &["replay", &session],
        &["gc", "--dry-run"],
        &["policy", "backtest", &rules],
        &["policy", "explain", "read", READ],
    ];
    for words in looks {
        world.run(&[words, &["--store", &named][..]].concat()).ends(2).one_error_line().warns(&told);
        ran(world.command(words).env("PORTCULLIS_STORE", &named)).ends(2).one_error_line().warns(&told);
        assert!(!missing.exists(), "{words:?} made a store");
    }
    world.run(&["doctor", "--store", &named]).ends(0).says(&told).says("correct --store");
}

#[test]
fn the_usual_store_that_is_yet_to_come_is_nothing_yet() {
    let world = World::new();
    world.run(&["sessions", "list"]).ends(0).warns("no sessions yet");
    world.run(&["approvals", "list"]).ends(0).warns("nothing waits");
    world.run(&["grants", "list"]).ends(0).warns("nothing is remembered");
    world.run(&["audit", "verify"]).ends(1).warns("yet; `portcullis call` makes one");
}

#[test]
fn a_file_that_is_not_there_is_wrong_usage_whoever_takes_it() {
    let world = World::with_file("a.txt", "alpha\n");
    let session = world.run(&["call", "read", READ]).ends(0).id("sesn_");
    let gone = "nowhere.file";
    let takers: &[&[&str]] = &[
        &["sessions", "import", gone],
        &["audit", "verify", "--export", gone],
        &["audit", "verify", "--against", gone],
        &["policy", "check", gone],
        &["policy", "check", "--config", gone],
        &["policy", "trust", gone],
        &["policy", "backtest", gone],
        &["policy", "explain", "read", "@nowhere.file"],
        &["call", "read", "@nowhere.file"],
        &["run", "hello", "--model", "scripted:nowhere.file"],
        &["worker", "--model", "scripted:nowhere.file"],
        &["sessions", "wake", &session, "--model", "scripted:nowhere.file"],
        &["replay", &session, "--mode", "redrive", "--model", "scripted:nowhere.file"],
        &["sessions", "list", "--config", gone],
    ];
    for words in takers {
        let ran = world.run(words);
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.err);
        ran.one_error_line().warns(gone);
    }
    // What is there and cannot be read as a file is the same mistake; rules that are wrong are not.
    world.run(&["policy", "check", "."]).ends(2).one_error_line();
    world.write("wrong.toml", "[[rules]]\neffect = 1\n");
    world.run(&["policy", "check", "wrong.toml"]).ends(1).warns("wrong.toml");
    world.run(&["policy", "backtest", "wrong.toml"]).ends(1).warns("wrong.toml");
}

#[test]
fn a_data_folder_that_is_a_file_is_called_one() {
    let world = World::with_file("a.txt", "alpha\n");
    fs::write(&world.home, "a file").expect("written");
    let report = world.run(&["doctor"]).ends(1).says("is a file, not a folder").says("move the file");
    assert!(!report.out.contains("chmod"), "{}", report.out);
    let called = world.run(&["call", "read", READ]).ends(5).one_error_line();
    called.warns(&format!("{} is a file", world.home.display()));
    // The same of the folder that a demo is to leave.
    let world = World::with_file("a.txt", "alpha\n");
    let ran = world.run(&["demo", "--keep", "a.txt"]).ends(2).one_error_line();
    assert!(!ran.err.contains("os error"), "{}", ran.err);
    ran.warns("--keep a.txt: it is a file, not a folder");
}

#[test]
fn an_event_whose_content_is_gone_is_called_damaged_and_not_unknown() {
    let world = World::with_file("a.txt", "alpha\n");
    let session = world.run(&["call", "read", READ]).ends(0).id("sesn_");
    let raw = rusqlite::Connection::open(world.database()).expect("the file opens");
    raw.execute("DELETE FROM runs", []).expect("taken out");
    drop(raw);
    let ran = world.run(&["sessions", "events", &session]).ends(0);
    assert!(!ran.out.contains("not known to this program"), "{}", ran.out);
    world.run(&["sessions", "show", &session]).ends(5).one_error_line().warns("is missing or damaged");
    world.run(&["sessions", "events", &session]).ends(0).says("its content is missing or damaged");
}

#[test]
fn doctor_tells_which_model_a_run_would_take_and_why() {
    let world = World::new();
    let doctor = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = world.command(&[&["doctor"], words].concat());
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY"] {
            command.env_remove(name);
        }
        ran(command.envs(variables.iter().copied())).ends(0)
    };
    doctor(&[], &[]).says("model: none is configured").says("ANTHROPIC_API_KEY");
    let keys = [("GEMINI_API_KEY", "a-key-that-is-none"), ("ANTHROPIC_API_KEY", "another-key-that-is-none")];
    let told = doctor(&[], &keys).says("model: anthropic/").says("(ANTHROPIC_API_KEY is set); also configured: gemini");
    assert!(!told.out.contains("that-is-none"), "{}", told.out);
    doctor(&["--base-url", "http://127.0.0.1:1"], &keys)
        .says("model: openai-chat, with the first model that its server lists");
    doctor(&["--model", "gemini/x"], &keys).says("model: gemini/x (by your configuration)");
    doctor(&["--model", "openai/x"], &keys).says("openai/x: no key: set OPENAI_API_KEY");
}

#[test]
fn doctor_tells_what_build_caches_take_for_each_workspace_and_how_to_remove_them() {
    let world = World::with_file("a.txt", "alpha\n");
    world.run(&["call", "read", READ]).ends(0);
    let before = world.run(&["doctor"]).ends(0);
    assert!(!before.out.contains("caches"), "{}", before.out);
    let input = r#"{"command":"true"}"#;
    world.run(&["call", "shell_run", input, "--approvals", "allow"]).ends(0);
    let own = fs::read_dir(world.home.join("caches")).expect("made").flatten().next().expect("one").path();
    fs::write(own.join("built"), vec![7; 5 << 20]).expect("written");
    // It is not followed.
    let outside = world.home.with_file_name("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("large"), vec![7; 40 << 20]).expect("written");
    std::os::unix::fs::symlink(&outside, own.join("link")).expect("linked");
    let stray = world.home.join("caches/stray");
    fs::create_dir(&stray).expect("made");
    let report = world.run(&["doctor"]).ends(0);
    let lines: Vec<&str> = report.out.lines().filter(|line| line.contains("build caches")).collect();
    assert_eq!(lines.len(), 2, "{}", report.out);
    assert!(lines[0].ends_with(&format!("build caches for {}", world.workspace.display())), "largest first: {lines:?}");
    let size = lines[0].split_whitespace().find_map(|word| word.parse::<u64>().ok()).expect("a size");
    assert!((5..40).contains(&size), "{lines:?}");
    assert!(lines[1].contains("no session tells"), "{lines:?}");
    for folder in [&own, &stray] {
        let way = format!("chmod -R u+w {0} && rm -r {0}", folder.display());
        assert!(report.out.contains(&way), "no `{way}` in {}", report.out);
        // And it works as it is printed.
        assert!(Command::new("sh").args(["-c", &way]).status().expect("runs").success());
    }
    assert!(!world.run(&["doctor"]).ends(0).out.contains("build caches"));
    world.run(&["call", "shell_run", input, "--approvals", "allow"]).ends(0);
}
