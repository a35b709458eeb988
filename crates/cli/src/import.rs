//! `sessions import`: an exported log becomes a session of this store.

use std::path::Path;

use portcullis::operations::{ImportError, SoundExport, import_session};
use portcullis_terminal::render::{self, Term, exact};
use portcullis_terminal::waiting::Bar;
use serde_json::json;

use crate::args::Globals;
use crate::exit::failed;
use crate::person;
use crate::world::World;

pub async fn run(file: &Path, globals: &Globals, term: &Term) -> anyhow::Result<()> {
    // Before anything is made.
    let export = SoundExport::read(file).map_err(told)?;
    let world = World::open(globals.settings()?, term)?;
    let artifacts = world.artifacts()?;
    let progress = Bar::new(term, export.events(), "taking in events");
    let operator = world.operator(person::login(), "portcullis sessions");
    let seen = |events| progress.add(events);
    let imported = import_session(&operator, &*artifacts, &export, &seen).await.map_err(told)?;
    drop(progress);
    let session = imported.session;
    if term.json {
        let head = imported.head.map(|head| head.to_string());
        let document =
            json!({"session_id": session, "events": imported.events, "head": head, "repeat": imported.repeat});
        return Ok(term.document(&document)?);
    }
    let events = render::count(imported.events, "event");
    let what = if imported.repeat { "is here already, the same" } else { "taken in with the same digests:" };
    let head = imported.head.map(|head| format!(", head {head}")).unwrap_or_default();
    Ok(term.print(&format!("{session} {what} {events}{head}"))?)
}

fn told(error: ImportError) -> anyhow::Error {
    match error {
        // Whoever wrote the file may have chosen the words.
        ImportError::Broken { file, fault } => ImportError::Broken { file, fault: exact(&fault, 1_000) }.into(),
        ImportError::Erased(_) => failed(format!("{error} (another store takes it: --store)")),
        error => error.into(),
    }
}
