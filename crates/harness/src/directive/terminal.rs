//! The directive as a call (H30): a model that calls tools well need not write markup. It passes the gate like any call and
//! touches nothing; where it ran, the wake ends with what it asks for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use portcullis_contract::{BuildError, Semantics, Tool, ToolName};
use portcullis_model::Call;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::{Directive, from_input, schema};

/// The tool's name; no client's tool may bear it.
pub const TOOL: &str = "session_loop";

const DESCRIPTION: &str = "Ends this wake and says what comes after it. Call it last, beside your final words, in place of \
the block of the same name.";

/// What the model wants, as [`schema`] has it. The tool does nothing with it: the end of the wake reads the call.
struct DirectiveInput;

impl<'de> Deserialize<'de> for DirectiveInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl JsonSchema for DirectiveInput {
    fn schema_name() -> Cow<'static, str> {
        "SessionLoop".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Invariant: it is written above as an object.
        schema().try_into().expect("a schema is an object")
    }
}

/// The tool, for a registry that offers it where directives are asked for.
///
/// # Errors
/// Never for the tool as it is written.
pub fn terminal_tool() -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    let tool = Tool::builder::<DirectiveInput, String>(DESCRIPTION)
        .semantics(Semantics::read_only())
        .execute(|_, _| async { Ok("This wake ends here.".to_owned()) })
        .build()?;
    // Invariant: the name is plain.
    Ok(BTreeMap::from([(TOOL.parse().expect("a plain name"), tool)]))
}

/// The directive of a call of it.
pub(crate) fn called(call: &Call, reply: &str) -> Directive {
    let fields = serde_json::from_str(&call.arguments).unwrap_or_default();
    from_input(&fields, reply)
}
