//! Several tools behind one name: the input says which, and from there on the call is that tool's own.
//!
//! What is asked, scheduled, run and shown is what the chosen tool says of itself, so a tool reached this way can never
//! be a way around the same tool reached by its own name (H44).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::{Code, Window};
use portcullis_secret::{SENSITIVE_KEYWORD, marks_sensitive};
use serde_json::{Map, Value, json};

use crate::codec::{Codec, DecodeError};
use crate::tool::{Decoded, ErasedTool, Executed, Prechecking, Shape};
use crate::{
    AccessRequest, Anchor, BuildError, Caller, Content, DefinitionVersion, ExecutorId, InputFault, Precondition,
    Resolved, Semantics, Tool, ToolContext, UserText,
};

/// The field that holds the input of the chosen tool.
const INPUT: &str = "input";

/// What a choice is, before anything is chosen.
pub struct ChoiceFace {
    /// What a model reads.
    pub description: String,
    /// What catalogs show of it. The gate weighs what the chosen tool says.
    pub semantics: Semantics,
    /// Which implementation it is.
    pub executor: ExecutorId,
}

/// A chosen tool with its own input.
struct ChosenTool {
    tool: Tool,
    input: Decoded,
}

struct OneOf {
    shape: Shape,
    input: Codec,
    choices: BTreeMap<String, Tool>,
}

impl Tool {
    /// One tool for many: `{"name": …, "input": {…}}`, where `name` is one of `choices` and `input` is what it takes.
    ///
    /// # Errors
    /// If the face contradicts itself.
    pub fn one_of(face: ChoiceFace, choices: BTreeMap<String, Self>) -> Result<Self, BuildError> {
        let ChoiceFace { description, semantics, executor } = face;
        let input = Codec::new(input_schema(&choices));
        let output_schema = json!({"type": "object"});
        let version = DefinitionVersion::of(&description, &input.schema, &output_schema, &semantics);
        let input_schema = input.schema.clone();
        let shape = Shape { description, input_schema, output_schema, semantics, version, executor };
        Ok(Self { inner: Arc::new(OneOf { shape, input, choices }), alias: None, hidden_when: None })
    }
}

fn input_schema(choices: &BTreeMap<String, Tool>) -> Value {
    let names: Vec<&String> = choices.keys().collect();
    // A changed choice is a changed tool: an approval is bound to the version (tool-contract 13.7).
    let versions: Map<String, Value> =
        choices.iter().map(|(name, tool)| (name.clone(), json!(tool.inner.shape().version.as_str()))).collect();
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": names, "description": "The action."},
            INPUT: {"type": "object", "properties": sensitive(choices), "description": takes(choices)},
        },
        "required": ["name"],
        "additionalProperties": false,
        "x-portcullis-versions": versions,
    })
}

/// What each choice takes, in a line; a `?` may be left out. From the schemas that are enforced, so it cannot be wrong.
fn takes(choices: &BTreeMap<String, Tool>) -> String {
    let fields = |tool: &Tool| -> String {
        let schema = &tool.inner.shape().input_schema;
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let known = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mark = |name: &str| if required.contains(&name) { name.to_owned() } else { format!("{name}?") };
        known.map(|(name, _)| mark(name)).collect::<Vec<_>>().join(", ")
    };
    let lines = choices.iter().map(|(name, tool)| format!("{name} {{{}}}", fields(tool)));
    format!("What the action takes: {}.", lines.collect::<Vec<_>>().join("; "))
}

/// The fields in which a choice takes sensitive values. Under one name they are sensitive for all: masking too much costs
/// nothing.
fn sensitive(choices: &BTreeMap<String, Tool>) -> Map<String, Value> {
    let mut found = Map::new();
    for tool in choices.values() {
        let fields = tool.inner.shape().input_schema.get("properties").and_then(Value::as_object);
        for (field, schema) in fields.into_iter().flatten() {
            if marks_sensitive(schema) {
                found.insert(field.clone(), json!({SENSITIVE_KEYWORD: true}));
            }
        }
    }
    found
}

impl ErasedTool for OneOf {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn check_schemas(&self) -> Result<(), String> {
        self.input.validator()?;
        self.choices.values().try_for_each(|choice| choice.inner.check_schemas())
    }

    fn decode(&self, raw: &str) -> Result<Decoded, DecodeError> {
        let value = self.input.parse(raw)?;
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(tool) = self.choices.get(name) else {
            let fault = InputFault {
                path: "/name".to_owned(),
                rule: "enum".to_owned(),
                message: "there is no such action".to_owned(),
            };
            return Err(DecodeError { code: Code::SchemaInvalid, faults: vec![fault] });
        };
        let own = value.get(INPUT).map_or_else(|| "{}".to_owned(), Value::to_string);
        let input = tool.inner.decode(&own).map_err(|mut error| {
            for fault in &mut error.faults {
                fault.path = format!("/{INPUT}{}", fault.path);
            }
            error
        })?;
        let chosen = ChosenTool { tool: tool.clone(), input };
        Ok(Decoded { value, typed: Arc::new(chosen) })
    }

    fn chosen(&self, input: &Decoded, _: &Caller) -> Option<(Tool, Decoded)> {
        let chosen = input.typed::<ChosenTool>();
        Some((chosen.tool.clone(), chosen.input.clone()))
    }

    fn resolve(&self, input: &Decoded, caller: &Caller) -> Result<Resolved, Precondition> {
        let chosen = input.typed::<ChosenTool>();
        chosen.tool.inner.resolve(&chosen.input, caller)
    }

    fn plan_access(&self, input: &Decoded, resolved: &Resolved) -> Option<Vec<AccessRequest>> {
        let chosen = input.typed::<ChosenTool>();
        chosen.tool.inner.plan_access(&chosen.input, resolved)
    }

    fn precheck(&self, input: &Decoded, resolved: &Resolved, caller: &Caller) -> Prechecking {
        let chosen = input.typed::<ChosenTool>();
        chosen.tool.inner.precheck(&chosen.input, resolved, caller)
    }

    fn execute(&self, input: &Decoded, resolved: Resolved, context: ToolContext) -> BoxFuture<'static, Executed> {
        let chosen = input.typed::<ChosenTool>();
        chosen.tool.inner.execute(&chosen.input, resolved, context).boxed()
    }

    fn timeout_ms(&self, input: &Decoded) -> Option<u64> {
        let chosen = input.typed::<ChosenTool>();
        chosen.tool.inner.timeout_ms(&chosen.input)
    }

    fn result_limit(&self, input: &Decoded) -> Option<usize> {
        let chosen = input.typed::<ChosenTool>();
        chosen.tool.inner.result_limit(&chosen.input)
    }

    fn loop_key(&self, input: &Decoded) -> Value {
        input.value.clone()
    }

    fn to_model(&self, input: &Decoded, output: &Value) -> Option<Vec<Content>> {
        let chosen = input.typed::<ChosenTool>();
        chosen.tool.inner.to_model(&chosen.input, output)
    }

    fn to_user(&self, input: &Decoded, output: &Value) -> Option<UserText> {
        let chosen = input.typed::<ChosenTool>();
        chosen.tool.inner.to_user(&chosen.input, output)
    }

    fn to_structured(&self, input: &Decoded, output: &Value) -> Value {
        let chosen = input.typed::<ChosenTool>();
        chosen.tool.inner.to_structured(&chosen.input, output)
    }

    fn anchors(&self, _: &dyn Window) -> Option<Vec<Anchor>> {
        None
    }
}
