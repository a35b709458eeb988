//! Commands in the sandbox, by transcripts of the real binary: asked for, run once, kept from what may not be read, gone
//! with the process that started them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Child;

use crate::common::{Ran, World, comes};
use serde_json::{Value, json};

fn line(command: &str) -> String {
    json!({ "command": command }).to_string()
}

/// One command that nobody is asked about.
fn sh(world: &World, command: &str) -> Ran {
    world.run(&["--approvals", "allow", "call", "shell_run", &line(command)])
}

fn session(world: &World) -> String {
    world.document("shell_describe")["sessionId"].as_str().expect("an id").to_owned()
}

fn events(world: &World, session: &str) -> Vec<Value> {
    let mut events = world.run(&["sessions", "events", session, "--json"]).ends(0).lines();
    for event in &mut events {
        let payload = event["payload"].as_str().expect("a payload");
        event["payload"] = serde_json::from_str(payload).expect("a document");
    }
    events
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// A number that no other process has in its command line.
fn mark() -> String {
    format!("{}{:09}", std::process::id(), std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a time").subsec_nanos())
}

fn alive(mark: &str) -> bool {
    fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        fs::read(entry.path().join("cmdline")).is_ok_and(|line| {
            // The command itself, not whoever was told to run it.
            line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(mark)
        })
    })
}

#[test]
fn shell_run_asks_shows_where_it_runs_and_runs_once() {
    let world = World::new();
    let asked = world.run(&["call", "shell_run", &line("echo ran >> log; echo out; echo err >&2")]).ends(3);
    let ask = asked.id("ask_");
    assert!(!world.workspace.join("log").exists());
    world
        .run(&["approvals", "show", &ask])
        .ends(0)
        .says("sandbox         hand, isolation level full")
        .says("network         disabled")
        .says("those of the project may run")
        .says("path /workspace/log");
    // Pinned: nothing can be remembered.
    world.run(&["approvals", "allow", &ask, "--session"]).ends(1).warns("asks every time");
    world.run(&["approvals", "allow", &ask]).ends(0).says("out\n").says("err\n");
    assert_eq!(world.read("log"), "ran\n");
    world.run(&["approvals", "allow", &ask]).ends(1);
    assert_eq!(world.read("log"), "ran\n");

    let history = world.document("shell_history");
    assert_eq!(history["commands"][0]["command"], "shell");
    assert_eq!(history["commands"][0]["exitCode"], 0);
    assert_eq!(history["commands"][0]["stdoutPreview"], "out\n");
    let events = events(&world, &session(&world));
    let started = of_kind(&events, "tool.invocation.started");
    let sandbox = &started[0]["payload"]["sandbox"];
    assert_eq!((sandbox["profile"].as_str(), sandbox["level"].as_str()), (Some("hand"), Some("full")), "{started:?}");
    assert!(sandbox.get("missing").is_none_or(Value::is_array), "{sandbox}");
}

#[test]
fn a_command_has_the_folder_and_the_environment_of_the_session_and_nothing_of_ours() {
    let world = World::with_file("sub/here", "x");
    world.run(&["call", "shell_set_cwd", r#"{"path":"sub"}"#]).ends(0);
    world.run(&["call", "shell_set_env", r#"{"key":"GREETING","value":"hello there"}"#]).ends(0);
    let ran = sh(&world, "pwd; ls; env | sort").ends(0);
    let names: Vec<&str> =
        ran.out.lines().skip(2).filter_map(|line| line.split_once('=').map(|(name, _)| name)).collect();
    assert!(ran.out.starts_with("/workspace/sub\nhere\n"), "{}", ran.out);
    // PWD, SHLVL, OLDPWD and _ are the shell's own.
    let ours: Vec<&str> = names.into_iter().filter(|name| !["PWD", "SHLVL", "OLDPWD", "_"].contains(name)).collect();
    let wanted = ["GREETING", "HOME", "LANG", "PATH", "PORTCULLIS_SESSION_ID", "PORTCULLIS_WORKSPACE_CWD", "TMPDIR"];
    assert_eq!(ours, wanted);
    ran.says("GREETING=hello there").says("PORTCULLIS_WORKSPACE_CWD=/workspace/sub");
}

#[test]
fn a_failure_tells_exit_code_signal_and_what_was_written() {
    let world = World::new();
    sh(&world, "echo before; exit 7").ends(1).says("before").warns("command_failed").warns("exit code 7");
    sh(&world, "kill -TERM $$").ends(1).warns("signal 15");
    world
        .run(&["--approvals", "allow", "call", "shell_run", r#"{"command":"echo first; sleep 300","timeoutMs":500}"#])
        .ends(1)
        .says("first")
        .warns("timeout");
    let events = events(&world, &session(&world));
    let codes: Vec<_> = of_kind(&events, "tool.invocation.completed")
        .iter()
        .map(|event| (event["payload"]["exit_code"].clone(), event["payload"]["signal"].clone()))
        .collect();
    assert_eq!(codes[0].0, 7);
    assert_eq!(codes[1].1, 15);
    let ended = of_kind(&events, "shell.command_finished");
    assert_eq!(ended.len(), 3);
    assert_eq!(ended[2]["payload"]["command"]["timed_out"], true);
}

#[test]
fn output_beyond_its_limit_is_shown_round_its_errors_and_kept_whole() {
    let world = World::new();
    let command = "seq 1 20000; echo 'error: the needle'; seq 20001 40000";
    let ran = world.run(&[
        "--approvals",
        "allow",
        "call",
        "shell_run",
        &json!({"command": command, "maxOutputChars": 3000}).to_string(),
    ]);
    let ran = ran.ends(0).says("error: the needle");
    assert!(ran.out.len() < 6_000, "{} bytes are shown", ran.out.len());
    assert!(!ran.out.contains("\n15000\n"));
    let whole = ran.id("art_");
    let read = json!({"id": whole, "around": "\n15000\n"}).to_string();
    let read = world.run(&["call", "artifact_read", &read]);
    assert!(read.out.contains("15000"), "{} {}", read.out, read.err);
}

#[test]
fn check38_what_may_not_be_read_no_command_and_no_tool_shows_by_any_name() {
    let world = World::with_file(".env", "CANARY-one\n");
    world.write("deep/er/.env", "CANARY-two\n");
    world.write("ignored/.env", "CANARY-three\n");
    world.write(".gitignore", "ignored\n");
    fs::hard_link(world.workspace.join("deep/er/.env"), world.workspace.join("hard")).expect("linked");
    symlink(".env", world.workspace.join("link")).expect("linked");
    let attempts = [
        "cat .env deep/er/.env ignored/.env",
        "python3 -c 'print(open(\".env\").read(), open(\"hard\").read())'",
        "cat link",
        "cat hard",
        "mv .env away; cat away; mv deep elsewhere; cat elsewhere/er/.env; mv elsewhere deep",
        "ln .env again; cat again; cp .env copy; cat copy",
        "cp -r . /tmp/all; grep -r CANARY /tmp/all .",
        "cat /proc/self/root/workspace/.env; cd /; cat workspace/hard",
        "tar cf - . | tr -d '\\0' | grep -a CANARY",
        "umount .env; mount --bind /dev/null hard; cat .env hard",
        "ls -la; stat .env",
    ];
    // The control: with a rule that allows it each of these files can be read.
    world.configure("[[rules]]\naction = \"read\"\npath = \"**/.env\"\neffect = \"allow\"\n");
    for name in [".env", "deep/er/.env", "ignored/.env", "hard", "link"] {
        sh(&world, &format!("cat {name}")).ends(0).says("CANARY");
    }
    world.run(&["call", "read", r#"{"file_path":"hard"}"#]).ends(0).says("CANARY");
    world.configure("[[rules]]\nid = \"no-env\"\naction = \"read\"\npath = \"**/.env\"\neffect = \"deny\"\n");
    let host = world.workspace.display().to_string();
    for attempt in attempts {
        let ran = sh(&world, attempt);
        assert!(!ran.out.contains("CANARY") && !ran.err.contains("CANARY"), "{attempt}: {} {}", ran.out, ran.err);
    }
    let ran = sh(&world, &format!("cat {host}/.env {host}/hard"));
    assert!(!ran.out.contains("CANARY"), "{}", ran.out);
    // It says why.
    sh(&world, "cat .env").ends(1).warns("path_hidden").warns("no-env");
    assert_eq!(world.read(".env"), "CANARY-one\n");
    assert_eq!(world.read("deep/er/.env"), "CANARY-two\n");

    for input in [".env", "hard", "link", "ignored/.env"] {
        let input = json!({ "file_path": input }).to_string();
        let ran = world.run(&["call", "read", &input]).ends(4);
        assert!(!ran.out.contains("CANARY"), "{}", ran.out);
    }
    for input in [json!({"pattern": "CANARY"}), json!({"pattern": "CANARY", "path": "deep"})] {
        let ran = world.run(&["call", "grep", &input.to_string()]);
        assert!(!ran.out.contains("CANARY-"), "{}", ran.out);
    }
    world.run(&["call", "grep", r#"{"pattern":"CANARY","path":"hard"}"#]).ends(4);
    let listed = world.run(&["call", "glob", r#"{"pattern":"**/*"}"#]).ends(0);
    assert!(!listed.out.contains("hard") && !listed.out.contains(".env\n"), "{}", listed.out);

    // A file that came since is covered by the next command.
    world.write("new/.env", "CANARY-four\n");
    let ran = sh(&world, "cat new/.env");
    assert!(!ran.out.contains("CANARY"), "{}", ran.out);
}

#[test]
fn h08_what_git_runs_and_what_the_runtime_reads_stays_as_it_is() {
    let world = World::with_file(".portcullis/config.toml", "");
    let git = |words: &str| sh(&world, &format!("HOME=/tmp git -c user.name=a -c user.email=a@b {words}"));
    git("init -q .").ends(0);
    world.write("file", "text");
    let attack = "mv .git .away; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo evil >> .git/config; \
                  rm -rf .git/hooks; mv .portcullis x; echo evil > .portcullis/config.toml; true";
    sh(&world, attack).ends(0);
    assert!(!world.workspace.join(".git/hooks/pre-commit").exists() && !world.workspace.join(".away").exists());
    assert!(!world.read(".git/config").contains("evil"));
    assert_eq!(world.read(".portcullis/config.toml"), "");
    // And work goes on.
    git("add file").ends(0);
    git("commit -qm first").ends(0);
    git("log --oneline").ends(0).says("first");

    let other = World::new();
    let ran = sh(&other, "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit").ends(0);
    let ran = ran.warns("/workspace/.git was not there before this command");
    assert!(!ran.err.contains(&other.workspace.display().to_string()), "no host path: {}", ran.err);
}

#[test]
fn exit_code_1_of_a_lone_search_or_test_is_an_answer_and_of_anything_else_a_failure() {
    let world = World::with_file("a", "text\n");
    for answer in ["grep nothing a", "diff a /dev/null >/dev/null", "test -f nothing", "[ -f nothing ]"] {
        sh(&world, answer).ends(0);
    }
    let ran = world.run(&["--approvals", "allow", "--json", "call", "shell_run", &line("grep nothing a")]).ends(0);
    assert_eq!(ran.json()["code"], "no_matches", "{}", ran.out);
    for failure in ["false", "grep x missing", "true; grep nothing a", "! grep text a"] {
        sh(&world, failure).ends(1);
    }
}

/// A mask goes with the file for the command that moves it; the next command is masked by names again.
#[test]
fn check38_a_rule_about_a_place_is_not_dodged_by_moving_the_folder_it_lies_in() {
    let world = World::with_file("conf/app/key.txt", "CANARY\n");
    world.write("conf/other.txt", "other\n");
    world.configure("[[rules]]\nid = \"no-key\"\naction = \"read\"\npath = \"conf/app/key.txt\"\neffect = \"deny\"\n");
    let host = world.workspace.display().to_string();
    for attempt in [
        "mv conf moved",
        "mv conf/app moved",
        &format!("mv {host}/conf {host}/moved"),
        "mkdir t && mv conf t/",
        "python3 -c 'import os; os.rename(\"conf\", \"moved\")'",
    ] {
        let _ = sh(&world, attempt);
        let ran = sh(&world, "cat conf/app/key.txt moved/key.txt moved/app/key.txt t/conf/app/key.txt; ls -R; true");
        assert!(!ran.out.contains("CANARY"), "{attempt}: {}", ran.out);
        assert_eq!(world.read("conf/app/key.txt"), "CANARY\n", "{attempt}");
    }
    sh(&world, "mv conf moved").ends(1).warns("path_hidden").warns("no-key");
    sh(&world, "mv conf/other.txt . && cat other.txt").ends(0).says("other");

    // Nor is what the runtime hides.
    let inside = World::with_file("a", "x");
    let data = inside.workspace.join("deep/data");
    let run = |command: &str| -> Ran {
        let words = ["--workspace-is-home", "--approvals", "allow", "call", "shell_run", &line(command)];
        inside.command(&words).env("PORTCULLIS_HOME", &data).output().expect("it runs").into()
    };
    run("true").ends(0);
    let ran = run("mv deep away; ls away/data/keys deep/data/keys");
    assert!(!ran.out.contains("sealing.key") && data.join("keys").is_dir(), "{}", ran.out);
}

/// `commondir` makes git read configuration and hooks elsewhere.
#[test]
fn h08_no_command_leads_the_persons_git_to_a_configuration_of_its_own() {
    let world = World::new();
    sh(&world, "HOME=/tmp git init -q .").ends(0);
    sh(&world, "echo ../evil > .git/commondir").ends(0).warns("/workspace/.git/commondir was not there before");
    fs::remove_file(world.workspace.join(".git/commondir")).expect("removed");

    for name in [".git/modules/lib/HEAD", ".git/worktrees/w/HEAD"] {
        world.write(name, "ref: refs/heads/x\n");
    }
    for name in [".git/modules/lib/config", ".git/modules/lib/hooks/x", ".git/worktrees/w/commondir"] {
        world.write(name, "kept");
    }
    let attack = "for f in modules/lib/config modules/lib/hooks/x worktrees/w/commondir; do \
                  echo evil > .git/$f; mv .git/$f .git/y; rm -f .git/$f; done; \
                  mv .git/modules/lib .git/modules/z; mv .git/modules .git/z; mv .git/worktrees .git/z; echo fine > .git/modules/lib/index";
    sh(&world, attack).ends(0);
    for name in [".git/modules/lib/config", ".git/modules/lib/hooks/x", ".git/worktrees/w/commondir"] {
        assert_eq!(world.read(name), "kept", "{name}");
    }
    assert_eq!(world.read(".git/modules/lib/index"), "fine\n", "a submodule can be worked in");
    // A linked working tree, or a submodule: git looks where this file says.
    let linked = World::with_file(".git", "gitdir: elsewhere\n");
    sh(&linked, "echo gitdir: evil > .git; rm -f .git; mv .git x; mkdir evil; mv evil .git; true").ends(0);
    assert_eq!(linked.read(".git"), "gitdir: elsewhere\n");
    sh(&World::new(), "echo gitdir: evil > .git").ends(0).warns("/workspace/.git was not there before this command");

    // It is said who kept it.
    sh(&world, "git config user.name x").ends(1).warns("read_only_mount").warns(".git/config");
}

#[test]
fn a_commit_is_by_the_person_and_nothing_else_of_their_configuration_is_there() {
    let world = World::with_file("file", "text");
    let home = world.home.join("person");
    fs::create_dir_all(&home).expect("made");
    fs::write(home.join(".gitconfig"), "[user]\nname = Ada\nemail = ada@home\n[credential]\nhelper = CANARY\n")
        .expect("written");
    let run = |command: &str| -> Ran {
        let words = ["--approvals", "allow", "call", "shell_run", &line(command)];
        world.command(&words).env("HOME", &home).output().expect("it runs").into()
    };
    run("git init -q . && git add file && git commit -qm first && git log --format='%an <%ae>'")
        .ends(0)
        .says("Ada <ada@home>");
    let ran = run("git config --list; cat ~/.gitconfig; echo evil >> ~/.gitconfig");
    assert!(!ran.out.contains("CANARY") && ran.out.contains("Ada"), "{}", ran.out);
    assert!(!fs::read_to_string(home.join(".gitconfig")).expect("there").contains("evil"));
}

#[test]
fn h08_the_store_its_keys_and_the_home_are_not_there() {
    let world = World::with_file("a", "x");
    // A data folder inside the workspace is as far away as any.
    let inside = World::with_file("a", "x");
    let data = inside.workspace.join("data");
    let run = |words: &[&str]| -> Ran {
        let words = [&["--workspace-is-home"], words].concat();
        inside.command(&words).env("PORTCULLIS_HOME", &data).output().expect("it runs").into()
    };
    run(&["call", "read", r#"{"file_path":"a"}"#]).ends(0);
    let ran = run(&[
        "--approvals",
        "allow",
        "call",
        "shell_run",
        &line("ls -A data; cat data/keys/*; find / -name '*.key' | grep portcullis"),
    ]);
    assert!(!ran.out.contains("sealing.key") && !ran.out.contains(".db"), "{}", ran.out);
    assert!(data.join("keys").is_dir(), "the control: it lies there");

    let home = world.home.display().to_string();
    fs::create_dir_all(world.home.join(".ssh")).expect("made");
    fs::write(world.home.join(".ssh/id_rsa"), "CANARY").expect("written");
    let ran =
        sh(&world, &format!("cat ~/.ssh/id_rsa {home}/.ssh/id_rsa {home}/keys/*; ls {home}; echo x > ~/kept; true"));
    assert!(!ran.out.contains("CANARY") && !ran.out.contains("sealing.key"), "{}", ran.out);
    assert!(!world.home.join("kept").exists(), "a home in memory");
}

#[test]
fn the_network_is_off_and_a_failure_for_that_is_named() {
    let world = World::new();
    let look_up = "python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'";
    sh(&world, look_up).ends(1).warns("network_disabled").warns("[sandbox]");
    sh(&world, "ls /sys/class/net 2>/dev/null; cat /proc/net/dev | grep -c : || true").ends(0).says("1");
    // A path that is nowhere is nobody's doing.
    let ran = sh(&world, "cat /no/such/file").ends(1);
    assert!(!ran.err.contains("path_hidden"), "{}", ran.err);
    sh(&world, "cat /etc/hosts.allow /root/.profile /etc/gshadow").ends(1);

    world.configure("[sandbox]\nnetwork = \"limited\"\n");
    let ran = sh(&world, "touch ran").ends(1).warns("sandbox_unavailable");
    assert!(!world.workspace.join("ran").exists(), "{}", ran.err);
    world.configure("[sandbox]\nnetwork = \"open\"\n");
    sh(&world, "true").ends(2).warns("is not one of disabled, enabled");
}

#[test]
fn a_rule_that_leaves_nothing_to_see_refuses_the_command_and_is_named() {
    let world = World::with_file("a", "x");
    for path in ["path = \"/workspace/**\"\n", ""] {
        world.configure(&format!("[[rules]]\nid = \"nothing\"\naction = \"read\"\n{path}effect = \"deny\"\n"));
        sh(&world, "touch ran").ends(1).warns("sandbox_unavailable").warns("`nothing`");
        assert!(!world.workspace.join("ran").exists());
    }
}

fn start(world: &World, command: &str) -> Child {
    world.command(&["--approvals", "allow", "call", "shell_run", &line(command)]).spawn().expect("it runs")
}

#[test]
fn f04_kill_9_while_a_command_runs_ends_the_command_and_exactly_that_call_is_unknown() {
    let world = World::new();
    sh(&world, "echo earlier").ends(0);
    let mark = mark();
    let mut child = start(&world, &format!("touch begun; setsid sleep {mark} & sleep {mark}; touch after"));
    comes("it runs", || alive(&mark) && world.workspace.join("begun").exists());
    child.kill().expect("killed");
    child.wait().expect("gone");
    comes("the command dies with it", || !alive(&mark));
    assert!(!world.workspace.join("after").exists());

    // The next call attends first.
    sh(&world, "echo later").ends(0).says("later");
    let events = events(&world, &session(&world));
    let observed: Vec<&str> = of_kind(&events, "tool.observation")
        .iter()
        .filter(|event| event["payload"]["tool"] == "shell_run")
        .filter_map(|event| event["payload"]["code"].as_str())
        .collect();
    assert_eq!(observed, ["ok", "outcome_unknown", "ok"]);
    assert_eq!(of_kind(&events, "tool.invocation.started").len(), 4, "nothing ran twice: {events:?}");
}

#[test]
fn real_projects_find_themselves_at_their_own_path_too() {
    let world = World::with_file("file", "x");
    let host = world.workspace.display().to_string();
    sh(&world, &format!("cat {host}/file; echo y > {host}/made; cd {host} && pwd")).ends(0).says(&host);
    assert_eq!(world.read("made"), "y\n");
}

#[test]
fn a_command_that_succeeds_has_an_exit_code_too() {
    let world = World::with_file("a.txt", "alpha\n");
    let exits = |tool: &str, input: &str, profile: &str| {
        let session =
            world.run(&["call", "--profile", profile, tool, input, "--approvals", "allow"]).ends(0).id("sesn_");
        let events = events(&world, &session);
        let last = events.iter().rfind(|event| event["type"] == "tool.observation").expect("an observation");
        last["payload"]["exit_code"].clone()
    };
    for (tool, input, profile) in [
        ("bash", r#"{"command":"cat a.txt"}"#, "code"),
        ("bash", r#"{"command":"touch made"}"#, "code"),
        ("bash", r#"{"command":"cat a.txt"}"#, "managed"),
        ("shell_run", r#"{"command":"touch made"}"#, "managed"),
    ] {
        assert_eq!(exits(tool, input, profile), 0, "{tool} {input} in {profile}");
    }
    assert_eq!(exits("bash", r#"{"command":"grep beta a.txt"}"#, "code"), 1, "an answer");
    assert_eq!(exits("read", r#"{"file_path":"a.txt"}"#, "code"), Value::Null, "no command ran");
}
