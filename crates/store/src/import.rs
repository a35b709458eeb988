//! Taking in a whole log of another store (store §11): the same bytes, the same digests, and rows computed here from
//! its events like everywhere.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use portcullis_base::{ArtifactId, ArtifactRef, AskId, Timestamp};
use portcullis_event::fold::Wakes;
use portcullis_event::{
    AskState, Chain, Event, RowChange, SessionStatus, facts_change, head_change, ledger_of, operator_log_of, rows,
};

use crate::plan::{Plan, PlannedCommit, ledger_checkpoint, ledger_created};
use crate::{
    ArtifactRow, Blob, Checkpoint, Commit, Head, HeadColumns, HeadUpdate, NextWake, SessionKey, StoreError, Tombstone,
    artifacts_named,
};

/// The highest fence that is taken in. A fence is counted up by one a lease: nobody ever came this far, and every
/// backend can still count on from here.
const FENCE_MOST: u64 = 1 << 62;

/// A log with the small contents that its events name.
#[derive(Debug, Clone)]
pub struct Import {
    pub key: SessionKey,
    /// The whole log, from its first event.
    pub events: Vec<Event>,
    pub blobs: Vec<Blob>,
    /// Artifacts that had expired where it comes from: they come in as tombstones.
    pub expired: BTreeSet<ArtifactId>,
}

/// A log that is here, durably.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    pub last_seq: u64,
    /// It was here before.
    pub repeat: bool,
}

/// Decides an import: what to write, or `None` if the same log is here already. The contents stay in `import`, from where a
/// backend writes them: they may be large, and are held once.
///
/// # Errors
/// The refusals of [`crate::Log::import`]; nothing may be written then.
pub fn plan_import(
    import: &Import,
    plan: Plan<'_>,
    has_artifact: &dyn Fn(ArtifactId) -> bool,
) -> Result<Option<(Commit, PlannedCommit)>, StoreError> {
    let key = import.key;
    let refused = |why: String| StoreError::NotImported { session: key.session, why };
    let (Some(first), Some(last)) = (import.events.first(), import.events.last()) else {
        return Err(refused("it has no events".to_owned()));
    };
    check_log(import).map_err(refused)?;
    if let Some(head) = plan.head {
        let same = head.last_seq == last.seq && head.last_hash == last.hash;
        return if same { Ok(None) } else { Err(StoreError::SessionExists(key.session)) };
    }
    // Append by append, as they were when they were new: a row may tell what stood beside its event.
    let appends = import.events.chunk_by(|a, b| a.append_id == b.append_id);
    let changes: Vec<RowChange> = appends.flat_map(rows).collect();
    let artifacts = artifacts_of(import, plan.now);
    // Rows of the tenant are found by these ids alone: what is there must not be replaced from a file.
    let taken_ask = changes.iter().find_map(|change| match change {
        RowChange::AskOpened { ask_id, .. } => (plan.ask)(*ask_id).map(|_| *ask_id),
        _ => None,
    });
    if let Some(ask) = taken_ask {
        return Err(refused(format!("ask {ask} belongs to another session here")));
    }
    let mut queued = HashSet::new();
    let twice = changes.iter().find_map(|change| match change {
        RowChange::WakeQueued { wake, .. } => (!queued.insert(wake.queued_wake_id)).then_some(wake.queued_wake_id),
        _ => None,
    });
    if let Some(wake) = twice {
        return Err(refused(format!("wake {wake} is queued twice")));
    }
    if let Some(row) = artifacts.iter().find(|row| has_artifact(row.artifact.id)) {
        return Err(refused(format!("artifact {} belongs to another session here", row.artifact.id)));
    }

    let before = Head::new(key.session, plan.now);
    let mut head = head_of(import, &changes, before.clone());
    let mut outbox = vec![ledger_created(key, first.hash, plan.ids, plan.now)];
    let checkpoint = plan.key.map(|mac_key| {
        let mac = mac_key.mac(key.session, last.seq, last.hash);
        Checkpoint { seq: last.seq, hash: last.hash, mac: mac.to_vec() }
    });
    if let Some(checkpoint) = &checkpoint {
        head.checkpoint_seq = checkpoint.seq;
        outbox.push(ledger_checkpoint(key, checkpoint, plan.ids, plan.now));
    }
    let mut commit = Commit::client(key, last.append_id, Vec::new());
    commit.artifacts = artifacts;
    let planned = PlannedCommit {
        events: import.events.clone(),
        rows: changes,
        facts: facts_change(&import.events),
        head: HeadUpdate::new(before, head, &HeadColumns::ALL),
        created: true,
        checkpoint,
        outbox,
    };
    Ok(Some((commit, planned)))
}

/// The chain from its beginning, and that it is the log of a session.
fn check_log(import: &Import) -> Result<(), String> {
    let SessionKey { tenant, session } = import.key;
    if session == ledger_of(tenant) || session == operator_log_of(tenant) {
        return Err("a store keeps its own ledger and operator log; they are evidence, not sessions".to_owned());
    }
    if import.events.first().is_some_and(|event| event.kind.as_str() != "session.created") {
        return Err("it does not begin with the creation of its session".to_owned());
    }
    let mut chain = Chain::start(session);
    let mut ids = HashSet::with_capacity(import.events.len());
    let mut fence = 0;
    for event in &import.events {
        chain.step(event).map_err(|fault| fault.to_string())?;
        if !ids.insert(event.id) {
            return Err(format!("event {} has the id of an earlier one", event.seq));
        }
        if event.fence.is_some_and(|found| found > FENCE_MOST) {
            return Err(format!("event {} has a fence that no store ever gave", event.seq));
        }
        if event.fence.is_some_and(|found| found < fence) {
            return Err(format!("event {} has an older fence than one before it", event.seq));
        }
        fence = event.fence.unwrap_or(fence);
    }
    let wrong = import.blobs.iter().find(|blob| portcullis_base::Digest::of(&blob.bytes) != blob.sha256);
    wrong.map_or(Ok(()), |blob| Err(format!("the content {} has another hash", blob.sha256)))
}

fn artifacts_of(import: &Import, now: Timestamp) -> Vec<ArtifactRow> {
    let named = import.events.iter().flat_map(artifacts_named).map(|artifact| (artifact.id, artifact));
    let by_id: BTreeMap<ArtifactId, _> = named.collect();
    let row = |artifact: ArtifactRef| {
        let tombstone = import.expired.contains(&artifact.id).then_some(Tombstone { at: now, freed: true });
        ArtifactRow { tombstone, ..ArtifactRow::new(import.key.session, artifact) }
    };
    by_id.into_values().map(row).collect()
}

/// The head after the last event; the next lease has a higher fence than any in the log (S3).
fn head_of(import: &Import, changes: &[RowChange], mut head: Head) -> Head {
    let mut pending: HashSet<AskId> = HashSet::new();
    for change in changes {
        match change {
            RowChange::AskOpened { ask_id, .. } => drop(pending.insert(*ask_id)),
            RowChange::AskAnswered { ask_id, .. } => drop(pending.remove(ask_id)),
            RowChange::AskClosed { ask_id, state, .. } if *state != AskState::Pending => drop(pending.remove(ask_id)),
            _ => {}
        }
    }
    let change = head_change(&import.events, |_| false);
    if let Some(last) = import.events.last() {
        head.last_seq = last.seq;
        head.last_hash = last.hash;
    }
    head.fence = import.events.iter().filter_map(|event| event.fence).max().unwrap_or(0);
    head.blocked_n = pending.len() as u64;
    head.status = change.status.unwrap_or(head.status);
    // Whether anything is left to do only its holder can tell: it looks, and goes idle (S11).
    let work = change.answered || change.woken || (change.pending_input && pending.is_empty());
    head.failure_streak = change.failure_streak(0);
    head.wake = Wakes::fold(&import.events).next().map(|(due_at, priority)| NextWake { due_at, priority });
    head.work_due_at = (work && head.status != SessionStatus::Terminated).then_some(head.updated_at);
    head.reckon();
    head
}
