//! The opaque tool value and the erased object behind it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::{Fulfiller, Reason, Window};
use serde_json::Value;

use crate::codec::DecodeError;
use crate::visibility::{HiddenWhen, Visibility};
use crate::{
    AccessRequest, Action, Anchor, Arrival, Caller, Content, DefinitionVersion, ExecutorId, Precondition, Prepared,
    Resolved, Semantics, ToolBuilder, ToolContext, ToolFailure, UserText,
};

/// A decoded input: the checked value and the typed one behind it.
#[derive(Clone)]
pub struct Decoded {
    pub(crate) value: Value,
    pub(crate) typed: Arc<dyn Any + Send + Sync>,
}

impl Decoded {
    /// The input as checked JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }
}

/// What an executor gave back, encoded and checked: `Err` of the inner result is an output that
/// does not fit its schema.
pub type Executed = Result<Result<Value, String>, ToolFailure>;

pub(crate) struct Shape {
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Value,
    pub(crate) semantics: Semantics,
    pub(crate) version: DefinitionVersion,
    pub(crate) executor: ExecutorId,
}

/// A runtime validation on its way.
pub(crate) type Prechecking = BoxFuture<'static, Result<Prepared, Precondition>>;
/// The preparation of what a child session begins with, on its way.
pub(crate) type HandingOver = BoxFuture<'static, Result<(), Precondition>>;

impl Decoded {
    /// The typed input.
    pub(crate) fn typed<T: 'static>(&self) -> &T {
        // Invariant: a `Decoded` is only ever given back to the tool that made it.
        self.typed.downcast_ref().expect("an input decoded by this very tool")
    }

    /// The typed input, to keep.
    pub(crate) fn shared<T: Send + Sync + 'static>(&self) -> Arc<T> {
        // Invariant: as above.
        Arc::clone(&self.typed).downcast().expect("an input decoded by this very tool")
    }
}

/// One tool, its types erased. Sealed by privacy: only this crate can name it.
pub(crate) trait ErasedTool: Send + Sync {
    fn shape(&self) -> &Shape;
    /// Compiles its schemas.
    fn check_schemas(&self) -> Result<(), String>;
    fn decode(&self, raw: &str) -> Result<Decoded, DecodeError>;
    /// The tool that the input chose, with its own input; none where there is nothing to choose.
    fn chosen(&self, _: &Decoded, _: &Caller) -> Option<(Tool, Decoded)> {
        None
    }
    fn resolve(&self, input: &Decoded, caller: &Caller) -> Result<Resolved, Precondition>;
    fn plan_access(&self, input: &Decoded, resolved: &Resolved) -> Option<Vec<AccessRequest>>;
    fn precheck(&self, input: &Decoded, resolved: &Resolved, caller: &Caller) -> Prechecking;
    fn execute(&self, input: &Decoded, resolved: Resolved, context: ToolContext) -> BoxFuture<'static, Executed>;
    /// Who fulfils its calls instead of its executor.
    fn fulfiller(&self) -> Option<Fulfiller> {
        None
    }
    /// Prepares what a call that a child fulfils begins with; it becomes durable with the right to it.
    fn hand_over(&self, _: &Decoded, _: Resolved, _: Caller) -> HandingOver {
        std::future::ready(Ok(())).boxed()
    }
    /// Makes the output of what came from outside.
    fn receive(&self, _: &Decoded, _: &Arrival) -> Executed {
        Err(ToolFailure::external("nobody else fulfils the calls of this tool"))
    }
    fn timeout_ms(&self, input: &Decoded) -> Option<u64>;
    fn result_limit(&self, input: &Decoded) -> Option<usize>;
    fn loop_key(&self, input: &Decoded) -> Value;
    fn to_model(&self, input: &Decoded, output: &Value) -> Option<Vec<Content>>;
    fn to_user(&self, input: &Decoded, output: &Value) -> Option<UserText>;
    fn to_structured(&self, input: &Decoded, output: &Value) -> Value;
    fn anchors(&self, text: &dyn Window) -> Option<Vec<Anchor>>;
}

/// A tool: typed input, typed output, one executor, no name.
///
/// Equal type is not equal authority: what a tool can reach is what its closures captured.
#[derive(Clone)]
pub struct Tool {
    pub(crate) inner: Arc<dyn ErasedTool>,
    pub(crate) alias: Option<Action>,
    pub(crate) hidden_when: Option<Arc<HiddenWhen>>,
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tool(..)")
    }
}

impl Tool {
    /// Begins a tool. `description` is what a model reads.
    pub fn builder<I, O>(description: impl Into<String>) -> ToolBuilder<I, O>
    where
        I: serde::de::DeserializeOwned + schemars::JsonSchema + Send + Sync + 'static,
        O: serde::Serialize + schemars::JsonSchema + Send + 'static,
    {
        ToolBuilder::new(description.into())
    }

    /// Compiles its schemas now, which otherwise the first call does.
    ///
    /// # Errors
    /// If one of them is no schema: nothing could ever be checked against it.
    pub fn check_schemas(&self) -> Result<(), crate::BuildError> {
        self.inner.check_schemas().map_err(crate::BuildError::Schema)
    }

    /// The same tool, whose accesses are judged under another action word. The original is unchanged.
    #[must_use]
    pub fn with_access_alias(&self, action: &str) -> Self {
        Self { alias: Some(Action::new(action)), ..self.clone() }
    }

    /// The same tool, hidden from sessions for which `why` gives a reason. `why` does no I/O and is asked when a menu is made;
    /// if it panics the tool is hidden.
    #[must_use]
    pub fn hidden_when(&self, why: impl Fn(&Visibility<'_>) -> Option<Reason> + Send + Sync + 'static) -> Self {
        Self { hidden_when: Some(Arc::new(why)), ..self.clone() }
    }

    /// The same tool, hidden outside of these phases.
    #[must_use]
    pub fn in_phases<P: Into<String>>(&self, phases: impl IntoIterator<Item = P>) -> Self {
        let phases: Vec<String> = phases.into_iter().map(Into::into).collect();
        self.hidden_when(move |session| {
            let here = session.phase.is_some_and(|phase| phases.iter().any(|named| named == phase));
            (!here).then_some(Reason::Phase)
        })
    }
}
