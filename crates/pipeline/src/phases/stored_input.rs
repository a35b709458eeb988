//! What the log keeps of an input, and the hash an approval is bound to.
//!
//! An event holds the input as a value, masked and no longer than its limit. Whatever it cannot give back
//! exactly is sealed beside it, so that an approved call runs with the input that was approved.

use std::borrow::Cow;

use portcullis_base::{Digest, canonical_json, limits};
use portcullis_secret::{Redactor, marks_sensitive, redact_sensitive};
use serde_json::Value;

/// What an event keeps of an input that is too long to stand there whole.
const KEPT_OF_OVERSIZED: usize = 1_024;
/// More than a value can grow when it is written out again (`1e15` becomes `1000000000000000.0`): what is
/// shorter by this need not be measured.
const GROWTH: usize = 8;

/// An input as an event holds it.
pub(crate) struct StoredInput {
    pub(crate) value: Value,
    /// Whether the proposed input can be had back from `value`. Refused text needs no way back.
    pub(crate) exact: bool,
}

/// Masks `raw` by every schema that may speak of it and by the known secrets, and cuts it to size: escaped,
/// because that is how it is written (a control character is six bytes there).
pub(crate) fn written(raw: &str, schemas: &[&Value], redactor: &Redactor) -> StoredInput {
    let Some(mut value) = parsed(raw) else {
        return StoredInput { value: Value::String(text(raw, schemas, redactor)), exact: true };
    };
    let proposed = value.clone();
    for schema in schemas {
        let _ = redact_sensitive(schema, &mut value);
    }
    redactor.redact_value(&mut value);
    let exact = value == proposed && !holds_float(&value);
    if raw.len() <= limits::INPUT_MAX / GROWTH {
        return StoredInput { value, exact };
    }
    let escaped = value.to_string();
    if escaped.len() <= limits::INPUT_MAX {
        return StoredInput { value, exact };
    }
    StoredInput { value: Value::String(head(&escaped, raw.len())), exact: false }
}

/// Text that is no input: it is refused, so its beginning is enough to know it by.
fn text(raw: &str, schemas: &[&Value], redactor: &Redactor) -> String {
    // Nobody can tell where in such text the sensitive value stands.
    if schemas.iter().any(|schema| marks_sensitive(schema)) {
        return format!("({} bytes, not kept: the tool takes sensitive values)", raw.len());
    }
    // Masked first, so that the cut cannot leave half a secret; no secret is as long as the limit.
    let start = &raw[..raw.floor_char_boundary(limits::INPUT_MAX)];
    let masked = redactor.redact_text(start);
    let whole = start.len() == raw.len() && escaped_len(&masked) <= limits::INPUT_MAX;
    if whole { masked.into_owned() } else { head(&masked, raw.len()) }
}

fn head(text: &str, bytes: usize) -> String {
    format!("{}… ({bytes} bytes in all)", &text[..text.floor_char_boundary(KEPT_OF_OVERSIZED)])
}

fn escaped_len(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |escaped| escaped.len())
}

fn parsed(raw: &str) -> Option<Value> {
    if raw.len() > limits::INPUT_MAX { None } else { serde_json::from_str(raw).ok() }
}

/// A number with a fraction may come back from its text as a neighbour of itself.
fn holds_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(holds_float),
        Value::Object(fields) => fields.values().any(holds_float),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// The hash an approval is bound to: of the canonical JSON (tool-contract §4), so that an input has one hash
/// whether it comes from its proposer or from the log; of the text itself where it is no JSON.
#[must_use]
pub fn input_hash(input: &str) -> Digest {
    let canonical = parsed(input).and_then(|value| canonical_json(&value).ok());
    Digest::of(canonical.map_or(Cow::Borrowed(input), Cow::Owned).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(raw: &str) -> StoredInput {
        written(raw, &[], &Redactor::none())
    }

    #[test]
    fn l19_an_input_is_kept_within_its_limit_as_it_is_written() {
        for raw in ["\u{1}".repeat(1_000_000), "x".repeat(limits::INPUT_MAX), "x".repeat(3 * limits::INPUT_MAX)] {
            let kept = of(&raw).value.to_string();
            assert!(kept.len() <= limits::INPUT_MAX, "{}", kept.len());
        }
        let short = "not JSON \u{1}";
        assert_eq!(of(short).value, Value::String(short.to_owned()), "what fits is kept whole");
        // Numbers grow when they are written out.
        let numbers = format!("{{\"n\":[{}1]}}", "1e15,".repeat(200_000));
        let kept = of(&numbers);
        assert!(kept.value.to_string().len() <= limits::INPUT_MAX);
        assert!(!kept.exact, "it may run, so it is sealed");
    }

    #[test]
    fn l36_an_input_that_the_event_cannot_give_back_is_not_called_exact() {
        assert!(of(r#"{"a": 1, "b": ["x"]}"#).exact);
        assert!(!of(r#"{"a": 0.30000000000000004}"#).exact);
        let schema = serde_json::json!({"properties": {"p": {"x-portcullis-sensitive": true}}});
        let masked = written(r#"{"p": "hunter2"}"#, &[&schema], &Redactor::none());
        assert_eq!((masked.value.to_string().as_str(), masked.exact), (r#"{"p":"***"}"#, false));
    }

    #[test]
    fn l69_text_for_a_tool_with_sensitive_fields_is_not_kept() {
        let schema = serde_json::json!({"properties": {"p": {"x-portcullis-sensitive": true}}});
        for raw in [r#"{"p": "hunter2""#.to_owned(), format!(r#"{{"p": "hunter2{}"}}"#, " ".repeat(limits::INPUT_MAX))]
        {
            assert!(!written(&raw, &[&schema], &Redactor::none()).value.to_string().contains("hunter2"));
        }
        // A secret across the cut leaves no half of itself.
        let redactor = Redactor::new(["hunter2 of the realm"]).expect("a redactor");
        let raw = format!("{}hunter2 of the realm{}", "x".repeat(KEPT_OF_OVERSIZED - 8), "y".repeat(limits::INPUT_MAX));
        assert!(!written(&raw, &[], &redactor).value.to_string().contains("hunter2"));
    }

    #[test]
    fn l36_an_input_has_one_hash_in_whatever_dress() {
        let proposed = r#"{ "b": 1.0, "a": "x" }"#;
        assert_eq!(input_hash(proposed), input_hash(r#"{"a":"x","b":1}"#));
        assert_ne!(input_hash(proposed), input_hash(r#"{"a":"x","b":2}"#));
        assert_ne!(input_hash("no JSON"), input_hash("no  JSON"));
    }
}
