//! The launcher itself: what this program does when it is started with the hidden word.
//!
//! It has one thread and never returns. Up to three processes come of it:
//!
//! ```text
//! Portcullis ── launcher ── init (pid 1 of its namespace) ── the program
//! ```
//!
//! The launcher makes the namespaces and then only waits; init puts up root, Landlock and seccomp,
//! starts the program, reaps, forwards signals and reports. Without namespaces the launcher is init.

mod confine;
mod etc;
mod init;
mod proc;
mod program;
mod root;
mod sys;

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::process::exit;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use rustix::process::{Signal, WaitOptions};
use rustix::thread::UnshareFlags;

use super::control::{HEADER, MAX_HANDLES};
use super::posture::Layer;
use super::wire::{Orders, Report, Step};

/// Why the launch ends here.
#[derive(Debug, Clone, Copy)]
struct Failure {
    step: Step,
    errno: Errno,
    /// The mount order it is about.
    index: u32,
}

impl Failure {
    fn at(step: Step) -> impl Fn(Errno) -> Self {
        move |errno| Self { step, errno, index: 0 }
    }
}

/// The result of one step of the launcher: an error names the step.
type StageResult<T> = Result<T, Failure>;

/// The handles that came with the orders, in their order.
struct OrderHandles {
    binds: Vec<OwnedFd>,
    stdin: Option<OwnedFd>,
    extra: Vec<OwnedFd>,
}

/// Never returns.
pub(super) fn run() -> ! {
    let Ok(socket) = sys::take_descriptor_0() else {
        eprintln!("portcullis: this is an inner part of Portcullis and not for use by hand");
        exit(2);
    };
    let failure = match launch(&socket) {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    report(&socket, Report::Failed { step: failure.step, errno: failure.errno.raw_os_error(), index: failure.index });
    exit(1)
}

fn report(socket: &OwnedFd, report: Report) {
    // If nobody listens any more, nobody is left to tell.
    let _ = rustix::net::send(socket, &report.to_bytes(), SendFlags::NOSIGNAL);
}

enum Never {}

fn launch(socket: &OwnedFd) -> StageResult<Never> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(Failure::at(Step::Descriptors))?;
    sys::put_at(&null, 0).map_err(Failure::at(Step::Descriptors))?;
    let (orders, handles) = receive(socket)?;
    die_with_parent(&orders)?;
    go_first();

    if !orders.layers.has(Layer::Namespaces) {
        return init::run(socket, &orders, handles);
    }
    namespaces(&orders)?;
    // A change of credentials clears it.
    die_with_parent(&orders)?;
    // Closed by the kernel when this process dies, however it dies.
    let (life, held) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(Failure::at(Step::ForkInit))?;
    match sys::fork().map_err(Failure::at(Step::ForkInit))? {
        sys::ForkSide::Child => {
            drop(held);
            init::tie_to(&life)?;
            init::run(socket, &orders, handles)
        }
        sys::ForkSide::Parent(pid) => {
            drop(handles);
            // The pipes of the program's output must not stay open here. The socket does: that it closes
            // says that the whole tree is gone.
            for number in [1, 2] {
                let _ = sys::put_at(&null, number);
            }
            loop {
                match rustix::process::waitpid(Some(pid), WaitOptions::empty()) {
                    Err(Errno::INTR) => {}
                    _ => exit(0),
                }
            }
        }
    }
}

/// The one message with which a launcher begins.
fn receive(socket: &OwnedFd) -> StageResult<(Orders, OrderHandles)> {
    let failed = Failure::at(Step::Orders);
    let mut header = [0_u8; HEADER.len()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_HANDLES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut header)], &mut control, RecvFlags::CMSG_CLOEXEC)
            .map_err(&failed)?;
    let mut fds: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    if received.bytes != HEADER.len() || header != *HEADER || fds.is_empty() {
        return Err(failed(Errno::PROTO));
    }
    let memory = fds.remove(0);
    let size = rustix::fs::fstat(&memory).map_err(&failed)?.st_size;
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    let mut read = 0;
    while read < bytes.len() {
        match rustix::io::pread(&memory, &mut bytes[read..], read as u64).map_err(&failed)? {
            0 => break,
            more => read += more,
        }
    }
    let orders = Orders::from_bytes(&bytes).ok_or_else(|| failed(Errno::PROTO))?;

    let mut fds = fds.into_iter();
    let cgroup = if orders.has_cgroup { fds.next() } else { None };
    let stdin = if orders.has_stdin { fds.next() } else { None };
    let binds: Vec<_> = fds.by_ref().take(orders.handles as usize).collect();
    let extra: Vec<_> = fds.collect();
    if binds.len() != orders.handles as usize || extra.len() != orders.extra_fds as usize {
        return Err(failed(Errno::PROTO));
    }
    if let Some(cgroup) = cgroup {
        rustix::io::write(&cgroup, b"0").map_err(Failure::at(Step::CgroupJoin))?;
    }
    Ok((orders, OrderHandles { binds, stdin, extra }))
}

/// The kernel kills us when our parent dies. If it died before we asked for that, we have another
/// parent by now.
fn die_with_parent(orders: &Orders) -> StageResult<()> {
    let failed = Failure::at(Step::ParentGone);
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(&failed)?;
    let parent = rustix::process::Pid::as_raw(rustix::process::getppid());
    if u32::try_from(parent) == Ok(orders.parent) { Ok(()) } else { Err(failed(Errno::SRCH)) }
}

/// If the machine runs out of memory, the command goes before anything of the person's. In the hand it
/// cannot be taken back: `/proc` is read-only.
fn go_first() {
    let file = rustix::fs::open("/proc/self/oom_score_adj", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    // Only less comfort where it fails.
    let _ = file.and_then(|file| rustix::io::write(&file, b"1000"));
}

fn namespaces(orders: &Orders) -> StageResult<()> {
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    if orders.own_network {
        flags |= UnshareFlags::NEWNET;
    }
    if !orders.layers.has(Layer::UserNamespace) {
        return sys::unshare(flags).map_err(Failure::at(Step::Namespaces));
    }
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // On its own first, so that a failure says which of them it was.
    sys::unshare(UnshareFlags::NEWUSER).map_err(Failure::at(Step::UserNamespace))?;
    let write = |path: &str, text: String| -> StageResult<()> {
        let failed = Failure::at(Step::IdMaps);
        let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).map_err(&failed)?;
        rustix::io::write(&file, text.as_bytes()).map(drop).map_err(&failed)
    };
    // Everyone is who they were, and nobody else exists.
    write("/proc/self/uid_map", format!("{uid} {uid} 1\n"))?;
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1\n"))?;
    sys::unshare(flags).map_err(Failure::at(Step::Namespaces))
}
