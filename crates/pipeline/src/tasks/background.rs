//! Calls that go on after their observation (tool-contract §14). The intent settles at once as `background_started`;
//! the task that it became ends by itself, and its end is one append: what happened, its evidence, its own bounded
//! view, the wake that was asked for, and its keys.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{Code, Phase, QueuedWakeId, Recorded, SideEffects, TaskId, Trust, TurnId, canonical_json};
use portcullis_contract::{Interrupt, seam};
use portcullis_event::facts::{CallRecovered, Exit, InvocationBackgrounded, Priority, TaskCompleted, WakeQueued};
use portcullis_event::{ContentFormat, ContentPart, Observed, fold};
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::DropGuard;
use tracing::Instrument as _;

use crate::gate::{Disposition, write_back};
use crate::phases::bound::{bound, shown_bytes};
use crate::phases::execute::{DetachedCall, Outcome, RunningTool};
use crate::phases::normalize::normalize;
use crate::phases::refuse::{SUMMARY_MAX, blank};
use crate::phases::schedule::Invocation;
use crate::phases::step::Halt;
use crate::sessions::append::Append;
use crate::sessions::session::{Session, SessionShared};
use crate::spans;
use crate::tasks::running_tasks::TaskPlace;
use crate::tasks::tool_host::BackgroundRequest;

/// A task on its way to its end.
struct Task {
    invocation: Invocation,
    running: RunningTool,
    ended: Option<Outcome>,
    place: TaskPlace,
    wake: bool,
    /// Comes, or is dropped, when the call's observation was written or could not be.
    observed: oneshot::Receiver<()>,
    /// The lease is renewed until its end.
    kept: Option<Arc<DropGuard>>,
}

/// Settles the intent and lets its call go on. The lane is free once this is durable; the keys are the task's.
pub(crate) fn go_on(session: &Arc<SessionShared>, away: DetachedCall, mut facts: Append) -> (Append, Disposition) {
    let DetachedCall { mut invocation, running, ended, asked: BackgroundRequest { place, how } } = away;
    let semantics = seam::semantics(&invocation.tool);
    let keys_freed = semantics.interrupt == Interrupt::Detach;
    let longest = Duration::from_millis(semantics.timeout.max_ms);
    let turn_id = invocation.authorized.validated.visible.intent.turn_id;
    let fact = InvocationBackgrounded { invocation_id: invocation.id, task_id: place.id, wake: how.wake, keys_freed };
    session.note(&mut facts, turn_id, &fact);
    let observed = observation(session, &invocation, &running, place.id);

    let (written, told) = oneshot::channel();
    facts.slots.push(invocation.slot.settle(keys_freed, written));
    if keys_freed {
        facts.free.append(&mut invocation.keys);
    }
    // What the end shows is no part of this turn any more.
    if let Some(turn) = invocation.authorized.validated.visible.intent.turn.take() {
        turn.spend(shown_bytes(&observed));
    }
    invocation.timeout = longest;
    let task = Task { invocation, running, ended, place, wake: how.wake, observed: told, kept: session.keep() };
    let span = spans::task(session, observed.intent_id, task.place.id);
    session.scope.tracker.spawn(see_through(Arc::clone(session), task).instrument(span));
    write_back(session, observed, facts)
}

/// The intent's one observation.
fn observation(session: &SessionShared, invocation: &Invocation, running: &RunningTool, task: TaskId) -> Observed {
    let intent = &invocation.authorized.validated.visible.intent;
    let mut observed = blank(session, intent, Phase::Execute, Code::BackgroundStarted);
    observed.invocation_id = Some(invocation.id);
    observed.definition_version = Some(seam::version(&invocation.tool).to_string());
    observed.executor_id = Some(seam::executor(&invocation.tool).to_string());
    observed.attempt = invocation.attempt;
    observed.permission = Some(invocation.authorized.permission.clone());
    observed.duration_us = u64::try_from(running.so_long().as_micros()).unwrap_or(u64::MAX);
    // Of what it did so far; its end tells all of it.
    let mut effects = SideEffects::occurred(running.done_so_far());
    invocation.authorized.validated.names.mask_effects(&mut effects);
    observed.side_effects = effects;
    observed.warnings.clone_from(&invocation.warnings);
    observed.summary = format!("goes on in the background as {task}");
    let text = format!(
        "It goes on in the background as {task}. task_output shows what it wrote so far, task_wait waits for its end, \
         task_cancel stops it."
    );
    observed.content.push(ContentPart {
        trust: Trust::RuntimeFact,
        format: ContentFormat::Text,
        source: "runtime".to_owned(),
        text: Some(text),
        artifact: None,
    });
    observed.structured = Some(json!({ "task_id": task }));
    observed.suggested_next_tool = Some(json!({"tool": "task_wait", "inputHint": {"task_id": task}}));
    observed
}

async fn see_through(session: Arc<SessionShared>, task: Task) {
    let Task { invocation, mut running, ended, place, wake, observed, kept: _kept } = task;
    let settled = async {
        // Either way its observation is written now, or never will be; the log tells which.
        let _ = observed.await;
        let settled = session.state().tasks.get(place.id).is_some();
        if !settled {
            place.cancel.cancel();
        }
        settled
    };
    let end = async {
        match ended {
            Some(outcome) => outcome,
            None => running.run_out(invocation.timeout, &place.cancel).await,
        }
    };
    let (settled, outcome) = tokio::join!(settled, end);
    let raw = running.result(invocation, outcome).await;
    if !settled || session.lost.is_cancelled() {
        // The next holder finds a call without an end, and says so.
        return;
    }
    let turn_id = raw.invocation.authorized.validated.visible.intent.turn_id;
    let mut facts = Append::new();
    let normal = normalize(&session, raw, &mut facts);
    let exit = normal.exit;
    let seen = bound(&session, normal, &mut facts).await;
    let fact = ending(place.id, exit, seen);
    note_end(&session, &mut facts, turn_id, wake, &fact);
    if let Err(halt) = session.flush(facts).await {
        tracing::error!(session = %session.key.session, task = %place.id, "the end of a task was not kept: {halt}");
    }
}

fn note_end(session: &SessionShared, facts: &mut Append, turn_id: TurnId, wake: bool, fact: &TaskCompleted) {
    session.note(facts, turn_id, fact);
    if wake {
        let now = session.gate.clock.now();
        let queued = WakeQueued {
            queued_wake_id: QueuedWakeId::make(&*session.gate.ids, now),
            due_at: now,
            reason: "task_completed".to_owned(),
            note: Some(format!("{} ended: {}", fact.task_id, fact.code)),
            dedupe_key: Some(format!("task:{}", fact.task_id)),
            priority: Priority::Normal,
        };
        session.note(facts, turn_id, &queued);
    }
    facts.idle();
}

/// The end of a task, with the view that an observation of it would have had.
fn ending(task_id: TaskId, exit: Exit, seen: Observed) -> TaskCompleted {
    let structured = seen.structured.as_ref().filter(|_| seen.structured_is_channel);
    let text = match structured {
        Some(value) => canonical_json(value).unwrap_or_default(),
        None => {
            let parts = seen.content.iter().filter_map(|part| part.text.as_deref());
            parts.fold(String::new(), |mut all, part| {
                if !all.is_empty() && !all.ends_with('\n') {
                    all.push('\n');
                }
                all.push_str(part);
                all
            })
        }
    };
    TaskCompleted {
        task_id,
        intent_id: seen.intent_id,
        exit,
        code: seen.code,
        exit_code: seen.exit_code,
        signal: seen.signal,
        summary: seen.summary,
        text,
        truncated: seen.truncated,
        artifacts: seen.artifacts,
        warnings: seen.warnings,
    }
}

impl Session {
    /// Ends in the log what no process works on any more: how such a task ended nobody knows, and it is never run
    /// again. Its call has its observation already.
    pub(crate) async fn recover_tasks(&self) -> Result<(), Halt> {
        let shared = &self.shared;
        let open: Vec<(fold::Task, fold::OpenTask)> =
            shared.state().tasks.open().map(|(task, open)| (task.clone(), open.clone())).collect();
        for (task, open) in open {
            // One of this very process: its end is durable before it leaves the list.
            if shared.tasks.get(task.task_id).is_some()
                || shared.state().tasks.get(task.task_id).is_none_or(|now| now.open.is_none())
            {
                continue;
            }
            let turn_id = open.turn_id.unwrap_or(TurnId::from_u128(0));
            let mut facts = Append::new();
            let decision = "outcome_unknown".to_owned();
            let recovered = CallRecovered { invocation_id: open.invocation_id, intent_id: task.intent_id, decision };
            shared.note(&mut facts, turn_id, &recovered);
            let summary = "the process that ran this task ended before it could say how it went; look at what it \
                           would have changed before trying again";
            let fact = TaskCompleted {
                task_id: task.task_id,
                intent_id: task.intent_id,
                exit: Exit::Unknown,
                code: Recorded::Known(Code::OutcomeUnknown),
                exit_code: None,
                signal: None,
                summary: shared.tidy(summary, SUMMARY_MAX),
                text: String::new(),
                truncated: false,
                artifacts: Vec::new(),
                warnings: Vec::new(),
            };
            note_end(shared, &mut facts, turn_id, open.wake, &fact);
            shared.give_back(&open.keys, true, &mut facts);
            shared.flush(facts).await?;
        }
        Ok(())
    }
}
