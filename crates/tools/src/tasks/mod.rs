//! `task_output`, `task_wait` and `task_cancel`: a session's own background tasks (tool-contract §14).

mod cancel;
mod output;
mod running_output;
mod view;
mod wait;

use std::collections::BTreeMap;

use portcullis_base::{Reason, RiskSet, TaskId};
use portcullis_contract::{
    AccessRequest, Action, BuildError, NamedKind, Precondition, Resolved, Resource, Tool, ToolFailure, ToolName,
};
use portcullis_pipeline::{TaskBook, TaskError};

use crate::tool_name;

/// The tools of background tasks over a book of them.
///
/// # Errors
/// Never for the tools as they are written: a tool that contradicts itself is a defect of this crate.
pub fn task_tools(book: &TaskBook) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    Ok(BTreeMap::from([
        (tool_name("task_output"), output::tool(book.clone())?),
        (tool_name("task_wait"), wait::tool(book.clone())?),
        (tool_name("task_cancel"), cancel::tool(book.clone())?),
    ]))
}

fn task_id(text: &str) -> Result<TaskId, Precondition> {
    text.parse().map_err(|error| Precondition::schema("/task_id", format!("{error}")))
}

/// The one thing such a call is about, and no keys: the very task may hold those.
fn about(text: &str) -> Result<Resolved, Precondition> {
    let own = Resource::own(NamedKind::Task, task_id(text)?.to_string());
    Ok(Resolved { resources: vec![own], ..Resolved::default() })
}

fn accesses(action: &str, resolved: &Resolved, risk: &RiskSet) -> Vec<AccessRequest> {
    let own = resolved.resources.iter().cloned();
    own.map(|own| AccessRequest::new(Action::new(action), own, risk.clone())).collect()
}

/// Why the book showed nothing. The store's own words may name places on the host and stay inside.
fn unseen(error: TaskError) -> ToolFailure {
    match error {
        TaskError::NotFound(_) => ToolFailure::precondition(Precondition::failed(Reason::NotFound, error.to_string())),
        TaskError::Store(_) => {
            ToolFailure::new("store_error", "the store could not be read; try again").retryable(true)
        }
    }
}
