//! What the calls of a session came to, as far as claims are about it.

use std::collections::BTreeMap;

use portcullis_base::{Code, IntentId, InvocationId, ObservationId, SideEffectState};
use portcullis_event::Observed;
use portcullis_event::facts::{
    InvocationResolved, Resolution, TaskCompleted, VerificationKind, VerificationVerdict as Verdict,
};
use serde_json::Value;

use super::checked::{
    Came, Checked, came, checks_of, exit_of, is_landed, is_moved, line_of, output_of, tool_check, word,
};
use super::ends::{Ended, Known};
use super::line::{Change, Did, What, did, joined};
use super::place::Place;

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

/// One command that was run or was to be.
#[derive(Debug, Clone)]
pub(super) struct Command {
    /// Without wrappers around it.
    pub argv: Vec<String>,
    pub git: Option<String>,
    /// It may have taken commits back.
    pub uncommits: bool,
    pub ended: Ended,
    /// It surely ran, if the line did.
    pub reached: bool,
    pub came: Came,
    pub at: u64,
    pub evidence: ObservationId,
}

impl Command {
    /// It surely ran, whatever it came to.
    pub(super) fn ran(&self) -> bool {
        self.reached && matches!(self.came, Came::Ended(_) | Came::Stopped(_) | Came::Happened)
    }
}

/// An attempt on a file that came to nothing.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    /// What it ended with.
    pub code: String,
    pub at: u64,
    pub evidence: ObservationId,
}

/// One thing that happened to a file.
#[derive(Debug, Clone)]
pub(super) struct Changed {
    pub change: Change,
    pub at: u64,
    /// It was put back as it was, or may have been.
    pub undone: bool,
    pub evidence: ObservationId,
}

/// Everything that claims are judged by. Made of facts alone: no model text comes near it (L77).
#[derive(Debug, Clone)]
pub struct Facts {
    pub(super) checks: Vec<Checked>,
    pub(super) commands: Vec<Command>,
    pub(super) changes: BTreeMap<Place, Vec<Changed>>,
    pub(super) attempts: BTreeMap<Place, Attempt>,
    /// When something first changed in the tree.
    pub(super) first_mutated: Option<u64>,
    /// When something last changed in the tree, and by what.
    pub(super) mutated: Option<(u64, ObservationId)>,
    /// When something last ran of which nobody can tell which files it touched.
    pub(super) opaque: Option<u64>,
    /// Where the workspace lies on the host.
    pub(super) host: Option<String>,
    /// When something was last committed.
    committed: u64,
    /// Calls that go on as background tasks: their observation says only that they began.
    away: BTreeMap<IntentId, Away>,
    /// Calls whose outcome nobody knows, until a person says it.
    unknown: BTreeMap<InvocationId, ObservationId>,
    /// Where the shell stands.
    folder: Place,
    now: u64,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            checks: Vec::new(),
            commands: Vec::new(),
            changes: BTreeMap::new(),
            attempts: BTreeMap::new(),
            first_mutated: None,
            mutated: None,
            opaque: None,
            host: None,
            committed: 0,
            away: BTreeMap::new(),
            unknown: BTreeMap::new(),
            folder: Place::workspace(),
            now: 0,
        }
    }
}

/// A call whose end is yet to come.
#[derive(Debug, Clone)]
struct Away {
    input: Value,
    observed: Observed,
    verifies: Option<VerificationKind>,
}

impl Facts {
    /// Where the workspace lies on the host: an answer may name its files from there.
    pub fn lie_in(&mut self, host: Option<&str>) {
        self.host = host.map(str::to_owned);
    }

    /// Adds a call. Calls come in the order of their observations.
    pub fn take(&mut self, call: &CallFact<'_>) {
        let observed = call.observed;
        let touched = observed.side_effects.state != SideEffectState::None;
        let came = came(observed);
        if observed.code.known() == Some(Code::BackgroundStarted) {
            let away = Away { input: call.input.clone(), observed: observed.clone(), verifies: call.verifies };
            self.away.insert(observed.intent_id, away);
        }
        if let Some(invocation) = observed.invocation_id.filter(|_| matches!(came, Came::Unclear(_))) {
            self.unknown.insert(invocation, observed.observation_id);
        }
        if let Some(line) = line_of(call) {
            let output = output_of(observed);
            let named = |value: Option<&Value>| Some(Place::of(value?.as_str()?, &Place::workspace(), None));
            let from = named(call.input.get("cwd")).unwrap_or_else(|| self.folder.clone());
            let shell = observed.structured.as_ref().and_then(|structured| structured.get("cwd"));
            let stands = named(shell);
            let moved = is_moved(&line, &output, observed.truncated) || is_landed(&line, &from, stands.as_ref());
            let ran: Vec<Did> = did(&line, Known { exit: exit_of(&came), moved, errexit: false });
            let mut checks = checks_of(call, &ran, &came, &output).into_iter();
            self.folder = stands.unwrap_or_else(|| self.folder.clone());
            for one in ran {
                self.now += 1;
                self.step(call, &one, &came, touched.then_some(&from));
                // What it writes down of itself came before it ended.
                self.now += u64::from(!one.writes.is_empty());
                if matches!(one.what, What::Verifies(_))
                    && let Some(check) = checks.next()
                {
                    self.checks.push(Checked { at: self.now, ..check });
                }
            }
            return;
        }
        self.now += 1;
        if let Some(check) = tool_check(call, &came) {
            self.checks.push(Checked { at: self.now, ..check });
            return;
        }
        let mut scope = observed.side_effects.state == SideEffectState::Unknown;
        for item in &observed.side_effects.items {
            let change = match item.kind.as_str() {
                "file_created" => Some(Change::Created),
                "file_modified" => Some(Change::Modified),
                "file_deleted" => Some(Change::Deleted),
                "file_renamed" | "file_moved" => Some(Change::Renamed),
                _ => None,
            };
            scope |= change.is_some() || item.kind.starts_with("file") || item.kind.starts_with("command");
            match change {
                Some(change) => {
                    let place = Place::of(&item.target, &Place::workspace(), None);
                    self.changed(place, change, observed.observation_id);
                }
                None if item.kind == "directory_created" => {
                    let place = Place::of(&item.target, &Place::workspace(), None);
                    self.changed(place, Change::Created, observed.observation_id);
                }
                None if item.kind != "task_cancelled" => self.opaque = Some(self.now),
                None => {}
            }
        }
        if observed.side_effects.state == SideEffectState::Unknown {
            self.opaque = Some(self.now);
        }
        if touched && scope {
            self.mutates(observed.observation_id);
        }
        if !observed.ok
            && let Some(path) = ["file_path", "filePath", "path"].iter().find_map(|name| call.input.get(name)?.as_str())
        {
            let place = Place::of(path, &Place::workspace(), None);
            self.attempted(place, call);
        }
    }

    /// Calls that went on in the background and whose end is not known here yet.
    pub(crate) fn away(&self) -> Vec<IntentId> {
        self.away.keys().copied().collect()
    }

    /// A background task ended, at `seq`: what it was to verify has its verdict now. It speaks of the tree as it was when
    /// the task began, so a change since makes it stale all the same.
    pub fn task_ended(&mut self, ended: &TaskCompleted, seq: u64) {
        let Some(Away { input, mut observed, verifies }) = self.away.remove(&ended.intent_id) else { return };
        observed.ok = ended.code.known().is_some_and(Code::is_ok);
        observed.code = ended.code.clone();
        (observed.exit_code, observed.signal) = (ended.exit_code, ended.signal);
        observed.truncated = ended.truncated;
        let evidence = observed.observation_id;
        let call = CallFact { input: &input, observed: &observed, seq, verifies };
        let came = came(&observed);
        let steps = line_of(&call).map(|line| {
            let moved = is_moved(&line, &ended.text, ended.truncated);
            did(&line, Known { exit: exit_of(&came), moved, errexit: false })
        });
        let checks = match &steps {
            Some(steps) => checks_of(&call, steps, &came, &ended.text),
            None => tool_check(&call, &came).into_iter().collect(),
        };
        let began = self.checks.iter_mut().filter(|check| check.evidence == evidence);
        for (check, end) in began.zip(checks) {
            *check = Checked { at: check.at, ..end };
        }
        let began = self.commands.iter_mut().filter(|command| command.evidence == evidence);
        for (command, step) in began.zip(steps.iter().flatten().filter(|step| !step.argv.is_empty())) {
            (command.came, command.ended, command.reached) = (came.clone(), step.ended, step.ran);
        }
    }

    /// A person found out what became of a call whose outcome was unknown.
    pub fn resolved(&mut self, resolved: &InvocationResolved) {
        let Some(evidence) = self.unknown.remove(&resolved.invocation_id) else { return };
        let came = match resolved.resolution {
            Resolution::Happened => Came::Happened,
            Resolution::DidNotHappen => Came::NotRun("nothing: a person found that it did not happen".to_owned()),
        };
        for command in self.commands.iter_mut().filter(|command| command.evidence == evidence) {
            command.came = came.clone();
        }
        for check in self.checks.iter_mut().filter(|check| check.evidence == evidence) {
            check.came = came.clone();
            match came {
                Came::NotRun(_) => check.verdict = Verdict::NotRun,
                _ => check.ran = check.reached,
            }
        }
    }

    /// One step of a command line; `from` is where the line began, if it ran at all.
    fn step(&mut self, call: &CallFact<'_>, one: &Did, came: &Came, from: Option<&Place>) {
        let evidence = call.observed.observation_id;
        let workspace = Place::workspace();
        let ran = from.filter(|_| !matches!(came, Came::NotRun(_)));
        let place = |path: &str| {
            let folder = one.folder.as_deref()?;
            Some(Place::of(&joined(folder, path), from.unwrap_or(&workspace), None))
        };
        if ran.is_some() && one.hidden {
            self.opaque = Some(self.now);
        }
        match &one.what {
            What::Git(verb) if verb == "commit" && ran.is_some() && one.ended == Ended::Ok => self.committed = self.now,
            What::Verifies(_) | What::Harmless | What::Git(_) => {}
            What::Files(files) => {
                for (change, path) in files {
                    match (one.ended, place(path)) {
                        (Ended::Ok, Some(place)) if ran.is_some() => self.changed(place, *change, evidence),
                        (ended, Some(place)) if matches!(came, Came::NotRun(_)) || ended != Ended::Unknown => {
                            self.attempted(place, call);
                        }
                        _ if ran.is_some() => self.opaque = Some(self.now),
                        _ => {}
                    }
                }
                if ran.is_some() {
                    self.mutates(evidence);
                }
            }
            What::Other | What::Undoes(_) | What::Uncommits(_) | What::Redoes => {
                if ran.is_some() && !matches!(one.ended, Ended::Failed | Ended::NotOk) {
                    self.put_back(&one.what, &place);
                }
                if ran.is_some() {
                    self.opaque = Some(self.now);
                    self.mutates(evidence);
                }
            }
        }
        for path in &one.writes {
            match (one.ended, place(path)) {
                // A shell opens the file before it runs the program.
                (Ended::Ok | Ended::Failed, Some(place)) if ran.is_some() => {
                    let log = matches!(one.what, What::Verifies(_)) && is_log(path);
                    if place.is_inside() && !log {
                        self.mutates(evidence);
                    }
                    self.changed(place, Change::Wrote, evidence);
                }
                (_, Some(place)) if matches!(came, Came::NotRun(_)) => self.attempted(place, call),
                _ if ran.is_some() => {
                    self.opaque = Some(self.now);
                    self.mutates(evidence);
                }
                _ => {}
            }
        }
        if !one.argv.is_empty() {
            let git = match &one.what {
                What::Git(verb) => Some(verb.clone()),
                _ => None,
            };
            self.commands.push(Command {
                argv: one.argv.clone(),
                git,
                uncommits: matches!(one.what, What::Uncommits(_)),
                ended: one.ended,
                reached: one.ran,
                came: came.clone(),
                at: self.now,
                evidence,
            });
        }
    }

    fn mutates(&mut self, evidence: ObservationId) {
        self.mutated = Some((self.now, evidence));
        self.first_mutated.get_or_insert(self.now);
    }

    fn changed(&mut self, place: Place, change: Change, evidence: ObservationId) {
        self.attempts.remove(&place);
        let known = self.changes.entry(place).or_default();
        known.retain(|one| one.change != change);
        known.push(Changed { change, at: self.now, undone: false, evidence });
    }

    fn attempted(&mut self, place: Place, call: &CallFact<'_>) {
        let (code, evidence) = (word(&call.observed.code), call.observed.observation_id);
        self.attempts.insert(place, Attempt { code, at: self.now, evidence });
    }

    /// Changes that a step of git undid. What is new in the tree stays unless it is named, what was committed only goes
    /// with its commit.
    fn put_back(&mut self, what: &What, place: &impl Fn(&str) -> Option<Place>) {
        let committed = self.committed;
        for (target, changes) in &mut self.changes {
            for one in changes {
                let tracked = one.change != Change::Created;
                one.undone = match what {
                    What::Undoes(paths) if paths.is_empty() => one.undone || (tracked && one.at > committed),
                    What::Undoes(paths) => {
                        one.undone
                            || paths.iter().any(|path| {
                                // Where it stood is not known, or a branch was meant: it may have been any.
                                place(path).is_none_or(|place| place == *target || target.is_in(&place))
                            })
                    }
                    What::Uncommits(true) => one.undone || tracked || one.at < committed,
                    What::Redoes => false,
                    _ => one.undone,
                };
            }
        }
    }

    /// Whether nothing changed since.
    pub(super) fn fresh(&self, check: &Checked) -> bool {
        self.mutated.is_none_or(|(at, _)| at < check.at)
    }
}

/// Whether a check is written down in this file: nothing of the tree is changed by it.
fn is_log(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| matches!(extension, "log" | "txt" | "out" | "err"))
}

/// Bounded, for a sentence.
pub(super) fn cut(text: &str) -> String {
    let mut out: String = text.chars().take(WORDS_MAX).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}
