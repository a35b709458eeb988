//! `worker`: takes up sessions that are due, each in the workspace it was made in.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use portcullis::harness::{Activity, Crew, Post, SESSIONS_AT_ONCE, Stopped, Worker, WorkerSettings, WorkerStop};
use portcullis::model::Model;
use portcullis::{Agent, Runtime, SessionId, SystemClock};
use portcullis_base::{Clock as _, WorkerId};
use portcullis_event::LOCAL_TENANT;
use portcullis_store::HostLiveness;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::args::{Globals, WorkerArgs};
use crate::exit::{Ended, interrupts, terminations};
use crate::render::{self, Term, safe_line};
use crate::thinker;
use crate::wake;
use crate::world::World;

/// Workspaces that are kept open between wakes; past it those that nobody works in are closed.
const WORKSPACES: usize = 64;

pub async fn run(args: &WorkerArgs, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    let settings = thinker::settings(globals)?;
    let model = thinker::choose(&settings, term).await?;
    let world = Arc::new(World::open(settings, term)?);
    for session in &args.session {
        world.created(*session).await?;
    }
    let clock = Arc::new(SystemClock::new());
    let worker = WorkerId::make(world.ids(), clock.now());
    let crew = Arc::new(Workspaces { world: Arc::clone(&world), model, term: *term, open: Mutex::default() });
    let teller = *term;
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
        journal: Arc::new(move |activity| tell(&activity, &teller)),
    };
    let stop = CancellationToken::new();
    let (mut interrupts, mut terminations) = (interrupts()?, terminations()?);
    if args.watch {
        term.note("waiting for sessions that are due; Ctrl-C ends it");
    }
    let mut interrupted = false;
    let mut work = std::pin::pin!(worker.run(&stop));
    let stopped = loop {
        tokio::select! {
            stopped = &mut work => break stopped?,
            _ = interrupts.recv() => {
                if interrupted {
                    // As a crash would: whoever comes next settles what is left.
                    return Ok(Ended::Interrupted);
                }
                interrupted = true;
                term.note("interrupted: waiting for what runs to settle; Ctrl-C again leaves at once");
                stop.cancel();
            }
            _ = terminations.recv() => stop.cancel(),
        }
    };
    crew.close().await;
    if term.json {
        term.bytes(format!("{}\n", json!({"type": "stopped", "reason": stopped})).as_bytes())?;
    } else {
        term.note(&format!("stopped: {}", render::word(&stopped)));
    }
    // SIGTERM is an order that was followed.
    let by_hand = stopped == WorkerStop::Interrupted && interrupted;
    Ok(if by_hand { Ended::Interrupted } else { Ended::Done })
}

/// A runtime for each workspace that sessions were made in.
struct Workspaces {
    world: Arc<World>,
    model: Arc<dyn Model>,
    term: Term,
    open: Mutex<HashMap<PathBuf, Arc<Place>>>,
}

struct Place {
    runtime: Runtime,
    agent: Agent,
}

#[async_trait]
impl Crew for Workspaces {
    async fn take(&self, session: SessionId) -> Result<Post, String> {
        let place = self.place(session).await.map_err(|error| format!("{error:#}"))?;
        Ok(Post { keep: Arc::clone(&place) as _, ..place.agent.post() })
    }
}

impl Workspaces {
    async fn place(&self, session: SessionId) -> anyhow::Result<Arc<Place>> {
        let folder = self.world.created(session).await?.workspace.map(PathBuf::from).unwrap_or_default();
        let mut open = self.open.lock().await;
        if let Some(place) = open.get(&folder)
            && folder.is_dir()
        {
            return Ok(Arc::clone(place));
        }
        let runtime = self.world.runtime_of(session, "portcullis worker").await?;
        let agent = thinker::agent(&runtime, &self.model, &self.world.settings, &self.term);
        let place = Arc::new(Place { runtime, agent });
        if open.len() >= WORKSPACES {
            let idle: Vec<PathBuf> = open
                .iter()
                .filter(|(_, place)| Arc::strong_count(place) == 1)
                .map(|(folder, _)| folder.clone())
                .collect();
            for folder in idle {
                if let Some(place) = open.remove(&folder) {
                    place.runtime.shutdown().await;
                }
            }
        }
        open.insert(folder, Arc::clone(&place));
        Ok(place)
    }

    /// Nothing of a session outlives the worker.
    async fn close(&self) {
        for place in self.open.lock().await.values() {
            place.runtime.shutdown().await;
        }
    }
}

/// One line for each thing that was done, or one document.
fn tell(activity: &Activity<'_>, term: &Term) {
    if term.json {
        // Whoever does not read it any more does not stop the work.
        let _ = term.bytes(format!("{}\n", document(activity)).as_bytes());
        return;
    }
    let line = match activity {
        Activity::Ran { session, end, .. } => {
            let how = match &end.stop {
                Stopped::Idle(reason) => format!("done ({})", render::word(&json!(reason)["type"])),
                Stopped::RequiresAction(_) => "waits for an answer".to_owned(),
                Stopped::Rescheduled(at) => format!("goes on at {at}"),
                Stopped::Retrying { error, at } => {
                    format!("failed ({}), tried again at {at}", error.failure.as_str())
                }
                Stopped::GaveUp { error } => format!("failed for good ({})", error.failure.as_str()),
                Stopped::Broken => "broken off; whoever comes next goes on".to_owned(),
            };
            format!("{session} {how}: {}", safe_line(&end.text, 100))
        }
        Activity::Skipped { session, reason, message, .. } => {
            let why = message.map(|message| format!(": {}", safe_line(message, 300))).unwrap_or_default();
            format!("{session} skipped ({}){why}", render::word(reason))
        }
    };
    let _ = term.print(&line);
}

fn document(activity: &Activity<'_>) -> Value {
    match activity {
        Activity::Ran { cycle, session, end, state } => {
            let mut record = wake::record(end, state);
            let custom = state.progress.custom.values().next();
            let ask = state.asks.pending().next();
            let more = json!({
                "type": "ran",
                "cycle": cycle,
                "session_id": session,
                "activation_claim_id": end.wake_id,
                "processed_event_count": end.processed.len(),
                "pending_wake_count": state.wakes.len(),
                "next_queued_wake_at": state.wakes.next().map(|(due, _)| due),
                "runnable_pending_event_type": state.inbox.pending().first().map(|input| input.kind()),
                "pending_tool_confirmation": ask.map(|ask| json!({
                    "id": ask.ask_id,
                    "tool_name": state.intents.get(ask.intent_id).map(|intent| intent.tool.as_str()),
                })),
                "pending_custom_tool": custom.map(|call| json!({
                    "id": call.event_id, "name": call.name, "input": call.input, "requested_at": call.requested_at,
                })),
            });
            if let (Value::Object(record), Value::Object(more)) = (&mut record, more) {
                record.extend(more);
            }
            record
        }
        Activity::Skipped { cycle, session, reason, message, again } => json!({
            "type": "skipped",
            "cycle": cycle,
            "session_id": session,
            "reason": reason,
            "error_message": message,
            "next_retry_at": again,
        }),
    }
}
