//! Wakes that nobody took up yet: what a session will do at a later time.

use std::collections::BTreeMap;

use portcullis_base::{QueuedWakeId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::facts::{Priority, WakeQueued};
use crate::{Body, Event};

/// The pending wakes of a session, by id.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Wakes {
    pending: BTreeMap<QueuedWakeId, WakeQueued>,
}

impl FromIterator<WakeQueued> for Wakes {
    fn from_iter<I: IntoIterator<Item = WakeQueued>>(wakes: I) -> Self {
        Self { pending: wakes.into_iter().map(|wake| (wake.queued_wake_id, wake)).collect() }
    }
}

impl Wakes {
    /// The fold of a whole log, of this concern alone.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut wakes = Self::default();
        for event in events {
            wakes.apply(event, &event.body_ref());
        }
        wakes
    }

    pub(super) fn apply(&mut self, _event: &Event, body: &Body) {
        match body {
            Body::WakeQueued(wake) => self.queue(wake),
            Body::WakeConsumed(taken) => self.settle(&taken.queued_wake_ids),
            Body::WakeCancelled(cancelled) => self.settle(&cancelled.queued_wake_ids),
            _ => {}
        }
    }

    /// One more, unless one with its key is pending: that one stays as it is, but for the earlier due time (store §6).
    pub fn queue(&mut self, wake: &WakeQueued) {
        if self.pending.contains_key(&wake.queued_wake_id) {
            return;
        }
        match self.like(wake) {
            Some(known) => known.due_at = known.due_at.min(wake.due_at),
            None => {
                self.pending.insert(wake.queued_wake_id, wake.clone());
            }
        }
    }

    fn like(&mut self, wake: &WakeQueued) -> Option<&mut WakeQueued> {
        let key = wake.dedupe_key.as_ref()?;
        self.pending.values_mut().find(|known| known.dedupe_key.as_ref() == Some(key))
    }

    /// They were taken up or cancelled.
    pub fn settle(&mut self, ids: &[QueuedWakeId]) {
        for id in ids {
            self.pending.remove(id);
        }
    }

    /// One that is pending.
    #[must_use]
    pub fn get(&self, id: QueuedWakeId) -> Option<&WakeQueued> {
        self.pending.get(&id)
    }

    /// Those that are pending, in the order of their ids.
    pub fn pending(&self) -> impl Iterator<Item = &WakeQueued> {
        self.pending.values()
    }

    /// How many are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether none is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// When the earliest is due, and how urgent that one is; of several at one time, the most urgent counts.
    #[must_use]
    pub fn next(&self) -> Option<(Timestamp, Priority)> {
        let soonest = self.pending.values().min_by_key(|wake| (wake.due_at, std::cmp::Reverse(wake.priority)))?;
        Some((soonest.due_at, soonest.priority))
    }
}
