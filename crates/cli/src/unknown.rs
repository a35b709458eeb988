//! `sessions unknown|resolve`: calls that had begun when their process died, and what a person found out about them.

use portcullis::SessionId;
use portcullis::local::{ProcessRole, ResolvedCall};
use portcullis_agent::unknown::UnknownCall;
use portcullis_base::InvocationId;
use portcullis_event::facts::Resolution;
use portcullis_terminal::render::{self, Term, safe_line};
use portcullis_terminal::table::table;
use serde_json::json;

use crate::args::LearnedOutcome;
use crate::exit::failed;
use crate::person;
use crate::world::World;

pub async fn list(world: &World, session: Option<SessionId>, term: &Term) -> anyhow::Result<()> {
    let all = world.archive.unknown_calls(session).await?;
    if term.json {
        let rows: Vec<_> = all
            .iter()
            .map(|call| {
                json!({
                    "session_id": call.session,
                    "invocation_id": call.invocation,
                    "intent_id": call.row.as_ref().map(|row| row.intent_id),
                    "tool": call.row.as_ref().map(|row| row.tool.as_str()),
                    "commands": [resolve_command(world, call.invocation)],
                })
            })
            .collect();
        return Ok(term.document(&json!({"unknown": rows}))?);
    }
    if all.is_empty() {
        term.note(
            "no call has an unknown outcome; what a killed process was doing is settled by the session's next wake",
        );
        return Ok(());
    }
    let line = |call: &UnknownCall| {
        let tool = call.row.as_ref().map_or_else(|| "-".to_owned(), |row| safe_line(&row.tool, 40));
        let intent = call.row.as_ref().map_or_else(|| "-".to_owned(), |row| row.intent_id.to_string());
        vec![call.invocation.to_string(), tool, intent, call.session.to_string()]
    };
    term.print(&table(&["INVOCATION", "TOOL", "INTENT", "SESSION"], all.iter().map(line).collect()))?;
    term.note(&format!("say what became of one with: {}", resolve_command(world, all[0].invocation)));
    Ok(())
}

fn resolve_command(world: &World, invocation: InvocationId) -> String {
    world.command(&format!("sessions resolve {invocation} happened"))
}

pub async fn resolve(
    world: &World,
    invocation: InvocationId,
    what: LearnedOutcome,
    note: Option<&str>,
    term: &Term,
) -> anyhow::Result<()> {
    let resolution = match what {
        LearnedOutcome::Happened => Resolution::Happened,
        LearnedOutcome::DidNotHappen => Resolution::DidNotHappen,
    };
    let role = ProcessRole::standing("portcullis sessions");
    let resolved = world.resolve((invocation, resolution), &person::login(), note, role).await?;
    let ResolvedCall { session, event } = resolved.ok_or_else(|| {
        let list = world.command("sessions unknown");
        failed(format!("no call {invocation} in this store; those whose outcome is unknown: {list}"))
    })?;
    if term.json {
        return Ok(term.document(&json!({
            "session_id": session, "invocation_id": invocation, "resolution": resolution, "event_id": event,
        }))?);
    }
    Ok(term.print(&format!("recorded: {invocation} {}", render::word(&resolution).replace('_', " ")))?)
}
