//! One commit on the maps: find repeats, let the shared plan decide, write rows.

use std::collections::BTreeMap;

use portcullis_base::Timestamp;
use portcullis_event::facts::WakeState;
use portcullis_event::{IntentState, RowChange};

use super::{LockRow, MemoryStore, StoredResponse, Tables};
use crate::plan::{AskNow, Plan, PlannedCommit};
use crate::{
    AskRow, Commit, Committed, HeldLock, IntentRow, LockKey, Reads, SessionKey, StoreError, WakeRow, Writer,
    lingers_until, reads,
};

impl Tables {
    /// The answer to a commit that took effect before.
    pub(super) fn repeat(&self, commit: &Commit) -> Result<Option<Committed>, StoreError> {
        let last_seq = self.heads.get(&commit.key).map_or(0, |head| head.last_seq);
        let again = |response| Committed { events: Vec::new(), last_seq, repeat: true, response };
        if let Some(wanted) = &commit.idempotency {
            let key = (commit.key.tenant, wanted.route.clone(), wanted.key.clone());
            if let Some(StoredResponse { body_hash, response, .. }) = self.idempotency.get(&key) {
                if *body_hash != wanted.body_hash {
                    return Err(StoreError::IdempotencyMismatch(wanted.key.clone()));
                }
                return Ok(Some(again(Some(response.clone()))));
            }
        }
        // What was delivered before is left out by now.
        if matches!(&commit.writer, Writer::Outbox { deliveries } if deliveries.is_empty()) {
            return Ok(Some(again(None)));
        }
        let known = commit.events.first().is_some_and(|draft| self.event_ids.contains(&(commit.key, draft.id)));
        Ok(known.then(|| again(None)))
    }

    pub(super) fn is_delivered(&self, to: SessionKey, key: &str) -> bool {
        self.delivered.contains(&(to, key.to_owned()))
    }

    /// Writes a planned commit. Infallible: every check came before.
    pub(super) fn apply(&mut self, commit: Commit, planned: PlannedCommit, now: Timestamp) -> Committed {
        let key = commit.key;
        // Before the rows: an intent that settles in this very append keeps no sensitive value.
        self.sealed.extend(commit.sealed.into_iter().map(|(intent, bytes)| ((key, intent), bytes)));
        for change in planned.rows {
            self.apply_row(key, change);
        }
        self.apply_facts(key, &planned.facts);
        for lock in commit.free {
            let of = (key.tenant, lock);
            if self.locks.get(&of).is_some_and(|row| row.session == key.session) {
                self.locks.remove(&of);
            }
        }
        for lock in commit.linger {
            if let Some(row) = self.locks.get_mut(&(key.tenant, lock)).filter(|row| row.session == key.session) {
                row.until = Some(lingers_until(now));
            }
        }
        let taken = LockRow { session: key.session, until: None };
        self.locks.extend(commit.take.into_iter().map(|lock| ((key.tenant, lock), taken)));
        self.blobs.extend(commit.blobs.into_iter().map(|blob| ((key.tenant, blob.sha256), blob.bytes)));
        for row in commit.artifacts {
            self.artifacts.insert((key.tenant, row.artifact.id), row);
        }
        for write in commit.records {
            self.write_record(key.tenant, write, now);
        }
        let response = commit.idempotency.map(|wanted| {
            let row = StoredResponse { body_hash: wanted.body_hash, response: wanted.response.clone(), at: now };
            self.idempotency.insert((key.tenant, wanted.route, wanted.key), row);
            wanted.response
        });
        if let Writer::Outbox { deliveries } = commit.writer {
            self.delivered.extend(deliveries.into_iter().map(|delivery| (key, delivery.key)));
        }
        self.checkpoints.entry(key).or_default().extend(planned.checkpoint);
        for entry in planned.outbox {
            self.put_outbox(entry);
        }
        let last_seq = planned.head.after.last_seq;
        self.heads.apply(key, planned.head);
        self.event_ids.extend(planned.events.iter().map(|event| (key, event.id)));
        self.events.entry(key).or_default().extend(planned.events.iter().cloned());
        Committed { events: planned.events, last_seq, repeat: false, response }
    }

    pub(super) fn planned(
        &self,
        store: &MemoryStore,
        commit: &Commit,
        now: Timestamp,
        decide: fn(&Commit, Plan<'_>) -> Result<PlannedCommit, StoreError>,
    ) -> Result<PlannedCommit, StoreError> {
        // What is not listed, a backend that fetches everything at once would not have at hand.
        let listed = cfg!(debug_assertions).then(|| reads(commit));
        let is_listed = |held: &dyn Fn(&Reads) -> bool| debug_assert!(listed.as_ref().is_none_or(held), "{listed:?}");
        decide(
            commit,
            Plan {
                now,
                ids: &*store.ids,
                key: store.key.as_ref(),
                head: self.heads.get(&commit.key).cloned(),
                ask: &|ask| {
                    is_listed(&|reads| reads.asks.contains(&ask));
                    let row = self.asks.get(&(commit.key.tenant, ask))?;
                    Some(AskNow { session: row.session_id, state: row.state, expires_at: row.expires_at })
                },
                intent: &|intent| {
                    is_listed(&|reads| reads.intents.contains(&intent));
                    Some(self.intents.get(&commit.key)?.get(&intent)?.state)
                },
                wake: &|wake| {
                    is_listed(&|reads| reads.wakes.contains(&wake));
                    Some(self.wakes.get(&commit.key)?.get(&wake)?.state)
                },
                wakes: &|| {
                    is_listed(&|reads| reads.pending_wakes);
                    self.pending_wakes(commit.key).map(|row| row.wake.clone()).collect()
                },
                locks: &|location| {
                    is_listed(&|reads| reads.locations.contains(&location));
                    let there = self
                        .locks
                        .iter()
                        .filter(|((tenant, lock), _)| *tenant == commit.key.tenant && lock.location == location);
                    let held = |((_, lock), row): (&(_, LockKey), &LockRow)| HeldLock {
                        key: lock.key.clone(),
                        session: row.session,
                        until: row.until,
                    };
                    there.map(held).collect()
                },
            },
        )
    }

    pub(super) fn apply_row(&mut self, key: SessionKey, change: RowChange) {
        match change {
            RowChange::Session(row) => {
                self.sessions.insert(key, row);
            }
            admitted @ RowChange::IntentAdmitted { .. } => {
                let row = IntentRow::admitted(key.session, admitted);
                self.intents.entry(key).or_default().extend(row.map(|row| (row.intent_id, row)));
            }
            RowChange::IntentMoved { intent_id, state, invocation_id, seq } => {
                if state == IntentState::Observed {
                    self.sealed.remove(&(key, intent_id));
                }
                if let Some(row) = self.intents.entry(key).or_default().get_mut(&intent_id) {
                    row.moved(state, invocation_id, seq);
                }
            }
            opened @ RowChange::AskOpened { .. } => {
                let row = AskRow::opened(key.session, opened);
                self.asks.extend(row.map(|row| ((key.tenant, row.ask_id), row)));
            }
            RowChange::AskAnswered { ask_id, reply, approver, seq } => {
                if let Some(row) = self.asks.get_mut(&(key.tenant, ask_id)) {
                    row.answered(reply, approver, seq);
                }
            }
            RowChange::AskClosed { ask_id, state, .. } => {
                if let Some(row) = self.asks.get_mut(&(key.tenant, ask_id)) {
                    row.state = state;
                }
            }
            RowChange::WakeQueued { wake, at, seq } => {
                WakeRow::queue(self.wakes.entry(key).or_default(), key.session, (wake, at, seq));
            }
            RowChange::WakesSettled { queued_wake_ids, state, seq } => {
                let rows = self.wakes.entry(key).or_default();
                for id in queued_wake_ids {
                    if let Some(row) = rows.get_mut(&id) {
                        row.settled(state, seq);
                    }
                }
            }
        }
    }

    pub(super) fn pending_wakes(&self, key: SessionKey) -> impl Iterator<Item = &WakeRow> {
        let rows = self.wakes.get(&key).into_iter().flat_map(BTreeMap::values);
        rows.filter(|row| row.state == WakeState::Pending)
    }
}
