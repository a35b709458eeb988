//! Typed codecs (tool-contract §4). Schema and serde both run, so that what is advertised is what
//! is enforced, and the executor sees nothing but a decoded value.

use std::fmt;
use std::sync::OnceLock;

use jsonschema::error::ValidationErrorKind as Kind;
use portcullis_base::Code;
use portcullis_secret::marks_sensitive;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::finite;
use crate::strict::parse_object;

/// How many faults of one input are told; a model mends a few at a time.
const FAULTS_SHOWN: usize = 8;
/// Bytes of the message of one fault.
const MESSAGE_MAX: usize = 400;

/// One thing wrong with an input: where, which rule, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFault {
    /// JSON pointer into the input.
    pub path: String,
    /// The keyword of the schema, or `type` where only serde could tell.
    pub rule: String,
    /// A sentence.
    pub message: String,
}

/// Why an input never reaches an executor.
#[derive(Debug, Clone)]
pub struct DecodeError {
    /// `input_unparseable` or `schema_invalid`.
    pub code: Code,
    /// What is wrong, at least one entry.
    pub faults: Vec<InputFault>,
}

/// A schema with its check, which is compiled when it is first needed: a process that starts knows dozens of tools and
/// calls one.
pub(crate) struct Codec {
    pub(crate) schema: Value,
    validator: OnceLock<Result<jsonschema::Validator, String>>,
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codec(..)")
    }
}

impl Codec {
    /// A schema as given.
    pub(crate) fn new(schema: Value) -> Self {
        Self { schema, validator: OnceLock::new() }
    }

    /// Compiles it, if nobody has yet.
    pub(crate) fn validator(&self) -> Result<&jsonschema::Validator, &str> {
        let compile =
            || jsonschema::draft202012::new(&self.schema).map_err(|e| format!("its schema is not valid: {e}"));
        self.validator.get_or_init(compile).as_ref().map_err(String::as_str)
    }

    /// The schema of a Rust input type, closed against unknown fields (R12).
    pub(crate) fn of_input<T: JsonSchema>() -> Self {
        let mut schema = schema_of::<T>(SchemaSettings::draft2020_12());
        close(&mut schema);
        Self::new(schema)
    }

    /// The schema of a Rust output type, as serde writes it.
    pub(crate) fn of_output<T: JsonSchema>() -> Self {
        Self::new(schema_of::<T>(SchemaSettings::draft2020_12().for_serialize()))
    }

    /// Raw text → checked value.
    pub(crate) fn parse(&self, raw: &str) -> Result<Value, DecodeError> {
        let value = parse_object(raw).map_err(|message| DecodeError {
            code: Code::InputUnparseable,
            faults: vec![InputFault { path: String::new(), rule: "json".to_owned(), message }],
        })?;
        self.check(&value).map(|()| value)
    }

    /// Checked value → typed value. Where a field is sensitive serde's own words are kept back: they quote it.
    pub(crate) fn typed<T: DeserializeOwned>(&self, value: &Value) -> Result<T, DecodeError> {
        typed(value).map_err(|mut error| {
            if marks_sensitive(&self.schema) {
                for fault in &mut error.faults {
                    "a value does not fit its type".clone_into(&mut fault.message);
                }
            }
            error
        })
    }

    /// Checks a value that is JSON already.
    pub(crate) fn check(&self, value: &Value) -> Result<(), DecodeError> {
        let validator = self.validator().map_err(|why| DecodeError {
            code: Code::SchemaInvalid,
            faults: vec![InputFault {
                path: String::new(),
                rule: "$schema".to_owned(),
                message: cut(&format!("no input fits, because the tool itself has a mistake: {why}")),
            }],
        })?;
        if validator.is_valid(value) {
            return Ok(());
        }
        let faults = validator
            .iter_errors(value)
            .take(FAULTS_SHOWN)
            .map(|error| InputFault {
                path: error.instance_path().to_string(),
                rule: error.schema_path().to_string().rsplit('/').next().unwrap_or_default().to_owned(),
                // Without the value: it may be long, and it may be a secret. The path says which it is.
                message: cut(&self.message(&error)),
            })
            .collect();
        Err(DecodeError { code: Code::SchemaInvalid, faults })
    }

    /// What is wrong and, where that is known, what would be right.
    fn message(&self, error: &jsonschema::ValidationError<'_>) -> String {
        let plain = error.masked().to_string();
        match error.kind() {
            Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
                let place = error.schema_path().to_string();
                let object = place.rsplit_once('/').map_or("", |(object, _)| object);
                let fields = self.schema.pointer(object).and_then(|object| object.get("properties"));
                let names: Vec<&str> =
                    fields.and_then(Value::as_object).into_iter().flatten().map(|(n, _)| &**n).collect();
                if names.is_empty() { plain } else { format!("{plain}; it takes: {}", names.join(", ")) }
            }
            // All of them: the checker itself names the first few.
            Kind::Enum { options } => {
                let words: Vec<&str> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                if words.len() > ENUM_SHORT { format!("it must be one of: {}", words.join(", ")) } else { plain }
            }
            Kind::Pattern { pattern } if pattern == NOT_BLANK => "it must not be empty or blank".to_owned(),
            _ => plain,
        }
    }
}

/// So many words the checker names by itself.
const ENUM_SHORT: usize = 3;

/// The pattern of a text that says something.
const NOT_BLANK: &str = r"\S";

/// Checked value → typed value.
pub(crate) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, DecodeError> {
    T::deserialize(value).map_err(|e| DecodeError {
        code: Code::SchemaInvalid,
        faults: vec![InputFault { path: String::new(), rule: "type".to_owned(), message: cut(&e.to_string()) }],
    })
}

/// A message is a sentence, however long the thing it is about.
fn cut(message: &str) -> String {
    let end = message.floor_char_boundary(MESSAGE_MAX);
    if end == message.len() { message.to_owned() } else { format!("{}…", &message[..end]) }
}

/// Typed output → checked value; the in-memory value is never seen again.
pub(crate) fn encode<T: Serialize>(codec: &Codec, output: &T) -> Result<Value, String> {
    codec.encoded(finite::check(output).map_err(|e| e.to_string()), serde_json::to_value(output))
}

impl Codec {
    /// The rest of [`encode`], compiled once and not for each output.
    fn encoded(&self, finite: Result<(), String>, value: serde_json::Result<Value>) -> Result<Value, String> {
        finite.map_err(|e| format!("the output has no exact JSON form: {e}"))?;
        let value = value.map_err(|e| format!("the output is not JSON: {e}"))?;
        match self.check(&value) {
            Ok(()) => Ok(value),
            Err(error) => {
                let fault = error.faults.first().map(|f| format!("at `{}`: {}", f.path, f.message)).unwrap_or_default();
                Err(format!("the output does not fit its schema {fault}"))
            }
        }
    }
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Value {
    without_noise(settings.into_generator().into_root_schema_for::<T>())
}

/// Noise in every request to a model: the dialect is fixed, the type's Rust name says nothing.
fn without_noise(schema: Schema) -> Value {
    let mut schema = schema.to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
    }
    schema
}

/// Keywords that hold one schema each, several, or several by name.
const ONE: [&str; 9] = [
    "items",
    "contains",
    "propertyNames",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "if",
    "then",
    "else",
];
const LISTS: [&str; 4] = ["prefixItems", "allOf", "anyOf", "oneOf"];
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "dependentSchemas"];
/// Of these, the ones that speak of the same value as the schema they stand in.
const BESIDE: [&str; 7] = ["allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"];

/// Unknown fields are refused unless the tool's own schema opens itself. An object whose fields stand
/// in several places (a flattened choice) is closed round all of them: each alone would refuse the others.
fn close(schema: &mut Value) {
    close_in(schema, true);
}

fn close_in(schema: &mut Value, alone: bool) {
    let Value::Object(object) = schema else { return };
    let has = |word: &str| object.contains_key(word);
    let whole = has("properties") || has("allOf");
    let composed = BESIDE.iter().any(|word| has(word));
    if alone && whole && !has("additionalProperties") && !has("unevaluatedProperties") {
        let word = if composed { "unevaluatedProperties" } else { "additionalProperties" };
        object.insert(word.to_owned(), Value::Bool(false));
    }
    for (word, child) in object.iter_mut() {
        let alone = !BESIDE.contains(&word.as_str()) || (alone && !whole);
        match child {
            Value::Object(_) if ONE.contains(&word.as_str()) => close_in(child, alone),
            Value::Array(schemas) if LISTS.contains(&word.as_str()) => {
                schemas.iter_mut().for_each(|schema| close_in(schema, alone));
            }
            Value::Object(named) if NAMED.contains(&word.as_str()) => {
                named.values_mut().for_each(|schema| close_in(schema, alone));
            }
            // Everything else is data, not a schema: examples, defaults, a tool's own words.
            _ => {}
        }
    }
}
