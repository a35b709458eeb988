//! `mkdir`: a new directory. It changes a tree, and asks what `write` asks.

use std::sync::Arc;

use portcullis_base::{Effect, Reason, Risk, SideEffect};
use portcullis_contract::{
    BuildError, Precondition, Prepared, Resolved, Semantics, Tool, ToolContext, ToolFailure, UserText,
};
use portcullis_sandbox::{self as sandbox, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mount_names::MountNames;
use super::{table, word};
use crate::files::{FileTools, access, failure, precondition, shown};
use crate::{executor, synced};

#[derive(Debug, Deserialize, JsonSchema)]
struct MkdirInput {
    /// The directory: a path relative to the workspace, such as `src/new`.
    #[schemars(regex(pattern = r"\S"))]
    path: String,
    /// Also make the directories that it lies in; one that is there already is as good as made. Absent means true.
    #[serde(default)]
    recursive: Option<bool>,
}

impl MkdirInput {
    fn recursive(&self) -> bool {
        self.recursive.unwrap_or(true)
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MkdirOutput {
    path: String,
    mount_path: String,
    recursive: bool,
    operation: &'static str,
}

pub(super) fn tool(parts: Arc<FileTools>, places: MountNames) -> Result<Tool, BuildError> {
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<MkdirInput, MkdirOutput>(table::description("mkdir"))
        // As `write`, which makes directories as well.
        .semantics(Semantics { destructive: true, ..parts.mutating() })
        .executor(executor("mkdir"))
        .resolve(move |input: &MkdirInput, caller| {
            named
                .under_every_name(named.named(&input.path, "/path")?, caller, &["write"])
                .map(|found| named.to_write(found))
        })
        .keyed()
        .plan_access(|_, resolved| access("write", Risk::Write, Effect::ResourceWrite, resolved))
        .precheck(move |input, resolved, _| {
            let checked = check(&checked, &input, &resolved);
            async move { checked }
        })
        .execute_resolved(move |input, resolved, context| {
            let (parts, places) = (Arc::clone(&parts), places.clone());
            synced(move || make(&parts, &places, &input, &resolved, &context))
        })
        .to_user(|_, output| UserText {
            title: format!("Make directory {}", word(output, "path")),
            summary: "it is there".to_owned(),
        })
        .build()
}

fn check(parts: &FileTools, input: &MkdirInput, resolved: &Resolved) -> Result<Prepared, Precondition> {
    let place = parts.place(resolved).map_err(precondition)?;
    place.check_writable().map_err(precondition)?;
    match place.kind() {
        Some(Kind::Directory) if input.recursive() => {}
        Some(_) => {
            let text = format!("`{}` already exists; choose another name", shown(&place));
            return Err(Precondition::failed(Reason::TargetExists, text));
        }
        None => {}
    }
    let facts = vec![("creates".to_owned(), place.kind().is_none().to_string())];
    Ok(Prepared { facts, ..Prepared::default() })
}

fn make(
    parts: &FileTools,
    places: &MountNames,
    input: &MkdirInput,
    resolved: &Resolved,
    context: &ToolContext,
) -> Result<MkdirOutput, ToolFailure> {
    let place = parts.place(resolved).map_err(failure)?;
    let made = sandbox::make_dir(&place, input.recursive()).map_err(failure)?;
    for dir in &made.created {
        let target = dir.display_relative().to_owned();
        let kind = "directory_created".to_owned();
        context.did(SideEffect { kind, target, before: None, after: None, reversible: true });
    }
    if !made.synced {
        context.warn("the disk did not confirm the new directory; a power cut may take it away");
    }
    Ok(MkdirOutput {
        path: shown(&place).to_owned(),
        mount_path: places.mount_path(shown(&place)),
        recursive: input.recursive(),
        operation: "mkdir",
    })
}
