//! A launcher that stands by: started before it is needed, it waits for its orders.
//!
//! To start our own program and have its parts put in place takes longer than all that a launcher then does; a process
//! that has started commands will start more, and has that done while the last one runs. It holds nothing but its line and
//! two pipes, and ends when its line does: with us, however we end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::spawn::{Job, SpawnedLauncher, on_the_thread, stand_by};

/// Who starts one command may be done with it (`portcullis call`); who starts two goes on.
const ENOUGH: u32 = 2;

static LAUNCHED: AtomicU32 = AtomicU32::new(0);
static STANDS: Mutex<Option<(PathBuf, SpawnedLauncher)>> = Mutex::new(None);

/// The one that stands by, if it is of this program.
pub(super) fn take(program: &Path) -> Option<SpawnedLauncher> {
    let mut stands = STANDS.lock().unwrap_or_else(PoisonError::into_inner);
    stands.take_if(|(whose, _)| whose == program).map(|(_, spawned)| spawned)
}

/// A command was started: from the second on another launcher is made to stand by. If that fails, the next one is started
/// when it is needed.
pub(super) fn launched(program: PathBuf) {
    if LAUNCHED.fetch_add(1, Ordering::Relaxed) + 1 < ENOUGH {
        return;
    }
    let _ = on_the_thread(Job::Spawn(Box::new(move || {
        let stands = || STANDS.lock().unwrap_or_else(PoisonError::into_inner);
        if stands().as_ref().is_some_and(|(whose, _)| *whose == program) {
            return;
        }
        if let Ok(spawned) = stand_by(&program) {
            let before = stands().replace((program, spawned));
            // Dropped without the lock: that ends it.
            drop(before);
        }
    })));
}
