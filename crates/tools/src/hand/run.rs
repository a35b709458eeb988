//! A command from its start to its end: both streams captured whole, stopped when it must be, never waited for by its
//! pipes (tool-contract §14).

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use portcullis_base::{SideEffect, limits};
use portcullis_contract::{Spool, SpoolRef, ToolContext, ToolFailure};
use portcullis_sandbox::VirtualPath;
use portcullis_sandbox::hand::{Exit, Posture, ProcessEnd, Running, Signal, Target, Unheld};
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

use super::denial::{self, Denial};
use super::later_places::{outermost, tell_appeared};
use super::launched::{self, LaunchedFailure, Limit};
use super::{Hand, LaterPlaces, Plan};

/// How a command is stopped: it gets SIGINT, as from Ctrl-C at a terminal; SIGTERM after the first of these times; SIGKILL
/// after the second (tool-contract §14), a moment less than the runtime's own grace, so that the end is told.
const TERM_AFTER: Duration = Duration::from_secs(1);
const KILL_AFTER: Duration = limits::KILL_GRACE.saturating_sub(Duration::from_millis(300));
/// The end of a stream that is searched for what the hand denied.
const TAIL: usize = 64 << 10;
/// How a shell ends that does not find a program.
pub(crate) const NOT_FOUND: i32 = 127;
/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// A command that ended, or was ended.
#[derive(Debug)]
pub struct CommandRun {
    pub ended: ProcessEnd,
    /// It ran longer than its call may, and was ended for that.
    pub timed_out: bool,
    pub duration: Duration,
    pub stdout: SpoolRef,
    pub stderr: SpoolRef,
    /// What it used up and failed for, where that is certain.
    pub limit: Option<Limit>,
    /// What the hand kept from it, as far as its own words tell.
    pub denials: Vec<Denial>,
    /// The isolation it really had.
    pub posture: Posture,
    /// Guarded places that were not there when it started.
    pub appeared: Vec<PathBuf>,
    /// Its program was not found, so that nothing of it ran. Only set by [`Hand::run_line`].
    pub never_ran: bool,
}

/// The two streams of a command, on their way into spools.
pub struct Streams {
    stdout: Stream,
    stderr: Stream,
}

impl Streams {
    /// Takes the streams of a command over.
    ///
    /// # Errors
    /// If they cannot be watched.
    pub fn capture(context: &ToolContext, running: &mut Running) -> io::Result<Self> {
        Ok(Self {
            stdout: Stream::new(running.take_stdout(), context.spool("stdout"))?,
            stderr: Stream::new(running.take_stderr(), context.spool("stderr"))?,
        })
    }

    /// The same of pipes that several programs write to.
    ///
    /// # Errors
    /// If they cannot be watched.
    pub fn of(context: &ToolContext, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            stdout: Stream::new(Some(stdout), context.spool("stdout"))?,
            stderr: Stream::new(Some(stderr), context.spool("stderr"))?,
        })
    }

    /// Reads until both have ended. May be dropped and called again; nothing is lost.
    ///
    /// # Errors
    /// If so much was written that the producer must be stopped, or a pipe cannot be read.
    pub async fn read(&mut self) -> Result<(), StreamFault> {
        let (out, err) = futures_util::join!(self.stdout.read(), self.stderr.read());
        out.and(err)
    }

    /// Ends both.
    #[must_use]
    pub fn finish(self) -> (SpoolRef, SpoolRef, StreamTails) {
        let tails = StreamTails { stdout: self.stdout.tail.into(), stderr: self.stderr.tail.into() };
        (self.stdout.spool.finish(), self.stderr.spool.finish(), tails)
    }
}

/// Why a stream is not read on.
#[derive(Debug)]
pub enum StreamFault {
    /// So much was written that the producer must be stopped; in words how much.
    Flood(String),
    Io(io::Error),
}

impl From<StreamFault> for LaunchedFailure {
    fn from(fault: StreamFault) -> Self {
        match fault {
            StreamFault::Flood(why) => Self::limit(&Limit::Output(why)),
            StreamFault::Io(error) => Self::unwatched(&error),
        }
    }
}

/// The end of both streams.
#[derive(Debug)]
pub struct StreamTails {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

struct Stream {
    /// None at its end.
    from: Option<Receiver>,
    spool: Spool,
    tail: VecDeque<u8>,
    buffer: Vec<u8>,
}

impl Stream {
    fn new(from: Option<OwnedFd>, spool: Spool) -> io::Result<Self> {
        let from = from.map(Receiver::from_owned_fd).transpose()?;
        Ok(Self { from, spool, tail: VecDeque::new(), buffer: vec![0; CHUNK] })
    }

    async fn read(&mut self) -> Result<(), StreamFault> {
        while let Some(from) = &self.from {
            from.readable().await.map_err(StreamFault::Io)?;
            match from.try_read(&mut self.buffer) {
                Ok(0) => self.from = None,
                Ok(count) => {
                    let bytes = &self.buffer[..count];
                    let over = (self.tail.len() + count).saturating_sub(TAIL);
                    self.tail.drain(..over.min(self.tail.len()));
                    self.tail.extend(bytes);
                    self.spool.write(bytes).map_err(|error| StreamFault::Flood(error.to_string()))?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(StreamFault::Io(error)),
            }
        }
        Ok(())
    }
}

impl Hand {
    /// Launches a plan and sees it through: its streams are captured as `stdout` and `stderr`; an interrupt or the call's
    /// timeout ends its whole tree. What is worth knowing about the run is told as warnings.
    ///
    /// # Errors
    /// As [`Hand::launch`]; or if it was stopped at a limit, or cannot be watched: then what it did is unknown. A command
    /// that fails is no error here.
    pub async fn run(&self, context: &ToolContext, mut plan: Plan) -> Result<CommandRun, ToolFailure> {
        for warning in plan.warnings.drain(..) {
            context.warn(warning);
        }
        let seen = denial::VisiblePlaces::of(&plan, self);
        let before = plan.later.clone();
        let started = Instant::now();
        let running = self.launch(plan).await?;
        Ok(self.see_out(context, running, (&seen, before.as_deref()), started).await?)
    }

    /// The same of a plan that has a shell run this line.
    ///
    /// # Errors
    /// As [`Hand::run`].
    pub(crate) async fn run_line(
        &self,
        context: &ToolContext,
        line: &str,
        plan: Plan,
    ) -> Result<CommandRun, ToolFailure> {
        let seen = denial::VisiblePlaces::of(&plan, self);
        let path = plan.launch.env.iter().find(|(name, _)| *name == "PATH").map(|(_, value)| value.clone());
        let mut ran = self.run(context, plan).await?;
        let path = path.as_ref().and_then(|path| path.to_str()).unwrap_or_default();
        ran.never_ran = ran.ended.exit == Exit::Code(NOT_FOUND) && never_ran(line, path, &seen);
        Ok(ran)
    }

    /// From the launch to the end.
    async fn see_out(
        &self,
        context: &ToolContext,
        mut running: Running,
        (seen, before): (&denial::VisiblePlaces, Option<&LaterPlaces>),
        started: Instant,
    ) -> Result<CommandRun, LaunchedFailure> {
        let unwatched = |error: io::Error| LaunchedFailure::unwatched(&error);
        let mut streams = Streams::capture(context, &mut running).map_err(unwatched)?;
        let (ended, stopped) = see_through(context, &mut running, &mut streams).await.map_err(unwatched)?;
        let duration = started.elapsed();
        // What is still in the pipes. Who holds them open does not hold us.
        let _ = tokio::time::timeout(limits::DRAIN, streams.read()).await;
        let (stdout, stderr, tails) = streams.finish();
        if let Some(stopped) = stopped {
            return Err(stopped);
        }
        let failed = ended.exit != Exit::Code(0);
        let mut appeared = self.virtual_places(running.appeared());
        if let Some(before) = before {
            appeared.extend(self.appeared_since(before).await.1);
            outermost(&mut appeared);
        }
        let ran = CommandRun {
            ended,
            timed_out: context.timed_out(),
            duration,
            stdout,
            stderr,
            limit: failed.then(|| Limit::hit(&ended, &self.settings().limits)).flatten(),
            denials: denial::named(seen, &tails.stderr, failed.then_some(&tails.stdout)),
            posture: running.posture().clone(),
            appeared,
            never_ran: false,
        };
        let guards = running.unheld().iter().filter(|one| !matches!(one, Unheld::Empty(_)));
        let unheld = guards.map(|one| one.place().to_owned());
        ran.tell(context, &self.virtual_places(unheld));
        if failed
            && ran.limit.is_none()
            && let Some(hint) = launched::hint(&tails.stderr, &self.settings().limits)
        {
            context.warn(hint);
        }
        Ok(ran)
    }
}

impl Hand {
    /// Of places of a view those by their virtual names: a workspace stands at its host place as well, which is nobody
    /// else's business (H6).
    pub(crate) fn virtual_places(&self, places: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let is_virtual = |place: &PathBuf| self.mounts().mounts().any(|mount| place.starts_with(mount.root().as_str()));
        places.into_iter().filter(is_virtual).collect()
    }
}

/// Until the command has ended. The second is why it was ended by us, if it used up something.
async fn see_through(
    context: &ToolContext,
    running: &mut Running,
    streams: &mut Streams,
) -> io::Result<(ProcessEnd, Option<LaunchedFailure>)> {
    let disk = running.disk_since_launch();
    let mut stopped = None;
    let mut reading = true;
    let mut asked_to_stop = false;
    // The next signal, and when it is sent. After SIGKILL nothing is left to do but wait.
    let mut next = None;
    loop {
        tokio::select! {
            biased;
            ended = running.wait() => return Ok((ended?, stopped)),
            _ = context.cancelled(), if !asked_to_stop => {
                asked_to_stop = true;
                let now = Instant::now();
                next = Some((Signal::TERM, now + TERM_AFTER, now + KILL_AFTER));
                ask_to_end(running, Signal::INT);
            }
            () = at(next.map(|(_, when, _)| when)), if next.is_some() => {
                next = match next {
                    Some((Signal::TERM, _, kill_at)) => {
                        ask_to_end(running, Signal::TERM);
                        Some((Signal::KILL, kill_at, kill_at))
                    }
                    _ => {
                        running.kill_tree();
                        None
                    }
                };
            }
            read = streams.read(), if reading => {
                reading = false;
                if let Err(fault) = read {
                    stopped = Some(fault.into());
                    running.kill_tree();
                }
            }
            breach = disk.breached(), if stopped.is_none() => {
                stopped = Some(LaunchedFailure::limit(&Limit::Disk(breach)));
                running.kill_tree();
            }
        }
    }
}

/// Who cannot be asked is killed.
fn ask_to_end(running: &Running, signal: Signal) {
    if running.signal(signal, Target::Tree).is_err() {
        running.kill_tree();
    }
}

/// Whether a line that ended with [`NOT_FOUND`] did nothing: it is one plain command, and no folder of `PATH` has its program.
pub(crate) fn never_ran(line: &str, path: &str, seen: &denial::VisiblePlaces) -> bool {
    portcullis_command::lone_program(line).is_some_and(|program| seen.surely_lack(&program, path))
}

/// States that a command ran. Of one that was stopped on its way nobody knows how far it came: what it did is unknown.
pub(crate) fn ran_to_its_end(context: &ToolContext, cwd: &VirtualPath) {
    if !context.is_cancelled() {
        context.did(SideEffect {
            kind: "command_run".to_owned(),
            target: cwd.as_str().to_owned(),
            before: None,
            after: None,
            reversible: false,
        });
    }
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// Guarded places that this isolation leaves open.
pub(crate) fn tell_unheld(context: &ToolContext, posture: &Posture, unheld: &[PathBuf]) {
    let Some(first) = unheld.first() else { return };
    context.warn(format!(
        "at isolation level `{}` {} could not be kept read-only{}; look at it before anything outside of the sandbox \
         uses it",
        posture.level,
        first.display(),
        match unheld.len() {
            1 => String::new(),
            more => format!(" (and {} more places)", more - 1),
        }
    ));
}

impl CommandRun {
    fn tell(&self, context: &ToolContext, unheld: &[PathBuf]) {
        for denial in &self.denials {
            context.warn(denial.to_string());
        }
        tell_appeared(context, &self.appeared);
        tell_unheld(context, &self.posture, unheld);
        if self.ended.out_of_memory && self.limit.is_none() {
            context.warn("the kernel ended a process of this command because it used up its memory limit");
        }
    }
}
