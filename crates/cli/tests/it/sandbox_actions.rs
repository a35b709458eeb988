//! `sandbox_execute` and `sandbox_describe` by the real binary and its hand: what commands and shells give, and that no
//! action is a way around a rule or an approval.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::{Ran, World, binary};
use portcullis::hand::Launcher;
use portcullis::{CallOutcome, Observed, Reply, Runtime, SessionId};
use serde_json::{Value, json};

fn action(name: &str, input: &Value) -> String {
    json!({"name": name, "input": input}).to_string()
}

/// One action that nobody is asked about.
fn run(world: &World, name: &str, input: &Value) -> Ran {
    world.run(&["--approvals", "allow", "call", "sandbox_execute", &action(name, input)])
}

/// What the session keeps of an action that must end well.
fn did(world: &World, name: &str, input: &Value) -> Value {
    let call = action(name, input);
    let ran = world.run(&["--json", "--approvals", "allow", "call", "sandbox_execute", &call]).ends(0);
    ran.json()["structured"].clone()
}

fn fields(document: &Value) -> Vec<&str> {
    let mut all: Vec<&str> = document.as_object().expect("an object").keys().map(String::as_str).collect();
    all.sort_unstable();
    all
}

fn sorted<const N: usize>(mut words: [&str; N]) -> [&str; N] {
    words.sort_unstable();
    words
}

const COMMAND: [&str; 12] = [
    "command",
    "args",
    "stageExitCodes",
    "cwd",
    "envKeys",
    "mountPath",
    "exitCode",
    "signal",
    "timedOut",
    "stdout",
    "stderr",
    "durationMs",
];

#[test]
fn run_command_and_run_shell_have_the_fields_of_the_table() {
    let world = World::with_file("sub/a.txt", "one\ntwo\n");
    let ran = did(&world, "run_command", &json!({"command": "wc", "args": ["-l", "a.txt"], "cwd": "sub"}));
    assert_eq!(fields(&ran), sorted(COMMAND));
    assert_eq!((&ran["command"], &ran["args"]), (&json!("wc"), &json!(["-l", "a.txt"])));
    assert_eq!((&ran["cwd"], &ran["mountPath"]), (&json!("/workspace/sub"), &json!("/workspace")));
    assert_eq!((&ran["exitCode"], &ran["stageExitCodes"]), (&json!(0), &json!([0])));
    let piped = did(&world, "run_command", &json!({"command": "cat sub/a.txt | head -n 1"}));
    assert_eq!(piped["stageExitCodes"], json!([0, 0]));
    run(&world, "run_command", &json!({"command": "cat sub/a.txt | tail -n 1"})).ends(0).says("two\n");
    run(&world, "run_command", &json!({"command": "rm sub/a.txt"})).ends(1).warns("command_not_allowed");
    run(&world, "run_command", &json!({"command": "cat sub/a.txt > b"})).ends(1).warns("command_not_allowed");

    let ran = did(&world, "run_shell", &json!({"command": "cd sub; cat a.txt | wc -l > n; cat n"}));
    let mut expected = COMMAND.to_vec();
    expected.push("shellPath");
    expected.sort_unstable();
    assert_eq!(fields(&ran), expected);
    assert_eq!((&ran["exitCode"], &ran["cwd"]), (&json!(0), &json!("/workspace")));
    assert!(ran["shellPath"].as_str().is_some_and(|path| path.starts_with("/bin/")), "{ran}");
    assert_eq!(world.read("sub/n").trim(), "2");
    run(&world, "run_shell", &json!({"command": "exit 3"})).ends(1).warns("exit code 3");
    run(&world, "run_shell", &json!({"command": "sleep 60", "timeoutMs": 300})).ends(1).warns("timeout");
}

#[test]
fn check17_a_variable_of_a_call_reaches_the_command_and_its_value_no_event() {
    let world = World::with_file("a.txt", "x\n");
    const VALUE: &str = "correct-horse-battery";
    let env = json!({"GREETING": VALUE});
    // It is measured and not printed: what a command prints is the command's.
    let test = format!("test ${{#GREETING}} = {} && echo same", VALUE.len());
    run(&world, "run_shell", &json!({"command": test, "env": env})).ends(0).says("same");
    run(&world, "run_shell", &json!({"command": "echo [$GREETING]"})).ends(0).says("[]");
    // Programs that only read get none, and the call says so.
    let seen = run(&world, "run_command", &json!({"command": "ls", "env": env})).ends(0);
    assert!(format!("{}{}", seen.out, seen.err).contains("get no variables"), "{} {}", seen.out, seen.err);
    // An approval holds for the call as it was made, value included.
    let call = action("run_shell", &json!({"command": test, "env": env}));
    let asked = world.run(&["call", "sandbox_execute", &call]).ends(3);
    let ask = asked.id("ask_");
    let shown = world.run(&["approvals", "show", &ask]).ends(0).says("variable GREETING");
    assert!(!shown.out.contains(VALUE), "{}", shown.out);
    world.run(&["approvals", "allow", &ask]).ends(0).says("same");
    let names = did(&world, "open_persistent_shell", &json!({"env": {"KEPT": VALUE}}));
    assert!(names["envKeys"].as_array().expect("names").contains(&json!("KEPT")), "{names}");
    run(&world, "run_shell", &json!({"command": test.replace("GREETING", "KEPT")})).ends(0).says("same");

    let session = world.document("shell_describe")["sessionId"].as_str().expect("an id").to_owned();
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0);
    assert!(events.out.contains("GREETING"), "the control: names are told");
    assert!(!events.out.contains(VALUE), "a value is in an event");
    let host = world.workspace.display().to_string();
    for event in events.lines() {
        let payload = event["payload"].as_str().expect("a payload");
        let observed = event["type"].as_str().is_some_and(|kind| kind.starts_with("tool."));
        assert!(!observed || !payload.contains(&host), "a host path in {payload}");
    }
}

/// Check 8: as many effects as approvals, whatever is tried in between.
#[test]
fn check08_sandbox_execute_has_as_many_effects_as_approvals() {
    let world = World::new();
    let effects = || fs::read_to_string(world.workspace.join("log")).unwrap_or_default().lines().count();
    let once = json!({"command": "echo ran >> log"});
    let other = json!({"command": "echo  ran >> log"});
    let ask =
        |name: &str, input: &Value| world.run(&["call", "sandbox_execute", &action(name, input)]).ends(3).id("ask_");
    // Repeated, drifted, by another action, by the tool itself: each asks for itself.
    let first = ask("run_shell", &once);
    let asks = [ask("run_shell", &once), ask("run_shell", &other), ask("exec_persistent_shell", &once)];
    let direct = world.run(&["call", "shell_run", &once.to_string()]).ends(3).id("ask_");
    assert_eq!(effects(), 0);
    world.run(&["approvals", "allow", &first]).ends(0);
    assert_eq!(effects(), 1, "this one and no other");
    world.run(&["approvals", "allow", &first]).ends(1);
    assert_eq!(effects(), 1, "an answer counts once");
    // An approval does not carry over to the same call made again, by whichever name.
    ask("run_shell", &once);
    world.run(&["call", "shell_run", &once.to_string()]).ends(3);
    assert_eq!(effects(), 1);
    world.run(&["approvals", "deny", &asks[0]]).ends(0);
    world.run(&["approvals", "allow", &asks[1]]).ends(0);
    world.run(&["approvals", "allow", &asks[2]]).ends(0);
    assert_eq!(effects(), 3);
    world.run(&["approvals", "allow", &direct]).ends(0);
    assert_eq!(effects(), 4, "five answers, one of them no, one of them twice");
    // Nothing can be remembered that would answer the next.
    let pinned = ask("run_shell", &once);
    world.run(&["approvals", "allow", &pinned, "--session"]).ends(1).warns("asks every time");
    // A rule cannot answer it either.
    world.configure("[[rules]]\naction = \"*\"\neffect = \"allow\"\n");
    ask("run_shell", &once);
    ask("exec_persistent_shell", &once);
    assert_eq!(effects(), 4);
}

#[test]
fn check38_what_may_not_be_read_no_action_shows_by_any_name() {
    let world = World::with_file(".env", "CANARY-one\n");
    world.write("deep/er/.env", "CANARY-two\n");
    world.write("plain", "x\n");
    fs::hard_link(world.workspace.join("deep/er/.env"), world.workspace.join("hard")).expect("linked");
    symlink(".env", world.workspace.join("link")).expect("linked");
    let paths = [".env", "deep/er/.env", "hard", "link"];
    let reading: Vec<(&str, Value)> = paths
        .iter()
        .flat_map(|path| {
            [
                ("read_text", json!({ "path": path })),
                ("grep_text", json!({"path": path, "pattern": "CANARY"})),
                ("run_shell", json!({"command": format!("cat {path}")})),
                ("exec_persistent_shell", json!({"command": format!("cat {path}")})),
            ]
        })
        .chain([
            ("grep_text", json!({"pattern": "CANARY"})),
            ("run_command", json!({"command": "cat hard"})),
            ("run_command", json!({"command": "grep -r CANARY ."})),
            ("run_shell", json!({"command": "mv .env away; cat away; mv away .env"})),
            ("run_shell", json!({"command": "python3 -c 'print(open(\"hard\").read())' || cat hard"})),
            ("run_shell", json!({"command": "cp -r . /tmp/all; grep -r CANARY /tmp/all ."})),
            ("exec_persistent_shell", json!({"command": "mv deep other; cat other/er/.env; mv other deep"})),
        ])
        .collect();
    // The control: with a rule that allows it each of these shows it. (The read-only hand refuses `.env` by its name anyway.)
    world.configure("[[rules]]\naction = \"read\"\npath = \"**/.env\"\neffect = \"allow\"\n");
    for (name, input) in &reading {
        let ran = run(&world, name, input);
        assert!(ran.out.contains("CANARY-"), "{name} {input}: {} {}", ran.out, ran.err);
    }
    world.configure("[[rules]]\nid = \"no-env\"\naction = \"read\"\npath = \"**/.env\"\neffect = \"deny\"\n");
    for (name, input) in &reading {
        let ran = run(&world, name, input);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(!all.contains("CANARY-"), "{name} {input}: {all}");
    }
    for path in paths {
        for (name, input) in [
            ("read_text", json!({ "path": path })),
            ("grep_text", json!({"path": path, "pattern": "."})),
            ("stat", json!({ "path": path })),
        ] {
            run(&world, name, &input).ends(4).warns("policy_denied").warns("no-env");
        }
    }
    // Neither content nor name in a listing, and what is left out is counted.
    for (name, input) in [
        ("list_dir", json!({})),
        ("glob_entries", json!({"pattern": "**/*"})),
        ("find_entries", json!({"query": "e"})),
        ("find_entries", json!({"query": "hard"})),
    ] {
        let ran = run(&world, name, &input).ends(0);
        let shown: Vec<&str> = ran.out.lines().collect();
        assert!(
            !shown.contains(&".env") && !shown.contains(&"hard") && !ran.out.contains("er/.env"),
            "{name}: {}",
            ran.out
        );
    }
    // Renamed, then read: a new name of a file that is denied by its old one is a file like any other only once the
    // rule speaks of it no more; through an action it cannot be renamed at all.
    run(&world, "run_shell", &json!({"command": "mv .env free"}));
    assert_eq!(world.read(".env"), "CANARY-one\n", "a mask is no file that can be moved away");
    assert_eq!(world.read("deep/er/.env"), "CANARY-two\n");
}

#[test]
fn policy_explain_shows_what_the_chosen_action_asks() {
    let world = World::with_file("a.txt", "x\n");
    let explain = |tool: &str, input: &str| world.run(&["--json", "policy", "explain", tool, input]).json();
    let line = json!({"command": "make install"});
    let own = explain("shell_run", &line.to_string());
    let by_action = explain("sandbox_execute", &action("run_shell", &line));
    for field in ["decision", "phase", "reason", "pinned", "risk"] {
        assert_eq!(own[field], by_action[field], "{field}: {by_action}");
    }
    assert_eq!(by_action["decision"], "ask");
    assert_eq!(explain("sandbox_execute", &action("read_text", &json!({"path": "a.txt"})))["decision"], "allow");
    world.run(&["tools", "show", "sandbox_execute"]).ends(0).says("read_text {path, maxChars?").says("mkdir {path");
    world.run(&["tools", "--profile", "managed"]).ends(0).says("sandbox_describe").says("sandbox_execute");
    let code = world.run(&["tools", "--profile", "code"]).ends(0);
    assert!(!code.out.contains("sandbox_"), "{}", code.out);
}

#[test]
fn sandbox_describe_agrees_with_doctor() {
    let world = World::new();
    let described = world.run(&["call", "sandbox_describe"]).ends(0).json();
    let doctor = world.run(&["--json", "doctor"]).json();
    let (told, found) = (&described["isolation"], &doctor["isolation"]);
    for field in ["level", "minimum", "network"] {
        assert_eq!(told[field], found[field], "{field}");
    }
    assert_eq!(described["commandPolicy"]["maxTimeoutMs"], 60_000);
    assert_eq!(described["resources"][0]["kind"], "repo_mount");
    assert!(!described.to_string().contains(&world.workspace.display().to_string()), "no host path");
    // What is said of the environment is what a program finds.
    let ran = run(&world, "run_command", &json!({"command": "env"})).ends(0);
    let mut names: Vec<&str> = ran.out.lines().filter_map(|line| line.split_once('=').map(|(name, _)| name)).collect();
    names.sort_unstable();
    assert_eq!(json!(names), described["commandPolicy"]["exposedEnvKeys"]);
    let elsewhere = world.run(&["--sandbox", "none", "call", "sandbox_describe"]).ends(0).json();
    assert_eq!(elsewhere["isolation"]["minimum"], "none");
}

/// A runtime whose approver says yes to everything.
struct Gate {
    _world: World,
    runtime: Runtime,
    session: SessionId,
}

impl Gate {
    async fn new() -> Self {
        let world = World::with_file("sub/file", "text\n");
        let builder = Runtime::builder().workspace(&world.workspace).launcher(Launcher::helper(binary()));
        let runtime = builder.approver(|_| std::future::ready(Reply::AllowOnce)).build().expect("builds");
        let session = runtime.create_session("test").await.expect("a session");
        Self { _world: world, runtime, session }
    }

    async fn call(&self, tool: &str, input: &str) -> Observed {
        match self.runtime.call(self.session, tool, input).await.expect("a store") {
            CallOutcome::Observed(seen) => seen.session_view().clone(),
            other => panic!("{tool} was not run: {other:?}"),
        }
    }

    /// What the session keeps of an action.
    async fn did(&self, name: &str, input: Value) -> Value {
        let seen = self.call("sandbox_execute", &action(name, &input)).await;
        assert!(seen.ok, "{name}: {} {}", seen.code, seen.summary);
        let document = seen.structured.clone().expect("a document");
        if !["exec_persistent_shell", "run_shell"].contains(&name) {
            let text: String = seen.content.iter().filter_map(|part| part.text.as_deref()).collect();
            assert_eq!(serde_json::from_str::<Value>(&text).ok().as_ref(), Some(&document), "what the model is shown");
        }
        document
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_persistent_shell_by_its_actions_has_the_fields_of_the_table() {
    let gate = Gate::new().await;
    let none = gate.did("inspect_persistent_shell", json!({})).await;
    assert_eq!(none, json!({"active": false, "persistentShell": null}));
    let open = gate.did("open_persistent_shell", json!({"cwd": "sub", "env": {"A": "one"}})).await;
    let metadata = sorted([
        "shellId",
        "shellPath",
        "mountPath",
        "cwd",
        "startedAt",
        "updatedAt",
        "lastCommandAt",
        "commandCount",
        "busy",
        "currentCommand",
        "currentCommandStartedAt",
        "currentStdoutPreview",
        "currentStderrPreview",
        "envKeys",
        "status",
    ]);
    assert_eq!(fields(&open), metadata);
    assert_eq!((&open["cwd"], &open["status"]), (&json!("/workspace/sub"), &json!("active")));
    assert!(open["envKeys"].as_array().expect("names").contains(&json!("A")));
    let ran = gate.did("exec_persistent_shell", json!({"command": "echo $A $B; x=1", "env": {"B": "two"}})).await;
    assert_eq!(
        fields(&ran),
        sorted([
            "shellId",
            "command",
            "cwd",
            "envKeys",
            "exitCode",
            "timedOut",
            "stdout",
            "stderr",
            "shellPath",
            "startedAt",
            "updatedAt",
            "lastCommandAt",
            "durationMs",
            "commandCount",
            "status",
            "persistent"
        ])
    );
    assert_eq!((&ran["shellId"], &ran["persistent"]), (&open["shellId"], &json!(true)), "the same shell");
    let seen = gate.call("shell_exec", r#"{"command":"echo $A $B $x"}"#).await;
    assert_eq!(seen.content[0].text.as_deref(), Some("one two 1\n"), "what it exported is the session's");
    let inspected = gate.did("inspect_persistent_shell", json!({})).await;
    assert_eq!((&inspected["active"], &inspected["persistentShell"]["commandCount"]), (&json!(true), &json!(2)));

    let idle = gate.did("wait_persistent_shell", json!({"timeoutMs": 10})).await;
    assert_eq!(fields(&idle), sorted(["status", "persistentShell", "result"]));
    assert_eq!((&idle["status"], &idle["result"]), (&json!("idle"), &Value::Null));
    let away = gate.call("shell_exec", r#"{"command":"echo done","background":true}"#).await;
    assert_eq!(away.code.to_string(), "background_started");
    let ended = gate.did("wait_persistent_shell", json!({"timeoutMs": 60_000})).await;
    assert_eq!((&ended["status"], &ended["result"]["exitCode"]), (&json!("completed"), &json!(0)));
    let closed = gate.did("close_persistent_shell", json!({})).await;
    assert_eq!(closed, json!({"closed": true, "shellId": open["shellId"]}));
    assert_eq!(gate.did("close_persistent_shell", json!({})).await, json!({"closed": false}));
    let refused = gate
        .call("sandbox_execute", &action("exec_persistent_shell", &json!({"command": "ls", "background": true})))
        .await;
    assert_eq!(refused.code.to_string(), "schema_invalid", "a field of the tool that the action has not");
}
