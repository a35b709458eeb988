//! The loop guard (§14, L47): a model that makes the same call again and again and learns nothing from it
//! is told, and then stopped. Only where this runtime builds the model's context: whoever calls from
//! outside knows himself what he has seen.
//!
//! It lives as long as this process works on the session, also where each call waits for an answer and the session is given
//! back in between. A new process counts anew, which costs a few calls and no more.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::{Code, Digest, IntentId, SessionId, canonical_json, limits};
use portcullis_event::Observed;
use serde_json::{Value, json};

use crate::refuse::Refusal;

/// Sessions that are remembered: those that a process works on in turn. Of one that was forgotten the count begins anew.
const SESSIONS: usize = 256;

/// The guards of the sessions that this process worked on lately.
#[derive(Debug, Default)]
pub(crate) struct LoopGuards {
    recent: Mutex<VecDeque<(SessionId, Arc<LoopGuard>)>>,
}

impl LoopGuards {
    /// The guard of a session, which becomes the newest.
    pub(crate) fn of(&self, session: SessionId) -> Arc<LoopGuard> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.iter().position(|(known, _)| *known == session).and_then(|at| recent.remove(at));
        let guard = known.map_or_else(Arc::default, |(_, guard)| guard);
        recent.push_back((session, Arc::clone(&guard)));
        if recent.len() > SESSIONS {
            recent.pop_front();
        }
        guard
    }
}

/// What calls of one session did lately.
#[derive(Debug, Default)]
pub(crate) struct LoopGuard {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Calls on their way, by what makes them equal.
    under_way: HashMap<IntentId, Digest>,
    last: Option<Run>,
}

/// Equal calls with equal ends, one after the other.
#[derive(Debug)]
struct Run {
    call: Digest,
    seen: Digest,
    count: u32,
}

impl LoopGuard {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins. `key` is what makes it equal to another of its tool.
    pub(crate) fn enter(&self, intent: IntentId, tool: &str, key: &Value) -> Result<(), Box<Refusal>> {
        let call = digest(&json!([tool, key]));
        let mut inner = self.lock();
        inner.under_way.insert(intent, call);
        let count = inner.last.as_ref().filter(|run| run.call == call).map_or(0, |run| run.count);
        if count + 1 < limits::LOOP_STOP {
            return Ok(());
        }
        let text = format!(
            "this very call was made {count} times in a row and ended the same way each time; do something else"
        );
        Err(Box::new(Refusal::new(Code::LoopDetected, text)))
    }

    /// A call ended; one that repeats itself says so.
    pub(crate) fn leave(&self, observed: &mut Observed) {
        let mut inner = self.lock();
        let Some(call) = inner.under_way.remove(&observed.intent_id) else { return };
        if observed.code.known() == Some(Code::LoopDetected) {
            // Not an end of the call itself: what it repeats stays as it was.
            return;
        }
        let seen = end_of(observed);
        let again = inner.last.as_ref().filter(|run| run.call == call && run.seen == seen).map_or(0, |run| run.count);
        let count = again + 1;
        if count >= limits::LOOP_WARN {
            let left = limits::LOOP_STOP.saturating_sub(count + 1);
            observed.warnings.push(format!(
                "the same call with the same result {count} times in a row; after {left} more it is refused"
            ));
        }
        inner.last = Some(Run { call, seen, count });
    }
}

/// What a model or the world could tell one end from another by; ids and times are not part of it.
fn end_of(observed: &Observed) -> Digest {
    if observed.code.known() == Some(Code::BackgroundStarted) {
        // All else it says is the id of its task.
        return digest(&json!(observed.code));
    }
    let texts: Vec<_> = observed.content.iter().map(|part| part.text.as_deref().unwrap_or_default()).collect();
    let effects = &observed.side_effects;
    let items: Vec<_> = effects.items.iter().map(|item| (&item.kind, &item.target)).collect();
    digest(&json!([
        observed.code,
        observed.reason,
        observed.exit_code,
        observed.summary,
        texts,
        observed.structured,
        effects.state,
        items
    ]))
}

fn digest(value: &Value) -> Digest {
    // Invariant: plain JSON always has a canonical form.
    Digest::of(canonical_json(value).unwrap_or_default().as_bytes())
}
