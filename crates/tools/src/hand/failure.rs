//! Why a command did not start, in the words of the code table.

use portcullis_base::Reason;
use portcullis_contract::{Precondition, ToolFailure};
use portcullis_sandbox::hand::{LaunchError, Unheld};

use super::Masks;

/// Nothing has run.
pub(super) fn of(error: &LaunchError, masks: &Masks) -> ToolFailure {
    let unavailable = ToolFailure::sandbox_unavailable;
    match error {
        LaunchError::Unavailable(_) | LaunchError::BelowMinimum { .. } => {
            unavailable(format!("{error}; a person has to raise the isolation of this machine"))
        }
        LaunchError::CannotHold(cannot) => {
            let level = cannot.level;
            let hidden = cannot.what.iter().any(|one| matches!(one, Unheld::Mask(_)));
            let closed = masks.closed().find(|_| hidden);
            let text = match closed {
                Some((path, Some(rule))) => format!(
                    "rule `{rule}` denies reading {}, and at isolation level `{level}` it cannot be kept from a command; \
                     only level `full` can do that",
                    path.display()
                ),
                Some((path, None)) => format!(
                    "{} belongs to the runtime, and at isolation level `{level}` it cannot be kept from a command; work in \
                     another folder, or have a person raise the level",
                    path.display()
                ),
                None => error.to_string(),
            };
            unavailable(text)
        }
        LaunchError::View { .. } => {
            // Made, removed or replaced between the look and the launch.
            unavailable(format!("{error}; something was changed just now, try again")).retryable(true)
        }
        LaunchError::Cwd { .. } => {
            ToolFailure::precondition(Precondition::failed(Reason::CwdInvalid, error.to_string()))
        }
        LaunchError::Exec { program, why } => {
            let text = match why.kind() {
                std::io::ErrorKind::NotFound => {
                    format!("there is no program `{}` in the view of the command", program.display())
                }
                _ => error.to_string(),
            };
            ToolFailure::new("program_not_started", text)
        }
        LaunchError::Plan(why) => ToolFailure::new("command_not_launchable", format!("it cannot be run: {why}")),
        LaunchError::Launcher { .. } => unavailable(error.to_string()).retryable(true),
    }
}
