//! A JSON object whose values stay as they were written.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json;

/// Names and raw values, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Reads an object.
    pub fn of(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// A string, decoded.
    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// A value as it was written.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.get())
    }

    /// Puts JSON text in a field's place, or at the end.
    pub fn set(&mut self, name: &str, text: String) {
        let Ok(value) = RawValue::from_string(text) else { return };
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.get()))
    }

    /// The object again.
    pub fn to_json(&self) -> String {
        let fields: Vec<String> = self.iter().map(|(name, value)| format!("{}:{value}", json(name))).collect();
        format!("{{{}}}", fields.join(","))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Object)
    }
}
