//! One component of a path: the only thing this crate hands to the kernel below a mount.

use std::fmt;

use crate::PathFault;

/// A file's name in its directory: not empty, not `.` or `..`, without `/` and NUL. Opening one in
/// a directory without following links cannot leave that directory; that is the whole confinement.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// What one piece of a path between slashes asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Up,
    Into(Name),
}

impl Name {
    /// Checks that `text` is one name.
    pub fn new(text: &str) -> Result<Self, PathFault> {
        match text {
            "" => Err(PathFault::Empty),
            "." | ".." => Err(PathFault::NotAName),
            _ if text.contains('\0') => Err(PathFault::Nul),
            _ if text.contains('/') => Err(PathFault::NotAName),
            _ => Ok(Self(text.to_owned())),
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The longest path taken, as Linux has it; beyond it is no file anyone could name.
const PATH_MAX: usize = 4_096;

/// Cuts a path into steps. Repeated and trailing slashes and `.` say nothing and are dropped.
pub(crate) fn steps(path: &str) -> Result<Vec<Step>, PathFault> {
    if path.is_empty() {
        return Err(PathFault::Empty);
    }
    if path.len() > PATH_MAX {
        return Err(PathFault::TooLong);
    }
    path.split('/')
        .filter(|piece| !piece.is_empty() && *piece != ".")
        .map(|piece| match piece {
            ".." => Ok(Step::Up),
            name => Name::new(name).map(Step::Into),
        })
        .collect()
}
