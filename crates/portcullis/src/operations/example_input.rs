//! An example of a right input, made from a tool's own schema: what must be there, each with a placeholder of its type.

use portcullis_base::{Code, SessionId};
use serde_json::{Map, Value, json};

use crate::Runtime;

/// How deep a schema is followed: one may refer to itself.
const DEPTH: usize = 8;

/// Examples that are tried: as many as the longest choice among names has, and some.
const TRIED: usize = 32;

/// An input that a tool takes, if it is offered to the session. Where a name is chosen, what else is needed may depend on
/// it: the first example that the tool itself takes.
pub async fn example_input(runtime: &Runtime, session: SessionId, tool: &str) -> Option<Value> {
    let offer = runtime.offer(session);
    let schema = offer.entries().find(|(name, _)| name.as_str() == tool)?.1.definition.input_schema.clone();
    let first = example(&schema, 0);
    for choice in 0..TRIED {
        let example = example(&schema, choice);
        if choice > 0 && example == first {
            break;
        }
        let found = runtime.gate().explain(session, "local", tool, &example.to_string()).await;
        if !is_wrong_input(found.code) {
            return Some(example);
        }
    }
    Some(first)
}

/// Whether a refusal says that the input is not what the tool takes, whatever the rules say.
#[must_use]
pub fn is_wrong_input(code: Option<Code>) -> bool {
    matches!(code, Some(Code::InputUnparseable | Code::SchemaInvalid))
}

/// An input with what `schema` demands. Of values to choose from it has the one in place `choice`, counted round.
fn example(schema: &Value, choice: usize) -> Value {
    ExampleMaker { root: schema, choice }.value(schema, "value", DEPTH)
}

struct ExampleMaker<'s> {
    root: &'s Value,
    choice: usize,
}

impl ExampleMaker<'_> {
    fn value(&self, schema: &Value, name: &str, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return Value::Null };
        if let Some(place) = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#')) {
            return self.root.pointer(place).map_or(Value::Null, |there| self.value(there, name, depth));
        }
        for given in ["const", "default"] {
            if let Some(value) = schema.get(given).filter(|value| !value.is_null()) {
                return value.clone();
            }
        }
        for several in ["examples", "enum"] {
            if let Some(values) = schema[several].as_array().filter(|values| !values.is_empty()) {
                return values[self.choice % values.len()].clone();
            }
        }
        for either in ["anyOf", "oneOf"] {
            let first = schema[either].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null"));
            if let Some(first) = first {
                return self.value(first, name, depth);
            }
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
            kind => kind.as_str(),
        };
        match kind {
            Some("object") => self.object(schema, depth),
            Some("array") if schema["minItems"].as_u64().unwrap_or(0) > 0 => {
                json!([self.value(&schema["items"], name, depth)])
            }
            Some("array") => json!([]),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            _ => json!(text(schema, name)),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let field = |name: &str| (name.to_owned(), self.value(&schema["properties"][name], name, depth));
        Value::Object(needed.map(field).collect::<Map<_, _>>())
    }
}

/// The field's name in capitals, as the help of a command writes what one puts in. An id shows how it begins.
fn text(schema: &Value, name: &str) -> String {
    let pattern = schema["pattern"].as_str().and_then(|pattern| pattern.strip_prefix('^')).unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let begins: String = pattern.chars().take_while(plain).collect();
    if !begins.is_empty() {
        return format!("{begins}…");
    }
    let mut capitals = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !capitals.is_empty() {
            capitals.push('_');
        }
        capitals.extend(c.to_uppercase());
    }
    capitals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_demanded_has_a_placeholder_by_its_type_and_what_is_not_is_left_out() {
        let schema = json!({
            "type": "object",
            "required": ["filePath", "count", "deep", "all", "list", "id", "kind", "maybe"],
            "properties": {
                "filePath": {"type": "string"},
                "count": {"type": ["null", "integer"], "minimum": 3},
                "deep": {"$ref": "#/$defs/deep"},
                "all": {"type": "boolean"},
                "list": {"type": "array", "items": {"type": "number"}, "minItems": 1},
                "id": {"type": "string", "pattern": "^art_[0-7]{26}$"},
                "kind": {"enum": ["a", "b"]},
                "maybe": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                "left_out": {"type": "string"},
            },
            "$defs": {"deep": {"type": "object", "required": ["x"], "properties": {"x": {"type": "array"}}}},
        });
        let wanted = json!({
            "filePath": "FILE_PATH", "count": 3, "deep": {"x": []}, "all": true, "list": [1], "id": "art_…",
            "kind": "a", "maybe": "MAYBE",
        });
        assert_eq!(example(&schema, 0), wanted);
        assert_eq!(example(&schema, 1)["kind"], "b");
    }

    #[test]
    fn a_schema_that_demands_itself_ends() {
        let schema = json!({"type": "object", "required": ["again"], "properties": {"again": {"$ref": "#"}}});
        assert!(example(&schema, 0).to_string().len() < 200);
    }
}
