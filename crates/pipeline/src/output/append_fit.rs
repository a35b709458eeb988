//! The last bound: whatever a tool reported, the end of its call fits into one append. An effect that
//! happened is recorded, and if not with every word of it, then with what was cut (L19, L23).

use portcullis_base::{SideEffect, SideEffects, limits};
use portcullis_event::{EventBody as _, Observed};

use crate::output::evidence::RetainError;
use crate::phases::bound::retention_failed;
use crate::phases::normalize::amend_completed;
use crate::phases::refuse::ERROR_MAX;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// Reports of each kind that stay when there are too many.
const LEFT: usize = 32;
/// An observation with at most this many reports is not weighed: each is a line or two.
const LIGHT: usize = 64;

pub(crate) fn fit(session: &SessionShared, observed: &mut Observed, facts: &mut Append) {
    if is_light(observed) && facts.bytes() <= limits::APPEND_BYTES {
        return;
    }
    if facts.bytes() + observed.to_payload().len() <= limits::APPEND_MOST {
        return;
    }
    cut_effects(session, &mut observed.side_effects);
    observed.files.clear();
    observed.warnings.truncate(LEFT);
    observed.capture.truncate(LEFT);
    let (side_effects, capture) = (observed.side_effects.clone(), observed.capture.clone());
    amend_completed(session, facts, |completed| {
        completed.side_effects = side_effects;
        completed.capture = capture;
    });
    retention_failed(observed, &RetainError::TooMuch);
}

fn is_light(observed: &Observed) -> bool {
    let effects = &observed.side_effects.items;
    let words: usize = effects.iter().map(|effect| effect.kind.len() + effect.target.len()).sum();
    let reports = effects.len() + observed.files.len() + observed.capture.len();
    reports <= LIGHT && words <= LIGHT * ERROR_MAX
}

fn cut_effects(session: &SessionShared, effects: &mut SideEffects) {
    let more = effects.items.len().saturating_sub(LEFT);
    effects.items.truncate(LEFT);
    for item in &mut effects.items {
        item.kind = session.tidy(&item.kind, ERROR_MAX);
        item.target = session.tidy(&item.target, ERROR_MAX);
        for word in [&mut item.before, &mut item.after].into_iter().flatten() {
            *word = session.tidy(word, ERROR_MAX);
        }
    }
    if more > 0 {
        let target = format!("{more} more effects of this call");
        effects.items.push(SideEffect {
            kind: "not_listed".to_owned(),
            target,
            before: None,
            after: None,
            reversible: false,
        });
    }
}
