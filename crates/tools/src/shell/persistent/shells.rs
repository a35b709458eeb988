//! The persistent shells of one runtime, at most one a session.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::{Clock, Entropy, IdGen, SessionId, ShellId};
use portcullis_contract::{ShellFact, ToolContext, ToolFailure};
use portcullis_event::fold::ShellStatus;
use portcullis_pipeline::ShellBook;
use portcullis_sandbox::hand::Unheld;
use portcullis_sandbox::shell::{Program, Shell, StartError, Stream, line};
use portcullis_sandbox::{MountTable, VirtualPath};
use portcullis_secret::SecretText;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::running_shell::{CurrentCommand, RunningShell, ShellActivity, ShellLifetime, Start};
use super::wait::UncollectedEnd;
use super::words::{ShellChange, preview};
use crate::hand::{Hand, Reach, VisiblePlaces, appeared_words, outermost, tell_appeared, tell_unheld};
use crate::shell::session_shell::{Change, LiveCommand, LiveShell, LiveView, ShellBusy};
use crate::shell::{no_shell, unseen};

/// What shells are made of.
pub struct ShellParts {
    /// What launches them.
    pub hand: Hand,
    /// What the log knows.
    pub book: ShellBook,
    /// The time, also that of idle shells.
    pub clock: Arc<dyn Clock>,
    /// For their ids.
    pub ids: Arc<dyn IdGen>,
    /// For the tokens of their commands.
    pub entropy: Arc<dyn Entropy>,
}

/// The persistent shells of one runtime. Clones are one registry. When the last one is dropped its shells end.
#[derive(Clone)]
pub struct Shells(Arc<Inner>);

struct Inner {
    parts: ShellParts,
    idle: Duration,
    live: Mutex<HashMap<SessionId, Arc<RunningShell>>>,
    uncollected: Mutex<HashMap<SessionId, UncollectedEnd>>,
    tasks: TaskTracker,
    /// No shell is kept that is opened from now on.
    closing: AtomicBool,
    /// Sessions in whose shell a command runs.
    busy: Mutex<HashSet<SessionId>>,
    /// Counts what becomes of commands, so that it can be waited for.
    ends: watch::Sender<u64>,
    /// What was found when a shell ended that no call ended: told by the next call of its session, or at the shutdown.
    left_behind: Mutex<Vec<(SessionId, ShellId, PathBuf)>>,
}

/// What a shell left behind that no call has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    pub session: SessionId,
    pub shell: ShellId,
    /// One for each place that something outside of the sandbox would run.
    pub warnings: Vec<String>,
}

/// What a call wants of its session's shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellChoice {
    /// The one that is there, or one.
    Any,
    /// Another one.
    Fresh,
}

impl Shells {
    /// None yet. A shell that nobody has used for `idle` is closed, and so is one whose session is over.
    #[must_use]
    pub fn new(parts: ShellParts, idle: Duration) -> Self {
        let (live, uncollected) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner {
            parts,
            idle,
            live,
            uncollected,
            tasks: TaskTracker::new(),
            closing: AtomicBool::new(false),
            busy: Mutex::default(),
            ends: watch::Sender::new(0),
            left_behind: Mutex::default(),
        }))
    }

    pub(super) fn hand(&self) -> &Hand {
        &self.0.parts.hand
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.0.parts.clock
    }

    fn live(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<RunningShell>>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uncollected(&self) -> MutexGuard<'_, HashMap<SessionId, UncollectedEnd>> {
        self.0.uncollected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a command, to be collected once.
    pub(super) fn leave(&self, session: SessionId, done: UncollectedEnd) {
        self.uncollected().insert(session, done);
        self.ended();
    }

    /// It is given once.
    pub(super) fn collect(&self, session: SessionId) -> Option<UncollectedEnd> {
        self.uncollected().remove(&session)
    }

    /// A command has begun, or has ended and left what it leaves; also one whose shell died of it.
    pub(super) fn mark_busy(&self, session: SessionId, busy: bool) {
        let mut sessions = self.0.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if busy {
            sessions.insert(session);
        } else {
            sessions.remove(&session);
        }
        drop(sessions);
        if busy {
            // What nobody collected is a command of the past now.
            self.collect(session);
        }
        self.ended();
    }

    pub(super) fn is_busy(&self, session: SessionId) -> bool {
        self.0.busy.lock().unwrap_or_else(PoisonError::into_inner).contains(&session)
    }

    /// Something of a command has changed.
    fn ended(&self) {
        self.0.ends.send_modify(|ends| *ends = ends.wrapping_add(1));
    }

    /// Comes with the next one from now on.
    pub(super) fn next_end(&self) -> impl Future<Output = ()> + 'static {
        let mut ends = self.0.ends.subscribe();
        async move {
            let _ = ends.changed().await;
        }
    }

    /// The shell of a session, if it lives.
    pub(super) fn of(&self, session: SessionId) -> Option<Arc<RunningShell>> {
        self.live().get(&session).filter(|live| live.over().is_none()).cloned()
    }

    /// What was found when shells of a session ended, to be told now.
    fn found_later(&self, session: SessionId) -> Vec<PathBuf> {
        let mut left = self.0.left_behind.lock().unwrap_or_else(PoisonError::into_inner);
        left.extract_if(.., |(owner, ..)| *owner == session).map(|(.., place)| place).collect()
    }

    /// Ends all of them; nothing is started any more once this has begun. What they left behind and no call has told is
    /// given back, to be written down and told to a person.
    pub async fn shutdown(&self) -> Vec<LeftBehind> {
        // Before the map is emptied: who comes later sees it, who came earlier is in the map.
        self.0.closing.store(true, Ordering::SeqCst);
        let all: Vec<Arc<RunningShell>> = self.live().drain().map(|(_, live)| live).collect();
        futures_util::future::join_all(all.iter().map(|live| live.close())).await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
        let left = std::mem::take(&mut *self.0.left_behind.lock().unwrap_or_else(PoisonError::into_inner));
        let mut by_shell: BTreeMap<(SessionId, ShellId), Vec<PathBuf>> = BTreeMap::new();
        for (session, shell, place) in left {
            by_shell.entry((session, shell)).or_default().push(place);
        }
        let words = |places: Vec<PathBuf>| appeared_words(&places);
        let all = by_shell.into_iter();
        all.map(|((session, shell), places)| LeftBehind { session, shell, warnings: words(places) }).collect()
    }

    /// Takes a shell out that died of its command. If the session has another one by now, that is left alone, and
    /// the call that put it there has reported this one.
    pub(super) async fn end_of(&self, context: &ToolContext, died: &Arc<RunningShell>) {
        let session = context.caller().session_id;
        if self.live().get(&session).is_some_and(|live| Arc::ptr_eq(live, died)) {
            self.end(context, "died").await;
        }
    }

    /// Takes a shell out and ends it. What became of it is told.
    pub(super) async fn end(&self, context: &ToolContext, reason: &str) -> Option<ShellId> {
        let live = self.live().remove(&context.caller().session_id)?;
        // Told as it was, if it was gone already.
        let reason = live.over().map_or_else(|| reason.to_owned(), |over| over.word().to_owned());
        live.close().await;
        let mut appeared = live.look_again(self.hand()).await;
        appeared.extend(self.found_later(context.caller().session_id));
        outermost(&mut appeared);
        tell_appeared(context, &appeared);
        let shell_id = live.start.id;
        context.shell(ShellFact::Closed { shell_id, reason });
        Some(shell_id)
    }

    /// The shell that a call works with: the session's own if it lives and sees no more than it may, else a new one in
    /// `cwd` with the session's environment.
    pub(super) async fn ready(
        &self,
        context: &ToolContext,
        cwd: &VirtualPath,
        wanted: ShellChoice,
    ) -> Result<Arc<RunningShell>, ToolFailure> {
        let session = context.caller().session_id;
        tell_appeared(context, &self.found_later(session));
        let known = self.live().get(&session).cloned();
        match known {
            Some(live) if wanted == ShellChoice::Any && live.over().is_none() => {
                let (caller, Start { masks, emptied, later, .. }) = (context.caller(), &live.start);
                let sighted = self.hand().sighted().await?;
                let why = if self.hand().masks_changed(caller, masks).await? {
                    "a rule denies reading a file that it could see"
                } else if self.hand().secrets_changed(caller, masks, emptied, Arc::clone(&sighted)).await? {
                    "there is a file that holds secrets and that it could see, or see empty"
                } else if self.hand().places_changed(later, &sighted) {
                    "there is a file that runs later outside of the sandbox and that it could change"
                } else {
                    return Ok(live);
                };
                context.warn(format!(
                    "the shell was started anew because {why}; its folder and exported variables are kept, functions and \
                     other variables are not"
                ));
                self.end(context, "rules").await;
            }
            Some(_) => {
                self.end(context, "restarted").await;
            }
            None => self.tell_lost(context).await?,
        }
        self.open(context, cwd).await
    }

    /// One that the log still calls active has died with its process.
    pub(super) async fn tell_lost(&self, context: &ToolContext) -> Result<(), ToolFailure> {
        let seen = self.0.parts.book.look(context.caller(), None).await.map_err(unseen)?;
        if let Some(lost) = seen.shell.persistent().filter(|shell| shell.status == ShellStatus::Active) {
            context.shell(ShellFact::Closed { shell_id: lost.shell_id, reason: "lost".to_owned() });
        }
        Ok(())
    }

    async fn open(&self, context: &ToolContext, cwd: &VirtualPath) -> Result<Arc<RunningShell>, ToolFailure> {
        let ShellParts { hand, book, clock, ids, entropy } = &self.0.parts;
        let program = Program::installed().ok_or_else(no_shell)?;
        let mut plan = hand.plan(context.caller(), program.argv(), cwd, Reach::Writable).await?;
        for warning in plan.warnings.drain(..) {
            context.warn(warning);
        }
        let mount = hand.mounts().resolve(cwd.as_str()).ok().map(|place| place.mount().root().as_str().to_owned());
        let start = Start {
            id: ShellId::make(&**ids, clock.now()),
            program,
            mount_path: mount.unwrap_or_else(|| cwd.as_str().to_owned()),
            masks: Arc::clone(&plan.masks),
            emptied: Arc::clone(&plan.emptied),
            seen: VisiblePlaces::of(&plan, hand),
            given: given(&plan.launch.env),
            cwd: cwd.as_str().to_owned(),
            env_keys: plan.env_names.clone(),
            later: plan.later.clone().unwrap_or_default(),
        };
        let broken = |error: StartError| ToolFailure::new("shell_not_started", error.to_string()).retryable(true);
        let own = line(&mut plan.launch).map_err(|error| broken(error.into()))?;
        let running = hand.launch(plan).await?;
        let guards = running.unheld().iter().filter(|one| !matches!(one, Unheld::Empty(_)));
        let unheld = guards.map(|one| one.place().to_owned());
        tell_unheld(context, running.posture(), &hand.virtual_places(unheld));
        let shell = Shell::begin(running, own, program, Arc::clone(entropy)).await.map_err(broken)?;
        context.shell(ShellFact::Opened {
            shell_id: start.id,
            shell_path: program.path().to_owned(),
            cwd: start.cwd.clone(),
        });
        let session = context.caller().session_id;
        let life = ShellLifetime { session, idle: self.0.idle, book: book.clone() };
        let (live, attended) = RunningShell::new(shell, start, Arc::clone(clock), life);
        let (ended, registry, hand) = (Arc::clone(&live), Arc::downgrade(&self.0), hand.clone());
        self.0.tasks.spawn(async move {
            attended.await;
            let mut before = ended.later.lock().await;
            let (now, appeared) = hand.appeared_since(&before).await;
            // Before the lock is given back: the next look finds either these or the places themselves.
            if let Some(registry) = registry.upgrade() {
                let mut left = registry.left_behind.lock().unwrap_or_else(PoisonError::into_inner);
                left.extend(appeared.into_iter().map(|place| (session, ended.start.id, place)));
            }
            *before = now;
        });
        let replaced = {
            let mut all = self.live();
            if self.0.closing.load(Ordering::SeqCst) {
                drop(all);
                live.close().await;
                let text = "the runtime is shutting down, and its shells with it; try again in the next one";
                return Err(ToolFailure::new("shell_not_started", text).retryable(true));
            }
            all.insert(context.caller().session_id, Arc::clone(&live))
        };
        if let Some(other) = replaced {
            // Two calls at once: the scheduler's keys keep that from happening, save for a forced restart.
            self.0.tasks.spawn(async move { other.close().await });
        }
        Ok(live)
    }

    /// Where a virtual path is for a command of this shell.
    pub(super) fn place_in(&self, live: &RunningShell, path: &str) -> PathBuf {
        if live.posture.virtual_paths() {
            return PathBuf::from(path);
        }
        host_of(self.hand().mounts(), path).unwrap_or_else(|| PathBuf::from(path))
    }

    /// Brings a shell to a folder.
    pub(super) async fn go(&self, live: &RunningShell, path: &str) -> bool {
        let there = self.place_in(live, path);
        let gone = matches!(live.quiet(ShellChange::Cd(&there).bytes()).await, Ok(0));
        if gone {
            let mut now = live.now();
            now.cwd = Some(path.to_owned());
            path.clone_into(&mut now.inside);
        }
        gone
    }

    fn view(&self, live: &RunningShell) -> LiveView {
        let ShellActivity {
            inside,
            updated_at,
            last_command_at,
            command_count,
            current,
            env_keys,
            exported,
            altered,
            ..
        } = live.now().clone();
        let given = &live.start.given;
        let names = exported.keys().chain(given.keys().filter(|name| !exported.contains_key(*name)));
        let changed = names.filter(|name| exported.get(*name) != given.get(*name)).cloned().collect();
        let shown = |current: &CurrentCommand, stream| {
            let text = self.0.parts.book.masked(&current.tails.text(stream));
            (!text.is_empty()).then(|| preview(&text))
        };
        LiveView {
            shell_id: live.start.id,
            shell_path: live.start.program.path().to_owned(),
            mount_path: live.start.mount_path.clone(),
            cwd: inside,
            started_at: live.started_at,
            updated_at,
            last_command_at,
            command_count,
            current: current.map(|current| LiveCommand {
                command: self.0.parts.book.masked(&current.line),
                started_at: current.started_at,
                stdout_preview: shown(&current, Stream::Stdout),
                stderr_preview: shown(&current, Stream::Stderr),
            }),
            env_keys,
            env: exported,
            changed,
            altered,
        }
    }
}

/// The host's name of a virtual path.
fn host_of(mounts: &MountTable, path: &str) -> Option<PathBuf> {
    let place = mounts.resolve(path).ok()?;
    let rest = Path::new(place.path().as_str()).strip_prefix(place.mount().root().as_str()).ok()?.to_owned();
    let host = place.mount().host_place()?;
    Some(if rest.as_os_str().is_empty() { host } else { host.join(rest) })
}

/// What is text of an environment.
fn given(env: &[(OsString, OsString)]) -> BTreeMap<String, SecretText> {
    let text =
        |(name, value): &(OsString, OsString)| Some((name.to_str()?.to_owned(), SecretText::new(value.to_str()?)));
    env.iter().filter_map(text).collect()
}

impl LiveShell for Shells {
    fn look(&self, session: SessionId) -> Option<LiveView> {
        self.of(session).map(|live| self.view(&live))
    }

    fn change(&self, session: SessionId, change: Change) -> BoxFuture<'_, Result<(), ShellBusy>> {
        async move {
            let Some(live) = self.of(session) else { return Ok(()) };
            if live.now().current.is_some() {
                return Err(ShellBusy);
            }
            let done = match &change {
                Change::Cwd(path) => self.go(&live, path).await,
                Change::EnvSet(key, value) => matches!(live.quiet(ShellChange::Set(key, value).bytes()).await, Ok(0)),
                Change::EnvUnset(key) => matches!(live.quiet(ShellChange::Unset(key).bytes()).await, Ok(0)),
            };
            live.now().knows(&change);
            if !done {
                // What the session says holds: the next shell starts so.
                live.close().await;
            }
            Ok(())
        }
        .boxed()
    }
}
