//! L60: what a tool shows of its output exists for every output its schema allows, not only for sensible ones.
#![allow(clippy::disallowed_methods, reason = "projections are reached through the seam, without a call")]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use portcullis_base::limits;
use portcullis_contract::{Tool, ToolName, seam};
use portcullis_pipeline::{ArtifactShelf, HeldSessions, PathRules, ShellBook, TaskBook};
use portcullis_sandbox::{MountTable, TreeOwner};
use portcullis_store::MemoryArtifacts;
use portcullis_tools::{
    CoverageRule, FileTools, NoLiveShell, Profile, ShellTools, artifact_tools, file_tools, shell_tools, task_tools,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::world::World;

/// A value that `schema` allows, chosen by the bytes of `seed`, its extremes among them.
fn value_of(schema: &Value, root: &Value, seed: &mut std::vec::IntoIter<u8>) -> Value {
    let mut pick = |n: usize| usize::from(seed.next().unwrap_or(0)) % n.max(1);
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#')).expect("a schema that refers to itself");
        return value_of(target, root, seed);
    }
    for choice in ["anyOf", "oneOf", "enum"] {
        if let Some(options) = schema[choice].as_array() {
            let option = &options[pick(options.len())];
            return if choice == "enum" { option.clone() } else { value_of(option, root, seed) };
        }
    }
    let word = match &schema["type"] {
        Value::Array(words) => words[pick(words.len())].as_str().unwrap_or_default().to_owned(),
        word => word.as_str().unwrap_or("object").to_owned(),
    };
    match word.as_str() {
        "null" => Value::Null,
        "boolean" => json!(pick(2) == 0),
        "integer" | "number" => {
            let unsigned = [0, 1, 2, 1_000, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
            json!(unsigned[pick(if schema["format"] == "uint64" { 7 } else { 4 })])
        }
        "string" => json!(["", "a", "/workspace/ä\n\u{202e}b", "art_0", "image/png", "\u{0}"][pick(6)]),
        "array" => {
            let length = pick(3);
            (0..length).map(|_| value_of(&schema["items"], root, seed)).collect()
        }
        _ => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let mut object = Map::new();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let left_out = !required.contains(&json!(name)) && seed.next().unwrap_or(0).is_multiple_of(2);
                if !left_out {
                    object.insert(name.clone(), value_of(property, root, seed));
                }
            }
            object.into()
        }
    }
}

/// Every tool of this crate, made once: checking their schemas is what takes time.
static TOOLS: LazyLock<BTreeMap<ToolName, Tool>> = LazyLock::new(|| {
    let world = World::new();
    let mounts = MountTable::workspace(&world.path(""), TreeOwner::SessionOwn).expect("a mount");
    let parts = FileTools {
        profile: Profile::Managed,
        hand: None,
        mounts: Arc::new(mounts),
        held_sessions: HeldSessions::default(),
        coverage: CoverageRule::Region,
        rules: PathRules::default(),
    };
    let mut tools = file_tools(parts.clone()).expect("file tools");
    let shelf = ArtifactShelf::new(world.store(), Arc::new(MemoryArtifacts::default()), crate::world::TENANT);
    let (book, live) = (ShellBook::default(), Arc::new(NoLiveShell));
    let shell = ShellTools { book, shelf: shelf.clone(), files: parts, live };
    tools.extend(shell_tools(shell).expect("shell tools"));
    tools.extend(artifact_tools(shelf).expect("artifact tools"));
    tools.extend(task_tools(&TaskBook::default()).expect("task tools"));
    tools
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l60_every_projection_returns_for_whatever_the_schema_allows(seed in prop::collection::vec(any::<u8>(), 0..64)) {
        for (name, tool) in &*TOOLS {
            let input = match name.to_string().as_str() {
                "artifact_grep" => json!({"id": "art_00000000000000000000000001", "pattern": "x"}),
                "glob" | "grep" => json!({"pattern": "x"}),
                "shell_describe" | "shell_history" | "shell_read_last_output" => json!({}),
                "shell_read_command" => json!({"commandId": "cmd_00000000000000000000000001"}),
                "shell_set_cwd" => json!({"path": "a"}),
                "shell_set_env" => json!({"key": "A", "value": "x"}),
                "shell_unset_env" => json!({"key": "A"}),
                "artifact_read" => json!({"id": "art_00000000000000000000000001"}),
                "edit" => json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
                "task_cancel" | "task_output" | "task_wait" => {
                    json!({"task_id": "task_00000000000000000000000001"})
                }
                "write" => json!({"file_path": "a", "content": "x"}),
                _ => json!({"file_path": "a"}),
            };
            let Ok(input) = seam::decode(tool, &input.to_string()) else { panic!("{name}: the input is sound") };
            let schema = seam::definition(name, tool).output_schema;
            let output = value_of(&schema, &schema, &mut seed.clone().into_iter());
            let model = seam::to_model(tool, &input, &output);
            prop_assert!(model.is_some(), "{} has a view for the model", name);
            let user = seam::to_user(tool, &input, &output).expect("a view for people");
            prop_assert!(user.summary.len() <= limits::READ_BYTES, "{}", name);
            prop_assert!(seam::to_structured(tool, &input, &output).is_object(), "{}", name);
        }
    }
}
