//! What a commit does, decided once for every backend: seqs, chain, rows, head, checkpoint, outbox.
//!
//! A backend reads the head and what a commit looks up ([`crate::reads`]), calls [`plan`] inside its transaction,
//! and applies the result. No backend decides anything itself, so they cannot differ.

use portcullis_base::limits::{APPEND_EVENTS, APPEND_MOST, CHECKPOINT_EVERY, PENDING_WAKES};
use portcullis_base::{
    AppendId, AskId, Digest, EventId, IdGen, IntentId, LocationId, OutboxId, QueuedWakeId, SessionId, TenantId,
    Timestamp,
};
use portcullis_event::facts::{LedgerCheckpoint, LedgerSessionCreated, WakeState};
use portcullis_event::fold::Wakes;
use portcullis_event::{
    AskState, CheckpointKey, Draft, Event, EventBody, EventType, FactsChange, InputKind, IntentState, RowChange,
    SessionStatus, chain_hash, facts_change, head_change, ledger_of, operator_log_of, rows,
};

use crate::HeadColumns::{Holder, Line, Log};
use crate::erase::erasure;
use crate::locks::check_locks;
use crate::{
    Checkpoint, Commit, Head, HeadUpdate, HeldLock, NextWake, OutboxEntry, OutboxKind, SessionKey, StoreError, Writer,
};

/// The type of the event that a session begins with.
const CREATION: &str = "session.created";

/// What planning needs to know besides the commit.
pub struct Plan<'a> {
    pub now: Timestamp,
    pub ids: &'a dyn IdGen,
    pub key: Option<&'a CheckpointKey>,
    pub head: Option<Head>,
    /// An ask of this tenant.
    pub ask: &'a dyn Fn(AskId) -> Option<AskNow>,
    /// How far an intent of this session is.
    pub intent: &'a dyn Fn(IntentId) -> Option<IntentState>,
    /// Where a wake of this session stands.
    pub wake: &'a dyn Fn(QueuedWakeId) -> Option<WakeState>,
    /// The pending wakes of this session.
    pub wakes: &'a dyn Fn() -> Wakes,
    /// All keys that are held in a location of this tenant, by name. It locks the row of the location first, where there
    /// can be several writers at once; a plan asks for locations in the order of their ids.
    pub locks: &'a dyn Fn(LocationId) -> Vec<HeldLock>,
}

/// An ask as it stands before a commit.
#[derive(Debug, Clone, Copy)]
pub struct AskNow {
    pub session: SessionId,
    pub state: AskState,
    pub expires_at: Timestamp,
}

/// Everything a backend must write, together.
#[derive(Debug)]
pub struct PlannedCommit {
    pub events: Vec<Event>,
    pub rows: Vec<RowChange>,
    pub facts: FactsChange,
    /// Of a log that begins here, the row is written whole.
    pub head: HeadUpdate,
    pub created: bool,
    pub checkpoint: Option<Checkpoint>,
    pub outbox: Vec<OutboxEntry>,
}

/// Decides a commit. Repeats (same append, same dedupe key) are the backend's to find first.
///
/// # Errors
/// The refusals of [`StoreError`]; nothing may be written then.
pub fn plan(commit: &Commit, plan: Plan<'_>) -> Result<PlannedCommit, StoreError> {
    // The eraser itself records that something was erased, in the same write.
    if let Some(draft) = commit.events.iter().find(|draft| erasure(draft).is_some()) {
        return Err(StoreError::NotTheirs { writer: "a commit", kind: draft.kind.clone() });
    }
    plan_any(commit, plan)
}

pub(crate) fn plan_any(commit: &Commit, plan: Plan<'_>) -> Result<PlannedCommit, StoreError> {
    let bytes = commit.bytes();
    // One event may be over the byte limit by itself: an observation with its content cannot be split.
    if commit.events.len() > APPEND_EVENTS || (bytes > APPEND_MOST && commit.events.len() > 1) {
        return Err(StoreError::TooLarge { events: commit.events.len(), bytes });
    }
    check_writer(commit)?;
    let created = plan.head.is_none();
    let mut head = match plan.head {
        Some(head) => {
            if commit.events.first().is_some_and(is_creation) {
                return Err(StoreError::SessionExists(commit.key.session));
            }
            head
        }
        None if may_create(commit) => Head::new(commit.key.session, plan.now),
        None => return Err(StoreError::NoSession(commit.key.session)),
    };
    let before = head.clone();
    let (worker_id, fence) = match &commit.writer {
        Writer::Worker { worker, fence } => {
            if *fence != head.fence {
                return Err(StoreError::FenceLost { session: commit.key.session, ours: *fence, found: head.fence });
            }
            (Some(*worker), Some(*fence))
        }
        Writer::Client | Writer::Outbox { .. } => (None, None),
    };

    if commit.writer == Writer::Client && !created {
        check_ingress(commit, &head)?;
    }
    let mut events = Vec::with_capacity(commit.events.len());
    for draft in &commit.events {
        let event = seal(draft, commit.append_id, worker_id, fence, &head);
        head.last_seq = event.seq;
        head.last_hash = event.hash;
        events.push(event);
    }
    let changes = rows(&events);
    check_answers(commit.key.session, &changes, plan.now, plan.ask)?;
    check_intents(&changes, plan.intent)?;
    let wakes = wakes_after(&changes, plan.wake, plan.wakes)?;
    check_locks(commit, plan.now, plan.locks)?;

    let change = head_change(&events, |ask| (plan.ask)(ask).is_some_and(|ask| ask.state == AskState::Pending));
    head.blocked_n = head.blocked_n.saturating_add_signed(change.blocked);
    head.status = change.status.unwrap_or(head.status);
    head.updated_at = plan.now;
    head.failure_streak = change.failure_streak(head.failure_streak);
    if let Some(wakes) = wakes {
        head.wake = wakes.next().map(|(due_at, priority)| NextWake { due_at, priority });
    }
    head.reckon();
    // While blocked only an answer makes the session due (store §4).
    let work = change.answered || change.woken || (change.pending_input && head.blocked_n == 0);
    if work && head.status != SessionStatus::Terminated {
        head.has_work(plan.now);
    }

    let mut outbox = commit.outbox.clone();
    let is_ledger = commit.key.session == ledger_of(commit.key.tenant);
    if created
        && !is_ledger
        && let Some(first) = events.first()
    {
        outbox.push(ledger_created(commit.key, first.hash, plan.ids, plan.now));
    }
    let due = head.last_seq / CHECKPOINT_EVERY > head.checkpoint_seq / CHECKPOINT_EVERY;
    let checkpoint = plan.key.filter(|_| !events.is_empty() && (commit.idle || due)).map(|key| {
        let mac = key.mac(commit.key.session, head.last_seq, head.last_hash);
        Checkpoint { seq: head.last_seq, hash: head.last_hash, mac: mac.to_vec() }
    });
    if let Some(checkpoint) = &checkpoint {
        head.checkpoint_seq = checkpoint.seq;
        if !is_ledger {
            outbox.push(ledger_checkpoint(commit.key, checkpoint, plan.ids, plan.now));
        }
    }
    let facts = facts_change(&events);
    // Whether there is work is decided by the line as it stands, also where that stays as it is.
    let head = HeadUpdate::new(before, head, if fence.is_some() { &[Log, Holder, Line] } else { &[Log, Line] });
    Ok(PlannedCommit { events, rows: changes, facts, head, created, checkpoint, outbox })
}

/// The ledger's entry of a session that begins here.
pub(crate) fn ledger_created(key: SessionKey, first_hash: Digest, ids: &dyn IdGen, now: Timestamp) -> OutboxEntry {
    let fact = LedgerSessionCreated { session_id: key.session, first_hash };
    to_ledger(key, format!("created:{}", key.session), &fact, ids, now)
}

/// The ledger's entry of a checkpoint.
pub(crate) fn ledger_checkpoint(
    key: SessionKey,
    checkpoint: &Checkpoint,
    ids: &dyn IdGen,
    now: Timestamp,
) -> OutboxEntry {
    let fact = LedgerCheckpoint { session_id: key.session, seq: checkpoint.seq, hash: checkpoint.hash };
    to_ledger(key, format!("checkpoint:{}:{}", key.session, checkpoint.seq), &fact, ids, now)
}

pub(crate) fn to_ledger<B: EventBody>(
    key: SessionKey,
    dedupe: String,
    fact: &B,
    ids: &dyn IdGen,
    now: Timestamp,
) -> OutboxEntry {
    OutboxEntry {
        id: OutboxId::make(ids, now),
        tenant: key.tenant,
        at: now,
        work: OutboxKind::Session {
            session_id: ledger_of(key.tenant),
            dedupe,
            event_id: EventId::make(ids, now),
            append_id: AppendId::make(ids, now),
            event_type: B::KIND.as_str().to_owned(),
            payload: fact.to_payload(),
            copied_from: None,
        },
    }
}

/// Store §1: a client and a delivery append only the types that are theirs. The operator log's types are no session
/// events and stand in no such table.
fn check_writer(commit: &Commit) -> Result<(), StoreError> {
    let refused = |writer, kind: &EventType| Err(StoreError::NotTheirs { writer, kind: kind.clone() });
    // Looked at here already: an entry that can never be delivered would hold up all that come after it.
    for entry in &commit.outbox {
        check_entry(commit.key.tenant, entry)?;
    }
    let (writer, may): (_, fn(&EventType) -> bool) = match commit.writer {
        Writer::Worker { .. } => return Ok(()),
        Writer::Client if commit.key.session == operator_log_of(commit.key.tenant) => return Ok(()),
        Writer::Client => ("a client", |kind| kind.writers().client()),
        // A session that is made here is also given what a client could say to it.
        Writer::Outbox { .. } if commit.events.first().is_some_and(is_creation) => ("an outbox", may_begin_with),
        Writer::Outbox { .. } => ("an outbox", |kind| kind.writers().outbox()),
    };
    match commit.events.iter().find(|draft| !may(&draft.kind)) {
        Some(draft) => refused(writer, &draft.kind),
        None => Ok(()),
    }
}

/// Whether a delivery that makes a session may hold an event of this type.
fn may_begin_with(kind: &EventType) -> bool {
    kind.writers().client() || kind.writers().outbox()
}

/// Whether an entry can be delivered at all, as far as that is known when it is written.
fn check_entry(tenant: TenantId, entry: &OutboxEntry) -> Result<(), StoreError> {
    let (session_id, types): (SessionId, Vec<&str>) = match &entry.work {
        OutboxKind::Session { session_id, event_type, .. } => (*session_id, vec![event_type]),
        OutboxKind::Create { session_id, events, .. } | OutboxKind::Deliver { session_id, events, .. } => {
            (*session_id, events.iter().map(|event| event.event_type.as_str()).collect())
        }
        OutboxKind::Webhook { .. } => (ledger_of(entry.tenant), Vec::new()),
    };
    // Of another tenant nothing can be reached, and nothing is known (S14).
    if entry.tenant != tenant {
        return Err(StoreError::NoSession(session_id));
    }
    let makes = matches!(entry.work, OutboxKind::Create { .. });
    if makes && types.first() != Some(&CREATION) {
        return Err(StoreError::NoSession(session_id));
    }
    if types.len() > APPEND_EVENTS {
        return Err(StoreError::TooLarge { events: types.len(), bytes: 0 });
    }
    let may = if makes { may_begin_with } else { |kind: &EventType| kind.writers().outbox() };
    let kinds = types.into_iter().map(|word| EventType::recorded(word.to_owned()));
    let refused =
        kinds.filter(|kind| !may(kind)).map(|kind| StoreError::NotTheirs { writer: "an outbox", kind }).next();
    refused.map_or(Ok(()), Err)
}

/// Agent-runtime 3.3, in the transaction of the append: no input reaches a session that ended, and a decision that was
/// made on an older log is made again.
fn check_ingress(commit: &Commit, head: &Head) -> Result<(), StoreError> {
    let session = commit.key.session;
    let input = commit.events.iter().any(|draft| draft.kind.input_kind() == InputKind::Input);
    if input && head.status == SessionStatus::Terminated {
        return Err(StoreError::Terminated(session));
    }
    match commit.only_at {
        Some(seen) if seen != head.last_seq => Err(StoreError::MovedOn { session, found: head.last_seq }),
        _ => Ok(()),
    }
}

fn is_creation(draft: &Draft) -> bool {
    draft.kind.as_str() == CREATION
}

/// A session begins with `session.created`; a reserved log begins with whatever is delivered first.
fn may_create(commit: &Commit) -> bool {
    let SessionKey { tenant, session } = commit.key;
    let reserved = session == ledger_of(tenant) || session == operator_log_of(tenant);
    let may_begin = !matches!(commit.writer, Writer::Worker { .. });
    reserved || (may_begin && commit.events.first().is_some_and(is_creation))
}

pub(crate) fn seal(
    draft: &Draft,
    append_id: AppendId,
    worker_id: Option<portcullis_base::WorkerId>,
    fence: Option<u64>,
    head: &Head,
) -> Event {
    let mut event = Event {
        seq: head.last_seq + 1,
        id: draft.id,
        kind: draft.kind.clone(),
        at: draft.at,
        actor: draft.actor.clone(),
        worker_id,
        fence,
        wake_id: draft.wake_id,
        turn_id: draft.turn_id,
        session_thread_id: draft.session_thread_id,
        append_id,
        v: draft.v,
        payload: Some(draft.payload.clone()),
        payload_hash: draft.payload_hash,
        prev_hash: head.last_hash,
        hash: Digest::from_bytes([0; 32]),
        typed: draft.typed.clone(),
    };
    event.hash = chain_hash(&event);
    event
}

/// S10: an ask leaves `pending` once, by an event of its own session. Two answers to one ask, even in
/// one commit, are refused; so is an expiry of an ask that was answered first. One that is raised and answered in one
/// commit never waited, so its time cannot have run out.
fn check_answers(
    session: SessionId,
    changes: &[RowChange],
    now: Timestamp,
    ask: &dyn Fn(AskId) -> Option<AskNow>,
) -> Result<(), StoreError> {
    let (mut opened, mut answered) = (Vec::new(), Vec::new());
    for change in changes {
        let (id, closing) = match change {
            RowChange::AskOpened { ask_id, .. } => {
                opened.push(*ask_id);
                continue;
            }
            RowChange::AskAnswered { ask_id, .. } => (*ask_id, false),
            RowChange::AskClosed { ask_id, state: AskState::Expired | AskState::Superseded, .. } => (*ask_id, true),
            _ => continue,
        };
        if answered.contains(&id) {
            return Err(StoreError::AskSettled { ask: id, state: AskState::Answered });
        }
        answered.push(id);
        if !closing && opened.contains(&id) {
            continue;
        }
        let now_is = ask(id).filter(|found| found.session == session).ok_or(StoreError::NoAsk(id))?;
        if now_is.state != AskState::Pending {
            return Err(StoreError::AskSettled { ask: id, state: now_is.state });
        }
        if !closing && now_is.expires_at <= now {
            return Err(StoreError::AskExpired(id));
        }
    }
    Ok(())
}

/// S7 and S9: an intent starts once and is observed once, whichever process asks for it.
fn check_intents(changes: &[RowChange], intent: &dyn Fn(IntentId) -> Option<IntentState>) -> Result<(), StoreError> {
    let mut moved: Vec<(IntentId, IntentState)> = Vec::new();
    for change in changes {
        let RowChange::IntentMoved { intent_id, state, .. } = change else { continue };
        if matches!(state, IntentState::Started | IntentState::Observed) {
            let here = moved.iter().rev().find(|(id, _)| id == intent_id).map(|(_, state)| *state);
            let begun_here = changes
                .iter()
                .any(|change| matches!(change, RowChange::IntentAdmitted { intent_id: id, .. } if id == intent_id));
            let before = here.or_else(|| if begun_here { None } else { intent(*intent_id) });
            if before.is_some_and(|before| before >= *state) {
                return Err(StoreError::IntentMoved { intent: *intent_id });
            }
        }
        moved.push((*intent_id, *state));
    }
    Ok(())
}

/// S12: a wake is queued once and leaves `pending` once. What is pending after the changes; `None` if they are about
/// other things.
fn wakes_after(
    changes: &[RowChange],
    state_of: &dyn Fn(QueuedWakeId) -> Option<WakeState>,
    pending_now: &dyn Fn() -> Wakes,
) -> Result<Option<Wakes>, StoreError> {
    let mut pending: Option<Wakes> = None;
    for change in changes {
        match change {
            RowChange::WakeQueued { wake, .. } => {
                let id = wake.queued_wake_id;
                let wakes = pending.get_or_insert_with(pending_now);
                // The table knows those of the past, the fold those of this very commit.
                let known = state_of(id).or_else(|| wakes.get(id).map(|_| WakeState::Pending));
                if let Some(state) = known {
                    return Err(StoreError::WakeSettled { wake: id, state });
                }
                wakes.queue(wake);
                if wakes.len() > PENDING_WAKES {
                    return Err(StoreError::TooManyWakes { limit: PENDING_WAKES });
                }
            }
            RowChange::WakesSettled { queued_wake_ids, .. } => {
                let wakes = pending.get_or_insert_with(pending_now);
                for id in queued_wake_ids {
                    if wakes.get(*id).is_none() {
                        let settled = state_of(*id).filter(|state| *state != WakeState::Pending);
                        return Err(match settled {
                            Some(state) => StoreError::WakeSettled { wake: *id, state },
                            None => StoreError::NoWake(*id),
                        });
                    }
                    wakes.settle(&[*id]);
                }
            }
            _ => {}
        }
    }
    Ok(pending)
}
