//! Waiting for what a person types, without taking what is typed after nobody listens any more.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How soon a reader notices that nobody listens any more.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Waits until standard input has something. `false`: nobody wants it any more, or it is broken.
pub fn comes(stop: &AtomicBool) -> bool {
    let stdin = io::stdin();
    while !stop.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ready, Some(&GLANCE)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // Looked at again: what comes after the stop is another's.
            Ok(_) => return !stop.load(Ordering::Relaxed),
            Err(_) => return false,
        }
    }
    false
}
