//! How `crates/pipeline` opens a tool. Nobody else may: clippy's `disallowed-methods` forbids this
//! module elsewhere, and the facade does not re-export it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use portcullis_base::{Code, Fulfiller, InvocationId, Reason, Risk, SideEffect, SideEffects, Window};
use portcullis_secret::SecretText;
use serde_json::Value;

pub use crate::codec::DecodeError;
pub use crate::context::{Host, KeptEvidence, SpoolSink, ToolReport};
pub use crate::stop::StopSignal;
pub use crate::tool::{Decoded, Executed};
use crate::{
    AccessRequest, Action, Anchor, Arrival, Caller, Content, ExecutorId, InputFault, NamedKind, Precondition, Prepared,
    Resolved, Resource, Semantics, Tool, ToolContext, ToolDefinition, ToolFailure, ToolName, UserText, Visibility,
};

/// The definition of a tool under a name.
#[must_use]
pub fn definition(name: &ToolName, tool: &Tool) -> ToolDefinition {
    let shape = tool.inner.shape();
    ToolDefinition {
        name: name.clone(),
        description: shape.description.clone(),
        input_schema: shape.input_schema.clone(),
        output_schema: shape.output_schema.clone(),
        semantics: shape.semantics.clone(),
        version: shape.version.clone(),
    }
}

#[must_use]
pub fn semantics(tool: &Tool) -> &Semantics {
    &tool.inner.shape().semantics
}

#[must_use]
pub fn version(tool: &Tool) -> &crate::DefinitionVersion {
    &tool.inner.shape().version
}

#[must_use]
pub fn executor(tool: &Tool) -> &ExecutorId {
    &tool.inner.shape().executor
}

/// Why the tool wants to be hidden from this session; `None` if it does not.
#[must_use]
pub fn hidden(tool: &Tool, session: &Visibility<'_>) -> Option<Reason> {
    tool.hidden_when.as_ref()?(session)
}

#[must_use]
pub fn input_schema(tool: &Tool) -> &Value {
    &tool.inner.shape().input_schema
}

pub fn decode(tool: &Tool, raw: &str) -> Result<Decoded, DecodeError> {
    tool.inner.decode(raw)
}

/// What a call of this tool with this input is a call of; itself, unless it is one of several, or would rather be another.
#[must_use]
pub fn chosen(tool: &Tool, input: Decoded, caller: &Caller) -> (Tool, Decoded) {
    tool.inner.chosen(&input, caller).unwrap_or_else(|| (tool.clone(), input))
}

pub fn resolve(tool: &Tool, input: &Decoded, caller: &Caller) -> Result<Resolved, Precondition> {
    tool.inner.resolve(input, caller)
}

/// Never empty: a tool that plans nothing gets the careful default.
#[must_use]
pub fn plan_access(tool: &Tool, name: &ToolName, input: &Decoded, resolved: &Resolved) -> Vec<AccessRequest> {
    let semantics = &tool.inner.shape().semantics;
    let mut planned = tool.inner.plan_access(input, resolved).unwrap_or_default();
    if planned.is_empty() {
        let only_reads = semantics.read_only && semantics.risk.iter().all(|risk| *risk == Risk::Read);
        // What a client runs touches nothing here, whatever it does there.
        let elsewhere = tool.inner.fulfiller() == Some(Fulfiller::Client);
        let resource = if only_reads || elsewhere {
            Resource::own(NamedKind::McpTool, name.as_str())
        } else {
            Resource::opaque(name.as_str())
        };
        planned.push(AccessRequest::new(Action::new(name.as_str()), resource, semantics.risk.clone()));
    }
    planned.into_iter().map(|request| aliased(tool, request)).collect()
}

/// An access under the action that the tool's uses go by.
#[must_use]
pub fn aliased(tool: &Tool, mut request: AccessRequest) -> AccessRequest {
    if let Some(alias) = &tool.alias {
        request.action = alias.clone();
    }
    request
}

pub fn precheck(
    tool: &Tool,
    input: &Decoded,
    resolved: &Resolved,
    caller: &Caller,
) -> BoxFuture<'static, Result<Prepared, Precondition>> {
    tool.inner.precheck(input, resolved, caller)
}

#[must_use]
pub fn execute(tool: &Tool, input: &Decoded, resolved: Resolved, context: ToolContext) -> BoxFuture<'static, Executed> {
    tool.inner.execute(input, resolved, context)
}

/// Who fulfils its calls, where its executor does not.
#[must_use]
pub fn fulfiller(tool: &Tool) -> Option<Fulfiller> {
    tool.inner.fulfiller()
}

pub fn hand_over(
    tool: &Tool,
    input: &Decoded,
    resolved: Resolved,
    caller: Caller,
) -> BoxFuture<'static, Result<(), Precondition>> {
    tool.inner.hand_over(input, resolved, caller)
}

pub fn receive(tool: &Tool, input: &Decoded, arrival: &Arrival) -> Executed {
    tool.inner.receive(input, arrival)
}

#[must_use]
pub fn timeout_ms(tool: &Tool, input: &Decoded) -> Option<u64> {
    tool.inner.timeout_ms(input)
}

#[must_use]
pub fn result_limit(tool: &Tool, input: &Decoded) -> Option<usize> {
    tool.inner.result_limit(input)
}

#[must_use]
pub fn loop_key(tool: &Tool, input: &Decoded) -> Value {
    tool.inner.loop_key(input)
}

#[must_use]
pub fn to_model(tool: &Tool, input: &Decoded, output: &Value) -> Option<Vec<Content>> {
    tool.inner.to_model(input, output)
}

#[must_use]
pub fn to_user(tool: &Tool, input: &Decoded, output: &Value) -> Option<UserText> {
    tool.inner.to_user(input, output)
}

#[must_use]
pub fn to_structured(tool: &Tool, input: &Decoded, output: &Value) -> Value {
    tool.inner.to_structured(input, output)
}

#[must_use]
pub fn anchors(tool: &Tool, text: &dyn Window) -> Option<Vec<Anchor>> {
    tool.inner.anchors(text)
}

/// A failure, taken apart.
pub struct FailureParts {
    pub code: Code,
    pub reason: Option<Reason>,
    pub tool_code: Option<String>,
    pub message: String,
    pub retryable: bool,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub side_effects: Option<SideEffects>,
    pub under_way: bool,
}

#[must_use]
pub fn failure_parts(failure: ToolFailure) -> FailureParts {
    let ToolFailure { code, reason, tool_code, message, retryable, exit_code, signal, side_effects, under_way } =
        failure;
    FailureParts { code, reason, tool_code, message, retryable, exit_code, signal, side_effects, under_way }
}

/// A precondition, taken apart.
pub struct PreconditionParts {
    pub code: Code,
    pub reason: Option<Reason>,
    pub message: String,
    pub faults: Vec<InputFault>,
}

#[must_use]
pub fn precondition_parts(found: Precondition) -> PreconditionParts {
    let Precondition { code, reason, message, faults } = found;
    PreconditionParts { code, reason, message, faults }
}

/// What a context is made of.
pub struct ContextParts {
    pub caller: Arc<Caller>,
    pub invocation_id: InvocationId,
    pub attempt: u32,
    pub timeout: Duration,
    pub stop: StopSignal,
    pub variables: Arc<BTreeMap<String, SecretText>>,
    pub host: Arc<dyn Host>,
}

/// A context, and the place where its tool's reports gather.
#[must_use]
pub fn context(parts: ContextParts) -> (ToolContext, Reports) {
    let reported = Arc::new(Mutex::new(ToolReport::default()));
    let ContextParts { caller, invocation_id, attempt, timeout, stop, variables, host } = parts;
    let context =
        ToolContext { caller, invocation_id, attempt, timeout, stop, variables, host, reported: Arc::clone(&reported) };
    (context, Reports(reported))
}

/// What a tool reported, readable whether it returned, failed, panicked or was dropped.
pub struct Reports(Arc<Mutex<ToolReport>>);

impl Reports {
    /// What was done so far.
    #[must_use]
    pub fn done_so_far(&self) -> Vec<SideEffect> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).side_effects.clone()
    }

    /// Takes what was reported so far.
    #[must_use]
    pub fn take(&self) -> ToolReport {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
