//! `replay`: a recorded session again. Nothing is executed: a fold is all there is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portcullis_base::{AskId, IntentId, InvocationId, SessionId};
use portcullis_event::{Body, Event, EventRefs};
use serde_json::json;

use crate::args::{Globals, ReplayArgs, ReplayMode};
use crate::exit::ExitKind;
use crate::hints;
use crate::render::{BOLD, DIM, Term, safe_line, styled};
use crate::world::World;
use crate::{rebuild, redrive};

/// Characters of an event in words. An event says at most a few hundred of its own.
pub const WORDS_MAX: usize = 1_000;

pub async fn run(args: &ReplayArgs, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let world = World::existing(globals)?;
    world.created(args.session).await?;
    match args.mode {
        ReplayMode::Inspect => inspect(&world, args, term).await,
        ReplayMode::Rebuild => rebuild::run(&world, args, term).await,
        ReplayMode::Redrive => redrive::run(&world, args, term).await,
    }
}

/// The events up to `until`, page by page.
pub async fn each(
    world: &World,
    session: SessionId,
    until: Option<u64>,
    mut visit: impl FnMut(&[Event]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let last = until.unwrap_or(u64::MAX);
    world
        .each_page(session, 0, |page| {
            let wanted = page.partition_point(|event| event.seq <= last);
            if wanted == 0 { Ok(()) } else { visit(&page[..wanted]) }
        })
        .await
}

async fn inspect(world: &World, args: &ReplayArgs, term: &Term) -> anyhow::Result<ExitKind> {
    let mut inspecting = None;
    let mut intents = IntentsOf::default();
    each(world, args.session, args.until, |page| {
        let mut text = String::new();
        for event in page {
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
        if term.json { term.bytes(text.as_bytes()) } else { term.stream(&text) }
    })
    .await?;
    Ok(ExitKind::Done)
}

/// Whose asks and invocations there were: some events name only those.
#[derive(Default)]
pub struct IntentsOf {
    asks: BTreeMap<AskId, IntentId>,
    invocations: BTreeMap<InvocationId, IntentId>,
}

impl IntentsOf {
    /// The intent that an event belongs to. Events come in the order of their log.
    pub fn of(&mut self, body: &Body) -> Option<IntentId> {
        let EventRefs { intent, ask, invocation, .. } = body.names();
        let of_ask = ask.and_then(|ask| self.asks.get(&ask).copied());
        let of_invocation = invocation.and_then(|invocation| self.invocations.get(&invocation).copied());
        let intent = intent.or(of_ask).or(of_invocation)?;
        self.asks.extend(ask.map(|ask| (ask, intent)));
        self.invocations.extend(invocation.map(|invocation| (invocation, intent)));
        Some(intent)
    }
}
