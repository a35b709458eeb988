//! The state and the rows as a log alone gives them, beside what is stored (S15). Whole rows are compared: a row that says
//! something else in any column is found.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use portcullis_base::{AskId, Digest, IntentId, QueuedWakeId, SessionId, TenantId, Timestamp};
use portcullis_event::facts::{Priority, WakeState};
use portcullis_event::{AskState, Event, FOLD_VERSION, RowChange, SessionRow, SessionStatus, State, head_change, rows};
use serde::Serialize;
use serde_json::Value;

use crate::{AskFilter, AskRow, Checkpoint, Head, IntentRow, Log, Pages, SessionKey, StoreError, WakeRow};

/// Characters of one side of a difference.
const SIDE_CHARS: usize = 300;

/// The log folded, and what differs from it.
pub struct RebuiltLog {
    pub state: State,
    /// Every difference, in words.
    pub diverges: Vec<String>,
    /// The log grew while it was read: rows of another moment are not compared.
    pub grew: bool,
}

/// Folds a log, up to event `until` or whole, and compares what is stored beside a whole one.
///
/// # Errors
/// If the store cannot be read.
pub async fn rebuild(log: &dyn Log, key: SessionKey, until: Option<u64>) -> Result<RebuiltLog, StoreError> {
    let snapshot = log.snapshot(key, FOLD_VERSION).await?;
    let (mut state, mut at_snapshot, mut folded) = (State::default(), None, Rows::default());
    let mut pages = Pages::of(log, key);
    while let Some(page) = pages.next().await? {
        for event in page.iter().take_while(|event| until.is_none_or(|until| event.seq <= until)) {
            state.apply(event);
            if snapshot.as_ref().is_some_and(|kept| kept.seq == event.seq) {
                at_snapshot = Some(state.clone());
            }
            folded.read(key.session, event);
        }
    }
    folded.finish(key.session);
    let (mut diverges, mut grew) = (Vec::new(), false);
    if until.is_none() {
        let own = session_rows(log, key.tenant).await?.remove(&key.session);
        let compared = folded.compared(log, key, own).await?;
        grew = compared.is_none();
        diverges.extend(compared.unwrap_or_default());
    }
    if let (Some(kept), Some(then)) = (&snapshot, &at_snapshot)
        && serde_json::from_str::<State>(&kept.state).ok().as_ref() != Some(then)
    {
        diverges.push(format!("the snapshot at event {} is not the fold of the log", kept.seq));
    }
    Ok(RebuiltLog { state, diverges, grew })
}

/// The own row of every session.
///
/// # Errors
/// If the store cannot be read.
pub async fn session_rows(log: &dyn Log, tenant: TenantId) -> Result<BTreeMap<SessionId, SessionRow>, StoreError> {
    let sessions = log.sessions(tenant, u32::MAX as usize).await?;
    Ok(sessions.into_iter().map(|summary| (summary.session_id, summary.row)).collect())
}

/// Rows of a log that differ from what its events say, for whoever verifies; none where it grew meanwhile. `own` is the
/// session's own row.
///
/// # Errors
/// If the store cannot be read.
pub async fn altered_rows(log: &dyn Log, key: SessionKey, own: Option<SessionRow>) -> Result<Vec<String>, StoreError> {
    let mut folded = Rows::default();
    let mut pages = Pages::of(log, key);
    while let Some(page) = pages.next().await? {
        page.iter().for_each(|event| folded.read(key.session, event));
    }
    folded.finish(key.session);
    Ok(folded.compared(log, key, own).await?.unwrap_or_default())
}

/// What a head row says that follows from the log.
#[derive(Debug, Default, PartialEq, Serialize)]
struct HeadFact {
    last_seq: u64,
    last_hash: Option<Digest>,
    status: SessionStatus,
    blocked_n: u64,
    failure_streak: u32,
    /// When the earliest pending wake is due, and how urgent it is.
    wake: Option<(Timestamp, Priority)>,
}

impl HeadFact {
    fn stored(head: &Head) -> Self {
        Self {
            last_seq: head.last_seq,
            last_hash: Some(head.last_hash),
            status: head.status,
            blocked_n: head.blocked_n,
            failure_streak: head.failure_streak,
            wake: head.wake.map(|wake| (wake.due_at, wake.priority)),
        }
    }
}

/// What of a stored head does not follow from its other columns and from the checkpoints.
fn head_faults(head: &Head, checkpoints: &[Checkpoint]) -> Vec<String> {
    let mut again = head.clone();
    again.reckon();
    // Who gave a session back unused may have put off its wakes as well.
    let follows = [again.next_due_at, head.work_due_at].contains(&head.next_due_at) && again.priority == head.priority;
    let newest = checkpoints.iter().map(|checkpoint| checkpoint.seq).max().unwrap_or(0);
    let mut found = Vec::new();
    if !follows {
        found.push(
            "the head: when the session is due, or how urgently, does not follow from its work and wakes".to_owned(),
        );
    }
    if head.checkpoint_seq != newest {
        let said = head.checkpoint_seq;
        found.push(format!("the head: checkpoint_seq: the newest checkpoint is at {newest}, the table says {said}"));
    }
    found
}

/// Everything that follows from a log and is kept beside it.
#[derive(Default)]
struct Rows {
    session: Option<SessionRow>,
    intents: BTreeMap<IntentId, IntentRow>,
    asks: BTreeMap<AskId, AskRow>,
    wakes: BTreeMap<QueuedWakeId, WakeRow>,
    head: HeadFact,
    /// What of the head contradicts itself.
    head_faults: Vec<String>,
    /// The append that is being read: a page may end in its middle, and rows are made of whole ones.
    append: Vec<Event>,
}

impl Rows {
    fn read(&mut self, session: SessionId, event: &Event) {
        if self.append.last().is_some_and(|last| last.append_id != event.append_id) {
            self.finish(session);
        }
        self.append.push(event.clone());
    }

    fn finish(&mut self, session: SessionId) {
        let append = std::mem::take(&mut self.append);
        let Some(last) = append.last() else { return };
        let asks = &self.asks;
        let pending = |ask| asks.get(&ask).is_some_and(|row| row.state == AskState::Pending);
        let change = head_change(&append, pending);
        self.head.blocked_n = self.head.blocked_n.saturating_add_signed(change.blocked);
        self.head.status = change.status.unwrap_or(self.head.status);
        self.head.failure_streak = change.failure_streak(self.head.failure_streak);
        self.head.last_seq = last.seq;
        self.head.last_hash = Some(last.hash);
        rows(&append).into_iter().for_each(|change| self.apply(session, change));
        let pending = self.wakes.values().filter(|row| row.state == WakeState::Pending);
        let soonest = pending.min_by_key(|row| (row.wake.due_at, Reverse(row.wake.priority)));
        self.head.wake = soonest.map(|row| (row.wake.due_at, row.wake.priority));
    }

    fn apply(&mut self, session_id: SessionId, change: RowChange) {
        match change {
            RowChange::Session(row) => self.session = Some(row),
            admitted @ RowChange::IntentAdmitted { .. } => {
                let row = IntentRow::admitted(session_id, admitted);
                self.intents.extend(row.map(|row| (row.intent_id, row)));
            }
            RowChange::IntentMoved { intent_id, state, invocation_id, seq } => {
                if let Some(row) = self.intents.get_mut(&intent_id) {
                    row.moved(state, invocation_id, seq);
                }
            }
            opened @ RowChange::AskOpened { .. } => {
                let row = AskRow::opened(session_id, opened);
                self.asks.extend(row.map(|row| (row.ask_id, row)));
            }
            RowChange::AskAnswered { ask_id, reply, approver, seq } => {
                if let Some(row) = self.asks.get_mut(&ask_id) {
                    row.answered(reply, approver, seq);
                }
            }
            RowChange::AskClosed { ask_id, state, .. } => {
                if let Some(row) = self.asks.get_mut(&ask_id) {
                    row.state = state;
                }
            }
            RowChange::WakeQueued { wake, at, seq } => WakeRow::queue(&mut self.wakes, session_id, (wake, at, seq)),
            RowChange::WakesSettled { queued_wake_ids, state, seq } => {
                for id in queued_wake_ids {
                    if let Some(row) = self.wakes.get_mut(&id) {
                        row.settled(state, seq);
                    }
                }
            }
        }
    }

    async fn stored(log: &dyn Log, key: SessionKey, own: Option<SessionRow>) -> Result<Self, StoreError> {
        let intents = log.intents(key, false).await?;
        let asks = log.asks(key.tenant, AskFilter { session: Some(key.session), pending: false }).await?;
        let wakes = log.wakes(key, false).await?;
        let head = log.head(key).await?;
        let checkpoints = log.checkpoints(key).await?;
        Ok(Self {
            session: own,
            intents: intents.into_iter().map(|row| (row.intent_id, row)).collect(),
            asks: asks.into_iter().map(|row| (row.ask_id, row)).collect(),
            wakes: wakes.into_iter().map(|row| (row.wake.queued_wake_id, row)).collect(),
            head: head.as_ref().map(HeadFact::stored).unwrap_or_default(),
            head_faults: head.map(|head| head_faults(&head, &checkpoints)).unwrap_or_default(),
            append: Vec::new(),
        })
    }

    /// How the stored rows differ; `None` = the log grew while it was read.
    async fn compared(
        &self,
        log: &dyn Log,
        key: SessionKey,
        own: Option<SessionRow>,
    ) -> Result<Option<Vec<String>>, StoreError> {
        // Rows first, then whether the log has events that were not read: then these are two moments.
        let stored = Self::stored(log, key, own).await?;
        let grew = !log.read(key, self.head.last_seq, 1).await?.is_empty();
        if grew { Ok(None) } else { self.differences(&stored).map(Some) }
    }

    /// Every difference, in words.
    fn differences(&self, stored: &Self) -> Result<Vec<String>, StoreError> {
        let mut found = stored.head_faults.clone();
        compare("the head", &self.head, &stored.head, &mut found)?;
        compare("the session", &self.session, &stored.session, &mut found)?;
        compare_all("intent", &self.intents, &stored.intents, &mut found)?;
        compare_all("ask", &self.asks, &stored.asks, &mut found)?;
        compare_all("wake", &self.wakes, &stored.wakes, &mut found)?;
        Ok(found)
    }
}

fn compare_all<K: Ord + std::fmt::Display, V: Serialize>(
    what: &str,
    folded: &BTreeMap<K, V>,
    stored: &BTreeMap<K, V>,
    found: &mut Vec<String>,
) -> Result<(), StoreError> {
    for (id, row) in folded {
        match stored.get(id) {
            Some(kept) => compare(&format!("{what} {id}"), row, kept, found)?,
            None => found.push(format!("{what} {id} is in the log and not in the table")),
        }
    }
    for id in stored.keys().filter(|id| !folded.contains_key(id)) {
        found.push(format!("{what} {id} is in the table and not in the log"));
    }
    Ok(())
}

/// One row against another, column by column.
fn compare<V: Serialize>(what: &str, folded: &V, stored: &V, found: &mut Vec<String>) -> Result<(), StoreError> {
    let json = |row: &V| {
        serde_json::to_value(row).map_err(|error| StoreError::Corrupt(format!("{what} cannot be compared: {error}")))
    };
    let (folded, stored) = (json(folded)?, json(stored)?);
    if folded == stored {
        return Ok(());
    }
    let columns = |row: &Value| row.as_object().map(|row| row.keys().cloned().collect::<BTreeSet<_>>());
    let names = columns(&folded).unwrap_or_default().into_iter().chain(columns(&stored).unwrap_or_default());
    for name in names.collect::<BTreeSet<_>>() {
        let (said, kept) = (&folded[&name], &stored[&name]);
        if said != kept {
            found.push(format!("{what}: {name}: the log says {}, the table {}", side(said), side(kept)));
        }
    }
    Ok(())
}

/// A value in a sentence; a long one is cut, and says so.
fn side(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((cut, _)) = text.char_indices().nth(SIDE_CHARS) {
        let all = text.chars().count();
        text.truncate(cut);
        text.push_str(&format!("… (cut: {all} characters in all)"));
    }
    text
}
