//! The hash chain and its keyed checkpoints (store §2). Anyone can verify an export with these lines.
//!
//! A chain proves that nothing inside it changed; it proves nothing about its own tail. Checkpoints
//! MACed with a key that is not in the database prove it up to their seq; a ledger head kept
//! elsewhere proves the rest.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use portcullis_base::{Digest, EventId, IdText, SessionId};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::Event;

/// What the first event of a log is chained to.
#[must_use]
pub fn first_prev_hash(session: SessionId) -> Digest {
    Digest::of(format!("portcullis-log-1:{session}").as_bytes())
}

/// The hash of an event over its predecessor's hash, its payload's hash and every envelope column.
#[must_use]
pub fn chain_hash(event: &Event) -> Digest {
    // One buffer and one pass: an envelope is a few hundred bytes.
    let mut bytes = Vec::with_capacity(512);
    bytes.extend_from_slice(event.prev_hash.as_bytes());
    bytes.extend_from_slice(event.payload_hash.as_bytes());
    number(&mut bytes, Some(event.seq));
    text(&mut bytes, Some(event.id.text()));
    prefixed(&mut bytes, event.kind.as_str().as_bytes());
    prefixed(&mut bytes, &event.at.as_micros().to_be_bytes());
    prefixed(&mut bytes, event.actor.as_str().as_bytes());
    text(&mut bytes, event.worker_id.map(|id| id.text()));
    number(&mut bytes, event.fence);
    text(&mut bytes, event.wake_id.map(|id| id.text()));
    text(&mut bytes, event.turn_id.map(|id| id.text()));
    text(&mut bytes, event.session_thread_id.map(|id| id.text()));
    text(&mut bytes, Some(event.append_id.text()));
    number(&mut bytes, Some(u64::from(event.v)));
    Digest::of(&bytes)
}

/// `lp(x)`: u32be length, then the bytes.
fn prefixed(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX - 1).to_be_bytes());
    into.extend_from_slice(bytes);
}

/// Absent is length 0xFFFFFFFF and no bytes.
fn absent(into: &mut Vec<u8>) {
    into.extend_from_slice(&u32::MAX.to_be_bytes());
}

fn number(into: &mut Vec<u8>, value: Option<u64>) {
    match value {
        Some(value) => prefixed(into, &value.to_be_bytes()),
        None => absent(into),
    }
}

/// An id by its text, which is what anyone else sees of it.
fn text(into: &mut Vec<u8>, value: Option<IdText>) {
    match value {
        Some(value) => prefixed(into, value.as_bytes()),
        None => absent(into),
    }
}

/// What is wrong with a log, and at which event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    #[error("event {seq} is missing: the log goes on with event {found}")]
    Gap { seq: u64, found: u64 },
    #[error("event {seq} ({id}) does not follow its predecessor: its prev_hash is not the hash before it")]
    Unlinked { seq: u64, id: EventId },
    #[error("the payload of event {seq} ({id}) was altered: its bytes do not have the recorded hash")]
    Payload { seq: u64, id: EventId },
    #[error("event {seq} ({id}) was altered: it does not have the recorded hash")]
    Envelope { seq: u64, id: EventId },
    #[error("the log ends at event {found}, its head row says {head}")]
    Tail { head: u64, found: u64 },
    #[error("the last event's hash is not the one in the head row (event {seq})")]
    HeadHash { seq: u64 },
    #[error("checkpoint at event {seq} names another hash than the event has")]
    CheckpointHash { seq: u64 },
    #[error("checkpoint at event {seq} was not made with this key")]
    CheckpointMac { seq: u64 },
}

/// Walks a log and finds the first event that does not hold.
#[derive(Debug)]
pub struct Chain {
    next_seq: u64,
    last_hash: Digest,
}

impl Chain {
    /// A walk from the first event of `session`.
    #[must_use]
    pub fn start(session: SessionId) -> Self {
        Self { next_seq: 1, last_hash: first_prev_hash(session) }
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// The first thing that does not hold. A walk is over then.
    pub fn step(&mut self, event: &Event) -> Result<(), ChainFault> {
        let (seq, id) = (event.seq, event.id);
        if seq != self.next_seq {
            return Err(ChainFault::Gap { seq: self.next_seq, found: seq });
        }
        if event.prev_hash != self.last_hash {
            return Err(ChainFault::Unlinked { seq, id });
        }
        if let Some(payload) = &event.payload
            && Digest::of(payload.as_bytes()) != event.payload_hash
        {
            return Err(ChainFault::Payload { seq, id });
        }
        if chain_hash(event) != event.hash {
            return Err(ChainFault::Envelope { seq, id });
        }
        self.next_seq += 1;
        self.last_hash = event.hash;
        Ok(())
    }

    /// The last seq that held, 0 at the start.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.next_seq - 1
    }

    /// The hash it ends in.
    #[must_use]
    pub fn hash(&self) -> Digest {
        self.last_hash
    }

    /// Compares the end of the walk with the head row.
    ///
    /// # Errors
    /// If the head names another seq or hash.
    pub fn finish(&self, head_seq: u64, head_hash: Digest) -> Result<(), ChainFault> {
        if self.seq() != head_seq {
            return Err(ChainFault::Tail { head: head_seq, found: self.seq() });
        }
        if self.last_hash != head_hash {
            return Err(ChainFault::HeadHash { seq: head_seq });
        }
        Ok(())
    }
}

/// The key of checkpoints; it lives beside the database, never in it.
#[derive(Clone)]
pub struct CheckpointKey([u8; 32]);

impl fmt::Debug for CheckpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckpointKey(***)")
    }
}

impl CheckpointKey {
    /// Wraps 32 secret bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// HMAC-SHA256 over `lp(session_id) ‖ lp(seq) ‖ hash`.
    #[must_use]
    pub fn mac(&self, session: SessionId, seq: u64, hash: Digest) -> [u8; 32] {
        self.start(session, seq, hash).finalize().into_bytes().into()
    }

    /// Whether `mac` was made with this key for exactly these values; in constant time.
    #[must_use]
    pub fn verifies(&self, session: SessionId, seq: u64, hash: Digest, mac: &[u8]) -> bool {
        self.mac(session, seq, hash).ct_eq(mac).into()
    }

    fn start(&self, session: SessionId, seq: u64, hash: Digest) -> Hmac<Sha256> {
        // Invariant: HMAC takes keys of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a 32-byte key");
        let name = session.to_string();
        mac.update(&u32::try_from(name.len()).unwrap_or(0).to_be_bytes());
        mac.update(name.as_bytes());
        mac.update(&8u32.to_be_bytes());
        mac.update(&seq.to_be_bytes());
        mac.update(hash.as_bytes());
        mac
    }
}
