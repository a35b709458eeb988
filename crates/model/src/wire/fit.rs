//! Whether a menu fits a provider's dialect, before anything is sent.

use std::collections::HashSet;

use serde_json::Value;

use super::is_word;
use crate::{Failure, ModelError, ModelName, ToolSpec};

/// How deep a schema is followed. JSON that we read is never deeper (serde_json stops at 128).
const DEEPEST: usize = 128;

/// What a provider refuses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    pub longest_name: usize,
    /// Allowed in names besides letters, digits, `_` and `-`.
    pub also_in_names: &'static str,
    /// Names do not begin with a digit or a sign other than `_`.
    pub names_begin_with_letters: bool,
    pub most_tools: Option<usize>,
    /// Keywords that may not stand at the top of a schema.
    pub not_at_top: &'static [&'static str],
    /// The longest name of a property, where names are restricted to letters, digits, `_`, `-` and `.`.
    pub longest_property: Option<usize>,
    /// Every array says what its items are.
    pub arrays_need_items: bool,
}

impl Dialect {
    /// Checks every tool.
    ///
    /// # Errors
    /// [`Failure::Unfit`], naming the tool and what is wrong with it.
    pub fn check(&self, model: &ModelName, tools: &[ToolSpec]) -> Result<(), ModelError> {
        let unfit = |what: String| Err(ModelError::new(Failure::Unfit, format!("{model}: {what}")));
        if let Some(most) = self.most_tools
            && tools.len() > most
        {
            let count = tools.len();
            return unfit(format!("{count} tools are on the menu and the provider takes {most}: offer fewer"));
        }
        let mut names = HashSet::new();
        for tool in tools {
            let name = &tool.name;
            if !is_word(name, self.longest_name, self.also_in_names) {
                let also: String = self.also_in_names.chars().map(|c| format!(", `{c}`")).collect();
                return unfit(format!(
                    "the tool name `{name}` is not taken: names are letters, digits, `_`, `-`{also}, at most {} characters; rename the tool",
                    self.longest_name
                ));
            }
            if !names.insert(name) {
                return unfit(format!("two tools are named `{name}`: rename one"));
            }
            if let Err(what) = self.check_schema(&tool.input_schema) {
                return unfit(format!("the input schema of the tool `{name}` is not taken: {what}"));
            }
        }
        match tools.iter().find(|tool| self.names_begin_with_letters && !begins_with_letter(&tool.name)) {
            None => Ok(()),
            Some(tool) => unfit(format!(
                "the tool name `{}` is not taken: names begin with a letter or `_`; rename the tool",
                tool.name
            )),
        }
    }

    fn check_schema(&self, schema: &Value) -> Result<(), String> {
        let Value::Object(top) = schema else {
            return Err("it is no object".to_owned());
        };
        if top.get("type").and_then(Value::as_str) != Some("object") {
            return Err("its top must have `\"type\": \"object\"`".to_owned());
        }
        if let Some(word) = self.not_at_top.iter().find(|word| top.contains_key(**word)) {
            return Err(format!("`{word}` may not stand at its top; put it into a property"));
        }
        self.check_part(schema, "", DEEPEST)
    }

    fn check_part(&self, schema: &Value, at: &str, deep: usize) -> Result<(), String> {
        let Value::Object(schema) = schema else { return Ok(()) };
        let Some(deep) = deep.checked_sub(1) else { return Err("it is nested too deeply".to_owned()) };
        let array = schema.get("type").and_then(Value::as_str) == Some("array");
        if self.arrays_need_items && array && !schema.contains_key("items") {
            return Err(format!("the array at `{at}/` needs `items`"));
        }
        for key in ["properties", "$defs", "definitions"] {
            for (name, part) in schema.get(key).and_then(Value::as_object).into_iter().flatten() {
                let longest = self.longest_property.filter(|_| key == "properties");
                if longest.is_some_and(|longest| !is_word(name, longest, ".")) {
                    return Err(format!(
                        "the property `{name}` at `{at}/` must be letters, digits, `_`, `-`, `.`, at most {} characters",
                        longest.unwrap_or_default()
                    ));
                }
                self.check_part(part, &format!("{at}/{key}/{name}"), deep)?;
            }
        }
        for key in ["items", "additionalProperties", "not"] {
            if let Some(part) = schema.get(key) {
                self.check_part(part, &format!("{at}/{key}"), deep)?;
            }
        }
        for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            for (i, part) in schema.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
                self.check_part(part, &format!("{at}/{key}/{i}"), deep)?;
            }
        }
        Ok(())
    }
}

/// Whether a name begins with a letter or `_`.
pub(crate) fn begins_with_letter(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STRICT: Dialect = Dialect {
        longest_name: 8,
        also_in_names: "",
        names_begin_with_letters: false,
        most_tools: Some(2),
        not_at_top: &["anyOf"],
        longest_property: Some(4),
        arrays_need_items: true,
    };

    fn told(tools: &[(&str, Value)]) -> String {
        let spec = |(name, schema): &(&str, Value)| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            input_schema: schema.clone(),
        };
        let model = ModelName { provider: "p".to_owned(), id: "m".to_owned() };
        match STRICT.check(&model, &tools.iter().map(spec).collect::<Vec<_>>()) {
            Ok(()) => String::new(),
            Err(error) => {
                assert_eq!(error.failure, Failure::Unfit);
                error.message
            }
        }
    }

    #[test]
    fn a_menu_that_does_not_fit_is_refused_by_name() {
        let good = json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}});
        assert_eq!(told(&[("a-b_1", good.clone()), ("c", good.clone())]), "");
        assert!(told(&[("a.b", good.clone())]).contains("`a.b`"));
        assert!(told(&[("", good.clone())]).contains("``"));
        assert!(told(&[("ninechars", good.clone())]).contains("at most 8"));
        assert!(told(&[("a", good.clone()), ("a", good.clone())]).contains("two tools"));
        assert!(told(&[("a", good.clone()), ("b", good.clone()), ("c", good.clone())]).contains("3 tools"));
        let bad = [
            (json!(true), "no object"),
            (json!({}), "\"object\""),
            (json!({"type": "string"}), "\"object\""),
            (json!({"type": "object", "anyOf": []}), "`anyOf`"),
            (json!({"type": "object", "properties": {"a b": {}}}), "`a b`"),
            (json!({"type": "object", "properties": {"abcde": {}}}), "at most 4"),
            (json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}]}}}), "/properties/a/anyOf/0"),
        ];
        for (schema, word) in bad {
            let message = told(&[("tool", schema.clone())]);
            assert!(message.contains("`tool`") && message.contains(word), "{schema}: {message}");
        }
    }
}
