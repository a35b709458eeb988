//! What the calls of a session came to. Made of calls alone: no model text comes near it (L77).

use std::sync::Arc;

use portcullis_base::{Code, IntentId, Phase, Recorded};
use portcullis_command::OutputReport;
use portcullis_event::Observed;
use portcullis_event::facts::{InvocationResolved, Resolution, TaskCompleted, Verification, VerificationKind};
use serde_json::Value;

use crate::history::{CheckRun, History};

/// Tools that run a command line, given as `command` (and `args` where it is one program).
const SHELLS: [&str; 4] = ["bash", "shell_run", "shell_exec", "run_command"];
/// Characters of a command that are kept for a sentence.
const WORDS_MAX: usize = 200;
/// One settled call.
#[derive(Debug, Clone, Copy)]
pub struct CallFact<'c> {
    /// As the log keeps it.
    pub input: &'c Value,
    pub observed: &'c Observed,
    /// Where in the log its observation stands.
    pub seq: u64,
    /// What the tool says it verifies (`semantics.verifies`).
    pub verifies: Option<VerificationKind>,
}

/// How far a call came, with the code that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallEnd {
    NotRun(String),
    /// It ended by itself, with this exit code.
    Exited(i32),
    /// It certainly did not succeed.
    Stopped(String),
    Unclear(String),
    /// A person found out that it ran, and not how it ended.
    Happened,
}

#[derive(Debug, Clone)]
pub(crate) struct CallRecord {
    /// Without its content.
    pub observed: Observed,
    /// The command line that it ran, and the folders where it began and where its shell stands now.
    pub line: Option<String>,
    pub began_in: Option<String>,
    pub stands_in: Option<String>,
    /// The file that its input names.
    pub file: Option<String>,
    pub verifies: Option<VerificationKind>,
    pub end: CallEnd,
    pub code: String,
    pub report: OutputReport,
    pub seq: u64,
}

/// Everything that claims are judged by.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Shared: every wake of a session works on a copy of what the one before it knew.
    pub(crate) calls: Vec<Arc<CallRecord>>,
    pub(crate) host: Option<String>,
}

impl Facts {
    /// Where the workspace lies on the host: an answer may name its files from there.
    pub fn lie_in(&mut self, host: Option<&str>) {
        self.host = host.map(str::to_owned);
    }

    /// Adds a call. Calls come in the order of their observations.
    pub fn take(&mut self, call: &CallFact<'_>) {
        self.calls.push(Arc::new(CallRecord::of(call)));
    }

    /// Calls that went on in the background and whose end is not known here yet.
    #[must_use]
    pub fn away(&self) -> Vec<IntentId> {
        self.calls.iter().filter(|call| call.is_away()).map(|call| call.observed.intent_id).collect()
    }

    /// A background task ended: what it was to verify has its verdict now, about the tree as it was when the task began.
    pub fn task_ended(&mut self, ended: &TaskCompleted, seq: u64) {
        let waits = |call: &&mut Arc<CallRecord>| call.is_away() && call.observed.intent_id == ended.intent_id;
        if let Some(call) = self.calls.iter_mut().find(waits).map(Arc::make_mut) {
            let ok = ended.code.known().is_some_and(Code::is_ok);
            (call.end, call.code) = end_of(&ended.code, ended.exit_code, ended.signal, ok);
            call.report = OutputReport::read(&ended.text, ended.truncated);
            call.seq = seq;
        }
    }

    /// A person found out what became of a call whose outcome was unknown.
    pub fn resolved(&mut self, resolved: &InvocationResolved) {
        let unclear = |call: &&mut Arc<CallRecord>| {
            call.observed.invocation_id == Some(resolved.invocation_id) && matches!(call.end, CallEnd::Unclear(_))
        };
        if let Some(call) = self.calls.iter_mut().find(unclear).map(Arc::make_mut) {
            call.end = match resolved.resolution {
                Resolution::Happened => CallEnd::Happened,
                Resolution::DidNotHappen => CallEnd::NotRun("nothing: a person found that it never ran".to_owned()),
            };
        }
    }
}

impl CallRecord {
    fn of(call: &CallFact<'_>) -> Self {
        let (input, observed) = (call.input, call.observed);
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let (end, code) = end_of(&observed.code, observed.exit_code, observed.signal, observed.ok);
        let before = [Phase::Lookup, Phase::Validate, Phase::Permission, Phase::Schedule];
        let never = observed.phase.known().is_some_and(|phase| before.contains(&phase));
        let never = never || observed.code.known() == Some(Code::SandboxUnavailable);
        let output: Vec<&str> = observed.content.iter().filter_map(|part| part.text.as_deref()).collect();
        Self {
            line: line_of(call),
            began_in: text(input.get("cwd")),
            stands_in: text(observed.structured.as_ref().and_then(|structured| structured.get("cwd"))),
            file: ["file_path", "filePath", "path"].iter().find_map(|name| text(input.get(name))),
            verifies: call.verifies,
            end: if never { CallEnd::NotRun(code.clone()) } else { end },
            code,
            report: OutputReport::read(&output.join("\n"), observed.truncated),
            seq: call.seq,
            observed: Observed { content: Vec::new(), structured: None, ..observed.clone() },
        }
    }

    fn is_away(&self) -> bool {
        self.end == CallEnd::Unclear(Code::BackgroundStarted.as_str().to_owned())
    }
}

/// How a call ended that ran, and its code as a word.
fn end_of(code: &Recorded<Code>, exit: Option<i32>, signal: Option<i32>, ok: bool) -> (CallEnd, String) {
    let word = serde_json::to_value(code).ok().and_then(|code| code.as_str().map(str::to_owned)).unwrap_or_default();
    let end = match (code.known(), exit.or(signal.map(|signal| 128 + signal))) {
        (Some(Code::Timeout | Code::Cancelled), _) => CallEnd::Stopped(word.clone()),
        (Some(Code::Ok | Code::NoMatches), exit) if ok => CallEnd::Exited(exit.unwrap_or(0)),
        (Some(Code::BackgroundStarted | Code::OutcomeUnknown), _) => CallEnd::Unclear(word.clone()),
        // Whatever else went wrong with it, it did not end well.
        (_, Some(exit)) if exit != 0 => CallEnd::Exited(exit),
        _ => CallEnd::Unclear(word.clone()),
    };
    (end, word)
}

fn line_of(call: &CallFact<'_>) -> Option<String> {
    let command = call.input.get("command")?.as_str().filter(|_| SHELLS.contains(&call.observed.tool.as_str()))?;
    // Words that were given one by one are words, whatever is in them; quoted, they stay so.
    let args = call.input.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    Some(args.fold(command.to_owned(), |line, arg| format!("{line} '{}'", arg.replace('\'', r"'\''"))))
}

/// What a call verified, for the log: by what the tool says of itself, or by what the command line runs.
#[must_use]
pub fn verifications_of(call: &CallFact<'_>) -> Vec<Verification> {
    let made = |check: CheckRun| {
        let (kind, target, evidence) = (check.command.kind, cut(&check.command.target), vec![check.evidence]);
        Verification { kind, target, verdict: check.verdict, evidence, after_seq: check.seq }
    };
    History::of([&CallRecord::of(call)], None).checks.into_iter().map(made).collect()
}

pub(crate) fn cut(text: &str) -> String {
    let end = text.char_indices().nth(WORDS_MAX).map(|(end, _)| end);
    end.map_or_else(|| text.to_owned(), |end| format!("{}…", &text[..end]))
}
