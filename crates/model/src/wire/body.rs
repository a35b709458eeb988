//! The body of a request, field by field in the order they are written: the messages last, so that a longer
//! conversation begins with the bytes of the shorter one (agent-runtime 6.3).

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Failure, ModelError, ModelName};

/// JSON text of a value.
pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> String {
    // Invariant: what is written here has string keys and no writer that can fail.
    serde_json::to_string(value).expect("plain data is JSON")
}

/// Adds an element to others, with a comma between them.
pub(crate) fn push_element(element: &str, out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(element.as_bytes());
}

/// An object being written.
#[derive(Debug)]
pub(crate) struct Body(Vec<u8>);

impl Body {
    pub fn new() -> Self {
        Self(b"{".to_vec())
    }

    /// Adds a field.
    pub fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> &mut Self {
        self.name(name);
        self.0.extend_from_slice(json(value).as_bytes());
        self
    }

    /// Adds what a person has set.
    pub fn extra(&mut self, extra: &Map<String, Value>) -> &mut Self {
        for (name, value) in extra {
            self.field(name, value);
        }
        self
    }

    /// Adds the array that grows, in two parts, and what holds for this request alone after it: there it changes none of the bytes
    /// that this request and the next have in common.
    pub fn last(mut self, name: &str, elements: [&[u8]; 2], once: Option<(&str, Value)>) -> Vec<u8> {
        let [first, rest] = elements;
        self.0.reserve(first.len() + rest.len() + 64);
        self.name(name);
        self.0.push(b'[');
        self.0.extend_from_slice(first);
        if !first.is_empty() && !rest.is_empty() {
            self.0.push(b',');
        }
        self.0.extend_from_slice(rest);
        self.0.push(b']');
        if let Some((name, value)) = once {
            self.field(name, &value);
        }
        self.0.push(b'}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.extend_from_slice(json(name).as_bytes());
        self.0.push(b':');
    }

    /// Refuses settings that would write a field of the adapter a second time.
    pub fn check_extra(model: &ModelName, extra: &Map<String, Value>, own: &[&str]) -> Result<(), ModelError> {
        match extra.keys().find(|name| own.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(ModelError::new(
                Failure::Config,
                format!("{model}: the field `{name}` of a request is written here and cannot be set; take it out"),
            )),
        }
    }
}
