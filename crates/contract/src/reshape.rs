//! The same tool in another shape: other names of its fields, another document of its result.
//!
//! What is asked, locked, checked, run and shown is the tool's own, so a shape can be no way around the tool (H44).

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::Window;
use serde_json::{Map, Value, json};

use crate::codec::{Codec, DecodeError};
use crate::tool::{Decoded, ErasedTool, Executed, Prechecking, Shape};
use crate::{
    AccessRequest, Anchor, BuildError, Caller, Content, DefinitionVersion, ExecutorId, Precondition, Resolved, Tool,
    ToolContext, UserText,
};

/// The document of a result, made of the input as it was given and of the tool's own output. Pure and total.
type Document = Box<dyn Fn(&Value, &Value) -> Value + Send + Sync>;

/// Another shape of a tool.
pub struct Reshape {
    /// What a model reads.
    pub description: String,
    /// Which implementation it is.
    pub executor: ExecutorId,
    /// The fields that it takes, in this order and in its own names; `None` takes all of the tool's.
    pub takes: Option<&'static [&'static str]>,
    /// The fields that the tool calls differently: the name in this shape, and the tool's.
    pub fields: &'static [(&'static str, &'static str)],
    /// The fields that are described differently, and their words.
    pub words: &'static [(&'static str, &'static str)],
    /// What the session keeps of a result.
    pub structured: Document,
    /// Whether a model is shown that document, and not what the tool itself shows.
    pub shows_document: bool,
}

/// Names of fields in this shape, and the tool's.
#[derive(Clone, Copy)]
struct FieldNames(&'static [(&'static str, &'static str)]);

/// A tool behind another shape of its input.
struct ReshapedTool {
    shape: Shape,
    input: Codec,
    names: FieldNames,
    structured: Document,
    shows_document: bool,
    tool: Arc<dyn ErasedTool>,
}

impl Tool {
    /// The same tool in another shape. Its schema is made of the tool's own, so both take the same values.
    ///
    /// # Errors
    /// If a field is none of the tool's.
    pub fn reshaped(&self, reshape: Reshape) -> Result<Self, BuildError> {
        let own = self.inner.shape();
        let input = Codec::new(reshape.input_schema(&own.input_schema)?);
        let Reshape { description, executor, fields, structured, shows_document, .. } = reshape;
        let names = FieldNames(fields);
        let (semantics, output_schema) = (own.semantics.clone(), json!({"type": "object"}));
        let version = DefinitionVersion::of(&description, &input.schema, &output_schema, &semantics);
        let input_schema = input.schema.clone();
        let shape = Shape { description, input_schema, output_schema, semantics, version, executor };
        let inner = ReshapedTool { shape, input, names, structured, shows_document, tool: Arc::clone(&self.inner) };
        Ok(Self { inner: Arc::new(inner), ..self.clone() })
    }
}

impl Reshape {
    /// The tool's own schema with the fields of this shape.
    fn input_schema(&self, own: &Value) -> Result<Value, BuildError> {
        let names = FieldNames(self.fields);
        let none = Map::new();
        let known = own.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let needed = own.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let takes = match self.takes {
            Some(fields) => fields.to_vec(),
            None => known.keys().map(|theirs| names.ours(theirs)).collect(),
        };
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for field in takes {
            let theirs = names.theirs(field);
            let Some(mut property) = known.get(theirs).cloned() else {
                return Err(BuildError::Schema(format!("the tool has no field `{theirs}` for `{field}`")));
            };
            if let Some(Value::String(text)) = property.get_mut("description") {
                let words = self.words.iter().find(|(of, _)| *of == field);
                *text = words.map_or_else(|| names.message(text), |(_, words)| (*words).to_owned());
            }
            properties.insert(field.to_owned(), property);
            if needed.iter().any(|name| name == theirs) {
                required.push(field);
            }
        }
        if properties.is_empty() {
            return Ok(json!({"type": "object"}));
        }
        let mut schema = own.as_object().cloned().unwrap_or_default();
        schema.insert("properties".to_owned(), properties.into());
        schema.insert("required".to_owned(), json!(required));
        if required.is_empty() {
            schema.shift_remove("required");
        }
        // What is said of the tool's whole input does not hold of a part of it.
        if self.takes.is_some() {
            schema.shift_remove("description");
        }
        Ok(schema.into())
    }
}

impl FieldNames {
    fn theirs(self, ours: &str) -> &str {
        self.0.iter().find(|(name, _)| *name == ours).map_or(ours, |(_, theirs)| theirs)
    }

    fn ours(self, theirs: &str) -> &str {
        self.0.iter().find(|(_, name)| *name == theirs).map_or(theirs, |(ours, _)| ours)
    }

    /// The input as the tool takes it.
    fn input(self, value: &Value) -> Value {
        let fields = value.as_object().into_iter().flatten();
        fields.map(|(name, value)| (self.theirs(name).to_owned(), value.clone())).collect::<Map<_, _>>().into()
    }

    /// A pointer into the tool's input as one into ours.
    fn pointer(self, path: &str) -> String {
        let Some(rest) = path.strip_prefix('/') else { return path.to_owned() };
        match rest.split_once('/') {
            Some((first, rest)) => format!("/{}/{rest}", self.ours(first)),
            None => format!("/{}", self.ours(rest)),
        }
    }

    /// A message that speaks of fields, with our names. What stands in backticks is quoted and stays as it is.
    fn message(self, text: &str) -> String {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let outside = |part: &str| -> String {
            let mut said = String::new();
            let mut rest = part;
            while let Some(first) = rest.chars().next() {
                let end = rest.find(|c| is_name(c) != is_name(first)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                said.push_str(self.ours(word));
                rest = after;
            }
            said
        };
        let parts = text.split('`').enumerate();
        parts.map(|(at, part)| if at % 2 == 0 { outside(part) } else { part.to_owned() }).collect::<Vec<_>>().join("`")
    }

    fn precondition(self, mut found: Precondition) -> Precondition {
        found.message = self.message(&found.message);
        for fault in &mut found.faults {
            fault.path = self.pointer(&fault.path);
            fault.message = self.message(&fault.message);
        }
        found
    }
}

/// The input as the tool itself decoded it.
fn own(input: &Decoded) -> &Decoded {
    input.typed()
}

impl ErasedTool for ReshapedTool {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn check_schemas(&self) -> Result<(), String> {
        self.input.validator()?;
        self.tool.check_schemas()
    }

    fn decode(&self, raw: &str) -> Result<Decoded, DecodeError> {
        let value = self.input.parse(raw)?;
        let own = self.tool.decode(&self.names.input(&value).to_string()).map_err(|mut error| {
            for fault in &mut error.faults {
                fault.path = self.names.pointer(&fault.path);
                fault.message = self.names.message(&fault.message);
            }
            error
        })?;
        Ok(Decoded { value, typed: Arc::new(own) })
    }

    fn resolve(&self, input: &Decoded, caller: &Caller) -> Result<Resolved, Precondition> {
        self.tool.resolve(own(input), caller).map_err(|found| self.names.precondition(found))
    }

    fn plan_access(&self, input: &Decoded, resolved: &Resolved) -> Option<Vec<AccessRequest>> {
        self.tool.plan_access(own(input), resolved)
    }

    fn precheck(&self, input: &Decoded, resolved: &Resolved, caller: &Caller) -> Prechecking {
        let (checked, names) = (self.tool.precheck(own(input), resolved, caller), self.names);
        async move { checked.await.map_err(|found| names.precondition(found)) }.boxed()
    }

    fn execute(&self, input: &Decoded, resolved: Resolved, context: ToolContext) -> BoxFuture<'static, Executed> {
        let (running, names) = (self.tool.execute(own(input), resolved, context), self.names);
        async move {
            running.await.map_err(|mut failure| {
                failure.message = names.message(&failure.message);
                failure
            })
        }
        .boxed()
    }

    fn timeout_ms(&self, input: &Decoded) -> Option<u64> {
        self.tool.timeout_ms(own(input))
    }

    fn result_limit(&self, input: &Decoded) -> Option<usize> {
        self.tool.result_limit(own(input))
    }

    fn loop_key(&self, input: &Decoded) -> Value {
        self.tool.loop_key(own(input))
    }

    fn to_model(&self, input: &Decoded, output: &Value) -> Option<Vec<Content>> {
        if self.shows_document {
            let document = (self.structured)(&input.value, output);
            return Some(vec![Content::text(serde_json::to_string_pretty(&document).unwrap_or_default())]);
        }
        self.tool.to_model(own(input), output)
    }

    fn to_user(&self, input: &Decoded, output: &Value) -> Option<UserText> {
        self.tool.to_user(own(input), output)
    }

    fn to_structured(&self, input: &Decoded, output: &Value) -> Value {
        (self.structured)(&input.value, output)
    }

    fn anchors(&self, text: &dyn Window) -> Option<Vec<Anchor>> {
        self.tool.anchors(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FieldNames, Reshape};
    use crate::{ExecutorId, ExecutorKind};

    fn shape(takes: Option<&'static [&'static str]>) -> Reshape {
        Reshape {
            description: String::new(),
            executor: ExecutorId { kind: ExecutorKind::Embedded, id: String::new(), impl_version: String::new() },
            takes,
            fields: &[("path", "file_path"), ("lineCount", "line_count")],
            words: &[("path", "The file.")],
            structured: Box::new(|_, _| json!({})),
            shows_document: false,
        }
    }

    #[test]
    fn the_schema_of_a_shape_is_the_tools_own_in_other_names() {
        let own = json!({
            "type": "object",
            "properties": {
                "line_count": {"type": "number", "description": "Lines."},
                "tail": {"type": "number", "description": "Not with line_count."},
                "file_path": {"type": "string", "pattern": "\\S", "description": "A path."},
            },
            "required": ["file_path"],
            "additionalProperties": false,
        });
        let schema = |takes| shape(takes).input_schema(&own).map(|schema| schema.to_string());
        let expected = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "pattern": "\\S", "description": "The file."},
                "tail": {"type": "number", "description": "Not with lineCount."},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        assert_eq!(schema(Some(&["path", "tail"])), Ok(expected.to_string()), "in its own order");
        assert!(schema(Some(&["tail"])).is_ok_and(|schema| !schema.contains("required")));
        assert!(schema(None).is_ok_and(|schema| schema.contains(r#""properties":{"lineCount":"#)), "all of them");
        assert!(schema(Some(&["other"])).is_err_and(|error| error.to_string().contains("no field `other`")));
    }

    #[test]
    fn messages_speak_of_the_fields_of_the_shape_and_leave_quotes_alone() {
        let names = FieldNames(&[("path", "file_path"), ("lineCount", "line_count")]);
        assert_eq!(
            names.message("`line_count` was not read; give line_count, not line_counts"),
            "`line_count` was not read; give lineCount, not line_counts"
        );
        assert_eq!(names.pointer("/file_path"), "/path");
        assert_eq!(names.pointer("/file_path/0"), "/path/0");
        assert_eq!((names.pointer(""), names.pointer("/other")), (String::new(), "/other".to_owned()));
    }
}
