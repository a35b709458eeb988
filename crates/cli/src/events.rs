//! `sessions events`: a log as columns for a person, cut to the width of their terminal, or whole for a program.

use std::fmt::Write as _;

use portcullis::operations::EVENTS_AT_ONCE;
use portcullis_base::SessionId;
use portcullis_event::Event;
use portcullis_terminal::render::{DIM, Term, safe, safe_line, styled};
use portcullis_terminal::signals::interrupts;

use crate::hints;
use crate::world::{LOOK_AGAIN, World};

/// Characters of a summary where there is no terminal whose width would tell.
const SHORT: usize = 100;

/// A summary shorter than this says nothing: a terminal that is narrower wraps.
const LEAST: usize = 16;

/// A terminal of this width has room for the day beside the time of it.
const WIDE: usize = 120;

/// How far a reader is.
pub struct Cursor {
    session: SessionId,
    after: u64,
    left: u64,
    /// The longest type so far: columns never jump back.
    widest: usize,
}

impl Cursor {
    pub fn new(session: SessionId, after: u64, limit: Option<u64>) -> Self {
        Self { session, after, left: limit.unwrap_or(u64::MAX), widest: 0 }
    }
}

/// Prints the log from there on; with `follow` until Ctrl-C.
pub async fn run(world: &World, mut cursor: Cursor, follow: bool, term: &Term) -> anyhow::Result<()> {
    if !follow {
        return catch_up(world, &mut cursor, term).await;
    }
    let mut changes = world.archive.changes_in(cursor.session);
    let mut interrupts = interrupts()?;
    while cursor.left > 0 {
        changes.mark_unchanged();
        tokio::select! {
            printed = catch_up(world, &mut cursor, term) => printed?,
            _ = interrupts.recv() => return Ok(()),
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return Ok(()) },
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            _ = interrupts.recv() => return Ok(()),
        }
    }
    Ok(())
}

/// Prints what is there now.
async fn catch_up(world: &World, cursor: &mut Cursor, term: &Term) -> anyhow::Result<()> {
    while cursor.left > 0 {
        let want = usize::try_from(cursor.left).unwrap_or(usize::MAX).min(EVENTS_AT_ONCE);
        let page = world.archive.events(cursor.session, cursor.after, want).await?;
        let Some(last) = page.last() else { return Ok(()) };
        cursor.after = last.seq;
        cursor.left -= page.len() as u64;
        print(&page, cursor, term)?;
    }
    Ok(())
}

fn print(page: &[Event], cursor: &mut Cursor, term: &Term) -> anyhow::Result<()> {
    let mut text = String::new();
    if term.json {
        for event in page {
            text.push_str(&serde_json::to_string(event)?);
            text.push('\n');
        }
        return Ok(term.bytes(text.as_bytes())?);
    }
    let columns = term.columns();
    for event in page {
        cursor.widest = cursor.widest.max(event.kind.as_str().chars().count());
    }
    for event in page {
        let (seq, at, kind) = (event.seq, event.at.to_millis_text(), safe(event.kind.as_str()));
        let at = if columns.is_some_and(|columns| columns < WIDE) { time_of_day(&at) } else { &at };
        let start = format!("{seq:>6}  {at}  {kind:<width$}  ", width = cursor.widest);
        let room = columns.map_or(SHORT, |columns| columns.saturating_sub(start.chars().count() + 1).max(LEAST));
        let _ = writeln!(text, "{start}{}", styled(DIM, &safe_line(&summary(event), room)));
    }
    Ok(term.stream(&text)?)
}

/// `13:48:29.155` of `2026-11-16T13:48:29.155Z`.
fn time_of_day(at: &str) -> &str {
    at.split_once('T').map_or(at, |(_, time)| time.trim_end_matches('Z'))
}

fn summary(event: &Event) -> String {
    match &event.payload {
        None => "(erased)".to_owned(),
        Some(_) => {
            let body = event.body();
            hints::followed(body.in_words(), hints::of_event(&body))
        }
    }
}
