//! `sessions`: what is recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use portcullis_base::{IntentId, SessionId};
use portcullis_event::facts::WakeQueued;
use portcullis_event::{Body, LOCAL_TENANT, Observed};
use portcullis_store::{AskFilter, IntentRow, Log as _, SessionSummary, StoreError};
use serde_json::{Value, json};

use crate::args::{Globals, Sessions};
use crate::config::Settings;
use crate::draft::DraftFile;
use crate::events::Cursor;
use crate::exit::{ExitKind, failed};
use crate::progress::Bar;
use crate::render::{self, BOLD, DIM, Term, safe_line, styled};
use crate::run::session::name;
use crate::run::words;
use crate::status::head_reads_as;
use crate::world::{PAGE, World, key};
use crate::{events, export, fork, import, operator, output_tail, rm, search, status, trace, tree, unknown, wake};

/// Sessions in a list.
const LISTED: usize = 1_000;
/// Characters of a tool's name and of what a call is about, in a table.
const WHAT: usize = 40;
/// Characters of a note in a line.
const SHORT: usize = 100;

pub async fn run(what: Sessions, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    match what {
        Sessions::List => list(globals, term).await?,
        Sessions::Show { session } => show(&World::existing(globals)?, session, term).await?,
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
            write_export(&world, session, with_artifacts, out.as_deref(), term).await?;
        }
        Sessions::Import { file } => import::run(&file, globals, term).await?,
        Sessions::Rm { session, yes, reason } => {
            rm::run(&World::existing(globals)?, session, yes, reason, term).await?;
        }
    }
    Ok(ExitKind::Done)
}

/// A log with that name, the ledger included.
async fn exists(world: &World, session: SessionId) -> anyhow::Result<()> {
    match world.store.head(key(session)).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::NoSession(session).into()),
    }
}

fn row_of(summary: &SessionSummary) -> Value {
    let SessionSummary { session_id, row, head } = summary;
    json!({
        "session_id": session_id,
        "title": row.title,
        "workspace": row.workspace,
        "status": head_reads_as(head),
        "events": head.last_seq,
        "waiting": head.blocked_n,
        "next_wake_at": head.wake.map(|wake| wake.due_at),
        "created_at": row.created_at,
        "updated_at": head.updated_at,
        "head_hash": head.last_hash,
    })
}

async fn list(globals: &Globals, term: &Term) -> anyhow::Result<()> {
    let world = World::look(Settings::load(globals)?)?;
    let (mut all, lost) = match &world {
        // One more, which tells that there are more.
        Some(world) => (world.store.sessions(LOCAL_TENANT, LISTED + 1).await?, !world.store.lost().is_empty()),
        None => (Vec::new(), false),
    };
    let more = all.len() > LISTED;
    all.truncate(LISTED);
    if term.json {
        let rows: Vec<Value> = all.iter().map(row_of).collect();
        return term.document(&json!({"sessions": rows, "more": more}));
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
    let wakes = all.iter().any(|summary| summary.head.wake.is_some());
    let line = |summary: &SessionSummary| {
        let SessionSummary { session_id, row, head } = summary;
        let mut line = vec![
            session_id.to_string(),
            safe_line(row.title.as_deref().unwrap_or("-"), 40),
            render::exact(row.workspace.as_deref().unwrap_or("-"), 200),
            render::word(&head_reads_as(head)),
            head.last_seq.to_string(),
            head.blocked_n.to_string(),
            head.updated_at.to_string(),
        ];
        line.extend(wakes.then(|| head.wake.map_or_else(|| "-".to_owned(), |wake| wake.due_at.to_string())));
        line
    };
    let mut header = vec!["SESSION", "NAME", "WORKSPACE", "STATUS", "EVENTS", "WAITING", "UPDATED"];
    header.extend(wakes.then_some("NEXT WAKE"));
    term.print(&render::table(&header, all.iter().map(line).collect()))?;
    if more {
        term.note(&format!("only the newest {LISTED} are listed"));
    }
    Ok(())
}

async fn show(world: &World, session: SessionId, term: &Term) -> anyhow::Result<()> {
    let created = world.created(session).await?;
    let head = world.store.head(key(session)).await?.ok_or(StoreError::NoSession(session))?;
    let intents = world.store.intents(key(session), false).await?;
    let asks = world.store.asks(LOCAL_TENANT, AskFilter { session: Some(session), pending: true }).await?;
    let wakes = world.store.wakes(key(session), true).await?;
    let mut observed: BTreeMap<IntentId, Observed> = BTreeMap::new();
    // What the ends of background tasks warned of.
    let mut late: BTreeMap<IntentId, Vec<String>> = BTreeMap::new();
    // What shells left behind that no call ended.
    let mut left: Vec<String> = Vec::new();
    // The newest answer, compared with the record.
    let mut checked: Option<String> = None;
    // What each call is about.
    let mut aims: BTreeMap<IntentId, String> = BTreeMap::new();
    world
        .each_page(session, 0, |page| {
            for event in page.iter().filter(|event| event.kind.as_str() == "tool.intent") {
                if let Body::IntentProposed(fact) = event.body() {
                    let input = fact.raw_input.to_string();
                    aims.insert(fact.intent_id, words::aim(&input).unwrap_or(input));
                }
            }
            for event in page.iter().filter(|event| event.kind.as_str() == "tool.observation") {
                if let Body::Observed(fact) = event.body() {
                    observed.insert(fact.intent_id, *fact);
                }
            }
            for event in page.iter().filter(|event| event.kind.as_str() == "final.checked") {
                if let Body::FinalChecked(fact) = event.body() {
                    checked = Some(format!("{}{}", fact.verdict.as_str(), words::claims_checked(&fact)));
                }
            }
            for event in page.iter().filter(|event| event.kind.as_str() == "shell.closed") {
                if let Body::ShellClosed(fact) = event.body() {
                    left.extend(fact.warnings);
                }
            }
            for event in page.iter().filter(|event| event.kind.as_str() == "task.completed") {
                if let Body::TaskCompleted(fact) = event.body() {
                    late.entry(fact.intent_id).or_default().extend(fact.warnings);
                }
            }
            Ok(())
        })
        .await?;
    for (intent, warnings) in late {
        if let Some(observed) = observed.get_mut(&intent) {
            observed.warnings.extend(warnings);
        }
    }
    if term.json {
        let calls: Vec<Value> = intents.iter().map(|row| call_document(row, observed.get(&row.intent_id))).collect();
        return term.document(&json!({
            "session_id": session,
            "title": created.name,
            "workspace": created.workspace,
            "status": head_reads_as(&head),
            "events": head.last_seq,
            "head_hash": head.last_hash,
            "lease": head.lease_owner.map(|owner| owner.to_string()),
            "calls": calls,
            "warnings": left,
            "asks": asks,
            "wakes": wakes,
        }));
    }
    let mut text =
        format!("{} {}\n", styled(BOLD, &session.to_string()), safe_line(created.name.as_deref().unwrap_or(""), 200));
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "  {label:<11}{value}");
    };
    line("workspace", &render::exact(created.workspace.as_deref().unwrap_or("-"), 4_096));
    line("status", &render::word(&head_reads_as(&head)));
    line("events", &format!("{}, last {}", head.last_seq, head.last_hash));
    if let Some((label, value)) = status::holder(world, session, &head) {
        line(label, &value);
    }
    if let Some(checked) = &checked {
        line("fact-check", checked);
    }
    let aim = |row: &IntentRow| aims.get(&row.intent_id).map(String::as_str).unwrap_or_default();
    let rows = intents.iter().map(|row| call_line(row, aim(row), observed.get(&row.intent_id))).collect();
    text.push('\n');
    text.push_str(&render::table(&["INTENT", "TOOL", "WHAT", "STATE", "CODE", "TIME", "SUMMARY"], rows));
    text.push_str(&outputs(&intents, aim, &observed));
    for observed in intents.iter().filter_map(|row| observed.get(&row.intent_id)) {
        for warning in &observed.warnings {
            let _ = writeln!(text, "{} ({})", render::warning(warning), observed.intent_id);
        }
    }
    for warning in &left {
        let _ = writeln!(text, "{}", render::warning(warning));
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

/// Commands whose output `sessions show` shows, the newest; the log has that of all.
const OUTPUTS: usize = 5;

/// What the newest commands wrote, in a few lines each.
fn outputs<'a>(
    intents: &[IntentRow],
    aim: impl Fn(&IntentRow) -> &'a str,
    observed: &BTreeMap<IntentId, Observed>,
) -> String {
    let tails = intents.iter().rev().filter_map(|row| {
        let seen = observed.get(&row.intent_id)?;
        let lines = output_tail::of(seen);
        let title = format!("{} {} {}", row.intent_id, safe_line(&row.tool, WHAT), safe_line(aim(row), SHORT));
        (!lines.is_empty()).then(|| format!("{}\n{}\n", styled(DIM, &title), lines.join("\n")))
    });
    let newest: Vec<String> = tails.take(OUTPUTS).collect();
    newest.into_iter().rev().collect()
}

fn call_document(row: &IntentRow, observed: Option<&Observed>) -> Value {
    let mut value = json!(row);
    if let Some(observed) = observed {
        value["ok"] = json!(observed.ok);
        value["code"] = json!(observed.code);
        value["duration_us"] = json!(observed.duration_us);
        value["summary"] = json!(observed.summary);
        value["warnings"] = json!(observed.warnings);
    }
    value
}

fn call_line(row: &IntentRow, aim: &str, observed: Option<&Observed>) -> Vec<String> {
    // No column is empty.
    let aim = if aim.is_empty() { "-".to_owned() } else { safe_line(aim, WHAT) };
    let mut line = vec![row.intent_id.to_string(), safe_line(&row.tool, WHAT), aim, render::word(&row.state)];
    line.extend(match observed {
        Some(seen) => [seen.code.to_string(), render::span(seen.duration_us), safe_line(&seen.summary, 60)],
        None => ["-".to_owned(), "-".to_owned(), String::new()],
    });
    line
}

async fn write_export(
    world: &World,
    session: SessionId,
    with_artifacts: bool,
    out: Option<&Path>,
    term: &Term,
) -> anyhow::Result<()> {
    let head = world.store.head(key(session)).await?.ok_or(StoreError::NoSession(session))?;
    let Some(path) = out else {
        return export::write(world, session, with_artifacts, |lines| term.bytes(lines)).await.map(drop);
    };
    let cannot = |e: std::io::Error| match e.kind() {
        io::ErrorKind::AlreadyExists => failed(format!(
            "{} is there already and stays as it is; name another file with --out, or remove that one first",
            path.display()
        )),
        _ => failed(format!("cannot write {}: {e}; nothing of it is kept", path.display())),
    };
    // Found before the work is done; and again when it is put in its place.
    if path.symlink_metadata().is_ok() {
        return Err(cannot(io::ErrorKind::AlreadyExists.into()));
    }
    // Like the store it comes from: nobody else's to read.
    let mut file = DraftFile::begin(path).map_err(cannot)?;
    let progress = Bar::new(term, head.last_seq, "exporting events");
    let write = |lines: &[u8]| {
        progress.add(PAGE as u64);
        file.write_all(lines).map_err(cannot)
    };
    let manifest = export::write(world, session, with_artifacts, write).await?;
    drop(progress);
    file.put_new().map_err(cannot)?;
    term.note(&format!("{} in {}", render::count(manifest.events, "event"), render::place(path)));
    Ok(())
}
