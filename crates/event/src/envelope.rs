//! The envelope of an event: who, when, in which append; and the exact payload bytes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use portcullis_base::{AppendId, Clock, Digest, EventId, IdGen, SessionId, Timestamp, TurnId, WakeId, WorkerId};
use serde::{Deserialize, Serialize};

use crate::{Body, EventBody, EventType};

/// Who caused an event: `user:<id>`, `key:<id>`, `agent:<id>`, `worker:<id>`, `mcp:<principal>`, `system`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Actor(String);

impl Actor {
    /// A person, by id or login name.
    #[must_use]
    pub fn user(name: &str) -> Self {
        Self(format!("user:{name}"))
    }

    /// An agent, by name.
    #[must_use]
    pub fn agent(name: &str) -> Self {
        Self(format!("agent:{name}"))
    }

    /// A process that holds a lease.
    #[must_use]
    pub fn worker(id: WorkerId) -> Self {
        Self(format!("worker:{id}"))
    }

    /// The runtime itself.
    #[must_use]
    pub fn system() -> Self {
        Self("system".to_owned())
    }

    /// An actor as it stands in a log.
    #[must_use]
    pub fn recorded(text: String) -> Self {
        Self(text)
    }

    /// The stored text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
            typed: Typed(Some(Arc::new((B::KIND, payload_hash, body.to_body())))),
            payload_hash,
            payload,
        }
    }
}

/// The content an event was made of, kept beside its bytes while it travels through this process,
/// so that nobody has to read back what was just written. It counts only for the type and the very
/// bytes it was made with. Not part of the event: two events are equal by their bytes.
#[derive(Clone, Default)]
pub struct Typed(Option<Arc<(EventType, Digest, Body)>>);

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl PartialEq for Typed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Typed {}

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
    pub payload: String,
    pub payload_hash: Digest,
    pub typed: Typed,
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
    pub payload: Option<String>,
    pub payload_hash: Digest,
    pub prev_hash: Digest,
    pub hash: Digest,
    #[serde(skip)]
    pub typed: Typed,
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
        match self.typed.0.as_deref() {
            Some((kind, hash, body)) if self.payload.is_some() && *kind == self.kind && *hash == self.payload_hash => {
                Cow::Borrowed(body)
            }
            _ => Cow::Owned(Body::decode(&self.kind, self.v, self.payload.as_deref())),
        }
    }
}
