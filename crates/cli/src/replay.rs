//! `replay`: a recorded session again. Nothing is executed: a fold is all there is.

use std::fmt::Write as _;

use portcullis_agent::trace::IntentsOf;
use portcullis_event::Event;
use portcullis_terminal::render::{BOLD, DIM, Term, safe_line, styled};
use serde_json::json;

use crate::args::{Globals, ReplayArgs, ReplayMode};
use crate::exit::ExitKind;
use crate::hints;
use crate::world::World;
use crate::{rebuild, redrive};

/// Characters of an event in words. An event says at most a few hundred of its own.
pub const WORDS_MAX: usize = 1_000;

pub async fn run(args: &ReplayArgs, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let world = World::existing(globals)?;
    world.archive.created(args.session).await?;
    match args.mode {
        ReplayMode::Inspect => inspect(&world, args, term).await,
        ReplayMode::Rebuild => rebuild::run(&world, args, term).await,
        ReplayMode::Redrive => redrive::run(&world, args, term).await,
    }
}

async fn inspect(world: &World, args: &ReplayArgs, term: &Term) -> anyhow::Result<ExitKind> {
    let mut inspecting = None;
    let mut intents = IntentsOf::default();
    let last = args.until.unwrap_or(u64::MAX);
    let show = |page: &[Event]| -> anyhow::Result<()> {
        let mut text = String::new();
        for event in page.iter().take_while(|event| event.seq <= last) {
            let body = event.body();
            let intent = intents.of(&body);
            let words = safe_line(&hints::followed(body.in_words(), hints::of_event(&body)), WORDS_MAX);
            if term.json {
                let line =
                    json!({"seq": event.seq, "at": event.at, "type": event.kind, "intent_id": intent, "words": words});
                let _ = writeln!(text, "{line}");
                continue;
            }
            if intent.is_some() && intent != inspecting {
                let name = intent.map(|id| id.to_string()).unwrap_or_default();
                let _ = writeln!(text, "{}", styled(BOLD, &name));
                inspecting = intent;
            }
            let indent = if intent.is_some() { "  " } else { "" };
            let _ = writeln!(text, "{indent}{} {words}", styled(DIM, &format!("{:>5}", event.seq)));
        }
        match text.is_empty() {
            true => Ok(()),
            false if term.json => Ok(term.bytes(text.as_bytes())?),
            false => Ok(term.stream(&text)?),
        }
    };
    world.archive.try_each_page(args.session, 0, show).await?;
    Ok(ExitKind::Done)
}
