//! `task_wait`: waits for the end of a task, but not for ever.

use std::time::Duration;

use portcullis_base::{Effect, EffectSet, Risk, RiskSet, limits};
use portcullis_contract::{BuildError, Semantics, Timeout, Tool, ToolFailure};
use portcullis_pipeline::TaskBook;
use schemars::JsonSchema;
use serde::Deserialize;

use super::view::{TaskView, tell_warnings, to_model, to_user, without_text};
use super::{about, accesses, task_id, unseen};
use crate::count::Count;
use crate::executor;

const LONGEST: u64 = limits::TASK_WAIT.as_secs() * 1_000;
/// Where the input says nothing.
const USUAL: u64 = 30_000;
/// The call itself is never what runs out first.
const TIMEOUT: u64 = LONGEST + 10_000;

const DESCRIPTION: &str = "Waits until a background task of this session has ended, at most timeout_ms milliseconds, \
and shows it as task_output does. If it still runs then, that is no failure: wait again, or do something else.";

#[derive(Debug, Deserialize, JsonSchema)]
struct TaskWaitInput {
    /// The task's id, as the call that began it names it.
    #[schemars(regex(pattern = r"^task_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    task_id: String,
    /// How long to wait at most. 0 or less, or absent, means 30000; above 60000 means 60000.
    #[serde(default)]
    timeout_ms: Count<USUAL, LONGEST>,
}

pub(super) fn tool(book: TaskBook) -> Result<Tool, BuildError> {
    let semantics = Semantics {
        effects: EffectSet::from([Effect::SessionRead]),
        timeout: Timeout { default_ms: TIMEOUT, max_ms: TIMEOUT },
        ..Semantics::read_only()
    };
    Tool::builder::<TaskWaitInput, TaskView>(DESCRIPTION)
        .semantics(semantics)
        .executor(executor("task_wait"))
        .resolve(|input: &TaskWaitInput, _| about(&input.task_id))
        .plan_access(|_, resolved| accesses("task_wait", resolved, &RiskSet::from([Risk::Read])))
        .execute(move |input, context| {
            let book = book.clone();
            async move {
                if let Some(lowered) = input.timeout_ms.lowered("timeout_ms") {
                    context.warn(lowered);
                }
                let id = task_id(&input.task_id).map_err(ToolFailure::precondition)?;
                let most = Duration::from_millis(input.timeout_ms.value());
                let seen = book.wait(context.caller().session_id, id, most).await.map_err(unseen)?;
                tell_warnings(&seen, &context);
                Ok(TaskView::of(seen, None))
            }
        })
        .to_model(|_, output| to_model(output))
        .to_user(|_, output| to_user(output))
        .to_structured(|_, output| without_text(output))
        .build()
}
