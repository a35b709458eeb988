//! `worker`: takes up sessions that are due, each in the workspace it was made in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use portcullis::harness::{Activity, SESSIONS_AT_ONCE, WorkerSettings, WorkerStop};
use portcullis::local::{CrewError, CrewHost, CrewModels, CrewNews, HostError, OpenedModel, ProcessRole, SessionCrew};
use portcullis::model::Destination;
use portcullis::operations::{AskView, WorkerReport};
use portcullis::{AskAnswer, SessionId, StoreError};
use portcullis_config::{ApprovalMode, ConfigError, Settings};
use portcullis_terminal::observed;
use portcullis_terminal::render::{self, Term};
use portcullis_terminal::signals::{Leave, LeaveSignal};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::args::{Globals, WorkerArgs};
use crate::exit::{ExitKind, streamed};
use crate::run::{asks, model, warn_of};
use crate::world::World;
use crate::{activity, ask, flagged, hints, last_start};

/// How often sessions that were named are looked at for asks which another process raised.
const LOOK_FOR_ASKS: Duration = Duration::from_secs(1);

/// How long a store that could not be opened is left alone.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

pub async fn run(args: &WorkerArgs, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let settings = globals.settings_of_a_model()?;
    // Sessions may have models that speak to a server.
    model::tls();
    let host = WorkerHost { globals: globals.clone(), approvals: settings.approvals, term: *term };
    let models = CrewModels::new(Arc::new(host));
    // A model that a flag or a variable names is for every session; others may have their own.
    if let Err(error) = models.of(&settings, &settings.model).await {
        if settings.chosen.model {
            return Err(error.into());
        }
        term.note(&format!("{}; sessions that name no model wait", hints::explained_causes(&error)));
    }
    let world = if args.watch { opened(&settings, term).await? } else { World::open(settings, term)? };
    for session in &args.session {
        world.archive.created(*session).await?;
    }
    let role = ProcessRole::standing("portcullis worker");
    let crew = Arc::new(SessionCrew::new(Arc::clone(&world), models, role));
    // What happened is read in the log before it is told, so not while the worker looks for more. No more waits here than
    // the worker does between two looks at its own tasks.
    let (happens, mut happened) = mpsc::unbounded_channel();
    let told = *term;
    let worker_settings = WorkerSettings {
        watch: args.watch,
        max_cycles: args.max_cycles,
        idle_timeout: args.idle_timeout,
        at_once: args.at_once.map_or(SESSIONS_AT_ONCE, usize::from),
        only: args.session.clone(),
        ..WorkerSettings::default()
    };
    // Whoever does not listen any more is about to leave.
    let journal = move |activity: Activity<'_>| {
        drop(activity::report_of(activity, &told).map(|happened| happens.send(happened)));
    };
    let worker = crew.worker(worker_settings, Arc::new(journal));
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
        crew.answer_each(&args.session).await;
    }
    let mut work = Box::pin(worker.run(&stop));
    let mut answered = 0;
    let mut looks = tokio::time::interval(LOOK_FOR_ASKS);
    let stopped = loop {
        tokio::select! {
            biased;
            _ = looks.tick(), if answers_named && !stop.is_cancelled() => {
                answered += crew.answer_each(&args.session).await;
            }
            Some(happened) = happened.recv() => answered += heard(&happened, (&world, &crew), term).await,
            stopped = &mut work => {
                let stopped = stopped.map_err(|error| broken(error.into()))?;
                while let Ok(happened) = happened.try_recv() {
                    answered += heard(&happened, (&world, &crew), term).await;
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
                    LeaveSignal::Interrupt if std::mem::replace(&mut interrupted, true) => return Ok(how.into()),
                    LeaveSignal::Interrupt => {
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
        Some(how) if stopped == WorkerStop::Interrupted && how != LeaveSignal::Terminate => how.into(),
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
                    activity::report_of(Activity::StoreBack, term);
                }
                return Ok(world);
            }
            Err(error) => error,
        };
        let passing = hints::bare(error.as_ref())
            .downcast_ref()
            .filter(|found| matches!(found, StoreError::Locked(_) | StoreError::DiskFull { .. }));
        let Some(passing) = passing else { return Err(error) };
        if !std::mem::replace(&mut waited, true) {
            activity::report_of(Activity::StoreFailed { error: passing }, term);
        }
        tokio::time::sleep(OPEN_AGAIN).await;
    }
}

/// How many sessions wait for an answer.
async fn waiting(world: &World) -> anyhow::Result<usize> {
    let sessions: BTreeSet<SessionId> = ask::pending(world).await?.iter().map(|ask| ask.row.session_id).collect();
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

/// What a worker says to its crew, and tells of it.
struct WorkerHost {
    globals: Globals,
    approvals: ApprovalMode,
    term: Term,
}

/// An error of this program for the crew, which gives it back as it is.
fn boxed(error: anyhow::Error) -> HostError {
    error.reallocate_into_boxed_dyn_error_without_backtrace()
}

impl CrewHost for WorkerHost {
    fn settings(&self) -> Result<Settings, ConfigError> {
        self.globals.settings_of_a_model()
    }

    fn may_send(&self, settings: &Settings, to: &Destination) -> Result<(), HostError> {
        last_start::check(settings, to, &self.term).map_err(boxed)
    }

    fn opened(&self, settings: &Settings, to: Option<&Destination>, opened: &OpenedModel) -> Result<(), HostError> {
        model::tell(settings, to, opened, &self.term).map_err(boxed)
    }

    fn answer(&self, ask: &AskView) -> Option<AskAnswer> {
        asks::by_flag(self.approvals, ask.only_a_person)
    }

    fn hears(&self, news: CrewNews<'_>) {
        match news {
            CrewNews::Guidance(found) => warn_of(found, &self.term),
            CrewNews::LeftBehind(session, found) => {
                self.term.insist(&format!("{session}: {}", observed::warning(found)));
            }
            CrewNews::Answered(ask, allowed) => flagged::tell(ask, allowed, &self.term),
            CrewNews::Unanswered(session, error) => {
                let error = hints::explained_causes(error);
                self.term.error(&format!("{session}: its ask could not be answered: {error}"));
            }
        }
    }

    fn words(&self, error: &CrewError) -> String {
        hints::explained_causes(error)
    }
}

/// Tells of it, and answers what it waits for if a flag does. Gives how many asks that were.
async fn heard(happened: &WorkerReport, (world, crew): (&World, &SessionCrew), term: &Term) -> usize {
    activity::tell(happened, world, term).await;
    match happened.waiting() {
        Some(session) => crew.answer(session).await,
        None => 0,
    }
}
