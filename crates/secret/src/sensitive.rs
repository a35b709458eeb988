//! Fields that a schema marks `"x-portcullis-sensitive": true`: taken out of an input before it
//! enters an event, put back when the approved call runs (tool-contract §4).
//!
//! Validation is not done here. A value counts as sensitive if *any* part of the schema that could
//! speak of it says so: with `anyOf` and its kin nobody asks which branch holds, because masking too
//! much costs nothing and masking too little cannot be undone.

use std::collections::HashSet;
use std::ptr;
use std::sync::LazyLock;

use serde_json::Value;

use crate::{MASK, SENSITIVE_KEYWORD};

/// Schemas that apply to the same value as the schema they stand in.
const BESIDE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const BESIDE: [&str; 3] = ["if", "then", "else"];

/// The schema of a field that is none.
static MISSPELT: LazyLock<Value> = LazyLock::new(|| serde_json::json!({ SENSITIVE_KEYWORD: true }));

/// A value could not be put back where it was taken from: the input is not the one it came from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored input has no place `{pointer}` for its sealed value; it is not the input the value was taken from")]
pub struct RestoreError {
    pub pointer: String,
}

/// Whether a schema marks anything sensitive, wherever in it.
#[must_use]
pub fn marks_sensitive(schema: &Value) -> bool {
    schema.to_string().contains(SENSITIVE_KEYWORD)
}

/// Replaces every sensitive value of `input` by `"***"` and returns what was there, with its JSON
/// pointer, in the order of the document. A sensitive value is taken whole, whatever it holds.
///
/// Follows `properties`, `patternProperties`, `additionalProperties`, `items`, `prefixItems`,
/// `$ref` inside the document, and the combining keywords.
pub fn redact_sensitive(schema: &Value, input: &mut Value) -> Vec<(String, Value)> {
    let mut places = Vec::new();
    let mut walk = Walk { root: schema, seen: HashSet::new() };
    walk.value(&[schema], input, &mut String::new(), &mut places);
    places
        .into_iter()
        .filter_map(|pointer| {
            let place = input.pointer_mut(&pointer)?;
            Some((pointer, std::mem::replace(place, Value::from(MASK))))
        })
        .collect()
}

/// Puts back what [`redact_sensitive`] took out.
///
/// # Errors
/// If the input has no such place; places before it have then been restored.
pub fn restore_sensitive(input: &mut Value, taken: &[(String, Value)]) -> Result<(), RestoreError> {
    for (pointer, value) in taken {
        *input.pointer_mut(pointer).ok_or_else(|| RestoreError { pointer: pointer.clone() })? = value.clone();
    }
    Ok(())
}

struct Walk<'s> {
    root: &'s Value,
    /// Schemas already gathered for the value at hand: a schema that refers to itself ends here.
    seen: HashSet<*const Value>,
}

impl<'s> Walk<'s> {
    fn value(&mut self, schemas: &[&'s Value], value: &Value, at: &mut String, places: &mut Vec<String>) {
        self.seen.clear();
        let mut all = Vec::new();
        for schema in schemas {
            self.gather(schema, &mut all);
        }
        if all.iter().any(|schema| schema.get(SENSITIVE_KEYWORD) == Some(&Value::Bool(true))) {
            places.push(at.clone());
            return;
        }
        let len = at.len();
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let below: Vec<&Value> = all.iter().flat_map(|s| of_field(s, name)).collect();
                    if !below.is_empty() {
                        at.push('/');
                        at.push_str(&name.replace('~', "~0").replace('/', "~1"));
                        self.value(&below, field, at, places);
                        at.truncate(len);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let below: Vec<&Value> = all.iter().flat_map(|s| of_item(s, index)).collect();
                    if !below.is_empty() {
                        at.push('/');
                        at.push_str(&index.to_string());
                        self.value(&below, item, at, places);
                        at.truncate(len);
                    }
                }
            }
            _ => {}
        }
    }

    /// `schema` and every schema that speaks of the same value, each once.
    fn gather(&mut self, schema: &'s Value, all: &mut Vec<&'s Value>) {
        // Invariant: the stack is bounded by the schema, because each schema is entered once.
        if !self.seen.insert(ptr::from_ref(schema)) {
            return;
        }
        all.push(schema);
        if let Some(target) = schema.get("$ref").and_then(Value::as_str)
            && let Some(pointer) = target.strip_prefix('#')
            && let Some(target) = self.root.pointer(pointer)
        {
            self.gather(target, all);
        }
        for list in BESIDE_LISTS.iter().filter_map(|word| schema.get(word)?.as_array()) {
            for part in list {
                self.gather(part, all);
            }
        }
        for part in BESIDE.iter().filter_map(|word| schema.get(word)) {
            self.gather(part, all);
        }
        if let Some(parts) = schema.get("dependentSchemas").and_then(Value::as_object) {
            for part in parts.values() {
                self.gather(part, all);
            }
        }
    }
}

fn of_field<'s>(schema: &'s Value, name: &str) -> Vec<&'s Value> {
    let mut out = Vec::new();
    out.extend(schema.get("properties").and_then(|p| p.get(name)));
    if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
        // A pattern this engine cannot read counts as matching: see the head of this file.
        out.extend(
            patterns
                .iter()
                .filter(|(pattern, _)| regex::Regex::new(pattern).map_or(true, |r| r.is_match(name)))
                .map(|(_, schema)| schema),
        );
    }
    if out.is_empty() {
        match schema.get("additionalProperties") {
            // It will be refused, and may be a misspelt name of the sensitive value beside it.
            Some(Value::Bool(false)) if marks_sensitive(schema) => out.push(&MISSPELT),
            other => out.extend(other),
        }
    }
    out
}

fn of_item(schema: &Value, index: usize) -> Vec<&Value> {
    let first = schema.get("prefixItems").and_then(|items| items.get(index));
    match (first, schema.get("items")) {
        (Some(first), _) => vec![first],
        // Before draft 2020-12 `items` could itself be a list.
        (None, Some(Value::Array(items))) => {
            items.get(index).or_else(|| schema.get("additionalItems")).into_iter().collect()
        }
        (None, items) => items.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, input: &Value, masked: &Value, pointers: &[&str]) {
        let mut work = input.clone();
        let taken = redact_sensitive(schema, &mut work);
        assert_eq!(&work, masked);
        assert_eq!(taken.iter().map(|(p, _)| p.as_str()).collect::<Vec<_>>(), pointers);
        restore_sensitive(&mut work, &taken).expect("same input");
        assert_eq!(&work, input, "restored byte for byte");
    }

    #[test]
    fn marked_properties_leave_and_come_back() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "a/b~c": {"type": "string", "x-portcullis-sensitive": true},
            "deep": {"type": "object", "properties": {"v": {"x-portcullis-sensitive": true}}},
            "off": {"x-portcullis-sensitive": false},
        }});
        check(
            &schema,
            &json!({"name": "n", "a/b~c": "s", "deep": {"v": {"k": [1]}, "w": 2}, "off": "o", "x": 1}),
            &json!({"name": "n", "a/b~c": "***", "deep": {"v": "***", "w": 2}, "off": "o", "x": 1}),
            &["/a~1b~0c", "/deep/v"],
        );
    }

    #[test]
    fn items_refs_and_branches_are_followed() {
        let schema = json!({
            "$defs": {
                "secret": {"type": "string", "x-portcullis-sensitive": true},
                "tree": {"type": "object", "properties": {
                    "key": {"$ref": "#/$defs/secret"},
                    "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                }},
            },
            "allOf": [{"$ref": "#/$defs/tree"}, {"properties": {"pin": {"anyOf": [
                {"type": "null"}, {"oneOf": [{"$ref": "#/$defs/secret"}]},
            ]}}}],
            "properties": {
                "pair": {"prefixItems": [{}, {"$ref": "#/$defs/secret"}], "items": {}},
                "env": {"additionalProperties": {"$ref": "#/$defs/secret"}},
            },
        });
        check(
            &schema,
            &json!({"key": "k", "kids": [{"key": "l", "kids": []}, {"kids": [{"key": 3}]}],
                    "pin": "1", "pair": ["a", "b", "c"], "env": {"A": "x"}}),
            &json!({"key": "***", "kids": [{"key": "***", "kids": []}, {"kids": [{"key": "***"}]}],
                    "pin": "***", "pair": ["a", "***", "c"], "env": {"A": "***"}}),
            &["/key", "/kids/0/key", "/kids/1/kids/0/key", "/pin", "/pair/1", "/env/A"],
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({
            "$ref": "#", "allOf": [{"$ref": "#"}, {"$ref": "#"}],
            "anyOf": [{"$ref": "#/allOf/0"}, {"$ref": "#/nowhere"}, {"$ref": "https://else.where/x"}],
            "properties": {"a": {"$ref": "#"}, "s": {"x-portcullis-sensitive": true}},
        });
        check(&schema, &json!({"a": {"a": {"s": 1}}}), &json!({"a": {"a": {"s": "***"}}}), &["/a/a/s"]);
    }

    #[test]
    fn check17_a_misspelt_field_beside_a_sensitive_one_leaves_too() {
        let closed = json!({"properties": {"value": {"x-portcullis-sensitive": true}, "key": {}}, "additionalProperties": false});
        check(
            &closed,
            &json!({"key": "A", "valeu": "s", "value": "t"}),
            &json!({"key": "A", "valeu": "***", "value": "***"}),
            &["/valeu", "/value"],
        );
        let plain = json!({"properties": {"key": {}}, "additionalProperties": false});
        check(&plain, &json!({"key": "A", "kye": "B"}), &json!({"key": "A", "kye": "B"}), &[]);
    }

    #[test]
    fn a_whole_input_can_be_sensitive() {
        check(&json!({"x-portcullis-sensitive": true}), &json!([1]), &json!("***"), &[""]);
    }

    #[test]
    fn a_foreign_input_is_refused() {
        let error = restore_sensitive(&mut json!({}), &[("/a".into(), json!(1))]);
        assert_eq!(error, Err(RestoreError { pointer: "/a".into() }));
    }
}
