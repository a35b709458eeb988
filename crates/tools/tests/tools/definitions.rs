//! What a model and a catalog are told of the tools.

use portcullis_base::{Effect, EffectSet, Risk, RiskSet};
use portcullis_contract::{Concurrency, DefaultPolicy, Interrupt, Strategy};
use portcullis_sandbox::TreeOwner;
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn inputs_are_the_published_ones_closed_and_described() {
    let world = World::new();
    let process = world.start();
    let tools = process.definitions(world.session().await);
    let expected: &[(&str, &[&str], &[&str])] = &[
        ("artifact_grep", &["id", "pattern"], &["id", "pattern", "literal", "context", "limit"]),
        ("artifact_read", &["id"], &["id", "range", "around", "lines", "tail"]),
        ("edit", &["file_path", "old_string", "new_string"], &["file_path", "old_string", "new_string", "replace_all"]),
        ("glob", &["pattern"], &["pattern", "path", "kind", "limit", "max_depth", "sort"]),
        ("grep", &["pattern"], &["pattern", "path", "literal", "ignore_case", "limit"]),
        ("read", &["file_path"], &["file_path", "view_range", "start_line", "line_count", "tail_lines", "max_chars"]),
        ("shell_describe", &[], &["sessionId"]),
        ("shell_history", &[], &["sessionId", "limit"]),
        ("shell_read_command", &["commandId"], &["commandId", "sessionId"]),
        ("shell_read_last_output", &[], &["sessionId"]),
        ("shell_set_cwd", &["path"], &["path"]),
        ("shell_set_env", &["key", "value"], &["key", "value"]),
        ("shell_unset_env", &["key"], &["key"]),
        ("task_cancel", &["task_id"], &["task_id"]),
        ("task_output", &["task_id"], &["task_id", "range"]),
        ("task_wait", &["task_id"], &["task_id", "timeout_ms"]),
        ("write", &["file_path", "content"], &["file_path", "content"]),
    ];
    assert_eq!(tools.keys().collect::<Vec<_>>(), expected.iter().map(|(name, ..)| name).collect::<Vec<_>>());
    for &(name, required, fields) in expected {
        let schema = &tools[name].input_schema;
        assert_eq!(schema.get("required").cloned().unwrap_or(json!([])), json!(required), "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let properties = schema["properties"].as_object().expect("properties");
        assert_eq!(properties.keys().collect::<Vec<_>>(), fields, "{name}: in the published order");
        for (field, property) in properties {
            assert!(property["description"].as_str().is_some_and(|text| text.len() > 20), "{name}.{field}: {property}");
        }
    }
    let read = &tools["read"].input_schema["properties"];
    assert_eq!(read["line_count"]["type"], json!(["number", "null"]));
    assert_eq!(read["line_count"]["default"], 2000);
    assert_eq!(read["file_path"]["pattern"], r"\S");
    let edit = &tools["edit"].input_schema["properties"];
    assert_eq!(edit["old_string"]["minLength"], 1);
    assert_eq!(edit["replace_all"]["default"], Value::Bool(false));
}

#[tokio::test]
async fn shell_run_and_shell_exec_take_a_command_line_alike() {
    let mut world = World::new();
    world.sandbox = true;
    let tools = world.start().definitions(world.session().await);
    let fields = |name: &str| tools[name].input_schema["properties"].as_object().expect("properties").clone();
    let (run, mut exec) = (fields("shell_run"), fields("shell_exec"));
    let alike = ["command", "cwd", "timeoutMs", "maxOutputChars"];
    assert_eq!(run.keys().collect::<Vec<_>>(), alike);
    assert_eq!(exec.keys().collect::<Vec<_>>(), [&alike[..], &["restart", "background", "onTimeout"]].concat());
    // A shell that lives stays where it was sent, and may let a command go on.
    for (field, word) in [("cwd", "stays there"), ("timeoutMs", "`onTimeout`")] {
        let words = exec[field]["description"].take();
        assert!(words.as_str().is_some_and(|words| words.contains(word)), "{field}: {words}");
        exec[field]["description"] = run[field]["description"].clone();
    }
    alike.iter().for_each(|field| assert_eq!(run[*field], exec[*field], "{field}"));
}

#[tokio::test]
async fn governance_is_stated_as_the_contract_has_it() {
    for (owner, policy) in [(TreeOwner::SessionOwn, DefaultPolicy::Allow), (TreeOwner::PersonsTree, DefaultPolicy::Ask)]
    {
        let mut world = World::new();
        world.owner = owner;
        let process = world.start();
        let tools = process.definitions(world.session().await);
        for name in ["read", "artifact_read"] {
            let semantics = &tools[name].semantics;
            assert!(semantics.inert() && !semantics.destructive, "{name}");
            assert_eq!((semantics.interrupt, semantics.truncation), (Interrupt::Cancel, Strategy::Head), "{name}");
            assert_eq!(semantics.default_policy, DefaultPolicy::Allow, "{name}");
        }
        for (name, strategy) in
            [("glob", Strategy::Head), ("grep", Strategy::MatchContext), ("artifact_grep", Strategy::MatchContext)]
        {
            let semantics = &tools[name].semantics;
            assert!(semantics.inert() && !semantics.destructive, "{name}");
            assert_eq!((semantics.interrupt, semantics.truncation), (Interrupt::Cancel, strategy), "{name}");
            assert_eq!(semantics.default_policy, DefaultPolicy::Allow, "{name}");
        }
        for name in ["task_output", "task_wait"] {
            assert!(tools[name].semantics.inert(), "{name}");
            assert_eq!(tools[name].semantics.default_policy, DefaultPolicy::Allow, "{name}");
        }
        for name in ["shell_describe", "shell_history", "shell_read_command", "shell_read_last_output"] {
            let semantics = &tools[name].semantics;
            assert!(semantics.inert() && semantics.default_policy == DefaultPolicy::Allow, "{name}");
            assert_eq!(semantics.effects, EffectSet::from([Effect::MemoryRead, Effect::SandboxExecute]), "{name}");
        }
        for (name, more) in
            [("shell_set_cwd", Some(Effect::SandboxExecute)), ("shell_set_env", None), ("shell_unset_env", None)]
        {
            let semantics = &tools[name].semantics;
            assert!(!semantics.read_only && !semantics.destructive, "{name}");
            assert_eq!(
                (semantics.default_policy, semantics.interrupt),
                (DefaultPolicy::Allow, Interrupt::Finish),
                "{name}"
            );
            let effects: EffectSet = [Effect::MemoryWrite].into_iter().chain(more).collect();
            assert_eq!(semantics.effects, effects, "{name}");
        }
        let value = &tools["shell_set_env"].input_schema["properties"]["value"];
        assert_eq!((&value["type"], &value["x-portcullis-sensitive"]), (&json!("string"), &json!(true)));
        let cancel = &tools["task_cancel"].semantics;
        assert!(!cancel.read_only && cancel.default_policy == DefaultPolicy::Allow);
        assert_eq!(tools["read"].semantics.effects, EffectSet::from([Effect::ResourceRead, Effect::SandboxExecute]));
        for name in ["write", "edit"] {
            let semantics = &tools[name].semantics;
            assert_eq!(semantics.risk, RiskSet::from([Risk::Write]), "{name}");
            assert_eq!((semantics.concurrency, semantics.interrupt), (Concurrency::Keyed, Interrupt::Finish), "{name}");
            assert_eq!((semantics.destructive, semantics.reversible), (name == "write", true), "{name}");
            assert_eq!(semantics.default_policy, policy, "{name}");
            let effects = EffectSet::from([Effect::ResourceWrite, Effect::SandboxExecute]);
            assert_eq!(semantics.effects, effects, "{name}");
        }
    }
}
