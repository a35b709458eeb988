//! A tool that a client or the worker of an environment runs (R11): a description and a schema, and no code. Its input is
//! checked like any other; its result comes from outside, later, and is text.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::{Fulfiller, RiskSet, Window};
use serde_json::{Value, json};

use crate::codec::{Codec, DecodeError};
use crate::tool::{Decoded, ErasedTool, Executed, Prechecking, Shape};
use crate::{
    AccessRequest, Anchor, Arrival, BuildError, Caller, Content, DefaultPolicy, DefinitionVersion, ExecutorId,
    ExecutorKind, Interrupt, Ownership, Precondition, Prepared, Resolved, Semantics, Tool, ToolContext, ToolFailure,
    UserText,
};

struct External {
    shape: Shape,
    input: Codec,
    output: Codec,
    fulfiller: Fulfiller,
}

impl Tool {
    /// A tool that the client of the session runs. It is allowed unless a rule says otherwise: the client itself decides
    /// whether it does anything.
    ///
    /// # Errors
    /// If the schema is none, or takes something else than an object, which no model can give.
    pub fn external(description: impl Into<String>, input_schema: Value) -> Result<Self, BuildError> {
        Self::run_by(Fulfiller::Client, DefaultPolicy::Allow, description.into(), input_schema)
    }

    /// A tool that the worker of the session's environment runs. It asks unless a rule says otherwise: what it does is done
    /// for the session.
    ///
    /// # Errors
    /// As [`Tool::external`].
    pub fn of_environment(description: impl Into<String>, input_schema: Value) -> Result<Self, BuildError> {
        Self::run_by(Fulfiller::Environment, DefaultPolicy::Ask, description.into(), input_schema)
    }

    fn run_by(
        fulfiller: Fulfiller,
        default_policy: DefaultPolicy,
        description: String,
        input_schema: Value,
    ) -> Result<Self, BuildError> {
        if input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(BuildError::Schema("its input schema has no `\"type\": \"object\"`".to_owned()));
        }
        let semantics = Semantics {
            ownership: Ownership::Custom,
            risk: RiskSet::new(),
            interrupt: Interrupt::Cancel,
            default_policy,
            ..Semantics::mutating()
        };
        let (input, output) = (Codec::new(input_schema), Codec::new(json!({"type": "string"})));
        let shape = Shape {
            version: DefinitionVersion::of(&description, &input.schema, &output.schema, &semantics),
            description,
            input_schema: input.schema.clone(),
            output_schema: output.schema.clone(),
            semantics,
            executor: ExecutorId {
                kind: ExecutorKind::External,
                id: if fulfiller == Fulfiller::Client { "client" } else { "environment" }.to_owned(),
                impl_version: "1".to_owned(),
            },
        };
        let tool =
            Self { inner: Arc::new(External { shape, input, output, fulfiller }), alias: None, hidden_when: None };
        tool.check_schemas()?;
        Ok(tool)
    }
}

impl ErasedTool for External {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn check_schemas(&self) -> Result<(), String> {
        self.input.validator()?;
        self.output.validator()?;
        Ok(())
    }

    fn decode(&self, raw: &str) -> Result<Decoded, DecodeError> {
        let value = self.input.parse(raw)?;
        Ok(Decoded { value, typed: Arc::new(()) })
    }

    fn resolve(&self, _: &Decoded, _: &Caller) -> Result<Resolved, Precondition> {
        Ok(Resolved::default())
    }

    fn plan_access(&self, _: &Decoded, _: &Resolved) -> Option<Vec<AccessRequest>> {
        None
    }

    fn precheck(&self, _: &Decoded, _: &Resolved, _: &Caller) -> Prechecking {
        std::future::ready(Ok(Prepared::default())).boxed()
    }

    fn execute(&self, _: &Decoded, _: Resolved, _: ToolContext) -> BoxFuture<'static, Executed> {
        // The gate hands such a call over and never comes here.
        std::future::ready(Err(ToolFailure::external("this tool is run elsewhere"))).boxed()
    }

    fn fulfiller(&self) -> Option<Fulfiller> {
        Some(self.fulfiller)
    }

    fn receive(&self, _: &Decoded, arrival: &Arrival) -> Executed {
        match arrival.is_error {
            true => Err(ToolFailure::external("the client says that it failed")),
            false => Ok(Ok(Value::String(arrival.text.clone()))),
        }
    }

    fn timeout_ms(&self, _: &Decoded) -> Option<u64> {
        None
    }

    fn result_limit(&self, _: &Decoded) -> Option<usize> {
        None
    }

    fn loop_key(&self, input: &Decoded) -> Value {
        input.value.clone()
    }

    fn to_model(&self, _: &Decoded, output: &Value) -> Option<Vec<Content>> {
        Some(vec![Content::text(output.as_str().unwrap_or_default())])
    }

    fn to_user(&self, _: &Decoded, _: &Value) -> Option<UserText> {
        None
    }

    fn to_structured(&self, _: &Decoded, output: &Value) -> Value {
        output.clone()
    }

    fn anchors(&self, _: &dyn Window) -> Option<Vec<Anchor>> {
        None
    }
}
