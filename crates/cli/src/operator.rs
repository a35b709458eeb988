//! `sessions new|send|interrupt|answer`: what operators say to a session. Each is one durable append, checked in it.

use std::path::Path;

use portcullis::{Runtime, RuntimeError, SessionId, Setup};
use portcullis_base::EventId;
use portcullis_event::fold::InputContent;
use portcullis_pipeline::folded;
use portcullis_store::{LeaseOwner, Log as _};
use serde_json::json;

use crate::activity;
use crate::args::Globals;
use crate::call;
use crate::custom_tools;
use crate::exit::usage;
use crate::home_workspace;
use crate::person;
use crate::render::{self, Term};
use crate::run::asks;
use crate::run::changes::FileChanges;
use crate::thinker;
use crate::wake;
use crate::world::{Role, World, key, workspace};

/// Characters of a message that become a session's name.
const NAME_CHARS: usize = 60;

pub async fn new(
    message: Option<&str>,
    (name, custom_tools): (Option<String>, Option<&Path>),
    globals: &Globals,
    term: &Term,
) -> anyhow::Result<()> {
    let custom = custom_tools::read(custom_tools)?;
    let settings = thinker::settings(globals)?;
    let folder = workspace(globals)?;
    home_workspace::ask(&settings, &folder)?;
    settings.policy(&folder)?;
    let words = message.map(words).transpose()?;
    let world = World::open(settings, term)?;
    let runtime = world.runtime(&folder, Role::standing("portcullis sessions"))?;
    let named =
        name.or_else(|| words.as_deref().map(|words| render::safe_line(&runtime.gate().masked(words), NAME_CHARS)));
    let setup = Setup { custom_tools: custom, model: world.settings.model.setup(None), ..runtime.setup().clone() };
    let session = custom_tools::session(&runtime, named.as_deref().unwrap_or("session"), &setup).await?;
    let event = match &words {
        Some(words) => Some(runtime.say(session, &person::login(), words).await?),
        None => None,
    };
    let next = match event {
        Some(_) => world.command(&format!("sessions wake {session}")),
        None => world.command(&format!("sessions send {session} 'MESSAGE'")),
    };
    if term.json {
        return term.document(&json!({"session_id": session, "event_id": event, "commands": [next]}));
    }
    term.print(&session.to_string())?;
    term.note(&format!("go on with: {next}"));
    Ok(())
}

pub async fn send(globals: &Globals, session: SessionId, message: &str, term: &Term) -> anyhow::Result<()> {
    let words = words(message)?;
    let opened = AddressedSession::new(globals, session).await?;
    // What a person took back since somebody last spoke is told with it.
    for note in FileChanges::load(&opened.world, session).await?.untold {
        opened.runtime.say(session, &person::login(), &note).await?;
    }
    let event = opened.runtime.say(session, &person::login(), &words).await?;
    told(&opened, session, event, ("said", "takes this up"), term).await
}

pub async fn interrupt(globals: &Globals, session: SessionId, note: Option<&str>, term: &Term) -> anyhow::Result<()> {
    let opened = AddressedSession::new(globals, session).await?;
    let event = opened.runtime.interrupt(session, &person::login(), note).await?;
    // Whoever holds the session closes them.
    let withdrawn = match opened.runtime.withdraw_asks(session).await {
        Err(RuntimeError::Held(_)) => Vec::new(),
        closed => closed?,
    };
    for ask in withdrawn.iter().filter(|_| !term.json) {
        term.note(&asks::withdrawn(*ask));
    }
    let state = folded(&*opened.world.store, key(session)).await?;
    let waiting =
        state.inbox.pending().iter().filter(|input| matches!(input.said, InputContent::Message { .. })).count();
    if waiting > 0 && !term.json {
        let count = render::count(waiting as u64, "message");
        term.note(&format!("not yet heard: {count}; the next wake takes up what was said, and asks the model"));
    }
    told(&opened, session, event, ("interrupted", "stops it"), term).await
}

pub async fn answer(
    globals: &Globals,
    session: SessionId,
    request: Option<EventId>,
    (output, error): (&str, bool),
    term: &Term,
) -> anyhow::Result<()> {
    let output = if output == "-" { call::said()? } else { output.to_owned() };
    let opened = AddressedSession::new(globals, session).await?;
    let event = opened.runtime.answer(session, &person::login(), request, (&output, error)).await?;
    told(&opened, session, event, ("answered", "takes this up"), term).await
}

/// A session that something is said to.
struct AddressedSession {
    world: World,
    runtime: Runtime,
    /// Who held it before: a process that hears it by itself.
    held: Option<LeaseOwner>,
}

impl AddressedSession {
    async fn new(globals: &Globals, session: SessionId) -> anyhow::Result<Self> {
        let world = World::existing(globals)?;
        let runtime = world.appending(session, Role::standing("portcullis sessions")).await?;
        let head = world.store.head(key(session)).await?;
        let held = head.filter(|head| activity::lease(head).is_some()).and_then(|head| head.lease_owner);
        Ok(Self { world, runtime, held })
    }
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
    opened: &AddressedSession,
    session: SessionId,
    event: EventId,
    (what, then): (&str, &str),
    term: &Term,
) -> anyhow::Result<()> {
    let world = &opened.world;
    let state = folded(&*world.store, key(session)).await?;
    let next = world.command(&format!("sessions wake {session}"));
    // An interrupt withdraws what waits.
    let waits = match state.inbox.interrupted() {
        true => Vec::new(),
        false => wake::waiting(world, session, &state).await?,
    };
    let mut commands = waits.clone();
    commands.push(next.clone());
    if term.json {
        return term.document(&json!({"session_id": session, "event_id": event, "commands": commands}));
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
