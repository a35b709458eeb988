//! Images and documents that a tool handed over, as the bytes a model can look at.

use std::sync::Arc;

use portcullis_base::SessionId;
use portcullis_event::{ContentFormat, Observed};
use portcullis_model::{Media, MediaKind, ResultPart};
use portcullis_pipeline::ArtifactShelf;

/// The media of an observation. One whose bytes are gone is left out: its place in the text says what it was.
pub(crate) async fn media_of(shelf: &ArtifactShelf, session: SessionId, observed: &Observed) -> Vec<ResultPart> {
    let mut found = Vec::new();
    for part in &observed.content {
        let Some(artifact) = &part.artifact else { continue };
        let kind = match (part.format, artifact.mime.as_str()) {
            (ContentFormat::Image, _) => MediaKind::Image,
            (ContentFormat::ArtifactRef, "application/pdf") => MediaKind::Pdf,
            _ => continue,
        };
        let Ok((_, window)) = shelf.open(artifact.id, Some(session)).await else { continue };
        let Ok(bytes) = window.slice(0, window.len()) else { continue };
        found.push(ResultPart::Media(Media { kind, mime: artifact.mime.clone(), bytes: Arc::from(bytes) }));
    }
    found
}
