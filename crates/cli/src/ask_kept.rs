//! What an ask keeps beside its event: the diff, and its facts where they are too long for an event.

use portcullis_base::{ArtifactRef, Digest};
use portcullis_event::LOCAL_TENANT;
use portcullis_pipeline::ArtifactShelf;
use portcullis_store::AskRow;
use serde_json::Value;

use crate::exit::{ExitKind, fault};
use crate::hints;
use crate::world::World;

/// The fact that names the artifact with all facts.
const WHOLE: &str = "whole";

/// All facts of an ask. If they cannot be opened, those that the event holds; [`diff`] then says why nobody can allow it.
pub async fn facts(world: &World, row: &AskRow, told: Value) -> Value {
    match kept(world, row, &told, WHOLE).await {
        Ok(Some(bytes)) => serde_json::from_slice(&bytes).unwrap_or(told),
        Ok(None) | Err(_) => told,
    }
}

/// The diff that an ask names, if it names one. Whoever cannot be shown it, or the facts, must not allow it.
pub async fn diff(world: &World, row: &AskRow) -> anyhow::Result<Option<String>> {
    if row.facts.get(WHOLE).is_some() {
        kept(world, row, &row.facts, WHOLE).await?;
        return Err(cannot(row, WHOLE, &"they are no document"));
    }
    let diff = kept(world, row, &row.facts, "diff").await?;
    Ok(diff.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

async fn kept(world: &World, row: &AskRow, facts: &Value, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let Some(named) = facts.get(name).filter(|named| !named.is_null()) else { return Ok(None) };
    let cannot = |why: &dyn std::fmt::Display| cannot(row, name, why);
    let named = serde_json::from_value::<ArtifactRef>(named.clone()).map_err(|e| cannot(&e))?;
    let shelf = ArtifactShelf::new(world.store.clone(), world.artifacts().map_err(|e| cannot(&e))?, LOCAL_TENANT);
    let (kept, window) = shelf.open(named.id, Some(row.session_id)).await.map_err(|e| cannot(&hints::explained(&e)))?;
    let bytes = window.slice(0, window.len()).map_err(|e| cannot(&e))?;
    if Digest::of(&bytes) != named.sha256 {
        return Err(cannot(&"what is kept is not what was asked"));
    }
    if !(named.complete && kept.complete) {
        return Err(cannot(&"an older version kept only a part of it; deny it and make the call again"));
    }
    Ok(Some(bytes))
}

fn cannot(row: &AskRow, name: &str, why: &dyn std::fmt::Display) -> anyhow::Error {
    let (what, ask) = (if name == WHOLE { "facts" } else { name }, row.ask_id);
    fault(ExitKind::Broken, format!("the {what} of ask {ask} cannot be opened, so nobody can allow it: {why}"))
}
