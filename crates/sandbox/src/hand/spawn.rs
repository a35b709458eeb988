//! Starting a launcher: one `posix_spawn`, from a thread that lives as long as this process.
//!
//! The thread matters. A parent-death signal comes when the parent's *thread* ends, and threads of an
//! async runtime end whenever they are idle for a while.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use super::HIDDEN_WORD;
use super::cgroup::Cgroup;
use super::control::{HEADER, MAX_HANDLES};
use super::standby;
use super::wire::Orders;

/// A launcher that was started. Dropping it ends its whole tree.
#[derive(Debug)]
pub(crate) struct SpawnedLauncher {
    pub(crate) socket: OwnedFd,
    pub(crate) pidfd: OwnedFd,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    /// Its limits; outlives the launcher.
    pub(crate) cgroup: Option<Cgroup>,
    reaped: bool,
}

/// Where the program's output goes; none is a pipe of its own.
#[derive(Default)]
pub(crate) struct Outputs {
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

/// Everything made beforehand, so that the launcher finds its orders waiting.
pub(crate) struct PreparedLaunch {
    program: PathBuf,
    start: Start,
}

enum Start {
    /// It stood by, and has its orders.
    Stood(SpawnedLauncher),
    /// It is to be started, with its line and its output.
    Fresh { ours: OwnedFd, theirs: OwnedFd, outputs: Outputs },
}

impl PreparedLaunch {
    /// `handles` in the order that [`Orders`] names: cgroup, stdin, binds, extra.
    pub(crate) fn new(
        program: &Path,
        orders: &Orders,
        handles: &[BorrowedFd<'_>],
        outputs: Outputs,
    ) -> io::Result<Self> {
        if handles.len() >= MAX_HANDLES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("more than {MAX_HANDLES} handles")));
        }
        let memory = rustix::fs::memfd_create("portcullis-hand", MemfdFlags::CLOEXEC)?;
        let mut memory = File::from(memory);
        memory.write_all(&orders.to_bytes())?;
        let all: Vec<BorrowedFd<'_>> = std::iter::once(memory.as_fd()).chain(handles.iter().copied()).collect();
        let program = program.to_owned();
        // One that stands by has pipes already, so it cannot write anywhere else.
        let stood = if outputs.stdout.is_none() && outputs.stderr.is_none() { standby::take(&program) } else { None };
        // Sending fails if it was ended meanwhile; then a fresh one is started as if there had been none.
        if let Some(stood) = stood.filter(|stood| send(&stood.socket, &all).is_ok()) {
            return Ok(Self { program, start: Start::Stood(stood) });
        }
        let (ours, theirs) = line()?;
        send(&ours, &all)?;
        Ok(Self { program, start: Start::Fresh { ours, theirs, outputs } })
    }

    /// On the thread that never ends.
    fn spawn(self) -> io::Result<SpawnedLauncher> {
        match self.start {
            Start::Stood(stood) => Ok(stood),
            Start::Fresh { ours, theirs, outputs } => start(&self.program, ours, theirs, outputs),
        }
    }
}

/// Our end of a launcher's socket, which never blocks, and its own.
fn line() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}

fn send(line: &OwnedFd, all: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_HANDLES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(all)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    rustix::net::sendmsg(line, &[IoSlice::new(HEADER)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn start(program: &Path, ours: OwnedFd, theirs: OwnedFd, outputs: Outputs) -> io::Result<SpawnedLauncher> {
    let (stdout, out) = output(outputs.stdout)?;
    let (stderr, err) = output(outputs.stderr)?;
    // Nothing here may make the standard library fork instead: no `pre_exec`, no user, no group.
    let child = Command::new(program)
        // The program sees it as pid 1; where it lies on the host is not its business.
        .arg0("portcullis-hand")
        .arg(HIDDEN_WORD)
        .env_clear()
        // A Ctrl-C at our terminal is ours to pass on, gently.
        .process_group(0)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::from(out))
        .stderr(Stdio::from(err))
        .spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    // Not reaped by anyone yet, so the number is still its own.
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK)?;
    Ok(SpawnedLauncher { socket: ours, pidfd, stdout, stderr, cgroup: None, reaped: false })
}

/// The end that we read, if it is ours to read, and the end that is written to.
fn output(given: Option<OwnedFd>) -> io::Result<(Option<OwnedFd>, OwnedFd)> {
    if let Some(fd) = given {
        return Ok((None, fd));
    }
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Some(ours), theirs))
}

impl SpawnedLauncher {
    /// Ends everyone: init ends when nobody listens to it any more, and in a pid namespace its end is
    /// everyone's. The launcher outlives them, so that its own end says that all are gone.
    pub(crate) fn kill_tree(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }

    /// Takes the launcher's end off the kernel's books if it has come.
    pub(crate) fn reap(&mut self) -> bool {
        self.reaped = self.reaped || reap(&self.pidfd);
        self.reaped
    }
}

fn reap(pidfd: &OwnedFd) -> bool {
    let ended = rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    !matches!(ended, Ok(None) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR))
}

impl Drop for SpawnedLauncher {
    fn drop(&mut self) {
        if self.reap() {
            return;
        }
        self.kill_tree();
        // Nobody awaits it any more, and a destructor must not wait.
        if let Ok(pidfd) = self.pidfd.try_clone() {
            let ending = EndingLauncher { pidfd, since: Instant::now(), killed: false, _cgroup: self.cgroup.take() };
            let _ = on_the_thread(Job::Reap(ending));
        }
    }
}

/// A launcher that was let go and has not ended yet.
pub(super) struct EndingLauncher {
    pidfd: OwnedFd,
    since: Instant,
    killed: bool,
    _cgroup: Option<Cgroup>,
}

impl EndingLauncher {
    fn is_over(&mut self) -> bool {
        if !self.killed && self.since.elapsed() > PATIENCE {
            // Stuck before its init listens. Init dies with it.
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
            self.killed = true;
        }
        reap(&self.pidfd)
    }
}

/// A launcher that does not end by itself for so long hangs in the kernel (a dead network mount).
const PATIENCE: Duration = Duration::from_secs(2);

/// How often to look whether one has ended.
const REAP_EVERY: Duration = Duration::from_millis(20);

pub(super) enum Job {
    Spawn(Box<dyn FnOnce() + Send>),
    Reap(EndingLauncher),
}

/// Does it on the thread that never ends.
pub(super) fn on_the_thread(job: Job) -> io::Result<()> {
    static THREAD: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();
    let sender = THREAD.get_or_init(|| {
        let (sender, jobs) = mpsc::channel();
        let thread = std::thread::Builder::new().name("portcullis-hand".into());
        thread.spawn(move || serve(&jobs)).ok().map(|_| sender)
    });
    let gone = || io::Error::other("the thread that starts commands could not be started");
    sender.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())
}

fn serve(jobs: &mpsc::Receiver<Job>) {
    let mut endings: Vec<EndingLauncher> = Vec::new();
    loop {
        let job = if endings.is_empty() {
            jobs.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
        } else {
            jobs.recv_timeout(REAP_EVERY)
        };
        match job {
            Ok(Job::Spawn(spawn)) => spawn(),
            Ok(Job::Reap(ending)) => endings.push(ending),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        endings.retain_mut(|ending| !ending.is_over());
    }
}

pub(crate) async fn spawn(ready: PreparedLaunch) -> io::Result<SpawnedLauncher> {
    let program = ready.program.clone();
    let spawned = match ready.start {
        Start::Stood(stood) => stood,
        Start::Fresh { .. } => {
            let (tell, told) = tokio::sync::oneshot::channel();
            // If nobody waits any more, the send fails and drops the launcher, which ends it.
            on_the_thread(Job::Spawn(Box::new(move || drop(tell.send(ready.spawn())))))?;
            told.await.map_err(io::Error::other)??
        }
    };
    standby::launched(program);
    Ok(spawned)
}

/// Starts one that has no orders yet.
pub(super) fn stand_by(program: &Path) -> io::Result<SpawnedLauncher> {
    let (ours, theirs) = line()?;
    start(program, ours, theirs, Outputs::default())
}

pub(crate) fn spawn_blocking(ready: PreparedLaunch) -> io::Result<SpawnedLauncher> {
    let (tell, told) = mpsc::channel();
    on_the_thread(Job::Spawn(Box::new(move || drop(tell.send(ready.spawn())))))?;
    told.recv().map_err(io::Error::other)?
}
