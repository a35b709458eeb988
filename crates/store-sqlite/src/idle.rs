//! What the writer does when nobody wants anything: waiting with an end, and tidying up after it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::ballast::Ballast;
use crate::connect::BUSY_TIMEOUT;
use crate::search;
use crate::writer::BatchDesk;

/// Nothing written for this long: the store is idle.
#[cfg(not(test))]
const IDLE_AFTER: Duration = Duration::from_secs(30);
#[cfg(test)]
const IDLE_AFTER: Duration = Duration::from_millis(300);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for the next one of a queue; `Err` if none came in time, `Ok(None)` if none will.
fn receive_within<T>(queue: &mut mpsc::Receiver<T>, patience: Duration) -> Result<Option<T>, ()> {
    let end = Instant::now() + patience;
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut receiving = pin!(queue.recv());
    loop {
        if let Poll::Ready(received) = receiving.as_mut().poll(&mut context) {
            return Ok(received);
        }
        match end.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => thread::park_timeout(left),
            _ => return Err(()),
        }
    }
}

/// What is left to do once the store is idle.
pub(crate) struct Upkeep {
    ballast: Ballast,
    /// When it last saw to the ballast in the middle of work.
    looked: Instant,
    /// How much had been written when it last looked, and when it last tidied up.
    seen: u64,
    tidied: u64,
}

impl Upkeep {
    pub(crate) fn new(ballast: Ballast) -> Self {
        Self { ballast, looked: Instant::now(), seen: 0, tidied: 0 }
    }

    /// The next operation, with the chores of an idle store done while there is none.
    pub(crate) fn next<T>(&mut self, queue: &mut mpsc::Receiver<T>, desk: &BatchDesk) -> Option<T> {
        loop {
            match receive_within(queue, IDLE_AFTER) {
                Ok(next) => {
                    // A store that is never idle has a ballast as well.
                    if self.looked.elapsed() >= IDLE_AFTER {
                        self.looked = Instant::now();
                        self.see_to_ballast(desk.commits());
                    }
                    return next;
                }
                Err(()) => self.look(desk, &|| queue.is_empty()),
            }
        }
    }

    fn look(&mut self, desk: &BatchDesk, still_idle: &dyn Fn() -> bool) {
        let commits = desk.commits();
        let idle = commits == self.seen;
        self.seen = commits;
        self.see_to_ballast(commits);
        if idle && commits != self.tidied {
            self.tidied = commits;
            while still_idle() && desk.while_free(take_in) == Some(true) {}
            desk.while_free(truncate);
        }
    }

    /// A process that only reads never pays for the ballast, and one that writes pays after its answers.
    pub(crate) fn see_to_ballast(&self, commits: u64) {
        if commits > 0 {
            // Without room there is none; `doctor` asks whether it is there, and the next look tries again.
            let _ = self.ballast.keep();
        }
    }
}

/// Makes what was written searchable, one small batch; `false` if there is nothing left or someone else writes.
fn take_in(conn: &Connection) -> bool {
    let waits = conn.busy_timeout(Duration::ZERO).is_err();
    // A projection: whatever stands in the way, the next who is idle or searches takes it in.
    let taken = !waits && search::idle_catch_up(conn).unwrap_or(false);
    let _ = conn.busy_timeout(BUSY_TIMEOUT);
    taken
}

/// Moves the write-ahead log into the database and empties its file. It waits for nobody: a connection that reads or
/// writes just now is not idle, and an operation that comes meanwhile must not wait for them either.
pub(crate) fn truncate(conn: &Connection) {
    if conn.busy_timeout(Duration::ZERO).is_ok() {
        // Nothing rests on it: what stays in the log is as durable there.
        let _ = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
    let _ = conn.busy_timeout(BUSY_TIMEOUT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_a_value_with_the_queue_or_with_its_time() {
        let (queue, mut work) = mpsc::channel(1);
        assert_eq!(receive_within::<u8>(&mut work, Duration::from_millis(1)), Err(()));
        let sender = thread::spawn(move || queue.blocking_send(7).expect("it is open"));
        assert_eq!(receive_within(&mut work, Duration::from_secs(60)), Ok(Some(7)));
        sender.join().expect("no panic");
        assert_eq!(receive_within(&mut work, Duration::from_secs(60)), Ok(None));
    }
}
