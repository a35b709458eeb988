//! A new log that goes on alone from a place in another (`sessions fork`). Pure: the other log is only read.
//!
//! The events are the same, in the same order, at the same times, chained anew under the new name. Ids that name rows of
//! the whole tenant (asks, artifacts, queued wakes) are made anew, wherever they stand, so that nothing of the fork is a
//! row of the first log. Bytes of artifacts are shared by their hash.

use std::collections::HashMap;

use portcullis_base::{
    AppendId, ArtifactId, AskId, Clock, Digest, IdGen, IntentId, MessageId, QueuedWakeId, SessionId,
};
use portcullis_event::facts::{
    Disposition, LoopOutcome, SessionCreated, SessionForked, SpanCompleted, SpanResult, StatusIdle, StopReason,
    WakeCancelled,
};
use portcullis_event::{Actor, Body, Draft, Event, EventBody as _, Stamp, State};

use crate::plan::seal;
use crate::{Head, Import, SessionKey};

/// What a fork is to be.
pub struct Fork<'a> {
    pub from: SessionId,
    pub to: SessionKey,
    /// The last event that both share, if nothing was open there.
    pub at: u64,
    pub name: Option<String>,
    pub ids: &'a dyn IdGen,
    pub clock: &'a dyn Clock,
}

/// A fork that can be taken in ([`crate::Log::import`]).
#[derive(Debug)]
pub struct Forked {
    pub import: Import,
    /// The last event that both share.
    pub at: u64,
    /// What was open at the place that was asked for, so that it begins earlier.
    pub open: Option<String>,
}

/// Why there is no such fork.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    #[error("session {session} has {last} events, so there is no event {at} to fork at")]
    NoSuchPlace { session: SessionId, at: u64, last: u64 },
    #[error("session {0} was erased, in part or whole; what is left of it cannot be gone on from")]
    Erased(SessionId),
}

/// The fork of a log. `events` is the log from its first event, at least up to the place.
///
/// # Errors
/// If there is no such place, or what stood before it was erased.
pub fn fork(events: &[Event], fork: &Fork<'_>) -> Result<Forked, ForkError> {
    let last = events.last().map_or(0, |event| event.seq);
    if fork.at == 0 || fork.at > last {
        return Err(ForkError::NoSuchPlace { session: fork.from, at: fork.at, last });
    }
    let asked = usize::try_from(fork.at).unwrap_or(usize::MAX).min(events.len());
    if events[..asked].iter().any(|event| event.payload.is_none()) {
        return Err(ForkError::Erased(fork.from));
    }
    let QuietPlace { at, state, open } = quiet(events, asked);
    let shared = &events[..at];
    let renamed = renamed(shared, fork);
    let mut log = GrowingLog { head: Head::new(fork.to.session, fork.clock.now()), events: Vec::with_capacity(at + 4) };
    for event in shared {
        log.push(copy(event, fork, &renamed), event.append_id, event);
    }
    let append = AppendId::make(fork.ids, fork.clock.now());
    for draft in closing(&state, fork, &renamed, at as u64) {
        log.push_new(draft, append);
    }
    let import = Import { key: fork.to, events: log.events, blobs: Vec::new(), expired: Default::default() };
    Ok(Forked { import, at: at as u64, open })
}

/// The last place up to which nothing was under way.
struct QuietPlace {
    at: usize,
    state: State,
    open: Option<String>,
}

/// A fork begins where no call and no model request was open, and no answer whose calls are still to be made: what was
/// proposed in one log is not done in two. An append may be cut there: what rides in one is chosen for speed, not for
/// meaning.
fn quiet(events: &[Event], asked: usize) -> QuietPlace {
    let mut state = State::default();
    let mut proposed = Proposed::default();
    let (mut at, mut left_out) = (0, None);
    for (n, event) in events[..asked].iter().enumerate() {
        state.apply(event);
        proposed.apply(event);
        left_out = open_in(&state).or_else(|| proposed.open());
        // The first event makes the session: there is always at least that.
        if n == 0 || left_out.is_none() {
            at = n + 1;
        }
    }
    QuietPlace { at, state: State::fold(&events[..at]), open: left_out }
}

/// The calls of the newest answer that have no observation.
#[derive(Default)]
struct Proposed {
    message: Option<MessageId>,
    calls: usize,
    intents: HashMap<IntentId, MessageId>,
}

impl Proposed {
    fn apply(&mut self, event: &Event) {
        match &*event.body_ref() {
            Body::ModelRequestEnd(end) if !end.is_error => {
                self.message = Some(end.message_id);
                // An older log does not count them: then the answer is open until the next request.
                self.calls = if end.calls == 0 && end.stop == "tool_use" { usize::MAX } else { end.calls };
            }
            // The next request has their results, and a checked answer was the last one.
            Body::ModelRequestStart(_) | Body::FinalChecked(_) => *self = Self::default(),
            Body::IntentProposed(intent) => drop(self.intents.insert(intent.intent_id, intent.message_id)),
            Body::Observed(observed) => {
                let message = self.intents.remove(&observed.intent_id);
                if message.is_some() && message == self.message {
                    self.calls = self.calls.saturating_sub(1);
                }
            }
            _ => {}
        }
    }

    fn open(&self) -> Option<String> {
        let message = self.message.filter(|_| self.calls > 0)?;
        Some(format!("calls of an answer were still to be made ({message})"))
    }
}

fn open_in(state: &State) -> Option<String> {
    let call = state.intents.open().next().map(|intent| format!("a call was open ({})", intent.intent_id));
    call.or_else(|| state.progress.request.as_ref().map(|_| "a model request was open".to_owned()))
}

/// New names for what only one session may have.
fn renamed(events: &[Event], fork: &Fork<'_>) -> HashMap<String, String> {
    let mut names = HashMap::new();
    let now = fork.clock.now();
    for event in events {
        let named = event.body_ref().names();
        for artifact in named.artifacts {
            let fresh = || ArtifactId::make(fork.ids, now).to_string();
            names.entry(artifact.id.to_string()).or_insert_with(fresh);
        }
        if let Some(ask) = named.ask {
            names.entry(ask.to_string()).or_insert_with(|| AskId::make(fork.ids, now).to_string());
        }
        for wake in named.wakes {
            names.entry(wake.to_string()).or_insert_with(|| QueuedWakeId::make(fork.ids, now).to_string());
        }
    }
    names
}

/// The text with every name that is known replaced. All names are ids: a prefix, `_` and 26 characters.
fn with_names(text: &str, names: &HashMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['a', 'w']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let id = ["ask_", "art_", "wkq_"]
            .iter()
            .find(|prefix| from.starts_with(**prefix))
            .and_then(|prefix| from.get(..prefix.len() + ID_CHARS));
        match id.and_then(|id| names.get(id)) {
            Some(new) => {
                out.push_str(new);
                rest = &from[new.len()..];
            }
            None => {
                out.push_str(&from[..1]);
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Characters of an id after its prefix.
const ID_CHARS: usize = 26;

fn copy(event: &Event, fork: &Fork<'_>, names: &HashMap<String, String>) -> Draft {
    let payload = match event.body() {
        Body::SessionCreated(created) => {
            let name = fork.name.clone().or_else(|| created.name.as_ref().map(|name| format!("fork of {name}")));
            let own = SessionCreated {
                parent_session_id: None,
                root_session_id: fork.to.session,
                depth: 0,
                name,
                ..*created
            };
            own.to_payload()
        }
        _ => with_names(event.payload.as_deref().unwrap_or_default(), names),
    };
    Draft {
        id: event.id,
        kind: event.kind.clone(),
        at: event.at,
        actor: event.actor.clone(),
        wake_id: event.wake_id,
        turn_id: event.turn_id,
        session_thread_id: event.session_thread_id,
        v: event.v,
        payload_hash: Digest::of(payload.as_bytes()),
        payload: payload.into(),
        typed: Default::default(),
    }
}

/// What makes the fork stand still: it goes on only when a person speaks to it.
fn closing(state: &State, fork: &Fork<'_>, names: &HashMap<String, String>, at: u64) -> Vec<Draft> {
    let actor = Actor::system();
    let stamp = Stamp { ids: fork.ids, clock: fork.clock, actor: &actor, turn_id: None, wake_id: None };
    let mut drafts = vec![stamp.draft(&SessionForked { from_session_id: fork.from, at_seq: at })];
    let queued_wake_ids: Vec<QueuedWakeId> =
        state.wakes.pending().filter_map(|wake| names.get(&wake.queued_wake_id.to_string())?.parse().ok()).collect();
    if !queued_wake_ids.is_empty() {
        drafts.push(stamp.draft(&WakeCancelled { queued_wake_ids, by: SessionForked::KIND.as_str().to_owned() }));
    }
    if let Some(open) = &state.progress.open {
        let summary = format!("The wake went on in {}; this session was forked from it here.", fork.from);
        drafts.push(stamp.draft(&StatusIdle {
            previous_status: "running".to_owned(),
            stop_reason: StopReason::Interrupted,
            summary: Some(summary.clone()),
        }));
        drafts.push(stamp.draft(&SpanCompleted {
            span_id: open.wake_id,
            span_kind: "wake".to_owned(),
            name: "session_run".to_owned(),
            result: SpanResult::Error,
            summary,
            error_code: Some("forked".to_owned()),
            disposition: Disposition::Abandoned,
            outcome: LoopOutcome::Sleep,
            enforced_by_runtime: false,
        }));
    }
    drafts
}

/// A log under construction.
struct GrowingLog {
    head: Head,
    events: Vec<Event>,
}

impl GrowingLog {
    fn push(&mut self, draft: Draft, append: AppendId, from: &Event) {
        self.take(seal(&draft, append, from.worker_id, from.fence, &self.head));
    }

    fn push_new(&mut self, draft: Draft, append: AppendId) {
        self.take(seal(&draft, append, None, None, &self.head));
    }

    fn take(&mut self, event: Event) {
        self.head.last_seq = event.seq;
        self.head.last_hash = event.hash;
        self.events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_are_replaced_wherever_they_stand() {
        let old = AskId::from_u128(7).to_string();
        let new = AskId::from_u128(8).to_string();
        let names = HashMap::from([(old.clone(), new.clone())]);
        let other = AskId::from_u128(9);
        let text = format!("a {old},\"{old}\" {other} art_ä ask_");
        assert_eq!(with_names(&text, &names), format!("a {new},\"{new}\" {other} art_ä ask_"));
    }
}
