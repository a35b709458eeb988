//! `call`: one intent through the whole gate.

use std::fs::File;
use std::io::{self, Read};

use portcullis::{CallOutcome, Reply, Runtime, RuntimeError};
use portcullis_base::{AskId, Code, SessionId, limits};
use portcullis_event::Observed;
use portcullis_store::{AskRow, Log as _, StoreError};

use crate::args::{ApprovalMode, CallArgs, Globals};
use crate::config::Settings;
use crate::exit::{Ended, fault, interruptible, usage};
use crate::render::{self, DIM, Term, safe, safe_line, styled};
use crate::world::{World, call_session, key, workspace};
use crate::{ask_view, person};

pub async fn run(args: &CallArgs, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    let input = input(&args.input)?;
    let settings = Settings::load(globals)?;
    let approvals = settings.approvals;
    let here = workspace(globals);
    // Rules that cannot be read stop the start before anything is made on disk.
    if let Ok(folder) = &here {
        settings.policy(folder)?;
    }
    let world = World::open(settings, term)?;
    let (runtime, session) = match args.session {
        Some(session) => (of_session(&world, session, globals).await?, session),
        None => in_workspace(&world, &here?).await?,
    };
    let running = runtime.begin(session, &args.tool, &input);
    let cancel = running.canceller();
    let (outcome, interrupted) = interruptible(term, || cancel.cancel(), running.outcome()).await?;
    let ended = match held(outcome)? {
        CallOutcome::Observed(observation) => show(&world, session, observation.session_view(), term)?,
        CallOutcome::Waiting(ask) => answer_or_wait(&world, &runtime, ask, approvals, term).await?,
    };
    Ok(if interrupted && ended == Ended::Failed { Ended::Interrupted } else { ended })
}

/// The holder is named, and what to do about it.
fn held(outcome: Result<CallOutcome, RuntimeError>) -> anyhow::Result<CallOutcome> {
    outcome.map_err(|error| match error {
        RuntimeError::Held(owner) => {
            let text =
                format!("the session is in use by {owner}; wait until it is done, or name another with --session");
            fault(Ended::Broken, text)
        }
        other => other.into(),
    })
}

/// The workspace's own session, made by its first call.
async fn in_workspace(world: &World, folder: &std::path::Path) -> anyhow::Result<(Runtime, SessionId)> {
    let runtime = world.runtime(folder, "portcullis call")?;
    let session = call_session(folder);
    if world.store.head(key(session)).await?.is_none() {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        runtime.create_session_as(session, &format!("calls in {name}")).await?;
    }
    Ok((runtime, session))
}

/// A named session runs where it was made; a --workspace that says otherwise is a mistake.
async fn of_session(world: &World, session: SessionId, globals: &Globals) -> anyhow::Result<Runtime> {
    let created = world.created(session).await?;
    if let (Some(made_in), Some(_)) = (&created.workspace, &globals.workspace) {
        let named = workspace(globals)?;
        if named != std::path::Path::new(made_in) {
            let text =
                format!("session {session} works in {made_in}, not in {}; leave --workspace out", named.display());
            return Err(usage(text));
        }
    }
    world.runtime_of(session, "portcullis call").await
}

/// `JSON`, `@FILE` or `-`. What is in it is for the gate to judge.
fn input(text: &str) -> anyhow::Result<String> {
    if text == "-" {
        return bounded(io::stdin().lock(), "standard input");
    }
    match text.strip_prefix('@') {
        None => Ok(text.to_owned()),
        Some(path) => {
            let file = File::open(path).map_err(|e| usage(format!("cannot read the input {path}: {e}")))?;
            bounded(file, path)
        }
    }
}

/// At most a little more than the gate takes: it refuses what is longer, and says so.
fn bounded(from: impl Read, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let most = limits::INPUT_MAX as u64 + 4;
    from.take(most).read_to_end(&mut bytes).map_err(|e| usage(format!("cannot read the input {name}: {e}")))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        // Cut inside a character, so it is over the limit anyway.
        Err(e) if e.utf8_error().valid_up_to() >= limits::INPUT_MAX => {
            Ok(String::from_utf8_lossy(e.as_bytes()).into_owned())
        }
        Err(_) => Err(usage(format!("the input {name} is not UTF-8 text"))),
    }
}

/// Waits for the call of an answered ask: run here, or by the live process that holds the session.
pub async fn see_through(world: &World, runtime: &Runtime, row: &AskRow, term: &Term) -> anyhow::Result<Observed> {
    let work = runtime.see_through(row.ask_id, limits::CALL_LEASE_WAIT);
    match interruptible(term, || {}, work).await?.0 {
        Ok(settled) => Ok(settled.observed),
        Err(RuntimeError::NoObservation(ask)) => {
            let head = world.store.head(key(row.session_id)).await?;
            let holder = head.and_then(|head| head.lease_owner).map(|owner| format!(" by {owner}"));
            let look = world.command(&format!("sessions show {}", row.session_id));
            let held = holder.unwrap_or_default();
            let text = format!(
                "the answer to {ask} is recorded, but its session is in use{held}, which has yet to run it: {look}"
            );
            Err(fault(Ended::Broken, text))
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints an observation and where its record is.
pub fn show(world: &World, session: SessionId, observed: &Observed, term: &Term) -> anyhow::Result<Ended> {
    render::observation(term, observed)?;
    record(world, session, observed, term);
    Ok(Ended::of(observed))
}

fn record(world: &World, session: SessionId, observed: &Observed, term: &Term) {
    if !term.json {
        let look = world.command(&format!("sessions events {session}"));
        let line = format!("recorded: session {session}, intent {}; look at it with: {look}", observed.intent_id);
        term.note(&styled(DIM, &line));
    }
}

/// The same after an answer. A refusal that took effect is no error: it is what the person said.
pub fn show_settled(
    world: &World,
    session: SessionId,
    observed: &Observed,
    refusal: bool,
    term: &Term,
) -> anyhow::Result<Ended> {
    if refusal && !term.json && observed.code == Code::UserDenied.into() {
        term.print(&format!("refused: {}: {}", safe(&observed.tool), safe_line(&observed.summary, 1_000)))?;
        record(world, session, observed, term);
        return Ok(Ended::of(observed));
    }
    show(world, session, observed, term)
}

/// The ask of this very call: answered by the flag, or left to a person.
async fn answer_or_wait(
    world: &World,
    runtime: &Runtime,
    ask: AskId,
    approvals: ApprovalMode,
    term: &Term,
) -> anyhow::Result<Ended> {
    let row = world.store.ask(runtime.gate().tenant(), ask).await?.ok_or(StoreError::NoAsk(ask))?;
    let reply = match approvals {
        ApprovalMode::Allow => Reply::AllowOnce,
        ApprovalMode::Deny => Reply::Deny,
        ApprovalMode::Ask => {
            if term.json {
                term.document(&ask_view::requires_action(world, &row))?;
            } else {
                term.print(&ask_view::waiting(world, &row))?;
            }
            return Ok(Ended::Waits);
        }
    };
    runtime.reply(ask, person::answer(reply, "flag", None)).await?;
    let observed = see_through(world, runtime, &row, term).await?;
    show(world, row.session_id, &observed, term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_is_too_long_is_left_to_the_gate_and_bad_text_is_not() {
        let long = "ä".repeat(limits::INPUT_MAX);
        assert!(bounded(long.as_bytes(), "x").expect("kept").len() > limits::INPUT_MAX);
        assert!(bounded(&[0xff, 0xfe][..], "x").is_err());
        assert_eq!(bounded(&b"{}"[..], "x").expect("kept"), "{}");
    }
}
