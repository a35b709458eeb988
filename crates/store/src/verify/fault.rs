//! What can be wrong with a log, and how much of a sound one is proved.

use portcullis_base::{ArtifactId, EventId, SessionId};
use portcullis_event::{ChainFault, Event};

/// How much of a log is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// With the key: nothing up to this seq was altered, dropped or reordered.
    ProvedUpTo(u64),
    /// Without a key, or before the first checkpoint: it agrees with itself, and no more.
    Consistent,
    /// There are no events.
    Empty,
}

/// What is wrong with a log, and at which event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogFault {
    #[error("session {session}: {fault}")]
    Chain { session: SessionId, event: Option<(u64, EventId)>, fault: ChainFault },
    #[error("session {session}: event {seq} cannot be read: {why}")]
    Unreadable { session: SessionId, seq: u64, why: String },
    #[error(
        "session {session}: a checkpoint was made at event {checkpoint}, but the log ends at event {last}: its tail is lost"
    )]
    LostTail { session: SessionId, checkpoint: u64, last: u64 },
    #[error("session {session} was deleted: event {seq} ({id}) of the ledger names it, and it is not there")]
    Deleted { session: SessionId, seq: u64, id: EventId },
    #[error(
        "session {session}: event {seq} ({id}) is not the one that the ledger recorded (its event {ledger_seq}): the log was written anew"
    )]
    NotAsRecorded { session: SessionId, seq: u64, id: EventId, ledger_seq: u64 },
    #[error(
        "session {session}: the ledger recorded event {seq} (its event {ledger_seq}), but the log ends at event {last}: its tail is lost"
    )]
    EndsEarly { session: SessionId, seq: u64, last: u64, ledger_seq: u64 },
    #[error(
        "{session} has no checkpoint at or after event {seq}, though one was made there: with the key at hand its log is not proved"
    )]
    Unproved { session: SessionId, seq: u64 },
    #[error("session {session} is not in the ledger: the ledger's tail is lost, or someone put it in")]
    NotInLedger { session: SessionId },
    #[error("session {session}: its checkpoint at event {seq} is not in the ledger: the ledger's tail is lost")]
    CheckpointNotInLedger { session: SessionId, seq: u64 },
    #[error("session {session}: the content of event {seq} ({id}) is gone, and nothing says that it was erased")]
    ErasedUnsaid { session: SessionId, seq: u64, id: EventId },
    #[error("session {session}: a row is not what its events say: {what}")]
    Row { session: SessionId, what: String },
    #[error("grant {grant}: {why}")]
    Grant { grant: String, why: &'static str },
    #[error("artifact {artifact} of session {session}: {why}")]
    Artifact { session: SessionId, artifact: ArtifactId, why: &'static str },
    #[error(
        "session {session}: event {recorded} was recorded, by the mark beside the database, and its log {}: the database is \
         older than it was",
        if *.found == *.recorded { "has another one there".to_owned() } else { format!("ends at event {found}") }
    )]
    NotAsMarked { session: SessionId, recorded: u64, found: u64 },
    #[error("the ledger is gone, though there are {sessions} sessions")]
    NoLedger { sessions: usize },
    #[error("the ledger ends at event {last}, before the saved head {seq}: events of it were dropped")]
    BehindSavedHead { seq: u64, last: u64 },
    #[error("event {seq} ({id}) of the ledger has not the saved hash: the ledger was written anew")]
    NotTheSavedHead { seq: u64, id: EventId },
}

impl LogFault {
    pub(super) fn chain(session: SessionId, event: Option<&Event>, fault: ChainFault) -> Self {
        Self::Chain { session, event: event.map(|event| (event.seq, event.id)), fault }
    }
}
