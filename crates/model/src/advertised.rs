//! The input schema of a tool as a provider is shown it.
//!
//! The runtime enforces the tool's own schema, whatever a provider is shown (tool-contract §4: a derived schema may be
//! weaker). Some servers compile the schema into a grammar and refuse the whole request over a keyword that they cannot
//! compile: llama.cpp refuses a `pattern` without `^` and `$`, and a repetition of some thousand characters. So keywords
//! that only bound a text, and our own annotations, are not shown.

use serde_json::{Map, Value};

/// Bounds of a text. A grammar repeats a rule once for each character, and servers refuse large repetitions.
const TEXT_BOUNDS: &[&str] = &["maxLength", "minLength"];

/// What begins the name of an annotation for the runtime alone.
const OUR_OWN: &str = "x-portcullis-";

/// Keywords whose value maps names to schemas.
const NAMED_SCHEMAS: &[&str] = &["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"];

/// Keywords whose value is data, not a schema: nothing in them is a keyword.
const DATA: &[&str] = &["default", "const", "enum", "examples", "required"];

/// The schema without what servers are known to refuse. Equal schemas give equal results.
pub(crate) fn advertised(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => Value::Object(object(keywords)),
        Value::Array(schemas) => Value::Array(schemas.iter().map(advertised).collect()),
        other => other.clone(),
    }
}

fn object(keywords: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = Map::new();
    for (keyword, value) in keywords {
        let keyword = keyword.as_str();
        let is_hidden = TEXT_BOUNDS.contains(&keyword)
            || keyword.starts_with(OUR_OWN)
            || (keyword == "pattern" && !value.as_str().is_some_and(compiles_everywhere));
        if is_hidden {
            continue;
        }
        let value = match value {
            Value::Object(named) if NAMED_SCHEMAS.contains(&keyword) => {
                Value::Object(named.iter().map(|(name, schema)| (name.clone(), advertised(schema))).collect())
            }
            value if DATA.contains(&keyword) => value.clone(),
            value => advertised(value),
        };
        shown.insert(keyword.to_owned(), value);
    }
    shown
}

/// Whether every server known to us compiles this pattern: it is anchored on both sides and made of plain characters,
/// classes and repetitions.
fn compiles_everywhere(pattern: &str) -> bool {
    let Some(inside) = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else { return false };
    !inside.contains("(?") && !inside.contains(['\\', '^', '$'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_grammar_cannot_compile_is_not_shown_and_everything_else_is() {
        let schema = json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "pattern": "\\S", "maxLength": 65536, "description": "kept"},
                "maxLength": {"type": "integer", "maximum": 9, "default": 3},
                "id": {"type": "string", "pattern": "^art_[0-7][0-9a-h]{25}$", "minLength": 1},
                "value": {"type": "string", "x-portcullis-sensitive": true},
                "many": {"type": "array", "items": {"type": "string", "pattern": "^(?=a)$"}, "maxItems": 2},
                "either": {"anyOf": [{"type": "string", "pattern": "\\d"}, {"const": {"pattern": "data"}}]},
            },
            "required": ["pattern", "maxLength"],
            "additionalProperties": false,
        });
        let shown = json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "kept"},
                "maxLength": {"type": "integer", "maximum": 9, "default": 3},
                "id": {"type": "string", "pattern": "^art_[0-7][0-9a-h]{25}$"},
                "value": {"type": "string"},
                "many": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                "either": {"anyOf": [{"type": "string"}, {"const": {"pattern": "data"}}]},
            },
            "required": ["pattern", "maxLength"],
            "additionalProperties": false,
        });
        assert_eq!(advertised(&schema), shown);
        assert_eq!(advertised(&schema).to_string(), advertised(&schema.clone()).to_string());
    }
}
