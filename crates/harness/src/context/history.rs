//! The conversation as the log tells it.

use std::collections::HashMap;

use portcullis_base::{EventId, IntentId, MessageId, QueuedWakeId, SessionId};
use portcullis_event::facts::{Block, Carried, WakeQueued};
use portcullis_event::fold::{Input, Said};
use portcullis_event::{Body, Event};
use portcullis_model::{AnswerPart, Call, UserPart};
use portcullis_pipeline::{ArtifactShelf, Halt, Session};
use serde::de::DeserializeOwned;

use super::media::media_of;
use super::{Added, Context, Unshown, verifies};

/// Events read at once.
const PAGE: usize = 1_000;

impl Context {
    /// Folds the log of a session into the conversation that its next request begins with. `until`: the seq of the last
    /// event to take in.
    pub(crate) async fn load(session: &Session, until: Option<u64>) -> Result<Self, Halt> {
        let mut reader = Reader {
            session,
            context: Self::empty(),
            said: HashMap::new(),
            queued: HashMap::new(),
            intents: HashMap::new(),
        };
        let store = std::sync::Arc::clone(session.gate().store());
        let mut after = 0;
        loop {
            let events = store.read(session.key(), after, PAGE).await?;
            for event in &events {
                if until.is_some_and(|until| event.seq > until) {
                    return Ok(reader.context);
                }
                reader.take(event).await?;
            }
            match events.last() {
                Some(last) if events.len() == PAGE => after = last.seq,
                _ => return Ok(reader.context),
            }
        }
    }
}

struct Reader<'a> {
    session: &'a Session,
    context: Context,
    /// What people said, until a wake takes it up.
    said: HashMap<EventId, Input>,
    /// Wakes that wait, until one takes them up.
    queued: HashMap<QueuedWakeId, WakeQueued>,
    /// Which message the open intents belong to: calls from outside the loop are not the model's.
    intents: HashMap<IntentId, MessageId>,
}

impl Reader<'_> {
    async fn open<T: DeserializeOwned>(&self, carried: &Carried) -> Result<T, Halt> {
        open(&self.session.gate().shelf(), self.session.key().session, carried).await
    }

    async fn take(&mut self, event: &Event) -> Result<(), Halt> {
        let body = &*event.body_ref();
        self.said.extend(Input::of(event, body).map(|input| (event.id, input)));
        match body {
            Body::ModelRequestStart(start) => {
                let added: Vec<Added> = self.open(&start.context).await?;
                if let Some(system) = &start.system {
                    let system: String = self.open(system).await?;
                    self.context.system = Some(system.into());
                }
                let notes = Added::notes(&added);
                let parts = added.into_iter().filter_map(|added| self.part(added)).collect();
                self.context.ask(parts, notes);
                self.context.unshown = Unshown::default();
            }
            Body::ModelRequestEnd(end) if !end.is_error => {
                let parts: Vec<AnswerPart> = match &end.parts {
                    Some(parts) => self.open(parts).await?,
                    None => Vec::new(),
                };
                let calls = calls_of(&parts, &end.masked_calls);
                self.context.answered(end.message_id, parts, calls, event.seq);
            }
            Body::InputConsumed(consumed) => {
                let taken = consumed.event_ids.iter().filter_map(|id| self.said.remove(id));
                self.context.unshown.inputs.extend(taken);
            }
            Body::WakeQueued(wake) => {
                self.queued.insert(wake.queued_wake_id, (**wake).clone());
            }
            Body::WakeConsumed(consumed) => {
                let taken = consumed.queued_wake_ids.iter().filter_map(|id| self.queued.remove(id));
                self.context.unshown.wakes.extend(taken);
            }
            Body::IntentProposed(intent) => {
                self.intents.insert(intent.intent_id, intent.message_id);
            }
            Body::Observed(observed) => {
                let message = self.intents.remove(&observed.intent_id);
                if message.is_some() && message == self.context.newest.as_ref().map(|newest| newest.message_id) {
                    let media = media_of(&self.session.gate().shelf(), self.session.key().session, observed).await;
                    let verifies = verifies(self.session, &observed.tool);
                    self.context.observed(observed, media, event.seq, verifies);
                }
            }
            Body::TaskCompleted(ended) => self.context.facts.task_ended(ended, event.seq),
            Body::CustomToolUse(used) if used.intent_id.is_some() => {
                self.context.handed_over.insert(event.id);
            }
            Body::ContextCompacted(compacted) => {
                let summary: String = self.open(&compacted.summary).await?;
                self.context.compact(summary, compacted.kept_from_seq);
            }
            _ => {}
        }
        Ok(())
    }

    fn part(&mut self, added: Added) -> Option<UserPart> {
        match added {
            Added::Text(text) => Some(UserPart::Text(text)),
            Added::Said(event) => {
                let taken = self.context.unshown.inputs.iter().find(|input| input.event_id == event)?;
                let (Said::Message { content } | Said::System { content }) = &taken.said else { return None };
                self.context.digested.said(content);
                Some(said(content))
            }
        }
    }
}

/// The calls of an answer that was kept. One whose arguments were masked is not run with the mask: it says so instead, and
/// the gate refuses that like any text that is no input.
pub(crate) fn calls_of(parts: &[AnswerPart], masked: &[String]) -> Vec<Call> {
    let calls = parts.iter().filter_map(|part| match part {
        AnswerPart::Call(call) => Some(call.clone()),
        _ => None,
    });
    let unkept = |call: Call| Call { arguments: NOT_KEPT.to_owned(), ..call };
    calls.map(|call| if masked.contains(&call.id) { unkept(call) } else { call }).collect()
}

/// Instead of arguments that held what may not be kept.
const NOT_KEPT: &str =
    "(the arguments held a value that is not kept, and the process that had them is gone; call again)";

/// What a person said, as it is sent.
pub(crate) fn said(content: &[Block]) -> UserPart {
    UserPart::Text(portcullis_event::facts::text_of(content))
}

/// What a fact carries.
pub(crate) async fn open<T: DeserializeOwned>(
    shelf: &ArtifactShelf,
    session: SessionId,
    carried: &Carried,
) -> Result<T, Halt> {
    let broken = |what: String| Halt::PersistFailed(portcullis_store::StoreError::Corrupt(what));
    match carried {
        Carried::Inline(value) => serde_json::from_value(value.clone())
            .map_err(|fault| broken(format!("a fact carries what it may not: {fault}"))),
        Carried::Artifact(artifact) => {
            let opened = shelf.open(artifact.id, Some(session)).await;
            let (_, window) = opened.map_err(|fault| broken(fault.to_string()))?;
            let bytes = window.slice(0, window.len()).map_err(|fault| broken(fault.to_string()))?;
            serde_json::from_slice(&bytes).map_err(|fault| broken(format!("a fact carries what it may not: {fault}")))
        }
    }
}
