//! A process tree that runs, from its start to the end of its last process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::Signal;
use tokio::io::unix::AsyncFd;

use super::cgroup::Cgroup;
use super::control::{Request, TARGET_MAIN, TARGET_OTHERS, TARGET_TREE};
use super::disk::DiskWatch;
use super::spawn::SpawnedLauncher;
use super::watch::watch;
use super::wire::{REPORT_BYTES, Report};
use super::{Posture, Unheld};

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    /// Also when the tree was killed from here.
    Signal(i32),
}

/// How a process tree ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessEnd {
    pub exit: Exit,
    /// The kernel killed something in the tree for want of memory. Only known with a cgroup.
    pub out_of_memory: bool,
    /// The tree could not have another process or thread. Only known with a cgroup.
    pub out_of_processes: bool,
}

impl ProcessEnd {
    /// Of a tree that was killed and of which nothing else is known.
    pub(crate) const KILLED: Self =
        Self { exit: Exit::Signal(Signal::KILL.as_raw()), out_of_memory: false, out_of_processes: false };
}

/// Who gets a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Tree,
    /// The program itself.
    Main,
    /// Everyone but the program itself: what a shell has started, but not the shell.
    Others,
}

/// Dropping it kills the whole tree.
#[derive(Debug)]
pub struct Running {
    inner: SpawnedLauncher,
    socket: AsyncFd<OwnedFd>,
    pidfd: AsyncFd<OwnedFd>,
    posture: Posture,
    unheld: Vec<Unheld>,
    watched: Vec<WatchedGuard>,
    disk: DiskWatch,
    exit: Option<Exit>,
    /// The launcher told of the end and let go of the socket.
    told: bool,
}

impl Running {
    pub(super) fn new(mut inner: SpawnedLauncher, posture: Posture, cgroup: Option<Cgroup>) -> io::Result<Self> {
        inner.cgroup = cgroup;
        let socket = watch(inner.socket.try_clone()?)?;
        let pidfd = watch(inner.pidfd.try_clone()?)?;
        Ok(Self {
            inner,
            socket,
            pidfd,
            posture,
            unheld: Vec::new(),
            watched: Vec::new(),
            disk: DiskWatch::default(),
            exit: None,
            told: false,
        })
    }

    pub(super) fn with(mut self, unheld: Vec<Unheld>, watched: Vec<WatchedGuard>, disk: DiskWatch) -> Self {
        self.unheld = unheld;
        self.watched = watched;
        self.disk = disk;
        self
    }

    /// The reading end of its output. A daemon may hold the other end after the program has ended:
    /// after [`wait`](Self::wait) drain it for a while, never to its end.
    pub fn take_stdout(&mut self) -> Option<OwnedFd> {
        self.inner.stdout.take()
    }

    pub fn take_stderr(&mut self) -> Option<OwnedFd> {
        self.inner.stderr.take()
    }

    /// The isolation it really has.
    #[must_use]
    pub fn posture(&self) -> &Posture {
        &self.posture
    }

    /// Promises marked [`Hold::IfPossible`](super::Hold::IfPossible) that this level does not keep.
    #[must_use]
    pub fn unheld(&self) -> &[Unheld] {
        &self.unheld
    }

    /// Guarded places that were not there at the launch and are now, whichever process made them. Before its
    /// content is used on the host, a person must look at it. Works at any time, also after the end.
    #[must_use]
    pub fn appeared(&self) -> Vec<PathBuf> {
        self.watched.iter().filter(|one| one.is_there()).map(|one| one.place.clone()).collect()
    }

    /// Watches whether too little space is left where the tree may write
    /// ([`Limits::disk_use`](super::Limits::disk_use)), counted from before its launch. The waiter ends the tree.
    #[must_use]
    pub fn disk_since_launch(&self) -> DiskWatch {
        self.disk.clone()
    }

    /// The same, counted from now: for the next command of a shell, before it is given to it.
    #[must_use]
    pub fn disk_from_now(&self) -> DiskWatch {
        self.disk.anew()
    }

    /// The next report of the launcher; none when it is gone.
    pub(super) async fn report(&self) -> io::Result<Option<Report>> {
        loop {
            let mut ready = self.socket.readable().await?;
            let mut bytes = [0; REPORT_BYTES];
            match rustix::net::recv(self.socket.get_ref(), &mut bytes, RecvFlags::DONTWAIT) {
                Ok((_, 0)) | Err(Errno::CONNRESET) => return Ok(None),
                Ok((_, count)) => return Ok(Report::from_bytes(&bytes[..count])),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits until the program has ended and nobody of its tree is left; never for its output. May be
    /// dropped and called again.
    ///
    /// # Errors
    ///
    /// Only if the runtime cannot watch descriptors.
    pub async fn wait(&mut self) -> io::Result<ProcessEnd> {
        while !self.told {
            match self.report().await? {
                Some(Report::Exited { status }) => self.exit = Some(exit_of(status)),
                Some(_) => {}
                // The launcher lets go of the socket when it has seen the last of the tree. Its own end
                // takes the kernel longer, and nobody needs to wait for that.
                None if self.exit.is_some() => self.told = true,
                // Killed together with its init.
                None => {
                    while !self.inner.reap() {
                        self.pidfd.readable().await?.clear_ready();
                    }
                    self.told = true;
                }
            }
        }
        let exit = self.exit.unwrap_or(Exit::Signal(Signal::KILL.as_raw()));
        let cgroup = self.inner.cgroup.as_ref();
        Ok(ProcessEnd {
            exit,
            out_of_memory: cgroup.is_some_and(Cgroup::out_of_memory),
            out_of_processes: cgroup.is_some_and(Cgroup::out_of_processes),
        })
    }

    /// Sends a signal. Who has ended already does not get it; that is no error.
    ///
    /// # Errors
    ///
    /// If the request cannot be handed over although the tree is there.
    pub fn signal(&self, signal: Signal, target: Target) -> io::Result<()> {
        let target = match target {
            Target::Tree => TARGET_TREE,
            Target::Main => TARGET_MAIN,
            Target::Others => TARGET_OTHERS,
        };
        let signal = u8::try_from(signal.as_raw()).map_err(io::Error::other)?;
        let bytes = Request { signal, target }.to_bytes();
        match rustix::net::send(self.inner.socket.as_fd(), &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(_) | Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Kills everyone, whatever they block. [`wait`](Self::wait) says when they are gone.
    pub fn kill_tree(&self) {
        self.inner.kill_tree();
    }
}

fn exit_of(status: i32) -> Exit {
    let status = std::process::ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(Signal::KILL.as_raw())),
    }
}

/// A guarded place that did not exist, and how it is found again on the host.
#[derive(Debug)]
pub(super) struct WatchedGuard {
    pub(super) place: PathBuf,
    pub(super) root: Arc<OwnedFd>,
    pub(super) rest: PathBuf,
}

impl WatchedGuard {
    /// Step by step. A link on the way may lead to anything, so it counts as the thing itself.
    pub(super) fn is_there(&self) -> bool {
        use rustix::fs::{FileType, Mode, OFlags};
        let mut here = Arc::clone(&self.root);
        for part in Path::new(&self.rest).components() {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let next = match rustix::fs::openat(&here, part.as_os_str(), flags, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::NOENT | Errno::NOTDIR) => return false,
                Err(_) => return true,
            };
            let is_link = rustix::fs::fstat(&next)
                .map_or(true, |stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
            if is_link {
                return true;
            }
            here = Arc::new(next);
        }
        true
    }
}
