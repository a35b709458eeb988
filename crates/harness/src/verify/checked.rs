//! What one call came to, and what it verified: by its exit code, and by the report in its output.

use portcullis_base::{Code, ObservationId, Phase};
use portcullis_event::Observed;
use portcullis_event::facts::{Verification, VerificationKind, VerificationVerdict as Verdict};
use serde_json::Value;

use super::ends::{Ended, Known};
use super::facts::{CallFact, cut};
use super::line::{Did, What, did};
use super::place::Place;
use super::report::{self, Report};
use super::runners::Check;

/// Tools that run a command line, given as `command` (and `args` where it is one program).
const SHELLS: [&str; 4] = ["bash", "shell_run", "shell_exec", "run_command"];

/// How far a call came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Came {
    /// Nothing of it ran; the code says why.
    NotRun(String),
    /// It ended by itself, with this exit code.
    Ended(i32),
    /// It was stopped: it certainly did not succeed.
    Stopped(String),
    /// Nobody knows.
    Unclear(String),
    /// A person found out that it ran, and not how it ended.
    Happened,
}

/// One verification.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    pub check: Check,
    pub verdict: Verdict,
    /// It is inconclusive, and yet certain that it did not pass.
    pub not_passed: bool,
    /// It surely ran, if its line did.
    pub reached: bool,
    /// It surely ran, whatever it came to.
    pub ran: bool,
    /// Its own report tells of failures.
    pub reported: bool,
    /// Its own report tells of tests that were left out.
    pub left_out: bool,
    /// How many tests its report says passed.
    pub count: Option<u64>,
    /// Tests that its report says passed, by name.
    pub passed: Vec<String>,
    pub came: Came,
    pub at: u64,
    pub seq: u64,
    pub evidence: ObservationId,
}

/// What a call verified, for the log: by what the tool says of itself, or by what the command line runs.
#[must_use]
pub fn verifications_of(call: &CallFact<'_>) -> Vec<Verification> {
    let came = came(call.observed);
    let checks = match line_of(call) {
        Some(line) => {
            let output = output_of(call.observed);
            let moved = is_moved(&line, &output, call.observed.truncated);
            checks_of(call, &did(&line, Known { exit: exit_of(&came), moved, errexit: false }), &came, &output)
        }
        None => tool_check(call, &came).into_iter().collect(),
    };
    checks
        .into_iter()
        .map(|one| Verification {
            kind: one.check.kind,
            target: cut(&one.check.target),
            verdict: one.verdict,
            evidence: vec![one.evidence],
            after_seq: one.seq,
        })
        .collect()
}

/// Whether the `cd`s of a line worked: one that fails says so, and what a line says behind one shows that it went on.
/// Output may lower an accusation (a test may print such words), and is no proof where it is cut or goes elsewhere.
pub(super) fn is_moved(line: &str, output: &str, truncated: bool) -> bool {
    let elsewhere = line.replace("2>&1", "");
    let heard = !elsewhere.contains("2>") && !elsewhere.contains("&>");
    heard && !truncated && !output.trim().is_empty() && !output.contains("cd:")
}

/// Whether the shell stands where the `cd` at the start of a line led from `from`.
pub(super) fn is_landed(line: &str, from: &Place, stands: Option<&Place>) -> bool {
    let cds = line.matches("cd ").count();
    match did(line, Known::default()).first().map(|step| step.argv.as_slice()) {
        Some([cd, to]) if cd == "cd" && cds == 1 => {
            let there = Place::of(to, from, None);
            there != *from && stands == Some(&there)
        }
        _ => false,
    }
}

pub(super) fn line_of(call: &CallFact<'_>) -> Option<String> {
    if !SHELLS.contains(&call.observed.tool.as_str()) {
        return None;
    }
    let command = call.input.get("command")?.as_str()?;
    match call.input.get("args").and_then(Value::as_array) {
        // Words that were given one by one are words, whatever is in them; quoted, they stay so.
        Some(args) => {
            let quoted = args.iter().filter_map(Value::as_str).map(|arg| format!("'{}'", arg.replace('\'', r"'\''")));
            Some(std::iter::once(command.to_owned()).chain(quoted).collect::<Vec<_>>().join(" "))
        }
        None => Some(command.to_owned()),
    }
}

pub(super) fn came(observed: &Observed) -> Came {
    let before = [Phase::Lookup, Phase::Validate, Phase::Permission, Phase::Schedule];
    let code = observed.code.known();
    let exit = observed.exit_code.or_else(|| observed.signal.map(|signal| 128 + signal));
    if observed.phase.known().is_some_and(|phase| before.contains(&phase)) || code == Some(Code::SandboxUnavailable) {
        return Came::NotRun(word(&observed.code));
    }
    match (code, exit) {
        (Some(Code::Timeout | Code::Cancelled), _) => Came::Stopped(word(&observed.code)),
        (Some(Code::Ok | Code::NoMatches), exit) if observed.ok => Came::Ended(exit.unwrap_or(0)),
        (Some(Code::BackgroundStarted | Code::OutcomeUnknown), _) => Came::Unclear(word(&observed.code)),
        // Whatever else went wrong with it, it did not end well.
        (_, Some(exit)) if exit != 0 => Came::Ended(exit),
        (_, _) => Came::Unclear(word(&observed.code)),
    }
}

pub(super) fn exit_of(came: &Came) -> Option<i32> {
    match came {
        Came::Ended(exit) => Some(*exit),
        _ => None,
    }
}

pub(super) fn checks_of(call: &CallFact<'_>, ran: &[Did], came: &Came, output: &str) -> Vec<Checked> {
    let is_tests = |one: &&Did| matches!(&one.what, What::Verifies(check) if check.kind == VerificationKind::Tests);
    let tests = ran.iter().filter(is_tests).count();
    let report = if tests > 0 { report::read(output) } else { Report::Silent };
    ran.iter()
        .filter_map(|one| match &one.what {
            What::Verifies(check) => Some((check, one.ended, one.ran)),
            _ => None,
        })
        .map(|(check, ended, reached)| {
            let (mut verdict, mut not_passed) = match (came, ended) {
                (Came::NotRun(_), _) => (Verdict::NotRun, false),
                (Came::Stopped(_), _) => (Verdict::Inconclusive, reached),
                // The shell did not find the program, or could not run it.
                (Came::Ended(126 | 127), Ended::Failed) => (Verdict::NotRun, false),
                (_, Ended::Ok) => (Verdict::Passed, false),
                (_, Ended::Failed) => (Verdict::Failed, false),
                (_, Ended::NotOk | Ended::Unknown) => (Verdict::Inconclusive, false),
            };
            let mut reported = false;
            if check.kind == VerificationKind::Tests && matches!(came, Came::Ended(_)) {
                match report {
                    // A runner's own exit code is surer than words in its output, which its tests may print.
                    Report::Failures if verdict == Verdict::Passed && !check.script => {}
                    Report::Failures if tests == 1 || verdict != Verdict::Passed => {
                        (verdict, not_passed, reported) = (Verdict::Failed, false, true);
                    }
                    Report::NothingRan if verdict == Verdict::Passed && !call.observed.truncated => {
                        verdict = Verdict::Inconclusive;
                    }
                    Report::NoRunner if verdict != Verdict::Passed => (verdict, not_passed) = (Verdict::NotRun, false),
                    _ => {}
                }
            }
            let (evidence, seq) = (call.observed.observation_id, call.seq);
            let of_tests = check.kind == VerificationKind::Tests;
            let (left_out, passed) = if of_tests { report::parts(output) } else { Default::default() };
            let count = report::count(output).filter(|_| of_tests && !call.observed.truncated);
            let (check, came) = (check.clone(), came.clone());
            let ran = match verdict {
                Verdict::Passed | Verdict::Failed => true,
                Verdict::Inconclusive => reached && matches!(came, Came::Ended(_) | Came::Stopped(_)),
                Verdict::NotRun => false,
            };
            Checked {
                check,
                verdict,
                not_passed,
                reached,
                ran,
                reported,
                left_out,
                count,
                passed,
                came,
                at: 0,
                seq,
                evidence,
            }
        })
        .collect()
}

pub(super) fn tool_check(call: &CallFact<'_>, came: &Came) -> Option<Checked> {
    let kind = call.verifies?;
    let observed = call.observed;
    let failed = matches!(observed.code.known(), Some(Code::ToolFailure | Code::CommandFailed));
    let (verdict, not_passed) = match came {
        Came::NotRun(_) => (Verdict::NotRun, false),
        Came::Stopped(_) => (Verdict::Inconclusive, true),
        Came::Ended(0) => (Verdict::Passed, false),
        Came::Ended(_) => (Verdict::Failed, false),
        Came::Unclear(_) if failed => (Verdict::Failed, false),
        Came::Unclear(_) | Came::Happened => (Verdict::Inconclusive, false),
    };
    let builds = kind == VerificationKind::Build;
    let check = Check { kind, builds, script: false, narrow: false, target: observed.tool.clone(), set: String::new() };
    let (evidence, seq) = (observed.observation_id, call.seq);
    let ran = !matches!(came, Came::NotRun(_) | Came::Unclear(_));
    Some(Checked {
        check,
        verdict,
        not_passed,
        reached: true,
        ran,
        reported: false,
        left_out: false,
        count: None,
        passed: Vec::new(),
        came: came.clone(),
        at: 0,
        seq,
        evidence,
    })
}

pub(super) fn output_of(observed: &Observed) -> String {
    observed.content.iter().filter_map(|part| part.text.as_deref()).collect::<Vec<_>>().join("\n")
}

pub(super) fn word(code: &portcullis_base::Recorded<Code>) -> String {
    serde_json::to_value(code).ok().and_then(|code| code.as_str().map(str::to_owned)).unwrap_or_default()
}
