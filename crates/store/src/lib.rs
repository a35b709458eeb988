//! Where logs are kept: the traits, what a commit means, and the in-memory backend.
//!
//! Owns: [`Log`], [`Queue`], [`Records`], [`Search`], [`Notices`] and [`Artifacts`], the pure planning of a
//! commit that every backend shares, what a search means, the in-memory backend, local artifacts.
//! Knows nothing of: SQL, tools, sandboxes, models.
//!
//! Invariant: there is one write verb, [`Log::commit`]. What an append changes besides events is
//! computed from its events by [`plan`], never handed in (S15), and every backend applies the same plan.

mod artifacts;
mod commit;
mod erase;
mod error;
mod fork;
mod gc;
mod head;
mod head_update;
mod import;
mod index_fields;
mod lease;
mod locks;
mod loss;
mod memory;
mod notices;
mod outbox;
mod plan;
mod query;
mod queue;
mod reading;
mod reads;
mod rebuild;
mod references;
mod retention;
mod rows;
mod search;
mod sweep;
mod traits;
mod variables;
mod verify;

pub use artifacts::{ArtifactWriter, Artifacts, LocalArtifacts, MemoryArtifacts, StoredBlob};
pub use commit::{
    ArtifactRow, Blob, Commit, Committed, Delivery, Idempotency, RecordWrite, SessionKey, Tombstone, Writer,
};
pub use erase::{plan_erase, was_erased};
pub use error::{DISK_FULL, FileLoss, StoreError, Witness};
pub use fork::{Fork, ForkError, Forked, fork};
pub use gc::{ORPHAN_GRACE, grace, unreferenced};
pub use head::{Head, NextWake};
pub use head_update::{HeadColumns, HeadUpdate};
pub use import::{Import, Imported, plan_import};
pub use index_fields::{INDEX_FIELDS_MOST, index_fields, indexed_kinds, indexed_values};
pub use lease::{Claim, HolderKind, HostLiveness, Lease, LeaseOwner, Liveness, LivenessOracle, PreviousLease};
pub use locks::{HeldLock, LockKey, conflicts, lingers_until};
pub use loss::{LossBook, LostEnd};
pub use memory::MemoryStore;
pub use notices::{Changes, Topic, given_back};
pub use outbox::deliver_outbox;
pub use plan::{AskNow, Plan, PlannedCommit, plan};
pub use query::{
    AskQuery, Cursor, ListOrder, ListQuery, PAGE_MOST, Page, Place, RecordQuery, SessionQuery, TimeBounds,
    UnknownQuery, page_size, place_of,
};
pub use queue::{Due, Fairness, SweepResult, by_urgency, fair_share, urgency};
pub use reading::{Pages, created, is_erased};
pub use reads::{Reads, reads};
pub use rebuild::{RebuiltLog, altered_rows, rebuild, session_rows};
pub use references::{CONTENT_KINDS, artifacts_named, contents_named};
pub use retention::{HeldArtifacts, Retain, Retention, RetentionLimit};
pub use rows::{
    AskFilter, AskRow, Checkpoint, ClaimedEntry, IntentRow, OutboxEntry, OutboxEvent, OutboxKind, Record,
    SessionListing, SessionSummary, Snapshot, UnknownCall, WakeRow,
};
pub use search::{Hit, Query, QueryError, Snippet, searchable};
pub use sweep::{Leftover, SweepArtifacts};
pub use traits::{Log, Notices, Queue, Records, Search, Store};
pub use variables::{VARIABLE, variable_id, variable_ids};
pub use verify::{
    Audit, ErasedEvents, LogFault, NamedArtifacts, Proof, VerifiedLog, VerifyProgress, is_made, verify_artifacts,
    verify_session, verify_session_seen, verify_tenant, verify_tenant_seen,
};
