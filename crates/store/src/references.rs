//! What events refer to outside the log: artifacts, and contents by hash.

use portcullis_base::{ArtifactRef, Digest};
use portcullis_event::facts::{MenuFrozen, SessionCreated, SessionUpdated};
use portcullis_event::{Event, EventBody as _, EventType};

/// Types whose events name contents that are no artifacts: menus and setups.
pub const CONTENT_KINDS: [EventType; 3] = [MenuFrozen::KIND, SessionCreated::KIND, SessionUpdated::KIND];

/// Artifacts that an event names, each with its facts.
#[must_use]
pub fn artifacts_named(event: &Event) -> Vec<ArtifactRef> {
    event.body_ref().names().artifacts
}

/// Hashes of contents that an event needs: those of its artifacts, and the body of a menu or a setup.
#[must_use]
pub fn contents_named(event: &Event) -> Vec<Digest> {
    let names = event.body_ref().names();
    names.artifacts.into_iter().map(|artifact| artifact.sha256).chain(names.contents).collect()
}
