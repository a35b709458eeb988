//! Hints by topic: a reader that waits for one session wakes when something happens to that session, not with every
//! commit of the store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_base::TenantId;
use portcullis_event::RowChange;
use tokio::sync::watch;

use crate::{HeadUpdate, PlannedCommit, SessionKey};

/// What a listener wants to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// The log of a session grew, or its holder gave it back.
    Session(SessionKey),
    /// An ask of the tenant was raised, answered or closed.
    Asks(TenantId),
    /// Some session is due now or has a time at which it will be.
    Due,
    /// Something waits in the outbox.
    Outbox,
}

/// Topics kept before those that nobody listens to any more are looked for. Below this, they cost less than the look.
const PRUNE_FROM: usize = 64;

/// The listeners of a store in this process.
pub struct Changes {
    all: watch::Sender<u64>,
    topics: Mutex<Topics>,
}

struct Topics {
    // In order, so that a simulated run wakes everybody in the same order each time.
    senders: BTreeMap<Topic, watch::Sender<u64>>,
    prune_at: usize,
}

impl Default for Changes {
    fn default() -> Self {
        let topics = Topics { senders: BTreeMap::new(), prune_at: PRUNE_FROM };
        Self { all: watch::Sender::new(0), topics: Mutex::new(topics) }
    }
}

impl Changes {
    /// A counter that moves with every change.
    #[must_use]
    pub fn all(&self) -> watch::Receiver<u64> {
        self.all.subscribe()
    }

    /// A counter that moves with the changes of one topic.
    #[must_use]
    pub fn of(&self, topic: Topic) -> watch::Receiver<u64> {
        let mut topics = self.topics();
        if topics.senders.len() >= topics.prune_at {
            topics.senders.retain(|_, sender| sender.receiver_count() > 0);
            topics.prune_at = (2 * topics.senders.len()).max(PRUNE_FROM);
        }
        topics.senders.entry(topic).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Something happened, and it was about these topics; a topic may stand there twice.
    pub fn note(&self, about: &[Topic]) {
        self.all.send_modify(|n| *n += 1);
        let mut about = about.to_vec();
        about.sort_unstable();
        about.dedup();
        let topics = self.topics();
        for sender in about.iter().filter_map(|topic| topics.senders.get(topic)) {
            sender.send_modify(|n| *n += 1);
        }
    }

    /// Something happened, and nobody knows what it was about: everybody looks.
    pub fn note_everything(&self) {
        self.all.send_modify(|n| *n += 1);
        for sender in self.topics().senders.values() {
            sender.send_modify(|n| *n += 1);
        }
    }

    fn topics(&self) -> MutexGuard<'_, Topics> {
        // A map of senders is whole after any panic.
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What it is about that a session was given back.
#[must_use]
pub fn given_back(key: SessionKey, update: &HeadUpdate) -> Vec<Topic> {
    let mut topics = vec![Topic::Session(key)];
    topics.extend(update.after.next_due_at.map(|_| Topic::Due));
    topics
}

impl PlannedCommit {
    /// What a commit is about, for those who listen.
    #[must_use]
    pub fn topics(&self, key: SessionKey) -> Vec<Topic> {
        let is_ask = |change: &RowChange| {
            matches!(change, RowChange::AskOpened { .. } | RowChange::AskAnswered { .. } | RowChange::AskClosed { .. })
        };
        let mut topics = vec![Topic::Session(key)];
        topics.extend(self.rows.iter().any(is_ask).then_some(Topic::Asks(key.tenant)));
        topics.extend(self.head.after.next_due_at.map(|_| Topic::Due));
        topics.extend((!self.outbox.is_empty()).then_some(Topic::Outbox));
        topics
    }
}

#[cfg(test)]
mod tests {
    use portcullis_base::SessionId;

    use super::*;

    fn session(n: u128) -> Topic {
        Topic::Session(SessionKey { tenant: TenantId::from_u128(0), session: SessionId::from_u128(n) })
    }

    #[test]
    fn topics_that_nobody_listens_to_are_let_go() {
        let changes = Changes::default();
        let kept: Vec<_> = (0..10).map(|n| changes.of(session(n))).collect();
        for n in 10..10_000 {
            drop(changes.of(session(n)));
        }
        assert!(changes.topics().senders.len() <= 2 * PRUNE_FROM);
        changes.note(&[session(3), session(3)]);
        let woken: Vec<bool> = kept.iter().map(|receiver| receiver.has_changed().expect("a sender")).collect();
        assert_eq!(woken.iter().filter(|woken| **woken).count(), 1);
        assert!(woken[3]);
    }
}
