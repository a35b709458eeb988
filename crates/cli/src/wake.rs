//! `sessions wake`: one wake, run here. The low-level seam; a worker does the same for every session that is due.

use portcullis::harness::{Stopped, WakeEnd, Woken};
use portcullis::{RuntimeError, SessionId};
use portcullis_event::facts::StopReason;
use portcullis_event::{LOCAL_TENANT, State};
use portcullis_pipeline::folded;
use portcullis_store::{AskFilter, Log as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::Globals;
use crate::exit::{Ended, failed, fault, interruptible};
use crate::render::{DIM, Term, safe, safe_line, styled};
use crate::thinker;
use crate::world::{World, key};

/// Characters of a response in a record (agent-runtime 5.4).
const PREVIEW: usize = 240;

pub async fn run(session: SessionId, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    let settings = thinker::settings(globals)?;
    let database = settings.database.clone();
    let Some(world) = World::look(settings)? else {
        return Err(failed(format!(
            "there is no store at {} yet; `portcullis sessions new` makes one",
            database.display()
        )));
    };
    world.created(session).await?;
    let model = thinker::choose(&world.settings, term).await?;
    let runtime = world.runtime_of(session, "portcullis sessions wake").await?;
    let agent = thinker::agent(&runtime, &model, &world.settings, term);
    let cancel = CancellationToken::new();
    let words = format!("{} works", model.name());
    let (woken, interrupted) = interruptible(term, &words, &cancel, agent.wake(session, &cancel)).await?;
    // What a persistent shell holds does not outlive this process.
    runtime.shutdown().await;
    let woken = woken.map_err(|error| match error {
        RuntimeError::Held(owner) => {
            fault(Ended::Broken, format!("lease_contended: the session is in use by {owner}; wait until it is done"))
        }
        other => other.into(),
    })?;
    let state = folded(&*world.store, key(session)).await?;
    let go_on = waiting(&world, session, &state).await?;
    let ended = match &woken {
        Woken::Executed(end) => show(session, end, &state, &go_on, term)?,
        Woken::Idle => {
            if term.json {
                term.document(&json!({
                    "session_id": session, "executed": false, "skipped_reason": "idle", "commands": go_on,
                }))?;
            } else {
                term.print("nothing is due")?;
                go_on.iter().for_each(|command| term.note(&format!("it waits for: {command}")));
            }
            if go_on.is_empty() { Ended::Done } else { Ended::Waits }
        }
    };
    Ok(ended.or_interrupted(interrupted))
}

/// The commands that answer what the session waits for.
pub async fn waiting(world: &World, session: SessionId, state: &State) -> anyhow::Result<Vec<String>> {
    let asks = world.store.asks(LOCAL_TENANT, AskFilter { session: Some(session), pending: true }).await?;
    let mut commands: Vec<String> =
        asks.iter().map(|ask| world.command(&format!("approvals show {}", ask.ask_id))).collect();
    let custom = state.progress.custom.keys();
    commands.extend(custom.map(|id| world.command(&format!("sessions answer {session} --request {id} 'OUTPUT'"))));
    Ok(commands)
}

fn show(session: SessionId, end: &WakeEnd, state: &State, go_on: &[String], term: &Term) -> anyhow::Result<Ended> {
    let ended = match &end.stop {
        Stopped::Idle(_) | Stopped::Rescheduled(_) => Ended::Done,
        Stopped::RequiresAction(_) => Ended::Waits,
        Stopped::Retrying { .. } | Stopped::GaveUp { .. } => Ended::Failed,
        Stopped::Broken => Ended::Interrupted,
    };
    if term.json {
        let mut document = record(end, state);
        document["session_id"] = json!(session);
        document["executed"] = json!(true);
        document["response"] = json!(end.text);
        document["checked"] = json!(end.checked.as_ref().map(|checked| checked.verdict.as_str()));
        document["commands"] = json!(go_on);
        term.document(&document)?;
        return Ok(ended);
    }
    if !end.text.is_empty() {
        term.print(&safe(&end.text))?;
    }
    if let Some(checked) = &end.checked {
        term.note(&styled(DIM, &format!("fact-check: {}", checked.verdict.as_str())));
    }
    match &end.stop {
        Stopped::Idle(StopReason::Interrupted) => term.note("it was interrupted"),
        Stopped::Rescheduled(at) => term.note(&format!("it goes on by itself at {at}")),
        Stopped::Retrying { error, at } => {
            term.error(&format!("the model failed: {}; it is tried again at {at}", safe_line(&error.message, 300)));
        }
        Stopped::GaveUp { error } => {
            term.error(&format!("the model failed, and nobody tries again: {}", safe_line(&error.message, 300)));
        }
        Stopped::Broken => term.note("left in the middle; the next wake goes on from here"),
        Stopped::Idle(_) | Stopped::RequiresAction(_) => {}
    }
    for command in go_on {
        term.print(&format!("waits for an answer: {command}"))?;
    }
    Ok(ended)
}

/// The word for why a wake ended, and what else it came to, as programs read it.
pub fn record(end: &WakeEnd, state: &State) -> Value {
    let (word, more) = match &end.stop {
        Stopped::Idle(reason) => ("idle", json!(reason)),
        Stopped::RequiresAction(ids) => ("requires_action", json!({"event_ids": ids})),
        Stopped::Rescheduled(at) => ("rescheduling", json!({"next_due_at": at})),
        Stopped::Retrying { error, at } => {
            ("rescheduling", json!({"failure": error.failure.as_str(), "next_due_at": at}))
        }
        Stopped::GaveUp { error } => ("retries_exhausted", json!({"failure": error.failure.as_str()})),
        Stopped::Broken => ("broken_off", Value::Null),
    };
    let wakes: Vec<Value> = state.wakes.pending().map(|wake| json!(wake)).collect();
    json!({
        "wake_id": end.wake_id,
        "stop_reason": word,
        "stop": more,
        "processed_event_ids": end.processed,
        "queued_wakes": wakes,
        "response_preview": safe_line(&end.text, PREVIEW),
    })
}
