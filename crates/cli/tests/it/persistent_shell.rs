//! The persistent shell through the whole gate: in one process, and from process to process.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{Ran, World, binary, comes_by};
use portcullis::hand::Launcher;
use portcullis::{CallOutcome, CancellationToken, Observed, Profile, Reply, Runtime, RuntimeBuilder, SessionId};
use serde_json::{Value, json};

/// A runtime whose approver says yes to everything.
struct Gate {
    world: World,
    runtime: Runtime,
    session: SessionId,
}

async fn gate() -> Gate {
    gate_with(|builder| builder).await
}

async fn gate_with(change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder) -> Gate {
    let world = World::with_file("sub/deep/file", "text\n");
    let builder = Runtime::builder().workspace(&world.workspace).launcher(Launcher::helper(binary()));
    let builder = change(builder.approver(|_| std::future::ready(Reply::AllowOnce)));
    let runtime = builder.build().expect("builds");
    let session = runtime.create_session("test").await.expect("a session");
    Gate { world, runtime, session }
}

impl Gate {
    async fn call(&self, tool: &str, input: Value) -> Observed {
        match self.runtime.call(self.session, tool, &input.to_string()).await.expect("a store") {
            CallOutcome::Observed(seen) => seen.session_view().clone(),
            other => panic!("{tool} was not run: {other:?}"),
        }
    }

    async fn exec(&self, command: &str) -> Observed {
        self.call("shell_exec", json!({ "command": command })).await
    }

    /// What a command wrote that must end well.
    async fn ok(&self, command: &str) -> String {
        let seen = self.exec(command).await;
        assert!(seen.ok, "`{command}`: {} {}", seen.code, seen.summary);
        text(&seen)
    }

    async fn describe(&self) -> Value {
        document(&self.call("shell_describe", json!({})).await)
    }
}

fn text(seen: &Observed) -> String {
    seen.content.iter().filter_map(|part| part.text.as_deref()).collect()
}

fn document(seen: &Observed) -> Value {
    assert!(seen.ok, "{} {}", seen.code, seen.summary);
    seen.structured.clone().expect("a document")
}

fn code(seen: &Observed) -> String {
    seen.code.to_string()
}

/// Whether a process runs whose command line holds this mark.
fn alive(mark: &str) -> bool {
    fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
    })
}

fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}{:03}", std::process::id() + 300_000, NEXT.fetch_add(1, Ordering::Relaxed))
}

#[tokio::test(flavor = "multi_thread")]
async fn check20_export_and_cd_in_shell_exec_are_there_for_every_later_command() {
    let gate = gate().await;
    let seen = gate.exec("export A=1; cd sub; x=local; PATH=/nowhere:$PATH; export PATH").await;
    let out = document(&seen);
    assert_eq!((&out["cwd"], &out["exitCode"]), (&json!("/workspace/sub"), &json!(0)));
    assert_eq!(out["env"]["keys"], json!(["A"]), "protected names and what is not exported are not kept");
    assert_eq!(gate.ok("pwd; echo $A $x").await, "/workspace/sub\n1 local\n");
    let seen = gate.call("shell_run", json!({"command": "pwd; echo $A; echo [$x]; echo $PATH"})).await;
    let run = text(&seen);
    assert!(run.starts_with("/workspace/sub\n1\n[]\n") && !run.contains("nowhere"), "{run}");
    let described = gate.describe().await;
    assert_eq!(described["cwd"], "/workspace/sub");
    assert_eq!(described["persistentShell"]["status"], "active");
    assert_eq!(described["persistentShell"]["commandCount"], 2);
    assert_eq!(described["env"]["keys"], json!(["A"]));
    // What was set meanwhile, the shell has; what is unset in it, the session has no more.
    gate.call("shell_set_env", json!({"key": "B", "value": "it's\n\"two\""})).await;
    gate.call("shell_set_cwd", json!({"path": "sub/deep"})).await;
    assert_eq!(gate.ok("pwd; printf %s \"$B\"; unset A").await, "/workspace/sub/deep\nit's\n\"two\"");
    assert_eq!(gate.describe().await["env"]["keys"], json!(["B"]));
    gate.call("shell_unset_env", json!({"key": "B"})).await;
    assert_eq!(gate.ok("echo [$B]").await, "[]\n");
    // A folder that is given is entered first, and stayed in.
    let seen = gate.call("shell_exec", json!({"command": "pwd", "cwd": "sub"})).await;
    assert_eq!(text(&seen), "/workspace/sub\n");
    assert_eq!(gate.ok("pwd").await, "/workspace/sub\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn h43_a_fresh_shell_has_folder_and_environment_and_nothing_else_of_the_old_one() {
    let gate = gate().await;
    gate.ok("export A=1; cd sub; f() { echo f; }").await;
    let restarted = document(&gate.call("shell_restart", json!({})).await);
    assert_eq!(restarted["cwd"], "/workspace/sub");
    assert_eq!(restarted["persistentShell"]["commandCount"], 0);
    assert_eq!(gate.ok("pwd; echo $A; type f 2>/dev/null || echo gone").await, "/workspace/sub\n1\ngone\n");
    let open = document(&gate.call("shell_open", json!({})).await);
    assert_eq!(open["persistentShell"]["commandCount"], 1, "the one that runs");
    let closed = document(&gate.call("shell_close", json!({})).await);
    assert_eq!(closed["closed"], true);
    assert_eq!(document(&gate.call("shell_close", json!({})).await)["closed"], false);
    assert_eq!(gate.describe().await["recoveryPlan"]["tool"], "shell_restart");
    assert_eq!(gate.ok("pwd; echo $A").await, "/workspace/sub\n1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn h43_a_shell_left_outside_of_the_workspace_is_brought_back() {
    let gate = gate().await;
    gate.ok("cd sub").await;
    let seen = gate.exec("cd /tmp && pwd").await;
    assert_eq!(text(&seen), "/tmp\n");
    assert!(seen.warnings.iter().any(|warning| warning.contains("outside of the workspace")), "{:?}", seen.warnings);
    assert_eq!(document(&seen)["cwd"], "/workspace/sub");
    assert_eq!(gate.ok("pwd").await, "/workspace/sub\n");
    let seen = gate.exec("mkdir gone && cd gone && rmdir ../gone").await;
    assert!(seen.warnings.iter().any(|warning| warning.contains("outside")), "{:?}", seen.warnings);
    assert_eq!(gate.ok("pwd").await, "/workspace/sub\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn check19_much_output_and_our_own_words_end_right_and_leave_the_shell_usable() {
    let gate = gate().await;
    let seen = gate.exec("head -c 10485760 /dev/zero | tr '\\0' x; (exit 7)").await;
    assert_eq!((code(&seen).as_str(), seen.exit_code), ("command_failed", Some(7)));
    assert_eq!(seen.capture[0].total_bytes, 10 << 20);
    assert!(seen.capture[0].complete && seen.truncated);
    let seen = gate.exec(r"printf '\0%s\0%s\0%s\0' 00000000000000000000000000000000 0 /; (exit 3)").await;
    assert_eq!(seen.exit_code, Some(3));
    let seen = gate.exec(r"printf '\377\0\033[31mred'").await;
    assert!(seen.ok);
    assert_eq!(gate.ok("echo usable").await, "usable\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn h43_a_command_that_ends_its_shell_is_told_so_and_the_next_one_has_another() {
    let gate = gate().await;
    gate.ok("export A=1; cd sub").await;
    for (command, how, exit_code) in [
        ("echo out; exit 3", "command_failed", Some(3)),
        ("ls && exit 0", "ok", Some(0)),
        ("exec true", "ok", Some(0)),
        ("set -e; echo err >&2; false; echo no", "command_failed", Some(1)),
        ("echo exit >&2; exit 5", "command_failed", Some(5)),
        ("kill -9 $$", "tool_failure", None),
    ] {
        let seen = gate.exec(command).await;
        assert_eq!((code(&seen).as_str(), seen.exit_code), (how, exit_code), "{command}");
        assert_eq!(seen.ok, exit_code == Some(0), "{command}");
        if exit_code.is_some() {
            let warned = seen.warnings.iter().any(|warning| warning.contains("the shell ended"));
            assert!(warned, "{command}: {:?}", seen.warnings);
        } else {
            assert_eq!(seen.tool_code.as_deref(), Some("shell_died"), "{command}");
            assert!(seen.summary.contains("signal 9"), "{command}: {}", seen.summary);
            assert_eq!(serde_json::to_value(&seen.side_effects).expect("json")["state"], "unknown");
        }
        // The shell itself says `exit`; only what the command said is shown.
        let said = text(&seen).lines().filter(|line| *line == "exit").count();
        assert_eq!(said, usize::from(command.starts_with("echo exit")), "{command}: {}", text(&seen));
        let described = gate.describe().await;
        assert_eq!(described["persistentShell"]["status"], "closed", "{command}");
        assert_eq!(described["recoveryPlan"]["tool"], "shell_restart");
        assert_eq!(gate.ok("pwd; echo $A").await, "/workspace/sub\n1\n", "after {command}");
    }
    // The control: a shell that lives on.
    let seen = gate.exec("echo exit >&2; (exit 3)").await;
    assert_eq!(seen.exit_code, Some(3));
    assert!(text(&seen).lines().any(|line| line == "exit"), "{}", text(&seen));
    assert!(seen.warnings.is_empty(), "{:?}", seen.warnings);
    // Noticed also while nothing runs.
    gate.ok("(sleep 0.2; kill -9 $$) >/dev/null 2>&1 &").await;
    let mut status = json!("active");
    let begun = Instant::now();
    while status == "active" && begun.elapsed() < Duration::from_secs(30) {
        status = gate.describe().await["persistentShell"]["status"].clone();
    }
    assert_eq!(status, "closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn l24_an_interrupted_command_leaves_its_shell_as_it_was() {
    let gate = gate().await;
    gate.ok("x=kept; cd sub").await;
    let input = json!({"command": "echo so far; touch began; sleep 600; touch gone"}).to_string();
    let call = gate.runtime.begin(gate.session, "shell_exec", &input);
    comes_by("it runs", || gate.world.workspace.join("sub/began").exists()).await;
    let begun = Instant::now();
    call.cancel();
    let CallOutcome::Observed(seen) = call.outcome().await.expect("it ends") else { panic!("it has not ended") };
    let seen = seen.session_view();
    // The shell ends the line that was interrupted.
    assert_eq!((code(seen).as_str(), text(seen).trim_end(), seen.synthetic), ("cancelled", "so far", true));
    assert_eq!(serde_json::to_value(&seen.side_effects).expect("json")["state"], "unknown");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(gate.ok("echo $x; pwd").await, "kept\n/workspace/sub\n", "the shell survived");
    assert!(!gate.world.workspace.join("sub/gone").exists(), "what was interrupted went on");
}

#[tokio::test(flavor = "multi_thread")]
async fn l44_neither_a_daemon_that_holds_stdout_nor_one_that_ignores_signals_holds_the_call() {
    let gate = gate().await;
    let mark = mark();
    let begun = Instant::now();
    assert_eq!(gate.ok(&format!("(setsid sleep {mark} &); echo done")).await, "done\n");
    // It sleeps for days; a shell is opened first, which takes a busy machine its time.
    assert!(begun.elapsed() < Duration::from_secs(10), "the daemon held the call for {:?}", begun.elapsed());
    comes_by("it lives as long as its shell", || alive(&mark)).await;
    let begun = Instant::now();
    let input = json!({"command": "x=kept; sleep 600; touch gone", "timeoutMs": 400});
    let seen = gate.call("shell_exec", input).await;
    assert_eq!(code(&seen), "timeout");
    assert!(begun.elapsed() < Duration::from_millis(400 + 5_000), "{:?}", begun.elapsed());
    assert_eq!(gate.ok("echo $x; ls gone 2>&1 || true").await.lines().next(), Some("kept"), "the shell survived");
    assert!(!gate.world.workspace.join("gone").exists(), "what was interrupted went on");
    let begun = Instant::now();
    let stubborn = "echo first; sh -c 'trap \"\" INT TERM; while :; do sleep 1; done'; touch gone";
    let seen = gate.call("shell_exec", json!({"command": stubborn, "timeoutMs": 400})).await;
    assert_eq!((code(&seen).as_str(), text(&seen).as_str()), ("timeout", "first\n"));
    assert!(begun.elapsed() < Duration::from_millis(400 + 5_000), "{:?}", begun.elapsed());
    assert!(!alive(&mark), "its shell was closed");
    let history = document(&gate.call("shell_history", json!({})).await);
    assert_eq!(history["commands"][0]["timedOut"], true);
    assert_eq!(history["recoveryPlan"]["tool"], "shell_restart");
    assert_eq!(gate.ok("echo again").await, "again\n");
    assert!(!gate.world.workspace.join("gone").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_is_seen_waited_for_and_collected_once() {
    let gate = Arc::new(gate().await);
    let stop = CancellationToken::new();
    let (serving, stopping) = (Arc::clone(&gate), stop.clone());
    let served = tokio::spawn(async move { serving.runtime.serve(serving.session, &stopping).await });
    // A call before that would hold the session itself and wait for its own background task.
    comes_by("the session is served", || gate.runtime.serves(gate.session)).await;
    let go = gate.world.workspace.join("go");
    let line = "echo begun; while [ ! -e go ]; do sleep 0.02; done; export DONE=yes; echo ended; (exit 4)";
    let seen = gate.call("shell_exec", json!({"command": line, "background": true})).await;
    assert_eq!(code(&seen), "background_started");
    assert!(seen.structured.as_ref().is_some_and(|value| value["task_id"].is_string()));
    let waited = document(&gate.call("shell_wait", json!({"timeoutMs": 100})).await);
    assert_eq!((&waited["status"], &waited["result"]), (&json!("running"), &Value::Null));
    let described = gate.describe().await;
    assert_eq!(described["persistentShell"]["busy"], true);
    assert_eq!(described["persistentShell"]["currentCommand"], line);
    assert_eq!(described["persistentShell"]["currentStdoutPreview"], "begun\n");
    assert_eq!(described["busyPlan"]["tool"], "shell_wait");
    // Nobody else gets in; a look does.
    let begun = Instant::now();
    let refused = gate.exec("echo me too").await;
    assert_eq!(code(&refused), "lock_conflict", "{}", refused.summary);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(code(&gate.call("shell_restart", json!({})).await), "lock_conflict");
    fs::write(&go, "").expect("written");
    let waited = document(&gate.call("shell_wait", json!({"timeoutMs": 60_000})).await);
    assert_eq!((&waited["status"], &waited["result"]["exitCode"]), (&json!("completed"), &json!(4)));
    assert_eq!(waited["result"]["stdoutPreview"], "begun\nended\n");
    assert_eq!(waited["shellState"]["env"]["keys"], json!(["DONE"]), "it is in the session's state");
    assert_eq!(waited["shellState"]["lastCommand"]["commandId"], waited["result"]["commandId"]);
    let waited = document(&gate.call("shell_wait", json!({})).await);
    assert_eq!((&waited["status"], &waited["result"]), (&json!("idle"), &Value::Null), "once");
    // One that runs too long goes away instead of being stopped, and force stops it.
    let mark = mark();
    let line = format!("sleep {mark}; touch after");
    let seen = gate.call("shell_exec", json!({"command": line, "timeoutMs": 200, "onTimeout": "detach"})).await;
    assert_eq!(code(&seen), "background_started");
    assert!(alive(&mark));
    let forced = gate.call("shell_restart", json!({"force": true})).await;
    assert!(forced.ok, "{}", forced.summary);
    comes_by("it is stopped", || !alive(&mark)).await;
    assert_eq!(gate.ok("echo $DONE; ls after 2>/dev/null; true").await, "yes\n");
    // The death of a shell is an end, too.
    gate.call("shell_exec", json!({"command": "sleep 0.3; kill -9 $$", "background": true})).await;
    let waited = document(&gate.call("shell_wait", json!({"timeoutMs": 60_000})).await);
    assert_eq!(waited["status"], "error", "{waited}");
    stop.cancel();
    served.await.expect("no panic").expect("served");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_closes_every_shell() {
    let gate = gate().await;
    let mark = mark();
    gate.ok(&format!("sleep {mark} >/dev/null 2>&1 &")).await;
    // A process that a shell has just forked bears the shell's name for a moment.
    comes_by("it runs", || alive(&mark)).await;
    gate.runtime.shutdown().await;
    assert!(!alive(&mark), "a process outlived the runtime");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_could_see_a_file_denied_since_is_started_anew() {
    let rules = portcullis::parse_rules(
        "[[rules]]\nid = \"no-env\"\naction = \"read\"\npath = \"**/.env\"\neffect = \"deny\"\n",
        "rules.toml",
        portcullis::Layer::User,
    );
    let policy = portcullis::PolicyBuilder::new().rules(rules.expect("rules")).build().expect("a policy");
    let gate = gate_with(|builder| builder.policy(policy)).await;
    gate.ok("export A=1; x=local").await;
    // Somebody else makes it: the shell stands and could read it.
    fs::write(gate.world.workspace.join(".env"), "SECRET=4711\n").expect("written");
    let seen = gate.exec("cat ./.env; echo $A [$x]; python3 -c 'print(open(\"/workspace/.env\").read())'; true").await;
    assert!(!text(&seen).contains("4711"), "{}", text(&seen));
    assert!(text(&seen).contains("1 []"), "a fresh shell with the session's environment: {}", text(&seen));
    assert!(seen.warnings.iter().any(|warning| warning.contains("anew")), "{:?}", seen.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bash_of_profile_code_is_the_same_shell_and_asks_unpinned() {
    let gate = gate_with(|builder| builder.profile(Profile::Code)).await;
    let bash = |input: Value| gate.call("bash", input);
    assert_eq!(text(&bash(json!({"command": "cd sub; export A=1; x=2"})).await), "(no output; exit code 0)");
    assert_eq!(text(&bash(json!({"command": "pwd; echo $A $x"})).await), "/workspace/sub\n1 2\n");
    let seen = bash(json!({"restart": true})).await;
    assert!(seen.ok, "{}", seen.summary);
    assert_eq!(
        text(&bash(json!({"command": "pwd; echo $A [$x]", "timeout_ms": 5000})).await),
        "/workspace/sub\n1 []\n"
    );
    assert_eq!(code(&bash(json!({})).await), "schema_invalid");
    assert_eq!(bash(json!({"command": "exit 2"})).await.exit_code, Some(2));
    assert_eq!(bash(json!({"command": "grep nothing deep/file"})).await.code.to_string(), "no_matches");
    let offered: Vec<String> = gate.runtime.offer(gate.session).entries().map(|(name, _)| name.to_string()).collect();
    assert!(!offered.iter().any(|name| name.starts_with("shell_")), "{offered:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bash_of_profile_code_asks_for_all_but_lines_that_only_look() {
    let gate = gate_with(|builder| builder.profile(Profile::Code).approver(|_| std::future::ready(Reply::Deny))).await;
    let seen = gate.call("bash", json!({"command": "ls sub && grep -c text sub/deep/file"})).await;
    assert!(seen.ok && text(&seen) == "deep\n1\n", "{} {}", seen.summary, text(&seen));
    for line in
        ["touch made", "cd sub", "cd sub && ls", "ls > made", "FOO=1 ls", "cat $(echo sub)", "ls &", "bash -c ls"]
    {
        let seen = gate.call("bash", json!({ "command": line })).await;
        assert_eq!(code(&seen), "user_denied", "`{line}`: {}", seen.summary);
    }
    // A fresh shell first is the shell's, whatever comes after it.
    let seen = gate.call("bash", json!({"command": "ls", "restart": true})).await;
    assert_eq!(code(&seen), "user_denied");
    assert!(!gate.world.workspace.join("made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_hand_denied_is_named_also_of_a_command_in_the_shell() {
    let gate = gate().await;
    let seen = gate.exec("python3 -c 'import urllib.request as u; u.urlopen(\"http://example.com\")'").await;
    assert_eq!(code(&seen), "command_failed");
    assert!(seen.warnings.iter().any(|warning| warning.contains("network_disabled")), "{:?}", seen.warnings);
}

// From process to process.

fn exec(command: &str) -> String {
    json!({ "command": command }).to_string()
}

/// A call that asks, is allowed, and runs once.
fn allowed(world: &World, tool: &str, input: &str) -> Ran {
    let ask = world.run(&["call", tool, input]).ends(3).id("ask_");
    world.run(&["approvals", "allow", &ask])
}

#[test]
fn check20_folder_and_environment_carry_over_from_process_to_process_and_the_shell_does_not() {
    let world = World::with_file("sub/file", "x\n");
    let line = exec("export A=1; cd sub; x=local; f() { :; }; echo $$ > pid; echo ran");
    allowed(&world, "shell_exec", &line).ends(0).says("ran");
    let described = world.document("shell_describe");
    assert_eq!((&described["cwd"], &described["env"]["keys"]), (&json!("/workspace/sub"), &json!(["A"])));
    assert_eq!(described["persistentShell"]["status"], "closed", "it ended with its process");
    let line = exec("pwd; echo $A [$x]; type f >/dev/null 2>&1 || echo no function");
    allowed(&world, "shell_exec", &line).ends(0).says("/workspace/sub\n1 []\nno function\n");
    allowed(&world, "shell_run", &exec("pwd; echo $A")).ends(0).says("/workspace/sub\n1\n");
    let history = world.document("shell_history").to_string();
    assert!(history.contains("persistent-shell") && history.contains("export A=1"), "{history}");
    assert_eq!(world.document("shell_close")["closed"], false);
}

#[tokio::test]
async fn h08_what_a_command_of_the_shell_makes_at_a_guarded_place_is_told_once() {
    let gate = gate().await;
    let tells =
        |seen: &Observed| seen.warnings.iter().any(|warning| warning.contains("/workspace/.portcullis was not there"));
    assert!(!tells(&gate.exec("true").await));
    let seen = gate.exec("mkdir .portcullis").await;
    assert!(seen.ok && tells(&seen), "{:?}", seen.warnings);
    assert!(!tells(&gate.exec("true").await));
    gate.runtime.shutdown().await;
}
