//! What could be freed: files that no row and no event names and nobody touched for a day. What an event names stays.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{Digest, TenantId, Timestamp};

use crate::sweep::Leftover;
use crate::{SessionKey, Store, StoreError, SweepArtifacts, contents_named};

/// Between `put` and the append that names it; a crash in between is long over after this.
pub const ORPHAN_GRACE: Duration = Duration::from_secs(24 * 3_600);

/// Rows and events read at once.
const PAGE: usize = 500;

/// Files that can go, largest first. `now` is the host's time, as the files' is.
///
/// # Errors
/// If the store or the folder cannot be read.
pub async fn unreferenced(
    store: &dyn Store,
    artifacts: Arc<dyn SweepArtifacts>,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Vec<Leftover>, StoreError> {
    let before = grace(now);
    let listed = tokio::task::spawn_blocking(move || artifacts.older_than(tenant, before)).await;
    let failed =
        |error: &dyn std::fmt::Display| StoreError::Unavailable(format!("artifacts cannot be listed: {error}"));
    let mut found = listed.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    let mut free: HashSet<Digest> = found.iter().filter_map(|leftover| leftover.sha256).collect();
    if !free.is_empty() {
        keep_named(store, tenant, &mut free).await?;
    }
    found.retain(|leftover| leftover.sha256.is_none_or(|sha256| free.contains(&sha256)));
    found.sort_by(|a, b| (b.bytes, a.modified).cmp(&(a.bytes, b.modified)));
    Ok(found)
}

/// The time before which a leftover must be, to go.
#[must_use]
pub fn grace(now: Timestamp) -> Timestamp {
    let grace = i64::try_from(ORPHAN_GRACE.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(grace))
}

/// Takes out of `free` whatever a row or an event names.
async fn keep_named(store: &dyn Store, tenant: TenantId, free: &mut HashSet<Digest>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = store.artifacts(tenant, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.artifact.id);
        for row in &page {
            free.remove(&row.artifact.sha256);
        }
    }
    for session in store.logs(tenant).await? {
        let key = SessionKey { tenant, session };
        let mut seq = 0;
        while !free.is_empty() {
            let page = store.read(key, seq, PAGE).await?;
            let Some(last) = page.last() else { break };
            seq = last.seq;
            for sha256 in page.iter().flat_map(contents_named) {
                free.remove(&sha256);
            }
        }
    }
    Ok(())
}
