//! Why something of this machine cannot be opened.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use portcullis_base::SessionId;
use portcullis_config::ConfigError;
use portcullis_config::home_workspace::WorkspaceRefusal;
use portcullis_store::StoreError;

use crate::RuntimeError;
use crate::operations::UnopenedContents;

/// A store, or a runtime over it, that cannot be opened as the settings or a setup say.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    /// A configuration that does not hold.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file is no store, or damaged.
    #[error("the store cannot be opened: {0}")]
    Unreadable(String),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A runtime cannot be made.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The folder of large contents cannot be opened.
    #[error(transparent)]
    Contents(#[from] UnopenedContents),
    /// A workspace in which nobody works unless it is meant.
    #[error(transparent)]
    Workspace(#[from] WorkspaceRefusal),
    /// A session that was made without a folder.
    #[error("session {0} has no workspace")]
    NoWorkspace(SessionId),
    /// The folder of a session is gone.
    #[error("the workspace {} of session {session} is gone; bring it back, then try again", .folder.display())]
    WorkspaceGone {
        /// Whose.
        session: SessionId,
        /// Which.
        folder: PathBuf,
    },
    /// The name of a session's folder leads to another folder.
    #[error(
        "the workspace {} of session {session} leads to {} now, which is another folder; bring the first one back, then \
         try again",
        .folder.display(), .now.display()
    )]
    WorkspaceMoved {
        /// Whose.
        session: SessionId,
        /// The name that its setup has.
        folder: PathBuf,
        /// Where that leads.
        now: PathBuf,
    },
    /// A folder cannot be opened.
    #[error("cannot open {}", .folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl InstallationError {
    /// The error that this one passes on, whose kind and hint count.
    #[must_use]
    pub fn bare(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Store(error) => Some(error),
            Self::Runtime(error) => Some(error),
            Self::Contents(error) => Some(error),
            Self::Workspace(error) => Some(error),
            _ => None,
        }
    }
}
