//! The tool that a builder makes: its types are gone, and only closures know them.

use std::any::Any;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::{Fulfiller, Window};
use serde_json::Value;

use crate::codec::{Codec, DecodeError};
use crate::tool::{Decoded, ErasedTool, Executed, HandingOver, Prechecking, Shape};
use crate::{
    AccessRequest, Anchor, Arrival, Caller, Content, Precondition, Prepared, Resolved, Tool, ToolContext, ToolFailure,
    UserText,
};

type Resolve = Box<dyn Fn(&Decoded, &Caller) -> Result<Resolved, Precondition> + Send + Sync>;
type PlanAccess = Box<dyn Fn(&Decoded, &Resolved) -> Vec<AccessRequest> + Send + Sync>;
type Precheck = Box<dyn Fn(&Decoded, Resolved, Caller) -> Prechecking + Send + Sync>;
type TimeoutOf = Box<dyn Fn(&Decoded) -> Option<u64> + Send + Sync>;
type ResultLimit = Box<dyn Fn(&Decoded) -> Option<usize> + Send + Sync>;
type LoopKey = Box<dyn Fn(&Decoded) -> Value + Send + Sync>;
type ToModel = Box<dyn Fn(&Decoded, &Value) -> Vec<Content> + Send + Sync>;
type ToUser = Box<dyn Fn(&Decoded, &Value) -> UserText + Send + Sync>;
type ToStructured = Box<dyn Fn(&Decoded, &Value) -> Value + Send + Sync>;
/// Whether the other tool stands in for a call.
type AppliesTo = Box<dyn Fn(&Decoded, &Caller) -> bool + Send + Sync>;
type Anchors = Box<dyn Fn(&dyn Window) -> Vec<Anchor> + Send + Sync>;

/// Runs the executor, and encodes and checks what it gave back.
pub(crate) type Execute =
    Box<dyn Fn(&Decoded, Resolved, ToolContext, Arc<Codec>) -> BoxFuture<'static, Executed> + Send + Sync>;
/// Checked value → typed value.
pub(crate) type Typed = fn(&Codec, &Value) -> Result<Arc<dyn Any + Send + Sync>, DecodeError>;

type HandOver = Box<dyn Fn(&Decoded, Resolved, Caller) -> HandingOver + Send + Sync>;
type Receive = Box<dyn Fn(&Decoded, &Arrival, &Codec) -> Executed + Send + Sync>;

/// How a child session fulfils the calls of a tool.
pub(crate) struct ByChild {
    pub(crate) hand_over: HandOver,
    pub(crate) receive: Receive,
}

/// Another tool, and for which calls it stands in.
pub(crate) struct Alternate {
    pub(crate) tool: Tool,
    pub(crate) when: AppliesTo,
}

/// What a tool may leave out, each with a default of its own.
#[derive(Default)]
pub(crate) struct OptionalParts {
    pub(crate) resolve: Option<Resolve>,
    pub(crate) plan_access: Option<PlanAccess>,
    pub(crate) precheck: Option<Precheck>,
    pub(crate) timeout: Option<TimeoutOf>,
    pub(crate) result_limit: Option<ResultLimit>,
    pub(crate) loop_key: Option<LoopKey>,
    pub(crate) to_model: Option<ToModel>,
    pub(crate) to_user: Option<ToUser>,
    pub(crate) to_structured: Option<ToStructured>,
    pub(crate) anchors: Option<Anchors>,
    pub(crate) rather: Option<Alternate>,
    pub(crate) by_child: Option<ByChild>,
}

pub(crate) struct BuiltTool {
    pub(crate) shape: Shape,
    pub(crate) input: Codec,
    pub(crate) typed: Typed,
    pub(crate) output: Arc<Codec>,
    pub(crate) execute: Execute,
    pub(crate) parts: OptionalParts,
}

impl BuiltTool {
    /// The end of a call whose input decoded once and does not any more.
    pub(crate) fn no_longer_decodes(error: &DecodeError) -> BoxFuture<'static, Executed> {
        let fault = error.faults.first().map(|f| f.message.clone()).unwrap_or_default();
        std::future::ready(Ok(Err(format!("the input no longer decodes: {fault}")))).boxed()
    }
}

impl ErasedTool for BuiltTool {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn check_schemas(&self) -> Result<(), String> {
        self.input.validator()?;
        self.output.validator()?;
        self.parts.rather.as_ref().map_or(Ok(()), |rather| rather.tool.inner.check_schemas())
    }

    fn decode(&self, raw: &str) -> Result<Decoded, DecodeError> {
        let value = self.input.parse(raw)?;
        let typed = (self.typed)(&self.input, &value)?;
        Ok(Decoded { value, typed })
    }

    fn chosen(&self, input: &Decoded, caller: &Caller) -> Option<(Tool, Decoded)> {
        let Alternate { tool, when } = self.parts.rather.as_ref()?;
        if !when(input, caller) {
            return None;
        }
        // One that would not take it after all is not chosen.
        let input = tool.inner.decode(&input.value.to_string()).ok()?;
        Some((tool.clone(), input))
    }

    fn resolve(&self, input: &Decoded, caller: &Caller) -> Result<Resolved, Precondition> {
        self.parts.resolve.as_ref().map_or_else(|| Ok(Resolved::default()), |f| f(input, caller))
    }

    fn plan_access(&self, input: &Decoded, resolved: &Resolved) -> Option<Vec<AccessRequest>> {
        self.parts.plan_access.as_ref().map(|f| f(input, resolved))
    }

    fn precheck(&self, input: &Decoded, resolved: &Resolved, caller: &Caller) -> Prechecking {
        match &self.parts.precheck {
            Some(f) => f(input, resolved.clone(), caller.clone()),
            None => std::future::ready(Ok(Prepared::default())).boxed(),
        }
    }

    fn execute(&self, input: &Decoded, resolved: Resolved, context: ToolContext) -> BoxFuture<'static, Executed> {
        (self.execute)(input, resolved, context, Arc::clone(&self.output))
    }

    fn fulfiller(&self) -> Option<Fulfiller> {
        self.parts.by_child.as_ref().map(|_| Fulfiller::Child)
    }

    fn hand_over(&self, input: &Decoded, resolved: Resolved, caller: Caller) -> HandingOver {
        match &self.parts.by_child {
            Some(by_child) => (by_child.hand_over)(input, resolved, caller),
            None => std::future::ready(Ok(())).boxed(),
        }
    }

    fn receive(&self, input: &Decoded, arrival: &Arrival) -> Executed {
        match &self.parts.by_child {
            Some(by_child) => (by_child.receive)(input, arrival, &self.output),
            None => Err(ToolFailure::external("nobody else fulfils the calls of this tool")),
        }
    }

    fn timeout_ms(&self, input: &Decoded) -> Option<u64> {
        self.parts.timeout.as_ref().and_then(|f| f(input))
    }

    fn result_limit(&self, input: &Decoded) -> Option<usize> {
        self.parts.result_limit.as_ref().and_then(|f| f(input))
    }

    fn loop_key(&self, input: &Decoded) -> Value {
        self.parts.loop_key.as_ref().map_or_else(|| input.value.clone(), |f| f(input))
    }

    fn to_model(&self, input: &Decoded, output: &Value) -> Option<Vec<Content>> {
        self.parts.to_model.as_ref().map(|f| f(input, output))
    }

    fn to_user(&self, input: &Decoded, output: &Value) -> Option<UserText> {
        self.parts.to_user.as_ref().map(|f| f(input, output))
    }

    fn to_structured(&self, input: &Decoded, output: &Value) -> Value {
        self.parts.to_structured.as_ref().map_or_else(|| output.clone(), |f| f(input, output))
    }

    fn anchors(&self, text: &dyn Window) -> Option<Vec<Anchor>> {
        self.parts.anchors.as_ref().map(|f| f(text))
    }
}
