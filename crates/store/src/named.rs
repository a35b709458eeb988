//! What events refer to outside the log: artifacts, and contents by hash.

use portcullis_base::{ArtifactRef, Digest};
use portcullis_event::{Body, Event};

/// Artifacts that an event names, each with its facts.
#[must_use]
pub fn artifacts_named(event: &Event) -> Vec<ArtifactRef> {
    match event.body() {
        Body::ArtifactStored(stored) => vec![stored.artifact],
        Body::Asked(asked) => {
            let diff = asked.facts.get("diff").cloned();
            diff.and_then(|value| serde_json::from_value(value).ok()).into_iter().collect()
        }
        Body::Observed(observed) => observed.artifacts,
        Body::TaskCompleted(ended) => ended.artifacts,
        _ => Vec::new(),
    }
}

/// Hashes of contents that an event needs: those of its artifacts, and the body of a menu.
#[must_use]
pub fn contents_named(event: &Event) -> Vec<Digest> {
    match event.body() {
        Body::MenuFrozen(menu) => vec![menu.hash],
        _ => artifacts_named(event).into_iter().map(|artifact| artifact.sha256).collect(),
    }
}
