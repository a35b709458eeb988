//! Evidence a tool handed over: kept, or named nowhere. An event never refers to an artifact that is not
//! there (S13), so an id whose bytes could not be kept is taken out of everything the call said.

use portcullis_base::{ArtifactKind, SideEffect};
use portcullis_contract::Content;
use portcullis_contract::seam::KeptEvidence;
use portcullis_event::Observed;
use serde_json::Value;

use crate::output::evidence::{Evidence, Label};
use crate::phases::bound::retention_failed;
use crate::phases::normalize::amend_completed;
use crate::sessions::append::Append;

/// Bytes of a type such as `text/plain`.
const MIME_MAX: usize = 128;
/// What stands where the id of a lost artifact stood.
const NOT_KEPT: &str = "(not kept)";

pub(crate) async fn keep_handed_over(
    evidence: &Evidence<'_>,
    kept: Vec<KeptEvidence>,
    observed: &mut Observed,
    content: &mut Option<Vec<Content>>,
    facts: &mut Append,
) {
    let session = evidence.session;
    let mut lost = Vec::new();
    for item in kept {
        let mime = session.tidy(&item.mime, MIME_MAX);
        let label = Label { id: item.id, kind: item.kind, mime: &mime, lines: None, complete: true };
        let redactor = match item.kind {
            // A change is taken back with these bytes: a marker in them would end up in the file.
            ArtifactKind::File => &session.scope.redactor,
            _ => &session.scope.output_redactor,
        };
        let bytes = redactor.redact_bytes(&item.bytes).into_owned();
        match evidence.keep(label, bytes, facts).await {
            Ok(artifact) => observed.artifacts.push(artifact),
            Err(error) => {
                lost.push(item.id.to_string());
                retention_failed(observed, &error);
            }
        }
    }
    if lost.is_empty() {
        return;
    }
    observed.side_effects.items.iter_mut().for_each(|effect| unname(effect, &lost));
    let side_effects = observed.side_effects.clone();
    amend_completed(session, facts, |completed| completed.side_effects = side_effects);
    if let Some(structured) = &mut observed.structured {
        unname_in(structured, &lost);
    }
    for part in content.iter_mut().flatten() {
        if let Content::Text { text } = part {
            *text = without(text, &lost);
        }
    }
}

/// A change whose former state is not there cannot be taken back.
fn unname(effect: &mut SideEffect, lost: &[String]) {
    let is_lost = |id: &Option<String>| id.as_ref().is_some_and(|id| lost.contains(id));
    if is_lost(&effect.before) {
        effect.before = None;
        effect.reversible = false;
    }
    if is_lost(&effect.after) {
        effect.after = None;
    }
}

fn unname_in(value: &mut Value, lost: &[String]) {
    match value {
        Value::String(text) => *text = without(text, lost),
        Value::Array(items) => items.iter_mut().for_each(|item| unname_in(item, lost)),
        Value::Object(fields) => fields.values_mut().for_each(|field| unname_in(field, lost)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn without(text: &str, lost: &[String]) -> String {
    lost.iter().fold(text.to_owned(), |text, id| text.replace(id.as_str(), NOT_KEPT))
}
