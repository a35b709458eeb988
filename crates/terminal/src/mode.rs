//! The mode of the terminal: it gives single keys while someone asks for them, and is as it was whichever way the process
//! ends or stands still. Only SIGKILL leaves it as it is.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use tokio::sync::Notify;

use crate::signals::{heeded, next};

/// How the terminal was when this process first looked at it.
static BEFORE: OnceLock<Termios> = OnceLock::new();
/// How it was when the process was told to stand still.
static STOPPED: Mutex<Option<Termios>> = Mutex::new(None);
/// Whether it was told to mark what is pasted.
static PASTES: AtomicBool = AtomicBool::new(false);
/// The process stood still and goes on: what was on the screen may be gone.
pub static CONTINUED: Notify = Notify::const_new();

const MARK_PASTES: &[u8] = b"\x1b[?2004h";
const LEAVE_PASTES: &[u8] = b"\x1b[?2004l";

/// Remembers how the terminal is, and sees to it that it is so again when the process ends.
pub fn keep() -> io::Result<()> {
    if BEFORE.get().is_none() && BEFORE.set(tcgetattr(io::stdin().as_fd())?).is_ok() {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            told(info);
        }));
        listen()?;
    }
    Ok(())
}

/// Whether this process is the one that the terminal is for. In the background it must neither read nor change it: the
/// kernel would stop it.
pub fn in_front() -> bool {
    let ours = rustix::process::getpgrp();
    // One that controls no processes stops none.
    rustix::termios::tcgetpgrp(io::stdin()).map_or(true, |group| group == ours)
}

/// The terminal as it was. Asked for again and again it does no harm.
pub fn give_back() {
    if let Some(before) = BEFORE.get().filter(|_| in_front()) {
        pastes_are_marked(false);
        // The terminal is gone or it is restored; there is no third thing to do.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, before);
    }
}

/// Gives every key at once and shows none. Ctrl-C still interrupts.
pub fn one_by_one() -> io::Result<()> {
    keep()?;
    let Some(before) = BEFORE.get().filter(|_| in_front()) else { return Ok(()) };
    let mut mode = before.clone();
    mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    mode.special_codes[SpecialCodeIndex::VMIN] = 1;
    mode.special_codes[SpecialCodeIndex::VTIME] = 0;
    Ok(tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &mode)?)
}

/// Whether the terminal tells what is pasted from what is typed.
pub fn pastes_are_marked(marked: bool) {
    if PASTES.swap(marked, Ordering::Relaxed) != marked {
        write(if marked { MARK_PASTES } else { LEAVE_PASTES });
    }
}

fn write(bytes: &[u8]) {
    let mut out = io::stdout();
    // Nobody is left to be told that nobody can be told.
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Ends and stops by a signal leave the terminal as it was. On a thread of its own: whatever the process does, it is heard.
fn listen() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    let (mut terms, mut hups, mut quits) = (heeded(Signal::TERM), heeded(Signal::HUP), heeded(Signal::QUIT));
    let (mut stops, mut goes_on) = (heeded(Signal::TSTP), heeded(Signal::CONT));
    drop(entered);
    std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
        runtime.block_on(async move {
            loop {
                tokio::select! {
                    () = next(&mut terms) => end(Signal::TERM),
                    () = next(&mut hups) => end(Signal::HUP),
                    () = next(&mut quits) => end(Signal::QUIT),
                    () = next(&mut stops) => stop(),
                    () = next(&mut goes_on) => go_on(),
                }
            }
        });
    })?;
    Ok(())
}

/// As a shell tells of a process that a signal ended.
fn end(by: Signal) -> ! {
    give_back();
    std::process::exit(128 + by.as_raw())
}

fn stop() {
    let marked = PASTES.load(Ordering::Relaxed);
    if let Ok(now) = tcgetattr(io::stdin().as_fd()) {
        *STOPPED.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
    give_back();
    PASTES.store(marked, Ordering::Relaxed);
    // It cannot be refused.
    let _ = kill_process(getpid(), Signal::STOP);
}

fn go_on() {
    // Whoever is put into the background first gets it back with the next such signal.
    if !in_front() {
        return;
    }
    let Some(mode) = STOPPED.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    // As in `give_back`.
    let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &mode);
    if PASTES.load(Ordering::Relaxed) {
        write(MARK_PASTES);
    }
    CONTINUED.notify_waiters();
}
