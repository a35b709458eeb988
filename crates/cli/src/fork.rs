//! `sessions fork`: a new session that goes on alone from a place in another.

use portcullis::SessionId;
use portcullis::operations::fork_session;
use portcullis_terminal::render::{self, Term};
use serde_json::json;

use crate::person;
use crate::world::World;

pub async fn run(world: &World, session: SessionId, at: u64, name: Option<String>, term: &Term) -> anyhow::Result<()> {
    let forked = fork_session(&world.operator(person::login(), "portcullis sessions"), session, at, name).await?;
    let to = forked.session;
    let next = world.command(&format!("run --session {to} 'MESSAGE'"));
    if term.json {
        return Ok(term.document(&json!({
            "session_id": to,
            "from_session_id": session,
            "at_seq": forked.at,
            "asked_at": at,
            "left_out": forked.left_out,
            "events": forked.events,
            "commands": [next],
        }))?);
    }
    term.print(&to.to_string())?;
    if let Some(open) = &forked.left_out {
        term.note(&format!("it begins after event {}: at event {at} {open}", forked.at));
    }
    term.note(&format!("{} shared with {session}; go on with: {next}", render::count(forked.at, "event")));
    Ok(())
}
