//! Pid 1 of a hand: puts up what is left to put up, starts the program, and stays until it ends.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::process::exit;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, WaitOptions};

use super::super::control::{OUT_OF_THE_WAY, Request, TARGET_MAIN, TARGET_OTHERS, TARGET_TREE};
use super::super::posture::Layer;
use super::super::wire::{Orders, Report, Step};
use super::{Failure, Never, OrderHandles, StageResult, confine, program, report, root, sys};

/// Dies with the launcher outside. Its process id cannot be seen from in here, so whether it died
/// before we asked is read from a pipe that only it holds open.
pub(super) fn tie_to(life: &OwnedFd) -> StageResult<()> {
    let failed = Failure::at(Step::ParentGone);
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(&failed)?;
    let mut ends = [PollFd::new(life, PollFlags::IN)];
    match rustix::event::poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(0) => Ok(()),
        _ => Err(failed(Errno::SRCH)),
    }
}

pub(super) fn run(socket: &OwnedFd, orders: &Orders, handles: OrderHandles) -> StageResult<Never> {
    let OrderHandles { binds, stdin, extra } = handles;
    let own_pids = orders.layers.has(Layer::Namespaces);
    if own_pids {
        // A name of ours: the host's is nobody's business.
        rustix::system::sethostname(b"hand").map_err(Failure::at(Step::Hostname))?;
        if orders.own_network {
            // Without a loopback the network is off all the same; tests of real projects want one.
            let _ = sys::loopback_up();
        }
    } else {
        // Our death would leave the tree behind, so it is the closed socket that tells us of the end.
        rustix::process::set_parent_process_death_signal(None).map_err(Failure::at(Step::ParentGone))?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(Failure::at(Step::ForkProgram))?;
    }
    let grants = if orders.layers.has(Layer::PrivateRoot) {
        root::build(orders, &binds)?;
        root::grants(orders)?
    } else {
        root::host_grants(orders, &binds)?
    };
    confine::confine(orders, grants)?;
    drop(binds);
    if orders.probe {
        report(socket, Report::Started);
        exit(0);
    }

    let signals = sys::child_signals().map_err(Failure::at(Step::ForkProgram))?;
    let (told, low) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(Failure::at(Step::ForkProgram))?;
    // Away from the numbers where the program's own descriptors go.
    let tell = rustix::io::fcntl_dupfd_cloexec(&low, OUT_OF_THE_WAY).map_err(Failure::at(Step::ForkProgram))?;
    drop(low);
    let me = rustix::process::getpid();
    let main = match sys::fork().map_err(Failure::at(Step::ForkProgram))? {
        sys::ForkSide::Child => {
            drop(told);
            let failure = program::become_it(orders, me, stdin, extra);
            let bytes = Report::Failed { step: failure.step, errno: failure.errno.raw_os_error(), index: 0 }.to_bytes();
            let _ = rustix::io::write(&tell, &bytes);
            exit(127);
        }
        sys::ForkSide::Parent(pid) => pid,
    };
    drop((tell, stdin, extra));
    // The other end is closed by a successful exec, or it tells what went wrong.
    let mut bytes = [0; super::super::wire::REPORT_BYTES];
    match read_whole(&told, &mut bytes) {
        Ok(0) => report(socket, Report::Started),
        Ok(_) => {
            let failed = Report::from_bytes(&bytes);
            let fallback = Report::Failed { step: Step::Exec, errno: Errno::PROTO.raw_os_error(), index: 0 };
            report(socket, failed.unwrap_or(fallback));
            exit(1);
        }
        Err(errno) => return Err(Failure::at(Step::Exec)(errno)),
    }
    supervise(socket, &signals, main, own_pids)
}

fn read_whole(from: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::read(from, &mut *into) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Reaps everyone, carries out requests, and ends when the program does or when nobody listens.
fn supervise(socket: &OwnedFd, signals: &OwnedFd, main: Pid, own_pids: bool) -> ! {
    loop {
        let mut ends = [PollFd::new(signals, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
        match rustix::event::poll(&mut ends, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => finish(main, own_pids),
        }
        if !ends[1].revents().is_empty() {
            let mut bytes = [0; Request::BYTES];
            match rustix::net::recv(socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((_, count)) if count == bytes.len() => carry_out(Request::from_bytes(bytes), main, own_pids),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // Portcullis let go of it, or is gone: so is the command.
                _ => finish(main, own_pids),
            }
        }
        let mut drain = [0; 128];
        while rustix::io::read(signals, &mut drain).is_ok() {}
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == main {
                // What is left of the tree goes first: who hears of the end finds nobody alive.
                if !own_pids {
                    kill_descendants();
                }
                report(socket, Report::Exited { status: status.as_raw() });
                exit(0);
            }
        }
    }
}

/// In a pid namespace our end is everyone's.
fn finish(main: Pid, own_pids: bool) -> ! {
    if !own_pids {
        let _ = sys::kill_many(-main.as_raw_nonzero().get(), libc::SIGKILL);
        kill_descendants();
    }
    exit(0)
}

fn carry_out(request: Request, main: Pid, own_pids: bool) {
    let Request { signal, target } = request;
    let signal = i32::from(signal);
    let main = main.as_raw_nonzero().get();
    match target {
        TARGET_MAIN => {
            let _ = sys::kill_many(main, signal);
        }
        TARGET_TREE if own_pids => {
            let _ = sys::kill_many(-1, signal);
        }
        TARGET_TREE | TARGET_OTHERS => {
            for pid in descendants() {
                if target == TARGET_TREE || pid != main {
                    let _ = sys::kill_many(pid, signal);
                }
            }
        }
        _ => {}
    }
}

/// Everyone below us, by the kernel's own lists.
fn descendants() -> Vec<i32> {
    let mut found = Vec::new();
    let mut todo = vec![rustix::process::getpid().as_raw_nonzero().get()];
    let mut seen = HashSet::new();
    while let Some(pid) = todo.pop() {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for thread in threads.flatten() {
            let Ok(children) = std::fs::read_to_string(thread.path().join("children")) else { continue };
            for child in children.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
                if seen.insert(child) {
                    found.push(child);
                    todo.push(child);
                }
            }
        }
    }
    found
}

/// How often to look again for a process that was born while we looked. A bomb is bounded by its limits
/// long before.
const KILL_ROUNDS: usize = 10_000;

/// Where there is no namespace to end: stops everyone first, so that nobody is born while we look,
/// then kills them.
fn kill_descendants() {
    for _ in 0..KILL_ROUNDS {
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        let alive = descendants();
        if alive.is_empty() {
            return;
        }
        for signal in [libc::SIGSTOP, libc::SIGKILL] {
            for pid in &alive {
                let _ = sys::kill_many(*pid, signal);
            }
        }
    }
}
