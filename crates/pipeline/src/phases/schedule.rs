//! Phase 4, `Authorized → Invocation`: the plan, the keys, and append A. Only this phase makes an
//! [`Invocation`], and for anything that can touch the world it makes one only after its `started`
//! is durable (L21).

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portcullis_base::{Code, InvocationId, MessageId, SessionId, limits};
use portcullis_contract::{Concurrency, Semantics, Tool, seam};
use portcullis_event::EventBody as _;
use portcullis_event::facts::{InvocationStarted, Plan, Scheduled};
use portcullis_store::{Commit, LockKey, StoreError};
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio_util::sync::CancellationToken;

use crate::output::evidence::no_room;
use crate::output::quota::QuotaReservation;
use crate::phases::lookup::stale;
use crate::phases::masked_names::CallRedactor;
use crate::phases::permission::{Authorized, changed_meanwhile};
use crate::phases::refuse::{Refusal, SUMMARY_MAX, refuse_and_void};
use crate::phases::step::{Halt, Step};
use crate::phases::validate::{broken, guarded};
use crate::sessions::append::Append;
use crate::sessions::key_queue::KeyHold;
use crate::sessions::running_calls::WorkingCall;
use crate::sessions::session::SessionShared;

/// How long a call waits for a key before it is told who holds it.
const KEY_WAIT: Duration = Duration::from_secs(10);
/// The first and the longest pause between two tries for a key held by another process.
const KEY_RETRY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// What the executor accepts, and nothing else.
pub(crate) struct Invocation {
    pub(crate) authorized: Authorized,
    /// Captured here, after the last staleness check: later registration changes cannot reach it (tool-contract 8.4).
    pub(crate) tool: Tool,
    pub(crate) id: InvocationId,
    pub(crate) attempt: u32,
    pub(crate) timeout: Duration,
    pub(crate) keys: Vec<LockKey>,
    pub(crate) cancel: CancellationToken,
    pub(crate) warnings: Vec<String>,
    /// Held until the end of the call is durable.
    pub(crate) slot: Slot,
}

/// A call's turn: the next one of this session that can touch the world waits for the lane, the next
/// one of this process that wants the same keys for those.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    lane: Option<OwnedMutexGuard<()>>,
    keys: Option<KeyHold>,
    working: Option<WorkingCall>,
    /// Dropped with the rest: tells a task that the observation of its call is durable, or cannot become so.
    _written: Option<oneshot::Sender<()>>,
}

impl Slot {
    /// Takes out what a call that goes on in the background gives back with its observation: the lane, and its
    /// keys if it says so. The rest stays until the end of the task is durable.
    pub(crate) fn settle(&mut self, keys_too: bool, written: oneshot::Sender<()>) -> Self {
        let keys = if keys_too { self.keys.take() } else { None };
        Self { lane: self.lane.take(), keys, working: None, _written: Some(written) }
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.lane.is_some() || self.keys.is_some() || self.working.is_some()
    }
}

pub(crate) async fn schedule(
    session: &SessionShared,
    authorized: Authorized,
    cancel: CancellationToken,
    mut facts: Append,
) -> Result<(Append, Step<Invocation>), Halt> {
    let visible = &authorized.validated.visible;
    let intent = &visible.intent;
    // What a client ran has had its effect: nothing happens between its start and its end.
    let inert = seam::semantics(visible.tool()).inert() || intent.arrived().is_some();
    let planned = match plan(session, &authorized, inert, &cancel).await {
        Ok(planned) => planned,
        Err(stop) => {
            let refused = match stop {
                NotStarted::Refused(refusal) => refuse_and_void(session, intent, refusal, &mut facts),
                NotStarted::Broken(panic) => broken(session, visible, &*panic, &mut facts),
            };
            return Ok((facts, Step::Refused(refused)));
        }
    };
    note_start(session, &authorized, &planned, &mut facts);

    let working = (!inert).then(|| session.at_work.enter(intent.id));
    // The start of a call that changes nothing but the log is durable with its effect (tool-contract 10.2).
    if !inert && !seam::semantics(&planned.tool).in_log {
        facts.take.clone_from(&planned.keys);
        match commit_a(session, facts, &cancel).await? {
            Ok(()) => facts = Append::new(),
            Err((mut facts, refusal)) => {
                let refused = refuse_and_void(session, intent, refusal, &mut facts);
                return Ok((facts, Step::Refused(refused)));
            }
        }
    }
    let PlannedCall { tool, id, timeout, warnings, keys, lane, line, .. } = planned;
    let slot = Slot { lane, keys: line, working, _written: None };
    let invocation = Invocation { authorized, tool, id, attempt: 1, timeout, keys, cancel, warnings, slot };
    Ok((facts, Step::Next(invocation)))
}

/// Why an authorized call does not start.
enum NotStarted {
    Refused(Refusal),
    /// The tool's own code panicked.
    Broken(Box<dyn Any + Send>),
}

impl From<Refusal> for NotStarted {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Everything that a call has before its start is written: its turn in the lane and at its keys, and its time.
struct PlannedCall {
    tool: Tool,
    id: InvocationId,
    timeout: Duration,
    warnings: Vec<String>,
    keys: Vec<LockKey>,
    lane: Option<OwnedMutexGuard<()>>,
    line: Option<KeyHold>,
    queue_pos: u32,
}

async fn plan(
    session: &SessionShared,
    authorized: &Authorized,
    inert: bool,
    cancel: &CancellationToken,
) -> Result<PlannedCall, NotStarted> {
    let visible = &authorized.validated.visible;
    // A safe call changes nothing that another could see, whatever it costs: it stands in no line.
    let beside = inert || seam::semantics(visible.tool()).concurrency == Concurrency::Safe;
    let (lane, mut waited) = lane(session, beside, cancel).await?;
    if cancel.is_cancelled() {
        return Err(cancelled_before_start().into());
    }
    let live = session.effective(visible.name.as_str());
    if live.is_none_or(|live| live.id != visible.registered.id) {
        return Err(stale(visible.name.as_str()).into());
    }
    let tool = visible.tool().clone();
    let semantics = seam::semantics(&tool);
    let (timeout, warnings) = guarded(|| timeout(&tool, authorized)).map_err(NotStarted::Broken)?;
    if !inert && let Err(full) = session.room_to_start().await {
        return Err(no_room(&full).into());
    }
    let id = InvocationId::make(&*session.gate.ids, session.gate.clock.now());
    let keys: Vec<LockKey> = keys(semantics, inert, authorized, &authorized.validated.names)
        .into_iter()
        .map(|key| LockKey { location: session.scope.location, key })
        .collect();
    // Before the line: a call that waits for a lost holder holds up nobody else.
    tokio::select! {
        biased;
        () = session.gate.grace.over(&keys, &*session.gate.clock) => {}
        () = cancel.cancelled() => return Err(cancelled_before_start().into()),
    }
    let line = session.gate.keys.join(session.key.session, keys.iter().map(|lock| lock.key.clone()).collect());
    let queue_pos = line.as_ref().map_or(0, |waiting| u32::try_from(waiting.before()).unwrap_or(u32::MAX));
    if let Some(waiting) = &line {
        turn_at(session, waiting, cancel).await?;
    }
    waited |= queue_pos > 0;
    // A call that it waited for may have changed what its words mean, after they were decided on.
    if waited && let Some(refusal) = changed_meanwhile(session, authorized).await {
        return Err(refusal.into());
    }
    Ok(PlannedCall { tool, id, timeout, warnings, keys, lane, line, queue_pos })
}

/// This session's turn to touch the world, and whether it was waited for; none if it runs beside others, or is cancelled
/// while it waits.
async fn lane(
    session: &SessionShared,
    beside: bool,
    cancel: &CancellationToken,
) -> Result<(Option<OwnedMutexGuard<()>>, bool), Refusal> {
    if beside {
        return Ok((None, false));
    }
    if let Ok(lane) = Arc::clone(&session.lane).try_lock_owned() {
        return Ok((Some(lane), false));
    }
    let _place = InLine::join(&session.in_line).ok_or_else(|| {
        let text = format!("{} calls of this session are waiting already; wait for some of them", limits::QUEUE);
        Refusal::new(Code::QueueFull, text)
    })?;
    tokio::select! {
        biased;
        () = cancel.cancelled() => Ok((None, true)),
        lane = Arc::clone(&session.lane).lock_owned() => Ok((Some(lane), true)),
    }
}

/// A place in a session's line, which has an end: a caller that is faster than the session gets an error.
struct InLine<'a>(&'a AtomicUsize);

impl<'a> InLine<'a> {
    fn join(line: &'a AtomicUsize) -> Option<Self> {
        let place = Self(line);
        (line.fetch_add(1, Ordering::SeqCst) < limits::QUEUE).then_some(place)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until those of this process who came earlier are done with the keys.
async fn turn_at(session: &SessionShared, waiting: &KeyHold, cancel: &CancellationToken) -> Result<(), Refusal> {
    tokio::select! {
        biased;
        () = waiting.granted() => Ok(()),
        () = cancel.cancelled() => Err(cancelled_before_start()),
        () = tokio::time::sleep(KEY_WAIT) => Err(match waiting.blocked_by() {
            Some((key, holder)) => key_held(session, &key, holder),
            None => Refusal::new(Code::LockConflict, "its keys came free only just now; try again"),
        }),
    }
}

fn key_held(session: &SessionShared, key: &str, holder: SessionId) -> Refusal {
    let own = if holder == session.key.session { session.state().tasks.holding(key) } else { None };
    let text = match own {
        Some(task) => format!(
            "`{key}` is held by {task}, a background task of this session; wait for it with task_wait, or end it \
             with task_cancel"
        ),
        None => format!("`{key}` is held by session {holder}; try again when it is done"),
    };
    Refusal::new(Code::LockConflict, text)
}

pub(crate) fn cancelled_before_start() -> Refusal {
    Refusal::new(Code::CancelledBeforeStart, "it was cancelled before it started")
}

/// Append A. A held key is waited for; a holder whose process is gone is recovered, which frees it.
async fn commit_a(
    session: &SessionShared,
    mut facts: Append,
    cancel: &CancellationToken,
) -> Result<Result<(), (Append, Refusal)>, Halt> {
    let calls = std::mem::take(&mut facts.calls);
    let give_up = session.gate.clock.monotonic() + KEY_WAIT;
    let mut pause = KEY_RETRY.0;
    let (commit, reserved) = session.commit_of(facts);
    let copies = !commit.outbox.is_empty();
    loop {
        match session.try_commit(commit.clone()).await {
            Ok(()) => {
                reserved.into_iter().for_each(QuotaReservation::record);
                session.deliver(copies).await;
                return Ok(Ok(()));
            }
            Err(StoreError::LockHeld { key, session: holder, until }) => {
                // A key that lingers comes free by itself, soon, and there is nobody to recover.
                if until.is_none() {
                    if session.gate.clock.monotonic() >= give_up {
                        let facts = take_back(commit, reserved, calls);
                        return Ok(Err((facts, key_held(session, &key, holder))));
                    }
                    session.recover_if_dead(session.key.tenant, holder).await;
                }
                // Its keys may be free now, and its call may still be at work.
                let passed = async {
                    session.gate.grace.over(&commit.take, &*session.gate.clock).await;
                    tokio::time::sleep(pause).await;
                };
                let cancelled = tokio::select! {
                    biased;
                    () = cancel.cancelled() => true,
                    () = passed => false,
                };
                if cancelled {
                    let facts = take_back(commit, reserved, calls);
                    return Ok(Err((facts, cancelled_before_start())));
                }
                pause = (pause * 2).min(KEY_RETRY.1);
            }
            Err(other) => return Err(other.into()),
        }
    }
}

/// The facts of a commit that never happened, without the start that never came. A grant that answered has been used,
/// whatever came after it.
fn take_back(commit: Commit, reserved: Vec<QuotaReservation>, calls: Vec<(MessageId, String)>) -> Append {
    let mut facts = Append::of_refused(commit, reserved, calls);
    facts.take.clear();
    facts.events.retain(|draft| draft.kind != InvocationStarted::KIND);
    facts
}

fn keys(semantics: &Semantics, inert: bool, authorized: &Authorized, names: &CallRedactor) -> Vec<String> {
    let mut keys = match semantics.concurrency {
        // Versions of rows stand for keys there.
        _ if semantics.in_log => Vec::new(),
        // Files are written by rename, so a read never sees half a write: inert calls take none (tool-contract §14).
        _ if inert => Vec::new(),
        Concurrency::Safe => Vec::new(),
        Concurrency::Exclusive => vec!["*".to_owned()],
        // A key is written, too.
        Concurrency::Keyed => authorized.validated.resolved.keys.iter().map(|key| names.key(key.clone())).collect(),
    };
    keys.sort();
    keys.dedup();
    keys
}

/// The clock starts with the execution: queue and approval time never count (L46).
fn timeout(tool: &Tool, authorized: &Authorized) -> (Duration, Vec<String>) {
    let limits = seam::semantics(tool).timeout;
    let wanted = seam::timeout_ms(tool, &authorized.validated.input).unwrap_or(limits.default_ms);
    let granted = wanted.min(limits.max_ms);
    let warnings = (granted < wanted).then(|| format!("timeout {wanted} ms was lowered to {granted} ms"));
    (Duration::from_millis(granted), warnings.into_iter().collect())
}

fn note_start(session: &SessionShared, authorized: &Authorized, planned: &PlannedCall, facts: &mut Append) {
    let PlannedCall { tool, id, timeout, keys, queue_pos, .. } = planned;
    let intent = &authorized.validated.visible.intent;
    let semantics = seam::semantics(tool);
    let concurrency = match semantics.concurrency {
        Concurrency::Safe => "safe",
        Concurrency::Exclusive => "exclusive",
        Concurrency::Keyed => "keyed",
    };
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let plan = Plan { invocation_id: *id, concurrency: concurrency.to_owned(), timeout_ms };
    let keys = keys.iter().map(|lock| lock.key.clone()).collect();
    session.note(facts, intent.turn_id, &Scheduled { intent_id: intent.id, plan, queue_pos: *queue_pos, keys });
    let started = InvocationStarted {
        invocation_id: *id,
        intent_id: intent.id,
        executor_id: seam::executor(tool).to_string(),
        definition_version: seam::version(tool).to_string(),
        sandbox: semantics
            .sandbox
            .as_deref()
            .and_then(|profile| session.scope.isolated(Some(profile)).map(|isolated| isolated.used(profile))),
        env_names: semantics.variables.iter().map(|v| v.name.clone()).collect(),
        cwd: authorized.validated.resolved.cwd.as_ref().map(|cwd| session.tidy(cwd, SUMMARY_MAX)),
        attempt: 1,
        read_only: semantics.read_only,
    };
    session.note(facts, intent.turn_id, &started);
}
