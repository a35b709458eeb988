//! `replay`: a recorded session again. Nothing is executed: a fold is all there is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portcullis_base::{AskId, IntentId, InvocationId, SessionId};
use portcullis_event::{Body, Event};
use serde_json::json;

use crate::args::{Globals, ReplayArgs, ReplayMode};
use crate::exit::Ended;
use crate::render::{BOLD, DIM, Term, styled};
use crate::world::World;
use crate::{event_words, rebuild, redrive};

pub async fn run(args: &ReplayArgs, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
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

async fn inspect(world: &World, args: &ReplayArgs, term: &Term) -> anyhow::Result<Ended> {
    let mut inspecting = None;
    let mut known = Known::default();
    each(world, args.session, args.until, |page| {
        let mut text = String::new();
        for event in page {
            let body = event.body();
            known.learn(&body);
            let intent = intent_of(&body, &known);
            let words = event_words::of(&body).unwrap_or_else(|| event.kind.to_string());
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
    Ok(Ended::Done)
}

/// Whose asks and invocations there were: some events name only those.
#[derive(Default)]
struct Known {
    asks: BTreeMap<AskId, IntentId>,
    invocations: BTreeMap<InvocationId, IntentId>,
}

impl Known {
    fn learn(&mut self, body: &Body) {
        match body {
            Body::Asked(fact) => drop(self.asks.insert(fact.ask_id, fact.intent_id)),
            Body::Started(fact) => drop(self.invocations.insert(fact.invocation_id, fact.intent_id)),
            _ => {}
        }
    }
}

fn intent_of(body: &Body, known: &Known) -> Option<IntentId> {
    Some(match body {
        Body::ToolUse(fact) => fact.intent_id,
        Body::ToolResult(fact) => fact.intent_id,
        Body::IntentProposed(fact) => fact.intent_id,
        Body::LookedUp(fact) => fact.intent_id,
        Body::Checked(fact) => fact.intent_id,
        Body::Decided(fact) => fact.intent_id,
        Body::Asked(fact) => fact.intent_id,
        Body::Scheduled(fact) => fact.intent_id,
        Body::Started(fact) => fact.intent_id,
        Body::Completed(fact) => fact.intent_id,
        Body::Observed(fact) => fact.intent_id,
        Body::Recovered(fact) => fact.intent_id,
        Body::TaskCompleted(fact) => fact.intent_id,
        Body::ArtifactStored(fact) => return fact.intent_id,
        Body::Replied(fact) => return known.asks.get(&fact.ask_id).copied(),
        Body::AskClosed(fact) => return known.asks.get(&fact.ask_id).copied(),
        Body::Progressed(fact) => return known.invocations.get(&fact.invocation_id).copied(),
        Body::Backgrounded(fact) => return known.invocations.get(&fact.invocation_id).copied(),
        _ => return None,
    })
}
