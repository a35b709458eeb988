//! What a worker did, as a person and as a program reads it (agent-runtime 5.9).

use portcullis::SessionId;
use portcullis::harness::{Activity, WakeStop};
use portcullis::operations::{WorkerDeed, WorkerReport, ask_words};
use portcullis_event::State;
use portcullis_terminal::render::{self, Term, safe_line};
use serde_json::{Value, json};

use crate::hints;
use crate::wake;
use crate::world::World;

/// A document about the store. Work goes on where nobody reads it.
fn store_told(term: &Term, document: Value) {
    if term.json {
        drop(term.bytes(format!("{document}\n").as_bytes()));
    }
}

/// What is told of a session later. What is about the store as a whole is told at once: the log cannot be read then.
pub fn report_of(activity: Activity<'_>, term: &Term) -> Option<WorkerReport> {
    match activity {
        Activity::Ran { cycle, session, end, state } => {
            Some(WorkerReport { cycle, session, what: WorkerDeed::Ran(Box::new(end.clone()), Box::new(state.clone())) })
        }
        Activity::Skipped { cycle, session, reason, fault, again } => {
            let message = fault.map(|fault| hints::explained(fault));
            Some(WorkerReport { cycle, session, what: WorkerDeed::Skipped { reason, message, again } })
        }
        Activity::StoreFailed { error } => {
            let error = hints::explained(error);
            store_told(term, json!({"type": "store_failed", "message": error}));
            term.error(&format!("{error}; waiting until the store can be used again"));
            None
        }
        Activity::StoreBack => {
            store_told(term, json!({"type": "store_back"}));
            term.note("the store can be used again; going on");
            None
        }
    }
}

/// Lines for a person, or one document. A log that cannot be read any more does not stop the work on others.
pub async fn tell(report: &WorkerReport, world: &World, term: &Term) {
    let told = match term.json {
        true => report.document(&world.archive).await.map(|document| vec![format!("{document}\n")]).map_err(Into::into),
        false => lines(report, world).await,
    };
    // Nor does it stop where nobody reads what it says.
    match told {
        Ok(told) if term.json => told.iter().for_each(|line| drop(term.bytes(line.as_bytes()))),
        Ok(told) => told.iter().for_each(|line| drop(term.print(line))),
        Err(error) => {
            let error = hints::explained_chain(&error);
            term.error(&format!("{} was worked on; what it came to cannot be read: {error}", report.session))
        }
    }
}

async fn lines(report: &WorkerReport, world: &World) -> anyhow::Result<Vec<String>> {
    let session = report.session;
    let line = |how: &str, more: &str| match more.is_empty() {
        true => format!("{session} {how}"),
        false => format!("{session} {how}: {}", safe_line(more, 300)),
    };
    let (end, state) = match &report.what {
        WorkerDeed::Ran(end, state) => (end, state),
        WorkerDeed::Skipped { reason, message, .. } => {
            let how = format!("skipped ({})", render::word(reason));
            return Ok(vec![line(&how, message.as_deref().unwrap_or_default())]);
        }
    };
    Ok(vec![match &end.stop {
        WakeStop::RequiresAction(_) => return waits(report.session, world, state).await,
        WakeStop::Elsewhere => line("waits for another session", ""),
        WakeStop::Idle(reason) => {
            let verdict = end.checked.as_ref().map(|checked| checked.verdict.as_str());
            let verdict = verdict.map(|verdict| format!(", fact-check: {verdict}")).unwrap_or_default();
            let how = format!("done ({}{verdict})", render::word(&json!(reason)["type"]));
            let text = safe_line(&end.text, 100);
            match wake::no_answer(end) {
                Some(words) if text.is_empty() => line(&how, &words),
                Some(words) => line(&how, &format!("{words}: {text}")),
                None => line(&how, &text),
            }
        }
        WakeStop::Rescheduled(at) => line(&format!("goes on at {at}"), &safe_line(&end.text, 100)),
        WakeStop::Retrying { error, at } => {
            line(&format!("failed ({}), tried again at {at}", error.failure.as_str()), &hints::explained(error))
        }
        WakeStop::GaveUp { error } => {
            line(&format!("failed for good ({})", error.failure.as_str()), &hints::explained(error))
        }
        WakeStop::Broken => line("broken off; the next process that takes the session goes on", ""),
    }])
}

/// What waits, each with the command that shows or answers it.
async fn waits(session: SessionId, world: &World, state: &State) -> anyhow::Result<Vec<String>> {
    let rows = world.archive.waiting_asks(session).await?;
    let asks = rows.iter().map(|row| {
        let show = world.command(&format!("approvals show {}", row.ask_id));
        format!("{session} waits for an answer ({}): {show}", ask_words::tool(row))
    });
    let custom = state.progress.asked_of_client().map(|call| {
        let id = call.event_id;
        let answer = world.command(&format!("sessions answer {session} --request {id} 'OUTPUT'"));
        format!("{session} waits for its client ({}): {answer}", safe_line(&call.name, 80))
    });
    let mut lines: Vec<String> = asks.chain(custom).collect();
    if lines.is_empty() {
        // Somebody was quick.
        lines.push(format!("{session} waited for an answer, which is there"));
    }
    Ok(lines)
}
