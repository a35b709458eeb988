//! JSON as a tool input must be: one object, no key twice, not too deep, not too big.

use std::fmt;

use portcullis_base::limits::{INPUT_DEPTH, INPUT_MAX};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses `raw`.
///
/// # Errors
/// One sentence about what is wrong with it.
pub(crate) fn parse_object(raw: &str) -> Result<Value, String> {
    if raw.len() > INPUT_MAX {
        // Whoever read them may have stopped there: how many there are is not known.
        return Err(format!("the arguments have more than {INPUT_MAX} bytes, which is all that is taken"));
    }
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    let value = Depth(INPUT_DEPTH).deserialize(&mut deserializer).map_err(|e| format!("not JSON: {e}"))?;
    deserializer.end().map_err(|e| format!("not JSON: {e}"))?;
    if !value.is_object() {
        return Err(format!("the arguments must be a JSON object, not {}", kind(&value)));
    }
    Ok(value)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Levels of nesting that are left.
struct Depth(usize);

impl Depth {
    fn deeper<E: serde::de::Error>(&self) -> Result<Self, E> {
        match self.0 {
            0 => Err(E::custom(format!("nested deeper than {INPUT_DEPTH} levels"))),
            left => Ok(Self(left - 1)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.deeper()?)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(self.deeper()?)?;
            if object.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("the key `{key}` occurs twice")));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::parse_object;

    #[test]
    fn r12_only_one_plain_object_is_an_input() {
        assert!(parse_object(r#"{"a":{"b":[1,2.5,null,true,"x"]}}"#).is_ok());
        for (raw, word) in [
            ("[1]", "an array"),
            ("\"x\"", "a string"),
            ("", "not JSON"),
            ("{\"a\":1} x", "not JSON"),
            (r#"{"a":1,"a":2}"#, "twice"),
            (r#"{"o":{"k":1,"k":1}}"#, "twice"),
            ("{a:1}", "not JSON"),
        ] {
            let error = parse_object(raw).expect_err(raw);
            assert!(error.contains(word), "{raw}: {error}");
        }
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let nested = |n: usize| format!("{{\"a\":{}1{}}}", "[".repeat(n), "]".repeat(n));
        assert!(parse_object(&nested(63)).is_ok());
        assert!(parse_object(&nested(64)).expect_err("too deep").contains("deeper than 64"));
        assert!(parse_object(&format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20))).is_err());
    }
}
