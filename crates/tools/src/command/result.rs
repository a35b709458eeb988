//! How a line ended, and what that means (tool-contract §12).

use std::time::Duration;

use portcullis_command::ReadPlan;
use portcullis_contract::{EndedCommand, ShellFact, SpoolRef, ToolContext, ToolFailure};
use portcullis_sandbox::hand::Posture;

use super::{ReadHand, ReadLine};

/// A line that ended, or was ended.
#[derive(Debug)]
pub struct ReadRan {
    /// Of every stage that ran, in order.
    pub stage_exit_codes: Vec<i32>,
    /// Of the last stage of the last pipeline that ran; `None` if the call was stopped.
    pub exit_code: Option<i32>,
    /// What ended that stage.
    pub signal: Option<i32>,
    /// It ran longer than its call may, and was ended for that.
    pub timed_out: bool,
    /// It was ended with its call, whatever the reason.
    pub stopped: bool,
    pub duration: Duration,
    pub stdout: SpoolRef,
    pub stderr: SpoolRef,
    /// The names of its environment.
    pub env_names: Vec<String>,
    /// The isolation it had.
    pub posture: Posture,
}

/// The question that a program answers with exit code 1.
enum QuestionKind {
    /// Whether anything matches.
    Search,
    /// Whether something holds.
    Test,
}

/// A lone program to which 1 is an answer and no failure.
fn question(plan: &ReadPlan) -> Option<QuestionKind> {
    let [(_, pipeline)] = plan.pipelines() else { return None };
    let [stage] = pipeline.stages() else { return None };
    match stage.program() {
        "grep" | "rg" => Some(QuestionKind::Search),
        "diff" | "cmp" | "test" | "[" => Some(QuestionKind::Test),
        _ => None,
    }
}

impl ReadHand {
    /// Tells the session of a line that ended: the program or pipeline, and its words.
    pub(crate) fn remember(
        &self,
        context: &ToolContext,
        line: &ReadLine,
        ran: &ReadRan,
        (command, args): (String, Vec<String>),
    ) {
        let Some(command_id) = self.book.fresh_command() else { return };
        context.shell(ShellFact::Finished(Box::new(EndedCommand {
            command_id,
            command,
            args,
            cwd: line.cwd().as_str().to_owned(),
            exit_code: ran.exit_code,
            timed_out: ran.timed_out,
            duration_ms: ran.duration_ms(),
            shell_id: None,
            stdout: Some(ran.stdout.clone()),
            stderr: Some(ran.stderr.clone()),
        })));
    }
}

impl ReadRan {
    /// How long it ran, in milliseconds.
    pub(crate) fn duration_ms(&self) -> u64 {
        u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX)
    }

    /// The same if it is a success, also of a question whose answer is no.
    ///
    /// # Errors
    /// `command_failed`; what it wrote is shown all the same.
    pub fn judged(self, context: &ToolContext, plan: &ReadPlan) -> Result<Self, ToolFailure> {
        match (self.exit_code, question(plan)) {
            // What the runtime makes of a call that it stopped is not ours to say.
            (None, _) | (Some(0), _) => Ok(self),
            (Some(1), Some(QuestionKind::Test)) => Ok(self),
            (Some(1), Some(QuestionKind::Search)) => {
                context.nothing_found();
                Ok(self)
            }
            (Some(code), _) => Err(ToolFailure::command(Some(code), self.signal, self.said(code))),
        }
    }

    fn said(&self, code: i32) -> String {
        let how = match self.signal {
            Some(signal) => format!("ended by signal {signal}"),
            None => format!("exit code {code}"),
        };
        if self.stage_exit_codes.len() < 2 {
            return how;
        }
        let codes = self.stage_exit_codes.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
        format!("{how} (of all stages: {codes})")
    }
}
