//! `sessions fork`: a new session that goes on alone from a place in another.

use portcullis::{SessionId, SystemClock};
use portcullis_base::Clock as _;
use portcullis_event::Event;
use portcullis_store::{Fork, Log as _, deliver_outbox, fork};
use serde_json::json;

use crate::exit::failed;
use crate::render::{self, Term};
use crate::world::{World, key};

pub async fn run(world: &World, session: SessionId, at: u64, name: Option<String>, term: &Term) -> anyhow::Result<()> {
    world.created(session).await?;
    let mut events: Vec<Event> = Vec::new();
    world
        .each_page(session, 0, |page| {
            events.extend_from_slice(page);
            Ok(())
        })
        .await?;
    let clock = SystemClock::new();
    let to = SessionId::make(world.ids(), clock.now());
    let wanted = Fork { from: session, to: key(to), at, name, ids: world.ids(), clock: &clock };
    let forked = fork(&events, &wanted).map_err(|refused| failed(refused.to_string()))?;
    let imported = world.store.import(forked.import).await?;
    deliver_outbox(&*world.store).await?;
    let next = world.command(&format!("sessions send {to} 'MESSAGE'"));
    if term.json {
        return term.document(&json!({
            "session_id": to,
            "from_session_id": session,
            "at_seq": forked.at,
            "asked_at": at,
            "left_out": forked.open,
            "events": imported.last_seq,
            "commands": [next],
        }));
    }
    term.print(&to.to_string())?;
    if let Some(open) = &forked.open {
        term.note(&format!("it begins after event {}: at event {at} {open}", forked.at));
    }
    term.note(&format!("{} shared with {session}; go on with: {next}", render::count(forked.at, "event")));
    Ok(())
}
