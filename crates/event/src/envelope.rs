//! The envelope of an event: who, when, in which append; and the exact payload bytes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use portcullis_base::{Actor, AppendId, Clock, Digest, EventId, IdGen, SessionId, Timestamp, TurnId, WakeId, WorkerId};
use serde::{Deserialize, Serialize};

use crate::{Body, EventBody, EventType};

/// The exact bytes of an event's content. Shared by all who hold the event: a draft is sealed, stored, folded and handed
/// on, and none of them changes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct Payload(Arc<str>);

impl Deref for Payload {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Payload> for String {
    fn from(payload: Payload) -> Self {
        (*payload).to_owned()
    }
}

/// What every event of one writer shares, and where its ids and times come from.
#[derive(Clone, Copy)]
pub struct Stamp<'a> {
    pub ids: &'a dyn IdGen,
    pub clock: &'a dyn Clock,
    pub actor: &'a Actor,
    pub turn_id: Option<TurnId>,
    pub wake_id: Option<WakeId>,
}

impl Stamp<'_> {
    /// Makes an event of `body`, serialised here and never again.
    pub fn draft<B: EventBody>(&self, body: &B) -> Draft {
        let at = self.clock.now();
        let payload = body.to_payload();
        let payload_hash = Digest::of(payload.as_bytes());
        Draft {
            id: EventId::make(self.ids, at),
            kind: B::KIND,
            at,
            actor: self.actor.clone(),
            wake_id: self.wake_id,
            turn_id: self.turn_id,
            session_thread_id: None,
            v: B::VERSION,
            typed: DecodedBody(Some(Arc::new((B::KIND, payload_hash, body.to_body())))),
            payload_hash,
            payload: payload.into(),
        }
    }
}

/// The content an event was made of, kept beside its bytes while it travels through this process,
/// so that nobody has to read back what was just written. It counts only for the type and the very
/// bytes it was made with. Not part of the event: two events are equal by their bytes.
#[derive(Clone, Default)]
pub struct DecodedBody(Option<Arc<(EventType, Digest, Body)>>);

impl DecodedBody {
    fn of(&self, kind: &EventType, payload: Digest) -> Option<&Body> {
        let (of_kind, of_payload, body) = self.0.as_deref()?;
        (of_kind == kind && *of_payload == payload).then_some(body)
    }
}

impl fmt::Debug for DecodedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl PartialEq for DecodedBody {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for DecodedBody {}

/// An event before it has a place in a log: everything but seq, fence and chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub id: EventId,
    pub kind: EventType,
    pub at: Timestamp,
    pub actor: Actor,
    pub wake_id: Option<WakeId>,
    pub turn_id: Option<TurnId>,
    pub session_thread_id: Option<SessionId>,
    pub v: u32,
    pub payload: Payload,
    pub payload_hash: Digest,
    pub typed: DecodedBody,
}

impl Draft {
    /// The typed content, without a copy where this process made the draft itself.
    #[must_use]
    pub fn body_ref(&self) -> Cow<'_, Body> {
        let made = self.typed.of(&self.kind, self.payload_hash).map(Cow::Borrowed);
        made.unwrap_or_else(|| Cow::Owned(Body::decode(&self.kind, self.v, Some(&self.payload))))
    }
}

/// One event of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub seq: u64,
    pub id: EventId,
    #[serde(rename = "type")]
    pub kind: EventType,
    pub at: Timestamp,
    pub actor: Actor,
    pub worker_id: Option<WorkerId>,
    pub fence: Option<u64>,
    pub wake_id: Option<WakeId>,
    pub turn_id: Option<TurnId>,
    pub session_thread_id: Option<SessionId>,
    pub append_id: AppendId,
    pub v: u32,
    /// The exact stored bytes; absent after an erasure, which keeps the chain.
    pub payload: Option<Payload>,
    pub payload_hash: Digest,
    pub prev_hash: Digest,
    pub hash: Digest,
    #[serde(skip)]
    pub typed: DecodedBody,
}

impl Event {
    /// The typed content. Types this program does not write, and payloads it cannot read, are
    /// [`Body::Unknown`] and lose nothing.
    #[must_use]
    pub fn body(&self) -> Body {
        self.body_ref().into_owned()
    }

    /// The typed content, without a copy where this process made the event itself.
    #[must_use]
    pub fn body_ref(&self) -> Cow<'_, Body> {
        match self.typed.of(&self.kind, self.payload_hash) {
            Some(body) if self.payload.is_some() => Cow::Borrowed(body),
            _ => Cow::Owned(Body::decode(&self.kind, self.v, self.payload.as_deref())),
        }
    }
}
