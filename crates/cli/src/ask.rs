//! Asks of an open store.

use portcullis::operations::{AskView, AskViewError};
use portcullis_base::{AskId, Clock as _, SystemClock};

use crate::exit::{ExitKind, fault};
use crate::world::World;

/// One ask, as the log asked it.
pub async fn load(world: &World, ask: AskId) -> anyhow::Result<AskView> {
    world.archive.ask(ask, SystemClock::new().now()).await.map_err(|error| unseen(world, error))
}

/// Those that wait for an answer that would still count.
pub async fn pending(world: &World) -> anyhow::Result<Vec<AskView>> {
    world.archive.pending_asks(SystemClock::new().now()).await.map_err(|error| unseen(world, error))
}

/// An ask that nobody can be shown, with the command that looks into it.
pub fn unseen(world: &World, error: AskViewError) -> anyhow::Error {
    match &error {
        AskViewError::NotItsEvent(row) => {
            let check = world.command(&format!("audit verify {}", row.session_id));
            fault(ExitKind::Broken, format!("{error}: {check}"))
        }
        AskViewError::Store(_) => error.into(),
    }
}
