//! Which intents are open, and how far each is. Settled ones leave nothing but their call key.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_base::{Actor, AskId, Digest, IntentId, InvocationId, MenuId, MessageId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::{InvocationCompleted, InvocationEffected};
use crate::{Body, Event, IntentState};

/// An intent that has no observation yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    pub intent_id: IntentId,
    pub call_id: String,
    pub message_id: MessageId,
    pub turn_id: Option<TurnId>,
    pub tool: String,
    /// Who proposed it.
    pub actor: Actor,
    pub raw_input: Value,
    pub input_hash: Digest,
    pub menu_id: MenuId,
    pub definition_version: Option<String>,
    pub executor_id: Option<String>,
    pub looked_up: bool,
    pub state: IntentState,
    pub ask_id: Option<AskId>,
    /// Somebody else was asked to run it.
    pub handed_over: bool,
    pub invocation_id: Option<InvocationId>,
    /// From `started`: what recovery says of side effects.
    pub read_only: bool,
    pub attempt: u32,
    /// Scheduler keys that `started` took; recovery gives them back.
    pub keys: Vec<String>,
    /// What it changed in the log while it ran.
    pub effected: Option<InvocationEffected>,
    pub completed: Option<InvocationCompleted>,
}

/// The open intents of a session, in order of admission, and every call key ever used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Intents {
    open: BTreeMap<IntentId, Intent>,
    settled: u64,
    /// Call ids of the newest message that has calls: a repeat inside one message is `duplicate_call`.
    message: Option<MessageId>,
    calls: BTreeSet<String>,
}

impl Intents {
    pub(super) fn apply(&mut self, event: &Event, body: &Body) {
        match body {
            Body::IntentProposed(intent) => {
                if self.message != Some(intent.message_id) {
                    self.message = Some(intent.message_id);
                    self.calls.clear();
                }
                self.calls.insert(intent.call_id.clone());
                self.open.insert(
                    intent.intent_id,
                    Intent {
                        intent_id: intent.intent_id,
                        call_id: intent.call_id.clone(),
                        message_id: intent.message_id,
                        turn_id: event.turn_id,
                        tool: intent.tool.clone(),
                        actor: event.actor.clone(),
                        raw_input: intent.raw_input.clone(),
                        input_hash: intent.input_hash,
                        menu_id: intent.menu_id,
                        definition_version: intent.definition_version.clone(),
                        executor_id: None,
                        looked_up: false,
                        state: IntentState::Admitted,
                        ask_id: None,
                        handed_over: false,
                        invocation_id: None,
                        read_only: false,
                        attempt: 0,
                        keys: Vec::new(),
                        effected: None,
                        completed: None,
                    },
                );
            }
            Body::LookedUp(found) => self.change(found.intent_id, |intent| {
                intent.looked_up = true;
                intent.executor_id.clone_from(&found.executor_id);
            }),
            // One that is held live changes nothing of its call: it has started, whatever is answered (R3).
            Body::PermissionAsked(asked) if asked.held_by.is_none() => self.change(asked.intent_id, |intent| {
                intent.state = IntentState::Parked;
                intent.ask_id = Some(asked.ask_id);
            }),
            Body::CustomToolUse(used) => self.hand_over(used.intent_id),
            Body::ToolUse(used) if used.by_environment => self.hand_over(Some(used.intent_id)),
            Body::ThreadCreated(made) => self.hand_over(made.intent_id),
            Body::Scheduled(scheduled) => self.change(scheduled.intent_id, |intent| {
                intent.state = IntentState::Queued;
                intent.keys.clone_from(&scheduled.keys);
            }),
            Body::InvocationStarted(started) => self.change(started.intent_id, |intent| {
                intent.state = IntentState::Started;
                intent.invocation_id = Some(started.invocation_id);
                intent.read_only = started.read_only;
                intent.attempt = started.attempt;
            }),
            Body::InvocationEffected(effected) => self.change(effected.intent_id, |intent| {
                intent.effected = Some((**effected).clone());
            }),
            Body::InvocationCompleted(completed) => self.change(completed.intent_id, |intent| {
                intent.state = IntentState::Completed;
                intent.completed = Some((**completed).clone());
            }),
            Body::Observed(observed) if self.open.remove(&observed.intent_id).is_some() => self.settled += 1,
            _ => {}
        }
    }

    fn hand_over(&mut self, intent: Option<IntentId>) {
        if let Some(intent) = intent {
            self.change(intent, |intent| {
                intent.state = IntentState::Parked;
                intent.handed_over = true;
            });
        }
    }

    fn change(&mut self, id: IntentId, change: impl FnOnce(&mut Intent)) {
        if let Some(intent) = self.open.get_mut(&id) {
            change(intent);
        }
    }

    /// Intents without an observation, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Intent> {
        self.open.values()
    }

    /// One open intent.
    #[must_use]
    pub fn get(&self, id: IntentId) -> Option<&Intent> {
        self.open.get(&id)
    }

    /// How many have their observation.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// Whether `call_id` was used already in `message`.
    #[must_use]
    pub fn is_duplicate(&self, message: MessageId, call_id: &str) -> bool {
        self.message == Some(message) && self.calls.contains(call_id)
    }
}
