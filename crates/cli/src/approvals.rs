//! `approvals`: the inbox. An answer is a durable append of its own; then the call runs, once, in
//! the workspace of the session that asked.

use portcullis::local::ProcessRole;
use portcullis::operations::ask_words;
use portcullis::operations::{AskAnswering, AskView, ReplyEnd};
use portcullis::{AskAnswer, AskRow, Observed, Reply};
use portcullis_base::{AskId, Clock as _, SystemClock};
use portcullis_config::followed;
use portcullis_terminal::render::Term;
use portcullis_terminal::table::table_within;
use serde_json::json;

use crate::args::{Approvals, Globals};
use crate::ask;
use crate::ask_text::AskDetail;
use crate::ask_view::ShownAsk;
use crate::exit::{ExitKind, failed};
use crate::hints;
use crate::world::{World, is_there};
use crate::{call, person, watch};

/// Who holds a session meanwhile, for others who come across it.
pub const ROLE: ProcessRole = ProcessRole::brief("portcullis approvals");

pub async fn run(what: Approvals, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    match what {
        Approvals::List => list(globals, term).await,
        Approvals::Watch => {
            let settings = globals.settings()?;
            is_there(&settings)?;
            watch::run(&World::open(settings, term)?, term).await
        }
        Approvals::Show { ask } => show(&World::existing(globals)?, ask, term).await,
        Approvals::Allow { ask, session, save, expires } => {
            let world = World::existing(globals)?;
            let ask = ask::load(&world, ask).await?;
            let reply = match (session, save) {
                (true, _) => Reply::AllowSession,
                (_, true) => Reply::AllowSaved,
                (false, false) => Reply::AllowOnce,
            };
            if ask.is_pending() && term.interactive() && !watch::read_through(&world, &ask, term).await? {
                return Ok(ExitKind::Interrupted);
            }
            let expires_at = expires.map(|span| SystemClock::new().now().plus(span));
            answer_and_run(&world, &ask.row, AskAnswer { expires_at, ..person::answer(reply, "cli", None) }, term).await
        }
        Approvals::Deny { ask, feedback, stop } => {
            let world = World::existing(globals)?;
            let ask = ask::load(&world, ask).await?;
            let reply = match (stop, &feedback) {
                (true, _) => Reply::DenyAndStop,
                (false, Some(_)) => Reply::DenyWithFeedback,
                (false, None) => Reply::Deny,
            };
            answer_and_run(&world, &ask.row, person::answer(reply, "cli", feedback), term).await
        }
    }
}

async fn list(globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let asks = match World::look(globals.settings()?)? {
        Some(world) => ask::pending(&world).await?,
        None => Vec::new(),
    };
    if term.json {
        let asks = asks.iter().map(AskView::document).collect::<Result<Vec<_>, _>>()?;
        term.document(&json!({"asks": asks}))?;
    } else if asks.is_empty() {
        term.note("nothing waits for an answer");
    } else {
        // A narrow terminal has no room for two ids in a row: `approvals show` names the session.
        let narrow = term.columns().is_some_and(|columns| columns < WIDE);
        let line = |ask: &AskView| {
            let row = &ask.row;
            let mut line = vec![row.ask_id.to_string(), ask_words::tool(row), in_a_cell(&ask_words::touches(row))];
            let expiry = ask_words::expiry(row.expires_at);
            match (narrow, expiry.split_once(" (")) {
                (true, Some((left, _))) => line.extend([ask_words::folder(ask), left.to_owned()]),
                (true, None) => line.extend([ask_words::folder(ask), expiry]),
                (false, _) => line.extend([ask_words::folder(ask), ask_words::session(row), expiry]),
            }
            line
        };
        let header: &[&str] = match narrow {
            true => &["ASK", "TOOL", "TOUCHES", "WORKSPACE", "EXPIRES"],
            false => &["ASK", "TOOL", "TOUCHES", "WORKSPACE", "SESSION", "EXPIRES"],
        };
        let whole: &[usize] = if narrow { &[0] } else { &[0, 4] };
        term.print(&table_within(term.columns(), whole, header, asks.iter().map(line).collect()))?;
        for row in asks.iter().map(|ask| &ask.row) {
            let touches = ask_words::touches(row);
            if in_a_cell(&touches) != touches {
                term.print(&format!("\n{} touches:\n  {touches}", row.ask_id))?;
            }
        }
    }
    Ok(ExitKind::Done)
}

/// From this width on a list has room for every column.
const WIDE: usize = 120;

/// The text as a cell of the table shows it. A text that is too long is cut there and shown whole below the table.
fn in_a_cell(touches: &str) -> String {
    const CELL: usize = 160;
    match touches.char_indices().nth(CELL) {
        Some((cut, _)) => {
            format!("{}… ({} characters, shown whole below)", &touches[..cut], touches.chars().count())
        }
        None => touches.to_owned(),
    }
}

async fn show(world: &World, ask: AskId, term: &Term) -> anyhow::Result<ExitKind> {
    let whole = ShownAsk::load(world, ask::load(world, ask).await?).await?;
    if term.json {
        term.document(&whole.document()?)?;
    } else {
        term.print(format!("{}\n{}", whole.text(AskDetail::Whole), whole.answers(world)).trim_end())?;
    }
    // Everything else was shown; that the diff could not be is the store's fault.
    match whole.0.diff {
        Err(error) if term.json => {
            term.error(&hints::explained_causes(&error));
            Ok(ExitKind::Broken)
        }
        diff => Ok(diff.map(|_| ExitKind::Done)?),
    }
}

/// Records an answer and runs the call, or waits for the process that runs it.
pub async fn answer_and_run(world: &World, row: &AskRow, answer: AskAnswer, term: &Term) -> anyhow::Result<ExitKind> {
    let ask = row.ask_id;
    let reply = answer.reply.clone();
    let refusal = !reply.allows();
    // Before the reply: an allow that cannot run here must not be spent.
    let runtime = world.runtime_to_answer(row, !refusal, ROLE).await?;
    let answering = AskAnswering { archive: &world.archive, runtime: &runtime, row };
    match answering.reply(answer).await? {
        ReplyEnd::Counts(None) => {}
        ReplyEnd::Counts(Some(grant)) => {
            let revoke = world.command(&format!("grants revoke {grant}"));
            term.note(&format!("remembered as {grant}; take it back with: {revoke}"));
        }
        ReplyEnd::Withdrawn => {
            let look = world.command(&format!("approvals show {ask}"));
            return Err(failed(format!(
                "already_settled: ask {ask} was withdrawn: its session was interrupted, or its caller took the call back. \
                 This answer changed and ran nothing: {look}"
            )));
        }
        ReplyEnd::Late { row: now, observed } => {
            let stands = ask_words::standing(&now);
            return late(world, answering, (&stands, observed.as_deref()), refusal, term).await;
        }
    }
    let (observed, interrupted) = call::see_through(world, answering, term).await?;
    let shown = call::show_settled((world, &runtime), row.session_id, &observed, &reply, term).await?;
    call::shutdown_and_report(&runtime, term).await;
    hint_to_wake(world, answering, term).await?;
    let ended = shown.or_interrupted(interrupted);
    // A refusal that was recorded is what was asked for.
    Ok(if refusal && ended == ExitKind::Denied { ExitKind::Done } else { ended })
}

/// Names the command that wakes the session, if a model works in it and no process is about to tell it of the answer.
async fn hint_to_wake(world: &World, answering: AskAnswering<'_>, term: &Term) -> anyhow::Result<()> {
    let session = answering.row.session_id;
    let is_followed = followed::is_followed(&world.settings.home, session);
    if answering.model_is_untold().await? && !is_followed && !term.json {
        let next = world.command(&format!("run --session {session}"));
        term.note(&format!("the model has yet to hear of it; unless a `portcullis worker` runs, go on with: {next}"));
    }
    Ok(())
}

/// An ask that was answered before. If the process that allowed it died before the call ran, another allow runs it now. A
/// no that comes too late runs nothing: the person who typed it wants the call not to happen.
async fn late(
    world: &World,
    answering: AskAnswering<'_>,
    (stands, observed): (&str, Option<&Observed>),
    refusal: bool,
    term: &Term,
) -> anyhow::Result<ExitKind> {
    let AskAnswering { runtime, row, .. } = answering;
    let ask = row.ask_id;
    let ended = |observed: &Observed| {
        let outcome = observed.code.to_string();
        failed(format!("already_settled: ask {ask} is {stands}; its call ended as {outcome}; the first answer counts"))
    };
    match observed {
        Some(observed) => Err(ended(observed)),
        None if refusal => {
            let look = world.command(&format!("approvals show {ask}"));
            Err(failed(format!(
                "already_settled: ask {ask} is {stands}; the first answer counts, this one changed and ran nothing, \
                 and its call has not ended yet: {look}"
            )))
        }
        None => {
            term.note(&format!(
                "already_settled: ask {ask} is {stands}; its call has not ended yet and is seen through"
            ));
            let theirs = answering.is_carried_out_elsewhere().await?;
            let (observed, interrupted) = call::see_through(world, answering, term).await?;
            if theirs && !interrupted {
                return Err(ended(&observed));
            }
            Ok(call::show(world, runtime, row.session_id, &observed, term).await?.or_interrupted(interrupted))
        }
    }
}
