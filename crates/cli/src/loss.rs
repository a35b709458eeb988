//! Events that were recorded and are gone: a write-ahead log that was damaged, or an older copy of the database. The mark
//! beside the database proves it. It is told by every command that opens the store, until somebody accepts it.

use std::io::{self, Write as _};

use portcullis::SessionId;
use portcullis_base::{AppendId, Clock as _, SystemClock, WorkerId};
use portcullis_event::facts::{LossAccepted, LostLog};
use portcullis_event::{Actor, LOCAL_TENANT, Stamp, ledger_of, operator_log_of};
use portcullis_pipeline::Opened;
use portcullis_store::{Commit, HostLiveness, Log as _, SessionKey, StoreError};
use portcullis_store_sqlite::{LostEnd, SqliteStore};
use serde_json::json;

use crate::exit::Ended;
use crate::person;
use crate::render::{self, Term};
use crate::world::{World, key};

/// Said to the session itself, so that a model reads it, and a person in `sessions show`.
const INTERRUPTED: &str = "the end of this session's log was lost; what was done after its last event is not known, so \
                           look before anything is done again";

/// Names of logs that are shown before the rest is counted.
const SHOWN: usize = 5;

/// Says what is missing, if anything is.
pub fn tell(store: &SqliteStore) {
    let lost = store.lost();
    if lost.is_empty() {
        return;
    }
    let logs = render::count(lost.len() as u64, "log");
    let mut named: Vec<String> = lost.iter().take(SHOWN).map(words).collect();
    if lost.len() > SHOWN {
        named.push(format!("and {} more", lost.len() - SHOWN));
    }
    // Nobody is left to be told that nobody can be told.
    let _ = writeln!(
        io::stderr(),
        "warning: events that were recorded are missing from this store: {logs} lost their end ({}). The database is older \
         than it was. Nothing is written to these logs and nothing of them is run: restore the store from a backup, or \
         look at what was done and then `portcullis audit accept-loss`",
        named.join("; ")
    );
}

fn words(lost: &LostEnd) -> String {
    let name = match lost.key.session {
        session if session == ledger_of(LOCAL_TENANT) => "the ledger".to_owned(),
        session if session == operator_log_of(LOCAL_TENANT) => "the operator log".to_owned(),
        session => session.to_string(),
    };
    match lost.found {
        0 => format!("{name} had {} events and is gone", lost.recorded),
        found if found == lost.recorded => format!("{name} has another event {found} than was recorded"),
        found => format!("{name} had event {} and ends at {found}", lost.recorded),
    }
}

/// Gives up what is lost. Every call that is open in such a log is settled as one of which nobody knows whether it ran.
pub async fn accept(world: &World, term: &Term) -> anyhow::Result<Ended> {
    let lost = world.store.lost().to_vec();
    if lost.is_empty() {
        if term.json {
            term.document(&json!({"logs": [], "calls_unknown": 0}))?;
        } else {
            term.print("nothing is known to be missing")?;
        }
        return Ok(Ended::Done);
    }
    // In this order: if this is broken off, the loss is told again, and nothing that was open has run.
    world.store.set_lost_aside();
    let mut unknown = 0;
    for session in lost.iter().map(|lost| lost.key.session) {
        unknown += give_up_calls(world, session).await?;
    }
    record(world, &lost).await?;
    world.store.accept_lost()?;
    if term.json {
        let logs: Vec<_> = lost.iter().map(fact).collect();
        term.document(&json!({"logs": logs, "calls_unknown": unknown}))?;
    } else {
        let calls = render::count(unknown as u64, "call");
        let logs = render::count(lost.len() as u64, "log");
        term.print(&format!(
            "{logs} go on without what was lost; the outcome of {calls} is unknown, and none is run again"
        ))?;
    }
    Ok(Ended::Done)
}

async fn give_up_calls(world: &World, session: SessionId) -> anyhow::Result<usize> {
    let reserved = [ledger_of(LOCAL_TENANT), operator_log_of(LOCAL_TENANT)];
    let Some(head) = world.store.head(key(session)).await?.filter(|_| !reserved.contains(&session)) else {
        return Ok(0);
    };
    if world.is_erased(session, &head).await? {
        return Ok(0);
    }
    let runtime = world.appending(session, "portcullis audit").await?;
    let owner =
        HostLiveness::new().this_process(WorkerId::make(world.ids(), SystemClock::new().now()), "portcullis audit");
    let given_up = match runtime.gate().open(session, owner, "local").await? {
        Opened::Held(owner) => return Err(portcullis::RuntimeError::Held(owner).into()),
        Opened::Ready(held) => {
            let given_up = held.give_up_what_is_open().await.map_err(portcullis::RuntimeError::from);
            let released = held.release().await;
            let given_up = given_up?;
            released?;
            given_up
        }
    };
    // What was about to begin by itself does not: the next wake settles this, and then waits for somebody.
    match runtime.interrupt(session, &person::login(), Some(INTERRUPTED)).await {
        Ok(_) | Err(portcullis::RuntimeError::Store(StoreError::Terminated(_))) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(given_up)
}

fn fact(lost: &LostEnd) -> LostLog {
    LostLog { session_id: lost.key.session, recorded: lost.recorded, found: lost.found }
}

async fn record(world: &World, lost: &[LostEnd]) -> anyhow::Result<()> {
    let (clock, by) = (SystemClock::new(), person::login());
    let actor = Actor::user(&by);
    let stamp = Stamp { ids: world.ids(), clock: &clock, actor: &actor, turn_id: None, wake_id: None };
    let draft = stamp.draft(&LossAccepted { by: by.clone(), logs: lost.iter().map(fact).collect() });
    let operator = SessionKey { tenant: LOCAL_TENANT, session: operator_log_of(LOCAL_TENANT) };
    let append = AppendId::make(world.ids(), clock.now());
    world.store.commit(Commit::client(operator, append, vec![draft])).await?;
    Ok(())
}
