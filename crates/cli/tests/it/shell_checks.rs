//! Checks of agent-runtime §11 that concern commands and shells, by transcripts of the real binary.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::common::{Ran, World, binary, comes};
use serde_json::{Value, json};

fn line(command: &str) -> String {
    json!({ "command": command }).to_string()
}

/// A call that nobody is asked about.
fn allowed(world: &World, tool: &str, input: &str) -> Ran {
    world.run(&["--approvals", "allow", "call", tool, input])
}

fn session(world: &World) -> String {
    world.run(&["sessions"]).ends(0).id("sesn_")
}

/// The payloads of every event of a type.
fn payloads(world: &World, kind: &str) -> Vec<Value> {
    let events = world.run(&["sessions", "events", &session(world), "--json"]).ends(0).lines();
    let of_kind = events.iter().filter(|event| event["type"] == kind);
    of_kind.map(|event| serde_json::from_str(event["payload"].as_str().expect("a payload")).expect("json")).collect()
}

/// A `sleep` that can be told from every other.
fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}{:03}", std::process::id() + 700_000, NEXT.fetch_add(1, Ordering::Relaxed))
}

fn alive(mark: &str) -> bool {
    fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(mark)
    })
}

/// Kills Portcullis while a command runs; what the log then says of this call and of those around it.
fn killed(tool: &str, more: &Value) -> (Vec<String>, Vec<String>) {
    let world = World::new();
    allowed(&world, tool, &line("export BEFORE=1; echo before")).ends(0).says("before");
    let mark = mark();
    let command = format!("touch begun; setsid sleep {mark} & sleep {mark}; touch after");
    let mut input = json!({ "command": command });
    input.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let mut child =
        world.command(&["--approvals", "allow", "call", tool, &input.to_string()]).spawn().expect("it runs");
    comes("the command runs", || alive(&mark) && world.workspace.join("begun").exists());
    if more.get("background").is_some() {
        // Before that it is a call like any other.
        comes("its call is settled", || payloads(&world, "tool.observation").len() == 2);
    }
    child.kill().expect("kill -9");
    child.wait().expect("reaped");
    comes("the command dies with it", || !alive(&mark));
    assert!(!world.workspace.join("after").exists());
    // The next call attends first.
    allowed(&world, tool, &line("echo after it")).ends(0).says("after it");
    assert!(!world.workspace.join("after").exists(), "it was run again");
    let code = |payload: &Value| payload["code"].as_str().expect("a code").to_owned();
    let observed = payloads(&world, "tool.observation");
    let ours = observed.iter().filter(|payload| payload["tool"] == tool);
    (ours.map(code).collect(), payloads(&world, "task.completed").iter().map(code).collect())
}

#[test]
fn f04_kill_9_during_shell_exec_ends_it_and_exactly_that_call_is_unknown() {
    assert_eq!(killed("shell_exec", &json!({})).0, ["ok", "outcome_unknown", "ok"]);
}

#[test]
fn f04_kill_9_during_a_background_command_ends_it_and_exactly_its_end_is_unknown() {
    let (observed, ends) = killed("shell_exec", &json!({"background": true}));
    assert_eq!(ends, ["outcome_unknown"]);
    assert_eq!(observed, ["ok", "background_started", "ok"]);
}

#[test]
fn check16_a_link_that_leads_outside_is_refused_by_every_tool() {
    let world = World::with_file("inside.txt", "inside\n");
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("secret"), "CANARY\n").expect("written");
    symlink(outside.path().join("secret"), world.workspace.join("file")).expect("linked");
    symlink(outside.path(), world.workspace.join("folder")).expect("linked");
    assert_eq!(world.read("file"), "CANARY\n", "the control: the link leads there");
    for (tool, input) in [
        ("read", json!({"file_path": "file"})),
        ("read", json!({"file_path": "folder/secret"})),
        ("write", json!({"file_path": "folder/made", "content": "x"})),
        ("write", json!({"file_path": "file", "content": "x"})),
        ("edit", json!({"file_path": "file", "old_string": "CANARY", "new_string": "x"})),
        ("glob", json!({"pattern": "*", "path": "folder"})),
        ("grep", json!({"pattern": "CANARY", "path": "folder"})),
        ("grep", json!({"pattern": "CANARY", "path": "file"})),
        ("bash", json!({"command": "cat file"})),
        ("bash", json!({"command": "cat folder/secret"})),
        ("bash", json!({"command": "cd folder && ls"})),
        ("shell_run", json!({"command": "cat file folder/secret"})),
        ("shell_run", json!({"command": "echo x > folder/made"})),
        ("shell_run", json!({"command": "touch made", "cwd": "folder"})),
        ("shell_exec", json!({"command": "cat file folder/secret"})),
        ("shell_exec", json!({"command": "echo x > folder/made"})),
        ("shell_exec", json!({"command": "touch made", "cwd": "folder"})),
        ("shell_open", json!({"cwd": "folder"})),
        ("shell_set_cwd", json!({"path": "folder"})),
    ] {
        let ran = allowed(&world, tool, &input.to_string());
        assert_ne!(ran.code, 0, "{tool} {input}: {}", ran.out);
        let shown = format!("{}{}", ran.out, ran.err);
        assert!(!shown.contains("CANARY"), "{tool} {input}: {shown}");
        assert!(
            !shown.contains(outside.path().to_str().expect("text")),
            "{tool} {input} tells where it leads: {shown}"
        );
    }
    let names: Vec<_> = fs::read_dir(outside.path()).expect("listed").flatten().map(|one| one.file_name()).collect();
    assert_eq!(names, ["secret"]);
    assert_eq!(fs::read_to_string(outside.path().join("secret")).expect("read"), "CANARY\n");
}

#[test]
fn check17_no_result_error_event_or_artifact_of_a_tool_holds_a_host_path_or_an_env_value() {
    let world = World::with_file("sub/file", "text\n");
    let secret = "VALUE-4711-of-a-variable";
    let host = world.workspace.parent().expect("a parent").to_str().expect("text").to_owned();
    allowed(&world, "shell_set_env", &json!({"key": "HELD", "value": secret}).to_string()).ends(0);
    let mut shown = String::new();
    for (tool, input) in [
        ("read", json!({"file_path": "missing"})),
        ("read", json!({"file_path": "sub"})),
        ("write", json!({"file_path": "sub/file/x", "content": "x"})),
        ("edit", json!({"file_path": "sub/file", "old_string": "a", "new_string": "b"})),
        ("glob", json!({"pattern": "**/*"})),
        ("grep", json!({"pattern": "(", "path": "sub"})),
        ("bash", json!({"command": "pwd; ls -la sub; realpath sub/file; stat sub/file; cat missing"})),
        ("bash", json!({"command": "find . -name file; du -a; git status"})),
        ("shell_run", json!({"command": "pwd; ls -la / /workspace; cat missing"})),
        ("shell_run", json!({"command": "exit 3", "cwd": "sub"})),
        ("shell_run", json!({"command": "true", "cwd": "missing"})),
        ("shell_exec", json!({"command": "cd sub; pwd; cat missing; seq 1 40000; (exit 5)"})),
        ("shell_exec", json!({"command": "kill -9 $$"})),
        ("shell_exec", json!({"command": "true", "cwd": "sub/file"})),
        ("shell_describe", json!({})),
        ("shell_history", json!({})),
        ("shell_read_last_output", json!({})),
        ("shell_close", json!({})),
    ] {
        let ran = allowed(&world, tool, &input.to_string());
        shown.push_str(&format!("--- {tool} {input}\n{}{}\n", ran.out, ran.err));
    }
    let events = world.run(&["sessions", "events", &session(&world), "--json"]).ends(0).lines();
    for event in &events {
        // What the log itself says of the session names its workspace; nothing of a tool does.
        if event["type"] != "session.created" {
            shown.push_str(&format!("{event}\n"));
        }
    }
    let mut artifacts = vec![world.home.join("artifacts")];
    while let Some(folder) = artifacts.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type().expect("a type").is_dir() {
                true => artifacts.push(entry.path()),
                false => shown.push_str(&String::from_utf8_lossy(&fs::read(entry.path()).expect("read"))),
            }
        }
    }
    let around = |what: &str| {
        let at = shown.find(what).unwrap_or_default();
        shown[..at].chars().rev().take(300).collect::<Vec<_>>().into_iter().rev().collect::<String>()
    };
    assert!(!shown.contains(&host), "a host path after: {}", around(&host));
    assert!(!shown.contains(secret), "a value after: {}", around(secret));
}

#[test]
fn check38_a_build_reads_nothing_that_is_denied_and_what_was_kept_from_it_is_named() {
    let world = World::with_file(".env", "CANARY-one\n");
    world.write("Makefile", "all:\n\t@cat .env deep/.env || true\n\t@python3 read.py\n");
    world.write("read.py", "import os\nfor p in ('.env', 'deep/.env'):\n    try:\n        print(open(p).read())\n    except OSError as e:\n        print(p, e.strerror)\n");
    world.write("deep/kept", "");
    world.configure("[[rules]]\naction = \"read\"\npath = \"**/.env\"\neffect = \"allow\"\n");
    allowed(&world, "shell_run", &line("make")).ends(0).says("CANARY-one");
    world.configure("[[rules]]\nid = \"no-env\"\naction = \"read\"\npath = \"**/.env\"\neffect = \"deny\"\n");
    for tool in ["shell_run", "shell_exec"] {
        let ran = allowed(&world, tool, &line("make"));
        assert!(!format!("{}{}", ran.out, ran.err).contains("CANARY"), "{tool}: {} {}", ran.out, ran.err);
    }
    // Made since, by somebody else: the next command finds it closed, too.
    world.write("deep/.env", "CANARY-two\n");
    for tool in ["shell_run", "shell_exec"] {
        let ran = allowed(&world, tool, &line("make; cat deep/.env"));
        assert!(!format!("{}{}", ran.out, ran.err).contains("CANARY"), "{tool}: {} {}", ran.out, ran.err);
        ran.ends(1).warns("path_hidden").warns("no-env");
    }
    let ran = allowed(&world, "bash", &line("grep -r CANARY ."));
    assert!(!ran.out.contains("CANARY-"), "{}", ran.out);
    let fetch = "python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'";
    for tool in ["shell_run", "shell_exec"] {
        allowed(&world, tool, &line(fetch)).ends(1).warns("network_disabled").warns("[sandbox]");
    }
}

#[test]
fn why_a_command_failed_is_said_once() {
    let world = World::new();
    let fetch = "python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'";
    for tool in ["shell_run", "shell_exec"] {
        let ran = allowed(&world, tool, &line(fetch)).ends(1).warns("exit code 1");
        assert_eq!(ran.err.matches("network_disabled").count(), 1, "{tool}: {}", ran.err);
    }
    let wrong = allowed(&world, "shell_run", r#"{"cmd":"ls"}"#).ends(1).warns("\"command\" is a required property");
    assert_eq!(wrong.err.matches("'cmd' was unexpected").count(), 1, "{}", wrong.err);
    // The same words about another field are about that field.
    let both = allowed(&world, "shell_run", r#"{"command":1,"cwd":1}"#).ends(1).warns("/command").warns("/cwd");
    assert_eq!(both.err.matches("is not of type").count(), 2, "{}", both.err);
}

/// On a machine without some programs of `/usr/bin`: an overlay in a mount namespace of its own.
fn without(world: &World, programs: &[&str], tool: &str, input: &str) -> Ran {
    let scratch = tempfile::tempdir().expect("a folder");
    let (upper, work) = (scratch.path().join("upper"), scratch.path().join("work"));
    fs::create_dir(&upper).expect("made");
    fs::create_dir(&work).expect("made");
    let script = format!(
        "mount -t overlay overlay -o lowerdir=/usr/bin,upperdir={},workdir={} /usr/bin || exit 99; \
         rm $1 || exit 99; shift; exec \"$@\"",
        upper.display(),
        work.display()
    );
    let gone: Vec<String> = programs.iter().map(|name| format!("/usr/bin/{name}")).collect();
    // `sh` itself may be one of them: it is in memory already.
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, "sh", &gone.join(" ")]).arg(binary());
    command.args(["--approvals", "allow", "call", tool, input]).current_dir(&world.workspace).env_clear();
    command.env("PATH", "/usr/bin:/bin").env("PORTCULLIS_HOME", &world.home).env("HOME", &world.home);
    command.env("XDG_CONFIG_HOME", &world.config).stdin(Stdio::null());
    let ran: Ran = command.output().expect("this test needs `unshare`").into();
    assert_ne!(ran.code, 99, "this test needs root and overlayfs: {}", ran.err);
    ran
}

#[test]
fn a_program_that_is_not_installed_is_named_and_what_to_do() {
    let world = World::with_file("a.json", "{\"a\": 1}\n");
    let input = line("cat a.json | jq .a");
    allowed(&world, "bash", &input).ends(0).says("1");
    let ran = without(&world, &["jq"], "bash", &input).ends(1);
    ran.warns("`jq` is not installed").warns("/usr/bin").warns("install it");
    // What is no program of the read-only hand is not looked for.
    let ran = allowed(&world, "bash", &line("no-such-program-4711")).ends(1);
    assert!(!ran.err.contains("not installed"), "{}", ran.err);
    for tool in ["shell_run", "shell_exec"] {
        let ran = allowed(&world, tool, &line("no-such-program-4711")).ends(1);
        ran.says("no-such-program-4711: command not found").warns("found no program of that name");
    }
}

#[test]
fn without_bash_there_is_sh_and_without_either_it_is_said() {
    let world = World::new();
    for tool in ["shell_run", "shell_exec"] {
        let ran = without(&world, &["bash"], tool, &line("echo works in ${BASH_VERSION:-sh}"));
        ran.ends(0).says("works in sh");
        let ran = without(&world, &["bash", "sh", "dash"], tool, &line("touch ran")).ends(1);
        ran.warns("there is neither /bin/bash nor /bin/sh");
    }
    assert!(!world.workspace.join("ran").exists());
}
