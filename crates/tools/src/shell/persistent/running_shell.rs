//! One shell that runs in this process: a task owns it, everyone else asks that task.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_base::{Clock, SessionId, ShellId, Timestamp};
use portcullis_pipeline::ShellBook;
use portcullis_sandbox::hand::{DiskBreach, Exit, Posture};
use portcullis_sandbox::shell::{FinishedLine, Program, Shell, ShellDied, Sink};
use portcullis_secret::SecretText;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::sink::LiveTails;
use crate::hand::{EmptiedFiles, Hand, LaterPlaces, Masks, VisiblePlaces};
use crate::shell::session_shell::Change;

/// How often it is looked whether nobody has: often enough for a span of any length, and never so often that it costs.
const LOOK_MOST: Duration = Duration::from_secs(2);
const LOOK_LEAST: Duration = Duration::from_millis(5);
/// How many looks there are to a span.
const LOOKS: u32 = 100;
/// How long a change of folder or environment may take; it starts no program but one.
const QUIET: Duration = Duration::from_secs(10);
/// Commands wait at the scheduler's keys, not here.
const QUEUE: usize = 4;

/// A command for the shell.
struct Order {
    command: Vec<u8>,
    sink: Box<dyn ReturnableSink>,
    stop: CancellationToken,
    told: oneshot::Sender<Outcome>,
}

/// How a command ended, and what it was captured with.
pub(super) struct Outcome {
    pub(super) end: Result<FinishedLine, ShellDied>,
    pub(super) sink: Box<dyn ReturnableSink>,
    /// Guarded places, in the view, that are there since this command, besides those that run later.
    pub(super) appeared: Vec<PathBuf>,
    /// It was stopped because too little space was left where it writes.
    pub(super) breach: Option<DiskBreach>,
}

/// A sink that can be taken back.
pub(super) trait ReturnableSink: Sink {
    fn back(self: Box<Self>) -> Option<super::sink::Capture>;
}

impl ReturnableSink for () {
    fn back(self: Box<Self>) -> Option<super::sink::Capture> {
        None
    }
}

impl ReturnableSink for super::sink::Capture {
    fn back(self: Box<Self>) -> Option<super::sink::Capture> {
        Some(*self)
    }
}

/// Why a shell is not there any more, in a word for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellEnd {
    Died,
    Idle,
    /// Its session is over.
    Terminated,
    Closed,
}

impl ShellEnd {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Died => "died",
            Self::Idle => "idle",
            Self::Terminated => "terminated",
            Self::Closed => "closed",
        }
    }
}

/// The command that runs in a shell.
#[derive(Debug, Clone)]
pub(super) struct CurrentCommand {
    pub(super) line: String,
    pub(super) started_at: Timestamp,
    pub(super) tails: Arc<LiveTails>,
}

/// The part of a shell that changes while it lives.
#[derive(Debug, Clone)]
pub(super) struct ShellActivity {
    /// Where it is, by its virtual path; `None`: outside of every mount.
    pub(super) cwd: Option<String>,
    /// Where it was inside last.
    pub(super) inside: String,
    pub(super) updated_at: Timestamp,
    pub(super) last_command_at: Option<Timestamp>,
    pub(super) command_count: u64,
    pub(super) current: Option<CurrentCommand>,
    pub(super) env_keys: Vec<String>,
    /// What it exports, as it was told last.
    pub(super) exported: BTreeMap<String, SecretText>,
    /// Why a word may mean something else in it than in a fresh shell.
    pub(super) altered: Option<String>,
}

impl ShellActivity {
    /// Its environment after a change.
    pub(super) fn knows(&mut self, change: &Change) {
        match change {
            Change::EnvSet(key, value) => {
                self.exported.insert(key.to_string(), value.clone());
                if !self.env_keys.iter().any(|known| known == key.as_str()) {
                    self.env_keys.push(key.to_string());
                    self.env_keys.sort();
                }
            }
            Change::EnvUnset(key) => {
                self.exported.remove(key.as_str());
                self.env_keys.retain(|known| known != key.as_str());
            }
            Change::Cwd(_) => {}
        }
    }
}

/// What a shell was started with.
pub(super) struct Start {
    pub(super) id: ShellId,
    pub(super) program: Program,
    pub(super) mount_path: String,
    pub(super) masks: Arc<Masks>,
    /// Secrets that it sees empty.
    pub(super) emptied: Arc<EmptiedFiles>,
    /// What its commands can see, for telling what was kept from them.
    pub(super) seen: VisiblePlaces,
    /// Its environment: what of it a command leaves as it is, is no change of the session's.
    pub(super) given: BTreeMap<String, SecretText>,
    pub(super) cwd: String,
    pub(super) env_keys: Vec<String>,
    /// What existed of the places that run later before it started.
    pub(super) later: Arc<LaterPlaces>,
}

/// How long a shell may live unused.
pub(super) struct ShellLifetime {
    pub(super) session: SessionId,
    pub(super) idle: Duration,
    /// Tells whether its session is over.
    pub(super) book: ShellBook,
}

/// A shell of this process.
pub(super) struct RunningShell {
    pub(super) start: Start,
    pub(super) started_at: Timestamp,
    pub(super) posture: Posture,
    now: Mutex<ShellActivity>,
    /// What existed of the places that run later when it was last looked. Held during a look.
    pub(super) later: tokio::sync::Mutex<Arc<LaterPlaces>>,
    orders: mpsc::Sender<Order>,
    /// Asks it to end.
    close: CancellationToken,
    over: watch::Receiver<Option<ShellEnd>>,
}

impl RunningShell {
    /// Hands the shell over to a task of its own, which is returned to be spawned.
    pub(super) fn new(
        shell: Shell,
        start: Start,
        clock: Arc<dyn Clock>,
        life: ShellLifetime,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let (orders, received) = mpsc::channel(QUEUE);
        let (tell, over) = watch::channel(None);
        let started_at = clock.now();
        let now = ShellActivity {
            cwd: Some(start.cwd.clone()),
            inside: start.cwd.clone(),
            updated_at: started_at,
            last_command_at: None,
            command_count: 0,
            current: None,
            env_keys: start.env_keys.clone(),
            exported: start.given.clone(),
            altered: None,
        };
        let close = CancellationToken::new();
        let posture = shell.posture().clone();
        let later = tokio::sync::Mutex::new(Arc::clone(&start.later));
        let live = Arc::new(Self {
            start,
            started_at,
            posture,
            now: Mutex::new(now),
            later,
            orders,
            close: close.clone(),
            over,
        });
        let attended = async move {
            let over = attend(shell, received, &close, &*clock, &life).await;
            tell.send_replace(Some(over));
        };
        (live, attended)
    }

    pub(super) fn now(&self) -> MutexGuard<'_, ShellActivity> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What appeared of the places that run later since the last look: also what a process made that outlived its
    /// command. The caller must report it.
    pub(super) async fn look_again(&self, hand: &Hand) -> Vec<PathBuf> {
        let mut before = self.later.lock().await;
        let (now, appeared) = hand.appeared_since(&before).await;
        *before = now;
        appeared
    }

    /// Why it is gone; `None` while it lives.
    pub(super) fn over(&self) -> Option<ShellEnd> {
        *self.over.borrow()
    }

    /// Ends it, and waits until it has.
    pub(super) async fn close(&self) {
        self.close.cancel();
        let mut over = self.over.clone();
        // An error says that its task is gone, and it with that.
        let _ = over.wait_for(Option::is_some).await;
    }

    /// Runs a command to its end, or to that of an interrupt when `stop` comes.
    pub(super) async fn exec(
        &self,
        command: Vec<u8>,
        sink: Box<dyn ReturnableSink>,
        stop: CancellationToken,
    ) -> Result<Outcome, ShellGone> {
        let (told, hear) = oneshot::channel();
        self.orders.send(Order { command, sink, stop, told }).await.map_err(|_| ShellGone::Before)?;
        hear.await.map_err(|_| ShellGone::During)
    }

    /// Runs something small of ours. Its end is the status; what it writes goes nowhere.
    pub(super) async fn quiet(&self, command: Vec<u8>) -> Result<u8, ShellGone> {
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let outcome = tokio::select! {
            biased;
            outcome = self.exec(command, Box::new(()), stop) => outcome?,
            () = async { tokio::time::sleep(QUIET).await; stopping.cancel(); std::future::pending().await } => return Err(ShellGone::During),
        };
        outcome.end.map(|done| done.report.status).map_err(|_| ShellGone::During)
    }
}

/// The shell is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellGone {
    /// It never ran the command.
    Before,
    /// It may have run some of it.
    During,
}

/// Sees a shell through: one order after another, until it dies, is closed, or nobody has used it for long.
async fn attend(
    mut shell: Shell,
    mut orders: mpsc::Receiver<Order>,
    close: &CancellationToken,
    clock: &dyn Clock,
    life: &ShellLifetime,
) -> ShellEnd {
    let mut used = clock.monotonic();
    let look = (life.idle / LOOKS).clamp(LOOK_LEAST, LOOK_MOST);
    // What was told once is not told again.
    let mut known: Vec<PathBuf> = Vec::new();
    loop {
        let order = tokio::select! {
            biased;
            () = close.cancelled() => {
                shell.close().await;
                return ShellEnd::Closed;
            }
            order = orders.recv() => match order {
                Some(order) => order,
                // Nobody knows it any more.
                None => {
                    shell.close().await;
                    return ShellEnd::Closed;
                }
            },
            _ = shell.idle() => return ShellEnd::Died,
            () = tokio::time::sleep(look) => {
                let over = if clock.monotonic().saturating_sub(used) >= life.idle {
                    ShellEnd::Idle
                } else if life.book.is_over(life.session).await {
                    ShellEnd::Terminated
                } else {
                    continue;
                };
                shell.close().await;
                return over;
            }
        };
        let Order { command, mut sink, stop, mut told } = order;
        let disk = shell.running().disk_from_now();
        let mut breach = None;
        let stopped = async {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = close.cancelled() => {}
                // The caller that wanted it is gone.
                () = told.closed() => {}
                hit = disk.breached() => breach = Some(hit),
            }
        };
        let end = shell.exec(&command, &mut *sink, stopped).await;
        used = clock.monotonic();
        let died = end.is_err();
        let mut appeared = shell.running().appeared();
        appeared.retain(|place| !known.contains(place));
        known.extend(appeared.iter().cloned());
        let _ = told.send(Outcome { end, sink, appeared, breach });
        if died {
            return if close.is_cancelled() { ShellEnd::Closed } else { ShellEnd::Died };
        }
    }
}

/// In words.
pub(super) fn exit_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("with exit code {code}"),
        Exit::Signal(signal) => format!("by signal {signal}"),
    }
}
