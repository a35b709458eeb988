//! `sessions rm`: what a session holds is erased; its hashes stay, and that it was erased (store §11).

use std::io::{self, Write as _};

use portcullis::operations::{Erasure, evidence_of};
use portcullis_base::SessionId;
use portcullis_terminal::render::{self, Term};
use portcullis_terminal::waiting;
use serde_json::json;

use crate::exit::{failed, usage};
use crate::hints;
use crate::person;
use crate::world::World;

pub async fn run(
    world: &World,
    session: SessionId,
    yes: bool,
    reason: Option<String>,
    term: &Term,
) -> anyhow::Result<()> {
    let operator = world.operator(person::login(), "portcullis sessions rm");
    let erasure = Erasure::of(&operator, session).await?;
    let copies = evidence_of(&world.settings.home.evidence(), session);
    if !yes {
        confirm(session, &erasure, copies.len() as u64, term)?;
    }
    let erased = waiting::during(term, "erasing", erasure.carry_out(reason)).await?;
    // The ledger's entry may wait; everything else is done.
    if let Some(error) = &erased.ledger_waits {
        term.note(&format!("warning: the ledger is told later: {}", hints::explained(error)));
    }
    let (files, left) = erasure.delete_files(&*world.artifacts()?).await?;
    let Erasure { waiting, grants, forks, .. } = &erasure;
    if term.json {
        let document = json!({
            "session_id": session, "events": erased.events, "files": files, "files_left": left,
            "asks_withdrawn": waiting, "copies_left": copies, "grants_left": grants, "forks_left": forks,
        });
        return Ok(term.document(&document)?);
    }
    let events = render::count(erased.events, "event");
    // Small contents are rows, which went with the rest.
    let deleted = if files > 0 { format!(", {} deleted", render::count(files, "file")) } else { String::new() };
    let lost = if erased.events == 1 { "its" } else { "their" };
    term.print(&format!("{session} erased: {events} lost {lost} content{deleted}"))?;
    if *waiting > 0 {
        term.note(&format!(
            "{} in it waited for an answer and went with it: no call of it runs",
            render::count(*waiting, "ask")
        ));
    }
    for copy in &copies {
        term.note(&format!(
            "a copy of it stays, which an export made: {}",
            render::exact(&copy.display().to_string(), 4_096)
        ));
    }
    for fork in forks {
        let erase = world.command(&format!("sessions rm {fork}"));
        term.note(&format!("a fork of it stays, with what it held up to there; to erase it too: {erase}"));
    }
    for grant in grants {
        let revoke = world.command(&format!("grants revoke {grant}"));
        term.note(&format!("an allow that was remembered in it stays in force; to take it back: {revoke}"));
    }
    if left > 0 {
        let stay = render::count(left, "file");
        term.note(&format!(
            "{stay} written just now may be needed elsewhere; a day later: {}",
            world.command("gc --apply")
        ));
    }
    Ok(())
}

/// What stays, for the question: empty if nothing does.
fn remains(erasure: &Erasure<'_>, copies: u64) -> String {
    let copies = match copies {
        0 => None,
        1 => Some("1 exported copy".to_owned()),
        n => Some(format!("{n} exported copies")),
    };
    let some = |n: usize, what| (n > 0).then(|| render::count(n as u64, what));
    let forks = some(erasure.forks.len(), "fork");
    let grants = some(erasure.grants.len(), "remembered allow");
    match copies.into_iter().chain(forks).chain(grants).collect::<Vec<_>>().join(" and ") {
        none if none.is_empty() => none,
        what => format!("; not erased with it: {what}"),
    }
}

/// On a terminal a person says yes; elsewhere a flag must.
fn confirm(session: SessionId, erasure: &Erasure<'_>, copies: u64, term: &Term) -> anyhow::Result<()> {
    let left = remains(erasure, copies);
    let waiting = (erasure.waiting > 0).then(|| render::count(erasure.waiting, "ask"));
    if !term.interactive() {
        let asks = waiting.map(|asks| format!(", and {asks} in it waits for an answer")).unwrap_or_default();
        return Err(usage(format!("erasing cannot be undone{asks}{left}; say so with --yes")));
    }
    let asks = waiting.map(|asks| format!(", {asks} waiting for an answer")).unwrap_or_default();
    let events = render::count(erasure.events, "event");
    let contents = render::count(erasure.artifacts() as u64, "artifact");
    write!(io::stderr(), "erase {session} ({events}, {contents}{asks}{left})? This cannot be undone. Type yes: ")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(failed("nothing was erased")) }
}
