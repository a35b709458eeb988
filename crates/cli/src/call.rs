//! `call`: one intent through the whole gate.

use std::fs::File;
use std::io::{self, Read};

use portcullis::local::{CallSessionError, ProcessRole, restarted};
use portcullis::operations::ask_words;
use portcullis::operations::{AskAnswering, CallEnd, example_input, is_wrong_input};
use portcullis::{CallOutcome, Reply, Runtime, RuntimeError, Setup};
use portcullis_base::{AskId, Code, EventId, SessionId, limits};
use portcullis_config::Settings;
use portcullis_event::Observed;
use portcullis_terminal::observed;
use portcullis_terminal::render::{self, DIM, Term, safe, safe_line, styled};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{CallArgs, Globals};
use crate::ask;
use crate::exit::{ExitKind, failed, fault, usage};
use crate::interruptible::interruptible;
use crate::run::asks;
use crate::world::{World, workspace};
use crate::{ask_view, hints, home_workspace, observation, told_warnings};

/// Who holds a session meanwhile, for others who come across it.
const ROLE: ProcessRole = ProcessRole::brief("portcullis call");

pub async fn run(args: &CallArgs, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let input = input(&args.input)?;
    let settings = globals.settings()?;
    let here = workspace(globals);
    // Rules that cannot be read stop the start before anything is made on disk.
    if let Ok(folder) = &here {
        if args.session.is_none() {
            home_workspace::ask(&settings, folder)?;
        }
        settings.policy(folder)?;
        warn_of_trust(&settings, folder, term)?;
    }
    let world = World::open(settings, term)?;
    asks::answer_at_once(&world, |_, _| {});
    let (runtime, session) = match args.session {
        Some(session) => {
            let setup = restarted(world.archive.setup(session).await?.setup, &world.settings);
            (of_session(&world, session, setup, globals, ROLE, term).await?, session)
        }
        None => in_workspace(&world, &here?).await?,
    };
    let running = runtime.begin(session, &args.tool, &input);
    let cancel = running.canceller();
    let words = format!("waiting for {}", safe_line(&args.tool, 80));
    let (outcome, interrupted) = interruptible(term, &words, &cancel, running.outcome()).await?;
    let ended = match held(outcome)? {
        CallOutcome::Observed(seen) => show_all(&world, &runtime, session, seen.session_view(), term).await?,
        CallOutcome::Waiting(ask) => answer_or_wait(&world, &runtime, ask, term).await?,
        CallOutcome::Elsewhere(event) => handed_over(&world, session, event, term)?,
        CallOutcome::Queued(event) => left_queued(&world, session, event, term).await?,
    };
    shutdown_and_report(&runtime, term).await;
    Ok(ended.or_interrupted(interrupted))
}

/// Shuts the runtime down, which closes the shells of its sessions, and warns of what a person must still be told.
pub async fn shutdown_and_report(runtime: &Runtime, term: &Term) {
    for (_, found) in runtime.shutdown().await {
        term.insist(&observed::warning(&found));
    }
}

/// A project whose record of trust says nothing is not trusted: its allows do nothing, and its owner should know why.
pub fn warn_of_trust(settings: &Settings, folder: &std::path::Path, term: &Term) -> anyhow::Result<()> {
    if let Some(unreadable) = settings.unreadable_trust(folder)? {
        let text = format!("warning: {}; {}", unreadable.what, hints::of_trust(&unreadable));
        term.note(&render::exact(&text, 8_192));
    }
    Ok(())
}

/// The tool is one that a client runs: whoever that is has to say what came of it.
fn handed_over(world: &World, session: SessionId, event: EventId, term: &Term) -> anyhow::Result<ExitKind> {
    let answer = answer_command(world, session, event);
    if term.json {
        let waits =
            json!({"kind": "custom_tool_result", "event_id": event, "session_id": session, "commands": [answer]});
        term.document(&json!({"requires_action": waits}))?;
        return Ok(ExitKind::Waits);
    }
    term.print(&format!("its client runs it; give the result with: {answer}"))?;
    Ok(ExitKind::Waits)
}

/// How a client gives the result of a call.
fn answer_command(world: &World, session: SessionId, event: EventId) -> String {
    world.command(&format!("sessions answer {session} --request {event} 'OUTPUT'"))
}

/// The person left; the call is still there for whoever holds the session, and is run by them.
async fn left_queued(world: &World, session: SessionId, event: EventId, term: &Term) -> anyhow::Result<ExitKind> {
    let look = world.command(&format!("sessions events {session}"));
    if term.json {
        let queued = json!({"event_id": event, "session_id": session, "commands": [look]});
        term.document(&json!({"queued": queued}))?;
        return Ok(ExitKind::Interrupted);
    }
    let owner = world.archive.head(session).await?.and_then(|head| head.lease_owner);
    let holder = owner.map(|owner| format!(" by {owner}")).unwrap_or_default();
    term.print(&format!("queued as {event}: the session is in use{holder}, which has yet to run it"))?;
    term.print(&format!("look at it: {look}"))?;
    Ok(ExitKind::Interrupted)
}

/// The holder is named, and what to do about it.
fn held(outcome: Result<CallOutcome, RuntimeError>) -> anyhow::Result<CallOutcome> {
    outcome.map_err(|error| match error {
        RuntimeError::Held(owner) => {
            let text =
                format!("the session is in use by {owner}; wait until it is done, or name another with --session");
            fault(ExitKind::Broken, text)
        }
        other => other.into(),
    })
}

/// The session of calls in this folder, made by its first call.
async fn in_workspace(world: &World, folder: &std::path::Path) -> anyhow::Result<(Runtime, SessionId)> {
    world.call_session(folder, ROLE).await.map_err(|error| match error {
        CallSessionError::MadeElsewhere { session, made_in } => {
            let made_in =
                made_in.as_deref().map_or_else(|| "no folder".to_owned(), |made_in| render::exact(made_in, 4_096));
            failed(format!(
                "the session of this folder, {session}, says that it was made in {made_in}, so an approval would act there; \
                 it was not made by a call here: keep other data with PORTCULLIS_HOME, or name another session with \
                 --session"
            ))
        }
        CallSessionError::Installation(error) => error.into(),
    })
}

/// A named session runs where it was made; a --workspace that says otherwise is a mistake.
pub async fn of_session(
    world: &World,
    session: SessionId,
    setup: Setup,
    globals: &Globals,
    role: ProcessRole,
    term: &Term,
) -> anyhow::Result<Runtime> {
    if let Some(made_in) = &setup.workspace {
        let here = workspace(globals);
        let elsewhere = here.as_ref().map_or(true, |here| here != std::path::Path::new(made_in));
        if globals.workspace.is_some() {
            let named = here?;
            if elsewhere {
                let text =
                    format!("session {session} works in {made_in}, not in {}; leave --workspace out", named.display());
                return Err(usage(text));
            }
        } else if elsewhere {
            term.note(&format!(
                "session {session} works in {}, not here: it goes on there",
                render::exact(made_in, 4_096)
            ));
        }
    }
    Ok(world.runtime_by(&world.settings, session, setup, role)?)
}

/// `JSON`, `@FILE` or `-`. What is in it is for the gate to judge.
pub fn input(text: &str) -> anyhow::Result<String> {
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

/// What a person says on standard input, whole: words have no gate behind them that would refuse what was cut.
pub fn said() -> anyhow::Result<String> {
    whole(bounded(io::stdin().lock(), "standard input")?)
}

fn whole(text: String) -> anyhow::Result<String> {
    if text.len() <= limits::INPUT_MAX {
        return Ok(text);
    }
    Err(usage(format!(
        "standard input is longer than {} bytes, the most that one message holds; put it into a file of the workspace and \
         name that file",
        limits::INPUT_MAX
    )))
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

/// Waits for the call of an answered ask: run here, or by the live process that holds the session. Its
/// observation, and whether Ctrl-C came.
pub async fn see_through(world: &World, answering: AskAnswering<'_>, term: &Term) -> anyhow::Result<(Observed, bool)> {
    let row = answering.row;
    let (ask, session) = (row.ask_id, row.session_id);
    let cancel = CancellationToken::new();
    let words = format!("waiting for {}", ask_words::tool(row));
    let (end, interrupted) = interruptible(term, &words, &cancel, answering.see_through(&cancel)).await?;
    let used = match end? {
        CallEnd::Observed(observed) => return Ok((*observed, interrupted)),
        CallEnd::WithClient(event) => {
            let answer = answer_command(world, session, event);
            let text = format!("{ask} is allowed; its client runs it, give the result with: {answer}");
            return Err(fault(ExitKind::Waits, text));
        }
        CallEnd::InUse(owner) => format!("its session is in use by {owner}, which has yet to run it"),
        CallEnd::NotRun => "its call has not run yet; the next process that uses the session runs it".to_owned(),
    };
    let look = world.command(&format!("sessions show {session}"));
    let ended = if interrupted { ExitKind::Interrupted } else { ExitKind::Broken };
    Err(fault(ended, format!("the answer to {ask} is recorded, but {used}: {look}")))
}

/// The same for a call that went on as a background task and was waited for: how that ended, too.
async fn show_all(
    world: &World,
    runtime: &Runtime,
    session: SessionId,
    observed: &Observed,
    term: &Term,
) -> anyhow::Result<ExitKind> {
    let end = match observed.task_id() {
        Some(task) => runtime.task_end(session, task).await?,
        None => None,
    };
    let Some(end) = end else { return show(world, runtime, session, observed, term).await };
    let ended = if end.code.known().is_some_and(Code::is_ok) { ExitKind::Done } else { ExitKind::Failed };
    if term.json {
        let mut document = serde_json::to_value(observed)?;
        document["session_id"] = json!(session);
        document["task"] = serde_json::to_value(&end)?;
        term.document(&document)?;
        return Ok(ended);
    }
    show(world, runtime, session, observed, term).await?;
    if !end.text.is_empty() {
        term.print_of_others(&safe(&end.text))?;
    }
    let line = format!("{} ended: {}; {}", end.task_id, end.code, safe_line(&end.summary, 200));
    if ended == ExitKind::Done {
        term.note(&styled(DIM, &line))
    } else {
        term.error(&line)
    }
    Ok(ended)
}

/// What a person is told whose input did not fit: an input that does, and where to read more.
pub async fn hint_at_input(world: Option<&World>, runtime: &Runtime, session: SessionId, tool: &str) -> Option<String> {
    let example = example_input(runtime, session, tool).await?;
    let words = format!("tools show {tool}");
    let look = world.map_or_else(|| format!("portcullis {words}"), |world| world.command(&words));
    Some(format!("an input is JSON, such as '{example}' (your own values in place of capitals); all it takes: {look}"))
}

/// Prints an observation and where its record is.
pub async fn show(
    world: &World,
    runtime: &Runtime,
    session: SessionId,
    observed: &Observed,
    term: &Term,
) -> anyhow::Result<ExitKind> {
    if term.json {
        let mut document = serde_json::to_value(observed)?;
        document["session_id"] = json!(session);
        term.document(&document)?;
        return Ok(ExitKind::of(observed));
    }
    observation::print(term, observed, &told_warnings::before(world, session, observed).await)?;
    for rule in runtime.gate().rules_against(session, observed) {
        term.note(&format!("  {}", render::exact(&rule, 4_096)));
    }
    if is_wrong_input(observed.code.known())
        && let Some(hint) = hint_at_input(Some(world), runtime, session, &observed.tool).await
    {
        term.note(&safe(&hint));
    }
    record(world, session, observed, term);
    Ok(ExitKind::of(observed))
}

fn record(world: &World, session: SessionId, observed: &Observed, term: &Term) {
    let look = world.command(&format!("sessions events {session}"));
    let line = format!("recorded: session {session}, intent {}; look at it with: {look}", observed.intent_id);
    term.note(&styled(DIM, &line));
}

/// The same after an answer. A refusal that took effect is no error: it is what the person said.
pub async fn show_settled(
    (world, runtime): (&World, &Runtime),
    session: SessionId,
    observed: &Observed,
    reply: &Reply,
    term: &Term,
) -> anyhow::Result<ExitKind> {
    if !reply.allows() && !term.json && observed.code == Code::UserDenied.into() {
        let stop = if *reply == Reply::DenyAndStop { "; that it should stop is recorded" } else { "" };
        term.print(&format!("refused: {}: {}{stop}", safe(&observed.tool), safe_line(&observed.summary, 1_000)))?;
        record(world, session, observed, term);
        return Ok(ExitKind::of(observed));
    }
    show(world, runtime, session, observed, term).await
}

/// The ask of this very call, left to a person; or raised by the process that holds the session, which knows nothing of the
/// flag of this one, and answered by that.
async fn answer_or_wait(world: &World, runtime: &Runtime, ask: AskId, term: &Term) -> anyhow::Result<ExitKind> {
    let asked = ask::load(world, ask).await?;
    let row = &asked.row;
    let Some(answer) = asks::by_flag(world.settings.approvals, asked.only_a_person) else {
        if term.json {
            term.document(&ask_view::requires_action(world, &asked))?;
        } else {
            term.print(&ask_view::waiting(world, &asked).await)?;
        }
        return Ok(ExitKind::Waits);
    };
    if answer.reply.allows() {
        // As for `approvals allow`: nobody allows what nobody could be shown.
        world.archive.diff(row).await?;
    }
    runtime.reply(ask, answer).await?;
    let (observed, interrupted) =
        see_through(world, AskAnswering { archive: &world.archive, runtime, row }, term).await?;
    Ok(show_all(world, runtime, row.session_id, &observed, term).await?.or_interrupted(interrupted))
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

    #[test]
    fn words_that_are_too_long_are_refused_and_never_cut() {
        let most = "x".repeat(limits::INPUT_MAX);
        assert_eq!(whole(most.clone()).expect("kept"), most);
        let error = whole(most + "x").expect_err("too long").to_string();
        assert!(error.contains("1048576 bytes") && error.contains("file of the workspace"), "{error}");
    }
}
