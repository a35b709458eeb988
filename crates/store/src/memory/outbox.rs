//! The outbox: what waits inside the store, and what others are to be told when it is due.

use std::time::Duration;

use portcullis_base::{OutboxId, Timestamp};

use super::Tables;
use crate::{ClaimedEntry, OutboxEntry};

/// An entry, and how far it is.
pub(super) struct OutboxRow {
    entry: OutboxEntry,
    next_at: Timestamp,
    attempts: u32,
}

impl Tables {
    pub(super) fn put_outbox(&mut self, entry: OutboxEntry) {
        let row = OutboxRow { next_at: entry.due_at(), attempts: 0, entry };
        self.outbox.insert(row.entry.id, row);
    }

    pub(super) fn outbox_inside(&self, limit: usize) -> Vec<OutboxEntry> {
        let inside = self.outbox.values().map(|row| &row.entry).filter(|entry| !entry.leaves_the_store());
        inside.take(limit).cloned().collect()
    }

    pub(super) fn claim_outbox(&mut self, limit: usize, (now, ttl): (Timestamp, Duration)) -> Vec<ClaimedEntry> {
        let due = self.outbox.values_mut().filter(|row| row.entry.leaves_the_store() && row.next_at <= now);
        let mut due: Vec<&mut OutboxRow> = due.collect();
        due.sort_by_key(|row| (row.next_at, row.entry.id));
        let claim = |row: &mut OutboxRow| {
            row.attempts += 1;
            // Nobody else takes it before then.
            row.next_at = now.plus(ttl);
            ClaimedEntry { entry: row.entry.clone(), attempt: row.attempts }
        };
        due.into_iter().take(limit).map(claim).collect()
    }

    pub(super) fn outbox_failed(&mut self, id: OutboxId, attempt: u32, next_at: Timestamp) -> bool {
        let row = self.outbox.get_mut(&id).filter(|row| row.attempts == attempt && row.entry.leaves_the_store());
        row.map(|row| row.next_at = next_at).is_some()
    }
}
