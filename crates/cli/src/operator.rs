//! `sessions new|send|interrupt|answer`: what operators say to a session. Each is one durable append, checked in it.

use std::path::Path;

use portcullis::SessionId;
use portcullis::local::{AddressedSession, NewSession, ProcessRole};
use portcullis_base::EventId;
use portcullis_event::fold::InputContent;
use portcullis_terminal::render::{self, Term};
use serde_json::json;

use crate::args::Globals;
use crate::call;
use crate::custom_tools;
use crate::exit::usage;
use crate::home_workspace;
use crate::person;
use crate::run::asks;
use crate::run::changes::FileChanges;
use crate::wake;
use crate::world::{World, workspace};

/// Who holds a session meanwhile, for others who come across it.
const ROLE: ProcessRole = ProcessRole::standing("portcullis sessions");

pub async fn new(
    message: Option<&str>,
    (name, custom_tools): (Option<String>, Option<&Path>),
    globals: &Globals,
    term: &Term,
) -> anyhow::Result<()> {
    let custom_tools = custom_tools::read(custom_tools)?;
    let settings = globals.settings_of_a_model()?;
    let folder = workspace(globals)?;
    home_workspace::ask(&settings, &folder)?;
    settings.policy(&folder)?;
    let message = message.map(words).transpose()?;
    let world = World::open(settings, term)?;
    let new = NewSession { name, message, custom_tools };
    let (session, event) = world.open_session(&folder, new, &person::login(), ROLE).await?;
    let next = match event {
        Some(_) => world.command(&format!("sessions wake {session}")),
        None => world.command(&format!("sessions send {session} 'MESSAGE'")),
    };
    if term.json {
        return Ok(term.document(&json!({"session_id": session, "event_id": event, "commands": [next]}))?);
    }
    term.print(&session.to_string())?;
    term.note(&format!("go on with: {next}"));
    Ok(())
}

pub async fn send(globals: &Globals, session: SessionId, message: &str, term: &Term) -> anyhow::Result<()> {
    let words = words(message)?;
    let (world, opened) = addressed(globals, session).await?;
    // What a person took back since somebody last spoke is told with it.
    for note in FileChanges::load(&world, session).await?.untold {
        opened.post(&person::login(), &note).await?;
    }
    let event = opened.post(&person::login(), &words).await?;
    told(&world, &opened, event, ("said", "takes this up"), term).await
}

pub async fn interrupt(globals: &Globals, session: SessionId, note: Option<&str>, term: &Term) -> anyhow::Result<()> {
    let (world, opened) = addressed(globals, session).await?;
    let (event, withdrawn) = opened.interrupt(&person::login(), note).await?;
    for ask in withdrawn.iter().filter(|_| !term.json) {
        term.note(&asks::withdrawn(*ask));
    }
    let state = world.archive.state(session).await?;
    let waiting =
        state.inbox.pending().iter().filter(|input| matches!(input.said, InputContent::Message { .. })).count();
    if waiting > 0 && !term.json {
        let count = render::count(waiting as u64, "message");
        term.note(&format!("not yet heard: {count}; the next wake takes up what was said, and asks the model"));
    }
    told(&world, &opened, event, ("interrupted", "stops it"), term).await
}

pub async fn answer(
    globals: &Globals,
    session: SessionId,
    request: Option<EventId>,
    (output, error): (&str, bool),
    term: &Term,
) -> anyhow::Result<()> {
    let output = if output == "-" { call::said()? } else { output.to_owned() };
    let (world, opened) = addressed(globals, session).await?;
    let event = opened.answer(&person::login(), request, (&output, error)).await?;
    told(&world, &opened, event, ("answered", "takes this up"), term).await
}

/// A session that something is said to.
async fn addressed(globals: &Globals, session: SessionId) -> anyhow::Result<(World, AddressedSession)> {
    let world = World::existing(globals)?;
    let addressed = world.address(session, ROLE).await?;
    Ok((world, addressed))
}

/// What was typed, or came in; nothing at all is a mistake.
fn words(text: &str) -> anyhow::Result<String> {
    let text = if text == "-" { call::said()? } else { text.to_owned() };
    match text.trim().is_empty() {
        true => Err(usage("the message is empty; say what the session is to do")),
        false => Ok(text),
    }
}

/// What was appended, and what takes it up: whoever has to answer first, then who holds the session, or a wake.
async fn told(
    world: &World,
    opened: &AddressedSession,
    event: EventId,
    (what, then): (&str, &str),
    term: &Term,
) -> anyhow::Result<()> {
    let session = opened.session;
    let state = world.archive.state(session).await?;
    let next = world.command(&format!("sessions wake {session}"));
    // An interrupt withdraws what waits.
    let waits = match state.inbox.interrupted() {
        true => Vec::new(),
        false => wake::waiting(world, session, &state).await?,
    };
    let mut commands = waits.clone();
    commands.push(next.clone());
    if term.json {
        return Ok(term.document(&json!({"session_id": session, "event_id": event, "commands": commands}))?);
    }
    term.print(&format!("{what}: {event}"))?;
    for command in &waits {
        term.note(&format!("it is heard once this is answered: {command}"));
    }
    term.note(&match (&opened.held, waits.is_empty()) {
        (Some(owner), _) => format!("the session is running, and the process that runs it {then}: {owner}"),
        (None, true) => format!("a worker takes it up, or: {next}"),
        (None, false) => format!("then a worker takes it up, or: {next}"),
    });
    Ok(())
}
