//! Hints about commits of other processes: SQLite has no notification, but a counter that moves.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use crate::connect::DatabaseFile;

/// How late a hint about another process may be (store §7).
const POLL: Duration = Duration::from_millis(100);

/// Runs while someone listens; started by the first listener, ended with the store.
pub(crate) struct Poll {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Poll {
    pub(crate) fn start(place: DatabaseFile, changes: watch::Sender<u64>) -> Self {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let watched = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("portcullis-notices".to_owned())
            .spawn(move || poll(&place, &changes, &watched))
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

fn poll(place: &DatabaseFile, changes: &watch::Sender<u64>, stop: &(Mutex<bool>, Condvar)) {
    let (stopped, wake) = stop;
    let mut conn = None;
    let mut seen: Option<i64> = None;
    let mut guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
    while !*guard {
        drop(guard);
        if conn.is_none() {
            conn = place.reader().ok();
            seen = None;
        }
        let version: Option<i64> =
            conn.as_ref().and_then(|c| c.pragma_query_value(None, "data_version", |row| row.get(0)).ok());
        match version {
            // The counter of another connection says nothing.
            None => conn = None,
            Some(_) if seen.is_some() && seen != version => changes.send_modify(|n| *n += 1),
            Some(_) => {}
        }
        seen = version;
        guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*guard {
            guard = wake.wait_timeout(guard, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
