//! Events that were recorded and are gone: a write-ahead log that was damaged, or an older copy of the database. The mark
//! beside the database proves it. It is told by every command that opens the store, until somebody accepts it.

use std::io::{self, Write as _};
use std::path::Path;

use portcullis::LostEnd;
use portcullis::local::{ProcessRole, lost_database};
use portcullis::operations::accept_loss;
use portcullis_terminal::render::{self, Term};
use serde_json::json;

use crate::args::Globals;
use crate::exit::{ExitKind, failed, fault, usage};
use crate::home_workspace::says_yes;
use crate::world::World;
use crate::{audit, person};

/// Names of logs that are shown before the rest is counted.
const SHOWN: usize = 5;

/// What to do about a loss.
pub const TO_DO: &str = "Nothing is written to these logs and nothing of them is run: look at `portcullis audit verify`, \
                         then restore the store from a backup, or look at what was done and then `portcullis audit \
                         accept-loss`";

/// Says what is missing, if anything is.
pub fn tell(lost: &[LostEnd]) {
    if lost.is_empty() {
        return;
    }
    // Nobody is left to be told that nobody can be told.
    let _ = writeln!(io::stderr(), "warning: {}. {TO_DO}", missing(lost));
}

/// What is missing, in one sentence.
pub fn missing(lost: &[LostEnd]) -> String {
    let logs = render::count(lost.len() as u64, "log");
    format!(
        "events that were recorded are missing from this store: {logs} lost their end ({}). The database is older than it \
         was",
        named(lost)
    )
}

fn named(lost: &[LostEnd]) -> String {
    let mut named: Vec<String> = lost.iter().take(SHOWN).map(words).collect();
    if lost.len() > SHOWN {
        named.push(format!("and {} more", lost.len() - SHOWN));
    }
    named.join("; ")
}

fn words(lost: &LostEnd) -> String {
    let name = audit::name_of(lost.key.session);
    match lost.found {
        0 => format!("{name} had {} and is gone", render::count(lost.recorded, "event")),
        found if found == lost.recorded => format!("{name} has another event {found} than was recorded"),
        found => format!("{name} had event {} and ends at {found}", lost.recorded),
    }
}

/// The error where a database was and is gone: nothing there is not the same as nothing there yet.
pub fn gone_fault(database: &Path, lost: &[LostEnd]) -> anyhow::Error {
    fault(ExitKind::Broken, format!("{}; {TO_DO_GONE}", gone(database, lost)))
}

/// What is known of a database that was there, by the mark that is left.
pub fn gone(database: &Path, lost: &[LostEnd]) -> String {
    let (place, logs) = (render::place(database), render::count(lost.len() as u64, "log"));
    format!("a database was at {place} and is gone: the mark beside it names {logs} ({})", named(lost))
}

/// What to do about a database that is gone.
pub const TO_DO_GONE: &str = "restore it from a backup; or, to go on with an empty one and give up what it held: portcullis \
                              audit accept-loss";

/// Gives up what is lost, once somebody said so who saw what it is.
pub async fn accept(yes: bool, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let settings = globals.settings()?;
    let gone = lost_database(&settings);
    let world = if gone.is_empty() {
        World::existing(globals)?
    } else {
        confirm(&gone, yes, term)?;
        World::open(settings, term)?
    };
    let lost = world.lost();
    if lost.is_empty() {
        if term.json {
            term.document(&json!({"logs": [], "calls_unknown": 0}))?;
        } else {
            term.print("nothing is known to be missing")?;
        }
        return Ok(ExitKind::Done);
    }
    if gone.is_empty() {
        confirm(lost, yes, term)?;
    }
    give_up(&world, term).await
}

/// On a terminal a person says yes; elsewhere a flag must.
fn confirm(lost: &[LostEnd], yes: bool, term: &Term) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    let logs = render::count(lost.len() as u64, "log");
    let what =
        format!("the lost end of {logs} would be given up: {}", lost.iter().map(words).collect::<Vec<_>>().join("; "));
    if !term.interactive() {
        return Err(usage(format!(
            "{what}. A backup cannot be put back afterwards; if that is meant, say so with --yes"
        )));
    }
    let question = format!("{what}. A backup cannot be put back afterwards. Type yes: ");
    if says_yes(&question)? { Ok(()) } else { Err(failed("nothing was given up")) }
}

async fn give_up(world: &World, term: &Term) -> anyhow::Result<ExitKind> {
    let operator = world.operator(person::login(), "portcullis audit");
    let appending = async |session| world.appending(session, ProcessRole::standing("portcullis audit")).await;
    let accepted = accept_loss(&operator, world.loss_book(), appending).await?;
    if term.json {
        term.document(&json!({"logs": accepted.logs, "calls_unknown": accepted.calls_unknown}))?;
    } else {
        let calls = render::count(accepted.calls_unknown as u64, "call");
        let logs = render::count(accepted.logs.len() as u64, "log");
        term.print(&format!(
            "{logs} go on without what was lost; the outcome of {calls} is unknown, and none is run again"
        ))?;
    }
    Ok(ExitKind::Done)
}
