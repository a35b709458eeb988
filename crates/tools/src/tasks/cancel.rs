//! `task_cancel`: stops a task. It changes something, but nothing that the session did not begin itself, so nobody is
//! asked.

use portcullis_base::{Effect, EffectSet, Risk, RiskSet, SideEffect};
use portcullis_contract::{BuildError, Concurrency, DefaultPolicy, Interrupt, Semantics, Tool, ToolFailure};
use portcullis_pipeline::{TaskBook, TaskStanding};
use schemars::JsonSchema;
use serde::Deserialize;

use super::view::{State, TaskView, to_model, to_user, without_text};
use super::{about, accesses, task_id, unseen};
use crate::executor;

const DESCRIPTION: &str = "Stops a background task of this session and shows how it ended and what it wrote until then. \
One that has ended already stays as it is.";

#[derive(Debug, Deserialize, JsonSchema)]
struct TaskCancelInput {
    /// The task's id, as the call that began it names it.
    #[schemars(regex(pattern = r"^task_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    task_id: String,
}

pub(super) fn tool(book: TaskBook) -> Result<Tool, BuildError> {
    let semantics = Semantics {
        effects: EffectSet::from([Effect::SessionWrite]),
        idempotent: true,
        // With no keys at all: a task that holds everything can still be stopped.
        concurrency: Concurrency::Keyed,
        interrupt: Interrupt::Finish,
        default_policy: DefaultPolicy::Allow,
        ..Semantics::mutating()
    };
    Tool::builder::<TaskCancelInput, TaskView>(DESCRIPTION)
        .semantics(semantics)
        .executor(executor("task_cancel"))
        .keyed()
        .resolve(|input: &TaskCancelInput, _| about(&input.task_id))
        .plan_access(|_, resolved| accesses("task_cancel", resolved, &RiskSet::from([Risk::Write])))
        .execute(move |input, context| {
            let book = book.clone();
            async move {
                let id = task_id(&input.task_id).map_err(ToolFailure::precondition)?;
                let session = context.caller().session_id;
                let before = book.look(session, id).await.map_err(unseen)?;
                let view = TaskView::of(book.cancel(session, id).await.map_err(unseen)?, None);
                if matches!(before.standing, TaskStanding::Running(_)) && view.state == State::Cancelled {
                    context.did(SideEffect {
                        kind: "task_cancelled".to_owned(),
                        target: id.to_string(),
                        before: None,
                        after: None,
                        reversible: false,
                    });
                }
                Ok(view)
            }
        })
        .to_model(|_, output| to_model(output))
        .to_user(|_, output| to_user(output))
        .to_structured(|_, output| without_text(output))
        .build()
}
