//! `replay --mode rebuild`: the state and the rows as the log alone gives them, beside what is stored
//! (S15). Whole rows are compared: a row that says something else in any column is found.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use portcullis_base::{AskId, Digest, IntentId, QueuedWakeId, SessionId, Timestamp};
use portcullis_event::facts::{Priority, WakeState};
use portcullis_event::{
    AskState, Event, FOLD_VERSION, LOCAL_TENANT, RowChange, SessionRow, SessionStatus, State, head_change, rows,
};
use portcullis_store::{AskFilter, AskRow, Checkpoint, Head, IntentRow, Log as _, WakeRow};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::ReplayArgs;
use crate::exit::ExitKind;
use crate::render::{self, Term, exact, safe};
use crate::replay::each;
use crate::spinner;
use crate::world::{World, key};

/// Characters of one side of a difference.
const SIDE_CHARS: usize = 300;

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

    async fn stored(world: &World, session: SessionId, own: Option<SessionRow>) -> anyhow::Result<Self> {
        let intents = world.store.intents(key(session), false).await?;
        let asks = world.store.asks(LOCAL_TENANT, AskFilter { session: Some(session), pending: false }).await?;
        let wakes = world.store.wakes(key(session), false).await?;
        let head = world.store.head(key(session)).await?;
        let checkpoints = world.store.checkpoints(key(session)).await?;
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

    /// Every difference, in words.
    fn differences(&self, stored: &Self) -> anyhow::Result<Vec<String>> {
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
) -> anyhow::Result<()> {
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
fn compare<V: Serialize>(what: &str, folded: &V, stored: &V, found: &mut Vec<String>) -> anyhow::Result<()> {
    let (folded, stored) = (serde_json::to_value(folded)?, serde_json::to_value(stored)?);
    if folded == stored {
        return Ok(());
    }
    let columns = |row: &Value| row.as_object().map(|row| row.keys().cloned().collect::<BTreeSet<_>>());
    let names = columns(&folded).unwrap_or_default().into_iter().chain(columns(&stored).unwrap_or_default());
    for name in names.collect::<BTreeSet<_>>() {
        let (said, kept) = (&folded[&name], &stored[&name]);
        if said != kept {
            let side = |value: &Value| exact(&value.to_string(), SIDE_CHARS);
            found.push(format!("{what}: {name}: the log says {}, the table {}", side(said), side(kept)));
        }
    }
    Ok(())
}

/// The log folded, and what differs from it.
struct RebuiltLog {
    state: State,
    diverges: Vec<String>,
    /// The log grew while it was read: rows of another moment are not compared.
    grew: bool,
}

async fn fold(world: &World, args: &ReplayArgs) -> anyhow::Result<RebuiltLog> {
    let session = args.session;
    let snapshot = world.store.snapshot(key(session), FOLD_VERSION).await?;
    let (mut state, mut at_snapshot, mut folded) = (State::default(), None, Rows::default());
    each(world, session, args.until, |page| {
        for event in page {
            state.apply(event);
            if snapshot.as_ref().is_some_and(|kept| kept.seq == event.seq) {
                at_snapshot = Some(state.clone());
            }
            folded.read(session, event);
        }
        Ok(())
    })
    .await?;
    folded.finish(session);
    let (mut diverges, mut grew) = (Vec::new(), false);
    if args.until.is_none() {
        let own = own_rows(world).await?.remove(&session);
        let stored = Rows::stored(world, session, own).await?;
        // Rows first, then whether the log has events that were not read: then these are two moments.
        grew = !world.store.read(key(session), state.seq, 1).await?.is_empty();
        if !grew {
            diverges = folded.differences(&stored)?;
        }
    }
    if let (Some(kept), Some(then)) = (&snapshot, &at_snapshot)
        && serde_json::from_str::<State>(&kept.state).ok().as_ref() != Some(then)
    {
        diverges.push(format!("the snapshot at event {} is not the fold of the log", kept.seq));
    }
    Ok(RebuiltLog { state, diverges, grew })
}

/// The own row of every session.
pub async fn own_rows(world: &World) -> anyhow::Result<BTreeMap<SessionId, SessionRow>> {
    let sessions = world.store.sessions(LOCAL_TENANT, u32::MAX as usize).await?;
    Ok(sessions.into_iter().map(|summary| (summary.session_id, summary.row)).collect())
}

/// Rows of a log that differ from what its events say, for whoever verifies; none where it grew meanwhile. `own` is the
/// session's own row.
pub async fn altered_rows(world: &World, session: SessionId, own: Option<SessionRow>) -> anyhow::Result<Vec<String>> {
    let (mut folded, mut seq) = (Rows::default(), 0);
    world
        .each_page(session, 0, |page| {
            page.iter().for_each(|event| folded.read(session, event));
            seq = page.last().map_or(seq, |event| event.seq);
            Ok(())
        })
        .await?;
    folded.finish(session);
    let stored = Rows::stored(world, session, own).await?;
    if !world.store.read(key(session), seq, 1).await?.is_empty() {
        return Ok(Vec::new());
    }
    folded.differences(&stored)
}

pub async fn run(world: &World, args: &ReplayArgs, term: &Term) -> anyhow::Result<ExitKind> {
    let RebuiltLog { state, diverges, grew } = spinner::during(term, "folding the log", fold(world, args)).await?;
    if grew {
        term.note("the session grew meanwhile: rows are not compared");
    }
    let digest = state.digest();
    let (open, pending) = (state.intents.open().count() as u64, state.asks.pending().count() as u64);
    if term.json {
        term.document(&json!({
            "session_id": args.session, "seq": state.seq, "digest": digest, "open_intents": open,
            "pending_asks": pending, "settled": state.intents.settled(), "diverges": diverges,
        }))?;
    } else {
        let mut text = format!("state after event {}: {digest}\n", state.seq);
        let (settled, open) =
            (render::count(state.intents.settled(), "settled call"), render::count(open, "open call"));
        let _ = writeln!(text, "{settled}, {open}, {}", render::count(pending, "pending ask"));
        let verdict = match (diverges.is_empty(), args.until.is_some()) {
            (false, _) => "the stored rows differ from the fold:",
            (true, true) => "a prefix: rows are not compared",
            (true, false) if grew => "rows are not compared",
            (true, false) => "the stored rows are equal to the fold",
        };
        let _ = writeln!(text, "{verdict}");
        for line in &diverges {
            let _ = writeln!(text, "  {}", safe(line));
        }
        term.print(&text)?;
    }
    Ok(if diverges.is_empty() { ExitKind::Done } else { ExitKind::Failed })
}
