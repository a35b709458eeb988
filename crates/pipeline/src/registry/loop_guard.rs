//! The loop guard (tool-contract §14, L47): a model that makes the same call again and again and learns nothing from it
//! is told, and then stopped. Only where this runtime builds the model's context: a caller from
//! outside knows himself what he has seen.
//!
//! It lives as long as this process works on the session, also where each call waits for an answer and the session is given
//! back in between. A new process counts anew, which costs a few calls and no more.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::{Code, Digest, IntentId, SessionId, canonical_json, limits};
use portcullis_event::Observed;
use serde_json::{Value, json};

use crate::phases::refuse::Refusal;

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
    /// The last calls and how each ended, newest last; at most [`KEPT`].
    recent: VecDeque<PastCall>,
}

/// An earlier call and how it ended, as digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PastCall {
    call: Digest,
    seen: Digest,
}

/// Calls that are remembered: as many as the longest cycle needs to be refused.
const KEPT: usize = limits::LOOP_CYCLE * limits::LOOP_STOP as usize;

impl Inner {
    fn remember(&mut self, made: PastCall) {
        self.recent.push_back(made);
        if self.recent.len() > KEPT {
            self.recent.pop_front();
        }
    }

    /// How often in a row the last `length` calls were made, each with the same end.
    fn rounds(&self, length: usize) -> u32 {
        let newest = || self.recent.iter().rev();
        let same = newest().zip(newest().skip(length)).take_while(|(one, before)| one == before).count();
        u32::try_from(same / length + 1).unwrap_or(u32::MAX)
    }

    /// The cycle in which `call` would be made once more: what it was before, and how often it was made.
    fn again(&self, call: Digest) -> Option<(PastCall, u32)> {
        let cycles = 1..=limits::LOOP_CYCLE.min(self.recent.len());
        let next = cycles.filter_map(|length| {
            let before = self.recent[self.recent.len() - length];
            (before.call == call).then(|| (before, self.rounds(length)))
        });
        next.max_by_key(|(_, rounds)| *rounds)
    }
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
        let Some((before, count)) = inner.again(call).filter(|(_, count)| count + 1 >= limits::LOOP_STOP) else {
            return Ok(());
        };
        // It would have gone the same way: so the rest of its cycle is refused as well.
        inner.remember(before);
        // Those that were refused were not made.
        let count = count.min(limits::LOOP_STOP - 1);
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
        inner.remember(PastCall { call, seen: end_of(observed) });
        let cycles = 1..=limits::LOOP_CYCLE.min(inner.recent.len());
        let count = cycles.map(|length| inner.rounds(length)).max().unwrap_or_default();
        if count >= limits::LOOP_WARN {
            let left = limits::LOOP_STOP.saturating_sub(count + 1);
            let end = match left {
                0 => "the next one is refused".to_owned(),
                left => format!("after {left} more it is refused"),
            };
            observed.warnings.push(format!("the same call with the same result {count} times in a row; {end}"));
        }
    }
}

/// What a model or the world could tell one end from another by: what it was shown and what changed. Ids and times are
/// not part of it: the summary and the structured form of a command name how long it took.
fn end_of(observed: &Observed) -> Digest {
    if observed.code.known() == Some(Code::BackgroundStarted) {
        // All else it says is the id of its task.
        return digest(&json!(observed.code));
    }
    let kept: Vec<_> = observed.artifacts.iter().map(|artifact| (artifact.id.to_string(), artifact.sha256)).collect();
    let without_ids = |text: &str| kept.iter().fold(text.to_owned(), |text, (id, _)| text.replace(id.as_str(), ""));
    let texts: Vec<_> = observed.content.iter().filter_map(|part| part.text.as_deref()).map(without_ids).collect();
    let in_short = texts.is_empty().then_some((&observed.summary, &observed.structured));
    let hashes: Vec<_> = kept.iter().map(|(_, hash)| hash).collect();
    let effects = &observed.side_effects;
    let items: Vec<_> = effects.items.iter().map(|item| (&item.kind, &item.target)).collect();
    digest(&json!([
        observed.code,
        observed.reason,
        observed.exit_code,
        texts,
        in_short,
        observed.errors,
        hashes,
        effects.state,
        items
    ]))
}

fn digest(value: &Value) -> Digest {
    // Invariant: plain JSON always has a canonical form.
    Digest::of(canonical_json(value).unwrap_or_default().as_bytes())
}
