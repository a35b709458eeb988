//! What can be wrong with a log, and how much of a sound one is proved.

use portcullis_base::{ArtifactId, Digest, EventId, SessionId};
use portcullis_event::{ChainFault, Event, LOCAL_TENANT, ledger_of, operator_log_of};

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
    #[error("{}: {fault}", named(.session))]
    Chain { session: SessionId, event: Option<(u64, EventId)>, fault: ChainFault },
    #[error("{}: event {seq} cannot be read: {why}", named(.session))]
    Unreadable { session: SessionId, seq: u64, why: String },
    #[error(
        "{}: a checkpoint was made at event {checkpoint}, but the log ends at event {last}: its tail is lost",
        named(.session)
    )]
    LostTail { session: SessionId, checkpoint: u64, last: u64 },
    #[error("{} was deleted: event {seq} ({id}) of the ledger names it, and it is not there", named(.session))]
    Deleted { session: SessionId, seq: u64, id: EventId },
    #[error(
        "{}: event {seq} ({id}) is not the one that the ledger recorded (its event {ledger_seq}): the log was written anew",
        named(.session)
    )]
    NotAsRecorded { session: SessionId, seq: u64, id: EventId, ledger_seq: u64 },
    #[error(
        "{}: the ledger recorded event {seq} (its event {ledger_seq}), but the log ends at event {last}: its tail is lost",
        named(.session)
    )]
    EndsEarly { session: SessionId, seq: u64, last: u64, ledger_seq: u64 },
    #[error(
        "{} has no checkpoint at or after event {seq}, though one was made there: with the key at hand its log is not proved",
        named(.session)
    )]
    Unproved { session: SessionId, seq: u64 },
    #[error("{} is not in the ledger: the ledger's tail is lost, or someone put it in", named(.session))]
    NotInLedger { session: SessionId },
    #[error("{}: its checkpoint at event {seq} is not in the ledger: the ledger's tail is lost", named(.session))]
    CheckpointNotInLedger { session: SessionId, seq: u64 },
    #[error("{}: the content of event {seq} ({id}) is gone, and nothing says that it was erased", named(.session))]
    ErasedUnsaid { session: SessionId, seq: u64, id: EventId },
    #[error("{}: a row is not what its events say: {what}", named(.session))]
    Row { session: SessionId, what: String },
    #[error("grant {grant}: {why}")]
    Grant { grant: String, why: &'static str },
    #[error("artifact {artifact} of session {session}: {why}")]
    Artifact { session: SessionId, artifact: ArtifactId, why: &'static str },
    #[error("menu or setup {sha256} of session {session}: {why}")]
    Content { session: SessionId, sha256: Digest, why: &'static str },
    #[error(
        "{}: event {recorded} was recorded, by the mark beside the database, and its log {}: the database is \
         older than it was",
        named(.session),
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

/// A log as people know it: the two that are no session have names.
fn named(session: &SessionId) -> String {
    match *session {
        log if log == ledger_of(LOCAL_TENANT) => "the ledger".to_owned(),
        log if log == operator_log_of(LOCAL_TENANT) => "the operator log".to_owned(),
        session => format!("session {session}"),
    }
}
