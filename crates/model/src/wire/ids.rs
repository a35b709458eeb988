//! Ids of calls: one each, whatever the provider gave.

use std::collections::HashSet;

use bytes::Bytes;
use portcullis_base::Digest;

use crate::{AnswerPart, Conversation, Message};

/// Knows the ids that a conversation has used, and makes new ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    used: HashSet<String>,
    /// The request. It holds the whole conversation, so what is made from it was never made before.
    request: Bytes,
    /// The provider gives ids only sometimes, and nobody wonders where there is none.
    optional: bool,
}

impl Ids {
    pub fn new(conversation: &Conversation, request: Bytes) -> Self {
        let answers = conversation.messages().iter().filter_map(|message| match message {
            Message::Assistant(parts) => Some(parts),
            Message::User(_) => None,
        });
        let calls = answers.flatten().filter_map(|part| match part {
            AnswerPart::Call(call) => Some(call.id.clone()),
            _ => None,
        });
        Self { used: calls.collect(), request, optional: false }
    }

    /// The same for a provider whose calls need no ids.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Gives every call of an answer an id of its own, and says which ones it made.
    pub fn settle(mut self, parts: &mut [AnswerPart], warnings: &mut Vec<String>) {
        let calls = parts.iter_mut().filter_map(|part| match part {
            AnswerPart::Call(call) => Some(call),
            _ => None,
        });
        for (at, call) in calls.enumerate() {
            let missing = call.id.is_empty();
            if !missing && self.used.insert(call.id.clone()) {
                continue;
            }
            let salt = [Digest::of(&self.request).as_bytes().as_slice(), &at.to_be_bytes()].concat();
            let made = format!("call_{:.24}", Digest::of(&salt));
            match missing {
                true if self.optional => {}
                true => warnings.push(format!("the call of `{}` came without an id; it is now {made}", call.name)),
                false => {
                    let (id, name) = (&call.id, &call.name);
                    warnings.push(format!("the id `{id}` had been used before; the call of `{name}` is now {made}"));
                }
            }
            self.used.insert(made.clone());
            call.id = made;
        }
    }
}
