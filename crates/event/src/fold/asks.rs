//! Asks that still matter: pending ones, and answered ones whose call has not run yet.

use std::collections::BTreeMap;

use portcullis_base::{AskId, Digest, IntentId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::facts::{AskReplied, AtRoot, BoundTo, PermissionAsked};
use crate::{AskState, Body, Event};

/// One ask with what its approval is bound to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub ask_id: AskId,
    pub intent_id: IntentId,
    pub state: AskState,
    pub pinned: bool,
    pub input_hash: Digest,
    pub definition_version: String,
    pub policy_revision: Digest,
    pub principal: String,
    pub shown: Digest,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<BoundTo>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asker_env: BTreeMap<String, String>,
    pub expires_at: Timestamp,
    pub reply: Option<AskReplied>,
    pub root: Option<AtRoot>,
    /// Where it was asked.
    pub seq: u64,
}

impl Ask {
    /// An ask that was raised by the event at `seq` and waits.
    #[must_use]
    pub fn pending(asked: &PermissionAsked, seq: u64) -> Self {
        Self {
            ask_id: asked.ask_id,
            intent_id: asked.intent_id,
            state: AskState::Pending,
            pinned: asked.pinned,
            input_hash: asked.input_hash,
            definition_version: asked.definition_version.clone(),
            policy_revision: asked.policy_revision,
            principal: asked.principal.clone(),
            shown: asked.shown,
            bound: asked.bound.clone(),
            asker_env: asked.asker_env.clone(),
            expires_at: asked.expires_at,
            reply: None,
            root: asked.root,
            seq,
        }
    }

    /// The same with its answer. The first one counts.
    pub fn answer(&mut self, reply: &AskReplied) {
        if self.state == AskState::Pending {
            self.state = AskState::Answered;
            self.reply = Some(reply.clone());
        }
    }
}

/// Asks by id; one leaves when its intent has an observation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Asks {
    live: BTreeMap<AskId, Ask>,
}

impl Asks {
    pub(super) fn apply(&mut self, event: &Event, body: &Body) {
        match body {
            Body::PermissionAsked(asked) => drop(self.live.insert(asked.ask_id, Ask::pending(asked, event.seq))),
            Body::AskReplied(replied) => {
                if let Some(ask) = self.live.get_mut(&replied.ask_id) {
                    ask.answer(replied);
                }
            }
            Body::AskClosed(closed) => {
                if let Some(ask) = self.live.get_mut(&closed.ask_id) {
                    ask.state = closed.state.into();
                }
            }
            Body::Observed(observed) => self.live.retain(|_, ask| ask.intent_id != observed.intent_id),
            _ => {}
        }
    }

    /// One live ask.
    #[must_use]
    pub fn get(&self, id: AskId) -> Option<&Ask> {
        self.live.get(&id)
    }

    /// Asks that are not pending while their intent has no observation: work for `attend`.
    pub fn answered(&self) -> impl Iterator<Item = &Ask> {
        self.live.values().filter(|ask| ask.state != AskState::Pending)
    }

    /// Asks of one intent, whatever their state.
    pub fn of(&self, intent: IntentId) -> impl Iterator<Item = &Ask> {
        self.live.values().filter(move |ask| ask.intent_id == intent)
    }

    /// Asks that wait for a person.
    pub fn pending(&self) -> impl Iterator<Item = &Ask> {
        self.live.values().filter(|ask| ask.state == AskState::Pending)
    }
}
