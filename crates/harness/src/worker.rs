//! The worker: takes up sessions that are due, many at once, each under its own lease (agent-runtime 5.1–5.3, 5.9).
//!
//! There is no second index of what is runnable: the store says what is due and in which order, and a lease is the right to
//! run it. A worker that dies leaves leases that run out, or are taken over at once where its death can be proven.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use portcullis_base::{Clock, SessionId, TenantId, Timestamp, limits};
use portcullis_event::State;
use portcullis_pipeline::{Gate, Halt};
use portcullis_store::{Claim, Lease, LeaseOwner, SessionKey, Store, StoreError, Topic};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::wake::backoff;
use crate::{Harness, Settings, WakeEnd, WakeStop, Woken};

/// Sessions that one process runs at once. A wake waits for its model most of the time; what its calls may use together is
/// bounded elsewhere. More would only make each of them slower.
pub const SESSIONS_AT_ONCE: usize = 16;
/// Notices may be lost, and time makes sessions due without one.
pub const POLL: Duration = Duration::from_secs(1);
/// How often expired asks and old responses are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// Wakes of a worker that does not watch.
pub const CYCLES: u64 = 10;

/// Where the wakes of sessions run, for a worker that runs many.
#[async_trait]
pub trait Crew: Send + Sync {
    /// The gate and the harness for a session. An error is told once and the session put off, longer each time: nothing was
    /// written, so its input is still there (agent-runtime 5.7).
    async fn take(&self, session: SessionId) -> Result<Post, String>;
}

/// A place to run wakes.
#[derive(Clone)]
pub struct Post {
    pub gate: Gate,
    pub harness: Arc<Harness>,
    /// Whatever must live as long as a wake runs here: tools are registered while their runtime lives.
    pub keep: Arc<dyn Any + Send + Sync>,
}

/// How a worker runs.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Go on after nothing is due.
    pub watch: bool,
    /// Sessions taken up at most; `None`: [`CYCLES`], or no limit with `watch`.
    pub max_cycles: Option<u64>,
    /// With `watch`: leave after nothing was done for this long.
    pub idle_timeout: Option<Duration>,
    pub poll: Duration,
    pub at_once: usize,
    /// Only these; empty: all.
    pub only: Vec<SessionId>,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            watch: false,
            max_cycles: None,
            idle_timeout: None,
            poll: POLL,
            at_once: SESSIONS_AT_ONCE,
            only: Vec::new(),
        }
    }
}

/// Why a worker stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerStop {
    Idle,
    MaxCycles,
    IdleTimeout,
    Interrupted,
}

/// One thing that a worker did (agent-runtime 5.9).
#[derive(Debug)]
pub enum Activity<'a> {
    /// A wake ran. `state` is the session after it.
    Ran { cycle: u64, session: SessionId, end: &'a WakeEnd, state: &'a State },
    /// A session was taken up and no wake ran. `again`: when it is looked at again, where that is known.
    Skipped { cycle: u64, session: SessionId, reason: Skip, fault: Option<&'a ServeFault>, again: Option<Timestamp> },
    /// The store cannot be asked for work now. A worker that watches looks again until it can; this is told once.
    StoreFailed { error: &'a StoreError },
    /// It can be asked again.
    StoreBack,
}

/// What stood in the way of a wake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServeFault {
    /// The crew could not open the session; its own words.
    #[error("{0}")]
    NotOpened(String),
    /// The store refused the session or a fact of it.
    #[error("{0}")]
    Store(StoreError),
    /// The task of a call ended without an answer.
    #[error("{0}")]
    TaskLost(String),
}

impl From<StoreError> for ServeFault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<&Halt> for ServeFault {
    fn from(halt: &Halt) -> Self {
        match halt {
            Halt::FenceLost(error) | Halt::PersistFailed(error) => Self::Store(error.clone()),
            Halt::TaskLost(_) => Self::TaskLost(halt.to_string()),
        }
    }
}

/// Why no wake ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// Nothing was left to do.
    Idle,
    /// Another took it over; nothing more was written here.
    LeaseLost,
    /// It cannot be run here, or the store failed.
    WakeFailed,
}

/// Who hears of it.
pub type Journal = dyn Fn(Activity<'_>) + Send + Sync;

/// Takes up what is due.
pub struct Worker {
    pub store: Arc<dyn Store>,
    pub tenant: TenantId,
    pub clock: Arc<dyn Clock>,
    pub owner: LeaseOwner,
    pub crew: Arc<dyn Crew>,
    pub settings: WorkerSettings,
    pub journal: Arc<Journal>,
}

/// What serving one session came to.
struct ServedSession {
    cycle: u64,
    session: SessionId,
    outcome: Outcome,
}

impl ServedSession {
    fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Skipped(Skip::WakeFailed, ..))
    }
}

/// The sessions that a worker could not run: what it reported of each, and how often each failed.
#[derive(Default)]
struct SkipMemory {
    /// Skips that were told.
    told: HashMap<SessionId, (Skip, Option<ServeFault>)>,
    /// How often in a row each failed.
    streaks: HashMap<SessionId, u32>,
}

enum Outcome {
    /// None if it was told already.
    Ran(Option<Box<(WakeEnd, State)>>),
    Skipped(Skip, Option<ServeFault>, Option<Timestamp>),
}

impl Worker {
    /// Runs until nothing is due, a limit is reached, or `cancel`: then what runs is cancelled as its tools allow, its wakes
    /// stay open for the next who comes, and leases are given back, within [`limits::SHUTDOWN`].
    ///
    /// # Errors
    /// If the store cannot be asked for work. A worker that watches waits while that may pass by itself, such as a full disk
    /// or a lock that another process holds ([`StoreError::may_pass`]).
    pub async fn run(&self, cancel: &CancellationToken) -> Result<WorkerStop, StoreError> {
        let mut running = JoinSet::new();
        let stop = cancel.child_token();
        let looped = self.looped(&mut running, &stop).await;
        // Also after a fault: nothing goes on that nobody would hear of.
        stop.cancel();
        let settle = async {
            while let Some(ended) = running.join_next().await {
                self.tell(ended, &mut SkipMemory::default());
            }
        };
        if tokio::time::timeout(limits::SHUTDOWN, settle).await.is_err() {
            // As a crash would: their leases run out, and recovery settles them.
            running.abort_all();
        }
        looped
    }

    async fn looped(
        &self,
        running: &mut JoinSet<ServedSession>,
        stop: &CancellationToken,
    ) -> Result<WorkerStop, StoreError> {
        let settings = &self.settings;
        let most = settings.max_cycles.unwrap_or(if settings.watch { u64::MAX } else { CYCLES });
        let mut changes = self.store.changes_of(Topic::Due);
        let mut known = SkipMemory::default();
        // A session that could not be run is no cycle: else a few broken ones would keep the others from being served.
        let (mut cycle, mut failed, mut swept) = (0u64, 0u64, None::<Duration>);
        let mut busy = self.clock.monotonic();
        let mut store_failed = false;
        loop {
            if stop.is_cancelled() {
                return Ok(WorkerStop::Interrupted);
            }
            // Before it looks: what is committed meanwhile wakes the next wait.
            changes.mark_unchanged();
            let free = settings.at_once.max(1).saturating_sub(running.len());
            let spent = cycle - failed;
            let room = free.min(usize::try_from(most - spent).unwrap_or(usize::MAX));
            let claimed = match self.look(room, &mut swept, &mut known).await {
                Ok(claimed) => {
                    if std::mem::take(&mut store_failed) {
                        (self.journal)(Activity::StoreBack);
                    }
                    claimed
                }
                Err(error) if settings.watch && error.may_pass() => {
                    if !std::mem::replace(&mut store_failed, true) {
                        (self.journal)(Activity::StoreFailed { error: &error });
                    }
                    Vec::new()
                }
                Err(error) => return Err(error),
            };
            let idle = claimed.is_empty() && running.is_empty();
            for (lease, asked) in claimed {
                cycle += 1;
                let streak = known.streaks.get(&lease.session).copied().unwrap_or_default() + 1;
                running.spawn(self.serve(lease, asked, cycle, streak, stop.clone()));
            }
            let spent = cycle - failed;
            if !running.is_empty() {
                busy = self.clock.monotonic();
            }
            if spent >= most && running.is_empty() {
                return Ok(WorkerStop::MaxCycles);
            }
            if idle && !settings.watch {
                return Ok(WorkerStop::Idle);
            }
            // It has looked just now: nothing came in the last moment.
            let rested = self.clock.monotonic().saturating_sub(busy);
            if idle && settings.idle_timeout.is_some_and(|budget| rested >= budget) {
                return Ok(WorkerStop::IdleTimeout);
            }
            let budget = settings.idle_timeout.filter(|_| idle).map_or(settings.poll, |budget| budget - rested);
            let full = running.len() >= settings.at_once.max(1) || spent >= most;
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                Some(ended) = running.join_next() => failed += u64::from(self.tell(ended, &mut known)),
                // With every place taken there is nobody to wake.
                changed = changes.changed(), if !full => if changed.is_err() { std::future::pending::<()>().await },
                () = tokio::time::sleep(settings.poll.min(budget)), if !full => {}
            }
        }
    }

    /// What time alone asks for, and then leases of what is due.
    async fn look(
        &self,
        room: usize,
        swept: &mut Option<Duration>,
        known: &mut SkipMemory,
    ) -> Result<Vec<(Lease, Duration)>, StoreError> {
        let now = self.clock.monotonic();
        if swept.is_none_or(|at| now.saturating_sub(at) >= SWEEP_EVERY) {
            while self.store.sweep().await?.more() {}
            *swept = Some(now);
        }
        self.claim(room, known).await
    }

    /// Leases of due sessions, with the monotonic time from before each was asked for.
    async fn claim(&self, room: usize, known: &mut SkipMemory) -> Result<Vec<(Lease, Duration)>, StoreError> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let asked = self.clock.monotonic();
        if self.settings.only.is_empty() {
            let claims = self.store.claim(self.tenant, self.owner.clone(), room, limits::LEASE_TTL).await?;
            for claim in &claims {
                if let Claim::Refused(error @ StoreError::Damaged { session, .. }) = claim {
                    self.tell_damaged(*session, error, known);
                }
            }
            return Ok(claims.into_iter().filter_map(Claim::granted).map(|lease| (lease, asked)).collect());
        }
        let mut leases = Vec::new();
        for session in &self.settings.only {
            let key = SessionKey { tenant: self.tenant, session: *session };
            let head = self.store.head(key).await?.ok_or(StoreError::NoSession(*session))?;
            let due = head.next_due_at.is_some_and(|at| at <= self.clock.now());
            // One that is worked on here may be given back, for later, in this very moment.
            let ours = head.lease_owner.as_ref() == Some(&self.owner);
            // Held by a live process is no work for this one; a dead holder is found by the claim itself.
            if leases.len() < room && due && !ours {
                let asked = self.clock.monotonic();
                let claim = self.store.claim_session(key, self.owner.clone(), limits::LEASE_TTL).await?;
                leases.extend(claim.granted().map(|lease| (lease, asked)));
            }
        }
        Ok(leases)
    }

    /// Reports a session that is due and that no process may run, once.
    fn tell_damaged(&self, session: SessionId, error: &StoreError, known: &mut SkipMemory) {
        let skipped = (Skip::WakeFailed, Some(ServeFault::Store(error.clone())));
        if known.told.get(&session) != Some(&skipped) {
            let (reason, fault) = (skipped.0, skipped.1.as_ref());
            (self.journal)(Activity::Skipped { cycle: 0, session, reason, fault, again: None });
            known.told.insert(session, skipped);
        }
    }

    /// Tells of it; of a skip only once for a session until its reason changes. Gives whether it could not be run.
    fn tell(&self, ended: Result<ServedSession, JoinError>, known: &mut SkipMemory) -> bool {
        let ended = match ended {
            Ok(ended) => ended,
            // Its lease runs out, and the next holder settles what it left.
            Err(broken) => {
                if broken.is_panic() {
                    tracing::error!("the task of a session broke: {broken}");
                }
                return false;
            }
        };
        let failed = ended.failed();
        let ServedSession { cycle, session, outcome } = ended;
        if failed {
            *known.streaks.entry(session).or_default() += 1;
        } else {
            known.streaks.remove(&session);
        }
        match &outcome {
            Outcome::Ran(ran) => {
                known.told.remove(&session);
                if let Some((end, state)) = ran.as_deref() {
                    (self.journal)(Activity::Ran { cycle, session, end, state });
                }
            }
            Outcome::Skipped(reason, fault, again) => {
                let skipped = (*reason, fault.clone());
                if known.told.get(&session) == Some(&skipped) {
                    return failed;
                }
                known.told.insert(session, skipped);
                let fault = fault.as_ref();
                (self.journal)(Activity::Skipped { cycle, session, reason: *reason, fault, again: *again });
            }
        }
        failed
    }

    /// One session, from its lease to giving it back. `streak`: how often in a row it would have failed here by then.
    fn serve(
        &self,
        lease: Lease,
        asked: Duration,
        cycle: u64,
        streak: u32,
        stop: CancellationToken,
    ) -> impl Future<Output = ServedSession> + Send + 'static {
        let (crew, store, clock) = (Arc::clone(&self.crew), Arc::clone(&self.store), Arc::clone(&self.clock));
        let journal = Arc::clone(&self.journal);
        let (session, fence) = (lease.session, lease.fence);
        let key = SessionKey { tenant: self.tenant, session };
        let later = move || clock.now().plus(backoff(&Settings::default(), streak));
        async move {
            let ran = |end: &WakeEnd, state: &State| journal(Activity::Ran { cycle, session, end, state });
            let outcome = match attend(&*crew, (lease, asked), &later, &ran, &stop).await {
                Ok(outcome) => outcome,
                Err(fault) => {
                    let later = later();
                    if let Err(error) = store.defer(key, fence, later).await {
                        tracing::warn!(%session, "a session was not given back properly: {error}");
                    }
                    Outcome::Skipped(Skip::WakeFailed, Some(fault), Some(later))
                }
            };
            ServedSession { cycle, session, outcome }
        }
    }
}

/// An error: it could not even be opened, and its lease is still to be given back.
async fn attend(
    crew: &dyn Crew,
    (lease, asked): (Lease, Duration),
    later: &(impl Fn() -> Timestamp + Sync),
    ran: &(impl Fn(&WakeEnd, &State) + Sync),
    stop: &CancellationToken,
) -> Result<Outcome, ServeFault> {
    let post = crew.take(lease.session).await.map_err(ServeFault::NotOpened)?;
    let held = post.gate.hold(lease, asked).await?;
    let mut outcome = Outcome::Skipped(Skip::Idle, None, None);
    let failed = loop {
        match post.harness.wake(&held, stop).await {
            Ok(Woken::Executed(end)) if !(held.lost().is_cancelled() && end.stop == WakeStop::Broken) => {
                outcome = Outcome::Ran(match held.has_tasks() {
                    // What it left may hold the session for long.
                    true => {
                        ran(&end, &held.state());
                        None
                    }
                    false => Some(Box::new((*end, held.state()))),
                });
            }
            Err(halt) => break Some(halt),
            Ok(_) => {}
        }
        if !post.harness.goes_on(&held, stop).await {
            break None;
        }
    };
    if held.lost().is_cancelled() {
        // Not ours any more: nothing more is written, also not that it is given back.
        return Ok(if matches!(outcome, Outcome::Ran(_)) {
            outcome
        } else {
            Outcome::Skipped(Skip::LeaseLost, None, None)
        });
    }
    if matches!(failed, Some(Halt::FenceLost(_))) {
        outcome = Outcome::Skipped(Skip::LeaseLost, None, None);
    } else if let Some(halt) = &failed {
        outcome = Outcome::Skipped(Skip::WakeFailed, Some(halt.into()), Some(later()));
    }
    // What the log refused it will refuse again in the next moment: never a hot loop (agent-runtime 5.7).
    let again = match &outcome {
        Outcome::Skipped(Skip::WakeFailed, _, again) => *again,
        _ => None,
    };
    if let Err(error) = held.release_until(again).await {
        tracing::warn!("a session was not given back properly: {error}");
    }
    Ok(outcome)
}
