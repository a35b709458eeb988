//! The file actions of `sandbox_execute`: what they give (agent-runtime 10.3) and what they refuse.

use std::fs;
use std::os::unix::fs::symlink;

use portcullis_base::{Code, Phase, Reason, SideEffectState};
use portcullis_event::Observed;
use portcullis_sandbox::TreeOwner;
use serde_json::{Value, json};

use crate::world::{Hand, Process, World, text};

fn world() -> World {
    let mut world = World::new();
    world.sandbox = true;
    world
}

/// One action that must end well: what the session keeps of it.
async fn did(hand: &Hand<'_>, name: &str, input: Value) -> Value {
    let seen = hand.done("sandbox_execute", json!({"name": name, "input": input})).await;
    seen.structured.expect("a document")
}

async fn call(hand: &Hand<'_>, name: &str, input: Value) -> Observed {
    hand.call("sandbox_execute", json!({"name": name, "input": input})).await
}

async fn refused(hand: &Hand<'_>, name: &str, input: Value, code: Code, reason: Option<Reason>) -> Observed {
    hand.refused("sandbox_execute", json!({"name": name, "input": input}), code, reason, Phase::Validate).await
}

fn fields(document: &Value) -> Vec<&str> {
    document.as_object().expect("an object").keys().map(String::as_str).collect()
}

async fn open<'p>(world: &World, process: &'p Process) -> Hand<'p> {
    process.open(world.session().await).await
}

#[tokio::test]
async fn read_text_gives_the_window_it_was_asked_for() {
    let world = world();
    world.put("a.txt", "one\ntwo\nthrée\nfour\n");
    let process = world.start();
    let hand = open(&world, &process).await;
    let whole = did(&hand, "read_text", json!({"path": "a.txt"})).await;
    let expected = json!({"path": "a.txt", "mountPath": "/workspace", "content": "one\ntwo\nthrée\nfour\n",
        "truncated": false, "charCount": 19, "totalLineCount": 4, "selectedLineCount": 4});
    assert_eq!(whole, expected);
    let range = did(&hand, "read_text", json!({"path": "a.txt", "startLine": 2, "lineCount": 2})).await;
    assert_eq!((&range["content"], &range["selectedLineCount"]), (&json!("two\nthrée\n"), &json!(2)));
    assert_eq!(range["lineWindow"], json!({"mode": "range", "startLine": 2, "count": 2}));
    let head = did(&hand, "read_text", json!({"path": "a.txt", "lineCount": 1})).await;
    assert_eq!((&head["content"], &head["lineWindow"]), (&json!("one\n"), &json!({"mode": "head", "count": 1})));
    let tail = did(&hand, "read_text", json!({"path": "a.txt", "tailLines": 1})).await;
    assert_eq!(tail["content"], "four\n");
    assert_eq!(tail["lineWindow"], json!({"mode": "tail", "startLine": 4, "count": 1}));
    let seen = call(&hand, "read_text", json!({"path": "a.txt", "maxChars": 9})).await;
    let cut = seen.structured.clone().expect("a document");
    assert_eq!(cut["content"], "one\ntwo\n...[truncated 11 chars]");
    assert_eq!((&cut["truncated"], &cut["charCount"]), (&json!(true), &json!(19)));
    // The model is shown the lines themselves: they are what counts as read.
    assert_eq!(text(&seen), "one\ntwo\n");
}

#[tokio::test]
async fn read_text_refuses_what_read_refuses_and_names_its_own_fields() {
    let world = world();
    world.put("bin", [0u8, 159, 146, 150]);
    world.put("a.txt", "x\n");
    let process = world.start();
    let hand = open(&world, &process).await;
    let failed = Code::RuntimePreconditionFailed;
    refused(&hand, "read_text", json!({"path": "none"}), failed, Some(Reason::NotFound)).await;
    refused(&hand, "read_text", json!({"path": "."}), failed, Some(Reason::WrongKind)).await;
    refused(&hand, "read_text", json!({"path": "../x"}), failed, Some(Reason::PathEscape)).await;
    let binary = call(&hand, "read_text", json!({"path": "bin"})).await;
    assert_eq!(binary.reason.and_then(|r| r.known()), Some(Reason::BinaryFile), "{}", binary.summary);
    let seen = refused(&hand, "read_text", json!({"path": "a.txt", "startLine": 2}), Code::SchemaInvalid, None).await;
    assert_eq!((seen.errors[0].path.as_str(), seen.summary.contains("lineCount")), ("/startLine", true));
    for (input, place) in [
        (json!({"file_path": "a.txt"}), "/input"),
        (json!({"path": "a.txt", "maxChars": "9"}), "/input/maxChars"),
        (json!({"path": " "}), "/input/path"),
    ] {
        let seen = refused(&hand, "read_text", input, Code::SchemaInvalid, None).await;
        assert_eq!(seen.errors[0].path, place, "{:?}", seen.errors);
    }
}

#[tokio::test]
async fn h44_no_writing_action_is_a_way_around_the_read_that_its_tool_demands() {
    let world = world();
    world.put("a.txt", "one\ntwo\n");
    let process = world.start();
    let hand = open(&world, &process).await;
    let failed = Code::RuntimePreconditionFailed;
    let writes = [
        ("write_text", json!({"path": "a.txt", "content": "mine"})),
        ("append_text", json!({"path": "a.txt", "content": "mine"})),
        ("replace_text", json!({"path": "a.txt", "oldText": "two", "newText": "2"})),
    ];
    for (name, input) in &writes {
        refused(&hand, name, input.clone(), failed, Some(Reason::FileNotRead)).await;
    }
    did(&hand, "read_text", json!({"path": "a.txt", "lineCount": 1})).await;
    for (name, input) in &writes {
        let seen = refused(&hand, name, input.clone(), failed, Some(Reason::RegionNotRead)).await;
        assert!(seen.summary.contains("startLine 2, lineCount 1"), "{}", seen.summary);
    }
    did(&hand, "read_text", json!({"path": "a.txt"})).await;
    world.put("a.txt", "one\nTWO\n");
    for (name, input) in writes {
        refused(&hand, name, input, Code::StaleFileBaseline, None).await;
    }
    assert_eq!(world.get("a.txt"), "one\nTWO\n");
}

#[tokio::test]
async fn what_is_written_appended_and_replaced_is_told() {
    let world = world();
    let process = world.start();
    let hand = open(&world, &process).await;
    let made = did(&hand, "write_text", json!({"path": "d/a.txt", "content": "één\n"})).await;
    assert_eq!(made, json!({"path": "d/a.txt", "mountPath": "/workspace", "charCount": 4, "operation": "write"}));
    let more = did(&hand, "append_text", json!({"path": "d/a.txt", "content": "two two\n"})).await;
    assert_eq!(more, json!({"path": "d/a.txt", "mountPath": "/workspace", "charCount": 8, "operation": "append"}));
    assert_eq!(world.get("d/a.txt"), "één\ntwo two\n");
    let ambiguous = json!({"path": "d/a.txt", "oldText": "two", "newText": "$&"});
    refused(&hand, "replace_text", ambiguous, Code::AmbiguousTarget, None).await;
    let absent = json!({"path": "d/a.txt", "oldText": "zzz", "newText": ""});
    let (failed, reason) = (Code::RuntimePreconditionFailed, Some(Reason::TargetNotFound));
    refused(&hand, "replace_text", absent, failed, reason).await;
    let all = json!({"path": "d/a.txt", "oldText": "two", "newText": "$&", "replaceAll": true});
    let replaced = did(&hand, "replace_text", all).await;
    let expected = json!({"path": "d/a.txt", "mountPath": "/workspace", "operation": "replace", "replaceAll": true,
        "occurrences": 2, "replacements": 2, "charCount": 10});
    assert_eq!(replaced, expected);
    assert_eq!(world.get("d/a.txt"), "één\n$& $&\n");
    // A file that is appended to keeps its line ends and its mark.
    world.put("dos.txt", "\u{feff}a\r\nb\r\n");
    did(&hand, "read_text", json!({"path": "dos.txt"})).await;
    did(&hand, "append_text", json!({"path": "dos.txt", "content": "c\n"})).await;
    assert_eq!(world.get("dos.txt"), "\u{feff}a\r\nb\r\nc\r\n");
    let fresh = did(&hand, "append_text", json!({"path": "new.txt", "content": "x"})).await;
    assert_eq!((&fresh["operation"], world.get("new.txt").as_str()), (&json!("append"), "x"));
}

#[tokio::test]
async fn mkdir_makes_what_is_missing_and_nothing_where_it_may_not() {
    let mut world = world();
    world.shelf_dir = Some(tempfile::tempdir().expect("a directory"));
    world.put("file", "x");
    let outside = tempfile::tempdir().expect("a directory");
    symlink(outside.path(), world.path("out")).expect("a link");
    let process = world.start();
    let hand = open(&world, &process).await;
    let seen = call(&hand, "mkdir", json!({"path": "a/b"})).await;
    let expected = json!({"path": "a/b", "mountPath": "/workspace", "recursive": true, "operation": "mkdir"});
    assert_eq!(seen.structured.as_ref(), Some(&expected));
    let made: Vec<&str> = seen.side_effects.items.iter().map(|effect| effect.target.as_str()).collect();
    assert_eq!(made, ["a", "a/b"]);
    assert!(world.path("a/b").is_dir());
    let again = call(&hand, "mkdir", json!({"path": "a/b"})).await;
    assert_eq!((again.ok, again.side_effects.state), (true, SideEffectState::None), "it is there");
    let failed = Code::RuntimePreconditionFailed;
    let alone = |path: &str| json!({"path": path, "recursive": false});
    refused(&hand, "mkdir", alone("a/b"), failed, Some(Reason::TargetExists)).await;
    refused(&hand, "mkdir", json!({"path": "file"}), failed, Some(Reason::TargetExists)).await;
    refused(&hand, "mkdir", json!({"path": "/books/new"}), failed, Some(Reason::ReadOnlyMount)).await;
    refused(&hand, "mkdir", json!({"path": ".portcullis/x"}), failed, Some(Reason::ReadOnlyMount)).await;
    refused(&hand, "mkdir", json!({"path": "out/x"}), failed, Some(Reason::PathEscape)).await;
    let orphan = call(&hand, "mkdir", alone("x/y")).await;
    assert_eq!(orphan.reason.and_then(|r| r.known()), Some(Reason::NotFound), "{}", orphan.summary);
    assert_eq!(fs::read_dir(outside.path()).expect("listed").count(), 0);
    assert!(!world.path("x").exists() && !world.path(".portcullis").exists());
}

#[tokio::test]
async fn listings_and_searches_have_the_fields_of_the_table() {
    let mut world = world();
    let books = tempfile::tempdir().expect("a directory");
    fs::write(books.path().join("one"), "needle\n").expect("a file");
    world.shelf_dir = Some(books);
    world.put("src/main.rs", "fn main() {}\n// Needle\n");
    world.put(".gitignore", "target\n");
    world.put("target/out", "needle\n");
    symlink("src", world.path("link")).expect("a link");
    let process = world.start();
    let hand = open(&world, &process).await;
    let listed = did(&hand, "list_dir", json!({})).await;
    let names: Vec<(&str, &str)> = listed["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|e| (e["name"].as_str().expect("a name"), e["kind"].as_str().expect("a kind")))
        .collect();
    // What git ignores is there as well; a link is something else.
    assert_eq!(names, [(".gitignore", "file"), ("link", "other"), ("src", "directory"), ("target", "directory")]);
    assert_eq!(
        (&listed["path"], &listed["mountPath"], &listed["count"]),
        (&json!("."), &json!("/workspace"), &json!(4))
    );
    assert_eq!(listed["entries"][2], json!({"name": "src", "kind": "directory", "path": "src"}));
    let few = did(&hand, "list_dir", json!({"limit": 1})).await;
    assert_eq!((&few["count"], &few["truncated"]), (&json!(1), &json!(true)), "cut, and it says so");
    let shelf = did(&hand, "list_dir", json!({"path": "/books"})).await;
    assert_eq!((&shelf["mountPath"], &shelf["entries"][0]["name"]), (&json!("/books"), &json!("one")));

    let found = did(&hand, "find_entries", json!({"query": "RC/MA"})).await;
    assert_eq!(found, json!({"count": 1, "entries": [{"path": "src/main.rs", "kind": "file"}], "truncated": false}));
    let none = call(&hand, "find_entries", json!({"query": "*.rs"})).await;
    assert_eq!(none.code.known(), Some(Code::NoMatches), "a text, no pattern");
    let globbed = did(&hand, "glob_entries", json!({"pattern": "*.rs", "kind": "file", "maxDepth": 2})).await;
    assert_eq!(globbed["entries"], json!([{"path": "src/main.rs", "kind": "file"}]));
    refused(&hand, "glob_entries", json!({"pattern": "a["}), Code::SchemaInvalid, None).await;

    let lines = did(&hand, "grep_text", json!({"pattern": "needle", "ignoreCase": true})).await;
    let expected = json!({"count": 1, "matches": [{"path": "src/main.rs", "line": 2, "preview": "// Needle"}],
        "truncated": false, "files": [{"path": "src/main.rs", "matchCount": 1}]});
    assert_eq!(lines, expected);
    refused(&hand, "grep_text", json!({"pattern": "("}), Code::SchemaInvalid, None).await;

    let stat = did(&hand, "stat", json!({"path": "src/main.rs"})).await;
    assert_eq!(fields(&stat), ["path", "mountPath", "kind", "size", "mtime"]);
    assert_eq!((&stat["kind"], &stat["size"]), (&json!("file"), &json!(23)));
    assert_eq!(did(&hand, "stat", json!({"path": "/books"})).await["kind"], "directory");
    let failed = Code::RuntimePreconditionFailed;
    refused(&hand, "stat", json!({"path": "none"}), failed, Some(Reason::NotFound)).await;
}

#[tokio::test]
async fn an_unknown_action_is_refused_with_all_that_there_are() {
    let world = world();
    let process = world.start();
    let hand = open(&world, &process).await;
    let described = hand.done("sandbox_describe", json!({})).await.structured.expect("a document");
    let names: Vec<&str> =
        described["actions"].as_array().expect("actions").iter().filter_map(|a| a["name"].as_str()).collect();
    assert_eq!(names.len(), 18);
    let seen = refused(&hand, "format_disk", json!({}), Code::SchemaInvalid, None).await;
    for name in &names {
        assert!(seen.summary.contains(name), "{name} in {}", seen.summary);
    }
    let schema = &process.definitions(hand.id())["sandbox_execute"].input_schema;
    let mut offered: Vec<&str> =
        schema["properties"]["name"]["enum"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    let mut told = names.clone();
    told.sort_unstable();
    offered.sort_unstable();
    assert_eq!(offered, told, "what is described is what there is");
}

#[tokio::test]
async fn l69_the_variables_of_a_call_are_sensitive_and_in_no_event() {
    let world = world();
    let process = world.start();
    let hand = open(&world, &process).await;
    let schema = &process.definitions(hand.id())["sandbox_execute"].input_schema;
    assert_eq!(schema["properties"]["input"]["properties"]["env"]["x-portcullis-sensitive"], true);
    let env = json!({"GREETING": "correct-horse"});
    for (name, command) in [("run_shell", "make"), ("exec_persistent_shell", "make"), ("run_command", "ls")] {
        let seen = call(&hand, name, json!({"command": command, "env": env})).await;
        assert!(!format!("{seen:?}").contains("correct-horse"), "{name}");
    }
    let key = portcullis_store::SessionKey { tenant: crate::world::TENANT, session: hand.id() };
    let events = portcullis_store::Log::read(&*world.store(), key, 0, 1_000).await.expect("a log");
    let told = |text: &str| events.iter().any(|event| event.payload.as_deref().unwrap_or_default().contains(text));
    assert!(told("GREETING"), "the control: names are told");
    assert!(!told("correct-horse"), "a value is in an event");
}

#[tokio::test]
async fn check17_the_description_holds_the_facts_that_are_enforced_and_no_host_path() {
    for owner in [TreeOwner::SessionOwn, TreeOwner::PersonsTree] {
        let mut world = world();
        world.owner = owner;
        world.shelf_dir = Some(tempfile::tempdir().expect("a directory"));
        let process = world.start();
        let hand = open(&world, &process).await;
        let seen = hand.done("sandbox_describe", json!({})).await;
        let described = seen.structured.clone().expect("a document");
        let shown: Value = serde_json::from_str(&text(&seen)).expect("the same document");
        assert_eq!(shown, described);
        assert_eq!(
            fields(&described),
            [
                "kind",
                "summary",
                "provisionedResourceCount",
                "resources",
                "constraints",
                "actions",
                "commandPolicy",
                "actionExamples",
                "isolation"
            ]
        );
        let own = owner == TreeOwner::SessionOwn;
        let (books, workspace) = (&described["resources"][0], &described["resources"][1]);
        assert_eq!((&books["mountPath"], &books["access"]), (&json!("/books"), &json!("read_only")));
        assert_eq!(workspace["kind"], if own { "session_workspace" } else { "repo_mount" });
        assert_eq!(workspace["access"], "read_write");
        let policy = &described["commandPolicy"];
        let programs: Vec<&str> = portcullis_command::program_names().collect();
        assert_eq!(policy["allowlistedCommands"], json!(programs));
        assert_eq!((&policy["shell"], &policy["maxTimeoutMs"]), (&json!(false), &json!(60_000)));
        assert_eq!(
            policy["exposedEnvKeys"],
            json!(["LANG", "PATH", "PORTCULLIS_SESSION_ID", "PORTCULLIS_WORKSPACE_CWD", "TMPDIR"])
        );
        // A test is no launcher, and it says so.
        assert_eq!(
            (&described["isolation"]["level"], &described["isolation"]["network"]),
            (&json!("none"), &json!("disabled"))
        );
        assert!(described["summary"].as_str().expect("words").contains("No command runs"));
        assert_eq!(described["isolation"]["limits"]["processes"], 2048);
        let inspected = did(&hand, "inspect", json!({})).await;
        assert_eq!(fields(&inspected), ["provisionedResourceCount", "resources"]);
        assert_eq!(inspected["resources"], described["resources"]);
    }
}

/// What is told of an action is what holds: those that only look are offered as such, and their examples are inputs.
#[tokio::test]
async fn every_example_of_the_description_is_taken_and_only_changes_ask() {
    let mut world = world();
    world.owner = TreeOwner::PersonsTree;
    world.put("src/main.rs", "fn main() {}\n");
    world.put("README.md", "x\n");
    world.put("notes.md", "one line\n");
    let process = world.start();
    let hand = open(&world, &process).await;
    did(&hand, "read_text", json!({"path": "notes.md"})).await;
    let described = hand.done("sandbox_describe", json!({})).await.structured.expect("a document");
    let access = |name: &Value| {
        let actions = described["actions"].as_array().expect("actions");
        actions.iter().find(|action| action["name"] == *name).expect("it is there")["access"].clone()
    };
    for example in described["actionExamples"].as_array().expect("examples") {
        let input = example.get("inputExample").cloned().unwrap_or(json!({}));
        let call = json!({"name": example["name"], "input": input});
        let explained = process.explain(hand.id(), "sandbox_execute", &call).await;
        assert_eq!(explained.phase, Phase::Permission, "{call}: {}", explained.reason);
        assert_eq!(explained.read_only, access(&example["name"]) == "read_only", "{call}");
    }
}

#[tokio::test]
async fn check18_what_is_hidden_no_file_action_shows() {
    let mut world = world();
    world.put("vault/key", "CANARY\n");
    world.put("a.txt", "x\n");
    world.hidden = vec!["vault"];
    symlink("vault/key", world.path("link")).expect("a link");
    let process = world.start();
    let hand = open(&world, &process).await;
    for (name, input) in [
        ("read_text", json!({"path": "vault/key"})),
        ("read_text", json!({"path": "link"})),
        ("stat", json!({"path": "vault/key"})),
        ("list_dir", json!({"path": "vault"})),
        ("grep_text", json!({"pattern": "CANARY", "path": "vault"})),
        ("write_text", json!({"path": "vault/new", "content": "x"})),
        ("mkdir", json!({"path": "vault/new"})),
        ("run_command", json!({"command": "cat vault/key"})),
    ] {
        let seen = call(&hand, name, input.clone()).await;
        assert!(!seen.ok && !format!("{seen:?}").contains("CANARY\n"), "{name} {input}: {}", seen.summary);
    }
    for (name, input) in [
        ("list_dir", json!({})),
        ("find_entries", json!({"query": "key"})),
        ("glob_entries", json!({"pattern": "**/*"})),
        ("grep_text", json!({"pattern": "CANARY"})),
    ] {
        let seen = call(&hand, name, input.clone()).await;
        assert!(!text(&seen).contains("vault") && !text(&seen).contains("key"), "{name}: {}", text(&seen));
    }
    assert_eq!(fs::read_dir(world.path("vault")).expect("listed").count(), 1);
}
