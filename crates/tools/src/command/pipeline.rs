//! One pipeline: each stage a program of its own in the read-only view, joined by pipes. Never a shell.

use std::fs::OpenOptions;
use std::io::{self, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use futures_util::future::{join_all, try_join_all};
use portcullis_base::{Reason, limits};
use portcullis_command::{Pipeline, Redirection, Stage};
use portcullis_contract::{Precondition, ToolFailure};
use portcullis_sandbox::hand::{Exit, Output, Running, Signal, Stdin, Target};
use portcullis_sandbox::{self as sandbox, FileError, Kind, VirtualPath};
use tokio::task::JoinHandle;

use super::builtins::{self, BuiltinEnd, StageOutput};
use super::list::RunningLine;
use super::operands::Outlook;
use crate::files::{failure, precondition};
use crate::hand::LaunchedFailure;

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageEnd {
    /// As a shell counts it: 128 and the signal, if a signal ended it.
    pub code: i32,
    pub signal: Option<i32>,
    /// The kernel ended something in it for want of memory.
    pub out_of_memory: bool,
}

impl StageEnd {
    fn code(code: i32) -> Self {
        Self { code, signal: None, out_of_memory: false }
    }

    fn of(ended: sandbox::hand::ProcessEnd) -> Self {
        let out_of_memory = ended.out_of_memory;
        match ended.exit {
            Exit::Code(code) => Self { out_of_memory, ..Self::code(code) },
            Exit::Signal(signal) => Self { code: 128 + signal, signal: Some(signal), out_of_memory },
        }
    }
}

/// How a pipeline ended.
pub(super) struct PipelineEnd {
    pub(super) stages: Vec<StageEnd>,
    /// Where the pipelines after it run.
    pub(super) moved: Option<VirtualPath>,
    /// The call was stopped while it ran.
    pub(super) stopped: bool,
}

/// A stage with everything it needs, not begun.
enum PreparedStage {
    Program {
        words: Vec<String>,
        streams: Fds,
    },
    /// Ours, or a stage that cannot begin.
    Said {
        said: StageOutput,
        streams: Fds,
    },
}

struct Fds {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// A stage that was begun.
enum RunningStage {
    Running(Box<Running>),
    Writing(JoinHandle<StageEnd>),
}

fn io_failure(error: io::Error) -> ToolFailure {
    ToolFailure::new("io_error", format!("the programs cannot be joined: {error}")).retryable(true)
}

impl RunningLine<'_> {
    /// Runs a pipeline to its end. All of its words are looked at before any of its programs is started.
    pub(super) async fn pipeline(&self, pipeline: &Pipeline, cwd: &VirtualPath) -> Result<PipelineEnd, ToolFailure> {
        let stages = pipeline.stages();
        let mut moved = None;
        let mut ready = Vec::new();
        let mut from = None;
        for (at, stage) in stages.iter().enumerate() {
            let (next, to) = if at + 1 == stages.len() {
                (None, self.out.try_clone().map_err(io_failure)?)
            } else {
                let (read, write) = io::pipe().map_err(io_failure)?;
                (Some(OwnedFd::from(read)), write)
            };
            ready.push(self.stage(stage, cwd, (from.take(), to), &mut moved)?);
            from = next;
        }
        let begun = tokio::select! {
            biased;
            // A program that was started ends when its handle is dropped.
            _ = self.context.cancelled() => return Ok(PipelineEnd { stages: Vec::new(), moved: None, stopped: true }),
            begun = try_join_all(ready.into_iter().map(|stage| self.begin(stage, cwd))) => begun?,
        };
        let (stages, stopped) = self.see_through(begun).await?;
        Ok(PipelineEnd { stages, moved, stopped })
    }

    fn stage(
        &self,
        stage: &Stage,
        cwd: &VirtualPath,
        (from, to): (Option<OwnedFd>, PipeWriter),
        moved: &mut Option<VirtualPath>,
    ) -> Result<PreparedStage, ToolFailure> {
        let outlook =
            Outlook { mounts: &self.hand.files.mounts, cwd, decided: &self.decided, virtual_paths: self.virtual_paths };
        let mut fds = Fds { stdin: from, stdout: to.into(), stderr: self.err.try_clone().map_err(io_failure)?.into() };
        let mut missing = None;
        for redirection in stage.redirections() {
            match redirection {
                Redirection::StdoutNull => fds.stdout = null()?,
                Redirection::StderrNull => fds.stderr = null()?,
                Redirection::BothNull => (fds.stdout, fds.stderr) = (null()?, null()?),
                Redirection::StderrToStdout => fds.stderr = fds.stdout.try_clone().map_err(io_failure)?,
                Redirection::Stdin(file) => match self.opened(stage, &outlook, file)? {
                    Some(fd) => fds.stdin = Some(fd),
                    None => missing = Some(StageOutput::failed(&format!("{file}: No such file or directory"))),
                },
            }
        }
        if let Some(said) = missing {
            return Ok(PreparedStage::Said { said, streams: fds });
        }
        let Some(builtin) = stage.builtin() else {
            if !self.virtual_paths {
                return self.below_full(stage, &outlook, fds);
            }
            return self.program(stage, &outlook, fds);
        };
        match builtins::run(builtin, stage, &outlook, &|| self.variables(cwd)).map_err(failure)? {
            BuiltinEnd::Said(said) => Ok(PreparedStage::Said { said, streams: fds }),
            BuiltinEnd::Moved(to) => {
                *moved = Some(to);
                Ok(PreparedStage::Said { said: StageOutput::default(), streams: fds })
            }
        }
    }

    fn program(&self, stage: &Stage, outlook: &Outlook<'_>, streams: Fds) -> Result<PreparedStage, ToolFailure> {
        let given = outlook.words(stage).map_err(ToolFailure::precondition)?;
        if given.left_out > 0 {
            self.context.warn(format!(
                "{} names that a pattern matches were left out: they lead outside the workspace, or are no text",
                given.left_out
            ));
        }
        let mut words = vec![stage.program().to_owned()];
        words.extend(given.words);
        Ok(PreparedStage::Program { words, streams })
    }

    /// Where mounts do not stand at their places a program that prints whole paths would print the host's (H6).
    fn below_full(&self, stage: &Stage, outlook: &Outlook<'_>, streams: Fds) -> Result<PreparedStage, ToolFailure> {
        match stage.program() {
            "realpath" => {
                let mut said = StageOutput::default();
                for arg in stage.args().iter().filter(|arg| arg.is_path()) {
                    let raw = arg.word().shown();
                    match outlook.place(raw).map_err(|error| ToolFailure::precondition(precondition(error)))? {
                        Some(place) => said.out.extend_from_slice(format!("{}\n", place.path()).as_bytes()),
                        None => {
                            said.code = 1;
                            said.err
                                .extend_from_slice(format!("realpath: {raw}: No such file or directory\n").as_bytes());
                        }
                    }
                }
                Ok(PreparedStage::Said { said, streams })
            }
            "df" => Err(ToolFailure::sandbox_unavailable(
                "`df` would show the host's own mounts at this isolation level; only level `full` has others",
            )),
            _ => self.program(stage, outlook, streams),
        }
    }

    /// `< FILE`, opened by us: the program gets the very file that was decided on. `None` if nothing is there.
    fn opened(&self, stage: &Stage, outlook: &Outlook<'_>, file: &str) -> Result<Option<OwnedFd>, ToolFailure> {
        let place = outlook.input(stage, file).map_err(ToolFailure::precondition)?;
        let Some(place) = place.filter(|place| place.kind().is_some()) else { return Ok(None) };
        if file.ends_with('/') && place.kind() != Some(Kind::Directory) {
            return Ok(None);
        }
        let refused = |error: FileError| ToolFailure::precondition(precondition(error));
        let opened = sandbox::open_for_reading(&place).map_err(refused)?;
        // The view masks what rules deny, under all its names; what we open ourselves goes past the view.
        let meta = opened.metadata().map_err(io_failure)?;
        if let Some(rule) = self.base.masks.closes((meta.dev(), meta.ino())) {
            let by = rule.map(|rule| format!("rule `{rule}` denies reading it")).unwrap_or_default();
            let text = format!("`{file}` is another name of a file that no command sees: {by}");
            return Err(ToolFailure::precondition(Precondition::failed(Reason::PathHidden, text)));
        }
        Ok(Some(opened.into()))
    }

    async fn begin(&self, ready: PreparedStage, cwd: &VirtualPath) -> Result<RunningStage, ToolFailure> {
        match ready {
            PreparedStage::Said { said, streams } => {
                Ok(RunningStage::Writing(tokio::task::spawn_blocking(move || write(said, streams))))
            }
            PreparedStage::Program { words, streams } => {
                let name = words.first().cloned().unwrap_or_default();
                let mut plan = self.base.beside(words.into_iter().map(Into::into).collect(), cwd);
                plan.launch.env = self.own(cwd).into_iter().map(|(name, value)| (name.into(), value.into())).collect();
                plan.launch.stdin = streams.stdin.map_or(Stdin::Null, Stdin::Fd);
                plan.launch.stdout = Output::Fd(streams.stdout);
                plan.launch.stderr = Output::Fd(streams.stderr);
                if builtins::program(&name).is_none() {
                    return Err(ToolFailure::precondition(super::not_installed(&name)));
                }
                Ok(RunningStage::Running(Box::new(self.hand.hand.launch(plan).await?)))
            }
        }
    }

    /// Until every stage has ended, or was ended.
    async fn see_through(&self, mut begun: Vec<RunningStage>) -> Result<(Vec<StageEnd>, bool), LaunchedFailure> {
        let broken = |error: io::Error| LaunchedFailure::unwatched(&error);
        tokio::select! {
            biased;
            ends = ends(&mut begun) => return ends.map(|ends| (ends, false)).map_err(broken),
            _ = self.context.cancelled() => {}
        }
        for one in &begun {
            if let RunningStage::Running(running) = one
                && running.signal(Signal::TERM, Target::Tree).is_err()
            {
                running.kill_tree();
            }
        }
        if let Ok(ends) = tokio::time::timeout(limits::KILL_GRACE, ends(&mut begun)).await {
            return ends.map(|ends| (ends, true)).map_err(broken);
        }
        for one in &begun {
            if let RunningStage::Running(running) = one {
                running.kill_tree();
            }
        }
        ends(&mut begun).await.map(|ends| (ends, true)).map_err(broken)
    }
}

async fn ends(begun: &mut [RunningStage]) -> io::Result<Vec<StageEnd>> {
    let all = begun.iter_mut().map(|one| async {
        match one {
            RunningStage::Running(running) => running.wait().await.map(StageEnd::of),
            RunningStage::Writing(writing) => writing.await.map_err(io::Error::other),
        }
    });
    join_all(all).await.into_iter().collect()
}

/// Says it, as a program would: who is not listened to any more ends by a signal.
fn write(said: StageOutput, streams: Fds) -> StageEnd {
    drop(streams.stdin);
    let told = std::fs::File::from(streams.stderr).write_all(&said.err);
    let told = told.and_then(|()| std::fs::File::from(streams.stdout).write_all(&said.out));
    match told {
        Ok(()) => StageEnd::code(said.code),
        Err(_) => StageEnd { signal: Some(Signal::PIPE.as_raw()), ..StageEnd::code(128 + Signal::PIPE.as_raw()) },
    }
}

fn null() -> Result<OwnedFd, ToolFailure> {
    OpenOptions::new().write(true).open("/dev/null").map(OwnedFd::from).map_err(io_failure)
}
