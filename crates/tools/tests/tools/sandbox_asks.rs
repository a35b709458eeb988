//! H44: an action of `sandbox_execute` asks for, locks and is decided on as exactly what its own tool is, whatever the
//! rules.

use std::fs;
use std::os::unix::fs::symlink;

use portcullis_base::Phase;
use portcullis_contract::{AccessRequest, Caller, Resolved, seam};
use portcullis_event::facts::Verdict;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{Process, World, caller};

/// An action with its input, and the tool that it is with its own.
fn pairs() -> Vec<(&'static str, Value, &'static str, Value)> {
    let mut all = Vec::new();
    for path in ["a.txt", ".env", "private/key", "link", "hard", "src", "new/file", ".", "../outside"] {
        all.extend([
            ("read_text", json!({"path": path}), "read", json!({"file_path": path})),
            ("grep_text", json!({"path": path, "pattern": "x"}), "grep", json!({"path": path, "pattern": "x"})),
            ("glob_entries", json!({"path": path, "pattern": "*"}), "glob", json!({"path": path, "pattern": "*"})),
            ("list_dir", json!({"path": path}), "glob", json!({"path": path, "pattern": "*"})),
            ("find_entries", json!({"path": path, "query": "x"}), "glob", json!({"path": path, "pattern": "*"})),
            ("stat", json!({"path": path}), "glob", json!({"path": path, "pattern": "*"})),
            ("mkdir", json!({"path": path}), "write", json!({"file_path": path, "content": ""})),
        ]);
        let content = json!({"path": path, "content": "x"});
        let write = json!({"file_path": path, "content": "x"});
        all.push(("write_text", content.clone(), "write", write.clone()));
        all.push(("append_text", content, "write", write));
        let replace = json!({"path": path, "oldText": "x", "newText": "y"});
        all.push(("replace_text", replace, "edit", json!({"file_path": path, "old_string": "x", "new_string": "y"})));
    }
    for line in
        ["ls", "cat a.txt", "cat .env | wc -l", "cat link", "rm -rf src", "cargo test && git push", "echo $X > a.txt"]
    {
        let command = json!({"command": line});
        all.push(("run_command", command.clone(), "bash", command.clone()));
        all.push(("run_shell", command.clone(), "shell_run", command.clone()));
        all.push(("exec_persistent_shell", command.clone(), "shell_exec", command));
    }
    let there = json!({"command": "make", "cwd": "src"});
    all.push(("run_shell", there.clone(), "shell_run", there.clone()));
    all.push(("exec_persistent_shell", there.clone(), "shell_exec", there));
    all.push(("open_persistent_shell", json!({"cwd": "src"}), "shell_open", json!({"cwd": "src"})));
    all.push(("open_persistent_shell", json!({"restart": true}), "shell_open", json!({"restart": true})));
    for (action, tool) in [
        ("inspect", "sandbox_describe"),
        ("inspect_persistent_shell", "shell_describe"),
        ("wait_persistent_shell", "shell_wait"),
        ("close_persistent_shell", "shell_close"),
    ] {
        all.push((action, json!({}), tool, json!({})));
    }
    all
}

/// What the gate is told before it decides: what is touched, under which keys, and what holds without a rule.
#[derive(Debug, PartialEq)]
struct Told {
    resolved: Result<Resolved, String>,
    access: Vec<AccessRequest>,
    read_only: bool,
    pinned: String,
    sandbox: Option<String>,
    concurrency: String,
}

#[expect(clippy::disallowed_methods, reason = "what the gate is told is what is compared")]
fn told(process: &Process, caller: &Caller, tool: &str, input: &Value) -> Told {
    let (name, tool) = process.tools.get_key_value(tool).expect("it is there");
    let decoded = seam::decode(tool, &input.to_string()).unwrap_or_else(|error| panic!("{input}: {error:?}"));
    let (tool, decoded) = seam::chosen(tool, decoded, caller);
    let resolved = seam::resolve(&tool, &decoded, caller);
    let access = resolved.as_ref().map(|resolved| seam::plan_access(&tool, name, &decoded, resolved));
    let semantics = seam::semantics(&tool);
    Told {
        access: access.unwrap_or_default(),
        // Of a refusal, its kind: the words speak of fields.
        resolved: resolved.map_err(|found| {
            let parts = seam::precondition_parts(found);
            format!("{:?} {:?}", parts.code, parts.reason)
        }),
        read_only: semantics.read_only,
        pinned: format!("{:?}", semantics.default_policy),
        sandbox: semantics.sandbox.clone(),
        concurrency: format!("{:?}", semantics.concurrency),
    }
}

fn world() -> World {
    let mut world = World::new();
    (world.sandbox, world.owner) = (true, portcullis_sandbox::TreeOwner::PersonsTree);
    world.put("a.txt", "x\n");
    world.put(".env", "SECRET=1\n");
    world.put("private/key", "x\n");
    world.put("src/lib.rs", "x\n");
    symlink(".env", world.path("link")).expect("a link");
    fs::hard_link(world.path("private/key"), world.path("hard")).expect("a hard link");
    world
}

/// Every pair, under these rules.
async fn same_under(rules: &str) {
    let mut world = world();
    world.rules = Box::leak(rules.to_owned().into_boxed_str());
    let process = world.start();
    let session = world.session().await;
    let hand = process.open(session).await;
    for (action, input, tool, own) in pairs() {
        let call = json!({"name": action, "input": input});
        let (by_action, by_name) =
            (told(&process, &caller(session), "sandbox_execute", &call), told(&process, &caller(session), tool, &own));
        assert_eq!(by_action, by_name, "{action} {input} and {tool} {own}, under\n{rules}");
        let decided = process.explain(session, "sandbox_execute", &call).await;
        let expected = process.explain(session, tool, &own).await;
        // A rule that denies a tool altogether takes it out of the menu; the action is denied where rules decide, or
        // `sandbox_execute` is gone itself.
        if [&decided, &expected].iter().any(|one| one.phase == Phase::Lookup) {
            assert_eq!(decided.decision, Verdict::Deny, "{call} and {tool} {own}, under\n{rules}");
            continue;
        }
        assert_eq!(format!("{decided:?}"), format!("{expected:?}"), "{call} and {tool} {own}, under\n{rules}");
    }
    drop(hand);
}

#[derive(Debug, Clone)]
struct AnyRule {
    action: &'static str,
    resource: Option<String>,
    effect: &'static str,
}

fn any_rule() -> impl Strategy<Value = AnyRule> {
    const ACTIONS: [&str; 12] = [
        "*",
        "read",
        "write",
        "edit",
        "glob",
        "grep",
        "bash",
        "shell_run",
        "shell_exec",
        "shell_open",
        "shell_*",
        "sandbox_*",
    ];
    const RESOURCES: [&str; 9] = [
        "",
        "path = \"**/.env\"",
        "path = \"private/**\"",
        "path = \"**\"",
        "path = \"src/**\"",
        "path = \"a.txt\"",
        "argv = [\"ls\"]",
        "argv = [\"cargo\", \"test\"]",
        "argv = [\"rm\", \"**\"]",
    ];
    let some = |words: &'static [&'static str]| proptest::sample::select(words);
    (some(&ACTIONS), some(&RESOURCES), some(&["allow", "ask", "deny"])).prop_map(|(action, resource, effect)| AnyRule {
        action,
        resource: (!resource.is_empty()).then(|| resource.to_owned()),
        effect,
    })
}

fn toml(rules: &[AnyRule]) -> String {
    let one = |rule: &AnyRule| {
        let resource = rule.resource.clone().map(|line| format!("{line}\n")).unwrap_or_default();
        format!("[[rules]]\naction = \"{}\"\n{resource}effect = \"{}\"\n", rule.action, rule.effect)
    };
    rules.iter().map(one).collect()
}

#[tokio::test]
async fn h44_every_action_asks_what_its_own_tool_asks() {
    same_under("").await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn h44_under_any_rules_an_action_is_decided_on_as_its_own_tool_is(
        rules in proptest::collection::vec(any_rule(), 0..6)
    ) {
        let rules = toml(&rules);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(same_under(&rules));
    }
}

/// Variables of a call are the one thing that an action takes and its tool does not: each is asked about as
/// `shell_set_env` asks, and the rest stays as it is.
#[tokio::test]
async fn h44_a_variable_of_a_call_asks_what_setting_it_asks() {
    let mut world = world();
    world.rules = "[[rules]]\naction = \"shell_set_env\"\nshell = \"env:LD_PRELOAD\"\neffect = \"deny\"\n";
    let process = world.start();
    let session = world.session().await;
    let hand = process.open(session).await;
    let setting = told(&process, &caller(session), "shell_set_env", &json!({"key": "A", "value": "the-value"}));
    for (action, tool) in [("run_shell", "shell_run"), ("exec_persistent_shell", "shell_exec"), ("run_command", "bash")]
    {
        let call = json!({"name": action, "input": {"command": "ls", "env": {"A": "the-value"}}});
        let with = told(&process, &caller(session), "sandbox_execute", &call);
        let without = told(&process, &caller(session), tool, &json!({"command": "ls"}));
        let (last, rest) = with.access.split_last().expect("accesses");
        assert_eq!(rest, without.access, "{action}");
        assert_eq!(with.resolved, without.resolved, "{action}");
        assert_eq!(last.action, setting.access[0].action, "{action}");
        assert!(last.resources().eq(setting.access[0].resources()), "{action}");
        assert!(!format!("{with:?}").contains("the-value"), "{action}: values are nowhere");
        let call = json!({"name": action, "input": {"command": "ls", "env": {"LD_PRELOAD": "./evil.so"}}});
        let decided = process.explain(session, "sandbox_execute", &call).await;
        assert_eq!(decided.decision, Verdict::Deny, "{action}: {}", decided.reason);
        for name in ["PATH", "PORTCULLIS_SESSION_ID", "a b"] {
            let call = json!({"name": action, "input": {"command": "ls", "env": {name: "the-value"}}});
            let seen = hand.call("sandbox_execute", call).await;
            assert_eq!(seen.code.known(), Some(portcullis_base::Code::SchemaInvalid), "{action} {name}");
            assert!(!format!("{seen:?}").contains("the-value"));
        }
    }
}
