//! Values that servers get wrong in fields that an answer does not hang on: they are as if they were not there.

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

/// The value, if it is one.
pub(crate) fn lenient<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok())
}

/// A text; a number is its digits.
pub(crate) fn lenient_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// A count, also one that is written as `2.0`.
pub(crate) fn lenient_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(from)?;
    let whole = |number: f64| (0.0..1e15).contains(&number).then_some(number as u64);
    Ok(value.as_u64().or_else(|| value.as_f64().and_then(whole)))
}
