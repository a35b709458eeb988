//! Who of this process is next at a key. The store's `locks` rows keep processes apart; inside one,
//! waiters stand in line here, first come, first served (tool-contract §14).
//!
//! A ticket is granted when nobody who came earlier wants a key that conflicts with one of its own.
//! All keys or none, in order of arrival: no two can wait for each other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::SessionId;
use portcullis_store::conflicts;
use tokio::sync::Notify;

/// The line in front of the keys of one location.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyLine {
    line: Arc<Mutex<TicketQueue>>,
}

/// The tickets of the calls that wait for keys.
#[derive(Debug, Default)]
struct TicketQueue {
    next: u64,
    /// In order of arrival; a ticket stays here while its keys are held.
    tickets: Vec<Ticket>,
}

#[derive(Debug)]
struct Ticket {
    number: u64,
    session: SessionId,
    keys: Vec<String>,
    turn: Arc<Notify>,
}

impl TicketQueue {
    /// Those before `number` who want what it wants.
    fn in_the_way(&self, number: u64) -> impl Iterator<Item = &Ticket> {
        let at = self.tickets.iter().position(|ticket| ticket.number == number).unwrap_or(0);
        let mine = self.tickets.get(at);
        self.tickets[..at].iter().filter(move |other| mine.is_some_and(|mine| collide(&other.keys, &mine.keys)))
    }
}

fn collide(some: &[String], others: &[String]) -> bool {
    some.iter().any(|a| others.iter().any(|b| conflicts(a, b)))
}

/// A place in the line; the keys are held once [`KeyHold::granted`] returned. Dropped, it is given up.
#[derive(Debug)]
pub(crate) struct KeyHold {
    line: KeyLine,
    number: u64,
    turn: Arc<Notify>,
}

impl KeyLine {
    fn lock(&self) -> MutexGuard<'_, TicketQueue> {
        // Nothing panics between two changes that belong together.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the line. No keys, no line: such a call waits for nobody.
    pub(crate) fn join(&self, session: SessionId, keys: Vec<String>) -> Option<KeyHold> {
        if keys.is_empty() {
            return None;
        }
        let turn = Arc::new(Notify::new());
        let mut line = self.lock();
        let number = line.next;
        line.next += 1;
        line.tickets.push(Ticket { number, session, keys, turn: Arc::clone(&turn) });
        Some(KeyHold { line: self.clone(), number, turn })
    }
}

impl KeyHold {
    /// How many before this one want what it wants.
    pub(crate) fn before(&self) -> usize {
        self.line.lock().in_the_way(self.number).count()
    }

    /// A key it waits for, and the session that has it or is next at it.
    pub(crate) fn blocked_by(&self) -> Option<(String, SessionId)> {
        let line = self.line.lock();
        let mine = line.tickets.iter().find(|ticket| ticket.number == self.number)?;
        let other = line.in_the_way(self.number).next()?;
        let key = other.keys.iter().find(|key| mine.keys.iter().any(|own| conflicts(key, own)))?;
        Some((key.clone(), other.session))
    }

    /// Waits for its turn.
    pub(crate) async fn granted(&self) {
        // A permit that was given between the look and the wait is kept by `Notify`.
        while self.before() > 0 {
            self.turn.notified().await;
        }
    }
}

impl Drop for KeyHold {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        let Some(at) = line.tickets.iter().position(|ticket| ticket.number == self.number) else { return };
        let left = line.tickets.remove(at);
        for waiting in line.tickets[at..].iter().filter(|other| collide(&other.keys, &left.keys)) {
            waiting.turn.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use proptest::prelude::*;

    use super::*;

    const SESSION: SessionId = SessionId::from_u128(1);

    fn keys(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test]
    async fn l42_the_first_who_came_is_the_first_who_goes() {
        let line = KeyLine::default();
        let holder = line.join(SESSION, keys(&["fs:/a"])).expect("a key");
        let first = line.join(SESSION, keys(&["fs:/a/b"])).expect("a key");
        let late = line.join(SESSION, keys(&["fs:/a/b"])).expect("a key");
        let apart = line.join(SESSION, keys(&["fs:/c"])).expect("a key");
        assert!(holder.granted().now_or_never().is_some());
        assert!(apart.granted().now_or_never().is_some(), "who wants something else does not wait");
        assert_eq!((first.before(), late.before()), (1, 2));
        drop(holder);
        assert!(late.granted().now_or_never().is_none(), "not before the one who came earlier");
        first.granted().await;
        drop(first);
        late.granted().await;
    }

    #[tokio::test]
    async fn l42_who_leaves_the_line_lets_the_next_one_pass() {
        let line = KeyLine::default();
        let holder = line.join(SESSION, keys(&["fs:/a"])).expect("a key");
        let impatient = line.join(SESSION, keys(&["fs:/a", "fs:/b"])).expect("keys");
        let behind = line.join(SESSION, keys(&["fs:/b"])).expect("a key");
        assert!(behind.granted().now_or_never().is_none());
        drop(impatient);
        behind.granted().await;
        drop(holder);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any workload comes to its end, and no two that conflict are ever inside together.
        #[test]
        fn l42_conflicting_holds_never_overlap_and_nobody_waits_for_ever(
            wants in prop::collection::vec(prop::collection::vec(0usize..6, 1..4), 1..24),
            seed in any::<u64>(),
        ) {
            const NAMES: [&str; 6] = ["fs:/r", "fs:/r/a", "fs:/r/a/x", "fs:/r/b", "mcp:s", "*"];
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()
                .expect("a runtime");
            let ended = Arc::new(AtomicUsize::new(0));
            let count = wants.len();
            let all = Arc::clone(&ended);
            runtime.block_on(async move {
                let line = KeyLine::default();
                let inside: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
                let mut tasks = tokio::task::JoinSet::new();
                for (n, want) in wants.into_iter().enumerate() {
                    let want = keys(&want.iter().map(|k| NAMES[*k]).collect::<Vec<_>>());
                    let hold = line.join(SESSION, want.clone()).expect("keys");
                    let (inside, ended) = (Arc::clone(&inside), Arc::clone(&all));
                    let pause = (seed.rotate_left(u32::try_from(n).unwrap_or(0)) % 7) + 1;
                    tasks.spawn(async move {
                        hold.granted().await;
                        {
                            let mut inside = inside.lock().expect("no panic");
                            assert!(!inside.iter().any(|other| collide(other, &want)), "{inside:?} and {want:?}");
                            inside.push(want.clone());
                        }
                        tokio::time::sleep(Duration::from_millis(pause)).await;
                        inside.lock().expect("no panic").retain(|other| *other != want);
                        drop(hold);
                        ended.fetch_add(1, Ordering::SeqCst);
                    });
                }
                while let Some(task) = tasks.join_next().await {
                    task.expect("no panic");
                }
            });
            prop_assert_eq!(ended.load(Ordering::SeqCst), count);
        }
    }
}
