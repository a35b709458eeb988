//! Building a tool. `build()` refuses what contradicts itself.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::FutureExt as _;
use portcullis_base::Window;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::built::{Alternate, BuiltTool, ByChild, Execute, OptionalParts};
use crate::codec::{self, Codec};
use crate::tool::{Decoded, Shape};
use crate::{
    AccessRequest, Anchor, Arrival, Caller, Content, DefinitionVersion, ExecutorId, ExecutorKind, Precondition,
    Prepared, Resolved, Semantics, Tool, ToolContext, ToolFailure, UserText,
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

/// A tool in the making; see [`Tool::builder`].
///
/// Each closure is made to take the checked input as soon as it is given, so that everything else is compiled once and not
/// for each tool.
pub struct ToolBuilder<I, O> {
    draft: ToolDraft,
    types: PhantomData<fn(I) -> O>,
}

/// What a tool is made of, without its types.
struct ToolDraft {
    description: String,
    semantics: Semantics,
    executor: ExecutorId,
    parts_are_intents: bool,
    has_keys: bool,
    execute: Option<Execute>,
    parts: OptionalParts,
}

impl ToolDraft {
    fn new(description: String, input_type: &str) -> Self {
        Self {
            description,
            semantics: Semantics::mutating(),
            executor: ExecutorId {
                kind: ExecutorKind::Embedded,
                id: input_type.to_owned(),
                impl_version: "1".to_owned(),
            },
            parts_are_intents: false,
            has_keys: false,
            execute: None,
            parts: OptionalParts::default(),
        }
    }

    fn build(self, input: Codec, output: Codec, typed: crate::built::Typed) -> Result<Tool, BuildError> {
        if let Some(contradiction) = self.semantics.contradiction(self.has_keys, self.parts_are_intents) {
            return Err(BuildError::Contradiction(contradiction));
        }
        let execute = self.execute.ok_or(BuildError::NoExecutor)?;
        let version = DefinitionVersion::of(&self.description, &input.schema, &output.schema, &self.semantics);
        let shape = Shape {
            description: self.description,
            input_schema: input.schema.clone(),
            output_schema: output.schema.clone(),
            semantics: self.semantics,
            version,
            executor: self.executor,
        };
        let inner = BuiltTool { shape, input, typed, output: Arc::new(output), execute, parts: self.parts };
        Ok(Tool { inner: Arc::new(inner), alias: None, hidden_when: None })
    }
}

impl<I, O> ToolBuilder<I, O>
where
    I: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    O: Serialize + JsonSchema + Send + 'static,
{
    pub(crate) fn new(description: String) -> Self {
        Self { draft: ToolDraft::new(description, std::any::type_name::<I>()), types: PhantomData }
    }

    /// Governance metadata; without it the tool is [`Semantics::mutating`], the careful guess.
    #[must_use]
    pub fn semantics(mut self, semantics: Semantics) -> Self {
        self.draft.semantics = semantics;
        self
    }

    /// Who runs it, durably; an approval after a restart is bound to it.
    #[must_use]
    pub fn executor(mut self, executor: ExecutorId) -> Self {
        self.draft.executor = executor;
        self
    }

    /// Canonical names of what an input is about. Metadata I/O only; opens no content.
    #[must_use]
    pub fn resolve(
        mut self,
        f: impl Fn(&I, &Caller) -> Result<Resolved, Precondition> + Send + Sync + 'static,
    ) -> Self {
        self.draft.parts.resolve = Some(Box::new(move |input, caller| f(input.typed::<I>(), caller)));
        self
    }

    /// Says that a call for which `when` holds is a call of `tool`, which takes the same input: it is asked about,
    /// scheduled, run and recorded as that tool says of itself.
    #[must_use]
    pub fn rather(mut self, tool: Tool, when: impl Fn(&I, &Caller) -> bool + Send + Sync + 'static) -> Self {
        self.draft.parts.rather =
            Some(Alternate { tool, when: Box::new(move |input, caller| when(input.typed::<I>(), caller)) });
        self
    }

    /// Says that `resolve` fills [`Resolved::keys`]; needed for concurrency `keyed`.
    #[must_use]
    pub fn keyed(mut self) -> Self {
        self.draft.has_keys = true;
        self
    }

    /// Says that everything this tool does is an intent of its own, such as a script whose every step goes through
    /// the gate; needed for `dynamic_access`. A tool that does things itself states them in `plan_access`, before it
    /// starts.
    #[must_use]
    pub fn parts_are_intents(mut self) -> Self {
        self.draft.parts_are_intents = true;
        self
    }

    /// What the call will touch. Without it: itself, if it only reads; otherwise something opaque,
    /// which always asks.
    #[must_use]
    pub fn plan_access(mut self, f: impl Fn(&I, &Resolved) -> Vec<AccessRequest> + Send + Sync + 'static) -> Self {
        self.draft.parts.plan_access = Some(Box::new(move |input, resolved| f(input.typed::<I>(), resolved)));
        self
    }

    /// Runtime validation: may look at content, changes nothing.
    #[must_use]
    pub fn precheck<F>(mut self, f: impl Fn(Arc<I>, Resolved, Caller) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Prepared, Precondition>> + Send + 'static,
    {
        self.draft.parts.precheck =
            Some(Box::new(move |input, resolved, caller| f(input.shared::<I>(), resolved, caller).boxed()));
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
        self.draft.execute = Some(Box::new(move |input: &Decoded, resolved, context, codec| {
            // Decoded anew: the executor owns its input, projections keep theirs. Decoding is pure, so both are equal.
            match codec::typed::<I>(&input.value) {
                Ok(owned) => {
                    let running = f(owned, resolved, context);
                    async move { running.await.map(|output| codec::encode(&codec, &output)) }.boxed()
                }
                Err(error) => BuiltTool::no_longer_decodes(&error),
            }
        }));
        self
    }

    /// Has a child session fulfil the calls, instead of an executor: `hand_over` prepares what the child begins with, which
    /// becomes durable with the right to it, and `receive` makes the output of what the child says when it is done.
    /// `hand_over` changes nothing; it writes into the book of effects, or says why there can be no child.
    #[must_use]
    pub fn by_child<F>(
        mut self,
        hand_over: impl Fn(Arc<I>, Resolved, Caller) -> F + Send + Sync + 'static,
        receive: impl Fn(&I, &Arrival) -> Result<O, ToolFailure> + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), Precondition>> + Send + 'static,
    {
        self.draft.parts.by_child = Some(ByChild {
            hand_over: Box::new(move |input, resolved, caller| {
                hand_over(input.shared::<I>(), resolved, caller).boxed()
            }),
            receive: Box::new(move |input, arrival, codec| {
                receive(input.typed::<I>(), arrival).map(|output| codec::encode(codec, &output))
            }),
        });
        self.draft.executor.kind = ExecutorKind::Agent;
        self.draft.execute = Some(Box::new(|_, _, _, _| {
            // The gate hands such a call over and never comes here.
            std::future::ready(Err(ToolFailure::external("this tool is run by a child session"))).boxed()
        }));
        self
    }

    /// The timeout an input asks for, clamped to `semantics.timeout.max_ms`.
    #[must_use]
    pub fn timeout(mut self, f: impl Fn(&I) -> Option<u64> + Send + Sync + 'static) -> Self {
        self.draft.parts.timeout = Some(Box::new(move |input| f(input.typed::<I>())));
        self
    }

    /// How much of the result an input wants to be shown, in bytes. It lowers the limits of the settlement and never raises
    /// them; the whole is kept.
    #[must_use]
    pub fn result_limit(mut self, f: impl Fn(&I) -> Option<usize> + Send + Sync + 'static) -> Self {
        self.draft.parts.result_limit = Some(Box::new(move |input| f(input.typed::<I>())));
        self
    }

    /// What counts as "the same call again" for the loop guard; default: the canonical input.
    #[must_use]
    pub fn loop_key(mut self, f: impl Fn(&I) -> Value + Send + Sync + 'static) -> Self {
        self.draft.parts.loop_key = Some(Box::new(move |input| f(input.typed::<I>())));
        self
    }

    /// What a model is shown. Pure and total. Without it the encoded output is what it sees.
    #[must_use]
    pub fn to_model(mut self, f: impl Fn(&I, &Value) -> Vec<Content> + Send + Sync + 'static) -> Self {
        self.draft.parts.to_model = Some(Box::new(move |input, output| f(input.typed::<I>(), output)));
        self
    }

    /// What a person is shown. Pure and total.
    #[must_use]
    pub fn to_user(mut self, f: impl Fn(&I, &Value) -> UserText + Send + Sync + 'static) -> Self {
        self.draft.parts.to_user = Some(Box::new(move |input, output| f(input.typed::<I>(), output)));
        self
    }

    /// What the session keeps. Pure and total. Default: the encoded output.
    #[must_use]
    pub fn to_structured(mut self, f: impl Fn(&I, &Value) -> Value + Send + Sync + 'static) -> Self {
        self.draft.parts.to_structured = Some(Box::new(move |input, output| f(input.typed::<I>(), output)));
        self
    }

    /// Where the important places of an output are. Pure; reads through a window.
    #[must_use]
    pub fn anchors(mut self, f: impl Fn(&dyn Window) -> Vec<Anchor> + Send + Sync + 'static) -> Self {
        self.draft.parts.anchors = Some(Box::new(f));
        self
    }

    /// The tool. Its schemas are compiled when it is first called, or by [`Tool::check_schemas`].
    ///
    /// # Errors
    /// If it contradicts itself or has no executor.
    pub fn build(self) -> Result<Tool, BuildError> {
        self.draft.build(Codec::of_input::<I>(), Codec::of_output::<O>(), |codec, value| {
            let typed: I = codec.typed(value)?;
            Ok(Arc::new(typed))
        })
    }
}
