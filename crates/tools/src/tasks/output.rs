//! `task_output`: what a task wrote, so far or in all.

use portcullis_base::{Effect, EffectSet, Risk, RiskSet};
use portcullis_contract::{BuildError, Precondition, Semantics, Tool, ToolFailure};
use portcullis_pipeline::TaskBook;
use schemars::JsonSchema;
use serde::Deserialize;

use super::view::{TaskView, tell_warnings, to_model, to_user, without_text};
use super::{about, accesses, task_id, unseen};
use crate::count::Pair;
use crate::executor;

const DESCRIPTION: &str = "Shows a background task of this session by its id (`task_…`): while it runs, what it wrote \
so far; once it has ended, how, and its result. It does not wait: task_wait does.";

#[derive(Debug, Deserialize, JsonSchema)]
struct TaskOutputInput {
    /// The task's id, as the call that began it names it.
    #[schemars(regex(pattern = r"^task_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    task_id: String,
    /// `[start, end]`: bytes counted from 0, end not included; an end of 0 or less means to the end. Of a running task
    /// these are bytes of each of its streams, of one that has ended bytes of its text.
    #[serde(default)]
    range: Pair,
}

impl TaskOutputInput {
    fn range(&self) -> Result<Option<(u64, u64)>, Precondition> {
        let Some([start, end]) = self.range.given() else { return Ok(None) };
        let end = if end == 0 { u64::MAX } else { end };
        if end < start {
            return Err(Precondition::schema("/range", format!("range ends at {end}, before it begins at {start}")));
        }
        Ok(Some((start, end)))
    }
}

pub(super) fn tool(book: TaskBook) -> Result<Tool, BuildError> {
    let semantics = Semantics { effects: EffectSet::from([Effect::SessionRead]), ..Semantics::read_only() };
    Tool::builder::<TaskOutputInput, TaskView>(DESCRIPTION)
        .semantics(semantics)
        .executor(executor("task_output"))
        .resolve(|input: &TaskOutputInput, _| {
            input.range()?;
            about(&input.task_id)
        })
        .plan_access(|_, resolved| accesses("task_output", resolved, &RiskSet::from([Risk::Read])))
        .execute(move |input, context| {
            let book = book.clone();
            async move {
                let range = input.range().map_err(ToolFailure::precondition)?;
                let id = task_id(&input.task_id).map_err(ToolFailure::precondition)?;
                let seen = book.look(context.caller().session_id, id).await.map_err(unseen)?;
                tell_warnings(&seen, &context);
                Ok(TaskView::of(seen, range))
            }
        })
        .to_model(|_, output| to_model(output))
        .to_user(|_, output| to_user(output))
        .to_structured(|_, output| without_text(output))
        .build()
}
