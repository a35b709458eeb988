//! Warnings that a person was told already. A project with a `.env` would print the same three rows below each call.

use portcullis_base::SessionId;
use portcullis_event::{Body, Observed};

use crate::world::World;

/// What a warning says that is about the workspace and not about what its command did, so that it need not be said again.
const OF_THE_WORKSPACE: &str = "that may hold secrets ";

/// What the call before this one warned of that is still so.
pub async fn before(world: &World, session: SessionId, observed: &Observed) -> Vec<String> {
    // A log that cannot be read is told by whoever needs it.
    let newest = world.archive.newest_events(session).await.unwrap_or_default();
    let before = newest.iter().rev().find_map(|event| match event.body() {
        Body::Observed(before) if before.intent_id != observed.intent_id => Some(before.warnings),
        _ => None,
    });
    before.into_iter().flatten().filter(|text| text.contains(OF_THE_WORKSPACE)).collect()
}
