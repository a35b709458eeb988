//! L4: what a tool advertises is what it takes. Values are made from the advertised schema alone, by
//! a generator that knows nothing of the Rust type behind it.
#![allow(clippy::disallowed_methods, reason = "these are the tests of the seam")]
#![allow(clippy::expect_used, reason = "a test")]

use std::collections::BTreeMap;

use portcullis_base::Code;
use portcullis_contract::{Semantics, Tool, seam};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Fast,
    Slow,
    Custom { level: u8, note: Option<String> },
    Pair(i32, bool),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Lines { first: u32, last: u32 },
    Bytes { offset: u64 },
    All,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Loose {
    Number(i64),
    Words(Vec<String>),
    Named { name: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Nested {
    deep: Option<Box<Nested>>,
    label: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Everything {
    text: String,
    flag: bool,
    small: u8,
    signed: i32,
    ratio: f64,
    maybe: Option<u16>,
    #[serde(default)]
    defaulted: u32,
    list: Vec<Mode>,
    map: BTreeMap<String, i16>,
    tagged: Tagged,
    loose: Loose,
    nested: Nested,
    pair: (String, u8),
    open: Value,
}

/// Two fields that a flattened choice is merged with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Flattened {
    path: String,
    #[serde(flatten)]
    range: Range,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Range {
    first: u32,
    last: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct FlattenedChoice {
    path: String,
    #[serde(flatten)]
    choice: Tagged,
}

/// Two flattened choices at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct TwoChoices {
    #[serde(flatten)]
    choice: Tagged,
    #[serde(flatten)]
    other: Other,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "other", rename_all = "snake_case")]
enum Other {
    Left { left: u8 },
    Right { right: u8 },
}

fn tool<I>() -> Tool
where
    I: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    Tool::builder::<I, String>("Takes something.")
        .semantics(Semantics::read_only())
        .loop_key(|input| serde_json::to_value(input).expect("json"))
        .execute(|_, _| async { Ok(String::new()) })
        .build()
        .expect("a sound tool")
}

fn schema(tool: &Tool) -> Value {
    seam::definition(&"t".parse().expect("a name"), tool).input_schema
}

/// A source of choices: proptest gives the words, the schema says what they mean.
struct Choices<'a> {
    words: &'a [u32],
    at: usize,
}

impl Choices<'_> {
    fn next(&mut self) -> u32 {
        self.at += 1;
        self.words.get(self.at - 1).copied().unwrap_or(0)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next()).unwrap_or(0) % n.max(1)
    }
}

/// The bounds that a schema's numbers have: its own, or those of its `format`.
fn bounds(schema: &Value) -> (i64, i64) {
    let (low, high) = match schema["format"].as_str() {
        Some("int8") => (i64::from(i8::MIN), i64::from(i8::MAX)),
        Some("int16") => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Some("uint32") => (0, i64::from(u32::MAX)),
        Some("uint64" | "uint") => (0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    };
    let low = schema["minimum"].as_i64().unwrap_or(low).max(low);
    (low, schema["maximum"].as_i64().unwrap_or(high).min(high))
}

/// A value that the schema describes.
fn make(root: &Value, schema: &Value, choices: &mut Choices<'_>, depth: usize) -> Value {
    if let Some(pointer) = schema["$ref"].as_str().and_then(|r| r.strip_prefix('#')) {
        return make(root, root.pointer(pointer).expect("a definition"), choices, depth + 1);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[choices.below(values.len())].clone();
    }
    let mut choice = Map::new();
    for word in ["oneOf", "anyOf"] {
        if let Some(branches) = schema[word].as_array() {
            // Deep down the last branch is taken: `null` or a leaf, so that values end.
            let branch = if depth > 6 { branches.len() - 1 } else { choices.below(branches.len()) };
            let made = make(root, &branches[branch], choices, depth + 1);
            match made {
                Value::Object(fields) if schema.get("properties").is_some() => choice.extend(fields),
                other => return other,
            }
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) if depth > 6 => kinds.last().and_then(Value::as_str).map(str::to_owned),
        Value::Array(kinds) => kinds[choices.below(kinds.len())].as_str().map(str::to_owned),
        Value::String(kind) => Some(kind.clone()),
        _ => None,
    };
    match kind.as_deref() {
        Some("null") => Value::Null,
        Some("boolean") => json!(choices.below(2) == 1),
        Some("string") => json!(["", "x", "two words", "é\u{1F980}\"\\\n", "***"][choices.below(5)]),
        Some("integer") => {
            let (low, high) = bounds(schema);
            let inner = i64::from(choices.next()) % 1_000;
            let near = [low, high, low.saturating_add(inner), high.saturating_sub(inner), inner][choices.below(5)];
            json!(near.clamp(low, high))
        }
        Some("number") => json!([0.0, -1.5, 1e300, 3.0, f64::from(choices.next())][choices.below(5)]),
        Some("array") => make_array(root, schema, choices, depth),
        Some("object") => {
            let mut object = make_object(root, schema, choices, depth);
            object.extend(choice);
            Value::Object(object)
        }
        // No `type`: anything goes.
        _ => {
            [json!(null), json!(1), json!("any"), json!([1, {"a": 2}]), json!({"b": [true]})][choices.below(5)].clone()
        }
    }
}

fn make_array(root: &Value, schema: &Value, choices: &mut Choices<'_>, depth: usize) -> Value {
    let mut items: Vec<Value> = Vec::new();
    if let Some(prefix) = schema["prefixItems"].as_array() {
        items.extend(prefix.iter().map(|item| make(root, item, choices, depth + 1)));
        return Value::Array(items);
    }
    for _ in 0..choices.below(4) {
        items.push(make(root, &schema["items"], choices, depth + 1));
    }
    Value::Array(items)
}

fn make_object(root: &Value, schema: &Value, choices: &mut Choices<'_>, depth: usize) -> Map<String, Value> {
    let mut object = Map::new();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (field, of) in schema["properties"].as_object().into_iter().flatten() {
        if required.contains(&field.as_str()) || (depth <= 6 && choices.below(2) == 1) {
            object.insert(field.clone(), make(root, of, choices, depth + 1));
        }
    }
    if let Some(more) = schema.get("additionalProperties").filter(|more| more.is_object()) {
        for n in 0..choices.below(3) {
            object.insert(format!("extra{n}"), make(root, more, choices, depth + 1));
        }
    }
    object
}

fn takes_what_it_advertises<I>(words: &[u32]) -> Result<(), TestCaseError>
where
    I: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    let tool = tool::<I>();
    let schema = schema(&tool);
    let value = make(&schema, &schema, &mut Choices { words, at: 0 }, 0);
    let decoded = seam::decode(&tool, &value.to_string());
    prop_assert!(decoded.is_ok(), "{value} of {schema}: {:?}", decoded.err());
    Ok(())
}

/// What the tool understood of an input, as a Rust value.
fn understood<I>(input: &I) -> Result<I, Code>
where
    I: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    let tool = tool::<I>();
    let raw = serde_json::to_string(input).expect("json");
    let decoded = seam::decode(&tool, &raw).map_err(|e| e.code)?;
    Ok(serde_json::from_value(seam::loop_key(&tool, &decoded)).expect("the type it was"))
}

fn everything() -> impl Strategy<Value = Everything> {
    let mode = prop_oneof![
        Just(Mode::Fast),
        Just(Mode::Slow),
        (any::<u8>(), any::<Option<String>>()).prop_map(|(level, note)| Mode::Custom { level, note }),
        (any::<i32>(), any::<bool>()).prop_map(|(a, b)| Mode::Pair(a, b)),
    ];
    let tagged = prop_oneof![
        (any::<u32>(), any::<u32>()).prop_map(|(first, last)| Tagged::Lines { first, last }),
        any::<u64>().prop_map(|offset| Tagged::Bytes { offset }),
        Just(Tagged::All),
    ];
    let loose = prop_oneof![
        any::<i64>().prop_map(Loose::Number),
        prop::collection::vec(".{0,4}", 0..3).prop_map(Loose::Words),
        ".{0,4}".prop_map(|name| Loose::Named { name }),
    ];
    let nested = (0..4usize, ".{0,4}").prop_map(|(depth, label)| {
        (0..depth).fold(Nested { deep: None, label: label.clone() }, |inner, _| Nested {
            deep: Some(Box::new(inner)),
            label: label.clone(),
        })
    });
    let scalars =
        (".{0,8}", any::<bool>(), any::<u8>(), any::<i32>(), -1e9..1e9f64, any::<Option<u16>>(), any::<u32>());
    let many = (prop::collection::vec(mode, 0..3), prop::collection::btree_map(".{0,3}", any::<i16>(), 0..3));
    (scalars, many, tagged, loose, nested, (".{0,3}", any::<u8>())).prop_map(
        |((text, flag, small, signed, ratio, maybe, defaulted), (list, map), tagged, loose, nested, pair)| Everything {
            text,
            flag,
            small,
            signed,
            ratio,
            maybe,
            defaulted,
            list,
            map,
            tagged,
            loose,
            nested,
            pair,
            open: json!({"anything": [1, null]}),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l04_every_value_of_the_advertised_schema_decodes(words in prop::collection::vec(any::<u32>(), 40..80)) {
        takes_what_it_advertises::<Everything>(&words)?;
        takes_what_it_advertises::<Flattened>(&words)?;
        takes_what_it_advertises::<FlattenedChoice>(&words)?;
        takes_what_it_advertises::<Nested>(&words)?;
    }

    #[test]
    fn l04_what_is_written_is_what_is_understood(input in everything()) {
        prop_assert_eq!(understood(&input), Ok(input));
    }

    #[test]
    fn l04_flattened_fields_are_understood(path in ".{0,4}", first in any::<u32>(), last in any::<Option<u32>>()) {
        let plain = Flattened { path: path.clone(), range: Range { first, last } };
        prop_assert_eq!(understood(&plain), Ok(plain));
        let choice = FlattenedChoice { path, choice: Tagged::Bytes { offset: u64::from(first) } };
        prop_assert_eq!(understood(&choice), Ok(choice));
        let two = TwoChoices { choice: Tagged::All, other: Other::Left { left: 3 } };
        prop_assert_eq!(understood(&two), Ok(two));
    }

    #[test]
    fn l03_a_field_that_is_not_advertised_is_refused(extra in "[a-z]{1,8}", value in any::<u8>()) {
        prop_assume!(!["deep", "label"].contains(&extra.as_str()));
        let tool = tool::<Nested>();
        let nested = json!({"label": "x", "deep": {"label": "y", (extra.clone()): value}});
        prop_assert_eq!(seam::decode(&tool, &nested.to_string()).err().map(|e| e.code), Some(Code::SchemaInvalid));
        let outer = json!({"label": "x", (extra): value});
        prop_assert_eq!(seam::decode(&tool, &outer.to_string()).err().map(|e| e.code), Some(Code::SchemaInvalid));
    }
}

#[test]
fn l03_a_flattened_choice_is_closed_too() {
    let tool = tool::<FlattenedChoice>();
    let fits = json!({"path": "a", "kind": "bytes", "offset": 1});
    assert!(seam::decode(&tool, &fits.to_string()).is_ok());
    let more = json!({"path": "a", "kind": "bytes", "offset": 1, "other": 2});
    assert_eq!(seam::decode(&tool, &more.to_string()).err().map(|e| e.code), Some(Code::SchemaInvalid));
    let two = self::tool::<TwoChoices>();
    let more = json!({"kind": "all", "other": "left", "left": 1, "right": 2});
    assert_eq!(seam::decode(&two, &more.to_string()).err().map(|e| e.code), Some(Code::SchemaInvalid));
}

#[test]
fn l03_fields_named_like_keywords_are_fields() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Inner {
        a: Option<u8>,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Named {
        properties: Inner,
        default: Inner,
        examples: Vec<Inner>,
    }
    let tool = tool::<Named>();
    let fits = json!({"properties": {"a": 1}, "default": {"a": 2}, "examples": [{"a": 3}]});
    assert!(seam::decode(&tool, &fits.to_string()).is_ok());
    let fields = schema(&tool)["properties"].as_object().map(|fields| fields.len());
    assert_eq!(fields, Some(3), "and nothing is advertised that is not one");
    for field in ["properties", "default"] {
        let mut more = fits.clone();
        more[field]["unknown"] = json!(1);
        assert_eq!(seam::decode(&tool, &more.to_string()).err().map(|e| e.code), Some(Code::SchemaInvalid), "{field}");
    }
    let more = json!({"properties": {}, "default": {}, "examples": [{"unknown": 1}]});
    assert_eq!(seam::decode(&tool, &more.to_string()).err().map(|e| e.code), Some(Code::SchemaInvalid));
}

#[test]
fn r12_a_tool_that_opens_itself_takes_more() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[schemars(extend("additionalProperties" = true))]
    struct Open {
        known: u8,
    }
    let tool = tool::<Open>();
    assert!(seam::decode(&tool, r#"{"known":1,"more":[2]}"#).is_ok());
    assert!(seam::decode(&tool, r#"{"more":[2]}"#).is_err());
}
