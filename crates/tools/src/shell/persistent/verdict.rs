//! Whether a command in the session's shell went well.

use portcullis_base::SideEffects;
use portcullis_contract::{ToolContext, ToolFailure};
use portcullis_sandbox::hand::Exit;

use super::Persistent;
use super::job::FinishedCommand;
use super::running_shell::exit_words;
use crate::hand::{LaunchedFailure, Limit};
use crate::shell::failed_words;
use crate::shell::line::one_is_an_answer;

impl Persistent {
    /// A command that ends its shell by `exit` or `set -e` has the exit code of the shell. What a stopped call returns is
    /// not looked at: it was stopped.
    pub(super) fn settle(&self, context: &ToolContext, line: &str, over: &FinishedCommand) -> Result<(), ToolFailure> {
        let full = over.breach.clone().map(Limit::Disk);
        if let Some(limit) = over.captured.why().map(Limit::Output).or(full) {
            return Err(LaunchedFailure::limit(&limit).into());
        }
        let status = match &over.outcome {
            Err(died) => {
                if let Some(limit) = Limit::hit(&died.ended, &self.shells.hand().settings().limits) {
                    return Err(LaunchedFailure::limit(&limit).into());
                }
                match died.ended.exit {
                    Exit::Code(code) if !died.interrupted => {
                        context.warn("the shell ended; what this command changed of its folder and variables is lost");
                        code
                    }
                    how => return Err(died_with_it(context, how, died.interrupted)),
                }
            }
            Ok(done) if done.interrupted => {
                let text = "the command was stopped because its shell was to be closed";
                return Err(ToolFailure::new("interrupted", text));
            }
            Ok(done) => i32::from(done.report.status),
        };
        match (status, one_is_an_answer(line)) {
            (0, _) => Ok(()),
            (1, Some(nothing_found)) => {
                if nothing_found {
                    context.nothing_found();
                }
                Ok(())
            }
            (status, _) => Err(ToolFailure::command(Some(status), None, failed_words(status))),
        }
    }
}

/// The shell was killed, by us or by somebody else.
fn died_with_it(context: &ToolContext, how: Exit, interrupted: bool) -> ToolFailure {
    let text = if interrupted {
        context.warn(
            "the command did not end when it was interrupted, so its shell was ended with it: its folder and exported \
             variables stay as they were before this command, and the next command starts a new shell",
        );
        "the command was stopped, and its shell with it".to_owned()
    } else {
        format!(
            "the shell was killed while the command ran ({}), so what it changed of folder and variables is lost; the next \
             command starts a new shell",
            exit_words(how)
        )
    };
    ToolFailure::new("shell_died", text).with_side_effects(SideEffects::unknown(Vec::new()))
}
