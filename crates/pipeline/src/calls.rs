//! The calls of one turn, in the order the model made them (R1). Serial is the meaning; overlap is an
//! optimisation nobody can see.
//!
//! A maximal run of safe calls is one segment, so is one of calls that a client runs, which wait together; every other call
//! is a segment of its own. Segments run
//! strictly in order: the next begins only when every observation of the one before is durable (L41).
//! Inside a safe segment calls run together, and end in call order, whichever is ready first (L40).

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::stream::{FuturesOrdered, StreamExt as _};
use portcullis_base::{MessageId, limits};
use portcullis_contract::{Concurrency, ExecutorKind};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::gate::Disposition;
use crate::phases::intent::Proposal;
use crate::phases::step::Halt;
use crate::registry::menu::Turn;
use crate::sessions::append::{Append, Head};
use crate::sessions::session::Session;

/// How wide a turn may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// Safe calls overlap.
    #[default]
    Segmented,
    /// One after the other: the meaning itself, and what every other width is compared with (L39).
    Sequential,
}

/// Who may stop a turn.
#[derive(Debug, Clone, Copy)]
pub struct Stopping<'a> {
    /// Nobody wants its calls any more.
    pub cancel: &'a CancellationToken,
    /// This process is to end. It should cancel the other one as well.
    pub leave: Option<&'a CancellationToken>,
}

impl<'a> From<&'a CancellationToken> for Stopping<'a> {
    /// A stop of the turn stops all of its calls.
    fn from(cancel: &'a CancellationToken) -> Self {
        Self { cancel, leave: None }
    }
}

/// How far a turn came.
#[derive(Debug)]
#[must_use = "it holds facts that are not durable yet"]
pub struct TurnEnd {
    /// What is not durable yet; it may ride with the caller's next facts.
    pub facts: Append,
    /// One for each call that had its turn, in call order.
    pub calls: Vec<Disposition>,
    /// Calls behind one that waits for a person. They are not refused: they run after it has settled.
    pub rest: Vec<Proposal>,
}

/// A call's place among those that run beside it: it ends after the one before it.
#[derive(Debug, Default)]
pub(crate) struct Order {
    before: Option<oneshot::Receiver<()>>,
    /// Dropped at the end of the call, which is the sign for the next one.
    _after: Option<oneshot::Sender<()>>,
}

impl Order {
    /// Waits until the one before has ended.
    pub(crate) async fn my_turn(&mut self) {
        if let Some(before) = self.before.take() {
            // Either way the one before is gone.
            let _ = before.await;
        }
    }

    /// The places of a row of calls.
    fn row(len: usize) -> Vec<Self> {
        let mut before = None;
        let place = |_| {
            let (sign, seen) = oneshot::channel();
            Self { before: before.replace(seen), _after: Some(sign) }
        };
        (0..len).map(place).collect()
    }
}

impl Session {
    /// Takes the calls of one turn through the gate. A cancel stops what runs and what has not begun; where only this
    /// process ends (`leave`), what has not begun stays for the next who comes.
    ///
    /// # Errors
    /// If the log refused a write: the turn halts.
    pub async fn calls(
        &self,
        mut facts: Append,
        turn: &Arc<Turn>,
        proposals: Vec<Proposal>,
        scheduling: Scheduling,
        stop: impl Into<Stopping<'_>>,
    ) -> Result<TurnEnd, Halt> {
        let Stopping { cancel, leave } = stop.into();
        let mut segments = segments(turn, proposals, scheduling).into_iter();
        let mut calls = Vec::new();
        while !leave.is_some_and(CancellationToken::is_cancelled)
            && let Some(segment) = segments.next()
        {
            // The calls before are durable before the next segment is even looked at: its validation
            // rests on what they did (L41).
            if !calls.is_empty() {
                self.shared.flush(std::mem::take(&mut facts)).await?;
            }
            let waits = calls.len();
            facts = self.segment(facts, turn, segment, &mut calls, cancel).await?;
            if calls[waits..].iter().any(|call| !matches!(call, Disposition::Settled(_))) {
                break;
            }
        }
        Ok(TurnEnd { facts, calls, rest: segments.flatten().collect() })
    }

    async fn segment(
        &self,
        facts: Append,
        turn: &Arc<Turn>,
        segment: Vec<Proposal>,
        calls: &mut Vec<Disposition>,
        cancel: &CancellationToken,
    ) -> Result<Append, Halt> {
        let head = Head::new(facts);
        let places = Order::row(segment.len());
        let mut waiting = segment.into_iter().zip(places);
        let mut running = FuturesOrdered::new();
        let mut ended = Vec::new();
        loop {
            while running.len() < limits::MAX_PARALLEL_SAFE
                && let Some((proposal, place)) = waiting.next()
            {
                let admission = self.admit_beside(Append::behind(&head), turn, proposal, place);
                running.push_back(admission.settled_until(cancel));
            }
            let Some(call) = running.next().await else { break };
            match call {
                Ok((own, disposition)) => {
                    ended.push(own);
                    calls.push(disposition);
                }
                Err(halt) => {
                    // Those before it ran, and what they came to must not be lost with it; those behind it detach.
                    let kept = self.shared.flush(ended.into_iter().fold(head.take(), Append::followed_by)).await;
                    if let Err(lost) = kept {
                        tracing::error!(session = %self.shared.key.session, "calls could not be settled: {lost}");
                    }
                    return Err(halt);
                }
            }
        }
        Ok(ended.into_iter().fold(head.take(), Append::followed_by))
    }
}

/// Calls that end in one append. Each leaves some four to eight events, and an append has an end.
const SEGMENT_CALLS: usize = 64;

/// What may stand in one segment with others of its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentKind {
    Safe,
    /// A client runs it: here it only waits.
    Elsewhere,
    Nothing,
}

/// Cuts a turn into what may run together.
fn segments(turn: &Turn, proposals: Vec<Proposal>, scheduling: Scheduling) -> Vec<Vec<Proposal>> {
    let mut segments: Vec<Vec<Proposal>> = Vec::new();
    let mut open = SegmentKind::Nothing;
    let mut seen: HashSet<(MessageId, String)> = HashSet::new();
    for proposal in proposals {
        // A repeated call is told from its first by the log, so the first must stand there (`duplicate_call`).
        let fresh = seen.insert((proposal.message_id, proposal.call_id.clone()));
        let beside = beside(turn, &proposal.tool, scheduling);
        let fits = beside != SegmentKind::Nothing && beside == open && fresh;
        match segments.last_mut() {
            Some(last) if fits && last.len() < SEGMENT_CALLS => last.push(proposal),
            _ => segments.push(vec![proposal]),
        }
        open = beside;
    }
    segments
}

/// A name that is not offered runs nothing, so it may stand beside anything.
fn beside(turn: &Turn, tool: &str, scheduling: Scheduling) -> SegmentKind {
    let entry = turn.offer().entries.iter().find(|(name, _)| name.as_str() == tool).map(|(_, entry)| entry);
    let elsewhere =
        entry.is_some_and(|entry| matches!(entry.executor_id.kind, ExecutorKind::External | ExecutorKind::Agent));
    let safe = entry.is_none_or(|entry| {
        let semantics = &entry.definition.semantics;
        semantics.read_only && semantics.concurrency == Concurrency::Safe
    });
    match scheduling {
        _ if elsewhere => SegmentKind::Elsewhere,
        Scheduling::Segmented if safe => SegmentKind::Safe,
        _ => SegmentKind::Nothing,
    }
}
