//! `replay`: a recorded session again. Nothing is executed: a fold is all there is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portcullis_base::{AskId, IntentId, InvocationId, SessionId};
use portcullis_event::{AskState, Body, Event, FOLD_VERSION, IntentState, LOCAL_TENANT, RowChange, State, rows};
use portcullis_store::{AskFilter, Log as _};
use serde_json::json;

use crate::args::{Globals, ReplayArgs, ReplayMode};
use crate::exit::Ended;
use crate::render::{self, BOLD, DIM, Term, safe, safe_line, styled};
use crate::world::{World, key};

pub async fn run(args: &ReplayArgs, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    let world = World::existing(globals)?;
    world.created(args.session).await?;
    match args.mode {
        ReplayMode::Inspect => inspect(&world, args, term).await,
        ReplayMode::Rebuild => rebuild(&world, args, term).await,
    }
}

/// The events up to `until`, page by page.
async fn each(
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
    let mut asks = BTreeMap::new();
    each(world, args.session, args.until, |page| {
        let mut text = String::new();
        for event in page {
            let body = event.body();
            if let Body::Asked(asked) = &body {
                asks.insert(asked.ask_id, asked.intent_id);
            }
            let intent = intent_of(&body, &asks);
            let words = in_words(event, &body);
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

fn intent_of(body: &Body, asks: &BTreeMap<AskId, IntentId>) -> Option<IntentId> {
    Some(match body {
        Body::ToolUse(fact) => fact.intent_id,
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
        Body::ArtifactStored(fact) => return fact.intent_id,
        Body::Replied(fact) => return asks.get(&fact.ask_id).copied(),
        Body::AskClosed(fact) => return asks.get(&fact.ask_id).copied(),
        _ => return None,
    })
}

/// What happened, in one line.
fn in_words(event: &Event, body: &Body) -> String {
    match body {
        Body::SessionCreated(fact) => {
            let place = fact.workspace.as_deref().unwrap_or("no workspace");
            format!("session made in {}", render::exact(place, 200))
        }
        Body::MenuFrozen(fact) => {
            format!("{} offered, {} hidden", render::count(fact.count.into(), "tool"), fact.hidden.len())
        }
        Body::IntentProposed(fact) => {
            format!("proposed: {} {}", safe_line(&fact.tool, 80), safe_line(&fact.raw_input.to_string(), 200))
        }
        Body::LookedUp(fact) => match &fact.code {
            None => "found".to_owned(),
            Some(code) => format!("not found: {code}"),
        },
        Body::Checked(fact) => {
            let stage = render::word(&fact.stage);
            let verdict = if fact.ok { "holds" } else { "does not hold" };
            let named = fact.resolved.join(", ");
            format!("checked ({stage}): {verdict} {}", safe_line(&named, 200)).trim_end().to_owned()
        }
        Body::Decided(fact) => format!("decided: {}: {}", render::word(&fact.decision), safe_line(&fact.reason, 200)),
        Body::ToolUse(_) => "shown to clients".to_owned(),
        Body::Asked(fact) => format!("asked: {}, until {}", fact.ask_id, fact.expires_at),
        Body::Replied(fact) => format!(
            "answered: {} by {} through {}",
            render::word(&fact.reply),
            safe_line(&fact.approver, 80),
            safe_line(&fact.channel, 40)
        ),
        Body::AskClosed(fact) => format!("ask closed: {}", render::word(&fact.state)),
        Body::Scheduled(fact) => format!("queued as {}", fact.plan.invocation_id),
        Body::Started(fact) => format!("started {} (attempt {})", fact.invocation_id, fact.attempt),
        Body::Completed(fact) => {
            format!("ended: {} after {}", render::word(&fact.exit), render::span(fact.duration_us))
        }
        Body::ArtifactStored(fact) => format!("kept {} bytes as {}", fact.artifact.bytes, fact.artifact.id),
        Body::Observed(fact) => format!("observed: {}: {}", fact.code, safe_line(&fact.summary, 200)),
        Body::Recovered(fact) => format!("recovered: {}", safe_line(&fact.decision, 80)),
        Body::Unknown { kind, .. } => format!("{} (not known to this program)", safe(kind.as_str())),
        _ => event.kind.to_string(),
    }
}

type IntentFact = (String, IntentState, Option<InvocationId>, u64);
type AskFact = (IntentId, AskState, Option<String>);

/// The rows as the log alone gives them (S15).
#[derive(Default)]
struct Rows {
    intents: BTreeMap<IntentId, IntentFact>,
    asks: BTreeMap<AskId, AskFact>,
}

impl Rows {
    fn apply(&mut self, change: RowChange) {
        match change {
            RowChange::Session(_) => {}
            RowChange::IntentAdmitted { intent_id, tool, seq, .. } => {
                self.intents.insert(intent_id, (tool, IntentState::Admitted, None, seq));
            }
            RowChange::IntentMoved { intent_id, state, invocation_id, seq } => {
                if let Some(row) = self.intents.get_mut(&intent_id) {
                    row.1 = state;
                    row.2 = invocation_id.or(row.2);
                    row.3 = seq;
                }
            }
            RowChange::AskOpened { ask_id, intent_id, .. } => {
                self.asks.insert(ask_id, (intent_id, AskState::Pending, None));
            }
            RowChange::AskAnswered { ask_id, approver, .. } => {
                if let Some(row) = self.asks.get_mut(&ask_id) {
                    row.1 = AskState::Answered;
                    row.2 = Some(approver);
                }
            }
            RowChange::AskClosed { ask_id, state, .. } => {
                if let Some(row) = self.asks.get_mut(&ask_id) {
                    row.1 = state;
                }
            }
        }
    }

    async fn stored(world: &World, session: SessionId) -> anyhow::Result<Self> {
        let intents = world.store.intents(key(session), false).await?.into_iter();
        let asks = world.store.asks(LOCAL_TENANT, AskFilter { session: Some(session), pending: false }).await?;
        Ok(Self {
            intents: intents
                .map(|row| (row.intent_id, (row.tool, row.state, row.invocation_id, row.updated_seq)))
                .collect(),
            asks: asks.into_iter().map(|row| (row.ask_id, (row.intent_id, row.state, row.approver))).collect(),
        })
    }
}

fn differences<K: Ord + std::fmt::Display, V: PartialEq + std::fmt::Debug>(
    what: &str,
    folded: &BTreeMap<K, V>,
    stored: &BTreeMap<K, V>,
    found: &mut Vec<String>,
) {
    for (id, row) in folded {
        match stored.get(id) {
            Some(kept) if kept == row => {}
            Some(kept) => found.push(format!("{what} {id}: the log says {row:?}, the table {kept:?}")),
            None => found.push(format!("{what} {id} is in the log and not in the table")),
        }
    }
    for id in stored.keys().filter(|id| !folded.contains_key(id)) {
        found.push(format!("{what} {id} is in the table and not in the log"));
    }
}

async fn rebuild(world: &World, args: &ReplayArgs, term: &Term) -> anyhow::Result<Ended> {
    let session = args.session;
    let snapshot = world.store.snapshot(key(session), FOLD_VERSION).await?;
    let mut state = State::default();
    let mut at_snapshot = None;
    let mut folded = Rows::default();
    each(world, session, args.until, |page| {
        for event in page {
            state.apply(event);
            if snapshot.as_ref().is_some_and(|kept| kept.seq == event.seq) {
                at_snapshot = Some(state.clone());
            }
        }
        rows(page).into_iter().for_each(|change| folded.apply(change));
        Ok(())
    })
    .await?;
    let mut found = Vec::new();
    if args.until.is_none() {
        // Rows first, then whether the log grew meanwhile: then the comparison would be of two moments.
        let stored = Rows::stored(world, session).await?;
        let head = world.store.head(key(session)).await?;
        if head.is_some_and(|head| head.last_seq == state.seq) {
            differences("intent", &folded.intents, &stored.intents, &mut found);
            differences("ask", &folded.asks, &stored.asks, &mut found);
        } else {
            term.note("the session grew meanwhile: rows are not compared");
        }
    }
    if let (Some(kept), Some(then)) = (&snapshot, &at_snapshot)
        && serde_json::from_str::<State>(&kept.state).ok().as_ref() != Some(then)
    {
        found.push(format!("the snapshot at event {} is not the fold of the log", kept.seq));
    }
    let digest = state.digest();
    let (open, pending) = (state.intents.open().count() as u64, state.asks.pending().count() as u64);
    if term.json {
        term.document(&json!({
            "session_id": session, "seq": state.seq, "digest": digest, "open_intents": open, "pending_asks": pending,
            "settled": state.intents.settled(), "diverges": found,
        }))?;
    } else {
        let mut text = format!("state after event {}: {digest}\n", state.seq);
        let (settled, open) =
            (render::count(state.intents.settled(), "settled call"), render::count(open, "open call"));
        let _ = writeln!(text, "{settled}, {open}, {}", render::count(pending, "pending ask"));
        let equal = if args.until.is_some() {
            "a prefix: rows are not compared"
        } else {
            "the stored rows are equal to the fold"
        };
        let _ = writeln!(text, "{}", if found.is_empty() { equal } else { "the stored rows differ from the fold:" });
        for line in &found {
            let _ = writeln!(text, "  {}", safe(line));
        }
        term.print(&text)?;
    }
    Ok(if found.is_empty() { Ended::Done } else { Ended::Failed })
}
