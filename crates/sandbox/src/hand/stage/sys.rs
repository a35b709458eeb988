//! The kernel calls of a launcher that no crate of ours has as safe functions. All the `unsafe` of
//! the hand is here, one call a function.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn check(result: libc::c_long) -> Result<(), Errno> {
    if result < 0 { Err(last()) } else { Ok(()) }
}

pub(super) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: the one danger of this call is `FILES`, which no caller passes.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Which side of a fork this process is.
pub(super) enum ForkSide {
    Child,
    Parent(Pid),
}

/// Only for a process with one thread, which a launcher is: it starts none.
pub(super) fn fork() -> Result<ForkSide, Errno> {
    // SAFETY: there is no other thread whose locks the child could inherit taken, so the child may do
    // whatever the parent may.
    match unsafe { libc::fork() } {
        -1 => Err(last()),
        0 => Ok(ForkSide::Child),
        pid => Pid::from_raw(pid).map(ForkSide::Parent).ok_or(Errno::INVAL),
    }
}

/// Returns only on failure.
pub(super) fn execve(program: &CString, argv: &[CString], env: &[CString]) -> Errno {
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|one| one.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end with a null and point to strings that outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    last()
}

/// Attributes of a mount given by its handle, and of all mounts in it if `recursive`.
pub(super) fn mount_setattr(mount: impl AsFd, set: u64, recursive: bool) -> Result<(), Errno> {
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: an open handle, a path that ends with a null, and a struct of exactly the size given.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
}

/// Blocks `SIGCHLD` and makes it readable.
pub(super) fn child_signals() -> Result<OwnedFd, Errno> {
    // SAFETY: the set is initialised by `sigemptyset` before it is used, and `signalfd` with -1 makes
    // a new descriptor that nobody else owns.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())?;
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(fd.into())?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// No signal blocked, every one with its default action: what a program expects of its start.
pub(super) fn reset_signals() {
    // SAFETY: the set is initialised before use; setting default actions touches no memory of ours.
    // What cannot be set (KILL, STOP) fails without effect.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// `kill(2)` with its special targets: -1 is everyone in the pid namespace but init, -n a group.
pub(super) fn kill_many(target: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: sends a signal; no memory is involved.
    check(unsafe { libc::kill(target, signal) }.into())
}

/// Marks every descriptor from `first` on as closed by `exec`.
pub(super) fn cloexec_from(first: u32) -> Result<(), Errno> {
    // SAFETY: sets a flag; no descriptor changes its owner.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) })
}

/// Puts a copy of `fd` at exactly this number and leaves it open over `exec`.
pub(super) fn put_at(fd: impl AsFd, number: i32) -> Result<(), Errno> {
    // SAFETY: the caller moved everything it still needs away from `number`.
    check(unsafe { libc::dup2(fd.as_fd().as_raw_fd(), number) }.into())
}

/// Takes over the socket that `posix_spawn` put at descriptor 0.
pub(super) fn take_descriptor_0() -> Result<OwnedFd, Errno> {
    // SAFETY: called once, first thing in the launcher; nothing else in it owns descriptor 0. The copy
    // is new and ours.
    unsafe {
        let copy = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, super::super::control::OUT_OF_THE_WAY);
        check(copy.into())?;
        Ok(OwnedFd::from_raw_fd(copy))
    }
}

/// Brings up the loopback of a network namespace of our own.
pub(super) fn loopback_up() -> Result<(), Errno> {
    // SAFETY: the request is zeroed, its name ends with a null, and it outlives both calls; the socket
    // is closed by its owner.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        check(socket.into())?;
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
            *to = from.cast_signed();
        }
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request).into())?;
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request).into())
    }
}
