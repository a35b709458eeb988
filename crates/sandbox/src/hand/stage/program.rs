//! The last process of a launch: limits, descriptors, working directory, exec.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal};

use super::super::posture::Layer;
use super::super::wire::{Orders, Step};
use super::{Failure, StageResult, confine, sys};

/// Returns only on failure.
pub(super) fn become_it(orders: &Orders, init: Pid, stdin: Option<OwnedFd>, extra: Vec<OwnedFd>) -> Failure {
    match prepare(orders, init, stdin, extra) {
        Ok(()) => exec(orders),
        Err(failure) => failure,
    }
}

fn prepare(orders: &Orders, init: Pid, stdin: Option<OwnedFd>, extra: Vec<OwnedFd>) -> StageResult<()> {
    let failed = Failure::at(Step::ForkProgram);
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(&failed)?;
    if rustix::process::getppid() != Some(init) {
        return Err(failed(Errno::SRCH));
    }
    // A session of its own: no terminal, and a group that can be signalled as one.
    rustix::process::setsid().map_err(&failed)?;
    sys::reset_signals();
    rustix::process::chdir(super::super::wire::as_path(&orders.cwd)).map_err(Failure::at(Step::Cwd))?;
    descriptors(stdin, extra).map_err(Failure::at(Step::Descriptors))?;
    limits(orders).map_err(Failure::at(Step::Limits))?;
    if orders.layers.has(Layer::Landlock) && !orders.layers.has(Layer::Namespaces) {
        // Init is in the same Landlock domain. Who could kill it would outlive it.
        confine::no_signals_out().map_err(Failure::at(Step::Landlock))?;
    }
    Ok(())
}

/// The given descriptors at 0 and from 3 on, everything else gone at exec.
fn descriptors(stdin: Option<OwnedFd>, extra: Vec<OwnedFd>) -> Result<(), Errno> {
    let count = i32::try_from(extra.len()).map_err(|_| Errno::MFILE)?;
    let first_free = 3 + count;
    // Out of the way first: one of them may stand where another one goes.
    let moved: Vec<OwnedFd> =
        extra.iter().map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, first_free)).collect::<Result<_, _>>()?;
    drop(extra);
    if let Some(stdin) = stdin {
        sys::put_at(&stdin, 0)?;
    }
    for (fd, number) in moved.iter().zip(3..) {
        sys::put_at(fd, number)?;
    }
    sys::cloexec_from(first_free.cast_unsigned())?;
    drop(moved);
    Ok(())
}

/// What `RLIMIT_NPROC` must be so that the tree may have `pids` processes.
///
/// In a user namespace of our own the kernel counts that namespace alone (since Linux 5.14; a namespace is used from 5.12
/// on). Without one it counts every process and thread of the user, so those of now are added: a person with thousands of
/// them could otherwise start nothing. Root is never held by it; a cgroup or the pid namespace holds root.
fn processes(orders: &Orders) -> u64 {
    let pids = orders.limits.pids;
    if pids == u64::MAX || orders.layers.has(Layer::UserNamespace) {
        return pids;
    }
    pids.saturating_add(tasks_of(rustix::process::getuid().as_raw()))
}

/// Processes and threads of a user, as far as they are in sight.
fn tasks_of(uid: u32) -> u64 {
    let Ok(all) = std::fs::read_dir("/proc") else { return 0 };
    let is_pid = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let theirs = all.flatten().filter(|entry| is_pid(&entry.file_name()));
    let theirs = theirs.filter(|entry| entry.metadata().is_ok_and(|meta| meta.uid() == uid));
    let tasks = |entry: std::fs::DirEntry| std::fs::read_dir(entry.path().join("task")).map_or(1, Iterator::count);
    theirs.map(tasks).sum::<usize>() as u64
}

fn limits(orders: &Orders) -> Result<(), Errno> {
    let limits = &orders.limits;
    let one = |resource, value: u64| {
        if value == u64::MAX {
            return Ok(());
        }
        // Never above what we were given ourselves.
        let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let value = Some(value.min(most));
        rustix::process::setrlimit(resource, Rlimit { current: value, maximum: value })
    };
    // With 0 a handler that the kernel pipes cores to is still started, as root and outside; not with 1.
    one(Resource::Core, 1)?;
    one(Resource::Cpu, limits.cpu_seconds)?;
    one(Resource::Data, limits.data_bytes)?;
    one(Resource::Nproc, processes(orders))?;
    one(Resource::Fsize, limits.file_size)?;
    one(Resource::Nofile, limits.open_files)
}

fn exec(orders: &Orders) -> Failure {
    let failed = Failure::at(Step::Exec);
    let strings = |list: &[Vec<u8>]| list.iter().map(|one| CString::new(one.as_slice())).collect::<Result<Vec<_>, _>>();
    let (Ok(argv), Ok(env)) = (strings(&orders.argv), strings(&orders.env)) else { return failed(Errno::INVAL) };
    let Some(program) = argv.first() else { return failed(Errno::INVAL) };
    if program.as_bytes().contains(&b'/') {
        return failed(sys::execve(program, &argv, &env));
    }
    let path = orders.env.iter().find_map(|one| one.strip_prefix(b"PATH=")).unwrap_or(b"/usr/bin:/bin");
    let mut worst = Errno::NOENT;
    // An empty entry would mean the working directory, which is no place to look for programs.
    for folder in path.split(|byte| *byte == b':').filter(|folder| !folder.is_empty()) {
        let Ok(candidate) = CString::new([folder, b"/", program.as_bytes()].concat()) else { continue };
        match sys::execve(&candidate, &argv, &env) {
            Errno::NOENT | Errno::NOTDIR => {}
            Errno::ACCESS => worst = Errno::ACCESS,
            other => return failed(other),
        }
    }
    failed(worst)
}
