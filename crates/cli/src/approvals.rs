//! `approvals`: the inbox. An answer is a durable append of its own; then the call runs, once, in
//! the workspace of the session that asked.

use std::time::Duration;

use portcullis::{AskAnswer, Reply, Runtime, RuntimeError};
use portcullis_base::{AskId, Clock as _, SystemClock};
use portcullis_event::AskState;
use portcullis_pipeline::folded;
use portcullis_store::{AskRow, Log as _, StoreError};
use serde_json::json;

use crate::args::{Approvals, Globals};
use crate::ask::Ask;
use crate::ask_text::AskDetail;
use crate::ask_view::{self, WholeAsk};
use crate::exit::{ExitKind, failed};
use crate::hints;
use crate::render::{self, Term};
use crate::world::{Role, World, is_there, key};
use crate::{activity, call, followed, person, watch};

/// Who holds a session meanwhile, for others who come across it.
pub const ROLE: Role = Role::brief("portcullis approvals");

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
            let ask = Ask::load(&world, ask).await?;
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
            let ask = Ask::load(&world, ask).await?;
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
        Some(world) => Ask::pending(&world).await?,
        None => Vec::new(),
    };
    if term.json {
        let asks = asks.iter().map(Ask::document).collect::<anyhow::Result<Vec<_>>>()?;
        term.document(&json!({"asks": asks}))?;
    } else if asks.is_empty() {
        term.note("nothing waits for an answer");
    } else {
        // A narrow terminal has no room for two ids in a row: `approvals show` names the session.
        let narrow = term.columns().is_some_and(|columns| columns < WIDE);
        let line = |ask: &Ask| {
            let row = &ask.row;
            let mut line = vec![row.ask_id.to_string(), ask_view::tool(row), in_a_cell(&ask_view::touches(row))];
            let expiry = ask_view::expiry(row.expires_at);
            match (narrow, expiry.split_once(" (")) {
                (true, Some((left, _))) => line.extend([ask_view::folder(ask), left.to_owned()]),
                (true, None) => line.extend([ask_view::folder(ask), expiry]),
                (false, _) => line.extend([ask_view::folder(ask), ask_view::session(row), expiry]),
            }
            line
        };
        let header: &[&str] = match narrow {
            true => &["ASK", "TOOL", "TOUCHES", "WORKSPACE", "EXPIRES"],
            false => &["ASK", "TOOL", "TOUCHES", "WORKSPACE", "SESSION", "EXPIRES"],
        };
        let whole: &[usize] = if narrow { &[0] } else { &[0, 4] };
        term.print(&render::table_within(term.columns(), whole, header, asks.iter().map(line).collect()))?;
        for row in asks.iter().map(|ask| &ask.row) {
            let touches = ask_view::touches(row);
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
    let whole = WholeAsk::load(world, Ask::load(world, ask).await?).await?;
    if term.json {
        term.document(&whole.document()?)?;
    } else {
        term.print(format!("{}\n{}", whole.text(AskDetail::Whole), whole.answers(world)).trim_end())?;
    }
    // Everything else was shown; that the diff could not be is the store's fault.
    match whole.diff {
        Err(error) if term.json => {
            term.error(&hints::explained_chain(&error));
            Ok(ExitKind::Broken)
        }
        diff => diff.map(|_| ExitKind::Done),
    }
}

/// Records an answer and runs the call, or waits for the process that runs it.
pub async fn answer_and_run(world: &World, row: &AskRow, answer: AskAnswer, term: &Term) -> anyhow::Result<ExitKind> {
    let ask = row.ask_id;
    let reply = answer.reply.clone();
    let refusal = !reply.allows();
    // Before the reply: an allow that cannot run here must not be spent.
    let runtime = match world.runtime_for(row, ROLE).await {
        // A no needs nothing of a folder that is gone.
        Err(_) if refusal => world.appending(row.session_id, ROLE).await?,
        runtime => runtime?,
    };
    if !refusal && row.state == AskState::Pending {
        ask_view::diff(world, row).await?;
    }
    match runtime.reply(ask, answer).await {
        Ok(None) => {}
        Ok(Some(grant)) => {
            let revoke = world.command(&format!("grants revoke {grant}"));
            term.note(&format!("remembered as {grant}; take it back with: {revoke}"));
        }
        Err(RuntimeError::Store(StoreError::AskSettled { state: AskState::Superseded, .. })) => {
            return withdrawn(world, &runtime, row).await;
        }
        Err(RuntimeError::Store(StoreError::AskSettled { .. })) => {
            return left_over(world, &runtime, row, refusal, term).await;
        }
        Err(error @ RuntimeError::Store(StoreError::AskExpired(_))) => {
            // Its call is still to be told that nobody answered.
            runtime.attend(row.session_id).await?;
            return Err(error.into());
        }
        Err(error) => return Err(error.into()),
    }
    let (observed, interrupted) = call::see_through(world, &runtime, row, term).await?;
    let shown = call::show_settled((world, &runtime), row.session_id, &observed, &reply, term).await?;
    call::shutdown_and_report(&runtime, term).await;
    hint_to_wake(world, row, term).await?;
    let ended = shown.or_interrupted(interrupted);
    // A refusal that was recorded is what was asked for.
    Ok(if refusal && ended == ExitKind::Denied { ExitKind::Done } else { ended })
}

/// Names the command that wakes the session, if a model works in it and no process is about to tell it of the answer.
async fn hint_to_wake(world: &World, row: &AskRow, term: &Term) -> anyhow::Result<()> {
    let session = row.session_id;
    let head = world.store.head(key(session)).await?;
    let is_held = head.is_none_or(|head| activity::lease(&head).is_some())
        || followed::is_followed(&world.settings.home, session);
    let waits = folded(&*world.store, key(session)).await?;
    let model_must_hear = waits.progress.last_wake.is_some() && waits.asks.pending().next().is_none();
    if model_must_hear && !is_held && !term.json {
        let next = world.command(&format!("run --session {session}"));
        term.note(&format!("the model has yet to hear of it; unless a `portcullis worker` runs, go on with: {next}"));
    }
    Ok(())
}

/// An ask that an interrupt or its caller withdrew. If it is still open, this closes it.
async fn withdrawn(world: &World, runtime: &Runtime, row: &AskRow) -> anyhow::Result<ExitKind> {
    if row.state == AskState::Pending {
        match runtime.withdraw_asks(row.session_id).await {
            Ok(_) | Err(RuntimeError::Held(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let look = world.command(&format!("approvals show {}", row.ask_id));
    Err(failed(format!(
        "already_settled: ask {} was withdrawn: its session was interrupted, or its caller took the call back. This answer \
         changed and ran nothing: {look}",
        row.ask_id
    )))
}

/// An ask that was answered before. If the process that allowed it died before the call ran, another allow runs it now. A
/// no that comes too late runs nothing: the person who typed it wants the call not to happen.
async fn left_over(
    world: &World,
    runtime: &Runtime,
    row: &AskRow,
    refusal: bool,
    term: &Term,
) -> anyhow::Result<ExitKind> {
    let ask = row.ask_id;
    let observed = runtime.observation(row.session_id, row.intent_id, row.asked_seq).await?;
    let now = Ask::load(world, ask).await?.row;
    // The same words as the first time: that its call was told meanwhile changes nothing for a person.
    if now.state == AskState::Expired {
        return Err(StoreError::AskExpired(ask).into());
    }
    let stands = ask_view::standing(&now);
    match observed {
        Some(observed) => {
            let outcome = observed.code.to_string();
            Err(failed(format!(
                "already_settled: ask {ask} is {stands}; its call ended as {outcome}; the first answer counts"
            )))
        }
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
            let theirs = carried_out_by_another(world, runtime, row).await?;
            let (observed, interrupted) = call::see_through(world, runtime, row, term).await?;
            if theirs && !interrupted {
                let outcome = observed.code.to_string();
                return Err(failed(format!(
                    "already_settled: ask {ask} is {stands}; its call ended as {outcome}; the first answer counts"
                )));
            }
            Ok(call::show(world, runtime, row.session_id, &observed, term).await?.or_interrupted(interrupted))
        }
    }
}

/// How long the process that answered first has to claim the session before it counts as dead. It claims right after its
/// answer.
const FIRST_ANSWER_GRACE: Duration = Duration::from_secs(2);
/// How often this process looks whether it did.
const LOOK_FOR_HOLDER: Duration = Duration::from_millis(20);

/// Whether another process runs the call of an ask that was answered before. Then this answer came too late, and the
/// command that gave it ends the same way however far the call is by then.
async fn carried_out_by_another(world: &World, runtime: &Runtime, row: &AskRow) -> anyhow::Result<bool> {
    let clock = SystemClock::new();
    let until = clock.monotonic() + FIRST_ANSWER_GRACE;
    loop {
        let head = world.store.head(key(row.session_id)).await?;
        let is_held = head.is_some_and(|head| activity::lease(&head).is_some());
        if is_held || runtime.observation(row.session_id, row.intent_id, row.asked_seq).await?.is_some() {
            return Ok(true);
        }
        if clock.monotonic() >= until {
            return Ok(false);
        }
        tokio::time::sleep(LOOK_FOR_HOLDER).await;
    }
}
