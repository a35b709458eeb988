//! Building a tool. `build()` refuses what contradicts itself.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::Window;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::codec::{self, Codec, DecodeError};
use crate::tool::{Decoded, ErasedTool, Executed, Prechecking, Shape};
use crate::{
    AccessRequest, Anchor, Caller, Content, DefinitionVersion, ExecutorId, ExecutorKind, Precondition, Prepared,
    Resolved, Semantics, Tool, ToolContext, ToolFailure, UserText,
};

/// Why a tool could not be built. Each is a mistake of its author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Two parts of its semantics exclude each other.
    #[error("the tool contradicts itself: {0}")]
    Contradiction(&'static str),
    /// A tool has exactly one executor, and this has none.
    #[error("the tool has no executor; call `.execute(...)` before `.build()`")]
    NoExecutor,
    /// A schema that is not one.
    #[error("the tool cannot be checked: {0}")]
    Schema(String),
}

type Resolve<I> = Box<dyn Fn(&I, &Caller) -> Result<Resolved, Precondition> + Send + Sync>;
type PlanAccess<I> = Box<dyn Fn(&I, &Resolved) -> Vec<AccessRequest> + Send + Sync>;
type Precheck<I> = Box<dyn Fn(Arc<I>, Resolved, Caller) -> Prechecking + Send + Sync>;
type Execute<I, O> = Box<dyn Fn(I, Resolved, ToolContext) -> BoxFuture<'static, Result<O, ToolFailure>> + Send + Sync>;
type TimeoutOf<I> = Box<dyn Fn(&I) -> Option<u64> + Send + Sync>;
type ResultLimit<I> = Box<dyn Fn(&I) -> Option<usize> + Send + Sync>;
type LoopKey<I> = Box<dyn Fn(&I) -> Value + Send + Sync>;
type ToModel<I> = Box<dyn Fn(&I, &Value) -> Vec<Content> + Send + Sync>;
type ToUser<I> = Box<dyn Fn(&I, &Value) -> UserText + Send + Sync>;
type ToStructured<I> = Box<dyn Fn(&I, &Value) -> Value + Send + Sync>;
/// Whether the other tool stands in for a call.
type AppliesTo<I> = Box<dyn Fn(&I, &Caller) -> bool + Send + Sync>;
type Anchors = Box<dyn Fn(&dyn Window) -> Vec<Anchor> + Send + Sync>;

/// Another tool, and for which calls it stands in.
struct Alternate<I> {
    tool: Tool,
    when: AppliesTo<I>,
}

/// What a tool may leave out, each with a default of its own.
struct OptionalParts<I> {
    resolve: Option<Resolve<I>>,
    plan_access: Option<PlanAccess<I>>,
    precheck: Option<Precheck<I>>,
    timeout: Option<TimeoutOf<I>>,
    result_limit: Option<ResultLimit<I>>,
    loop_key: Option<LoopKey<I>>,
    to_model: Option<ToModel<I>>,
    to_user: Option<ToUser<I>>,
    to_structured: Option<ToStructured<I>>,
    anchors: Option<Anchors>,
    rather: Option<Alternate<I>>,
}

impl<I> Default for OptionalParts<I> {
    fn default() -> Self {
        Self {
            resolve: None,
            plan_access: None,
            precheck: None,
            timeout: None,
            result_limit: None,
            loop_key: None,
            to_model: None,
            to_user: None,
            to_structured: None,
            anchors: None,
            rather: None,
        }
    }
}

/// A tool in the making; see [`Tool::builder`].
pub struct ToolBuilder<I, O> {
    description: String,
    semantics: Semantics,
    executor: ExecutorId,
    parts_are_intents: bool,
    has_keys: bool,
    execute: Option<Execute<I, O>>,
    parts: OptionalParts<I>,
    output: PhantomData<fn() -> O>,
}

impl<I, O> ToolBuilder<I, O>
where
    I: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    O: Serialize + JsonSchema + Send + 'static,
{
    pub(crate) fn new(description: String) -> Self {
        Self {
            description,
            semantics: Semantics::mutating(),
            executor: ExecutorId {
                kind: ExecutorKind::Embedded,
                id: std::any::type_name::<I>().to_owned(),
                impl_version: "1".to_owned(),
            },
            parts_are_intents: false,
            has_keys: false,
            execute: None,
            parts: OptionalParts::default(),
            output: PhantomData,
        }
    }

    /// Governance metadata; without it the tool is [`Semantics::mutating`], the careful guess.
    #[must_use]
    pub fn semantics(mut self, semantics: Semantics) -> Self {
        self.semantics = semantics;
        self
    }

    /// Who runs it, durably; an approval after a restart is bound to it.
    #[must_use]
    pub fn executor(mut self, executor: ExecutorId) -> Self {
        self.executor = executor;
        self
    }

    /// Canonical names of what an input is about. Metadata I/O only; opens no content.
    #[must_use]
    pub fn resolve(
        mut self,
        f: impl Fn(&I, &Caller) -> Result<Resolved, Precondition> + Send + Sync + 'static,
    ) -> Self {
        self.parts.resolve = Some(Box::new(f));
        self
    }

    /// Says that a call for which `when` holds is a call of `tool`, which takes the same input: it is asked about,
    /// scheduled, run and recorded as that tool says of itself.
    #[must_use]
    pub fn rather(mut self, tool: Tool, when: impl Fn(&I, &Caller) -> bool + Send + Sync + 'static) -> Self {
        self.parts.rather = Some(Alternate { tool, when: Box::new(when) });
        self
    }

    /// Says that `resolve` fills [`Resolved::keys`]; needed for concurrency `keyed`.
    #[must_use]
    pub fn keyed(mut self) -> Self {
        self.has_keys = true;
        self
    }

    /// Says that everything this tool does is an intent of its own, such as a script whose every step goes through
    /// the gate; needed for `dynamic_access`. A tool that does things itself states them in `plan_access`, before it
    /// starts.
    #[must_use]
    pub fn parts_are_intents(mut self) -> Self {
        self.parts_are_intents = true;
        self
    }

    /// What the call will touch. Without it: itself, if it only reads; otherwise something opaque,
    /// which always asks.
    #[must_use]
    pub fn plan_access(mut self, f: impl Fn(&I, &Resolved) -> Vec<AccessRequest> + Send + Sync + 'static) -> Self {
        self.parts.plan_access = Some(Box::new(f));
        self
    }

    /// Runtime validation: may look at content, changes nothing.
    #[must_use]
    pub fn precheck<F>(mut self, f: impl Fn(Arc<I>, Resolved, Caller) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Prepared, Precondition>> + Send + 'static,
    {
        self.parts.precheck = Some(Box::new(move |input, resolved, caller| f(input, resolved, caller).boxed()));
        self
    }

    /// The executor. The last one given is the one.
    #[must_use]
    pub fn execute<F>(self, f: impl Fn(I, ToolContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<O, ToolFailure>> + Send + 'static,
    {
        self.execute_resolved(move |input, _, context| f(input, context))
    }

    /// The executor, for tools that resolve: gets what `resolve` found.
    #[must_use]
    pub fn execute_resolved<F>(mut self, f: impl Fn(I, Resolved, ToolContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<O, ToolFailure>> + Send + 'static,
    {
        self.execute = Some(Box::new(move |input, resolved, context| f(input, resolved, context).boxed()));
        self
    }

    /// The timeout an input asks for, clamped to `semantics.timeout.max_ms`.
    #[must_use]
    pub fn timeout(mut self, f: impl Fn(&I) -> Option<u64> + Send + Sync + 'static) -> Self {
        self.parts.timeout = Some(Box::new(f));
        self
    }

    /// How much of the result an input wants to be shown, in bytes. It lowers the limits of the settlement and never raises
    /// them; the whole is kept.
    #[must_use]
    pub fn result_limit(mut self, f: impl Fn(&I) -> Option<usize> + Send + Sync + 'static) -> Self {
        self.parts.result_limit = Some(Box::new(f));
        self
    }

    /// What counts as "the same call again" for the loop guard; default: the canonical input.
    #[must_use]
    pub fn loop_key(mut self, f: impl Fn(&I) -> Value + Send + Sync + 'static) -> Self {
        self.parts.loop_key = Some(Box::new(f));
        self
    }

    /// What a model is shown. Pure and total. Without it the encoded output is what it sees.
    #[must_use]
    pub fn to_model(mut self, f: impl Fn(&I, &Value) -> Vec<Content> + Send + Sync + 'static) -> Self {
        self.parts.to_model = Some(Box::new(f));
        self
    }

    /// What a person is shown. Pure and total.
    #[must_use]
    pub fn to_user(mut self, f: impl Fn(&I, &Value) -> UserText + Send + Sync + 'static) -> Self {
        self.parts.to_user = Some(Box::new(f));
        self
    }

    /// What the session keeps. Pure and total. Default: the encoded output.
    #[must_use]
    pub fn to_structured(mut self, f: impl Fn(&I, &Value) -> Value + Send + Sync + 'static) -> Self {
        self.parts.to_structured = Some(Box::new(f));
        self
    }

    /// Where the important places of an output are. Pure; reads through a window.
    #[must_use]
    pub fn anchors(mut self, f: impl Fn(&dyn Window) -> Vec<Anchor> + Send + Sync + 'static) -> Self {
        self.parts.anchors = Some(Box::new(f));
        self
    }

    /// The tool. Its schemas are compiled when it is first called, or by [`Tool::sound`].
    ///
    /// # Errors
    /// If it contradicts itself or has no executor.
    pub fn build(self) -> Result<Tool, BuildError> {
        if let Some(contradiction) = self.semantics.contradiction(self.has_keys, self.parts_are_intents) {
            return Err(BuildError::Contradiction(contradiction));
        }
        let execute = self.execute.ok_or(BuildError::NoExecutor)?;
        let (input, output) = (Codec::of_input::<I>(), Codec::of_output::<O>());
        let version = DefinitionVersion::of(&self.description, &input.schema, &output.schema, &self.semantics);
        let shape = Shape {
            description: self.description,
            input_schema: input.schema.clone(),
            output_schema: output.schema.clone(),
            semantics: self.semantics,
            version,
            executor: self.executor,
        };
        let inner = TypedTool { shape, input, output: Arc::new(output), execute, parts: self.parts };
        Ok(Tool { inner: Arc::new(inner), alias: None })
    }
}

/// An executor with its codecs, behind the untyped seam.
struct TypedTool<I, O> {
    shape: Shape,
    input: Codec,
    output: Arc<Codec>,
    execute: Execute<I, O>,
    parts: OptionalParts<I>,
}

impl<I, O> ErasedTool for TypedTool<I, O>
where
    I: DeserializeOwned + Send + Sync + 'static,
    O: Serialize + Send + 'static,
{
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn sound(&self) -> Result<(), String> {
        self.input.validator()?;
        self.output.validator()?;
        self.parts.rather.as_ref().map_or(Ok(()), |rather| rather.tool.inner.sound())
    }

    fn decode(&self, raw: &str) -> Result<Decoded, DecodeError> {
        let value = self.input.parse(raw)?;
        let typed: I = self.input.typed(&value)?;
        Ok(Decoded { value, typed: Arc::new(typed) })
    }

    fn chosen(&self, input: &Decoded, caller: &Caller) -> Option<(Tool, Decoded)> {
        let Alternate { tool, when } = self.parts.rather.as_ref()?;
        if !when(&input.typed::<I>(), caller) {
            return None;
        }
        // One that would not take it after all is not chosen.
        let input = tool.inner.decode(&input.value.to_string()).ok()?;
        Some((tool.clone(), input))
    }

    fn resolve(&self, input: &Decoded, caller: &Caller) -> Result<Resolved, Precondition> {
        self.parts.resolve.as_ref().map_or_else(|| Ok(Resolved::default()), |f| f(&input.typed::<I>(), caller))
    }

    fn plan_access(&self, input: &Decoded, resolved: &Resolved) -> Option<Vec<AccessRequest>> {
        self.parts.plan_access.as_ref().map(|f| f(&input.typed::<I>(), resolved))
    }

    fn precheck(&self, input: &Decoded, resolved: &Resolved, caller: &Caller) -> Prechecking {
        match &self.parts.precheck {
            Some(f) => f(input.typed(), resolved.clone(), caller.clone()),
            None => std::future::ready(Ok(Prepared::default())).boxed(),
        }
    }

    fn execute(&self, input: &Decoded, resolved: Resolved, context: ToolContext) -> BoxFuture<'static, Executed> {
        // Decoded anew: the executor owns its input, projections keep theirs. Decoding is pure, so both are equal.
        let owned: I = match codec::typed(&input.value) {
            Ok(owned) => owned,
            Err(error) => {
                let fault = error.faults.first().map(|f| f.message.clone()).unwrap_or_default();
                return std::future::ready(Ok(Err(format!("the input no longer decodes: {fault}")))).boxed();
            }
        };
        let running = (self.execute)(owned, resolved, context);
        let codec = Arc::clone(&self.output);
        async move { running.await.map(|output| codec::encode(&codec, &output)) }.boxed()
    }

    fn timeout_ms(&self, input: &Decoded) -> Option<u64> {
        self.parts.timeout.as_ref().and_then(|f| f(&input.typed::<I>()))
    }

    fn result_limit(&self, input: &Decoded) -> Option<usize> {
        self.parts.result_limit.as_ref().and_then(|f| f(&input.typed::<I>()))
    }

    fn loop_key(&self, input: &Decoded) -> Value {
        self.parts.loop_key.as_ref().map_or_else(|| input.value.clone(), |f| f(&input.typed::<I>()))
    }

    fn to_model(&self, input: &Decoded, output: &Value) -> Option<Vec<Content>> {
        self.parts.to_model.as_ref().map(|f| f(&input.typed::<I>(), output))
    }

    fn to_user(&self, input: &Decoded, output: &Value) -> Option<UserText> {
        self.parts.to_user.as_ref().map(|f| f(&input.typed::<I>(), output))
    }

    fn to_structured(&self, input: &Decoded, output: &Value) -> Value {
        self.parts.to_structured.as_ref().map_or_else(|| output.clone(), |f| f(&input.typed::<I>(), output))
    }

    fn anchors(&self, text: &dyn Window) -> Option<Vec<Anchor>> {
        self.parts.anchors.as_ref().map(|f| f(text))
    }
}
