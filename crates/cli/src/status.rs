//! `sessions status`: where a session stands (agent-runtime 5.10).

use std::fmt::Write as _;

use portcullis::operations::status_document;
use portcullis::{Head, SessionId};
use portcullis_agent::status::{Holder, Standing};
use portcullis_base::{Clock as _, SystemClock};
use portcullis_event::fold::HandedOver;
use portcullis_terminal::render::{self, BOLD, Term, safe_line, styled};
use serde_json::json;

use crate::run::session::name;
use crate::world::World;

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
    let standing = world.archive.standing(session).await?;
    let Standing { created, head, state, asks, .. } = &standing;
    let progress = &state.progress;
    let answer =
        |call: &HandedOver| world.command(&format!("sessions answer {session} --request {} 'OUTPUT'", call.event_id));
    let shows = asks.iter().map(|ask| world.command(&format!("approvals show {}", ask.ask_id)));
    let commands: Vec<String> = shows.chain(progress.asked_of_client().map(answer)).collect();
    if term.json {
        return Ok(term.document(&status_document(session, &standing, &answer, &commands))?);
    }
    let (status, stopped) = (standing.status(), standing.stop_reason());
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
