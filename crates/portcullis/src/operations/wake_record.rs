//! What a wake came to and what a worker did, as programs read it (agent-runtime 5.9). Everything in it is a fact of the log
//! or of the head; `docs/run-json.md` names the fields.

use portcullis_agent::status::Holder;
use portcullis_agent::wake_facts::WakeEvent;
use portcullis_base::shown::safe_line;
use portcullis_base::{Clock as _, SessionId, SystemClock, Timestamp};
use portcullis_event::State;
use portcullis_event::facts::{FinalVerdict, StopReason, WakeQueued};
use portcullis_harness::{Limit, Skip, WakeEnd, WakeStop};
use portcullis_store::{Head, StoreError};
use serde_json::{Value, json};

use super::{Archive, ask_words};

/// Characters of a text in a record (agent-runtime 5.4).
const PREVIEW: usize = 240;

/// One thing that a worker did, kept until it is told.
pub struct WorkerReport {
    /// The how many-th session it took up.
    pub cycle: u64,
    /// Which.
    pub session: SessionId,
    /// What came of it.
    pub what: WorkerDeed,
}

/// What came of a session that a worker took up.
pub enum WorkerDeed {
    /// A wake ran, and the session is so after it.
    Ran(Box<WakeEnd>, Box<State>),
    /// No wake ran.
    Skipped {
        /// Why.
        reason: Skip,
        /// What stood in the way, in words.
        message: Option<String>,
        /// When it is looked at again, where that is known.
        again: Option<Timestamp>,
    },
}

impl WorkerReport {
    /// The session, if it waits for somebody to answer.
    #[must_use]
    pub fn waiting(&self) -> Option<SessionId> {
        let waits = |end: &WakeEnd| matches!(end.stop, WakeStop::RequiresAction(_));
        matches!(&self.what, WorkerDeed::Ran(end, _) if waits(end)).then_some(self.session)
    }

    /// For a program.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn document(&self, archive: &Archive) -> Result<Value, StoreError> {
        let head = archive.head(self.session).await?;
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
        let mut record = wake_record(end, state);
        let custom = state.progress.asked_of_client().next();
        let ask = archive.waiting_asks(self.session).await?.into_iter().next();
        merge_into(
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
        merge_into(&mut record, archive.wake_document(self.session, end).await?);
        Ok(record)
    }
}

/// Adds the fields of one document to another.
pub fn merge_into(record: &mut Value, more: Value) {
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
#[must_use]
pub fn lease(head: &Head) -> Option<Value> {
    match Holder::of(head, SystemClock::new().now())? {
        Holder::Holds { owner, until } => {
            Some(json!({"owner": owner.to_string(), "until": until, "fence": head.fence}))
        }
        Holder::Gone(_) | Holder::RanOut(_) => None,
    }
}

impl Archive {
    /// What the log says of a wake that ended: what it took up, what it queued, which events it wrote.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn wake_document(&self, session: SessionId, end: &WakeEnd) -> Result<Value, StoreError> {
        let facts = self.wake_facts(session, end.wake_id, &end.processed).await?;
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
}

/// The beginning of a text, on one line.
fn preview(text: &str) -> String {
    safe_line(text, PREVIEW - 1)
}

/// Whether the model, or whoever serves it, declined.
#[must_use]
pub fn refused(end: &WakeEnd) -> bool {
    end.stop == WakeStop::Idle(StopReason::Refusal)
}

/// Whether it stopped at a limit before it had answered.
#[must_use]
pub fn unfinished(end: &WakeEnd) -> bool {
    end.stop == WakeStop::Idle(StopReason::BudgetReached)
}

/// Which limit that was, for a program.
#[must_use]
pub fn limit_word(end: &WakeEnd) -> &'static str {
    match end.limit {
        Some(Limit::Requests(_)) => "requests",
        Some(Limit::Loop) => "loop",
        None => "output_tokens",
    }
}

/// Whether the last answer claims what did not happen.
#[must_use]
pub fn contradicted(end: &WakeEnd) -> bool {
    end.checked.as_ref().is_some_and(|checked| checked.verdict == FinalVerdict::Contradicted)
}

/// The word for why a wake ended, and what else it came to, as programs read it.
#[must_use]
pub fn wake_record(end: &WakeEnd, state: &State) -> Value {
    let (word, more) = match &end.stop {
        WakeStop::Idle(reason) => ("idle", json!(reason)),
        WakeStop::RequiresAction(ids) => ("requires_action", json!({"event_ids": ids})),
        WakeStop::Elsewhere => ("running", Value::Null),
        WakeStop::Rescheduled(at) => ("rescheduling", json!({"next_due_at": at})),
        WakeStop::Retrying { error, at } => {
            ("rescheduling", json!({"failure": error.failure.as_str(), "next_due_at": at}))
        }
        WakeStop::GaveUp { error } => ("retries_exhausted", json!({"failure": error.failure.as_str()})),
        WakeStop::Broken => ("broken_off", Value::Null),
    };
    let wakes: Vec<Value> = state.wakes.pending().map(|wake| json!(wake)).collect();
    json!({
        "wake_id": end.wake_id,
        "stop_reason": word,
        "stop": more,
        "processed_event_ids": end.processed,
        "queued_wakes": wakes,
        "response_preview": preview(&end.text),
    })
}
