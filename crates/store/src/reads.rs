//! What a commit looks up before it writes, known from the commit alone: a backend that is far away asks for all of it in
//! one round trip, and [`crate::plan`] then finds every answer at hand.

use std::collections::BTreeSet;

use portcullis_base::{AskId, EventId, IntentId, LocationId, QueuedWakeId};
use portcullis_event::{IntentState, RowChange, rows};

use crate::plan::seal;
use crate::{Commit, Head, Writer};

/// Rows that the plan of a commit and the checks around it may ask for, besides the head of its log. All are of the
/// commit's tenant; intents, wakes, deliveries and events are of its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// The stored response to an equal request: route and key.
    pub idempotency: Option<(String, String)>,
    /// Keys of deliveries that may have been made before.
    pub deliveries: Vec<String>,
    /// The event by which a repeated commit is recognised.
    pub first_event: Option<EventId>,
    pub asks: BTreeSet<AskId>,
    pub intents: BTreeSet<IntentId>,
    pub wakes: BTreeSet<QueuedWakeId>,
    /// All wakes of the session that are pending.
    pub pending_wakes: bool,
    /// Places whose held keys must be compared with those that the commit takes. Where there can be several writers at
    /// once, the row of each is locked first, in this order.
    pub locations: BTreeSet<LocationId>,
    /// Kind and id of records whose version counts.
    pub records: BTreeSet<(String, String)>,
}

/// Lists what a commit will look up. It may list more than the plan comes to ask for, never less.
#[must_use]
pub fn reads(commit: &Commit) -> Reads {
    let mut reads = Reads {
        idempotency: commit.idempotency.as_ref().map(|wanted| (wanted.route.clone(), wanted.key.clone())),
        deliveries: match &commit.writer {
            Writer::Outbox { deliveries } => deliveries.iter().map(|delivery| delivery.key.clone()).collect(),
            Writer::Worker { .. } | Writer::Client => Vec::new(),
        },
        first_event: commit.events.first().map(|draft| draft.id),
        locations: commit.take.iter().map(|lock| lock.location).collect(),
        records: commit.records.iter().map(|write| (write.kind.clone(), write.id.clone())).collect(),
        ..Reads::default()
    };
    // Which rows change does not depend on where in the log the events will stand.
    let nowhere = Head::new(commit.key.session, portcullis_base::Timestamp::from_micros(0));
    let events: Vec<_> =
        commit.events.iter().map(|draft| seal(draft, commit.append_id, None, None, &nowhere)).collect();
    let mut begun: BTreeSet<IntentId> = BTreeSet::new();
    for change in rows(&events) {
        match change {
            RowChange::AskAnswered { ask_id, .. } | RowChange::AskClosed { ask_id, .. } => {
                reads.asks.insert(ask_id);
            }
            RowChange::IntentAdmitted { intent_id, .. } => {
                begun.insert(intent_id);
            }
            RowChange::IntentMoved { intent_id, state: IntentState::Started | IntentState::Observed, .. } => {
                reads.intents.insert(intent_id);
            }
            RowChange::WakeQueued { wake, .. } => {
                reads.pending_wakes = true;
                reads.wakes.insert(wake.queued_wake_id);
            }
            RowChange::WakesSettled { queued_wake_ids, .. } => {
                reads.pending_wakes = true;
                reads.wakes.extend(queued_wake_ids);
            }
            RowChange::Session(_) | RowChange::IntentMoved { .. } | RowChange::AskOpened { .. } => {}
        }
    }
    // How far an intent is that begins in this very commit, only the commit can say.
    reads.intents.retain(|intent| !begun.contains(intent));
    reads
}
