//! A workspace that is, or holds, a home folder or a folder of ours: a slip most of the time, for a command there works
//! beside everything that the next login or start obeys. It is refused unless somebody says that it is meant.

use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use portcullis_base::{Clock as _, Digest, SystemClock};
use portcullis_policy::EnterprisePolicy;
use portcullis_sandbox::hand::way_to;
use serde_json::json;

use crate::{ConfigError, DraftFile, Settings, other_name, runtime_folders};

/// Why nobody works in a folder.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceRefusal {
    /// It is a folder of ours under another name.
    #[error(
        "{} is another name of {} (a bind mount), which holds folders of Portcullis, and commands are kept from those by \
         their first name alone; work in {}, or in the folder of a project",
        .place.display(), .name.display(), .name.display()
    )]
    OtherName { place: PathBuf, name: PathBuf },
    /// The organisation's file forbids it.
    #[error(
        "the workspace {} {held}, and {} forbids that (workspace_is_home = false); work in the folder of a project",
        .workspace.display(), EnterprisePolicy::PATH
    )]
    Forbidden { workspace: PathBuf, held: String },
    /// Nobody said that it is meant.
    #[error("the workspace {} {held}, and nobody can be asked here whether that is meant", .workspace.display())]
    Unconfirmed { workspace: PathBuf, held: String },
}

/// Refuses a folder of which nobody said that it is meant.
///
/// # Errors
/// If the folder needs a yes and has none.
pub fn permitted(settings: &Settings, workspace: &Path) -> Result<(), WorkspaceRefusal> {
    match open_question(settings, workspace)? {
        Some(held) if !is_remembered(settings, workspace) => {
            Err(WorkspaceRefusal::Unconfirmed { workspace: workspace.to_owned(), held })
        }
        _ => Ok(()),
    }
}

/// What the workspace holds, in words, if no flag says that it is meant.
///
/// # Errors
/// If no yes would do.
pub fn open_question(settings: &Settings, workspace: &Path) -> Result<Option<String>, WorkspaceRefusal> {
    if let Some((place, name)) = other_name(workspace, &runtime_folders::places(settings, workspace)) {
        return Err(WorkspaceRefusal::OtherName { place, name });
    }
    let Some(held) = held(settings, workspace) else { return Ok(None) };
    if !settings.enterprise.workspace_is_home() {
        return Err(WorkspaceRefusal::Forbidden { workspace: workspace.to_owned(), held });
    }
    Ok((!settings.chosen.workspace_is_home).then_some(held))
}

/// What a workspace holds that makes it more than a project, in words.
fn held(settings: &Settings, workspace: &Path) -> Option<String> {
    let config = runtime_folders::config_folder();
    let own = [Some(settings.home.root()), config.as_deref()];
    // Nothing works in there at all, and the runtime says so itself.
    if own.iter().flatten().any(|folder| folder.canonicalize().is_ok_and(|real| workspace.starts_with(real))) {
        return None;
    }
    let mine = runtime_folders::own_home().and_then(|home| home.canonicalize().ok());
    if let Some(home) = runtime_folders::homes_in(workspace).into_iter().max_by_key(|home| Some(home) == mine.as_ref())
    {
        let whose = if Some(&home) == mine.as_ref() { "your home folder" } else { "a home folder" };
        return Some(match home == workspace {
            true => format!("is {whose}"),
            false => format!("holds {whose}, {}", home.display()),
        });
    }
    let is_inside = |folder: &Path| way_to(folder).iter().any(|step| step.place.starts_with(workspace));
    let named = [
        ("the data folder", Some(settings.home.root())),
        ("the configuration folder", config.as_deref()),
        ("the folder of the organisation's rules", Some(runtime_folders::enterprise_folder())),
    ];
    let (what, folder) = named.into_iter().find(|(_, folder)| folder.is_some_and(is_inside))?;
    Some(format!("holds {what} of Portcullis, {}, or a link on the way to it", folder.unwrap_or(workspace).display()))
}

/// Whether a person said before that this very folder is meant.
pub fn is_remembered(settings: &Settings, workspace: &Path) -> bool {
    record(settings, workspace).is_file()
}

/// Where it is kept that this very folder is meant: in the data folder, which no tool sees.
fn record(settings: &Settings, workspace: &Path) -> PathBuf {
    let name = Digest::of(workspace.as_os_str().as_bytes());
    settings.home.root().join("workspaces").join(format!("{name}.json"))
}

/// Keeps that somebody said of this very folder that it is meant.
///
/// # Errors
/// If that cannot be kept.
pub fn remember(settings: &Settings, workspace: &Path, by: &str) -> Result<(), ConfigError> {
    let record = record(settings, workspace);
    let cannot = |error: std::io::Error| ConfigError::cannot_keep(&record, error);
    settings.home.prepare()?;
    let folder = record.parent().unwrap_or(settings.home.root());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(cannot)?;
    let at = SystemClock::new().now();
    let text = json!({"workspace": workspace.to_string_lossy(), "by": by, "at": at}).to_string() + "\n";
    let mut draft = DraftFile::begin(&record).map_err(cannot)?;
    draft.write_all(text.as_bytes()).and_then(|()| draft.replace()).map_err(cannot)
}
