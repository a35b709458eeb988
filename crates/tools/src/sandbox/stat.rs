//! `stat`: what stands at a path. It is a look at a directory's entry, and asks what `glob` asks.

use std::sync::Arc;

use portcullis_contract::{BuildError, Prepared, Strategy, Tool, UserText};
use portcullis_sandbox::{self as sandbox, FileError, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mount_names::MountNames;
use super::{table, word};
use crate::executor;
use crate::files::{FileTools, failure, precondition, shown};
use crate::search::scope;

#[derive(Debug, Deserialize, JsonSchema)]
struct StatInput {
    /// A path relative to the workspace; a link is followed.
    #[schemars(regex(pattern = r"\S"))]
    path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StatOutput {
    path: String,
    mount_path: String,
    /// `directory`, `file` or `other`.
    kind: &'static str,
    /// Bytes.
    size: u64,
    mtime: String,
}

pub(super) fn tool(parts: Arc<FileTools>, places: MountNames) -> Result<Tool, BuildError> {
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<StatInput, StatOutput>(table::description("stat"))
        .semantics(scope::semantics(Strategy::Head))
        .executor(executor("stat"))
        .resolve(move |input: &StatInput, caller| {
            named.under_every_name(scope::name(&named, Some(&input.path))?, caller, &["glob", "read"])
        })
        .plan_access(|_, resolved| scope::plan("glob", resolved))
        .precheck(move |_, resolved, _| {
            let place = checked.place(&resolved).and_then(there).map_err(precondition);
            async move { place.map(|_| Prepared::default()) }
        })
        .execute_resolved(move |_, resolved, _| {
            let place = parts.place(&resolved).and_then(there);
            let places = places.clone();
            async move {
                let place = place.map_err(failure)?;
                let stat = sandbox::stat(&place).map_err(failure)?;
                Ok(StatOutput {
                    path: shown(&place).to_owned(),
                    mount_path: places.mount_path(shown(&place)),
                    kind: match stat.kind {
                        Kind::Directory => "directory",
                        Kind::File => "file",
                        Kind::Other => "other",
                    },
                    size: stat.size,
                    mtime: stat.mtime.to_millis_text(),
                })
            }
        })
        .to_user(|_, output| UserText {
            title: format!("Stat {}", word(output, "path")),
            summary: word(output, "kind").to_owned(),
        })
        .build()
}

/// Something must stand there.
fn there(place: sandbox::ResolvedPlace) -> Result<sandbox::ResolvedPlace, FileError> {
    match place.kind() {
        Some(_) => Ok(place),
        None => Err(FileError::NotFound { path: place.path().clone() }),
    }
}
