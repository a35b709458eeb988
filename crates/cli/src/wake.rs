//! `sessions wake`: one wake, run here. The low-level seam; a worker does the same for every session that is due.

use std::sync::Arc;

use portcullis::harness::{Limit, WakeEnd, WakeStop, Woken};
use portcullis::local::{ProcessRole, guided_agent, model_of, restarted};
use portcullis::model::{Model, Scripted};
use portcullis::operations::{contradicted, merge_into, refused, unfinished, wake_record};
use portcullis::{RuntimeError, SessionId};
use portcullis_event::State;
use portcullis_event::facts::StopReason;
use portcullis_event::fold::InputContent;
use portcullis_terminal::render::{DIM, Term, safe, safe_line, styled};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::Globals;
use crate::call;
use crate::exit::{ExitKind, failed, fault};
use crate::flagged;
use crate::hints;
use crate::interruptible::interruptible;
use crate::run::words::claims_checked;
use crate::run::{guidance, model};
use crate::world::World;

/// The script of a model that is there only because a wake has one: it fits no request.
const NEVER_ASKED: &str = "[[turn]]\nwhen = { turn = 1000000 }\ntext = \"none\"\n";

pub async fn run(session: SessionId, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let settings = globals.settings_of_a_model()?;
    let database = settings.database.clone();
    let Some(world) = World::look(settings)? else {
        return Err(failed(format!(
            "there is no store at {} yet; `portcullis sessions new` makes one",
            database.display()
        )));
    };
    world.archive.created(session).await?;
    let inputs = world.archive.state(session).await?.inbox.pending().to_vec();
    let only_stops =
        !inputs.is_empty() && inputs.iter().all(|input| matches!(input.said, InputContent::Interrupt { .. }));
    let mut setup = restarted(world.archive.setup(session).await?.setup, &world.settings);
    let choice = model_of(&world.settings, &setup);
    let model = match model::choose(&world.settings, &choice, false, term).await {
        // To record an interrupt no model is asked.
        Err(_) if only_stops => Arc::new(Scripted::parse("no model", NEVER_ASKED)?.strict(true)) as Arc<dyn Model>,
        chosen => {
            let (model, chosen) = chosen?;
            setup.model = chosen;
            model
        }
    };
    let role = ProcessRole::standing("portcullis sessions wake");
    let runtime = world.runtime_by(&world.settings, session, setup, role)?;
    let agent = guided_agent(&runtime, &model, &choice, guidance(&runtime, term).await);
    let cancel = CancellationToken::new();
    let words = format!("{} works", safe_line(&model.name().to_string(), 80));
    let (woken, interrupted) = loop {
        let (woken, interrupted) = interruptible(term, &words, &cancel, agent.wake_now(session, &cancel)).await?;
        // Also what waited before: whoever names a session and an answer for its asks means each of them.
        let waits = match &woken {
            Ok(Woken::Executed(end)) => matches!(end.stop, WakeStop::RequiresAction(_)),
            Ok(Woken::Idle) => true,
            Err(_) => false,
        };
        if interrupted || !waits || flagged::answer(&world, &runtime, session, term).await? == 0 {
            break (woken, interrupted);
        }
    };
    call::shutdown_and_report(&runtime, term).await;
    let woken = woken.map_err(|error| match error {
        RuntimeError::Held(owner) => {
            fault(ExitKind::Broken, format!("lease_contended: the session is in use by {owner}; wait until it is done"))
        }
        other => other.into(),
    })?;
    let state = world.archive.state(session).await?;
    let go_on = waiting(&world, session, &state).await?;
    let ended = match &woken {
        Woken::Executed(end) => {
            let facts = if term.json { world.archive.wake_document(session, end).await? } else { Value::Null };
            show(session, end, (&state, facts), &go_on, term)?
        }
        Woken::Idle => {
            if term.json {
                term.document(&json!({
                    "session_id": session, "executed": false, "skipped_reason": "idle", "commands": go_on,
                    "next_queued_wake_at": state.wakes.next().map(|(due, _)| due),
                }))?;
            } else {
                term.print(&match state.wakes.next() {
                    Some((due, _)) => format!("nothing is due; the next wake is at {due}"),
                    None => "nothing is due".to_owned(),
                })?;
                go_on.iter().for_each(|command| term.note(&format!("it waits for: {command}")));
            }
            if go_on.is_empty() { ExitKind::Done } else { ExitKind::Waits }
        }
    };
    Ok(ended.or_interrupted(interrupted))
}

/// What there is to say of a last answer that is none, or that looks like one and is not.
pub fn no_answer(end: &WakeEnd) -> Option<String> {
    let nothing = end.text.trim().is_empty();
    let words = match (&end.stop, end.limit) {
        (_, Some(Limit::Requests(most))) => {
            return Some(format!(
                "the work was stopped at its limit of {most} model requests for one message; raise \
                 `max_requests_per_message` under `[limits]`, or tell it to go on"
            ));
        }
        (_, Some(Limit::Loop)) => {
            "the work was stopped: the model made the same calls again and again, also after they were refused; tell it \
             what to do instead"
        }
        (stop, None) => return of_answer(stop, nothing, end.checked.is_some()).map(str::to_owned),
    };
    Some(words.to_owned())
}

/// The same of an answer that no limit of the work has ended.
fn of_answer(stop: &WakeStop, nothing: bool, checked: bool) -> Option<&'static str> {
    match stop {
        WakeStop::Idle(StopReason::Refusal) if nothing => Some("the model refused to answer, and gave no reason"),
        WakeStop::Idle(StopReason::Refusal) => Some("the model refused"),
        WakeStop::Idle(StopReason::BudgetReached) => Some(
            "the model came to its limit of tokens before it answered: raise `max_output_tokens` under `[model]`, or tell \
             it to go on",
        ),
        // Without a check no model was asked.
        WakeStop::Idle(StopReason::EndTurn) if nothing && checked => Some("the model gave an empty answer"),
        _ => None,
    }
}

/// The commands that answer what the session waits for.
pub async fn waiting(world: &World, session: SessionId, state: &State) -> anyhow::Result<Vec<String>> {
    let asks = world.archive.waiting_asks(session).await?;
    let open = asks.iter().filter(|ask| !state.inbox.interrupted_after(ask.asked_seq));
    let mut commands: Vec<String> = open.map(|ask| world.command(&format!("approvals show {}", ask.ask_id))).collect();
    let custom = state.progress.asked_of_client().map(|request| request.event_id);
    commands.extend(custom.map(|id| world.command(&format!("sessions answer {session} --request {id} 'OUTPUT'"))));
    Ok(commands)
}

fn show(
    session: SessionId,
    end: &WakeEnd,
    (state, facts): (&State, Value),
    go_on: &[String],
    term: &Term,
) -> anyhow::Result<ExitKind> {
    let ended = match &end.stop {
        WakeStop::Idle(_) | WakeStop::Rescheduled(_) if refused(end) || unfinished(end) || contradicted(end) => {
            ExitKind::Failed
        }
        WakeStop::Idle(_) | WakeStop::Rescheduled(_) | WakeStop::Elsewhere => ExitKind::Done,
        WakeStop::RequiresAction(_) => ExitKind::Waits,
        WakeStop::Retrying { .. } | WakeStop::GaveUp { .. } => ExitKind::Failed,
        WakeStop::Broken => ExitKind::Interrupted,
    };
    if term.json {
        let mut document = wake_record(end, state);
        merge_into(&mut document, facts);
        document["session_id"] = json!(session);
        document["executed"] = json!(true);
        document["response"] = json!(end.text);
        document["checked"] = json!(end.checked.as_ref().map(|checked| checked.verdict.as_str()));
        document["commands"] = json!(go_on);
        term.document(&document)?;
        return Ok(ended);
    }
    if !end.text.is_empty() {
        term.print_of_others(&safe(&end.text))?;
    }
    if let Some(words) = no_answer(end) {
        term.error(&words);
    }
    if let Some(checked) = &end.checked {
        term.note(&styled(DIM, &format!("fact-check: {}{}", checked.verdict.as_str(), claims_checked(checked))));
    }
    match &end.stop {
        WakeStop::Idle(StopReason::Interrupted) => term.note("it was interrupted"),
        WakeStop::Rescheduled(at) => term.note(&format!(
            "it is due again at {at}: a running `portcullis worker` takes it up then, or `sessions wake`"
        )),
        WakeStop::Retrying { error, at } => {
            term.error(&format!(
                "the model failed: {}; it is tried again at {at}",
                safe_line(&hints::explained(error), 300)
            ));
        }
        WakeStop::GaveUp { error } => {
            term.error(&format!(
                "the model failed, and nobody tries again: {}",
                safe_line(&hints::explained(error), 300)
            ));
        }
        WakeStop::Broken => term.note("left in the middle; the next wake goes on from here"),
        WakeStop::Elsewhere => term.note("it waits for another session, and goes on when that is done"),
        WakeStop::Idle(_) | WakeStop::RequiresAction(_) => {}
    }
    for command in go_on {
        term.print(&format!("waits for an answer: {command}"))?;
    }
    Ok(ended)
}
