//! What `grep`, `glob` and `artifact_grep` share: patterns, the order of paths, what was left out, and
//! how a search is stopped.

pub(crate) mod anchors;
pub(crate) mod file_search;
pub(crate) mod left_out;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod order;
pub(crate) mod pattern;
pub(crate) mod pieces;
pub(crate) mod scope;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use portcullis_contract::ToolContext;

use crate::off_thread;

/// Threads of one search; a machine with more has other calls to serve too.
const THREADS_MAX: usize = 8;

/// How many threads a search uses.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// Runs a search off the runtime's threads. It is told to stop when the call is cancelled, and when
/// nobody waits for it any more.
pub(crate) async fn stoppable<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> T {
    struct StopOnDrop(Arc<AtomicBool>);
    impl Drop for StopOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    let guard = StopOnDrop(Arc::clone(&stop));
    let running = off_thread(move || work(&stop));
    let mut running = std::pin::pin!(running);
    tokio::select! {
        // The cancel first: a search that has not begun by then stops at once.
        biased;
        _ = context.cancelled() => {
            drop(guard);
            running.await
        }
        done = &mut running => done,
    }
}
