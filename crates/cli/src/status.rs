//! `sessions status`: where a session stands (agent-runtime 5.10).

use std::fmt::Write as _;

use portcullis::SessionId;
use portcullis::harness::Settings as Wakes;
use portcullis_event::facts::{SpanCompleted, SpanStarted};
use portcullis_event::fold::CustomRequest;
use portcullis_event::{Body, LOCAL_TENANT, SessionStatus, State};
use portcullis_pipeline::folded;
use portcullis_store::{AskFilter, Head, Log as _, StoreError};
use serde_json::{Value, json};

use crate::activity;
use crate::render::{self, BOLD, Term, safe_line, styled};
use crate::world::{World, key};

/// Who holds a session, or held it and went without giving it back: then whoever comes next goes on with it.
pub fn holder(world: &World, session: SessionId, head: &Head) -> Option<(&'static str, String)> {
    let owner = head.lease_owner.as_ref()?;
    if activity::lease(head).is_some() {
        return Some(("held by", owner.to_string()));
    }
    let next = world.command(&format!("sessions wake {session}"));
    let why = if activity::is_gone(owner) { "which is gone" } else { "whose lease ran out" };
    Some(("left by", format!("{owner}, {why}; go on with: {next}")))
}

/// The newest wake of the activation journal (agent-runtime 5.3): how it began, and how it ended if it has.
type Activation = Option<(SpanStarted, Option<SpanCompleted>)>;

pub async fn run(world: &World, session: SessionId, term: &Term) -> anyhow::Result<()> {
    let created = world.created(session).await?;
    let head = world.store.head(key(session)).await?.ok_or(StoreError::NoSession(session))?;
    let state = folded(&*world.store, key(session)).await?;
    let asks = world.store.asks(LOCAL_TENANT, AskFilter { session: Some(session), pending: true }).await?;
    let activation = activation(world, session).await?;
    let resilience = Wakes::default();
    let progress = &state.progress;
    let answer = |call: &CustomRequest| {
        world.command(&format!("sessions answer {session} --request {} 'OUTPUT'", call.event_id))
    };
    let custom: Vec<Value> = progress
        .custom
        .values()
        .map(|call| {
            json!({
                "id": call.event_id, "name": call.name, "input": call.input, "requested_at": call.requested_at,
                "answer_command": answer(call),
            })
        })
        .collect();
    let retry = state.wakes.pending().filter(|wake| wake.is_retry()).map(|wake| wake.due_at).min();
    let status = reads_as(&state);
    // What it stopped for is over once it works, or is about to (agent-runtime 3.4).
    let rests = matches!(status, SessionStatus::Idle | SessionStatus::RequiresAction | SessionStatus::Terminated);
    let stopped = progress.last_stop.as_ref().filter(|_| rests);
    let shows = asks.iter().map(|ask| world.command(&format!("approvals show {}", ask.ask_id)));
    let commands: Vec<String> = shows.chain(progress.custom.values().map(answer)).collect();
    let document = json!({
        "session_id": session,
        "agent_id": created.agent_id,
        "environment_id": created.environment_id,
        "workspace": created.workspace,
        "status": status,
        "stop_reason": stopped,
        "summary": progress.last_summary,
        "turns": progress.usage.turns,
        "usage": progress.usage,
        "pending_events": state.inbox.pending().len() + state.session.queued.len(),
        "runnable_pending_event": runnable(&state),
        "next_due_at": head.next_due_at,
        "next_retry_at": retry,
        "retry_streak": head.failure_streak,
        "pending_queued_wakes": state.wakes.len(),
        "next_queued_wake_at": state.wakes.next().map(|(due, _)| due),
        "lease": activity::lease(&head),
        "resilience": {
            "retryable_tries": resilience.retryable_tries,
            "other_tries": resilience.other_tries,
            "first_retry_ms": resilience.first_retry.as_millis() as u64,
            "backoff_base_ms": resilience.backoff_base.as_millis() as u64,
            "backoff_max_ms": resilience.backoff_max.as_millis() as u64,
        },
        "staged_drafts": [],
        "resources": 0,
        "latest_activation": activation_document(&activation),
        "unknown_invocations": progress.unknown,
        "pending_custom_tool": custom.first(),
        "pending_custom_tools": custom,
        "pending_confirmation": asks.first().map(|ask| json!({
            "id": ask.ask_id, "tool_use_id": ask.tool_use_id, "tool": ask.facts.get("tool"), "policy": ask.kind,
            "requested_seq": ask.asked_seq, "expires_at": ask.expires_at,
        })),
        "events": head.last_seq,
        "commands": commands,
    });
    if term.json {
        return term.document(&document);
    }
    let mut text =
        format!("{} {}\n", styled(BOLD, &session.to_string()), safe_line(created.name.as_deref().unwrap_or(""), 200));
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "  {label:<13}{value}");
    };
    let word = render::word(&status);
    let reason = stopped.map(|stop| render::word(&json!(stop)["type"])).filter(|reason| *reason != word);
    line("status", format!("{word}{}", reason.map(|reason| format!(" ({reason})")).unwrap_or_default()));
    if let Some(summary) = &progress.last_summary {
        line("last wake", safe_line(summary, 200));
    }
    line("requests", format!("{}, {}", progress.usage.turns, render::count(progress.usage.tool_calls, "call")));
    let waiting = state.inbox.pending().len() + state.session.queued.len();
    line(
        "waits",
        format!(
            "{}{}",
            render::count(waiting as u64, "input"),
            runnable(&state).map(|kind| format!(" ({kind})")).unwrap_or_default()
        ),
    );
    if let Some(due) = head.next_due_at {
        line("due", due.to_string());
    }
    if head.failure_streak > 0 {
        line("failures", format!("{} in a row", head.failure_streak));
    }
    let mut wakes: Vec<_> = state.wakes.pending().collect();
    wakes.sort_by_key(|wake| wake.due_at);
    for wake in wakes {
        line("wakes at", format!("{}: {}", wake.due_at, safe_line(&wake.reason, 100)));
    }
    if let Some((label, value)) = holder(world, session, &head) {
        line(label, value);
    }
    for invocation in &progress.unknown {
        line("unknown", format!("{invocation}: how it ended is not known"));
    }
    for command in &commands {
        let _ = writeln!(text, "waits for an answer: {command}");
    }
    Ok(term.print(&text)?)
}

/// A session that is idle and has input, or whose ask was answered and whose model has yet to hear of it, reads as
/// `rescheduling`; no event says so (agent-runtime 3.3).
fn reads_as(state: &State) -> SessionStatus {
    let waits = waits(state);
    match state.session.status {
        SessionStatus::RequiresAction if !waits => SessionStatus::Rescheduling,
        // Calls that nobody's model made ask as well.
        SessionStatus::Idle if waits => SessionStatus::RequiresAction,
        SessionStatus::Idle if runnable(state).is_some() => SessionStatus::Rescheduling,
        status => status,
    }
}

/// Whether somebody has to answer. What was asked before an interrupt takes no answer.
fn waits(state: &State) -> bool {
    let asked = state.asks.pending().any(|ask| !state.inbox.interrupted_after(ask.seq));
    asked || !state.progress.custom.is_empty()
}

/// The same of a row in a list, from its head alone: nothing waits in it, and there is work.
pub fn head_reads_as(head: &Head) -> SessionStatus {
    match head.status {
        SessionStatus::RequiresAction if head.blocked_n == 0 && head.work_due_at.is_some() => {
            SessionStatus::Rescheduling
        }
        SessionStatus::Idle if head.blocked_n > 0 => SessionStatus::RequiresAction,
        status => status,
    }
}

/// The input that a wake would take up first.
fn runnable(state: &State) -> Option<&'static str> {
    let interrupted = state.inbox.interrupted();
    state.inbox.pending().first().filter(|_| !waits(state) || interrupted).map(|input| input.kind())
}

async fn activation(world: &World, session: SessionId) -> anyhow::Result<Activation> {
    let mut newest: Activation = None;
    world
        .each_page(session, 0, |page| {
            for event in page.iter().filter(|event| event.kind.as_str().starts_with("span.")) {
                match event.body() {
                    Body::SpanStarted(span) => newest = Some((*span, None)),
                    Body::SpanCompleted(span) => {
                        if let Some((_, end)) = &mut newest {
                            *end = Some(*span);
                        }
                    }
                    _ => {}
                }
            }
            Ok(())
        })
        .await?;
    Ok(newest)
}

fn activation_document(activation: &Activation) -> Value {
    let Some((began, ended)) = activation else { return Value::Null };
    let kind = match ended {
        None => "activation.leased".to_owned(),
        Some(end) => format!("activation.{}", render::word(&end.disposition)),
    };
    json!({
        "kind": kind,
        "claim_id": began.span_id,
        "activation": began.activation,
        "result": ended.as_ref().map(|end| end.result),
        "summary": ended.as_ref().map(|end| end.summary.as_str()),
        "error_code": ended.as_ref().and_then(|end| end.error_code.as_deref()),
    })
}
