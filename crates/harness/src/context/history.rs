//! The conversation as the log tells it.

use std::collections::HashMap;

use portcullis_base::{EventId, IntentId, MessageId, QueuedWakeId, SessionId};
use portcullis_event::facts::{Block, Carried, WakeQueued};
use portcullis_event::fold::{Input, InputContent};
use portcullis_event::{Conversation, Event};
use portcullis_model::{AnswerPart, Call, UserPart};
use portcullis_pipeline::{ArtifactShelf, Halt, Session};
use serde::de::DeserializeOwned;

use super::media::media_of;
use super::{AddedPart, Context, UnshownInput, verifies};

/// Events read at once.
const PAGE: usize = 1_000;

/// A log folded up to a place: the conversation that its next request begins with, and what it takes to go on from there.
pub(crate) struct FoldedConversation {
    pub(crate) context: Context,
    /// The last event that is in it.
    seq: u64,
    /// What people said, until a wake takes it up.
    said: HashMap<EventId, Input>,
    /// Wakes that wait, until one takes them up.
    queued: HashMap<QueuedWakeId, WakeQueued>,
    /// Which message the open intents belong to: calls from outside the loop are not the model's.
    intents: HashMap<IntentId, MessageId>,
}

impl FoldedConversation {
    /// Of nothing.
    pub(crate) fn new() -> Self {
        Self {
            context: Context::empty(),
            seq: 0,
            said: HashMap::new(),
            queued: HashMap::new(),
            intents: HashMap::new(),
        }
    }

    /// Takes in what came since.
    pub(crate) async fn go_on(&mut self, session: &Session) -> Result<(), Halt> {
        let store = std::sync::Arc::clone(session.gate().store());
        loop {
            let events = store.read(session.key(), self.seq, PAGE).await?;
            for event in &events {
                Reader { session, folded: self }.take(event).await?;
                self.seq = event.seq;
            }
            if events.len() < PAGE {
                return Ok(());
            }
        }
    }
}

struct Reader<'a> {
    session: &'a Session,
    folded: &'a mut FoldedConversation,
}

impl Reader<'_> {
    async fn open<T: DeserializeOwned>(&self, carried: &Carried) -> Result<T, Halt> {
        open(&self.session.gate().shelf(), self.session.key().session, carried).await
    }

    async fn take(&mut self, event: &Event) -> Result<(), Halt> {
        let body = &*event.body_ref();
        let Some(told) = body.conversation() else { return Ok(()) };
        match told {
            Conversation::UserMessage(_)
            | Conversation::SystemMessage(_)
            | Conversation::UserInterrupt(_)
            | Conversation::UserCustomToolResult(_)
            | Conversation::UserToolResult(_)
            | Conversation::ThreadMessageReceived(_) => {
                self.folded.said.extend(Input::of(event, body).map(|input| (event.id, input)));
            }
            Conversation::ModelRequestStart(start) => {
                let added: Vec<AddedPart> = self.open(&start.context).await?;
                if let Some(system) = &start.system {
                    let system: String = self.open(system).await?;
                    self.folded.context.system = Some(system.into());
                }
                let notes = AddedPart::notes(&added);
                let parts = added.into_iter().filter_map(|added| self.part(added)).collect();
                self.folded.context.ask(parts, notes);
                self.folded.context.unshown = UnshownInput::default();
            }
            Conversation::ModelRequestEnd(end) if end.is_error => {}
            Conversation::ModelRequestEnd(end) => {
                let parts: Vec<AnswerPart> = match &end.parts {
                    Some(parts) => self.open(parts).await?,
                    None => Vec::new(),
                };
                let calls = calls_of(&parts, &end.masked_calls);
                self.folded.context.answered(end.message_id, parts, calls, event.seq);
            }
            Conversation::InputConsumed(consumed) => {
                for input in consumed.event_ids.iter().filter_map(|id| self.folded.said.remove(id)) {
                    if let InputContent::Interrupt { note } = &input.said {
                        self.folded.context.digested.interrupted(input.event_id, note.as_deref());
                    }
                    self.folded.context.unshown.inputs.push(input);
                }
            }
            Conversation::WakeQueued(wake) => {
                self.folded.queued.insert(wake.queued_wake_id, wake.clone());
            }
            Conversation::WakeConsumed(consumed) => {
                let taken = consumed.queued_wake_ids.iter().filter_map(|id| self.folded.queued.remove(id));
                self.folded.context.unshown.wakes.extend(taken);
            }
            Conversation::IntentProposed(intent) => {
                self.folded.intents.insert(intent.intent_id, intent.message_id);
            }
            Conversation::Observed(observed) => {
                let message = self.folded.intents.remove(&observed.intent_id);
                if message.is_some() && message == self.folded.context.newest.as_ref().map(|newest| newest.message_id) {
                    let media = media_of(&self.session.gate().shelf(), self.session.key().session, observed).await;
                    let verifies = verifies(self.session, &observed.tool);
                    self.folded.context.observed(observed, media, event.seq, verifies);
                }
            }
            Conversation::FinalChecked(checked) => {
                let newest = self.folded.context.newest.as_mut();
                if let Some(newest) = newest.filter(|newest| newest.message_id == checked.message_id) {
                    newest.checked = true;
                }
            }
            Conversation::TaskCompleted(ended) => self.folded.context.facts.task_ended(ended, event.seq),
            Conversation::InvocationResolved(resolved) => self.folded.context.facts.resolved(resolved),
            Conversation::CustomToolUse(used) => {
                self.folded.context.handed_over.extend(used.intent_id.map(|_| event.id));
            }
            Conversation::ToolUse(used) => {
                self.folded.context.handed_over.extend(used.by_environment.then_some(event.id));
            }
            Conversation::ThreadCreated(made) => {
                self.folded.context.awaited_children.extend(made.intent_id.map(|_| made.session_thread_id));
            }
            Conversation::ContextCompacted(compacted) => {
                let summary: String = self.open(&compacted.summary).await?;
                self.folded.context.compact(summary, compacted.kept_from_seq, compacted.cut_to);
            }
        }
        Ok(())
    }

    fn part(&mut self, added: AddedPart) -> Option<UserPart> {
        match added {
            AddedPart::Text(text) => Some(UserPart::Text(text)),
            AddedPart::Said(event) => {
                let taken = self.folded.context.unshown.inputs.iter().find(|input| input.event_id == event)?;
                let (InputContent::Message { content } | InputContent::System { content }) = &taken.said else {
                    return None;
                };
                self.folded.context.digested.said(event, content);
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
