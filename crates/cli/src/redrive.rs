//! `replay --mode redrive`: another model over the recorded facts. It names the first call that differs; nothing runs.

use portcullis::harness::{CallSeen, RedriveResult};
use portcullis_terminal::render::{self, Term, safe_line};
use serde_json::json;

use crate::args::ReplayArgs;
use crate::exit::ExitKind;
use crate::run::model;
use crate::world::World;

/// The word by which programs know it (tool-contract §23).
const DIVERGED: &str = "replay_diverged";

pub async fn run(world: &World, args: &ReplayArgs, term: &Term) -> anyhow::Result<ExitKind> {
    let model = model::choose(&world.settings, &world.settings.model, false, term).await?.0;
    let done = world.redrive(args.session, args.until, model.clone())?.run().await?;
    let ended = if done.diverged.is_some() { ExitKind::Failed } else { ExitKind::Done };
    let agreed = format!(
        "{} answered {} and made {} as recorded",
        render::exact(&model.name().to_string(), 200),
        render::count(done.requests, "request"),
        render::count(done.calls, "call")
    );
    let RedriveResult { requests, calls, last_seq, diverged } = &done;
    if term.json {
        term.document(&json!({
            "session_id": args.session,
            "model": model.name().to_string(),
            "requests": requests,
            "calls": calls,
            "last_seq": last_seq,
            "compared": *requests > 0,
            "code": diverged.as_ref().map(|_| DIVERGED),
            "diverged_at": diverged.as_ref().map(|found| found.seq),
            "diverged": diverged,
        }))?;
        return Ok(ended);
    }
    match diverged {
        None if *requests == 0 => {
            let part = args.until.map(|seq| format!(" up to event {seq}")).unwrap_or_default();
            term.print(&format!(
                "no model has worked in this session{part}, so there is nothing to drive again and nothing was compared"
            ))?;
        }
        None => term.print(&format!("{agreed}; nothing differs, and nothing was executed"))?,
        Some(found) => {
            term.print(&agreed)?;
            term.error(&format!(
                "{DIVERGED}: at event {}, request {}, call {}: recorded {}, proposed {}; nothing was executed",
                found.seq,
                found.request,
                found.call,
                words(found.recorded.as_ref()),
                words(found.proposed.as_ref())
            ));
        }
    }
    Ok(ended)
}

fn words(call: Option<&CallSeen>) -> String {
    match call {
        None => "no call".to_owned(),
        Some(call) => format!("{} {}", safe_line(&call.tool, 80), safe_line(&call.input.to_string(), 200)),
    }
}
