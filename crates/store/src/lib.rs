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
mod import;
mod lease;
mod locks;
mod memory;
mod outbox;
mod plan;
mod queue;
mod references;
mod retention;
mod rows;
mod search;
mod sweep;
mod traits;
mod variables;
mod verify;

pub use artifacts::{ArtifactWriter, Artifacts, LocalArtifacts, MemoryArtifacts, StoredBlob};
pub use commit::{ArtifactRow, Blob, Commit, Committed, Idempotency, RecordWrite, SessionKey, Tombstone, Writer};
pub use erase::{plan_erase, was_erased};
pub use error::{DISK_FULL, FileLoss, StoreError, Witness};
pub use fork::{Fork, ForkError, Forked, fork};
pub use gc::{ORPHAN_GRACE, grace, unreferenced};
pub use head::{Head, NextWake};
pub use import::{Import, Imported, plan_import};
pub use lease::{Claim, HostLiveness, Lease, LeaseOwner, Liveness, LivenessOracle, PreviousLease};
pub use locks::{LockKey, conflicts, lingers, lingers_until};
pub use memory::MemoryStore;
pub use outbox::deliver_outbox;
pub use plan::{AskNow, Plan, PlannedCommit, plan};
pub use queue::{Due, Fairness, SweepResult, by_urgency, fair_share, urgency};
pub use references::{artifacts_named, contents_named};
pub use retention::{HeldArtifacts, Retain, Retention, RetentionLimit};
pub use rows::{
    AskFilter, AskRow, Checkpoint, IntentRow, OutboxEntry, OutboxKind, Record, SessionSummary, Snapshot, WakeRow,
};
pub use search::{Hit, Query, QueryError, Snippet, searchable};
pub use sweep::Leftover;
pub use traits::{Log, Notices, Queue, Records, Search, Store};
pub use variables::{VARIABLE, variable_id, variable_ids};
pub use verify::{
    Audit, ErasedEvents, LogFault, NamedArtifacts, Proof, VerifiedLog, VerifyProgress, is_made, verify_artifacts,
    verify_session, verify_session_seen, verify_tenant, verify_tenant_seen,
};
