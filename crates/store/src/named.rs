//! What events refer to outside the log: artifacts, and contents by hash.

use portcullis_base::{ArtifactRef, Digest};
use portcullis_event::{Body, Event};

/// Artifacts that an event names, each with its facts.
#[must_use]
pub fn artifacts_named(event: &Event) -> Vec<ArtifactRef> {
    match event.body() {
        Body::ArtifactStored(stored) => vec![stored.artifact],
        Body::Asked(asked) => {
            // The diff, and the facts themselves where they are too long for the event.
            let named = ["diff", "whole"].into_iter().filter_map(|name| asked.facts.get(name).cloned());
            named.filter_map(|value| serde_json::from_value(value).ok()).collect()
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
