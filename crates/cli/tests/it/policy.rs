//! Transcripts of `policy`: explaining, checking, trusting, and trying changed rules on the past.

use crate::common::World;

const WRITE: &str = r#"{"file_path":"a.txt","content":"hello\n"}"#;
const READ: &str = r#"{"file_path":"a.txt"}"#;

#[test]
fn explain_says_what_the_gate_would_decide_and_does_nothing() {
    let world = World::with_file("a.txt", "alpha\n");
    world.run(&["policy", "explain", "read", READ]).ends(0).says("allow: the tool's default allows `read`");
    world.run(&["policy", "explain", "write", WRITE]).ends(3).says("ask: ").says("would not allow: ");
    let rules = world.configure("[[rules]]\nid = \"no-a\"\naction = \"*\"\npath = \"a.txt\"\neffect = \"deny\"\n");
    world.run(&["policy", "explain", "read", READ]).ends(4).says("deny (policy_denied)").says("no-a");
    let found = world.run(&["policy", "explain", "write", WRITE, "--json"]).ends(4).json();
    for field in [
        "decision",
        "phase",
        "code",
        "reason",
        "policy_ids",
        "risk",
        "read_only",
        "mapped",
        "suggested_rules",
        "would_run_in",
    ] {
        assert!(found.get(field).is_some(), "{field} is promised: {found}");
    }
    assert_eq!((&found["decision"], &found["phase"]), (&"deny".into(), &"permission".into()));
    assert!(found["reason"].as_str().is_some_and(|why| why.contains(&format!("{}:1", rules.display()))), "{found}");
    world.run(&["policy", "explain", "raed", READ]).ends(1).says("unknown_tool").says("read");
    assert!(!world.database().exists(), "nothing was recorded");
    assert_eq!(world.read("a.txt"), "alpha\n");
}

#[test]
fn l33_explain_offers_no_rule_for_a_command_that_the_line_feeds() {
    let world = World::new();
    let explain = |command: &str| {
        let input = serde_json::json!({ "command": command }).to_string();
        world.run(&["--profile", "code", "policy", "explain", "bash", &input, "--json"]).ends(3).json()
    };
    for command in ["patch -p1", "git commit -m x", "cargo test 2>&1 | tail -5"] {
        let found = explain(command);
        assert_eq!(found["suggested_rules"].as_array().map(Vec::len), Some(1), "{command}: {found}");
    }
    for command in [
        "patch -p1 <<'E'\n--- a\n+++ b\nE",
        "patch -p1 < a.diff",
        "cat a.diff | patch -p1",
        "bash /dev/stdin <<< ls",
        "python3 /dev/stdin <<< 'print(1)'",
        "make -f /dev/stdin <<< 'all:'",
        "xargs -0 <<< a",
        "echo ls | bash /dev/stdin",
    ] {
        let found = explain(command);
        assert_eq!(found["suggested_rules"], serde_json::json!([]), "{command}: {found}");
    }
}

#[test]
fn an_input_that_does_not_fit_is_wrong_usage_and_no_deny() {
    let world = World::with_file("a.txt", "alpha\n");
    for (input, why) in [
        ("{}", "\"file_path\" is a required property"),
        ("{", "not JSON"),
        (r#"{"file_path":"a.txt","path":"x"}"#, "Additional properties are not allowed ('path' was unexpected)"),
        (r#"{"file_path":1}"#, "at `/file_path`: value is not of type \"string\""),
    ] {
        let ran = world.run(&["policy", "explain", "read", input]).ends(2);
        let told = format!("error: the input of `read` is not what it takes: {why}");
        let ran = ran.warns(&told).warns(r#"such as '{"file_path":"FILE_PATH"}'"#).warns("portcullis tools show read");
        assert!(!ran.out.contains("deny") && !ran.err.contains("deny"), "{} {}", ran.out, ran.err);
        let found = world.run(&["policy", "explain", "read", input, "--json"]).ends(2).json();
        assert_eq!(found["phase"], "validate");
        assert!(found["reason"].as_str().is_some_and(|reason| reason.contains(why)), "{found}");
    }
    assert!(!world.database().exists(), "nothing was recorded");
}

#[test]
fn trusting_a_file_without_allows_says_that_nothing_changes() {
    let world = World::new();
    let file = ".portcullis/config.toml";
    world.write(file, "[[rules]]\nid = \"p\"\naction = \"*\"\npath = \"**/.env\"\neffect = \"deny\"\n");
    world.run(&["policy", "trust", file]).ends(0).says("trusted: ").warns("no allow rules, so nothing changes");
}

#[test]
fn check15_explain_shows_decision_and_mapping_of_a_command() {
    let world = World::with_file("a.txt", "alpha\n");
    let cat = r#"{"command":"head -n 5 a.txt"}"#;
    world
        .run(&["policy", "explain", "bash", cat])
        .ends(0)
        .says("allow: ")
        .says("instead     read {\"file_path\":\"/workspace/a.txt\",\"line_count\":5}");
    let found = world.run(&["policy", "explain", "shell_run", cat, "--json"]).ends(3).json();
    assert_eq!((&found["decision"], &found["pinned"]), (&"ask".into(), &true.into()));
    assert_eq!(found["mapped"]["tool"], "read");
    assert_eq!(found["mapped"]["input"], serde_json::json!({"file_path": "/workspace/a.txt", "line_count": 5}));
    // No first-class tool, but the read-only hand.
    let sort = r#"{"command":"sort -u a.txt"}"#;
    let found = world.run(&["policy", "explain", "shell_run", sort, "--json"]).ends(3).json();
    assert_eq!(found["mapped"]["input"]["command"], "sort");
    assert_eq!(found["mapped"]["tool"], "bash");
    world.run(&["policy", "explain", "bash", sort, "--json"]).ends(0).says("\"mapped\":null");
    // Neither.
    let make = r#"{"command":"make test"}"#;
    let refused =
        world.run(&["policy", "explain", "bash", make]).ends(1).says("refused (").says("run it with shell_run");
    assert!(!refused.out.contains("deny"), "no rule denies it: {}", refused.out);
    assert!(world.run(&["policy", "explain", "shell_run", make, "--json"]).ends(3).json()["mapped"].is_null());
    let denied = world.configure("[[rules]]\nid = \"no-a\"\naction = \"read\"\npath = \"a.txt\"\neffect = \"deny\"\n");
    world.run(&["policy", "explain", "bash", cat]).ends(4).says("no-a");
    drop(denied);
}

#[test]
fn explain_agrees_with_what_call_then_does_and_knows_what_is_remembered() {
    let world = World::new();
    let ask = world.run(&["call", "write", WRITE]).ends(3).id("ask_");
    world.run(&["policy", "explain", "write", WRITE]).ends(3);
    let grant = world.run(&["approvals", "allow", &ask, "--save"]).ends(0).id("grant_");
    world.run(&["policy", "explain", "write", WRITE]).ends(0).says(&grant);
    world.run(&["call", "write", WRITE]).ends(0);
}

#[test]
fn check_finds_rules_that_do_nothing_with_file_and_line() {
    let world = World::new();
    let sound =
        world.configure("[[rules]]\nid = \"keep\"\naction = \"write\"\npath = \"keep/**\"\neffect = \"deny\"\n");
    world.run(&["policy", "check"]).ends(0).warns("1 rule checked: nothing wrong");
    let rules = "[[rules]]\nid = \"typo\"\naction = \"wirte\"\npath = \"a\"\neffect = \"ask\"\n\
        [[rules]]\nid = \"host\"\naction = \"write\"\npath = \"/home/me/x\"\neffect = \"ask\"\n\
        [[rules]]\nid = \"old\"\naction = \"edit\"\neffect = \"deny\"\nexpires_at = 2020-01-01T00:00:00Z\n\
        [[rules]]\nid = \"all\"\naction = \"*\"\npath = \"docs/**\"\neffect = \"deny\"\n\
        [[rules]]\nid = \"lost\"\naction = \"read\"\npath = \"docs/*.md\"\neffect = \"allow\"\n\
        [[rules]]\nid = \"wild\"\naction = \"*\"\nargv = [\"git\", \"*\"]\neffect = \"deny\"\n\
        [[rules]]\nid = \"line\"\naction = \"*\"\nargv = [\"git push\"]\neffect = \"deny\"\n";
    world.write("rules.toml", rules);
    let ran = world.run(&["policy", "check", "rules.toml"]).ends(1);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 6, "{}", ran.out);
    for (line, want) in lines.iter().zip([
        "rules.toml:1: rule `typo` names the action `wirte`, which no tool has; `write`",
        "rules.toml:6: rule `host` can never match /home/me/x",
        "rules.toml:11: rule `old` can never match: it ran out",
        "rules.toml:21: rule `lost` never decides: all (rules.toml:16) denies",
        "rules.toml:26: rule `wild` can never match [\"git\",\"*\"]: `*` is no wildcard, for words are compared as they \
         are; to mean anything that begins so, write [\"git\"]",
        "rules.toml:31: rule `line` can never match [\"git push\"]: `git push` is one word with a blank in it, and no program is \
         called that; write [\"git\",\"push\"]",
    ]) {
        assert!(line.starts_with(want), "{line}\nis not\n{want}");
    }
    let found = world.run(&["policy", "check", "rules.toml", "--json"]).ends(1).json();
    assert_eq!((&found["findings"][3]["rule"], &found["findings"][3]["line"]), (&"lost".into(), &21.into()));

    world.write("bad.toml", "[[rules]]\naction = \"read\"\npath = \"a/*\"\neffect = \"deny\"\nmatch = [\"b/c\"]\n");
    world.run(&["policy", "check", "bad.toml"]).ends(1).warns("bad.toml:5: `match` says").one_error_line();
    std::fs::write(sound, "[[rules]]\nefect = \"deny\"\n").expect("written");
    world.run(&["policy", "check"]).ends(1).warns("nearest known one is `effect`").one_error_line();
}

/// Each of these is read without an error, stops or allows nothing, and looks as if it did.
#[test]
fn check_and_doctor_report_every_rule_that_can_never_match() {
    let world = World::new();
    let rule = |what: &str| format!("[[rules]]\nid = \"r\"\n{what}\n");
    let dead = [
        ("action = \"webfetch\"\neffect = \"deny\"", "no tool has the action `webfetch`; those of this build are "),
        ("action = \"web*\"\neffect = \"deny\"", "no tool has the action `web*`"),
        (
            "action = \"shell_run\"\nargv = [\"git\", \"push\", \"--force*\"]\neffect = \"deny\"",
            "one list for each word that is meant, such as [[\"git\",\"push\",\"--force\"], …]",
        ),
        ("action = \"*\"\nargv = [\"npm\", \"run\", \"test:*\"]\neffect = \"allow\"", "write [\"npm\",\"run\"]"),
        (
            "action = \"read\"\nargv = [\"cat\"]\neffect = \"deny\"",
            "what `read` does is not decided by the words of a command; what is: bash, shell_exec, shell_run",
        ),
        ("action = \"artifact_*\"\nargv = [\"cat\"]\neffect = \"deny\"", "bash, shell_exec, shell_run"),
        ("action = \"shell_run\"\npath = \"src/**\"\neffect = \"allow\"", "is not decided by paths; what is: edit, "),
        ("action = \"task_wait\"\npath = \"src/**\"\neffect = \"deny\"", "is not decided by paths"),
        (
            "action = \"write\"\nmcp_tool = \"x\"\neffect = \"deny\"",
            "is not decided by names for `mcp_tool`; nothing in",
        ),
        ("action = \"write\"\nshell = \"env:*\"\neffect = \"deny\"", "names for `shell`; what is: bash, shell_close, "),
        ("action = \"read\"\ntarget_session = \"*\"\neffect = \"deny\"", "what is: sandbox_describe."),
        ("action = \"*\"\nmemory = \"*\"\neffect = \"deny\"", "names for `memory`; nothing in this build is"),
        ("action = \"*\"\nskill = \"*\"\neffect = \"deny\"", "names for `skill`; nothing in this build is"),
        ("action = \"*\"\nhost = \"example.com\"\neffect = \"deny\"", "is not decided by hosts; nothing in this build"),
        ("action = \"sandbox_execute\"\neffect = \"ask\"", "stands for other tools"),
        ("action = \"*\"\nproject = \"~/p\"\neffect = \"deny\"", "a home or a variable is not filled in"),
        ("action = \"*\"\nproject = \"relative\"\neffect = \"deny\"", "with the absolute path of the workspace"),
        ("action = \"*\"\nproject = \"/tmp/*\"\neffect = \"deny\"", "it is no pattern"),
        ("action = \"*\"\nproject = \"/a/../a\"\neffect = \"deny\"", "shortest path"),
        ("action = \"*\"\npath = \"$HOME/x\"\neffect = \"deny\"", "no variables"),
        ("action = \"*\"\npath = \"!/workspace/x\"\neffect = \"deny\"", "`!` excludes nothing"),
        ("action = \"*\"\nargv = [\"git;push\"]\neffect = \"deny\"", "write [\"git\",\"push\"]"),
        ("action = \"*\"\nargv = [\"git\", \"\"]\neffect = \"deny\"", "one of its words is empty"),
        (
            "action = \"shell_run\"\nargv = [\"git\", \"push\"]\neffect = \"deny\"",
            "does not hold for `bash` and `shell_exec`: the same words run there as well; write action = \"*\"",
        ),
        ("action = \"bash\"\nargv = [\"git\", \"push\"]\neffect = \"ask_pinned\"", "for `shell_exec` and `shell_run`"),
        ("action = \"shell_*\"\nargv = [\"cat\"]\neffect = \"deny\"", "does not hold for `bash`:"),
    ];
    for (what, why) in dead {
        let file = world.configure(&rule(what));
        let place = format!("{}:1: rule `r` ", file.display());
        world.run(&["policy", "check"]).ends(1).says(&place).says(why).warns("1 rule checked: 1 finding");
        world.run(&["doctor"]).ends(0).says(&format!("note    rules: {place}")).says(why);
    }
    for what in [
        "action = \"webfetch\"\nmcp_tool = \"webfetch\"\neffect = \"deny\"",
        "action = \"shell_run\"\npath = \"src/**\"\neffect = \"deny\"",
        "action = \"bash\"\npath = \"src/**\"\neffect = \"ask\"",
        "action = \"*\"\nargv = [\"cat\"]\neffect = \"deny\"",
        "action = \"*\"\nproject = \"/a/w/\"\neffect = \"deny\"",
        "action = \"bash\"\nargv = [\"cat\"]\neffect = \"allow\"",
        "action = \"shell_set_env\"\nshell = \"env:PATH\"\neffect = \"deny\"",
        "action = \"*\"\ntask = \"task_*\"\neffect = \"deny\"",
        "action = \"*\"\nartifact = \"*\"\neffect = \"ask\"",
        "action = \"sandbox_describe\"\ntarget_session = \"sandbox\"\neffect = \"deny\"",
        "action = \"sandbox_execute\"\neffect = \"deny\"",
        "action = \"*\"\nargv = [\"find\", \".\", \"-name\", \"*.env\"]\neffect = \"deny\"",
        "action = \"bash\"\nargv = [\"ls\", \"*.txt\", \"$\"]\neffect = \"allow\"",
        "action = \"write\"\nopaque = true\neffect = \"deny\"",
    ] {
        world.configure(&rule(what));
        world.run(&["policy", "check"]).ends(0).warns("1 rule checked: nothing wrong");
    }
}

#[test]
fn a_rule_that_calls_a_variable_a_tool_is_refused_by_every_command_and_says_what_to_write() {
    let world = World::new();
    let rule = |key: &str| format!("[[rules]]\naction = \"shell_set_env\"\n{key} = \"env:*\"\neffect = \"deny\"\n");
    let set = ["call", "shell_set_env", r#"{"key":"A","value":"1"}"#];
    let file = world.configure(&rule("mcp_tool"));
    let place = format!("{}:3: ", file.display());
    for args in [&set[..], &["policy", "check"]] {
        let ran = world.run(args);
        assert!(ran.code != 0 && ran.code != 4, "{args:?}: it is not read at all");
        ran.warns(&place).warns("write `shell = \"env:*\"`");
    }
    world.configure(&rule("shell"));
    world.run(&set).ends(4);
}

/// Three rules for three tools keep from one another what one rule keeps by itself.
#[test]
fn a_denied_command_is_denied_for_every_tool_that_runs_it_or_the_check_says_for_which_it_is_not() {
    let world = World::new();
    let rule = |action: &str| {
        format!("[[rules]]\nid = \"{action}\"\naction = \"{action}\"\nargv = [\"git\", \"push\"]\neffect = \"deny\"\n")
    };
    world.configure(&["bash", "shell_run", "shell_exec"].map(rule).concat());
    world.run(&["policy", "check"]).ends(0).warns("nothing wrong");
    let held = |action: &str, tool: &str| {
        world.configure(&rule(action));
        let input = r#"{"command":"git push"}"#;
        world.run(&["--profile", "code", "call", tool, input]).code == 4
    };
    assert!(!held("shell_run", "bash"), "the control");
    assert!(held("*", "bash"));
}

#[test]
fn a_project_with_a_slash_at_its_end_is_that_project() {
    let world = World::new();
    let workspace = world.run(&["sessions", "new", "--json"]).ends(0).id("sesn_");
    let folder = world.run(&["sessions", "show", &workspace, "--json"]).ends(0).json()["workspace"].clone();
    let folder = folder.as_str().expect("a folder").to_owned();
    world.write("a.txt", "x");
    for (project, code) in [(format!("{folder}/"), 4), (folder.clone(), 4), (format!("{folder}x"), 0)] {
        world.configure(&format!("[[rules]]\naction = \"read\"\nproject = \"{project}\"\neffect = \"deny\"\n"));
        assert_eq!(world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).code, code, "{project}");
    }
}

#[test]
fn l29_trust_is_of_one_text_of_one_file_and_a_change_voids_it() {
    let world = World::new();
    let rule =
        |name: &str| format!("[[rules]]\nid = \"p\"\naction = \"write\"\npath = \"{name}\"\neffect = \"allow\"\n");
    world.write(".portcullis/config.toml", &rule("a.txt"));
    world.run(&["call", "write", WRITE]).ends(3);
    world.run(&["doctor"]).says("policy trust");
    let file = ".portcullis/config.toml";
    world.run(&["policy", "trust", file]).ends(0).says("now in force: allow write on path /workspace/a.txt (`p`");
    world.run(&["call", "write", WRITE]).ends(0);
    world.write(file, &rule("*.txt"));
    world.run(&["policy", "explain", "write", WRITE]).ends(3).says("once its project file is trusted");
    world.write(file, &rule("a.txt"));
    world.run(&["policy", "explain", "write", WRITE]).ends(0);

    // The same text elsewhere is another project's.
    let other = world.workspace.with_file_name("other");
    std::fs::create_dir_all(other.join(".portcullis")).expect("made");
    std::fs::write(other.join(file), rule("a.txt")).expect("written");
    let elsewhere = other.to_str().expect("text");
    world.run(&["policy", "explain", "write", WRITE, "--workspace", elsewhere]).ends(3);
    world.configure("");
    let own = world.config.join("portcullis/config.toml");
    world.run(&["policy", "trust", own.to_str().expect("text")]).ends(2).warns("need no trust").one_error_line();
}

#[test]
fn backtest_prints_every_changed_decision_and_counts_every_intent() {
    let world = World::with_file("a.txt", "alpha\n");
    world.run(&["call", "read", READ]).ends(0);
    world.run(&["call", "read", READ]).ends(0);
    let ask = world.run(&["call", "write", r#"{"file_path":"b.txt","content":"x"}"#]).ends(3).id("ask_");
    world.run(&["approvals", "allow", &ask, "--save"]).ends(0);
    world.run(&["call", "write", r#"{"file_path":"b.txt","content":"y"}"#]).ends(0);
    world.run(&["call", "read", "{}"]).ends(1);
    world.run(&["call", "nothing"]).ends(1);

    world.write("same.toml", "");
    let ran = world.run(&["policy", "backtest", "same.toml"]).ends(0);
    let ran =
        ran.says("6 intents: 0 changed, 4 the same, 2 refused before the gate, 0 not decided yet, 0 not comparable");
    let ran = ran.warns("refused before the gate: no such tool, a wrong input");
    assert_eq!((ran.out.matches("refused before the gate").count(), ran.err.contains("not comparable")), (1, false));
    world.write("new.toml", "[[rules]]\nid = \"shut\"\naction = \"read\"\npath = \"a.txt\"\neffect = \"deny\"\n");
    let ran = world.run(&["policy", "backtest", "new.toml"]).ends(0).says("6 intents: 2 changed, 2 the same");
    let changed: Vec<&str> = ran.out.lines().filter(|line| line.contains('→')).collect();
    assert_eq!(changed.len(), 2);
    for line in changed {
        assert!(line.starts_with("sesn_") && line.contains(" int_") || line.contains("intent"), "{line}");
        assert!(line.contains("allow → deny: rule `shut` (new.toml:1)"), "{line}");
    }
    let lines = world.run(&["policy", "backtest", "new.toml", "--json"]).ends(0).lines();
    let total = &lines.last().expect("a total")["total"];
    assert_eq!((lines.len(), &total["intents"], &total["changed"]), (3, &6.into(), &2.into()));
    assert_eq!((&lines[0]["old"], &lines[0]["new"]), (&"allow".into(), &"deny".into()));
    world.run(&["policy", "backtest", "new.toml", "--since", "1ms"]).ends(0).says("0 intents");
    world.run(&["policy", "backtest", "none.toml"]).ends(2).warns("none.toml").one_error_line();
}

#[test]
fn a_profile_is_chosen_by_a_flag_and_an_ask_is_answered_under_the_one_it_was_asked_in() {
    let world = World::with_file("a.txt", "alpha\n");
    world.run(&["tools", "--profile", "code"]).ends(0).says("auto");
    assert!(!world.run(&["tools"]).ends(0).out.contains("auto"), "`tools` is managed");
    world.run(&["call", "read", READ, "--profile", "code"]).ends(0);
    let new = r#"{"file_path":"b.txt","content":"x"}"#;
    let ask = world.run(&["--profile", "code", "call", "write", new]).ends(3).id("ask_");
    world.run(&["approvals", "allow", &ask, "--save"]).ends(0);
    assert_eq!(world.read("b.txt"), "x");
    world.run(&["call", "write", new, "--profile", "code"]).ends(0);
    // Another default is another rule, so what was remembered for the one does not answer the other.
    world.run(&["call", "write", new]).ends(3);
    world.configure("[[rules]]\nid = \"no\"\naction = \"read\"\npath = \"a.txt\"\neffect = \"deny\"\n");
    for profile in ["code", "managed"] {
        world.run(&["call", "read", READ, "--profile", profile]).ends(4).warns("no");
    }
}

/// Whoever can write there decides what is trusted, and a trust may be the first thing that is kept.
#[test]
fn l29_a_trust_is_kept_where_only_its_owner_can_look() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.write(".portcullis/config.toml", "");
    world.run(&["policy", "trust", "."]).ends(0);
    let trusted = world.home.join("trusted");
    let kept = std::fs::read_dir(&trusted).expect("the folder").next().expect("one").expect("readable").path();
    for (path, mode) in [(&world.home, 0o700), (&trusted, 0o700), (&kept, 0o600)] {
        let found = std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}", path.display());
    }
}

/// Whoever cannot tell whether a project is trusted does not trust it, says so, and goes on.
#[test]
fn l29_a_record_of_trust_that_says_nothing_is_named_and_stops_nothing() {
    let world = World::new();
    let file = ".portcullis/config.toml";
    world.write(file, "[[rules]]\nid = \"p\"\naction = \"write\"\npath = \"a.txt\"\neffect = \"allow\"\n");
    world.run(&["policy", "trust", file]).ends(0);
    let kept =
        std::fs::read_dir(world.home.join("trusted")).expect("the folder").next().expect("one").expect("it").path();
    let name = kept.file_name().expect("a name").to_str().expect("text").to_owned();
    for (text, why) in [("", "is empty"), ("{\"file\":", "is damaged")] {
        std::fs::write(&kept, text).expect("written");
        world.run(&["call", "write", WRITE]).ends(3).warns(&name).warns(why).warns("policy trust");
        world.run(&["policy", "explain", "write", WRITE]).ends(3).warns(why);
        world.run(&["doctor"]).ends(1).says(&name).says(why);
        for other in [&["tools"][..], &["sessions"], &["approvals"], &["grants"], &["audit", "verify"]] {
            world.run(other).ends(0);
        }
        world.run(&["policy", "trust", file]).ends(0);
        world.run(&["policy", "explain", "write", WRITE]).ends(0);
    }
    // What only forbids has no use for trust.
    world.write(file, "[[rules]]\naction = \"write\"\npath = \"b.txt\"\neffect = \"deny\"\n");
    std::fs::write(&kept, "").expect("written");
    let ran = world.run(&["call", "write", WRITE]).ends(3);
    assert!(!ran.err.contains("record of trust"), "{}", ran.err);
}

/// One tool, two hands: what is told and recorded is that of the hand that ran it.
#[test]
fn a_line_that_only_looks_is_told_and_recorded_as_what_it_is() {
    let world = World::with_file("a.txt", "hello\n");
    let code = |words: &[&str]| world.run(&[&["--profile", "code"], words, &["--json"]].concat());
    let of = |line: &str| serde_json::json!({ "command": line }).to_string();
    let (looks, acts) = (of("cat a.txt"), of("cat a.txt > b.txt"));
    let told = code(&["policy", "explain", "bash", &looks]).ends(0).json();
    assert_eq!((&told["read_only"], &told["risk"]), (&true.into(), &serde_json::json!(["read"])), "{told}");
    assert_eq!(told["would_run_in"]["profile"], "hand_read_only", "{told}");
    let told = code(&["policy", "explain", "bash", &acts]).ends(3).json();
    assert_eq!((&told["read_only"], &told["would_run_in"]["profile"]), (&false.into(), &"hand".into()), "{told}");

    let seen = code(&["call", "bash", &looks]).ends(0).json();
    assert_eq!((&seen["sandbox"]["profile"], &seen["exit_code"]), (&"hand_read_only".into(), &0.into()), "{seen}");
    assert_eq!(seen["side_effects"]["state"], "none", "{seen}");
    let sessions = world.run(&["sessions", "list", "--json"]).ends(0).json();
    let session = sessions["sessions"][0]["session_id"].as_str().expect("an id").to_owned();
    let log = world.run(&["sessions", "events", &session, "--limit", "1000", "--json"]).ends(0).lines();
    let append = |kind: &str| log.iter().find(|event| event["type"] == kind).expect("it is there")["append_id"].clone();
    assert_eq!(append("tool.intent"), append("tool.observation"), "one commit, as for any look");
}

#[test]
fn a_rule_that_a_tools_own_default_outweighs_is_named_by_check() {
    let world = World::new();
    let rule = |action: &str, effect: &str| {
        let words = "argv = [\"python3\", \"-m\", \"unittest\"]";
        world.configure(&format!("[[rules]]\nid = \"tests\"\naction = \"{action}\"\n{words}\neffect = \"{effect}\"\n"))
    };
    let input = r#"{"command":"python3 -m unittest"}"#;
    for action in ["shell_run", "shell_exec", "shell_*"] {
        rule(action, "allow");
        world.run(&["policy", "check"]).ends(1).says("never decides").says("asks every time by its own default");
        world.run(&["policy", "explain", "shell_run", input]).ends(3).says("pinned");
    }
    // The control: a rule that decides for `bash`, and a deny.
    rule("*", "allow");
    world.run(&["policy", "check"]).ends(0);
    world.run(&["--profile", "code", "policy", "explain", "bash", input]).ends(0).says("allow");
    rule("*", "deny");
    world.run(&["policy", "check"]).ends(0);
    world.run(&["policy", "explain", "shell_run", input]).ends(4);
    // The answer to such an ask says it as well.
    rule("shell_run", "allow");
    let ask = world.run(&["call", "shell_run", r#"{"command":"true"}"#]).ends(3).id("ask_");
    let said =
        world.run(&["approvals", "allow", &ask, "--save"]).ends(1).warns("no rule and no earlier answer allows it");
    assert!(!said.err.contains("write a rule"), "{}", said.err);
}

#[test]
fn explain_names_the_deny_of_a_line_that_the_read_only_hand_refuses() {
    let world = World::new();
    world.configure("[[rules]]\nid = \"no-push\"\naction = \"*\"\nargv = [\"git\", \"push\"]\neffect = \"deny\"\n");
    let explain =
        |line: &str| world.run(&["policy", "explain", "bash", &format!("{{\"command\":\"{line}\"}}")]).ends(1);
    explain("git push").says("refused").says("rule `no-push`");
    // The control: a line that is refused and not denied.
    assert!(!explain("cargo build").says("refused").out.contains("no-push"));
}
