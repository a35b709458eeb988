//! What somebody meets who has not read the manual: slips, things that are not there yet, and words that must not mislead.

use crate::common;

use common::World;

const WRITE: &str = r#"{"file_path":"a.txt","content":"hello\n"}"#;

#[test]
fn an_unknown_flag_is_wrong_usage_and_no_input() {
    let world = World::with_file("a.txt", "alpha\n");
    for words in [&["call", "read", "--nope"][..], &["policy", "explain", "read", "--nope"], &["call", "read", "-n"]] {
        let ran = world.run(words).ends(2);
        assert!(ran.err.contains("unexpected argument"), "{}", ran.err);
    }
    assert!(!world.database().exists(), "nothing was recorded");
    // One line, and standard input, are still inputs.
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0);
    world.run(&["call", "read", "-"]).ends(1).warns("input_unparseable");
}

#[test]
fn a_misspelt_tool_is_named_and_ends_alike_everywhere() {
    let world = World::new();
    world.run(&["call", "raed"]).ends(1).warns("unknown_tool").warns("did you mean `read`?");
    world.run(&["policy", "explain", "raed"]).ends(1).says("unknown_tool").says("did you mean `read`?");
    world.run(&["tools", "show", "raed"]).ends(1).warns("did you mean `read`?").one_error_line();
    let far = world.run(&["call", "quite_another"]).ends(1);
    assert!(!far.err.contains("did you mean"), "{}", far.err);
}

#[test]
fn commands_that_are_not_there_yet_say_so_in_one_sentence() {
    let world = World::new();
    for name in ["serve", "mcp", "vault"] {
        world.run(&[name]).ends(2).one_error_line().warns(&format!("`portcullis {name}` is not there yet"));
        let ran = world.run(&["--json", name, "--listen", "x"]).ends(2);
        assert_eq!(ran.json()["error"]["exit"], 2);
    }
    world.run(&["rnu"]).ends(2).one_error_line().warns("did you mean `portcullis run`?");
    world.run(&["quite-another"]).ends(2).warns("unrecognized subcommand");
}

#[test]
fn an_ask_says_before_the_answer_that_the_rules_have_changed() {
    let world = World::with_file("a.txt", "alpha\n");
    let ask = world.ask_to_edit("a.txt", "alpha", "beta");
    let before = world.run(&["approvals", "show", &ask]).ends(0);
    assert!(!before.out.contains("the rules changed"), "{}", before.out);
    assert_eq!(world.run(&["approvals", "show", &ask, "--json"]).ends(0).json()["outdated"], false);
    world.configure("[[rules]]\naction = \"write\"\npath = \"other.txt\"\neffect = \"deny\"\n");
    world.run(&["approvals", "show", &ask]).ends(0).says("the rules changed after this was asked").says("void");
    assert_eq!(world.run(&["approvals", "show", &ask, "--json"]).ends(0).json()["outdated"], true);
    world.run(&["approvals", "allow", &ask]).ends(4).warns("the rules changed after this was asked");
    assert_eq!(world.read("a.txt"), "alpha\n");
}

#[test]
fn l29_policy_check_says_that_an_untrusted_project_allows_nothing() {
    let world = World::new();
    let file = ".portcullis/config.toml";
    world.write(file, "[[rules]]\nid = \"p\"\naction = \"write\"\npath = \"a.txt\"\neffect = \"allow\"\n");
    for words in [&["policy", "check"][..], &["policy", "check", file]] {
        world.run(words).ends(0).warns("allow of `p` is inert").warns("policy trust");
        let json = world.run(&[words, &["--json"]].concat()).ends(0).json();
        assert_eq!(json["inert"], serde_json::json!(["p"]));
    }
    world.run(&["policy", "trust", file]).ends(0);
    for words in [&["policy", "check"][..], &["policy", "check", file]] {
        let ran = world.run(words).ends(0);
        assert!(!ran.err.contains("inert"), "{}", ran.err);
    }
}

#[test]
fn what_a_person_can_mend_shows_no_backtrace() {
    let world = World::new();
    world.run(&["call", "write", WRITE]).ends(3);
    let mut command = world.command(&["grants", "revoke", "grant_01arz3ndektsv4rrffq69g5fav"]);
    let output = command.env("RUST_BACKTRACE", "1").output().expect("it runs");
    common::Ran::from(output).ends(1).warns("there is no grant").one_error_line();
}

#[test]
fn erasing_says_that_an_ask_waits_and_counts_no_files_where_there_are_none() {
    let world = World::with_file("a.txt", "alpha\n");
    world.ask_to_edit("a.txt", "alpha", "beta");
    let session = world.run(&["sessions"]).ends(0).id("sesn_");
    world.run(&["sessions", "rm", &session]).ends(2).warns("1 ask in it waits for an answer");
    let ran = world.run(&["sessions", "rm", &session, "--yes"]).ends(0);
    assert!(!ran.out.contains("file"), "{}", ran.out);
    ran.says("lost their content").warns("1 ask in it waited for an answer");
}

#[test]
fn a_path_out_of_the_workspace_is_told_without_a_place_that_says_nothing() {
    let world = World::new();
    let ran = world.run(&["call", "read", r#"{"file_path":"../x"}"#]).ends(1);
    assert!(!ran.err.contains("at `.`"), "{}", ran.err);
    ran.warns("the path leads outside the workspace; use a path that stays beneath it");
}

#[test]
fn every_verb_of_sessions_says_how_it_ends() {
    let world = World::new();
    let help = world.run(&["sessions", "--help"]).ends(0).out;
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // What is wrapped stands further to the right.
    let verbs = verbs.filter(|line| !line.starts_with("   "));
    let verbs: Vec<&str> =
        verbs.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help").collect();
    assert!(verbs.contains(&"list") && verbs.contains(&"rm"), "{help}");
    for verb in verbs {
        let ran = world.run(&["sessions", verb, "--help"]).ends(0);
        assert!(ran.out.contains("Exit codes: 0 done"), "{verb}: {}", ran.out);
    }
}

#[test]
fn an_ask_shows_a_command_so_that_a_shell_takes_it_as_it_is() {
    let world = World::new();
    let input = r#"{"command":"sh -c 'grep -q world greet.txt && echo tests pass'"}"#;
    let ask = world.run(&["--profile", "code", "call", "bash", input]).ends(3).id("ask_");
    let shown = world.run(&["approvals", "show", &ask]).ends(0);
    let shown = shown.says("  │ sh -c 'grep -q world greet.txt && echo tests pass'");
    assert!(!shown.out.contains("written as"), "it says nothing more: {}", shown.out);
}

#[test]
fn doctor_says_that_others_can_write_the_configuration_and_that_the_mark_is_missing() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.write("a.txt", "x");
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0);
    let file = world.configure("");
    let quiet = world.run(&["doctor"]).ends(0);
    assert!(!quiet.out.contains("by others") && !quiet.out.contains("is missing: an older"), "{}", quiet.out);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("changed");
    world.run(&["doctor"]).ends(0).says("can be written by others, who can change your rules").says("chmod go-w");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("changed");
    std::os::unix::fs::chown(&file, Some(54_321), None).expect("these tests run as root");
    world.run(&["doctor"]).ends(0).says("belongs to another user (54321)");
    std::fs::remove_file(format!("{}-mark", world.database().display())).expect("removed");
    world.run(&["doctor"]).ends(0).says("is missing: an older copy of the database would not be noticed");
}

#[test]
fn the_beginning_of_an_id_is_enough_where_it_fits_no_other() {
    let world = World::new();
    let ask = world.run(&["call", "write", WRITE]).ends(3).id("ask_");
    let session = world.run(&["sessions", "list"]).ends(0).id("sesn_");
    world.run(&["approvals", "show", &ask[..12]]).ends(0).says(&ask);
    world.run(&["sessions", "show", &session[..12]]).ends(0).says(&session);
    world.run(&["call", "read", WRITE, &format!("--session={}", &session[..12])]).warns(&session);
    world.run(&["approvals", "show", "ask_zzz"]).ends(2).one_error_line().warns("no id begins or ends with ask_zzz");
    world.run(&["sessions", "show", "zzzz"]).ends(2).one_error_line().warns("no id begins or ends with zzzz");
    // What else is wrong with the line is what is told.
    let end = &session[23..];
    world.run(&["sessions", "send", end]).ends(2).warns("<MESSAGE>");
    world.run(&["sessions", "fork", end, "--at", "abc"]).ends(2).warns("invalid value 'abc' for '--at");
    let other = world.run(&["call", "write", WRITE]).ends(3).id("ask_");
    let shared = ask.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let ran = world.run(&["approvals", "allow", &ask[..shared]]).ends(2).one_error_line();
    ran.warns("2 ids begin or end with").warns(&ask).warns(&other);
    let ran = world.run(&["approvals", "show", &ask[..shared], "--json"]).ends(2);
    assert_eq!(ran.json()["error"]["exit"], 2);
    world.run(&["approvals", "allow", &ask[..=shared]]).ends(0);
    // Words that look like the beginning of an id are words.
    world.run(&["sessions", "send", &session[..12], &session[..9]]).ends(0);
    world.run(&["sessions", "events", &session]).ends(0).says(&format!("{}\n", &session[..9]));
    // What is no id is told as before.
    world.run(&["approvals", "show", "nonsense"]).ends(2).warns("nonsense");
}

#[test]
fn a_conversation_has_its_first_message_for_a_name_without_its_keys() {
    let world = World::new();
    let script = "[[turn]]\ntext = \"Hello.\"\n[[turn]]\ntext = \"Again.\"\n";
    let words = format!("run --model {}", crate::run_talk::model(&world, script));
    let (mut child, keys, out) = common::on_terminal(&world, &words);
    let mut terminal = crate::run_talk::Terminal::new(keys, out);
    terminal.says("mend it with AKIA2QWERTYUIOPASDFG please");
    terminal.until("Hello.");
    terminal.says("something else");
    terminal.until("Again.");
    terminal.says("/quit");
    child.wait().expect("ends");
    let listed = world.run(&["sessions", "list"]).ends(0).says("mend it with").out;
    assert!(!listed.contains("AKIA2") && !listed.contains("conversation"), "{listed}");
    assert_eq!(world.run(&["sessions", "list", "--json"]).ends(0).json()["sessions"][0]["title"], "conversation");
}

#[test]
fn the_reason_of_an_ask_names_every_part_that_asked() {
    let explained = |line: &str| {
        let input = serde_json::json!({ "command": line }).to_string();
        World::new().run(&["policy", "explain", "bash", "--profile", "code", &input]).out
    };
    let two = explained("touch a && exit 0");
    assert!(two.contains(r#"on ["touch","a"]; also on ["exit","0"]"#), "{two}");
    // What only looks asks nothing beside it.
    let one = explained("ls && exit 0");
    assert!(one.contains(r#"on ["exit","0"]"#) && !one.contains(r#"["ls"]"#), "{one}");
    let long = explained("cat a > b; sh build.sh; rm -rf \"$d\"");
    assert!(long.contains(r#"["sh","build.sh"]"#) && long.contains(r#"["rm","#), "{long}");
    assert!(explained("touch a").lines().next().is_some_and(|line| line.ends_with(r#"on ["touch","a"]"#)));
}

#[test]
fn the_ask_of_a_variable_shows_its_value_and_calls_it_one() {
    let world = World::new();
    let ran = world.run(&["call", "shell_set_env", r#"{"key":"BASH_ENV","value":"/workspace/x"}"#]).ends(3);
    let ran = ran
        .says("  touches: variable BASH_ENV\n")
        .says("  the tool says: variable BASH_ENV: `/workspace/x` (every bash");
    world.run(&["approvals", "allow", &ran.id("ask_")]).ends(0);
    let ran = world.run(&["call", "shell_run", r#"{"command":"git status"}"#]).ends(3);
    let ran = ran.says("  │ git status\n").says("  runs with: variable BASH_ENV: `/workspace/x`");
    let shown = world.run(&["approvals", "show", &ran.id("ask_")]).ends(0).says("what            shell_run\n");
    assert!(!shown.out.contains("times)") && !shown.out.contains("opaque"), "{}", shown.out);
}

#[test]
fn a_warning_is_told_at_length_once() {
    let world = World::with_file(".env", "TOKEN=abc\n");
    let call = || world.run(&["call", "shell_run", r#"{"command":"true"}"#, "--approvals", "allow"]).ends(0);
    let first = call();
    let long = "`read` asks before it shows one";
    assert!(first.err.contains(long) || first.err.contains("only level `full` keeps them"), "{}", first.err);
    let second = call().warns("warning as before: ");
    assert!(!second.err.contains(long), "{}", second.err);
}

#[test]
fn what_goes_on_after_a_wrong_model_does_not_name_it_again() {
    let world = World::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let url = format!("http://{}", server.local_addr().expect("known"));
    let answers = std::thread::spawn(move || {
        for stream in server.incoming().flatten().take(2) {
            use std::io::{Read as _, Write as _};
            let mut stream = stream;
            let mut asked = [0; 65_536];
            let _ = stream.read(&mut asked);
            let body = r#"{"error":{"message":"no such model","type":"not_found_error"}}"#;
            let _ = write!(
                stream,
                "HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let ran = world.run(&["run", "go", "--model", "openai-chat/nonesuch", "--base-url", &url]).ends(1);
    let hint = ran.err.lines().find(|line| line.contains("go on with:")).expect("a hint").to_owned();
    assert!(hint.contains(" --model PROVIDER/MODEL ") && !hint.contains("nonesuch"), "{hint}");
    drop(answers);
}
