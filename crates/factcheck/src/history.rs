//! The calls of a session in their order: what was verified, what ran, which files changed, and what that made old.

use portcullis_base::{Code, ObservationId, SideEffectState};
use portcullis_command::{
    CheckCommand, CommandChanges, FileChangeKind, LineEnd, OutputReport, RanCommand, StepEnd, changes, check_of,
    is_open, joined, ran,
};
use portcullis_event::facts::{VerificationKind, VerificationVerdict as Verdict};

use crate::facts::{CallEnd, CallRecord};
use crate::place::{WORKSPACE, is_in, place};

#[derive(Debug, Clone)]
pub struct CheckRun {
    pub command: CheckCommand,
    pub verdict: Verdict,
    /// It is inconclusive, and yet certain that it did not pass.
    pub not_passed: bool,
    /// It surely began, if its line did; and it surely ran, whatever it came to.
    pub reached: bool,
    pub ran: bool,
    pub report: OutputReport,
    pub end: CallEnd,
    pub at: u64,
    pub seq: u64,
    pub evidence: ObservationId,
}

impl CheckRun {
    pub fn is_bad(&self) -> bool {
        self.verdict == Verdict::Failed || self.not_passed
    }
}

/// One command that was run or was to be; `ran`: surely, whatever it came to.
#[derive(Debug, Clone)]
pub struct CommandRun {
    pub argv: Vec<String>,
    pub changes: CommandChanges,
    pub step: StepEnd,
    pub end: CallEnd,
    pub ran: bool,
    pub at: u64,
    pub evidence: ObservationId,
}

/// What happened to a file, or the code with which an attempt came to nothing; `undone`: it may have been put back.
#[derive(Debug, Clone)]
pub struct FileChange {
    pub place: String,
    pub kind: Result<FileChangeKind, String>,
    pub at: u64,
    pub undone: bool,
    pub evidence: ObservationId,
}

#[derive(Default)]
pub struct History {
    pub checks: Vec<CheckRun>,
    pub runs: Vec<CommandRun>,
    pub changes: Vec<FileChange>,
    /// When something first changed in the tree, and when and by what it last did.
    pub first_mutated: Option<u64>,
    pub mutated: Option<(u64, ObservationId)>,
    /// When something last ran of which nobody can tell which files it touched.
    pub opaque: Option<u64>,
    pub host: Option<String>,
    committed: u64,
    now: u64,
}

impl History {
    pub fn of<'a>(calls: impl IntoIterator<Item = &'a CallRecord>, host: Option<&str>) -> Self {
        let mut history = Self { host: host.map(str::to_owned), ..Self::default() };
        let mut folder = WORKSPACE.to_owned();
        for call in calls {
            history.now += 1;
            if let Some(line) = &call.line {
                history.line(call, line, &mut folder);
            } else if let Some(kind) = call.verifies {
                history.checks.push(of_tool(call, kind, history.now));
            } else {
                history.effects(call);
            }
        }
        history
    }

    pub fn fresh(&self, check: &CheckRun) -> bool {
        self.mutated.is_none_or(|(at, _)| at < check.at)
    }

    fn line(&mut self, call: &CallRecord, line: &str, folder: &mut String) {
        let from = call.began_in.as_deref().map_or_else(|| folder.clone(), |path| place(path, WORKSPACE));
        let stands = call.stands_in.as_deref().map(|path| place(path, WORKSPACE));
        let exit = if let CallEnd::Exited(exit) = call.end { Some(exit) } else { None };
        let moved = has_moved(call, line, &from, stands.as_deref());
        let steps = ran(line, LineEnd { exit, moved, errexit: false });
        *folder = stands.unwrap_or_else(|| folder.clone());
        let checks: Vec<_> = steps.iter().map(|step| check_of(&step.argv)).collect();
        let sole = checks.iter().flatten().filter(|check| check.kind == VerificationKind::Tests).count() == 1;
        for (step, check) in steps.into_iter().zip(checks) {
            self.now += 1;
            let changes = if check.is_some() { (CommandChanges::Nothing, false) } else { changes(&step.argv) };
            self.step(call, &changes, &step, &from);
            // What it writes down of itself came before it ended.
            self.now += u64::from(!step.writes.is_empty());
            if let Some(mut check) = check {
                check.assume(&step.set);
                self.checks.push(checked(call, check, (step.end, step.ran), sole, self.now));
            }
            if !step.argv.is_empty() {
                let ran = step.ran && !matches!(call.end, CallEnd::NotRun(_) | CallEnd::Unclear(_));
                let (end, evidence, argv) = (call.end.clone(), call.observed.observation_id, step.argv);
                let (changes, step, at) = (changes.0, step.end, self.now);
                self.runs.push(CommandRun { argv, changes, step, end, ran, at, evidence });
            }
        }
    }

    /// One command of a line that began at `from`, with what it changes and whether it may touch files it does not name.
    fn step(&mut self, call: &CallRecord, (changes, hidden): &(CommandChanges, bool), step: &RanCommand, from: &str) {
        let never = matches!(call.end, CallEnd::NotRun(_));
        let touched = call.observed.side_effects.state != SideEffectState::None && !never;
        let placed = |path: &str| Some(place(&joined(step.folder.as_deref()?, path), from));
        let mut mutates = !changes.keeps();
        let mut opaque = *hidden || (mutates && changes.files().is_empty());
        // What git took back, and what it brought back; what was committed stays.
        let undoes = matches!(changes, CommandChanges::Undoes(_) | CommandChanges::Uncommits(true));
        let takes = touched && !matches!(step.end, StepEnd::Failed | StepEnd::NotOk);
        for one in self.changes.iter_mut().filter(|_| takes) {
            let kept = one.at < self.committed && !matches!(changes, CommandChanges::Uncommits(_));
            one.undone = (one.undone || (undoes && !kept)) && *changes != CommandChanges::Redoes;
        }
        if touched && step.end == StepEnd::Ok && *changes == CommandChanges::Git("commit".to_owned()) {
            self.committed = self.now;
        }
        let named = changes.files().iter().map(|(kind, path)| (*kind, path, step.end, false));
        // A shell opens the file before it runs the program.
        let opened = if step.end == StepEnd::Failed { StepEnd::Ok } else { step.end };
        let written = step.writes.iter().map(|path| (FileChangeKind::Wrote, path, opened, true));
        for (kind, path, end, redirected) in named.chain(written) {
            match (end, placed(path).filter(|_| !is_open(path))) {
                (StepEnd::Ok, Some(place)) if touched => {
                    // A check that is written down changes nothing of the tree.
                    let log = [".log", ".txt", ".out", ".err"].iter().any(|end| path.ends_with(end));
                    mutates |= redirected && is_in(&place, WORKSPACE) && !(log && check_of(&step.argv).is_some());
                    self.changed(place, Ok(kind), call);
                }
                (end, Some(place)) if never || (end != StepEnd::Unknown && !redirected) => {
                    self.changed(place, Err(call.code.clone()), call);
                }
                _ => (mutates, opaque) = (true, true),
            }
        }
        self.opaque = if touched && opaque { Some(self.now) } else { self.opaque };
        self.mutates(touched && mutates, call);
    }

    /// The effects of a call that runs no command line.
    fn effects(&mut self, call: &CallRecord) {
        let (mut opaque, mut mutates) = (call.observed.side_effects.state == SideEffectState::Unknown, false);
        for item in &call.observed.side_effects.items {
            mutates |= item.kind.starts_with("file") || item.kind.starts_with("command");
            let kind = match item.kind.as_str() {
                "file_created" | "directory_created" => FileChangeKind::Created,
                "file_modified" => FileChangeKind::Modified,
                "file_deleted" => FileChangeKind::Deleted,
                "file_renamed" | "file_moved" => FileChangeKind::Renamed,
                kind => {
                    opaque |= kind != "task_cancelled";
                    continue;
                }
            };
            self.changed(place(&item.target, WORKSPACE), Ok(kind), call);
        }
        self.opaque = if opaque { Some(self.now) } else { self.opaque };
        let unknown = call.observed.side_effects.state == SideEffectState::Unknown;
        self.mutates(unknown || (mutates && call.observed.side_effects.state != SideEffectState::None), call);
        if let Some(path) = call.file.as_deref().filter(|_| !call.observed.ok) {
            self.changed(place(path, WORKSPACE), Err(call.code.clone()), call);
        }
    }

    fn mutates(&mut self, really: bool, call: &CallRecord) {
        if really {
            self.mutated = Some((self.now, call.observed.observation_id));
            self.first_mutated.get_or_insert(self.now);
        }
    }

    fn changed(&mut self, place: String, kind: Result<FileChangeKind, String>, call: &CallRecord) {
        self.changes.push(FileChange {
            place,
            kind,
            at: self.now,
            undone: false,
            evidence: call.observed.observation_id,
        });
    }
}

/// Whether the `cd`s of a line worked: one that fails says so, and what a line says behind one shows that it went on, or
/// the shell stands where the line led. Output is no proof where it is cut or goes elsewhere.
fn has_moved(call: &CallRecord, line: &str, from: &str, stands: Option<&str>) -> bool {
    let elsewhere = line.replace("2>&1", "");
    let heard = !elsewhere.contains("2>") && !elsewhere.contains("&>") && call.report.moved;
    let to = line
        .strip_prefix("cd ")
        .filter(|rest| !rest.contains("cd "))
        .and_then(|rest| rest.split([' ', ';', '&']).next());
    heard || to.map(|to| place(to, from)).is_some_and(|there| there != from && stands == Some(there.as_str()))
}

/// The verification of one command, by how it ended and whether it surely ran; `sole`: no other of its line runs tests.
fn checked(call: &CallRecord, command: CheckCommand, (end, reached): (StepEnd, bool), sole: bool, at: u64) -> CheckRun {
    let (mut verdict, mut not_passed) = match (&call.end, end) {
        (CallEnd::NotRun(_), _) => (Verdict::NotRun, false),
        (CallEnd::Stopped(_), _) => (Verdict::Inconclusive, reached),
        // The shell did not find the program, or could not run it.
        (CallEnd::Exited(126 | 127), StepEnd::Failed) => (Verdict::NotRun, false),
        (_, StepEnd::Ok) => (Verdict::Passed, false),
        (_, StepEnd::Failed) => (Verdict::Failed, false),
        (_, StepEnd::NotOk | StepEnd::Unknown) => (Verdict::Inconclusive, false),
    };
    let of_tests = command.kind == VerificationKind::Tests;
    let report = if of_tests { call.report.clone() } else { OutputReport::default() };
    let passed = verdict == Verdict::Passed;
    if matches!(call.end, CallEnd::Exited(_)) {
        // A runner's own exit code is surer than words in its output, which its tests may print.
        if report.failures && (!passed || (command.script && sole)) {
            (verdict, not_passed) = (Verdict::Failed, false);
        } else if report.nothing_ran && passed && !report.failures {
            verdict = Verdict::Inconclusive;
        } else if report.no_runner && !passed {
            (verdict, not_passed) = (Verdict::NotRun, false);
        }
    }
    let ended = matches!(call.end, CallEnd::Exited(_) | CallEnd::Stopped(_) | CallEnd::Happened);
    let known = matches!(verdict, Verdict::Passed | Verdict::Failed);
    let ran = known || (verdict == Verdict::Inconclusive && reached && ended);
    let (end, seq, evidence) = (call.end.clone(), call.seq, call.observed.observation_id);
    CheckRun { command, verdict, not_passed, reached, ran, report, end, at, seq, evidence }
}

/// The verification of a tool that says itself what it verifies.
fn of_tool(call: &CallRecord, kind: VerificationKind, at: u64) -> CheckRun {
    let failed = [Code::ToolFailure, Code::CommandFailed].iter().any(|code| call.code == code.as_str());
    let end = match &call.end {
        CallEnd::Exited(0) => StepEnd::Ok,
        CallEnd::Exited(_) | CallEnd::Unclear(_) if failed => StepEnd::Failed,
        _ => StepEnd::Unknown,
    };
    let (builds, target) = (kind == VerificationKind::Build, call.observed.tool.clone());
    let command = CheckCommand { kind, builds, script: false, narrow: false, target, set: String::new() };
    // Its output is no report of a runner.
    let silent = CallRecord { report: OutputReport::default(), ..call.clone() };
    checked(&silent, command, (end, true), false, at)
}
