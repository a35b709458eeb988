//! Why nothing ran. No variant holds a host path: what a person reads has places of the view.

use std::io;
use std::path::PathBuf;

use portcullis_base::IsolationLevel;

use super::Posture;

/// A path of the view whose promise cannot be kept at this level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unheld {
    /// Would be readable although it is masked.
    Mask(PathBuf),
    /// Would be readable although it is to look empty.
    Empty(PathBuf),
    /// Would be writable although it is guarded.
    Guard(PathBuf),
    /// Is a read-only place inside a writable one, or the other way round.
    Nested(PathBuf),
}

impl Unheld {
    #[must_use]
    pub fn place(&self) -> &std::path::Path {
        match self {
            Self::Mask(place) | Self::Empty(place) | Self::Guard(place) | Self::Nested(place) => place,
        }
    }
}

/// Promises that need a root of its own, at a level that has none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("isolation level `{level}` cannot keep {} apart from the tree around it; \
         only level `full` can",
        .what.iter().map(|one| one.place().display().to_string()).collect::<Vec<_>>().join(", "))]
pub struct CannotHold {
    pub level: IsolationLevel,
    pub what: Vec<Unheld>,
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("this program cannot start commands: {0}")]
    Unavailable(String),
    #[error("isolation level `{}` is below the required `{minimum}`; missing: {}", .posture.level, .posture.missing_lines().join("; "))]
    BelowMinimum { minimum: IsolationLevel, posture: Posture },
    #[error(transparent)]
    CannotHold(#[from] CannotHold),
    /// A place of the plan that is not there, is a link, or is another object by now.
    #[error("{} cannot be shown to the command: {why}", .place.display())]
    View { place: PathBuf, why: io::Error },
    #[error("the working directory {} cannot be entered: {why}", .cwd.display())]
    Cwd { cwd: PathBuf, why: io::Error },
    /// The layers stood, but the program could not be started.
    #[error("{} cannot be started: {why}", .program.display())]
    Exec { program: PathBuf, why: io::Error },
    #[error("the plan cannot be carried out: {0}")]
    Plan(String),
    /// Neither an absent layer nor the caller's plan: the machine refused (no memory, no processes).
    #[error("the launcher failed at {step}: {why}")]
    Launcher { step: &'static str, why: io::Error },
}
