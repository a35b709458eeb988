//! What can go wrong with a file, in the words of tool-contract §12.

use std::fmt;
use std::io;

use portcullis_base::{Code, Digest, Reason};

use crate::VirtualPath;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    File,
    Directory,
    /// A pipe, socket or device: shown in listings, never opened.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Other => "neither a file nor a directory (a pipe, socket or device)",
        })
    }
}

/// Why a text is not a path at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    #[error("it is empty")]
    Empty,
    #[error("it contains a NUL byte")]
    Nul,
    #[error("it is longer than 4096 bytes")]
    TooLong,
    #[error("it is more than 256 directories deep")]
    TooDeep,
    #[error("it must start with `/`")]
    NotAbsolute,
    #[error("it is not a single name")]
    NotAName,
    #[error("a link on the way leads to a name that is not UTF-8")]
    NotUtf8,
}

/// Why a file action did not happen. Every place in it is a [`VirtualPath`]: a host path has no
/// field to travel in (H6). Unless a variant says otherwise, nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("not a usable path: {fault}; give a path relative to the workspace")]
    InvalidPath { fault: PathFault },
    /// `at` is the last place inside, when the path got that far.
    #[error("the path leads outside the workspace{}; use a path that stays beneath it", at_text(.at.as_ref()))]
    PathEscape { at: Option<VirtualPath> },
    #[error("`{}` passes through more than 40 links, or links in a circle; name the file itself", .path.display_relative())]
    LinkLoop { path: VirtualPath },
    #[error("`{}` is read-only here; write somewhere else", .path.display_relative())]
    ReadOnlyMount { path: VirtualPath },
    #[error("`{}` is {found}, and this needs {wanted}", .path.display_relative())]
    WrongKind { path: VirtualPath, wanted: Kind, found: Kind },
    #[error("`{}` is not text ({}, {size} bytes)", .path.display_relative(), .mime.unwrap_or("binary, or not UTF-8"))]
    BinaryFile { path: VirtualPath, size: u64, mime: Option<&'static str> },
    #[error("`{}` does not exist; check the path, or list its directory", .path.display_relative())]
    NotFound { path: VirtualPath },
    #[error("`{}` already exists; read it first, then edit or overwrite it", .path.display_relative())]
    TargetExists { path: VirtualPath },
    /// `found` is absent when the file is gone.
    #[error("`{}` {} since it was read; read it again", .path.display_relative(),
        if .found.is_some() { "changed" } else { "was removed" })]
    StaleBaseline { path: VirtualPath, expected: Digest, found: Option<Digest> },
    /// A directory on the way was moved or replaced by a link after the path was resolved.
    #[error("`{}` was moved or replaced while in use; try again", .path.display_relative())]
    PathChanged { path: VirtualPath },
    /// `size` is a lower bound for a file that grew while it was read.
    #[error("`{}` has at least {size} bytes, more than the limit of {max}; work on a part of it with a command", .path.display_relative())]
    TooLarge { path: VirtualPath, size: u64, max: u64 },
    /// Only for a file with several hard links, which cannot be replaced in one step: it was left
    /// with neither its old nor its new content.
    #[error("writing `{}` failed halfway ({kind}) and its content is damaged; read it and repair it", .path.display_relative())]
    Torn { path: VirtualPath, kind: io::ErrorKind },
    #[error("`{}` could not be used: {}", .path.display_relative(), plain(*.kind))]
    Io { path: VirtualPath, kind: io::ErrorKind },
}

fn at_text(at: Option<&VirtualPath>) -> String {
    // The workspace itself is no place on the way: there is nothing to name.
    let named = at.map(VirtualPath::display_relative).filter(|named| *named != ".");
    named.map(|named| format!(" at `{named}`")).unwrap_or_default()
}

impl FileError {
    /// The reason of `runtime_precondition_failed`, where that is the code.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        Some(match self {
            Self::PathEscape { .. } => Reason::PathEscape,
            Self::ReadOnlyMount { .. } => Reason::ReadOnlyMount,
            Self::WrongKind { .. } => Reason::WrongKind,
            Self::BinaryFile { .. } => Reason::BinaryFile,
            // A circle of links names nothing that exists.
            Self::NotFound { .. } | Self::LinkLoop { .. } => Reason::NotFound,
            Self::TargetExists { .. } => Reason::TargetExists,
            Self::InvalidPath { .. }
            | Self::StaleBaseline { .. }
            | Self::PathChanged { .. }
            | Self::TooLarge { .. }
            | Self::Torn { .. }
            | Self::Io { .. } => return None,
        })
    }

    /// The code a settlement with this error carries.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::InvalidPath { .. } => Code::SchemaInvalid,
            Self::PathEscape { .. }
            | Self::LinkLoop { .. }
            | Self::ReadOnlyMount { .. }
            | Self::WrongKind { .. }
            | Self::BinaryFile { .. }
            | Self::NotFound { .. }
            | Self::TargetExists { .. } => Code::RuntimePreconditionFailed,
            Self::StaleBaseline { .. } | Self::PathChanged { .. } => Code::StaleFileBaseline,
            Self::TooLarge { .. } => Code::ResourceLimit,
            Self::Torn { .. } => Code::PartiallyApplied,
            Self::Io { .. } => Code::ToolFailure,
        }
    }

    /// What the kernel said about `path`. Its own words are dropped: only the kind is safe to show.
    pub(crate) fn io(path: &VirtualPath, error: impl Into<io::Error>) -> Self {
        let path = path.clone();
        match error.into().kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnlyMount { path },
            kind => Self::Io { path, kind },
        }
    }
}

impl From<PathFault> for FileError {
    fn from(fault: PathFault) -> Self {
        Self::InvalidPath { fault }
    }
}

/// The kind of fault in words, with what to do where a person can do something.
fn plain(kind: io::ErrorKind) -> String {
    match kind {
        io::ErrorKind::StorageFull => "its disk is full (no space left); free some space, then try again".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up; free some space, then try again".to_owned(),
        io::ErrorKind::FileTooLarge => "it would be larger than a file may be here (file too large)".to_owned(),
        other => other.to_string(),
    }
}
