//! What a subscriber is told of a call: ids, names, codes and counts. Never an input, an output, a path, or a word that a
//! model chose freely. With nobody listening nothing here is even formatted.
//!
//! The spans of phases stand in `gate::pass` beside the phases themselves, with their names.

use portcullis_base::{IntentId, TaskId};
use tracing::Span;
use tracing::field::{Empty, display};

use crate::gate::Disposition;
use crate::phases::intent::Intent;
use crate::phases::step::Halt;
use crate::sessions::session::SessionShared;

/// No provider's id of a call is longer; what is, is no id.
const CALL_ID_MAX: usize = 128;

/// The span of one call, from its door to its observation.
pub(crate) fn call(session: &SessionShared, intent: &Intent) -> Span {
    let span = tracing::info_span!(
        "call",
        session = %session.key.session,
        intent = %intent.id,
        call = Empty,
        tool = Empty,
        code = Empty,
    );
    if !span.is_disabled() {
        let proposal = &intent.proposal;
        // A model may write anything where a name is wanted: only names that mean a tool are told.
        if session.effective(&proposal.tool).is_some() {
            span.record("tool", proposal.tool.as_str());
        }
        if is_id(&proposal.call_id) {
            span.record("call", proposal.call_id.as_str());
        }
    }
    span
}

/// How a call ended: its code, or that it waits, or that nobody knows. Recorded on the span it is called in.
pub(crate) fn ended(ended: &Result<(crate::sessions::append::Append, Disposition), Halt>) {
    let span = Span::current();
    match ended {
        Ok((_, Disposition::Settled(observation))) => span.record("code", display(&observation.session_view().code)),
        Ok((_, Disposition::Parked(_) | Disposition::Elsewhere(_))) => span.record("code", "waits"),
        Err(_) => span.record("code", "halted"),
    };
}

/// The span of a call that goes on after its observation. It belongs to no wake: a parent would stay open as long.
pub(crate) fn task(session: &SessionShared, intent: IntentId, task: TaskId) -> Span {
    let span = tracing::info_span!(
        parent: None,
        "task",
        session = %session.key.session,
        intent = %intent,
        task = %task,
    );
    span.follows_from(Span::current());
    span
}

/// Whether a provider's id of a call looks like one.
fn is_id(text: &str) -> bool {
    let part_of_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    text.len() <= CALL_ID_MAX && !text.is_empty() && text.chars().all(part_of_id)
}

#[cfg(test)]
mod tests {
    use super::is_id;

    #[test]
    fn what_is_no_id_of_a_call_is_not_told() {
        for id in ["call_1", "toolu_01A09q90qw90lq917835lq9", "chatcmpl-tool-4f", "evt_018f.2:1"] {
            assert!(is_id(id), "{id}");
        }
        for words in ["", "the file says hello", "a/b", "ключ", "line\nline", &"x".repeat(129)] {
            assert!(!is_id(words), "{words}");
        }
    }
}
