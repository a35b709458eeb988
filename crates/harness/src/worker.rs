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
use portcullis_store::{Claim, Lease, LeaseOwner, SessionKey, Store, StoreError};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{Harness, Stopped, WakeEnd, Woken};

/// Sessions that one process runs at once. A wake waits for its model most of the time; what its calls may use together is
/// bounded elsewhere. More would only make each of them slower.
pub const SESSIONS_AT_ONCE: usize = 16;
/// Notices may be lost, and time makes sessions due without one.
pub const POLL: Duration = Duration::from_secs(1);
/// How often expired asks and old responses are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// Wakes of a worker that does not watch.
pub const CYCLES: u64 = 10;

/// Where a session's wakes run, for whoever runs many.
#[async_trait]
pub trait Crew: Send + Sync {
    /// The gate and the harness for a session. An error is told once and the session left alone until its lease has run
    /// out: nothing was written, so its input is still there (5.7).
    async fn take(&self, session: SessionId) -> Result<Post, String>;
}

/// A place to run wakes.
#[derive(Clone)]
pub struct Post {
    pub gate: Gate,
    pub harness: Arc<Harness>,
    /// Whatever must live as long as somebody works here: tools are registered while their runtime lives.
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

/// One thing that a worker did (5.9).
#[derive(Debug)]
pub enum Activity<'a> {
    /// A wake ran. `state` is the session after it.
    Ran { cycle: u64, session: SessionId, end: &'a WakeEnd, state: &'a State },
    /// A session was taken up and no wake ran. `again`: when it is looked at again, where that is known.
    Skipped { cycle: u64, session: SessionId, reason: Skip, message: Option<&'a str>, again: Option<Timestamp> },
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

/// What one session came to.
struct Ended {
    cycle: u64,
    session: SessionId,
    outcome: Outcome,
}

enum Outcome {
    Ran(Box<WakeEnd>, Box<State>),
    Skipped(Skip, Option<String>, Option<Timestamp>),
}

impl Worker {
    /// Runs until nothing is due, a limit is reached, or `cancel`: then what runs is cancelled as its tools allow, its wakes
    /// stay open for the next who comes, and leases are given back, within [`limits::SHUTDOWN`].
    ///
    /// # Errors
    /// If the store cannot be asked for work.
    pub async fn run(&self, cancel: &CancellationToken) -> Result<WorkerStop, StoreError> {
        let mut running = JoinSet::new();
        let stop = cancel.child_token();
        let looped = self.looped(&mut running, &stop).await;
        // Also after a fault: nothing goes on that nobody would hear of.
        stop.cancel();
        let settle = async {
            while let Some(ended) = running.join_next().await {
                self.tell(ended.ok(), &mut HashMap::new());
            }
        };
        if tokio::time::timeout(limits::SHUTDOWN, settle).await.is_err() {
            // As a crash would: their leases run out, and recovery settles them.
            running.abort_all();
        }
        looped
    }

    async fn looped(&self, running: &mut JoinSet<Ended>, stop: &CancellationToken) -> Result<WorkerStop, StoreError> {
        let settings = &self.settings;
        let most = settings.max_cycles.unwrap_or(if settings.watch { u64::MAX } else { CYCLES });
        let mut changes = self.store.changes();
        let mut told = HashMap::new();
        let (mut cycle, mut swept) = (0u64, None::<Duration>);
        let mut busy = self.clock.monotonic();
        loop {
            if stop.is_cancelled() {
                return Ok(WorkerStop::Interrupted);
            }
            // Before it looks: what is committed meanwhile wakes the next wait.
            changes.mark_unchanged();
            let now = self.clock.monotonic();
            if swept.is_none_or(|at| now.saturating_sub(at) >= SWEEP_EVERY) {
                while self.store.sweep().await?.more() {}
                swept = Some(now);
            }
            let free = settings.at_once.max(1).saturating_sub(running.len());
            let room = free.min(usize::try_from(most - cycle).unwrap_or(usize::MAX));
            let claimed = self.claim(room).await?;
            let idle = claimed.is_empty() && running.is_empty();
            for (lease, asked) in claimed {
                cycle += 1;
                running.spawn(serve(Arc::clone(&self.crew), lease, asked, cycle, stop.clone()));
            }
            if !running.is_empty() {
                busy = self.clock.monotonic();
            }
            if cycle >= most && running.is_empty() {
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
            let full = running.len() >= settings.at_once.max(1) || cycle >= most;
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                Some(ended) = running.join_next() => self.tell(ended.ok(), &mut told),
                // With every place taken there is nobody to wake.
                changed = changes.changed(), if !full => if changed.is_err() { std::future::pending::<()>().await },
                () = tokio::time::sleep(settings.poll.min(budget)), if !full => {}
            }
        }
    }

    /// Leases of due sessions, with the monotonic time from before each was asked for.
    async fn claim(&self, room: usize) -> Result<Vec<(Lease, Duration)>, StoreError> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let asked = self.clock.monotonic();
        if self.settings.only.is_empty() {
            let claims = self.store.claim(self.tenant, self.owner.clone(), room, limits::LEASE_TTL).await?;
            return Ok(claims.into_iter().filter_map(granted).map(|lease| (lease, asked)).collect());
        }
        let mut leases = Vec::new();
        for session in &self.settings.only {
            let key = SessionKey { tenant: self.tenant, session: *session };
            let head = self.store.head(key).await?.ok_or(StoreError::NoSession(*session))?;
            let due = head.next_due_at.is_some_and(|at| at <= self.clock.now());
            // Held by a live process is no work for this one; a dead holder is found by the claim itself.
            if leases.len() < room && due {
                let asked = self.clock.monotonic();
                let claim = self.store.claim_session(key, self.owner.clone(), limits::LEASE_TTL).await?;
                leases.extend(granted(claim).map(|lease| (lease, asked)));
            }
        }
        Ok(leases)
    }

    /// Tells of it; of a skip only once for a session until its reason changes.
    fn tell(&self, ended: Option<Ended>, told: &mut HashMap<SessionId, (Skip, Option<String>)>) {
        // `None`: it panicked or was aborted. Its lease runs out, and whoever comes next settles what it left.
        let Some(Ended { cycle, session, outcome }) = ended else { return };
        match &outcome {
            Outcome::Ran(end, state) => {
                told.remove(&session);
                (self.journal)(Activity::Ran { cycle, session, end, state });
            }
            Outcome::Skipped(reason, message, again) => {
                let known = (*reason, message.clone());
                if told.get(&session) == Some(&known) {
                    return;
                }
                told.insert(session, known);
                let message = message.as_deref();
                (self.journal)(Activity::Skipped { cycle, session, reason: *reason, message, again: *again });
            }
        }
    }
}

fn granted(claim: Claim) -> Option<Lease> {
    match claim {
        Claim::Granted(lease) => Some(lease),
        Claim::Held { .. } => None,
    }
}

/// One session, from its lease to giving it back.
async fn serve(crew: Arc<dyn Crew>, lease: Lease, asked: Duration, cycle: u64, stop: CancellationToken) -> Ended {
    let (session, until) = (lease.session, lease.until);
    let outcome = match attend(&*crew, lease, asked, &stop).await {
        Ok(outcome) => outcome,
        Err(message) => Outcome::Skipped(Skip::WakeFailed, Some(message), Some(until)),
    };
    Ended { cycle, session, outcome }
}

async fn attend(crew: &dyn Crew, lease: Lease, asked: Duration, stop: &CancellationToken) -> Result<Outcome, String> {
    let post = crew.take(lease.session).await?;
    let held = post.gate.hold(lease, asked, "local").await.map_err(|error| error.to_string())?;
    let woken = post.harness.wake(&held, stop).await;
    let state = held.state();
    let lost = held.lost().is_cancelled();
    // Not ours any more: nothing more is written, also not that it is given back.
    let released = if lost { Ok(()) } else { held.release().await };
    if let Err(error) = released {
        tracing::warn!("a session was not given back properly: {error}");
    }
    Ok(match woken {
        Ok(Woken::Executed(end)) if !(lost && end.stop == Stopped::Broken) => Outcome::Ran(end, Box::new(state)),
        Ok(Woken::Idle) if !lost => Outcome::Skipped(Skip::Idle, None, None),
        Err(halt) if !lost && !matches!(halt, Halt::FenceLost(_)) => {
            return Err(halt.to_string());
        }
        _ => Outcome::Skipped(Skip::LeaseLost, None, None),
    })
}
