//! `sessions search`: full text over every log. What was recorded since the last search is taken in first.

use std::fmt::Write as _;

use portcullis::operations::UnsearchedEvents;
use portcullis::{Hit, Query};
use portcullis_terminal::render::{self, BOLD, Term, safe, safe_line, styled};
use portcullis_terminal::waiting::Bar;
use serde_json::{Value, json};

use crate::exit::usage;
use crate::hints;
use crate::world::World;

/// Characters of the words around what was found.
const SHOWN: usize = 160;

pub async fn run(world: &World, words: &[String], limit: usize, term: &Term) -> anyhow::Result<()> {
    let query = Query::new(words).map_err(|error| usage(format!("{error}; name at least one word")))?;
    let behind = catch_up(world, term).await?;
    let hits = world.archive.search(&query, limit).await?;
    if term.json {
        let hits: Vec<Value> = hits.iter().map(document).collect();
        return Ok(term.document(&json!({"hits": hits, "unsearched": behind}))?);
    }
    let text: String = hits.iter().map(line).collect();
    term.print(&text)?;
    match hits.len() {
        0 => term.note("nothing was found; whole words are searched for, and all of them must occur in one event"),
        n if n == limit => term.note(&format!("only the newest {limit} are listed; --limit shows more")),
        _ => {}
    }
    Ok(())
}

/// Takes in what is new and says how many events could not be.
async fn catch_up(world: &World, term: &Term) -> anyhow::Result<u64> {
    let progress = Bar::new(term, world.archive.search_lag().await?, "taking in new events");
    let left = world.archive.take_in_for_search(&|taken| progress.add(taken)).await?;
    Ok(left.map_or(0, |UnsearchedEvents { events, error }| {
        let (left_out, why) = (render::count(events, "new event"), hints::explained(&error));
        term.note(&format!("warning: {left_out} not searched: {why}"));
        events
    }))
}

fn document(hit: &Hit) -> Value {
    let Hit { session_id, seq, at, kind, snippet } = hit;
    let text = format!("{}{}{}", snippet.before, snippet.found, snippet.after);
    json!({"session_id": session_id, "seq": seq, "at": at, "type": kind.as_str(), "found": snippet.found, "snippet": text})
}

fn line(hit: &Hit) -> String {
    let Hit { session_id, seq, at, kind, snippet } = hit;
    let around = |text: &str| {
        let gap = |c: Option<char>| if c.is_some_and(char::is_whitespace) { " " } else { "" };
        let (first, last) = (gap(text.chars().next()), gap(text.chars().next_back()));
        format!("{first}{}{last}", safe_line(text, SHOWN))
    };
    let found = styled(BOLD, &safe_line(&snippet.found, SHOWN));
    let words = format!("{}{found}{}", around(&snippet.before), around(&snippet.after));
    let mut text = String::new();
    let _ = writeln!(text, "{session_id}  {seq:>6}  {at}  {:<26}  {}", safe(kind.as_str()), words.trim());
    text
}
