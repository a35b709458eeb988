//! Sessions in a few words: what was called, and how it ended.

use portcullis_base::{Code, ObservationId, Phase, SideEffects};
use portcullis_event::Observed;
use portcullis_event::facts::{Claim, FinalVerdict, Verification, VerificationKind};
use portcullis_factcheck::{CallFact, Facts, check, verifications_of};
use serde_json::{Value, json};

use crate::fixtures::{effect, observed, untrusted};

/// A call with its input, ready to be taken.
#[derive(Debug, Clone)]
pub struct Call {
    pub input: Value,
    pub observed: Observed,
    pub verifies: Option<VerificationKind>,
}

/// A command that ended with this exit code and said this.
pub fn shell(command: &str, exit: i32, output: &str) -> Call {
    let code = if exit == 0 { Code::Ok } else { Code::CommandFailed };
    let mut seen = observed("shell_run", code, Phase::Execute);
    // A success carries no exit code: it is one because the code was 0.
    seen.exit_code = (exit != 0).then_some(exit);
    seen.side_effects = SideEffects::occurred(vec![effect("command_run", "/workspace")]);
    seen.content = vec![untrusted("stdout+stderr", output)];
    Call { input: json!({"command": command}), observed: seen, verifies: None }
}

/// A command that came to something else.
pub fn shell_came_to(command: &str, code: Code, phase: Phase) -> Call {
    let mut seen = observed("shell_run", code, phase);
    if phase == Phase::Execute {
        seen.side_effects = SideEffects::unknown(Vec::new());
    }
    Call { input: json!({"command": command}), observed: seen, verifies: None }
}

/// A file tool that did this.
pub fn file(kind: &str, path: &str) -> Call {
    let mut seen = observed("edit", Code::Ok, Phase::Execute);
    seen.side_effects = SideEffects::occurred(vec![effect(kind, path)]);
    Call { input: json!({"file_path": path}), observed: seen, verifies: None }
}

pub fn edit(path: &str) -> Call {
    file("file_modified", path)
}

/// A file tool that did nothing.
pub fn refused(tool: &str, path: &str, code: Code, phase: Phase) -> Call {
    Call { input: json!({"file_path": path}), observed: observed(tool, code, phase), verifies: None }
}

pub fn facts(calls: &[Call]) -> Facts {
    let mut facts = Facts::default();
    for (seq, call) in calls.iter().enumerate() {
        let mut seen = call.observed.clone();
        seen.observation_id = ObservationId::from_u128(seq as u128 + 1);
        facts.take(&CallFact { input: &call.input, observed: &seen, seq: seq as u64 + 1, verifies: call.verifies });
    }
    facts
}

pub fn verified(call: &Call) -> Vec<Verification> {
    verifications_of(&CallFact { input: &call.input, observed: &call.observed, seq: 9, verifies: call.verifies })
}

pub fn claims(calls: &[Call], answer: &str) -> Vec<Claim> {
    check(answer, &facts(calls))
}

pub fn verdict(calls: &[Call], answer: &str) -> FinalVerdict {
    FinalVerdict::of(&claims(calls, answer))
}
