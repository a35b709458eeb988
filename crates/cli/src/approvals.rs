//! `approvals`: the inbox. An answer is a durable append of its own; then the call runs, once, in
//! the workspace of the session that asked.

use portcullis::{Answer, Reply, Runtime, RuntimeError};
use portcullis_base::{AskId, Clock as _, SystemClock};
use portcullis_event::{AskState, LOCAL_TENANT};
use portcullis_store::{AskFilter, AskRow, Log as _, StoreError};
use serde_json::json;

use crate::args::{Approvals, Globals};
use crate::ask_view::{self, Whole};
use crate::config::Settings;
use crate::exit::{Ended, failed};
use crate::render::{self, Term};
use crate::world::World;
use crate::{call, person, watch};

pub async fn run(what: Approvals, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    match what {
        Approvals::List => list(globals, term).await,
        Approvals::Watch => watch::run(&World::open(Settings::load(globals)?, term)?, term).await,
        Approvals::Show { ask } => show(&World::existing(globals)?, ask, term).await,
        Approvals::Allow { ask, session, save, expires } => {
            let world = World::existing(globals)?;
            let row = row(&world, ask).await?;
            let reply = match (session, save) {
                (true, _) => Reply::AllowSession,
                (_, true) => Reply::AllowSaved,
                (false, false) => Reply::AllowOnce,
            };
            let expires_at = expires.map(|span| SystemClock::new().now().plus(span));
            settle(&world, &row, Answer { expires_at, ..person::answer(reply, "cli", None) }, term).await
        }
        Approvals::Deny { ask, feedback, stop } => {
            let world = World::existing(globals)?;
            let row = row(&world, ask).await?;
            let reply = match (stop, &feedback) {
                (true, _) => Reply::DenyAndStop,
                (false, Some(_)) => Reply::DenyWithFeedback,
                (false, None) => Reply::Deny,
            };
            settle(&world, &row, person::answer(reply, "cli", feedback), term).await
        }
    }
}

/// What waits for an answer, as the log asked it.
pub async fn pending(world: &World) -> anyhow::Result<Vec<AskRow>> {
    let mut asks = Vec::new();
    for row in world.store.asks(LOCAL_TENANT, AskFilter { session: None, pending: true }).await? {
        asks.push(ask_view::as_asked(world, row).await?);
    }
    Ok(asks)
}

/// One ask, as the log asked it.
pub async fn row(world: &World, ask: AskId) -> anyhow::Result<AskRow> {
    let row = world.store.ask(LOCAL_TENANT, ask).await?.ok_or(StoreError::NoAsk(ask))?;
    ask_view::as_asked(world, row).await
}

async fn list(globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    let rows = match World::look(Settings::load(globals)?)? {
        Some(world) => pending(&world).await?,
        None => Vec::new(),
    };
    if term.json {
        term.document(&json!({"asks": rows}))?;
    } else if rows.is_empty() {
        term.note("nothing waits for an answer");
    } else {
        let line = |row: &AskRow| {
            let id = row.ask_id.to_string();
            vec![id, ask_view::tool(row), ask_view::touches(row), ask_view::expiry(row.expires_at)]
        };
        term.print(&render::table(&["ASK", "TOOL", "TOUCHES", "EXPIRES"], rows.iter().map(line).collect()))?;
    }
    Ok(Ended::Done)
}

async fn show(world: &World, ask: AskId, term: &Term) -> anyhow::Result<Ended> {
    let whole = Whole::load(world, row(world, ask).await?).await?;
    if term.json {
        term.document(&whole.document()?)?;
    } else {
        term.print(&whole.text(world, true))?;
    }
    // Everything else was shown; that the diff could not be is the store's fault.
    whole.diff.map(|_| Ended::Done)
}

/// Records an answer and sees the call through.
pub async fn settle(world: &World, row: &AskRow, answer: Answer, term: &Term) -> anyhow::Result<Ended> {
    let ask = row.ask_id;
    let refusal = !answer.reply.allows();
    // Before the reply: an allow that cannot run here must not be spent.
    let runtime = world.runtime_for(row, "portcullis approvals").await?;
    if !refusal && row.state == AskState::Pending {
        ask_view::diff(world, row).await?;
    }
    match runtime.reply(ask, answer).await {
        Ok(None) => {}
        Ok(Some(grant)) => {
            let revoke = world.command(&format!("grants revoke {grant}"));
            term.note(&format!("remembered as {grant}; take it back with: {revoke}"));
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
    let ended = call::show_settled(world, row.session_id, &observed, refusal, term)?.or_interrupted(interrupted);
    // A refusal that was recorded is what was asked for.
    Ok(if refusal && ended == Ended::Denied { Ended::Done } else { ended })
}

/// An ask that was answered before. If whoever allowed it died before the call ran, another allow runs
/// it now. A no that comes too late runs nothing: whoever typed it wants the call not to happen.
async fn left_over(
    world: &World,
    runtime: &Runtime,
    row: &AskRow,
    refusal: bool,
    term: &Term,
) -> anyhow::Result<Ended> {
    let ask = row.ask_id;
    let observed = runtime.observation(row.session_id, row.intent_id, row.asked_seq).await?;
    let now = self::row(world, ask).await?;
    let by = now.approver.map(|name| format!(" by {}", render::exact(&name, 80))).unwrap_or_default();
    let state = render::word(&now.state);
    match observed {
        Some(observed) => {
            let outcome = observed.code.to_string();
            Err(failed(format!(
                "already_settled: ask {ask} is {state}{by}, and its call ended as {outcome}; the first answer counts"
            )))
        }
        None if refusal => {
            let reply = now.reply.map(|reply| format!(" with {}", render::word(&reply))).unwrap_or_default();
            let look = world.command(&format!("approvals show {ask}"));
            Err(failed(format!(
                "already_settled: ask {ask} is {state}{by}{reply}; the first answer counts, this one changed and ran \
                 nothing, and its call has not ended yet: {look}"
            )))
        }
        None => {
            term.note(&format!(
                "already_settled: ask {ask} is {state}{by}; its call has not ended yet and is seen through"
            ));
            let (observed, interrupted) = call::see_through(world, runtime, row, term).await?;
            Ok(call::show(world, row.session_id, &observed, term)?.or_interrupted(interrupted))
        }
    }
}
