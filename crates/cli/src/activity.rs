//! What a worker did, as a person and as a program reads it (agent-runtime 5.9). Everything in it is a fact of the log or of
//! the head; `docs/run-json.md` names the fields.

use portcullis::harness::{Activity, Skip, WakeEnd, WakeStop};
use portcullis::operations::ask_words;
use portcullis::{Head, SessionId};
use portcullis_agent::status::Holder;
use portcullis_agent::wake_facts::WakeEvent;
use portcullis_base::{Clock as _, SystemClock, Timestamp};
use portcullis_event::State;
use portcullis_event::facts::WakeQueued;
use serde_json::{Value, json};

use crate::hints;
use crate::render::{self, Term, safe_line};
use crate::wake;
use crate::world::World;

/// Characters of a text in a record (agent-runtime 5.4).
const PREVIEW: usize = 240;

/// A document about the store. Work goes on where nobody reads it.
fn store_told(term: &Term, document: Value) {
    if term.json {
        drop(term.bytes(format!("{document}\n").as_bytes()));
    }
}

/// One thing that a worker did, kept until it is told.
pub struct WorkerReport {
    cycle: u64,
    session: SessionId,
    what: WorkerDeed,
}

enum WorkerDeed {
    Ran(Box<WakeEnd>, Box<State>),
    Skipped { reason: Skip, message: Option<String>, again: Option<Timestamp> },
}

impl WorkerReport {
    /// What is told of a session later. What is about the store as a whole is told at once: the log cannot be read then.
    pub fn of(activity: Activity<'_>, term: &Term) -> Option<Self> {
        match activity {
            Activity::Ran { cycle, session, end, state } => {
                Some(Self { cycle, session, what: WorkerDeed::Ran(Box::new(end.clone()), Box::new(state.clone())) })
            }
            Activity::Skipped { cycle, session, reason, fault, again } => {
                let message = fault.map(|fault| hints::explained(fault));
                Some(Self { cycle, session, what: WorkerDeed::Skipped { reason, message, again } })
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

    /// The session, if it waits for somebody to answer.
    pub fn waiting(&self) -> Option<SessionId> {
        let waits = |end: &WakeEnd| matches!(end.stop, WakeStop::RequiresAction(_));
        matches!(&self.what, WorkerDeed::Ran(end, _) if waits(end)).then_some(self.session)
    }

    /// Lines for a person, or one document. A log that cannot be read any more does not stop the work on others.
    pub async fn tell(&self, world: &World, term: &Term) {
        let told = match term.json {
            true => self.document(world).await.map(|document| vec![format!("{document}\n")]),
            false => self.lines(world).await,
        };
        // Nor does it stop where nobody reads what it says.
        match told {
            Ok(told) if term.json => told.iter().for_each(|line| drop(term.bytes(line.as_bytes()))),
            Ok(told) => told.iter().for_each(|line| drop(term.print(line))),
            Err(error) => {
                let error = hints::explained_chain(&error);
                term.error(&format!("{} was worked on; what it came to cannot be read: {error}", self.session))
            }
        }
    }

    async fn lines(&self, world: &World) -> anyhow::Result<Vec<String>> {
        let session = self.session;
        let line = |how: &str, more: &str| match more.is_empty() {
            true => format!("{session} {how}"),
            false => format!("{session} {how}: {}", safe_line(more, 300)),
        };
        let (end, state) = match &self.what {
            WorkerDeed::Ran(end, state) => (end, state),
            WorkerDeed::Skipped { reason, message, .. } => {
                let how = format!("skipped ({})", render::word(reason));
                return Ok(vec![line(&how, message.as_deref().unwrap_or_default())]);
            }
        };
        Ok(vec![match &end.stop {
            WakeStop::RequiresAction(_) => return self.waits(world, state).await,
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
    async fn waits(&self, world: &World, state: &State) -> anyhow::Result<Vec<String>> {
        let session = self.session;
        let rows = world.archive.waiting_asks(session).await?;
        let asks = rows.iter().map(|row| {
            let show = world.command(&format!("approvals show {}", row.ask_id));
            format!("{session} waits for an answer ({}): {show}", ask_words::tool(row))
        });
        let custom = state.progress.custom.values().map(|call| {
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

    async fn document(&self, world: &World) -> anyhow::Result<Value> {
        let head = world.archive.head(self.session).await?;
        let streak = head.as_ref().map(|head| head.failure_streak);
        let (end, state) = match &self.what {
            WorkerDeed::Ran(end, state) => (end, state),
            WorkerDeed::Skipped { reason, message, again } => {
                return Ok(json!({
                    "type": "skipped",
                    "cycle": self.cycle,
                    "session_id": self.session,
                    "activation_claim_id": null,
                    "activation_kind": head.as_ref().and_then(activation_kind),
                    "reason": reason,
                    "error_message": message,
                    "next_retry_at": again,
                    "failure_streak": streak,
                    "active_wake_lease": head.as_ref().and_then(lease),
                }));
            }
        };
        let mut record = wake::record(end, state);
        let custom = state.progress.custom.values().next();
        let ask = world.archive.waiting_asks(self.session).await?.into_iter().next();
        merge(
            &mut record,
            json!({
                "type": "ran",
                "cycle": self.cycle,
                "session_id": self.session,
                "activation_claim_id": end.wake_id,
                "checked": end.checked.as_ref().map(|checked| checked.verdict.as_str()),
                "processed_event_count": end.processed.len(),
                "defer_until": head.as_ref().and_then(|head| head.next_due_at),
                "failure_streak": streak,
                "pending_wake_count": state.wakes.len(),
                "next_queued_wake_at": state.wakes.next().map(|(due, _)| due),
                "runnable_pending_event_type": state.inbox.pending().first().map(|input| input.kind()),
                "pending_tool_confirmation": ask.map(|ask| json!({
                    "id": ask.ask_id, "tool_name": ask_words::tool(&ask), "permission_policy": ask.kind,
                })),
                "pending_custom_tool": custom.map(|call| json!({
                    "id": call.event_id, "name": call.name, "input": call.input, "requested_at": call.requested_at,
                })),
            }),
        );
        merge(&mut record, facts(world, self.session, end).await?);
        Ok(record)
    }
}

pub fn merge(record: &mut Value, more: Value) {
    if let (Value::Object(record), Value::Object(more)) = (record, more) {
        record.extend(more);
    }
}

/// What made a session due (agent-runtime 5.2).
fn activation_kind(head: &Head) -> Option<&'static str> {
    match (head.work_due_at, head.wake.as_ref()) {
        (Some(_), _) => Some("pending_events"),
        (None, Some(_)) => Some("queued_wake"),
        (None, None) => None,
    }
}

/// The lease of a session, if it has not run out and its holder is not known to be gone: whoever comes next would take it.
pub fn lease(head: &Head) -> Option<Value> {
    match Holder::of(head, SystemClock::new().now())? {
        Holder::Holds { owner, until } => {
            Some(json!({"owner": owner.to_string(), "until": until, "fence": head.fence}))
        }
        Holder::Gone(_) | Holder::RanOut(_) => None,
    }
}

/// What the log says of a wake that ended: what it took up, what it queued, which events it wrote.
pub async fn facts(world: &World, session: SessionId, end: &WakeEnd) -> anyhow::Result<Value> {
    let facts = world.archive.wake_facts(session, end.wake_id, &end.processed).await?;
    let requeue = match &end.stop {
        WakeStop::Rescheduled(at) => json!({"reason": "queued_wake", "due_at": at}),
        WakeStop::Retrying { at, .. } => json!({"reason": "retry", "due_at": at}),
        _ => Value::Null,
    };
    let queued = |wake: &WakeQueued| {
        json!({
            "id": wake.queued_wake_id, "due_at": wake.due_at, "reason": preview(&wake.reason),
            "note": wake.note.as_deref().map(preview), "priority": wake.priority,
        })
    };
    let event = |event: &WakeEvent| json!({"seq": event.seq, "id": event.id, "type": event.kind.as_str()});
    Ok(json!({
        "queued_wake_count": facts.queued.len(),
        "queued_wake_summaries": facts.queued.iter().map(queued).collect::<Vec<_>>(),
        "requeue": requeue,
        "consumed_inputs": facts.inputs.iter().map(|said| preview(said)).collect::<Vec<_>>(),
        "wake_event_count": facts.count,
        "wake_events": facts.events.iter().map(event).collect::<Vec<_>>(),
    }))
}

/// The beginning of a text, on one line.
pub fn preview(text: &str) -> String {
    safe_line(text, PREVIEW - 1)
}
