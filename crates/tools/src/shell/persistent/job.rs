//! One command in the session's shell, from its beginning to what it leaves behind.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{CommandId, EnvKey, Reason, SessionId, SideEffects, loads_code};
use portcullis_command as command;
use portcullis_contract::{
    Background, EndedCommand, Precondition, Resolved, ShellFact, SpoolRef, ToolContext, ToolFailure,
};
use portcullis_event::fold::Shell;
use portcullis_pipeline::Environment;
use portcullis_sandbox::hand::{DiskBreach, Exit};
use portcullis_sandbox::shell::{FinishedLine, Report, ShellDied, Stream};
use portcullis_sandbox::{Kind, VirtualPath};
use portcullis_secret::SecretText;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Persistent;
use super::running_shell::{CurrentCommand, Outcome, RunningShell, ShellGone};
use super::shells::{ShellChoice, Shells};
use super::sink::{Capture, CaptureHandle};
use super::wait::UncollectedEnd;
use crate::files::failure;
use crate::hand::{LaunchedFailure, NOT_FOUND, named, never_ran, outermost, ran_to_its_end, tell_appeared};
use crate::shell::carry::carry_over;
use crate::shell::line::brief;
use crate::shell::posture::{Posture, ShellView};
use crate::shell::session_shell::{Change, LiveShell as _};
use crate::shell::view::{EnvView, StateView};
use crate::shell::{HOME, unseen};

/// What a call wants.
pub(super) struct Job {
    pub(super) line: String,
    /// In a fresh shell.
    pub(super) restart: bool,
    /// It goes on after its observation, from the beginning or after so long.
    pub(super) away: BackgroundAfter,
    /// What is exported to the shell before it runs, and so is the session's from then on.
    pub(super) env: BTreeMap<EnvKey, SecretText>,
}

/// When a command goes on in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackgroundAfter {
    Never,
    AtOnce,
    After(Duration),
}

/// A command that ended well (agent-runtime 10.3).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecOutput {
    session_id: String,
    shell_id: String,
    command_id: Option<String>,
    command: String,
    /// The folder after it.
    cwd: String,
    env: EnvView,
    env_keys: Vec<String>,
    exit_code: Option<i32>,
    timed_out: bool,
    stdout: SpoolRef,
    stderr: SpoolRef,
    shell_path: String,
    started_at: String,
    updated_at: String,
    last_command_at: Option<String>,
    duration_ms: u64,
    command_count: u64,
    /// `active` or `closed`.
    status: &'static str,
    persistent: bool,
    persistent_shell: Option<ShellView>,
    shell_state: Option<StateView>,
}

/// The shell is busy while this is there.
struct BusyShell<'a> {
    shells: &'a Shells,
    session: SessionId,
    live: &'a RunningShell,
}

impl<'a> BusyShell<'a> {
    fn begin(
        shells: &'a Shells,
        session: SessionId,
        live: &'a RunningShell,
        line: &str,
        captured: &CaptureHandle,
    ) -> Self {
        let started_at = shells.clock().now();
        let current = CurrentCommand { line: line.to_owned(), started_at, tails: Arc::clone(&captured.tails) };
        live.now().current = Some(current);
        shells.mark_busy(session, true);
        Self { shells, session, live }
    }
}

impl Drop for BusyShell<'_> {
    fn drop(&mut self) {
        self.live.now().current = None;
        self.shells.mark_busy(self.session, false);
    }
}

/// A command that is over, however it ended.
pub(super) struct FinishedCommand {
    command_id: Option<CommandId>,
    pub(super) outcome: Result<FinishedLine, ShellDied>,
    stdout: SpoolRef,
    stderr: SpoolRef,
    pub(super) captured: CaptureHandle,
    /// It was stopped because too little space was left.
    pub(super) breach: Option<DiskBreach>,
    duration: Duration,
    timed_out: bool,
    /// It went on after its observation.
    away: bool,
}

impl FinishedCommand {
    fn duration_ms(&self) -> u64 {
        u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX)
    }

    fn exit_code(&self) -> Option<i32> {
        match &self.outcome {
            Ok(done) => Some(i32::from(done.report.status)),
            Err(ShellDied { ended, interrupted: false }) => match ended.exit {
                Exit::Code(code) => Some(code),
                Exit::Signal(_) => None,
            },
            Err(_) => None,
        }
    }
}

impl Persistent {
    /// Runs a command to its end. What became of the shell is told however it ends.
    pub(super) async fn run(
        &self,
        job: Job,
        resolved: &Resolved,
        context: &ToolContext,
    ) -> Result<ExecOutput, ToolFailure> {
        let place = self.shell.files.place(resolved).map_err(failure)?;
        let cwd = place.path().clone();
        let wanted = if job.restart { ShellChoice::Fresh } else { ShellChoice::Any };
        let live = self.shells.ready(context, &cwd, wanted).await?;
        // Where the call said it would run, whatever the command before it left.
        if live.now().cwd.as_deref() != Some(cwd.as_str()) && !self.shells.go(&live, cwd.as_str()).await {
            let text = format!("the shell cannot enter {cwd}; use another folder", cwd = cwd.as_str());
            return Err(ToolFailure::precondition(Precondition::failed(Reason::CwdInvalid, text)));
        }
        for (key, value) in &job.env {
            self.shell.bring(context, Change::EnvSet(key.clone(), value.clone())).await?;
        }
        let known = self.shell.book.environment(context.caller()).await.map_err(unseen)?;
        let (capture, captured) = Capture::new(context);
        // Before it runs: from its first word on nobody outside can tell what it does to the shell.
        if let Some(why) = command::leaves(&job.line) {
            live.now().altered.get_or_insert_with(|| format!("ran `{}`, which {why}", brief(&job.line)));
        }
        // Until its end is left for the waiting call.
        let busy = BusyShell::begin(&self.shells, context.caller().session_id, &live, &job.line, &captured);
        let over = self.see_through(&job, &live, context, capture, captured).await?;
        let never = over.exit_code() == Some(NOT_FOUND) && self.never_ran(context, &job.line, &live);
        if !never {
            ran_to_its_end(context, &cwd);
        }
        let changes = match &over.outcome {
            Ok(done) => self.carry(context, &live, &known, &done.report),
            Err(_) => {
                self.shells.end_of(context, &live).await;
                Vec::new()
            }
        };
        self.remember(context, &live, &job.line, &cwd, &over);
        let failed = over.exit_code() != Some(0);
        let (stderr, stdout) = (over.captured.tails.text(Stream::Stderr), over.captured.tails.text(Stream::Stdout));
        // A line can be refused something and end well: `git config x y; true`.
        let denials = named(&live.start.seen, stderr.as_bytes(), failed.then_some(stdout.as_bytes()));
        for denial in &denials {
            context.warn(denial.to_string());
        }
        let settled = self.settle(context, &job.line, &over);
        if over.away {
            let error = settled.as_ref().err().filter(|_| over.exit_code().is_none());
            let text = error.map(|_| "the shell died while the command ran".to_owned());
            let tail = |stream| self.shell.book.masked(&over.captured.tails.text(stream));
            let tails = (tail(Stream::Stdout), tail(Stream::Stderr));
            let done = UncollectedEnd::new(over.command_id, live.start.id, &job.line, text, tails).ended(
                over.exit_code(),
                over.timed_out,
                over.duration_ms(),
            );
            self.shells.leave(context.caller().session_id, done);
        }
        drop(busy);
        settled.map_err(|failure| if never { failure.with_side_effects(SideEffects::none()) } else { failure })?;
        self.output(context, &live, job.line, over, &changes).await
    }

    /// Whether the program of a line was not found, so that nothing of it ran. A shell in which a word may stand for something
    /// else, or whose `PATH` is not the one that it was started with, proves nothing.
    fn never_ran(&self, context: &ToolContext, line: &str, live: &RunningShell) -> bool {
        let plain = self.shell.live.look(context.caller().session_id).is_some_and(|shell| {
            shell.altered.is_none() && !shell.changed.iter().any(|name| loads_code(name).is_some())
        });
        let path = live.start.given.get("PATH").map_or("", |path| path.expose());
        plain && !context.is_cancelled() && never_ran(line, path, &live.start.seen)
    }

    /// From its first byte to its last. It is stopped when its call is, and goes away when it is to.
    async fn see_through(
        &self,
        job: &Job,
        live: &RunningShell,
        context: &ToolContext,
        capture: Capture,
        captured: CaptureHandle,
    ) -> Result<FinishedCommand, ToolFailure> {
        let mut away = false;
        if job.away == BackgroundAfter::AtOnce {
            context.background(Background::default())?;
            away = true;
        }
        let command_id = self.shell.book.fresh_command();
        let stop = CancellationToken::new();
        let begun = self.shells.clock().monotonic();
        let mut leave_at = match job.away {
            BackgroundAfter::After(after) => Some(Instant::now() + after),
            BackgroundAfter::Never | BackgroundAfter::AtOnce => None,
        };
        let outcome = {
            let mut exec = pin!(live.exec(job.line.clone().into_bytes(), Box::new(capture), stop.clone()));
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut exec => break outcome,
                    _ = context.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                    () = captured.flood.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                    () = at(leave_at), if leave_at.is_some() => {
                        leave_at = None;
                        match context.background(Background::default()) {
                            Ok(_) => away = true,
                            Err(refused) => context.warn(format!("it was waited for all the same: {refused}")),
                        }
                    }
                }
            }
        };
        let duration = self.shells.clock().monotonic().saturating_sub(begun);
        let Outcome { end: outcome, sink, appeared, breach } = outcome.map_err(|gone| match gone {
            ShellGone::Before => {
                let text = "the shell was closed before the command could run in it; try again";
                ToolFailure::new("shell_died", text).retryable(true)
            }
            ShellGone::During => LaunchedFailure::shell_lost().into(),
        })?;
        let mut appeared = self.shells.hand().virtual_places(appeared);
        appeared.extend(live.look_again(self.shells.hand()).await);
        outermost(&mut appeared);
        tell_appeared(context, &appeared);
        let shell_ended = outcome.as_ref().is_err_and(|died| !died.interrupted);
        let finished = sink.back().map(|capture| capture.finish(shell_ended));
        let (stdout, stderr) = finished.ok_or_else(LaunchedFailure::shell_lost)?;
        let mut now = live.now();
        now.command_count += 1;
        now.updated_at = self.shells.clock().now();
        now.last_command_at = Some(now.updated_at);
        drop(now);
        Ok(FinishedCommand {
            command_id,
            outcome,
            stdout,
            stderr,
            captured,
            breach,
            duration,
            timed_out: context.timed_out(),
            away,
        })
    }

    /// What of the shell is the session's from now on.
    fn carry(
        &self,
        context: &ToolContext,
        live: &RunningShell,
        known: &Environment,
        report: &Report,
    ) -> Vec<ShellFact> {
        let mut facts = Vec::new();
        match self.inside(&report.folder) {
            Some(path) => {
                let before = self.shell.book.cwd(context.caller());
                if before.as_deref().unwrap_or(HOME) != path {
                    facts.push(ShellFact::Cwd(path.clone()));
                }
                let mut now = live.now();
                now.inside.clone_from(&path);
                now.cwd = Some(path);
            }
            None => {
                let mut now = live.now();
                now.cwd = None;
                context.warn(format!(
                    "the command left the shell outside of the workspace; the next one starts in {} again",
                    now.inside
                ));
            }
        }
        match &report.environment {
            Some(pairs) => {
                let exported: BTreeMap<String, SecretText> = pairs.iter().filter_map(text_pair).collect();
                let mut now = live.now();
                now.env_keys = exported.keys().cloned().collect();
                now.exported.clone_from(&exported);
                drop(now);
                let carried = carry_over(known, changed(&live.start.given, known, exported));
                carried.warnings.into_iter().for_each(|warning| context.warn(warning));
                facts.extend(carried.facts);
            }
            None => {
                live.now().altered.get_or_insert_with(|| "could not tell its environment".to_owned());
                context.warn(
                "the environment of the shell is too large for any program to be started with it, so nothing of it was \
                 kept; unset what is large, or restart the shell",
                );
            }
        }
        facts.iter().cloned().for_each(|fact| context.shell(fact));
        facts
    }

    /// The virtual path of a folder as the shell names it, if it is one of the mounts.
    fn inside(&self, folder: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(folder).ok().filter(|text| text.starts_with('/'))?;
        let place = self.shell.files.mounts.resolve(text).ok()?;
        (place.kind() == Some(Kind::Directory)).then(|| place.path().as_str().to_owned())
    }

    /// The command as the session remembers it.
    fn remember(
        &self,
        context: &ToolContext,
        live: &RunningShell,
        line: &str,
        cwd: &VirtualPath,
        over: &FinishedCommand,
    ) {
        let Some(command_id) = over.command_id else { return };
        context.shell(ShellFact::Finished(Box::new(EndedCommand {
            command_id,
            command: "persistent-shell".to_owned(),
            args: vec![line.to_owned()],
            cwd: cwd.as_str().to_owned(),
            exit_code: over.exit_code(),
            timed_out: over.timed_out,
            duration_ms: over.duration_ms(),
            shell_id: Some(live.start.id),
            stdout: Some(over.stdout.clone()),
            stderr: Some(over.stderr.clone()),
        })));
    }

    async fn output(
        &self,
        context: &ToolContext,
        live: &RunningShell,
        command: String,
        over: FinishedCommand,
        changes: &[ShellFact],
    ) -> Result<ExecOutput, ToolFailure> {
        let (posture, env) = self.stand(context, changes).await?;
        let now = live.now().clone();
        Ok(ExecOutput {
            session_id: context.caller().session_id.to_string(),
            shell_id: live.start.id.to_string(),
            command_id: over.command_id.map(|id| id.to_string()),
            command,
            cwd: now.inside,
            env,
            env_keys: now.env_keys,
            exit_code: over.exit_code(),
            timed_out: over.timed_out,
            duration_ms: over.duration_ms(),
            stdout: over.stdout,
            stderr: over.stderr,
            shell_path: live.start.program.path().to_owned(),
            started_at: live.started_at.to_millis_text(),
            updated_at: now.updated_at.to_millis_text(),
            last_command_at: now.last_command_at.map(|at| at.to_millis_text()),
            command_count: now.command_count,
            status: if live.over().is_none() { "active" } else { "closed" },
            persistent: true,
            persistent_shell: posture.persistent,
            shell_state: posture.state,
        })
    }

    /// How the shell will stand once this call is written down.
    pub(super) async fn stand(
        &self,
        context: &ToolContext,
        changes: &[ShellFact],
    ) -> Result<(Posture, EnvView), ToolFailure> {
        let caller = context.caller();
        let mut seen = self.shell.book.look(caller, None).await.map_err(unseen)?;
        let at = self.shells.clock().now();
        for change in changes {
            foresee(&mut seen.shell, change, at);
        }
        let env = EnvView::of(&seen.shell);
        let live = self.shells.look(caller.session_id);
        Ok((Posture::of(&seen, live, &|tool| self.shell.book.offers(caller.session_id, tool)), env))
    }
}

/// As the log will have it.
fn foresee(shell: &mut Shell, change: &ShellFact, at: portcullis_base::Timestamp) {
    match change {
        ShellFact::Cwd(cwd) => shell.set_cwd(cwd, at),
        ShellFact::EnvSet(key, _) => shell.set_env(key.as_str(), shell.next_version(), at),
        ShellFact::EnvUnset(key) => shell.unset_env(key.as_str(), at),
        ShellFact::Opened { .. } | ShellFact::Closed { .. } | ShellFact::Finished(_) => {}
    }
}

/// What is text; an environment that is none is nobody's to keep.
fn text_pair((name, value): &(Vec<u8>, Vec<u8>)) -> Option<(String, SecretText)> {
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    Some((text(name)?, SecretText::new(text(value)?)))
}

/// Without what the runtime gave the shell and nobody has changed: a toolchain's variables are not the session's.
fn changed(
    given: &BTreeMap<String, SecretText>,
    known: &Environment,
    mut exported: BTreeMap<String, SecretText>,
) -> BTreeMap<String, SecretText> {
    let is_known = |name: &str| known.values.keys().any(|key| key.as_str() == name);
    exported.retain(|name, value| is_known(name) || given.get(name) != Some(value));
    exported
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h43_what_the_runtime_gave_a_shell_is_no_change_of_the_session() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, SecretText> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), SecretText::new(*value))).collect()
        };
        let known =
            Environment { values: [("A".parse().expect("a name"), SecretText::new("1"))].into(), lost: Vec::new() };
        let given = map(&[("HOME", "/home/x"), ("CARGO_HOME", "/c"), ("A", "1")]);
        let exported = map(&[("HOME", "/home/x"), ("CARGO_HOME", "/other"), ("A", "1"), ("NEW", "2")]);
        let left = changed(&given, &known, exported);
        assert_eq!(left.keys().collect::<Vec<_>>(), ["A", "CARGO_HOME", "NEW"]);
    }
}
