//! `worker`: takes up sessions that are due, each in the workspace it was made in.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use portcullis::harness::{Activity, Crew, Post, SESSIONS_AT_ONCE, Worker, WorkerSettings, WorkerStop};
use portcullis::model::Model;
use portcullis::{Agent, ModelSetup, ProjectGuidance, Runtime, SessionId, SystemClock};
use portcullis_base::{Clock as _, Digest, WorkerId};
use portcullis_config::{ApprovalMode, ModelChoice, ProjectRules, Settings};
use portcullis_event::LOCAL_TENANT;
use portcullis_store::{AskFilter, HostLiveness, Log as _, StoreError};
use serde_json::json;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::activity::WorkerReport;
use crate::args::{Globals, WorkerArgs};
use crate::ask::Ask;
use crate::exit::{ExitKind, streamed};
use crate::flagged;
use crate::hints;
use crate::render::{self, Term};
use crate::run::{model, warn_of};
use crate::signals::Leave;
use crate::thinker;
use crate::world::{Role, World};

/// Workspaces that are kept open between wakes; past it those that nobody works in are closed.
const WORKSPACES: usize = 64;

/// How often sessions that were named are looked at for asks which another process raised.
const LOOK_FOR_ASKS: Duration = Duration::from_secs(1);

/// How long a store that could not be opened is left alone.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

pub async fn run(args: &WorkerArgs, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let settings = thinker::settings(globals)?;
    let models = ModelsInUse::default();
    // A model that a flag or a variable names is for every session; others may have their own.
    if let Err(error) = models.of(&settings, &settings.model, term).await {
        if settings.chosen.model {
            return Err(error);
        }
        term.note(&format!("{}; sessions that name no model wait", hints::explained_chain(&error)));
    }
    let world = Arc::new(if args.watch { opened(&settings, term).await? } else { World::open(settings, term)? });
    for session in &args.session {
        world.created(*session).await?;
    }
    let clock = Arc::new(SystemClock::new());
    let worker = WorkerId::make(world.ids(), clock.now());
    let crew = Arc::new(Workspaces {
        world: Arc::clone(&world),
        globals: globals.clone(),
        models,
        term: *term,
        open: Mutex::default(),
        retired: Mutex::default(),
    });
    // What happened is read in the log before it is told, so not while the worker looks for more. No more waits here than
    // the worker does between two looks at its own tasks.
    let (happens, mut happened) = mpsc::unbounded_channel();
    let told = *term;
    let worker = Worker {
        store: Arc::clone(&world.store) as _,
        tenant: LOCAL_TENANT,
        clock,
        owner: HostLiveness::new().this_process(worker, "portcullis worker"),
        crew: Arc::clone(&crew) as _,
        settings: WorkerSettings {
            watch: args.watch,
            max_cycles: args.max_cycles,
            idle_timeout: args.idle_timeout,
            at_once: args.at_once.map_or(SESSIONS_AT_ONCE, usize::from),
            only: args.session.clone(),
            ..WorkerSettings::default()
        },
        // Whoever does not listen any more is about to leave.
        journal: Arc::new(move |activity| {
            drop(WorkerReport::of(activity, &told).map(|happened| happens.send(happened)))
        }),
    };
    let stop = CancellationToken::new();
    let mut leave = Leave::listen()?;
    // Whoever names sessions and an answer for their asks means also those that others raised.
    let answers_named = !args.session.is_empty() && world.settings.approvals != ApprovalMode::Ask;
    if args.watch {
        term.note("waiting for sessions that are due; Ctrl-C ends it");
        if !answers_named {
            tell_waiting(&world, term).await?;
        }
    }
    let broken = |error| streamed(term, json!({"type": "stopped", "reason": "error"}), error);
    let (mut left, mut interrupted) = (None, false);
    if answers_named {
        crew.answer_named(&args.session, term).await;
    }
    let mut work = Box::pin(worker.run(&stop));
    let mut answered = 0;
    let mut looks = tokio::time::interval(LOOK_FOR_ASKS);
    let stopped = loop {
        tokio::select! {
            biased;
            _ = looks.tick(), if answers_named && !stop.is_cancelled() => {
                answered += crew.answer_named(&args.session, term).await;
            }
            Some(happened) = happened.recv() => answered += crew.heard(&happened, term).await,
            stopped = &mut work => {
                let stopped = stopped.map_err(|error| broken(error.into()))?;
                while let Ok(happened) = happened.try_recv() {
                    answered += crew.heard(&happened, term).await;
                }
                // An answer that was given meanwhile is work again.
                if stopped != WorkerStop::Idle || std::mem::take(&mut answered) == 0 {
                    break stopped;
                }
                work = Box::pin(worker.run(&stop));
            }
            how = leave.next() => {
                match how {
                    // As a crash would: whoever comes next settles what is left.
                    ExitKind::Interrupted if std::mem::replace(&mut interrupted, true) => return Ok(how),
                    ExitKind::Interrupted => {
                        term.note("interrupted: waiting for what runs to settle; Ctrl-C again leaves at once");
                    }
                    _ => {}
                }
                left.get_or_insert(how);
                stop.cancel();
            }
        }
    };
    crew.close().await;
    if term.json {
        let waiting = waiting(&world).await?;
        let last = json!({"type": "stopped", "reason": stopped, "waiting_sessions": waiting});
        term.bytes(format!("{last}\n").as_bytes())?;
    } else {
        term.note(&format!("stopped: {}", render::word(&stopped)));
        tell_waiting(&world, term).await?;
    }
    Ok(match left {
        // SIGTERM is an order that was followed.
        Some(how) if stopped == WorkerStop::Interrupted && how != ExitKind::Terminated => how,
        _ => ExitKind::Done,
    })
}

/// Opens the store. One that is locked or has no room is waited for, as it is later on.
async fn opened(settings: &Settings, term: &Term) -> anyhow::Result<World> {
    let mut waited = false;
    loop {
        let (again, told) = (settings.clone(), *term);
        // Opening waits for a lock by itself for a while, and may not keep the signals from being heard meanwhile.
        let error = match tokio::task::spawn_blocking(move || World::open(again, &told)).await? {
            Ok(world) => {
                if waited {
                    WorkerReport::of(Activity::StoreBack, term);
                }
                return Ok(world);
            }
            Err(error) => error,
        };
        let passing =
            error.downcast_ref().filter(|found| matches!(found, StoreError::Locked(_) | StoreError::DiskFull { .. }));
        let Some(passing) = passing else { return Err(error) };
        if !std::mem::replace(&mut waited, true) {
            WorkerReport::of(Activity::StoreFailed { error: passing }, term);
        }
        tokio::time::sleep(OPEN_AGAIN).await;
    }
}

/// How many sessions wait for an answer.
async fn waiting(world: &World) -> anyhow::Result<usize> {
    let sessions: BTreeSet<SessionId> = Ask::pending(world).await?.iter().map(|ask| ask.row.session_id).collect();
    Ok(sessions.len())
}

/// A worker answers no ask that it did not raise, unless its session was named; then somebody else must.
async fn tell_waiting(world: &World, term: &Term) -> anyhow::Result<()> {
    let (count, list) = (waiting(world).await?, world.command("approvals list"));
    match count {
        0 => {}
        1 => term.note(&format!("1 session waits for an answer: {list}")),
        _ => term.note(&format!("{count} sessions wait for an answer: {list}")),
    }
    Ok(())
}

/// The models that sessions work with, each opened once.
#[derive(Default)]
struct ModelsInUse(Mutex<HashMap<String, OpenedModel>>);

type OpenedModel = (Arc<dyn Model>, Option<ModelSetup>);

impl ModelsInUse {
    async fn of(&self, settings: &Settings, choice: &ModelChoice, term: &Term) -> anyhow::Result<OpenedModel> {
        let mut open = self.0.lock().await;
        let name = format!("{choice:?}");
        if let Some(known) = open.get(&name) {
            return Ok(known.clone());
        }
        let opened = model::choose(settings, choice, false, term).await?;
        open.insert(name, opened.clone());
        Ok(opened)
    }
}

/// A runtime for each setup that sessions run as.
struct Workspaces {
    world: Arc<World>,
    globals: Globals,
    models: ModelsInUse,
    term: Term,
    /// By the hash of the setup.
    open: Mutex<HashMap<Digest, Arc<OpenWorkspace>>>,
    /// Those whose rules have changed, until nobody works there any more.
    retired: Mutex<Vec<Arc<OpenWorkspace>>>,
}

struct OpenWorkspace {
    runtime: Runtime,
    agent: Agent,
    /// The settings and rules that it was made with, and the guidance.
    made_with: Digest,
    guidance: ProjectGuidance,
}

#[async_trait]
impl Crew for Workspaces {
    async fn take(&self, session: SessionId) -> Result<Post, String> {
        let place = self.place(session).await.map_err(|error| hints::explained_chain(&error))?;
        Ok(Post { keep: Arc::clone(&place) as _, ..place.agent.post() })
    }
}

impl Workspaces {
    /// Tells of it, and answers what it waits for if a flag does. Gives how many asks that were.
    async fn heard(&self, happened: &WorkerReport, term: &Term) -> usize {
        happened.tell(&self.world, term).await;
        match happened.waiting() {
            Some(session) => self.answer(session, term).await,
            None => 0,
        }
    }

    /// Answers what waits in sessions that were named. Gives how many asks that were.
    async fn answer_named(&self, sessions: &[SessionId], term: &Term) -> usize {
        let mut answered = 0;
        for session in sessions {
            let filter = AskFilter { session: Some(*session), pending: true };
            // Most of the time nothing waits, and nothing is opened for it.
            if self.world.store.asks(LOCAL_TENANT, filter).await.is_ok_and(|asks| !asks.is_empty()) {
                answered += self.answer(*session, term).await;
            }
        }
        answered
    }

    async fn answer(&self, session: SessionId, term: &Term) -> usize {
        let answered = async {
            let place = self.place(session).await?;
            flagged::answer(&self.world, &place.runtime, session, term).await
        };
        answered.await.unwrap_or_else(|error| {
            let error = hints::explained_chain(&error);
            term.error(&format!("{session}: its ask could not be answered: {error}"));
            0
        })
    }

    /// A runtime for the setup of a session, as the rules and the guidance are now: what changed since the last session was taken up
    /// there holds for this one (agent-runtime 5.9). A file that cannot be read stops it, as it stops a start.
    async fn place(&self, session: SessionId) -> anyhow::Result<Arc<OpenWorkspace>> {
        let own = self.world.setup(session).await?;
        let folder = own.setup.workspace.as_ref().map(PathBuf::from).unwrap_or_default();
        let mut open = self.open.lock().await;
        self.let_go_of_retired().await;
        let settings = thinker::settings(&self.globals)?;
        let choice = thinker::model_of(&settings, &own.setup);
        let (model, chosen) = self.models.of(&settings, &choice, &self.term).await?;
        let mut setup = own.setup.clone();
        if settings.chosen.profile {
            setup.profile = settings.profile;
        }
        if setup.model.is_some() {
            setup.model = chosen;
        }
        let name = setup.hash();
        let rules = match folder.is_dir() {
            true => format!("{:?}", ProjectRules::load(&settings.home, &folder)?),
            false => String::new(),
        };
        let made_with = Digest::of(format!("{settings:?}{rules}").as_bytes());
        if let Some(place) = open.get(&name).filter(|_| folder.is_dir()) {
            if place.made_with == made_with && place.runtime.guidance().await == place.guidance {
                place.runtime.change_setup(session, &own, &setup).await?;
                return Ok(Arc::clone(place));
            }
            tracing::info!("the rules or the guidance of a workspace changed; they are taken up");
        }
        let role = Role::standing("portcullis worker");
        let runtime = self.world.runtime_by(&settings, session, setup.clone(), role).await?;
        runtime.change_setup(session, &own, &setup).await?;
        let guidance = runtime.guidance().await;
        warn_of(&guidance, &self.term);
        let agent = thinker::guided(&runtime, &model, &choice, guidance.guidance.clone());
        let place = Arc::new(OpenWorkspace { runtime, agent, made_with, guidance });
        if open.len() >= WORKSPACES {
            let idle: Vec<Digest> =
                open.iter().filter(|(_, place)| Arc::strong_count(place) == 1).map(|(name, _)| *name).collect();
            for name in idle {
                if let Some(place) = open.remove(&name) {
                    self.tell_left(place.runtime.shutdown().await);
                }
            }
        }
        if let Some(old) = open.insert(name, Arc::clone(&place)) {
            self.retired.lock().await.push(old);
            self.let_go_of_retired().await;
        }
        Ok(place)
    }

    /// Nothing of theirs is left running once their last session was given back.
    async fn let_go_of_retired(&self) {
        let mut retired = self.retired.lock().await;
        for at in (0..retired.len()).rev() {
            if Arc::strong_count(&retired[at]) == 1 {
                self.tell_left(retired.swap_remove(at).runtime.shutdown().await);
            }
        }
    }

    /// What shells left behind when they ended.
    fn tell_left(&self, left: Vec<(SessionId, String)>) {
        for (session, found) in left {
            self.term.insist(&format!("{session}: {}", render::warning(&found)));
        }
    }

    /// Nothing of a session outlives the worker.
    async fn close(&self) {
        for place in self.open.lock().await.values().chain(self.retired.lock().await.iter()) {
            self.tell_left(place.runtime.shutdown().await);
        }
    }
}
