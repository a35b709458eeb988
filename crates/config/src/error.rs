//! Why a configuration does not hold.

use std::path::{Path, PathBuf};

use portcullis_policy::PolicyError;
use portcullis_secret::KeyFileError;

/// A configuration that cannot be used. Nothing was opened and nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file, a variable or a flag says something that is not understood or not permitted.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The organisation's file forbids to answer every ask with yes.
    #[error("{0} forbids `--approvals allow`")]
    AllowForbidden(&'static str),
    /// The data folder cannot be made or written to.
    #[error("{0}")]
    DataFolder(String),
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A file of ours cannot be read or kept.
    #[error("cannot {verb} {}: {why}", .path.display())]
    OwnFile { verb: &'static str, path: PathBuf, why: String },
}

impl ConfigError {
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }

    pub(crate) fn cannot_keep(path: &Path, why: impl ToString) -> Self {
        Self::OwnFile { verb: "keep", path: path.to_owned(), why: why.to_string() }
    }

    pub(crate) fn cannot_read(path: &Path, why: impl ToString) -> Self {
        Self::OwnFile { verb: "read", path: path.to_owned(), why: why.to_string() }
    }
}

/// A file that a person named and that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableFile {
    #[error("{}: there is no such file", .0.display())]
    Absent(PathBuf),
    #[error("cannot read {}: {why}", .path.display())]
    Because { path: PathBuf, why: String },
}

impl UnreadableFile {
    #[must_use]
    pub fn absent(path: &Path) -> Self {
        Self::Absent(path.to_owned())
    }

    #[must_use]
    pub fn because(path: &Path, why: impl Into<String>) -> Self {
        Self::Because { path: path.to_owned(), why: why.into() }
    }
}
