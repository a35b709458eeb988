//! The log: what an event is, what it means, and how a chain of them proves itself.
//!
//! Owns: the envelope, the event types this program writes, one small fold for each concern, the
//! rows computed from events, the hash chain with its keyed checkpoints, upcasters.
//! Knows nothing of: how events are stored, executors, processes, the clock. Replay lives here and
//! therefore cannot execute anything (L70): there is nothing in this crate's dependencies to do it with.

mod body;
mod call_facts;
mod chain;
mod envelope;
pub mod facts;
pub mod fold;
mod observation;
mod outcomes;
mod rows;
mod session_facts;
mod shell;
mod spans;
mod table;
mod talk;
mod tasks;
mod threads;
mod touched_resource;
mod upcast;
mod verified;
mod wakes;

pub use body::{Body, EventBody, EventRefs, EventType, InputKind, Writers};
pub use call_facts::CallFact;
pub use chain::{Chain, ChainFault, CheckpointKey, chain_hash, first_prev_hash};
pub use envelope::{DecodedBody, Draft, Event, Payload, Stamp};
pub use fold::{FOLD_VERSION, State};
pub use observation::{ContentFormat, ContentPart, EarlierObservation, Observed, Permission, SandboxFact};
pub use portcullis_base::Actor;
pub use rows::{AskState, HeadChange, IntentState, RowChange, SessionRow, SessionStatus, head_change, rows};
pub use session_facts::{FACT_SUMMARY_CHARS, FactsChange, OutcomeFacts, SessionFacts, UnknownOutcome, facts_change};
pub use table::Conversation;
pub use upcast::upcast;

use portcullis_base::{Digest, SessionId, TenantId};

/// The tenant of a store that serves one person.
pub const LOCAL_TENANT: TenantId = TenantId::from_u128(0);

/// A reserved log of a tenant: an ordinary log that belongs to no conversation.
fn reserved(tenant: TenantId, purpose: &str) -> SessionId {
    let digest = Digest::of(format!("portcullis-{purpose}-1:{tenant}").as_bytes());
    SessionId::from_u128(u128::from_be_bytes(std::array::from_fn(|i| digest.as_bytes()[i])))
}

/// The tenant's ledger: creations, checkpoints, archivals and deletions of its sessions (store §2).
#[must_use]
pub fn ledger_of(tenant: TenantId) -> SessionId {
    reserved(tenant, "ledger")
}

/// The tenant's operator log: rule, key and server changes.
#[must_use]
pub fn operator_log_of(tenant: TenantId) -> SessionId {
    reserved(tenant, "operator")
}
