//! Images and documents that a tool handed over, as the bytes a model can look at.

use std::sync::Arc;

use portcullis_base::SessionId;
use portcullis_event::{ContentFormat, ContentPart, Observed};
use portcullis_model::{Media, MediaKind, ResultPart};
use portcullis_pipeline::ArtifactShelf;

/// Whether an observation holds any.
pub(crate) fn has_media(observed: &Observed) -> bool {
    observed.content.iter().any(|part| kind_of(part).is_some())
}

fn kind_of(part: &ContentPart) -> Option<MediaKind> {
    match (part.format, part.artifact.as_ref()?.mime.as_str()) {
        (ContentFormat::Image, _) => Some(MediaKind::Image),
        (ContentFormat::ArtifactRef, "application/pdf") => Some(MediaKind::Pdf),
        _ => None,
    }
}

/// The media of an observation, which is in the store. One whose bytes are gone is left out: its place in the text says what it was.
pub(crate) async fn media_of(shelf: &ArtifactShelf, session: SessionId, observed: &Observed) -> Vec<ResultPart> {
    let mut found = Vec::new();
    for part in &observed.content {
        let (Some(artifact), Some(kind)) = (&part.artifact, kind_of(part)) else { continue };
        let Ok((_, window)) = shelf.open(artifact.id, Some(session)).await else { continue };
        let Ok(bytes) = window.slice(0, window.len()) else { continue };
        found.push(ResultPart::Media(Media { kind, mime: artifact.mime.clone(), bytes: Arc::from(bytes) }));
    }
    found
}
