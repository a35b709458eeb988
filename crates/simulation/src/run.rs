//! One run: a troubled part in which everything goes wrong that can, and a healed part in which everything must come to
//! rest.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::Digest;
use portcullis_event::State;
use portcullis_store::{AskFilter, Log as _, deliver_outbox};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::checks;
use crate::dice::Dice;
use crate::ground::Ground;
use crate::link::LinkState;
use crate::options::Options;
use crate::people::People;
use crate::process::Process;
use crate::worker::{clear_the_queue, visit, work};

/// After this much virtual time without faults everything must be at rest. Clock jumps of up to an hour each way leave
/// leases and due times that far ahead; the sum of all jumps is kept within [`MOST_OFF`].
const HEAL_BOUND: Duration = Duration::from_secs(5 * 3_600);
/// How far a clock may be off, in seconds.
const MOST_OFF: i64 = 3_600;
/// How long a process may take to end its work once everything works again: the longest tool, its line at a key, and the
/// lease of a neighbour that has to run out first.
const WIND_DOWN: Duration = Duration::from_secs(1_800);

/// What a run leaves behind.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub options: Options,
    /// Every rule that was broken.
    pub breaches: Vec<String>,
    /// Over all events of all logs: equal seeds, equal digests.
    pub digest: Digest,
    pub events: usize,
    pub effects: usize,
    pub intents: usize,
    /// Sessions that the outbox made.
    pub children: usize,
    /// The longest that a free session was due before a worker came (F12).
    pub longest_wait: Duration,
}

struct Worker {
    process: Arc<Process>,
    task: JoinHandle<()>,
}

/// Runs one world to its end. Must be called in a current-thread runtime with paused time.
///
/// # Errors
/// A fault of the simulation itself, in words.
pub async fn run(options: Options) -> Result<Outcome, String> {
    let ground = Arc::new(Ground::new(options).map_err(|e| e.to_string())?);
    for key in &ground.sessions {
        ground.create(*key).await.map_err(|e| e.to_string())?;
    }
    let stop = CancellationToken::new();
    let mut crew = Vec::new();
    for number in 0..ground.options.workers {
        crew.push(begin(&ground, format!("worker {number}"), &stop)?);
    }
    let people = tokio::spawn(People::new(&ground).live(stop.clone()));
    trouble(&ground, &mut crew, &stop).await?;
    heal(&ground, crew, people, &stop).await?;
    checks::all(&ground).await
}

fn begin(ground: &Arc<Ground>, name: String, stop: &CancellationToken) -> Result<Worker, String> {
    let process = Process::start(ground, name)?;
    let task = tokio::spawn(work(Arc::clone(&process), stop.clone()));
    Ok(Worker { process, task })
}

/// Until the calls are used up or the time is.
async fn trouble(ground: &Arc<Ground>, crew: &mut [Worker], stop: &CancellationToken) -> Result<(), String> {
    let options = &ground.options;
    let dice = Dice::of(options.seed, "trouble");
    let end = Instant::now() + options.span;
    let mut born = crew.len();
    while Instant::now() < end && ground.calls_left() > 0 {
        tokio::time::sleep(Duration::from_millis(dice.between(50, 5_000))).await;
        let at = dice.index(crew.len());
        let process = &crew[at].process;
        let mut roll = dice.below(100);
        let mut is = |share: u64| {
            let hit = roll < share;
            roll = if hit { u64::MAX } else { roll - share };
            hit
        };
        if is(options.kills) {
            process.kill();
            crew[at] = begin(ground, format!("worker {born}"), stop)?;
            born += 1;
        } else if is(options.cuts) {
            process.link.set(LinkState::Cut);
            let (link, pause) = (Arc::clone(&process.link), Duration::from_millis(dice.between(100, 60_000)));
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                link.set(LinkState::Up);
            });
        } else if is(options.interrupts) {
            process.interrupt_now();
        } else if is(options.store_jumps) {
            jump(&ground.clock, &dice);
            ground.oracle.store_clock_jumped();
        } else if is(options.worker_jumps) {
            jump(&process.clock, &dice);
        }
    }
    Ok(())
}

fn jump(clock: &crate::clock::SimClock, dice: &Dice) {
    let far = dice.pick(&[5i64, 40, 600, 3_600]);
    let by = if dice.chance(50) { far } else { -far };
    clock.jump((clock.off_by() + by).clamp(-MOST_OFF, MOST_OFF) - clock.off_by());
}

/// Faults off: everything comes to rest.
async fn heal(
    ground: &Arc<Ground>,
    crew: Vec<Worker>,
    people: JoinHandle<()>,
    stop: &CancellationToken,
) -> Result<(), String> {
    ground.heal();
    for worker in &crew {
        worker.process.link.set(LinkState::Up);
    }
    stop.cancel();
    let oracle = &ground.oracle;
    if tokio::time::timeout(WIND_DOWN, people).await.is_err() {
        oracle.breach("liveness", "people do not come to an end");
    }
    for worker in crew {
        if tokio::time::timeout(WIND_DOWN, worker.task).await.is_err() {
            oracle.breach("liveness", format!("{} does not come to an end", worker.process.name));
        }
    }
    let healer = Process::start(ground, "healer".to_owned())?;
    let end = Instant::now() + HEAL_BOUND;
    let mut pause = Duration::from_secs(1);
    // First by the queue alone: what was queued or answered must have left a wake (S11).
    while !wakes_are_done(ground, &healer).await {
        if Instant::now() > end {
            oracle.breach("liveness", format!("leases and wakes do not end: {}", unrest(ground).await));
            return Ok(());
        }
        if let Err(halt) = clear_the_queue(&healer).await {
            oracle.breach("liveness", format!("the healer is halted: {halt}"));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
    }
    check_no_lost_wakes(ground).await;
    // Then everyone is visited: calls of dead processes that no wake named, and asks that nobody answers.
    loop {
        for key in ground.known().await {
            if let Err(halt) = visit(&healer, key).await {
                oracle.breach("liveness", format!("attending to {} is halted: {halt}", key.session));
            }
        }
        let left = unrest(ground).await;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            oracle.breach("liveness", format!("not at rest: {left}"));
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(300)).await;
    }
}

/// Everything is delivered, and no session is due.
async fn wakes_are_done(ground: &Ground, healer: &Process) -> bool {
    if let Err(error) = deliver_outbox(&*healer.store).await {
        ground.oracle.breach("liveness", format!("the outbox is not delivered: {error}"));
    }
    for key in ground.known().await {
        let head = ground.store.head(key).await.ok().flatten();
        if head.is_some_and(|head| head.next_due_at.is_some()) {
            return false;
        }
    }
    true
}

/// S11 and S12: no call is queued and no ask answered for nobody.
async fn check_no_lost_wakes(ground: &Ground) {
    for key in ground.known().await {
        let events = ground.store.read(key, 0, usize::MAX).await.unwrap_or_default();
        let state = State::fold(&events);
        // While blocked, a session is due only once its ask is answered (store §4): the ask is the way on.
        let blocked = state.asks.pending().next().is_some();
        for call in state.session.queued.iter().filter(|_| !blocked) {
            ground.oracle.breach("S11", format!("{} was queued in {} and nobody comes", call.event_id, key.session));
        }
        for ask in state.asks.answered() {
            ground.oracle.breach("S11", format!("{} of {} was answered and nobody comes", ask.ask_id, key.session));
        }
    }
}

/// What is not at rest, in words.
async fn unrest(ground: &Ground) -> String {
    let mut found = Vec::new();
    for key in ground.known().await {
        for row in ground.store.intents(key, true).await.unwrap_or_default() {
            found.push(format!("{} {:?}", row.intent_id, row.state));
        }
        if let Ok(Some(head)) = ground.store.head(key).await
            && (head.lease_owner.is_some() || head.next_due_at.is_some())
        {
            found.push(format!("{} held until {:?}, due {:?}", key.session, head.lease_until, head.next_due_at));
        }
    }
    let filter = AskFilter { session: None, pending: true };
    for tenant in &ground.tenants {
        let asks = ground.store.asks(*tenant, filter).await.unwrap_or_default();
        found.extend(asks.iter().map(|ask| format!("{} pending", ask.ask_id)));
    }
    found.truncate(6);
    found.join(", ")
}
