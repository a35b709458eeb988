//! What can go wrong with a store, told apart by what the caller must do.

use std::fmt;
use std::path::PathBuf;

use portcullis_base::{AskId, QueuedWakeId, SessionId, Timestamp};
use portcullis_event::facts::WakeState;
use portcullis_event::{AskState, EventType};

/// The word by which programs know a full disk (http-api §12).
pub const DISK_FULL: &str = "read_only_disk_full";

/// A refused or failed operation. Unless it is [`StoreError::Ambiguous`], nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("no session {0} in this store")]
    NoSession(SessionId),
    #[error("session {0} was erased; what is left of it are hashes, and nothing is added to it")]
    Erased(SessionId),
    /// H18: what is said to a session that ended is refused, never queued.
    #[error("session {0} is terminated and takes nothing more")]
    Terminated(SessionId),
    /// The writer's decision was made on an older log ([`crate::Commit::only_at`]): read, decide and commit again.
    #[error("session {session} has moved on to event {found} meanwhile; look again")]
    MovedOn { session: SessionId, found: u64 },
    #[error("session {0} exists already")]
    SessionExists(SessionId),
    /// Another worker took the session over. The holder stops for good: it writes nothing more.
    #[error("session {session} was taken over by another process (fence {found}, ours was {ours})")]
    FenceLost { session: SessionId, ours: u64, found: u64 },
    /// The holder could not renew its lease in time. Another process may be at work by now, so it writes nothing more.
    #[error("the lease of session {0} ran out before it could be renewed: this process has stopped its work on it")]
    LeaseRanOut(SessionId),
    /// A conflicting scheduler key is held; wait for it or recover its session. With a time, nobody holds it any more: it
    /// is free by itself then.
    #[error("`{key}` is held by session {session}")]
    LockHeld { key: String, session: SessionId, until: Option<Timestamp> },
    #[error("ask {ask} is {} already: the first answer counts", state_word(*.state))]
    AskSettled { ask: AskId, state: AskState },
    #[error("ask {0} has expired")]
    AskExpired(AskId),
    #[error("no ask {0} in this store")]
    NoAsk(AskId),
    /// It started, or was observed, already: an effect happens at most once.
    #[error("intent {intent} has moved on meanwhile; nothing of it is run again")]
    IntentMoved { intent: portcullis_base::IntentId },
    #[error("wake {wake} is {} already", wake_word(*.state))]
    WakeSettled { wake: QueuedWakeId, state: WakeState },
    #[error("no wake {0} is pending in this session")]
    NoWake(QueuedWakeId),
    #[error("this session has {limit} pending wakes already; cancel some, or give them a common dedupe key")]
    TooManyWakes { limit: usize },
    #[error("{kind} `{id}` changed meanwhile (expected version {expected}, found {found}); read it again")]
    VersionConflict { kind: String, id: String, expected: u64, found: u64 },
    #[error("idempotency key `{0}` was used before with another request")]
    IdempotencyMismatch(String),
    /// The holder of the lease may append any type, everyone else only theirs (tool-contract §22).
    #[error("{writer} may not append `{kind}`; only the process that holds the session may")]
    NotTheirs { writer: &'static str, kind: EventType },
    #[error("the log of session {session} is not taken in: {why}")]
    NotImported { session: SessionId, why: String },
    #[error("the store takes no writes: {0}")]
    ReadOnly(String),
    /// A file of the store is not the one that this process opened. What was written since cannot be found again, so
    /// nothing more is written and nothing more may run.
    #[error(
        "the store was taken away while it was in use: {} {how}, so {} is not on disk any more and nothing more is run; \
         restore the data folder from a backup, or begin with a new store, then start again",
        .file.display(),
        lost_with(.file)
    )]
    Gone { file: PathBuf, how: FileLoss },
    /// The log of a session is not the one that was recorded: events are missing or other ones stand there. Nothing is
    /// written to it, for what it has done is not known.
    #[error(
        "session {session} is damaged: {}; nothing is written to it and nothing of it is run",
        disagreement(.witness, *.recorded, *.found)
    )]
    Damaged { session: SessionId, witness: Witness, recorded: u64, found: u64 },
    /// There is no room for new work; nothing was written. Reading works, and writing goes on by itself once there is.
    #[error(
        "the disk of the data directory is full ({} free, {} needed) and the store is read-only until there is room \
         ({DISK_FULL}); free some space, and writing goes on by itself",
        megabytes(*.free),
        megabytes(*.needed)
    )]
    DiskFull {
        free: u64,
        /// How much must be free for work to begin.
        needed: u64,
    },
    /// What was to be kept is over a limit of the settings; nothing was written, and trying again changes nothing.
    #[error("{0}")]
    OverLimit(String),
    /// The store could not be asked, or answered with a fault; nothing was written.
    #[error("the store failed: {0}")]
    Unavailable(String),
    /// Another process has had it locked for longer than a write waits; nothing was written.
    #[error("the store failed: {0}")]
    Locked(String),
    /// The answer was lost: all of it was written, or nothing. Read before trying again.
    #[error("the store did not say whether it wrote: {0}")]
    Ambiguous(String),
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// A cursor that came from another question or another tenant, or that is none.
    #[error("this cursor does not belong to this list; begin at the first page")]
    ForeignCursor,
    #[error("records of kind `{kind}` cannot be asked for by `{field}`: it is no declared index field of theirs")]
    NotIndexed { kind: String, field: String },
    #[error("an append of {events} events and {bytes} bytes is over the limit; it must be split")]
    TooLarge { events: usize, bytes: usize },
}

impl StoreError {
    /// Whether the same may go well a little later, without a change to this store.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::Unavailable(_) | Self::Locked(_) | Self::Ambiguous(_))
    }

    /// Whether what is recorded cannot be relied on any more: whatever runs on it must stop.
    #[must_use]
    pub fn lost_record(&self) -> bool {
        matches!(self, Self::Gone { .. } | Self::Damaged { .. })
    }
}

/// How a file that was in use was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLoss {
    Removed,
    /// Another file has its name.
    Replaced,
}

impl fmt::Display for FileLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Removed => "was removed",
            Self::Replaced => "was replaced by another file",
        })
    }
}

/// What says how far a log went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Witness {
    /// The row that holds where the log ends.
    Head,
    Checkpoint,
    /// The file beside the database that names the newest events.
    Mark,
    /// What this process has read or written of it.
    Fold,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "its head",
            Self::Checkpoint => "its newest checkpoint",
            Self::Mark => "the mark beside the database",
            Self::Fold => "what this process has read of it",
        })
    }
}

/// Decimal, as disks are sold; what is free is rounded down and what is needed up, so that they differ where they do.
fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

fn disagreement(witness: &Witness, recorded: u64, found: u64) -> String {
    match found {
        0 => format!("{witness} names event {recorded}, and its log is gone"),
        _ if found == recorded => format!("event {found} of its log is not the one that {witness} names"),
        _ if found > recorded => {
            format!("{witness} names event {recorded} as the last, and its log goes on to event {found}")
        }
        _ => format!("{witness} names event {recorded}, and its log ends at event {found}"),
    }
}

/// What stood in a file of the store.
fn lost_with(file: &std::path::Path) -> &'static str {
    if file.as_os_str().as_encoded_bytes().ends_with(b"-wal") {
        "what was recorded since that file was last folded into the database"
    } else {
        "what was recorded in it"
    }
}

fn state_word(state: AskState) -> &'static str {
    match state {
        AskState::Pending => "pending",
        AskState::Answered => "answered",
        AskState::Expired => "expired",
        AskState::Superseded => "superseded",
        AskState::Voided => "void",
    }
}

fn wake_word(state: WakeState) -> &'static str {
    match state {
        WakeState::Pending => "pending",
        WakeState::Consumed => "taken up",
        WakeState::Cancelled => "cancelled",
    }
}
