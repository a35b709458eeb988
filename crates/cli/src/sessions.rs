//! `sessions`: what is recorded.

use std::fmt::Write as _;
use std::path::Path;

use portcullis::operations::{SessionView, call_row, session_row};
use portcullis::{Head, SessionSummary, StoreError};
use portcullis_agent::calls::{RecordedCall, SessionCalls};
use portcullis_agent::status::head_reads_as;
use portcullis_base::SessionId;
use portcullis_base::shown::id_ending;
use portcullis_event::facts::WakeQueued;
use portcullis_event::{IntentState, SessionStatus};
use portcullis_terminal::render::{self, BOLD, DIM, Term, safe_line, styled};
use portcullis_terminal::table::table_within;
use portcullis_terminal::{observed, output_tail};
use serde_json::{Value, json};

use crate::args::{Globals, Sessions};
use crate::events::Cursor;
use crate::exit::{ExitKind, failed};
use crate::run::session::name;
use crate::run::words;
use crate::world::{World, workspace};
use crate::{events, export, fork, import, operator, output, rm, search, status, trace, tree, unknown, wake};

/// Sessions in a list.
const LISTED: usize = 1_000;
/// Characters of a tool's name and of what a call is about, in a table.
const WHAT: usize = 40;
/// The column of a call's state.
const STATE: usize = 3;
/// Characters of a note in a line.
const SHORT: usize = 100;

pub async fn run(what: Sessions, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    match what {
        Sessions::List => list(globals, term).await?,
        Sessions::Show { session } => {
            let world = World::existing(globals)?;
            let session = match session {
                Some(session) => session,
                None => newest(&world, &workspace(globals)?).await?,
            };
            show(&world, session, term).await?;
        }
        Sessions::Output { session, call } => {
            output::run(&World::existing(globals)?, session, call.as_deref(), term).await?;
        }
        Sessions::Events { session, after, limit, follow } => {
            let world = World::existing(globals)?;
            exists(&world, session).await?;
            events::run(&world, Cursor::new(session, after, limit), follow, term).await?;
        }
        Sessions::New { message, name, custom_tools } => {
            operator::new(message.as_deref(), (name, custom_tools.as_deref()), globals, term).await?;
        }
        Sessions::Send { session, message } => operator::send(globals, session, &message, term).await?,
        Sessions::Interrupt { session, note } => {
            operator::interrupt(globals, session, note.as_deref(), term).await?;
        }
        Sessions::Answer { session, output, request, error } => {
            operator::answer(globals, session, request, (&output, error), term).await?;
        }
        Sessions::Wake { session } => return wake::run(session, globals, term).await,
        Sessions::Status { session } => status::run(&World::existing(globals)?, session, term).await?,
        Sessions::Unknown { session } => unknown::list(&World::existing(globals)?, session, term).await?,
        Sessions::Resolve { invocation, what, note } => {
            unknown::resolve(&World::existing(globals)?, invocation, what, note.as_deref(), term).await?;
        }
        Sessions::Trace { session, wake, all } => {
            trace::run(&World::existing(globals)?, session, (wake, all), term).await?;
        }
        Sessions::Fork { session, at, name } => fork::run(&World::existing(globals)?, session, at, name, term).await?,
        Sessions::Tree { session } => tree::run(&World::existing(globals)?, session, term).await?,
        Sessions::Search { words, limit } => {
            search::run(&World::existing(globals)?, &words, usize::from(limit), term).await?;
        }
        Sessions::Export { session, with_artifacts, out } => {
            let world = World::existing(globals)?;
            export::run(&world, session, with_artifacts, out.as_deref(), term).await?;
        }
        Sessions::Import { file } => import::run(&file, globals, term).await?,
        Sessions::Rm { session, yes, reason } => {
            rm::run(&World::existing(globals)?, session, yes, reason, term).await?;
        }
    }
    Ok(ExitKind::Done)
}

/// The newest session of a folder, that of its calls included.
async fn newest(world: &World, folder: &Path) -> anyhow::Result<SessionId> {
    world.archive.newest_of(folder).await?.ok_or_else(|| {
        let here = folder.to_string_lossy();
        failed(format!("no session of {here} is known; `portcullis sessions list` shows those that are"))
    })
}

/// How a session stands, for a person: what waits for an answer waits for nobody else.
fn status_word(head: &Head) -> String {
    match head_reads_as(head) {
        SessionStatus::Rescheduling if head.blocked_n > 0 => render::word(&SessionStatus::RequiresAction),
        SessionStatus::Rescheduling => "due".to_owned(),
        status => render::word(&status),
    }
}

/// A log with that name, the ledger included.
async fn exists(world: &World, session: SessionId) -> anyhow::Result<()> {
    match world.archive.head(session).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::NoSession(session).into()),
    }
}

async fn list(globals: &Globals, term: &Term) -> anyhow::Result<()> {
    let world = World::look(globals.settings()?)?;
    let (mut all, lost) = match &world {
        // One more, which tells that there are more.
        Some(world) => (world.archive.sessions(LISTED + 1).await?, !world.lost().is_empty()),
        None => (Vec::new(), false),
    };
    let more = all.len() > LISTED;
    all.truncate(LISTED);
    if term.json {
        let rows: Vec<Value> = all.iter().map(session_row).collect();
        return Ok(term.document(&json!({"sessions": rows, "more": more}))?);
    }
    if all.is_empty() {
        let none = "no sessions yet; `portcullis call` makes one";
        term.note(if lost { "no sessions are left in this store" } else { none });
        return Ok(());
    }
    for SessionSummary { session_id, row, .. } in &mut all {
        if let Some(world) = &world {
            row.title = name(world, *session_id, row.title.as_deref()).await;
        }
    }
    // Most people queue none; then there is nothing to show.
    let narrow = term.narrow();
    let wakes = !narrow && all.iter().any(|summary| summary.head.wake.is_some());
    let line = |summary: &SessionSummary| {
        let SessionSummary { session_id, row, head } = summary;
        let mut line = vec![
            session_id.to_string(),
            safe_line(row.title.as_deref().unwrap_or("-"), 40),
            render::exact(row.workspace.as_deref().unwrap_or("-"), 200),
            status_word(head),
        ];
        if !narrow {
            line.extend([head.last_seq.to_string(), head.blocked_n.to_string()]);
        }
        line.push(term.columns().map_or_else(|| head.updated_at.to_string(), |_| render::short_time(head.updated_at)));
        line.extend(wakes.then(|| head.wake.map_or_else(|| "-".to_owned(), |wake| wake.due_at.to_string())));
        line
    };
    let mut header = vec!["SESSION", "NAME", "WORKSPACE", "STATUS"];
    header.extend(if narrow { &["UPDATED"][..] } else { &["EVENTS", "WAITING", "UPDATED"] });
    header.extend(wakes.then_some("NEXT WAKE"));
    term.print(&table_within(term.columns(), &[0, 3], &header, all.iter().map(line).collect()))?;
    if more {
        term.note(&format!("only the newest {LISTED} are listed"));
    }
    Ok(())
}

async fn show(world: &World, session: SessionId, term: &Term) -> anyhow::Result<()> {
    let SessionView { created, head, asks, wakes, done } = world.archive.session_view(session).await?;
    let SessionCalls { calls, warnings, checked } = done;
    if term.json {
        let calls: Vec<Value> = calls.iter().map(call_row).collect();
        return Ok(term.document(&json!({
            "session_id": session,
            "title": created.name,
            "workspace": created.workspace,
            "status": head_reads_as(&head),
            "events": head.last_seq,
            "head_hash": head.last_hash,
            "lease": head.lease_owner.map(|owner| owner.to_string()),
            "calls": calls,
            "warnings": warnings,
            "asks": asks,
            "wakes": wakes,
        }))?);
    }
    let called = name(world, session, created.name.as_deref()).await;
    let mut text = format!("{} {}\n", styled(BOLD, &session.to_string()), safe_line(&called.unwrap_or_default(), 200));
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "  {label:<11}{value}");
    };
    line("workspace", &render::exact(created.workspace.as_deref().unwrap_or("-"), 4_096));
    line("status", &status_word(&head));
    line("events", &format!("{}, last {}", head.last_seq, head.last_hash));
    if let Some((label, value)) = status::holder(world, session, &head) {
        line(label, &value);
    }
    if let Some(checked) = &checked {
        line("fact-check", &format!("{}{}", checked.verdict.as_str(), words::claims_checked(checked)));
    }
    let mut rows: Vec<Vec<String>> = calls.iter().map(call_line).collect();
    let mut header = vec!["INTENT", "TOOL", "WHAT", "STATE", "CODE", "TIME", "SUMMARY"];
    if term.columns().is_some() {
        // The end of an intent names it, and nearly every call was observed.
        let observed = render::word(&IntentState::Observed);
        rows.iter_mut().for_each(|row| row[0] = id_ending(&row[0]).to_owned());
        if rows.iter().all(|row| row[STATE] == observed) {
            header.remove(STATE);
            rows.iter_mut().for_each(|row| drop(row.remove(STATE)));
        }
    }
    // What it is about and its summary share the room that the other columns leave.
    let whole: Vec<usize> = (0..header.len() - 1).filter(|at| header[*at] != "WHAT").collect();
    text.push('\n');
    text.push_str(&table_within(term.columns(), &whole, &header, rows));
    let command = world.command(&format!("sessions output {}", id_ending(&session.to_string())));
    text.push_str(&outputs(&calls, &command));
    for observed in calls.iter().filter_map(|call| call.observed.as_ref()) {
        for warning in &observed.warnings {
            let _ = writeln!(text, "{} ({})", observed::warning(warning), observed.intent_id);
        }
    }
    for warning in &warnings {
        let _ = writeln!(text, "{}", observed::warning(warning));
    }
    for ask in &asks {
        let command = world.command(&format!("approvals show {}", ask.ask_id));
        let _ = writeln!(text, "waits for an answer: {command}");
    }
    for row in &wakes {
        let WakeQueued { due_at, reason, note, priority, .. } = &row.wake;
        let note = note.as_deref().map(|note| format!(" ({})", safe_line(note, SHORT))).unwrap_or_default();
        let (reason, priority) = (safe_line(reason, SHORT), render::word(priority));
        let _ = writeln!(text, "wakes at {due_at}: {reason}{note}, priority {priority}");
    }
    Ok(term.print(&text)?)
}

/// Commands whose output `sessions show` shows, the newest; `sessions output` has that of each.
const OUTPUTS: usize = 5;

/// What a call is about.
fn aim(call: &RecordedCall) -> String {
    let input = call.input.as_ref().map(Value::to_string).unwrap_or_default();
    words::aim(&input).unwrap_or(input)
}

/// What the newest commands wrote, in a few lines each.
fn outputs(calls: &[RecordedCall], command: &str) -> String {
    let tails = calls.iter().rev().filter_map(|call| {
        let lines = output_tail::of(call.observed.as_ref()?, Some(command));
        let row = &call.row;
        let title = || format!("{} {} {}", row.intent_id, safe_line(&row.tool, WHAT), safe_line(&aim(call), SHORT));
        (!lines.is_empty()).then(|| format!("{}\n{}\n", styled(DIM, &title()), lines.join("\n")))
    });
    let all: Vec<String> = tails.collect();
    let mut text = String::new();
    if let Some(hidden) = all.len().checked_sub(OUTPUTS + 1) {
        let count = render::count(hidden as u64 + 1, "earlier call");
        let words =
            format!("the output of {count} is not shown here; that of one, by the end of its intent: {command} INTENT");
        let _ = writeln!(text, "{}", styled(DIM, &words));
    }
    text.extend(all.into_iter().take(OUTPUTS).rev());
    text
}

fn call_line(call: &RecordedCall) -> Vec<String> {
    let (row, aim) = (&call.row, aim(call));
    // No column is empty.
    let aim = if aim.is_empty() { "-".to_owned() } else { safe_line(&aim, WHAT) };
    let mut line = vec![row.intent_id.to_string(), safe_line(&row.tool, WHAT), aim, render::word(&row.state)];
    line.extend(match &call.observed {
        Some(seen) => [seen.code.to_string(), render::span(seen.duration_us), safe_line(&seen.summary, 60)],
        None => ["-".to_owned(), "-".to_owned(), String::new()],
    });
    line
}
