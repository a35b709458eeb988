//! `sessions status`: where a session stands (agent-runtime 5.10).

use std::fmt::Write as _;

use portcullis::SessionId;
use portcullis::harness::Settings as Wakes;
use portcullis_agent::status::{Activation, Holder, Standing};
use portcullis_base::{Clock as _, SystemClock};
use portcullis_event::fold::CustomRequest;
use portcullis_store::Head;
use serde_json::{Value, json};

use crate::activity;
use crate::render::{self, BOLD, Term, safe_line, styled};
use crate::run::session::name;
use crate::world::{World, key};

/// Who holds a session, or held it and went without giving it back: then whoever comes next goes on with it.
pub fn holder(world: &World, session: SessionId, head: &Head) -> Option<(&'static str, String)> {
    let next = || world.command(&format!("sessions wake {session}"));
    Some(match Holder::of(head, SystemClock::new().now())? {
        Holder::Holds { owner, .. } => ("held by", owner.to_string()),
        Holder::Gone(owner) => ("left by", format!("{owner}, which is gone; go on with: {}", next())),
        Holder::RanOut(owner) => ("left by", format!("{owner}, whose lease ran out; go on with: {}", next())),
    })
}

pub async fn run(world: &World, session: SessionId, term: &Term) -> anyhow::Result<()> {
    let standing = Standing::read(&*world.store, key(session)).await?;
    let Standing { created, head, state, asks, activation } = &standing;
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
    let (status, stopped) = (standing.status(), standing.stop_reason());
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
        "pending_events": standing.pending_inputs(),
        "runnable_pending_event": standing.runnable(),
        "next_due_at": head.next_due_at,
        "next_retry_at": standing.next_retry(),
        "retry_streak": head.failure_streak,
        "pending_queued_wakes": state.wakes.len(),
        "next_queued_wake_at": state.wakes.next().map(|(due, _)| due),
        "lease": activity::lease(head),
        "resilience": {
            "retryable_tries": resilience.retryable_tries,
            "other_tries": resilience.other_tries,
            "first_retry_ms": resilience.first_retry.as_millis() as u64,
            "backoff_base_ms": resilience.backoff_base.as_millis() as u64,
            "backoff_max_ms": resilience.backoff_max.as_millis() as u64,
        },
        "staged_drafts": [],
        "resources": 0,
        "latest_activation": activation.as_ref().map(activation_document),
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
    let called = name(world, session, created.name.as_deref()).await;
    let mut text = format!("{} {}\n", styled(BOLD, &session.to_string()), safe_line(&called.unwrap_or_default(), 200));
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
    line(
        "waits",
        format!(
            "{}{}",
            render::count(standing.pending_inputs() as u64, "input"),
            standing.runnable().map(|kind| format!(" ({kind})")).unwrap_or_default()
        ),
    );
    let held = holder(world, session, head);
    // What somebody works on is due no more.
    if let Some(due) = head.next_due_at.filter(|_| !matches!(held, Some(("held by", _)))) {
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
    if let Some((label, value)) = held {
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

fn activation_document(Activation { began, ended }: &Activation) -> Value {
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
