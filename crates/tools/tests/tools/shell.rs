//! The shell tools over real folders: what they change outlives the process, and what they refuse changes nothing.

use std::collections::BTreeMap;
use std::fs;

use portcullis_base::{Code, CommandId, Phase, Reason, SessionId, limits};
use portcullis_contract::{EndedCommand, Semantics, ShellFact, Tool, ToolName};
use serde_json::{Value, json};

use crate::world::{Process, World, caller, text};

fn structured(observed: &portcullis_event::Observed) -> Value {
    observed.structured.clone().expect("a document")
}

/// What the model was shown.
fn shown(observed: &portcullis_event::Observed) -> Value {
    serde_json::from_str(&text(observed)).expect("a document")
}

async fn values(process: &Process, session: SessionId) -> Vec<(String, String)> {
    let environment = process.shells().environment(&caller(session)).await.expect("it is held");
    assert!(environment.lost.is_empty());
    environment.values.iter().map(|(key, value)| (key.to_string(), value.expose().to_owned())).collect()
}

/// A tool `run` that has a command end with this output, as the hand will.
pub fn runs(id: u128, output: &'static str) -> BTreeMap<ToolName, Tool> {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let tool = Tool::builder::<Nothing, String>("Runs something.")
        .semantics(Semantics::read_only())
        .execute(move |_, context| async move {
            let mut out = context.spool("stdout");
            out.write(output.as_bytes()).map_err(|e| portcullis_contract::ToolFailure::new("io", e.to_string()))?;
            let stdout = Some(out.finish());
            context.shell(ShellFact::Finished(Box::new(EndedCommand {
                command_id: CommandId::from_u128(id),
                command: "shell".to_owned(),
                args: vec!["make".to_owned()],
                cwd: "/workspace".to_owned(),
                exit_code: Some(2),
                timed_out: false,
                duration_ms: 12,
                shell_id: None,
                stdout,
                stderr: None,
            })));
            Ok("ran".to_owned())
        })
        .build()
        .expect("a sound tool");
    BTreeMap::from([("run".parse().expect("a name"), tool)])
}

#[tokio::test]
async fn check20_folder_and_environment_outlive_the_process() {
    let world = World::new();
    fs::create_dir_all(world.path("sub/deep")).expect("made");
    std::os::unix::fs::symlink("sub/deep", world.path("link")).expect("a link");
    let session = world.session().await;
    let first = world.start();
    let hand = first.open(session).await;
    let seen = shown(&hand.done("shell_set_cwd", json!({"path": "link"})).await);
    assert_eq!(seen["cwd"], "/workspace/sub/deep", "by its canonical name");
    assert_eq!(seen["shellState"]["cwd"], "/workspace/sub/deep", "as it is from now on");
    hand.done("shell_set_env", json!({"key": "EMPTY", "value": ""})).await;
    hand.done("shell_set_env", json!({"key": "A", "value": "  one  "})).await;
    hand.done("shell_set_env", json!({"key": "B", "value": "two"})).await;
    let seen = shown(&hand.done("shell_unset_env", json!({"key": "B"})).await);
    assert_eq!(seen["env"], json!({"count": 2, "keys": ["A", "EMPTY"]}));
    hand.done("shell_unset_env", json!({"key": "NEVER_THERE"})).await;
    hand.session.release().await.expect("released");
    drop(first);

    let later = world.start();
    let hand = later.open(session).await;
    let seen = shown(&hand.done("shell_describe", json!({})).await);
    assert_eq!((&seen["cwd"], &seen["env"]["keys"]), (&json!("/workspace/sub/deep"), &json!(["A", "EMPTY"])));
    assert_eq!(seen["shellState"]["version"], 5);
    let pairs = [("A".to_owned(), "  one  ".to_owned()), ("EMPTY".to_owned(), String::new())];
    assert_eq!(values(&later, session).await, pairs, "exactly as given");
}

#[tokio::test]
async fn h43_protected_names_and_what_no_environment_holds_are_refused_without_the_value() {
    let world = World::new();
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let long = format!("canary{}", "x".repeat(limits::ENV_VALUE));
    for (key, value) in [
        ("PATH", "canary"),
        ("LANG", "canary"),
        ("TMPDIR", "canary"),
        ("PORTCULLIS_SESSION_ID", "canary"),
        ("PORTCULLIS_ANYTHING", "canary"),
        ("PWD", "canary"),
        ("SHLVL", "canary"),
        ("_", "canary"),
        ("1A", "canary"),
        ("A B", "canary"),
        ("", "canary"),
        ("NUL", "canary\0"),
        ("LONG", &long),
    ] {
        let input = json!({"key": key, "value": value});
        let seen = hand.refused("shell_set_env", input, Code::SchemaInvalid, None, Phase::Validate).await;
        assert!(!format!("{seen:?}").contains("canary"), "{key}: {seen:?}");
    }
    for key in ["PATH", "PORTCULLIS_X", "OLDPWD"] {
        hand.refused("shell_unset_env", json!({"key": key}), Code::SchemaInvalid, None, Phase::Validate).await;
    }
    for n in 0..limits::ENV_NAMES {
        hand.done("shell_set_env", json!({"key": format!("N{n}"), "value": "v"})).await;
    }
    let (code, reason) = (Code::RuntimePreconditionFailed, Some(Reason::OutputBudget));
    hand.refused("shell_set_env", json!({"key": "ONE_MORE", "value": "v"}), code, reason, Phase::Validate).await;
    hand.done("shell_set_env", json!({"key": "N7", "value": "another"})).await;
    assert_eq!(hand.session.state().shell.env().len(), limits::ENV_NAMES);
}

#[tokio::test]
async fn check16_a_folder_must_be_one_inside_a_mount_that_may_be_looked_at() {
    let mut world = World::new();
    world.rules = "[[rules]]\naction = \"read\"\npath = \"/workspace/secret\"\neffect = \"deny\"\n";
    world.put("file.txt", "x");
    fs::create_dir_all(world.path("secret")).expect("made");
    std::os::unix::fs::symlink("/etc", world.path("out")).expect("a link");
    let process = world.start();
    let hand = process.open(world.session().await).await;
    let failed = Code::RuntimePreconditionFailed;
    for (path, reason) in [
        ("nowhere", Reason::NotFound),
        ("file.txt", Reason::WrongKind),
        ("../..", Reason::PathEscape),
        ("/etc", Reason::PathEscape),
        ("out", Reason::PathEscape),
    ] {
        hand.refused("shell_set_cwd", json!({"path": path}), failed, Some(reason), Phase::Validate).await;
    }
    hand.refused("shell_set_cwd", json!({"path": "  "}), Code::SchemaInvalid, None, Phase::Validate).await;
    let denied = hand.call("shell_set_cwd", json!({"path": "secret"})).await;
    assert_eq!(denied.code.known(), Some(Code::PolicyDenied), "{}", denied.summary);
    assert_eq!(hand.session.state().shell.cwd(), None, "nothing has changed");
}

#[tokio::test]
async fn what_the_last_command_wrote_is_read_in_a_later_process() {
    let world = World::new();
    let session = world.session().await;
    let first = world.start_with(runs(1, "make: *** no rule\n"));
    let hand = first.open(session).await;
    let none = hand.done("shell_read_last_output", json!({})).await;
    assert_eq!(none.code.known(), Some(Code::NoMatches));
    hand.done("run", json!({})).await;
    hand.session.release().await.expect("released");
    drop(first);

    let later = world.start();
    let hand = later.open(session).await;
    let seen = hand.done("shell_read_last_output", json!({})).await;
    let id = CommandId::from_u128(1).to_string();
    let last = &shown(&seen)["lastCommand"];
    assert_eq!((&last["stdout"], &last["stderr"]), (&json!("make: *** no rule\n"), &json!("")));
    assert_eq!((&last["commandId"], &last["exitCode"], &last["timedOut"]), (&json!(id), &json!(2), &json!(false)));
    assert_eq!(last["summary"], "ended with exit code 2 after 12 ms");
    assert!(structured(&seen)["lastCommand"].get("stdout").is_none(), "the record does not keep it twice");
    let seen = shown(&hand.done("shell_read_command", json!({"commandId": id})).await);
    assert_eq!(seen["command"]["outputPreview"], "make: *** no rule\n");
    let seen = shown(&hand.done("shell_history", json!({"limit": 0})).await);
    assert_eq!((&seen["count"], &seen["commands"][0]["args"]), (&json!(1), &json!(["make"])));
    let capped = hand.done("shell_history", json!({"limit": 100_000})).await;
    assert_eq!(capped.warnings, ["limit 100000 was lowered to 200"]);
    let other = CommandId::from_u128(2).to_string();
    let missing = hand.done("shell_read_command", json!({"commandId": other})).await;
    assert_eq!((missing.code.known(), &shown(&missing)["command"]), (Some(Code::NoMatches), &Value::Null));
}

#[tokio::test]
async fn of_a_long_output_both_ends_are_shown_and_the_rest_is_named() {
    let world = World::new();
    let long: &'static str = Box::leak(format!("first\n{}last\n", "middle line\n".repeat(20_000)).into_boxed_str());
    let process = world.start_with(runs(1, long));
    let hand = process.open(world.session().await).await;
    hand.done("run", json!({})).await;
    let seen = hand.done("shell_read_last_output", json!({})).await;
    // The document is cut once more for the model; the whole of it is an artifact.
    let whole = seen.artifacts.last().expect("kept").id;
    let page = hand.done("artifact_grep", json!({"id": whole, "pattern": "left out here"})).await;
    let cut = long.len() - limits::ARTIFACT_INLINE_MAX;
    let shell = hand.session.state().shell;
    let kept = shell.recent().next().and_then(|last| last.fact.stdout_ref).expect("kept whole");
    assert!(
        text(&page).contains(&format!("[{cut} bytes left out here; read them with artifact_read")),
        "{}",
        text(&page)
    );
    let tail = hand.done("artifact_read", json!({"id": kept, "tail": 1})).await;
    assert!(text(&tail).contains("last"), "{}", text(&tail));
}

#[tokio::test]
async fn another_session_is_seen_only_if_it_is_alike_and_none_is_told_of() {
    let world = World::new();
    let (own, like) = (world.session().await, world.session().await);
    fs::create_dir_all(world.path("sub")).expect("made");
    let process = world.start();
    let other = process.open(like).await;
    other.done("shell_set_cwd", json!({"path": "sub"})).await;
    let hand = process.open(own).await;
    let seen = shown(&hand.done("shell_describe", json!({"sessionId": like})).await);
    assert_eq!((&seen["sessionId"], &seen["cwd"]), (&json!(like), &json!("/workspace/sub")));
    assert_eq!(shown(&hand.done("shell_describe", json!({"sessionId": " "})).await)["sessionId"], json!(own));
    let nobody = SessionId::from_u128(9);
    let tools = [
        ("shell_describe", json!({"sessionId": nobody})),
        ("shell_history", json!({"sessionId": nobody})),
        ("shell_read_last_output", json!({"sessionId": nobody})),
        ("shell_read_command", json!({"sessionId": nobody, "commandId": CommandId::from_u128(1)})),
    ];
    for (tool, input) in tools {
        let (code, reason) = (Code::RuntimePreconditionFailed, Some(Reason::NotInScope));
        let seen = hand.refused(tool, input, code, reason, Phase::Execute).await;
        assert_eq!(seen.summary, format!("Session {nobody} is not available to agent tester"));
    }
    let wrong = json!({"sessionId": "sesn_x"});
    let seen = hand.refused("shell_describe", wrong, Code::SchemaInvalid, None, Phase::Validate).await;
    assert!(seen.summary.contains("session id must be sesn_ + UUIDv7"), "{}", seen.summary);
}
