//! A shell that stands, one command after another.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::Entropy;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Signal;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time::Instant;

use super::program::hold_back;
use super::{Frames, Program, Report, Token};
use crate::hand::{Exit, Plan, Posture, ProcessEnd, Running, Stdin, Target};

/// How long a fresh shell may take to answer. It reads no file, so even a busy machine needs far less.
const START: Duration = Duration::from_secs(20);
/// How long a shell may take to tell its environment. It starts one small program, and tries again for half a minute where
/// it may have no more processes.
const TELLING: Duration = Duration::from_secs(60);
/// From each of the two interrupts to the next step. With [`AFTER_TERM`] and the pause of a kill they stay below the grace
/// that a stopped call has (3 s), so that its end is still told.
const AFTER_INTERRUPT: Duration = Duration::from_millis(750);
/// From SIGTERM to the end of the shell.
const AFTER_TERM: Duration = Duration::from_millis(500);
/// From SIGTERM to SIGKILL when a shell is closed (agent-runtime 10.4).
const CLOSE_GRACE: Duration = Duration::from_millis(250);
/// How long the end of what was killed is waited for. Who hangs in the kernel for longer (a dead network mount) holds
/// nobody; dropping the shell sees to the rest.
const AFTER_KILL: Duration = Duration::from_secs(5);
/// What is read of a stream at once.
const PIECE: usize = 64 * 1024;

/// One of a command's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Takes what a command writes, as it comes.
pub trait Sink: Send {
    fn take(&mut self, stream: Stream, bytes: &[u8]);
}

/// Takes it nowhere.
impl Sink for () {
    fn take(&mut self, _: Stream, _: &[u8]) {}
}

/// A command that is over, in a shell that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedLine {
    pub report: Report,
    /// It was stopped.
    pub interrupted: bool,
}

/// The shell ended before its command had reported an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellDied {
    pub ended: ProcessEnd,
    /// Because its command was to stop and did not.
    pub interrupted: bool,
}

/// Why no shell stands.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the shell cannot be driven: {0}")]
    Io(#[from] io::Error),
    #[error("the shell ended before it answered: {0:?}")]
    Died(Exit),
}

/// Our end of a shell's line, before the shell is there.
#[derive(Debug)]
pub struct ShellLine {
    ours: OwnedFd,
    held_back: Vec<(std::ffi::OsString, std::ffi::OsString)>,
}

/// Makes a plan one of a shell: its words are [`Program::argv`] already.
///
/// # Errors
/// If there are no descriptors left.
pub fn line(plan: &mut Plan) -> io::Result<ShellLine> {
    let (ours, theirs) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    plan.stdin = Stdin::Fd(theirs);
    Ok(ShellLine { ours, held_back: hold_back(&mut plan.env) })
}

/// Dropping it kills everything in it.
pub struct Shell {
    running: Running,
    line: UnixStream,
    pipes: Pipes,
    program: Program,
    entropy: Arc<dyn Entropy>,
    told: ReportedEnvironment,
}

/// What it told of its environment last: while it lists the same as exported, that is its environment still.
#[derive(Default)]
struct ReportedEnvironment {
    exports: Vec<u8>,
    environment: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Shell {
    /// Waits until it answers.
    ///
    /// # Errors
    /// If it does not.
    pub async fn begin(
        mut running: Running,
        line: ShellLine,
        program: Program,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StartError> {
        let gone = || io::Error::other("its output was taken already");
        let pipes = Pipes {
            out: Pipe::new(running.take_stdout().ok_or_else(gone)?)?,
            err: Pipe::new(running.take_stderr().ok_or_else(gone)?)?,
            err_first: false,
        };
        let stream = UnixStream::from_std(std::os::unix::net::UnixStream::from(line.ours))?;
        let mut shell = Self { running, line: stream, pipes, program, entropy, told: ReportedEnvironment::default() };
        let settle = program.settle(&line.held_back);
        match shell.exec(&settle, &mut (), tokio::time::sleep(START)).await {
            Ok(_) => Ok(shell),
            Err(died) => Err(StartError::Died(died.ended.exit)),
        }
    }

    /// The isolation it really has.
    #[must_use]
    pub fn posture(&self) -> &Posture {
        self.running.posture()
    }

    /// The process tree, to look at.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Runs a command to its end; when `stop` comes, to that of an interrupt, at most two seconds later. Do not drop it
    /// midway: whose end it would read next is then unknown.
    ///
    /// # Errors
    /// If the shell is gone.
    pub async fn exec(
        &mut self,
        command: &[u8],
        sink: &mut dyn Sink,
        stop: impl Future<Output = ()>,
    ) -> Result<FinishedLine, ShellDied> {
        let token = Token::fresh(&*self.entropy);
        let lines = self.program.lines(command, &token);
        let mut finished = self.say(&lines, token, sink, stop).await?;
        // A shell that lists nothing has lost the word for it: then it says nothing about the environment.
        let same = !finished.report.exports.is_empty() && self.told.exports == finished.report.exports;
        if !same {
            let token = Token::fresh(&*self.entropy);
            let lines = self.program.environment(&token);
            // The command is over: what becomes of this changes nothing of how it ended. If the shell dies of it, the next
            // command finds that out.
            let answer = self.say(&lines, token, sink, tokio::time::sleep(TELLING)).await.ok();
            self.told = match answer.and_then(|answer| answer.report.environment) {
                Some(environment) => ReportedEnvironment {
                    exports: std::mem::take(&mut finished.report.exports),
                    environment: Some(environment),
                },
                None => ReportedEnvironment::default(),
            };
        }
        finished.report.environment.clone_from(&self.told.environment);
        Ok(finished)
    }

    /// Says lines to the shell and waits for the answer that has this token.
    async fn say(
        &mut self,
        lines: &[u8],
        token: Token,
        sink: &mut dyn Sink,
        stop: impl Future<Output = ()>,
    ) -> Result<FinishedLine, ShellDied> {
        let mut frames = Frames::new(token);
        let (mut said, mut listens) = (0, true);
        let mut stage = Stage::Runs;
        let mut stop = pin!(stop);
        let mut piece = vec![0; PIECE];
        let report = loop {
            tokio::select! {
                biased;
                () = &mut stop, if matches!(stage, Stage::Runs) => stage = self.interrupt(stage),
                () = tokio::time::sleep_until(stage.deadline().unwrap_or_else(Instant::now)),
                    if stage.deadline().is_some() => stage = self.interrupt(stage),
                ready = self.line.readable(), if listens => match self.hear(ready, &mut frames) {
                    ShellMessage::Nothing => {}
                    ShellMessage::Report(report) => break Some(report),
                    // It has ended, or another program has taken its place: that one runs to its own end.
                    ShellMessage::End => listens = false,
                    // What it says makes no sense: it is no shell any more.
                    ShellMessage::Nonsense => break None,
                },
                ready = self.line.writable(), if listens && said < lines.len() => {
                    let wrote = ready.and_then(|()| self.line.try_write(&lines[said..]));
                    match wrote {
                        Ok(count) => said += count,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => listens = false,
                    }
                }
                _ = self.running.wait() => break self.last_words(&mut frames),
                read = self.pipes.read(&mut piece) => {
                    let (stream, count) = read;
                    sink.take(stream, &piece[..count]);
                }
            }
        };
        let interrupted = !matches!(stage, Stage::Runs);
        match report {
            Some(report) => {
                self.pipes.rest(&mut piece, sink);
                Ok(FinishedLine { report, interrupted })
            }
            None => {
                self.running.kill_tree();
                let ended = self.ended().await;
                self.pipes.rest(&mut piece, sink);
                Err(ShellDied { ended, interrupted })
            }
        }
    }

    fn hear(&self, ready: io::Result<()>, frames: &mut Frames) -> ShellMessage {
        if ready.is_err() {
            return ShellMessage::End;
        }
        let mut bytes = [0; 16 * 1024];
        match self.line.try_read(&mut bytes) {
            Ok(0) => ShellMessage::End,
            Ok(count) => match frames.push(&bytes[..count]) {
                Ok(None) => ShellMessage::Nothing,
                Ok(Some(report)) => ShellMessage::Report(report),
                Err(_) => ShellMessage::Nonsense,
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ShellMessage::Nothing,
            Err(_) => ShellMessage::End,
        }
    }

    /// An answer that was there before the shell ended.
    fn last_words(&self, frames: &mut Frames) -> Option<Report> {
        let mut bytes = [0; 16 * 1024];
        loop {
            match rustix::io::read(&self.line, &mut bytes) {
                Ok(0) | Err(_) => return None,
                Ok(count) => match frames.push(&bytes[..count]) {
                    Ok(None) => {}
                    Ok(report) => return report,
                    Err(_) => return None,
                },
            }
        }
    }

    /// The next step of stopping a command. The rest of its list must not go on: an interrupt makes the shell drop it; if
    /// that does not help, the shell stands still while its processes may tidy up, and then everything ends.
    fn interrupt(&self, stage: Stage) -> Stage {
        let _ = match stage {
            // A shell drops an interrupt that reaches it between two commands of its line, so it is sent twice.
            Stage::Runs | Stage::Interrupted(_) => self.running.signal(Signal::INT, Target::Tree),
            Stage::InterruptedAgain(_) => {
                let _ = self.running.signal(Signal::STOP, Target::Main);
                self.running.signal(Signal::TERM, Target::Others)
            }
            Stage::Terminated(_) | Stage::Killed => {
                self.running.kill_tree();
                Ok(())
            }
        };
        match stage {
            Stage::Runs => Stage::Interrupted(Instant::now() + AFTER_INTERRUPT),
            Stage::Interrupted(_) => Stage::InterruptedAgain(Instant::now() + AFTER_INTERRUPT),
            Stage::InterruptedAgain(_) => Stage::Terminated(Instant::now() + AFTER_TERM),
            Stage::Terminated(_) | Stage::Killed => Stage::Killed,
        }
    }

    async fn ended(&mut self) -> ProcessEnd {
        let ended = tokio::time::timeout(AFTER_KILL, self.running.wait()).await;
        ended.ok().and_then(Result::ok).unwrap_or(ProcessEnd::KILLED)
    }

    /// Waits for its end while no command runs. What background processes write meanwhile is read, so that they are not
    /// held up, and goes nowhere. May be dropped and called again.
    pub async fn idle(&mut self) -> ProcessEnd {
        let mut piece = vec![0; PIECE];
        loop {
            tokio::select! {
                biased;
                ended = self.running.wait() => {
                    return ended.unwrap_or(ProcessEnd::KILLED);
                }
                _ = self.pipes.read(&mut piece) => {}
            }
        }
    }

    /// Ends it: asks everyone, waits a moment, kills who is left.
    pub async fn close(mut self) -> ProcessEnd {
        // An interactive shell does not heed SIGTERM, so it is told to hang up as well.
        let _ = self.running.signal(Signal::TERM, Target::Tree);
        let _ = self.running.signal(Signal::HUP, Target::Main);
        match tokio::time::timeout(CLOSE_GRACE, self.idle()).await {
            Ok(ended) => ended,
            Err(_) => {
                self.running.kill_tree();
                self.ended().await
            }
        }
    }
}

/// One message of the shell on its control pipe.
enum ShellMessage {
    Nothing,
    Report(Report),
    End,
    Nonsense,
}

/// How far the stopping of a command is.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Runs,
    Interrupted(Instant),
    InterruptedAgain(Instant),
    Terminated(Instant),
    Killed,
}

impl Stage {
    /// When the next step comes.
    fn deadline(self) -> Option<Instant> {
        match self {
            Self::Runs | Self::Killed => None,
            Self::Interrupted(at) | Self::InterruptedAgain(at) | Self::Terminated(at) => Some(at),
        }
    }
}

/// The two streams of a shell. They stay open from command to command.
#[derive(Debug)]
struct Pipes {
    out: Pipe,
    err: Pipe,
    /// So that neither keeps the other from being read.
    err_first: bool,
}

impl Pipes {
    /// The next piece of either; never comes once both are closed.
    async fn read(&mut self, piece: &mut [u8]) -> (Stream, usize) {
        loop {
            let Self { out, err, err_first } = self;
            *err_first = !*err_first;
            let stream = match *err_first {
                true => {
                    tokio::select! { biased; () = err.ready() => Stream::Stderr, () = out.ready() => Stream::Stdout }
                }
                false => {
                    tokio::select! { biased; () = out.ready() => Stream::Stdout, () = err.ready() => Stream::Stderr }
                }
            };
            let pipe = match stream {
                Stream::Stdout => out,
                Stream::Stderr => err,
            };
            if let Some(count) = pipe.take(piece) {
                return (stream, count);
            }
        }
    }

    /// What is in them now. All that a command's processes wrote before its end is; a daemon that goes on writing does
    /// not hold us, for only what is there is read.
    fn rest(&mut self, piece: &mut [u8], sink: &mut dyn Sink) {
        for (pipe, stream) in [(&mut self.out, Stream::Stdout), (&mut self.err, Stream::Stderr)] {
            let mut left = pipe.waiting();
            while left > 0 {
                let most = left.min(piece.len());
                // Not by way of the runtime, which may not have heard yet that there is something.
                let Ok(count @ 1..) = rustix::io::read(pipe.from.as_fd(), &mut piece[..most]) else { break };
                sink.take(stream, &piece[..count]);
                left -= count;
            }
        }
    }
}

#[derive(Debug)]
struct Pipe {
    from: pipe::Receiver,
    closed: bool,
}

impl Pipe {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { from: pipe::Receiver::from_owned_fd(fd)?, closed: false })
    }

    async fn ready(&self) {
        if self.closed || self.from.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Some bytes, if there are any.
    fn take(&mut self, piece: &mut [u8]) -> Option<usize> {
        match self.from.try_read(piece) {
            Ok(0) => {
                self.closed = true;
                None
            }
            Ok(count) => Some(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => {
                self.closed = true;
                None
            }
        }
    }

    /// How many bytes are in it.
    fn waiting(&self) -> usize {
        let count = rustix::io::ioctl_fionread(self.from.as_fd()).unwrap_or(0);
        usize::try_from(count).unwrap_or(0)
    }
}
