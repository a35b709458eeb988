//! Hints about commits of other processes: SQLite has no notification, but a counter that moves. The writer's own
//! connection is asked for it, because there the commits of this process do not move it: their listeners were told
//! already, each of its own topic. Of another process nobody knows what it wrote, so everybody is told.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::writer::{BatchDesk, WriterShared};

/// How late a hint about another process may be (store §7).
const POLL: Duration = Duration::from_millis(100);

/// Runs while someone listens; started by the first listener, ended with the store.
pub(crate) struct Poll {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Poll {
    pub(crate) fn start(desk: BatchDesk, shared: Arc<WriterShared>) -> Self {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let watched = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("portcullis-notices".to_owned())
            .spawn(move || poll(&desk, &shared, &watched))
            // Without the thread hints of other processes are lost, which listeners must bear anyway.
            .ok();
        Self { stop, thread }
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let (stopped, wake) = &*self.stop;
        *stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // It only reads; what it met last does not matter any more.
            let _ = thread.join();
        }
    }
}

fn poll(desk: &BatchDesk, shared: &WriterShared, stop: &(Mutex<bool>, Condvar)) {
    let (stopped, wake) = stop;
    let mut seen: Option<i64> = None;
    let mut guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
    while !*guard {
        drop(guard);
        let asked = desk.once_free(|conn| conn.pragma_query_value(None, "data_version", |row| row.get(0)));
        // Without a connection, after a fault, there is nothing to compare. A new one counts anew, and may tell everybody
        // once too often.
        let version: Option<i64> = asked.and_then(Result::ok);
        if version.is_some() && seen.is_some() && seen != version {
            shared.changes.note_everything();
        }
        seen = version.or(seen);
        guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*guard {
            guard = wake.wait_timeout(guard, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
